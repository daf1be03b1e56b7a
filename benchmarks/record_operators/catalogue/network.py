"""Normalisation, convolution, pooling, images and losses."""

from forms import Text, form

X, W = "abcd", "ebkk"
IMAGE = {"a": 16, "b": 16, "c": 32, "d": 32, "e": 32, "k": 3, "s": 2, "3": 3}
ONE = {**IMAGE, "k": 1}


def conv(name, x, w, attributes, sizes=None, **more):
    return form(name, x, w, sizes={**IMAGE, **(sizes or {})}, **attributes, **more)


SAME = {"out_channel": 32, "kernel_size": 3, "pad_mode": Text("same")}
VALID = {"out_channel": 32, "kernel_size": 3, "pad_mode": Text("valid")}
PAD = {"out_channel": 32, "kernel_size": 3, "pad_mode": Text("pad"), "pad": 1}

FORMS = [
    form("LayerNorm", "abc", "bc", "bc", begin_norm_axis=1, begin_params_axis=1, breadth="thin"),
    form("LayerNormV3", "ab", "b", "b", begin_norm_axis=1, begin_params_axis=1),
    form("RmsNorm", "abcd", "cd", breadth="thin"),
    form("GroupNorm", X, 4, "b", "b", 1e-5, sizes=IMAGE),
    form("BatchNorm", X, "b", "b", "@b", "@b", is_training=True, sizes=IMAGE),
    form("BatchNorm", X, "b", "b", "@b", "@b", is_training=False, sizes=IMAGE, breadth="thin"),
    form("BatchNorm", "ab", "b", "b", "@b", "@b", is_training=True, breadth="thin"),
    conv("Conv2D", X, W, SAME),
    conv("Conv2D", X, W, VALID, breadth="thin"),
    conv("Conv2D", X, W, PAD, breadth="full"),
    conv("Conv2D", X, W, {**SAME, "kernel_size": 1}, ONE),
    conv("Conv2D", X, W, {**SAME, "kernel_size": 1, "stride": 2}, ONE, breadth="full"),
    conv("Conv2D", X, W, {**VALID, "kernel_size": 2, "stride": 2}, {"k": 2}, breadth="full"),
    conv("Conv2D", X, W, {**SAME, "stride": 2}, breadth="thin"),
    conv("Conv2D", X, "e1kk", {**SAME, "group": 16, "out_channel": 32}, breadth="thin"),
    form(
        "Conv2DTranspose",
        "aecd",
        W,
        (16, 16, 32, 32),
        sizes=IMAGE,
        breadth="full",
        out_channel=32,
        kernel_size=3,
        pad_mode=Text("same"),
        stride=1,
    ),
    form(
        "Conv2DTranspose",
        "aecd",
        W,
        (16, 16, 64, 64),
        sizes=IMAGE,
        breadth="full",
        out_channel=32,
        kernel_size=3,
        pad_mode=Text("same"),
        stride=2,
    ),
    form(
        "Conv2DBackpropInput",
        "aecd",
        W,
        (16, 16, 32, 32),
        sizes=IMAGE,
        breadth="thin",
        out_channel=32,
        kernel_size=3,
        pad_mode=Text("same"),
        stride=1,
    ),
    form(
        "Conv3D",
        "abcdf",
        "ebkkk",
        sizes={**IMAGE, "c": 16, "d": 16, "f": 16},
        breadth="full",
        out_channel=32,
        kernel_size=3,
        pad_mode=Text("same"),
    ),
    form("Convolution", X, W, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1, sizes=IMAGE),
    form(
        "Convolution",
        X,
        W,
        "e",
        (1, 1),
        (1, 1),
        (1, 1),
        False,
        (0, 0),
        1,
        sizes=IMAGE,
        breadth="thin",
    ),
    *(
        form(
            name,
            X,
            sizes=IMAGE,
            breadth="full",
            kernel_size=kernel,
            strides=stride,
            pad_mode=Text(pad),
        )
        for name in ("MaxPool", "AvgPool")
        for kernel, stride, pad in ((2, 2, "valid"), (3, 1, "same"))
    ),
    *(
        form(
            name,
            "abcdf",
            sizes={**IMAGE, "f": 16},
            breadth="thin",
            kernel_size=kernel,
            strides=stride,
            pad_mode=Text(pad),
        )
        for name in ("MaxPool3D", "AvgPool3D")
        for kernel, stride, pad in ((2, 2, "valid"), (3, 1, "same"))
    ),
    form("ResizeBilinearV2", X, (64, 64), sizes=IMAGE),
    form("ResizeBilinearV2", X, (64, 64), sizes=IMAGE, align_corners=True, breadth="thin"),
    form("ResizeNearestNeighbor", X, sizes=IMAGE, size=(64, 64)),
    form(
        "ResizeNearestNeighbor", X, sizes=IMAGE, size=(64, 64), align_corners=True, breadth="thin"
    ),
    form(
        "ROIAlign",
        X,
        "~e5",
        sizes={**IMAGE, "5": 5},
        pooled_height=4,
        pooled_width=4,
        spatial_scale=0.5,
    ),
    form("CropAndResize", "acdb", "~e4", "~e:int32", (8, 8), sizes={**IMAGE, "4": 4}),
    form("BoundingBoxEncode", "a4", "~a4", sizes={"4": 4}),
    form("IOU", "a4:float16", "~b4:float16", sizes={"4": 4}),
    form("CheckValid", "a4:float16", "~3:float16", sizes={"4": 4, "3": 3}),
    form("GridSampler2D", X, "~aef2", sizes={**IMAGE, "f": 16, "2": 2}),
    form("PReLU", "abc", "b"),
    form("PReLU", "abc", "1", breadth="thin"),
    form("PReLU", "ab", "b", breadth="thin"),
    form("SoftmaxCrossEntropyWithLogits", "ab", "ab", breadth="thin"),
    form("SparseSoftmaxCrossEntropyWithLogits", "ab", "a:int32", is_grad=True, breadth="thin"),
    form("CrossEntropyLoss", "ab", "a:int64", None, Text("mean"), -100, 0.0, 0.0, False),
    form(
        "CrossEntropyLoss",
        "ab",
        "a:int64",
        "b",
        Text("none"),
        -100,
        0.0,
        0.0,
        False,
        breadth="thin",
    ),
    form(
        "CrossEntropyLoss",
        "ab",
        "a:int64",
        None,
        Text("sum"),
        -100,
        0.0,
        0.0,
        False,
        breadth="thin",
    ),
    form("LstsqV2", "ab", "ac", Text("gels"), sizes={"a": 16, "b": 16, "c": 16}, breadth="thin"),
    form("SolveTriangular", "abb", "~abc", 0, True, False, breadth="thin"),
    *(form(name, "ab", "!1", "!1", breadth="thin") for name in ("FakeQuantPerLayer",)),
    form("FakeQuantPerChannel", "ab", "@b", "@b", breadth="thin"),
    form("MinMaxUpdatePerLayer", "ab", "@1", "@1", breadth="thin"),
    form("MinMaxUpdatePerChannel", "ab", "@b", "@b", breadth="thin"),
]
