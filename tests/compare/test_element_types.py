"""Element types as their writers spell them, and how finely each tells numbers apart."""

from __future__ import annotations

import numpy as np
import pytest

from irtool.compare.tensors.dtypes import (
    FLOATS,
    coarsest,
    dtype_name,
    is_float,
    numpy_code,
    roundoff,
)

KINDS = {"f": "Float", "i": "Int", "u": "UInt", "c": "Complex"}
CODES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16")
NUMPY = [np.dtype(code) for code in CODES]


def named(dtype: np.dtype[np.generic]) -> str:
    return f"{KINDS[dtype.kind]}{dtype.itemsize * 8}"


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_numpys_types_in_all_spellings(dtype: np.dtype[np.generic]) -> None:
    """Its code in a file, its name, PyTorch's and MindSpore's name for it."""
    name = named(dtype)
    for text in (dtype.str, f"<{dtype.str[1:]}", dtype.name, f"torch.{dtype.name}",
                 f"mindspore.{dtype.name}", name, name.upper(), f"DT_{name.upper()}"):  # fmt: skip
        assert dtype_name(text) == name, text
    code = numpy_code(name)
    assert code is not None
    assert np.dtype(code) == dtype


@pytest.mark.parametrize("dtype", [each for each in NUMPY if each.kind in "fc"], ids=str)
def test_rounding_is_half_of_what_numpy_says_lies_between_numbers(
    dtype: np.dtype[np.generic],
) -> None:
    assert roundoff(named(dtype)) == float(np.finfo(dtype).eps) / 2  # type: ignore[arg-type]
    assert is_float(named(dtype))


@pytest.mark.parametrize(
    ("spellings", "name", "bits"),
    [
        ("bfloat16 torch.bfloat16 bf16 BF16 DT_BFLOAT16 BFloat16Storage", "BFloat16", 7),
        ("float8_e4m3fn torch.float8_e4m3fn F8_E4M3", "Float8E4M3FN", 3),
        ("float8_e5m2 torch.float8_e5m2 F8_E5M2", "Float8E5M2", 2),
        ("hifloat8", "HiFloat8", 2),
        ("hf32", "HFloat32", 11),
        ("half torch.half fp16 f16 HalfStorage F16", "Float16", 10),
        ("float torch.float fp32 f32 FLOAT FloatStorage F32", "Float32", 23),
        ("double fp64 f64 DoubleStorage F64", "Float64", 52),
        ("complexfloat ComplexFloatStorage", "Complex64", 23),
        ("complexdouble", "Complex128", 52),
    ],
)
def test_floats_by_the_bits_of_their_mantissa(spellings: str, name: str, bits: int) -> None:
    assert {dtype_name(text) for text in spellings.split()} == {name}
    assert roundoff(name) == 2.0 ** -(bits + 1)
    assert name in FLOATS


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        ("bool torch.bool |b1 BOOL boolean BoolStorage", "Bool"),
        ("byte uint8 |u1 U8 ByteStorage uint1", "UInt8"),
        ("char int8 |i1 I8 CharStorage", "Int8"),
        ("short int16 <i2 I16 ShortStorage", "Int16"),
        ("int int32 >i4 I32 IntStorage", "Int32"),
        ("long int64 =i8 I64 LongStorage", "Int64"),
        ("uint16 U16", "UInt16"),
        ("uint32 U32", "UInt32"),
        ("uint64 U64 <u8", "UInt64"),
        ("int4", "Int4"),
    ],
)
def test_whole_numbers_are_not_rounded(spellings: str, name: str) -> None:
    for text in spellings.split():
        # Alone, i8 and u8 count bits; behind an order of bytes, as NumPy writes them, bytes.
        assert dtype_name(text) == name, text
    assert roundoff(name) == 0.0
    assert not is_float(name)


def test_types_that_numpy_lacks_are_read_as_bits_of_their_size() -> None:
    sizes = {"BFloat16": 2, "Float8E4M3FN": 1, "Float8E5M2": 1, "Bool": 1, "Int4": 1}
    assert {name: np.dtype(numpy_code(name)).itemsize for name in sizes} == sizes
    assert numpy_code("HiFloat8") is None


def test_what_nobody_knows_keeps_its_name() -> None:
    assert dtype_name("torch.quint8") == "quint8"
    assert roundoff("quint8") == 0.0
    assert numpy_code("quint8") is None


def test_the_coarsest_of_some() -> None:
    assert coarsest(["Float32", "BFloat16", "Int64"]) == 2.0**-8
    assert coarsest(["Float32", "Float16"]) == 2.0**-11
    assert coarsest(["Int8"]) == 0.0
    assert coarsest([]) == 0.0
