"""How many terms an element of a result adds up, and what else is known of operators by name."""

from __future__ import annotations

import numpy as np
import pytest

from irtool.compare.tensors.dtypes import (
    coarsest,
    dtype_name,
    is_float,
    numpy_code,
    roundoff,
)
from irtool.compare.tensors.model import Phase, Shape
from irtool.compare.tensors.semantics import (
    Family,
    family,
    is_random,
    is_unwritten,
    jumps,
    parameter_places,
    reduction_length,
)


@pytest.mark.parametrize(
    ("kind", "phase", "inputs", "output", "terms"),
    [
        ("matmul", "forward", [(8, 64), (64, 16)], (8, 16), 64),
        ("matmul", "forward", [(2, 3, 8, 64), (2, 3, 64, 16)], (2, 3, 8, 16), 64),
        ("matmul", "forward", [(2, 8, 64), (64, 16)], (2, 8, 16), 64),  # a weight for all batches
        ("matmul", "forward", [(8, 2), (2, 16)], (8, 16), 4),  # no sum is shorter
        ("matmul", "forward", [(8, 64)], (8, 16), 64),  # one operand is known
        ("matmul", "forward", [(), (64, 16)], (8, 16), 64),
        ("matmul", "forward", [(64, 16), ()], (8, 16), 64),
        ("matmul", "forward", [(3, 8, 64), (64, 2)], (24, 2), 64),
        ("matmul", "forward", [(64, 6), (3, 6, 4)], (3, 64, 4), 6),
        ("matmul", "backward", [(8, 64), (16, 64)], (8, 16), 64),
        ("matmul", "backward", [(512, 8)], (8,), 512),  # rows of a bias
        ("attention", "forward", [(8, 32), (32, 8)], (8, 8), 32),
        ("convolution", "forward", [(1, 3, 8, 8), (16, 3, 5, 5)], (1, 16, 8, 8), 75),
        ("convolution", "backward", [(4, 16, 32, 32), (4, 3, 32, 32)], (16, 3, 3, 3), 3072),
        ("norm", "forward", [(6, 48)], (6, 48), 48),
        ("norm", "forward", [(6, 48)], (48,), 48),
        ("norm", "forward", [(96, 8)], (8,), 96),
        ("norm", "backward", [(96, 8)], (8,), 96),
        ("softmax", "forward", [(5, 3)], (5, 3), 4),
        ("reduce", "forward", [(100, 7)], (7,), 100),
        ("reduce", "forward", [(100, 7)], (100, 7), 4),
        ("bias gradient", "forward", [(100, 7)], (7,), 100),
        ("loss", "forward", [(10, 50)], (10,), 50),
        ("loss", "forward", [(10, 50)], (), 500),
        ("loss", "forward", [(10, 50), (10,)], (10,), 50),
        ("norm", "forward", [(6, 48), (6, 1)], (6, 48), 48),
        ("scatter", "forward", [(40, 8), ()], (20, 8), 40),
        ("scatter", "forward", [(40, 8), (40,)], (20, 8), 40),
        ("scatter", "forward", [], (20, 8), 4),
        ("unknown", "forward", [(4, 4)], (4, 4), 16),
        ("unknown", "forward", [(4, 40)], (4,), 40),
        ("unknown", "forward", [(100, 40)], (4,), 1000),
        ("collective", "forward", [(4, 4)], (4, 4), 64),
        ("elementwise", "forward", [(64, 8)], (64, 8), 4),
        ("elementwise", "forward", [(64, 8)], (8,), 4),
        ("elementwise", "backward", [(64, 8)], (8,), 64),  # what was broadcast is added up
        ("elementwise", "backward", [(64, 8)], (64, 8), 4),
        ("elementwise", "forward", [], (), 4),
    ],
)
def test_terms_that_one_element_adds_up(
    kind: Family, phase: Phase, inputs: list[Shape], output: Shape, terms: int
) -> None:
    assert reduction_length(kind, phase, inputs, output, opaque=False) == terms


