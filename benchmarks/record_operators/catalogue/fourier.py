"""Fourier transforms, and random tensors."""

from forms import Text, form

FORMS = [
    *(
        form(name, "ab:complex64", None, -1, None, breadth="thin")
        for name in ("FFT", "IFFT", "HFFT")
    ),
    *(form(name, "ab", None, -1, None, breadth="thin") for name in ("RFFT", "IHFFT")),
    form("IRFFT", "ab:complex64", None, -1, None, breadth="thin"),
    *(
        form(name, "abc:complex64", None, (-2, -1), None, breadth="thin")
        for name in ("FFT2", "IFFT2", "HFFT2", "IRFFT2")
    ),
    *(form(name, "abc", None, (-2, -1), None, breadth="thin") for name in ("RFFT2", "IHFFT2")),
    *(
        form(name, "abc:complex64", None, (1, 2), None, breadth="thin")
        for name in ("FFTN", "IFFTN", "HFFTN", "IRFFTN")
    ),
    *(form(name, "abc", None, (1, 2), None, breadth="thin") for name in ("RFFTN", "IHFFTN")),
    form("FFTN", "abc:complex64", None, None, None, breadth="few"),
    *(form(name, "ab", 2, None, -1, None, breadth="thin") for name in ("DCT", "IDCT")),
    *(form(name, "abc", 2, None, (1, 2), None, breadth="thin") for name in ("DCTN", "IDCTN")),
    *(form(name, "ab", (1,), breadth="thin") for name in ("FFTShift", "IFFTShift")),
    form("FFTShift", "ab", None, breadth="few"),
    form(
        "StandardNormal",
        (16, 32),
        seed=1,
        seed2=2,
        options={"strategies": [[[1, 1]], [[2, 1]], [[2, 4]], [[1, 8]], [[16, 1]], [[2]]]},
    ),
    form(
        "UniformReal",
        (16, 32),
        seed=1,
        seed2=2,
        options={"strategies": [[[1, 1]], [[2, 1]], [[2, 4]], [[1, 8]], [[16, 1]], [[2]]]},
    ),
    form("Gamma", (16, 32), "~1", "~1", seed=1, seed2=2, breadth="thin"),
    form("RandomChoiceWithMask", "ab:bool", count=16, breadth="thin"),
    form(
        "UniformCandidateSampler",
        "ab:int64",
        num_true=32,
        num_sampled=8,
        unique=False,
        range_max=64,
        breadth="thin",
    ),
    form(
        "GenerateEodMaskV2",
        "ab:float16",
        "~1:int64",
        "~:int64",
        "~:int64",
        "~:int64",
        0,
        (1, 2),
        Text("cycle"),
        Text("bitflip"),
        0.0,
        0,
        0.0,
        breadth="thin",
    ),
]
