"""Element types: one spelling for all writers, and how finely each can tell numbers apart."""

from __future__ import annotations

from functools import lru_cache

_SPELLINGS = {
    "float": "Float32", "float32": "Float32", "fp32": "Float32", "f32": "Float32", "f4": "Float32",
    "half": "Float16", "float16": "Float16", "fp16": "Float16", "f16": "Float16", "f2": "Float16",
    "bfloat16": "BFloat16", "bf16": "BFloat16",
    "double": "Float64", "float64": "Float64", "fp64": "Float64", "f64": "Float64", "f8": "Float64",
    "bool": "Bool", "b1": "Bool", "boolean": "Bool",
    "int8": "Int8", "i1": "Int8", "i8": "Int8", "int4": "Int4",
    "uint8": "UInt8", "u1": "UInt8", "u8": "UInt8", "byte": "UInt8", "uint1": "UInt8",
    "int16": "Int16", "i2": "Int16", "i16": "Int16", "short": "Int16", "uint16": "UInt16",
    "u2": "UInt16", "u16": "UInt16",
    "int32": "Int32", "i4": "Int32", "i32": "Int32", "int": "Int32", "uint32": "UInt32",
    "u4": "UInt32", "u32": "UInt32",
    "int64": "Int64", "i64": "Int64", "long": "Int64", "uint64": "UInt64", "u64": "UInt64",
    "complex64": "Complex64", "c8": "Complex64", "complex128": "Complex128", "c16": "Complex128",
    "complexfloat": "Complex64", "complexdouble": "Complex128", "char": "Int8",
    "hf32": "HFloat32", "float8_e4m3fn": "Float8E4M3FN", "f8_e4m3": "Float8E4M3FN",
    "float8_e5m2": "Float8E5M2", "f8_e5m2": "Float8E5M2", "hifloat8": "HiFloat8",
}  # fmt: skip

_ORDERS = "<>=|"
"""How NumPy begins its codes: with the order of bytes."""
_COUNTED_IN_BYTES = {"i8": "Int64", "u8": "UInt64"}
"""What counts bytes where NumPy says it, and bits elsewhere."""

_ROUNDOFF = {
    "Float64": 2.0**-53, "Float32": 2.0**-24, "Float16": 2.0**-11, "BFloat16": 2.0**-8,
    "HFloat32": 2.0**-12, "Complex64": 2.0**-24, "Complex128": 2.0**-53,
    "Float8E4M3FN": 2.0**-4, "Float8E5M2": 2.0**-3, "HiFloat8": 2.0**-3,
}  # fmt: skip

FLOATS = frozenset(_ROUNDOFF)
"""Types whose numbers are rounded, for those who ask of many tensors."""
_NUMPY = {
    "Float64": "<f8", "Float32": "<f4", "Float16": "<f2", "BFloat16": "<u2", "Bool": "|b1",
    "Int8": "|i1", "UInt8": "|u1", "Int16": "<i2", "UInt16": "<u2", "Int32": "<i4", "UInt32": "<u4",
    "Int64": "<i8", "UInt64": "<u8", "Complex64": "<c8", "Complex128": "<c16", "Int4": "|i1",
    "Float8E4M3FN": "|u1", "Float8E5M2": "|u1",
}  # fmt: skip


@lru_cache(maxsize=1024)
def dtype_name(text: str) -> str:
    """MindSpore's spelling of a type: ``Float32`` for ``torch.float32``, ``<f4``, ``FLOAT``.

    Args:
        text: as a writer has it; what nobody knows is given back without a module's name.
    """
    word = text.rpartition(".")[2].strip()
    if word[:1] in _ORDERS and word[1:] in _COUNTED_IN_BYTES:
        return _COUNTED_IN_BYTES[word[1:]]
    word = word.lstrip(_ORDERS).lower()
    word = word.removeprefix("dt_").removesuffix("storage")
    return _SPELLINGS.get(word, text.rpartition(".")[2])


def is_float(dtype: str) -> bool:
    """Whether numbers of this type are rounded.

    Args:
        dtype: in MindSpore's spelling.
    """
    return dtype in _ROUNDOFF


def is_complex(dtype: str) -> bool:
    """Whether numbers of this type have an imaginary part.

    Args:
        dtype: in MindSpore's spelling.
    """
    return dtype.startswith("Complex")


def roundoff(dtype: str) -> float:
    """Largest relative error of rounding to nearest (half a unit in the last place); 0 if exact.

    Args:
        dtype: in MindSpore's spelling; 0 of types that are not known, too.
    """
    return _ROUNDOFF.get(dtype, 0.0)


def numpy_code(dtype: str) -> str | None:
    """How NumPy reads the bytes; types that it lacks as bit patterns. None if it cannot.

    Args:
        dtype: in MindSpore's spelling.
    """
    return _NUMPY.get(dtype)


def coarsest(dtypes: list[str]) -> float:
    """The unit roundoff of the coarsest float type among some; 0 if there is none.

    Args:
        dtypes: in MindSpore's spelling.
    """
    return max([_ROUNDOFF.get(dtype, 0.0) for dtype in dtypes], default=0.0)