def test_of_modules_the_longest_guess_counts_twice_and_of_large_ones_four_times() -> None:
    small = reduction_length("matmul", "forward", [(4, 40)], (4, 8), opaque=True)
    assert small == 2 * 40
    large = reduction_length("matmul", "forward", [(2, 4, 40), (40, 8)], (2, 4, 8), opaque=True)
    assert large == 4 * 40
    four = reduction_length("matmul", "forward", [(4, 40), (40, 8)], (4, 8), opaque=True)
    assert four == 2 * 40
    assert reduction_length("matmul", "forward", [(30, 40)], (), opaque=True) == 2 * 1200
    assert reduction_length("norm", "forward", [(2,)], (2,), opaque=True) == 2 * 4


@pytest.mark.parametrize("name", ["Float16", "Float32", "Float64"])
def test_a_rounding_is_half_a_unit_in_the_last_place(name: str) -> None:
    assert roundoff(name) == np.finfo(name.lower()).eps / 2
    assert is_float(name)


def test_a_bfloat16_is_the_upper_half_of_a_float32() -> None:
    """The next number after 1 differs in the last of its 16 bits."""
    bits = np.array([1.0], np.float32).view(np.uint32)
    above = (bits + (1 << 16)).view(np.float32)
    assert roundoff("BFloat16") == float(above[0] - 1) / 2


@pytest.mark.parametrize(
    ("name", "mantissa"), [("Float8E4M3FN", 3), ("Float8E5M2", 2), ("HFloat32", 11)]
)
def test_short_types_round_by_their_mantissa(name: str, mantissa: int) -> None:
    assert roundoff(name) == 2.0 ** -(mantissa + 1)


def test_complex_numbers_round_as_their_parts() -> None:
    assert roundoff("Complex64") == roundoff("Float32")
    assert roundoff("Complex128") == roundoff("Float64")


def test_whole_numbers_are_not_rounded() -> None:
    assert roundoff("Int32") == roundoff("Bool") == 0.0
    assert not is_float("Int64")
    assert coarsest(["Int32", "Float32", "BFloat16"]) == 2.0**-8
    assert coarsest(["Int32"]) == coarsest([]) == 0.0


@pytest.mark.parametrize(
    "name",
    [
        *("float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32"),
        *("uint32", "int64", "uint64", "complex64", "complex128"),
    ],
)
def test_numpys_codes_and_names_are_types_of_the_same_bytes(name: str) -> None:
    kind = np.dtype(name)
    spelt = {dtype_name(text) for text in (name, kind.str, f"torch.{name}", name.upper())}
    (one,) = spelt
    code = numpy_code(one)
    assert code is not None
    assert np.dtype(code) == kind.newbyteorder("<")


@pytest.mark.parametrize(("name", "bytes_"), [("BFloat16", 2), ("Float8E4M3FN", 1), ("Int4", 1)])
def test_types_that_numpy_lacks_are_read_as_bits(name: str, bytes_: int) -> None:
    code = numpy_code(name)
    assert code is not None
    assert np.dtype(code).itemsize == bytes_


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch.FloatStorage", "Float32"),
        ("HalfStorage", "Float16"),
        ("DT_BF16", "BFloat16"),
        ("torch.float8_e4m3fn", "Float8E4M3FN"),
        ("F8_E5M2", "Float8E5M2"),
        ("complexfloat", "Complex64"),
        ("byte", "UInt8"),
        ("char", "Int8"),
        ("short", "Int16"),
        ("long", "Int64"),
        ("NoSuchType", "NoSuchType"),
    ],
)
def test_other_spellings(text: str, name: str) -> None:
    assert dtype_name(text) == name


def test_whatever_the_table_does_not_know_is_random_by_its_name() -> None:
    assert is_random("Dropout")
    assert is_random("FeatureDropout2")
    assert is_random("normal_")
    assert not is_random("LayerNorm")
    assert not is_random("abnormal_thing")


def test_what_jumps() -> None:
    assert jumps("Floor", "forward")
    assert jumps("Adam", "optimizer")
    assert jumps("ReluGrad", "forward")
    assert jumps("relu", "backward")
    assert not jumps("relu", "forward")
    assert not jumps("tanh", "backward")


def test_a_collective_of_another_library_is_one() -> None:
    assert family("my_allreduce_hook") == "collective"
    assert family("MyBlock") == "unknown"
    assert family("MatMul") == "matmul"


def test_places_of_weights_and_of_what_nobody_writes() -> None:
    assert parameter_places("layer_norm") == (2, 3)
    assert not is_unwritten("MatMul", "output.0")
