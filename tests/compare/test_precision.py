"""How precise values are, whatever type they are kept in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import irtool
from irtool.compare.tensors.judging.precision import true_unit
from irtool.compare.tensors.model import Columns, Op, TensorRun
from tests.compare.operators import run, tensor

SINGLE, HALF, BRAIN = 2.0**-24, 2.0**-11, 2.0**-8

Array = NDArray[np.float32]


def half(values: Array) -> Array:
    return values.astype(np.float16).astype(np.float32)


def brain(values: Array) -> Array:
    """Without the lower 16 bits."""
    bits = values.view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


VALUES = np.random.default_rng(0).standard_normal(64).astype(np.float32)


def of_values(folder: Path, values: Array, dtype: str = "Float32") -> float:
    np.save(folder / "x.npy", values)
    columns = Columns()
    columns.add("input.0", dtype, values.shape, file=str(folder / "x.npy"))
    op = Op(0, "a", "a", "forward", [0], [])
    return true_unit(run(columns, [op]), op, 0)


def test_values_that_a_shorter_type_has_came_through_it(tmp_path: Path) -> None:
    assert of_values(tmp_path, VALUES) == SINGLE
    assert of_values(tmp_path, half(VALUES)) == HALF
    assert of_values(tmp_path, brain(VALUES)) == BRAIN


def test_one_value_that_it_has_not_is_enough(tmp_path: Path) -> None:
    values = half(VALUES)
    values[-1] = VALUES[-1]
    assert of_values(tmp_path, values) == SINGLE


def test_few_or_repeated_values_say_nothing(tmp_path: Path) -> None:
    assert of_values(tmp_path, half(VALUES)[:16]) == HALF
    assert of_values(tmp_path, half(VALUES)[:15]) == SINGLE
    some = np.resize(half(VALUES)[:8], 64)
    fewer = np.resize(half(VALUES)[:7], 64)
    assert of_values(tmp_path, some) == HALF
    assert of_values(tmp_path, fewer) == SINGLE  # masks are exact in every type


def test_values_beyond_half_precision_are_no_half_precision(tmp_path: Path) -> None:
    assert of_values(tmp_path, brain(VALUES * 1e30)) == BRAIN


def test_a_shorter_type_is_what_it_is(tmp_path: Path) -> None:
    assert of_values(tmp_path, VALUES.astype(np.float16), "Float16") == HALF  # type: ignore[arg-type]


def of_extremes(most: float, least: float, dtype: str = "Float32") -> float:
    columns = Columns()
    tensor(columns, "input.0", dtype=dtype, norm=1.0, extremes=(most, least))
    op = Op(0, "a", "a", "forward", [0], [])
    return true_unit(run(columns, [op]), op, 0)


H = [float(half(np.float32([x]))[0]) for x in (1.3333, -2.3456)]
B = [float(brain(np.float32([x]))[0]) for x in (1.3333, -2.3456)]


@pytest.mark.parametrize(
    ("most", "least", "unit"),
    [
        (H[0], H[1], HALF),
        (B[0], B[1], BRAIN),
        (H[0], B[1], HALF),
        (1.3333, H[1], SINGLE),
        (H[0], -2.3456, SINGLE),
        (1.5, -2.0, SINGLE),  # numbers that short stand in every type
        (H[0], -2.0, HALF),  # one that tells is enough
        (H[0], 0.0, HALF),  # of what a rectifier gives
        (1.3333, 0.0, SINGLE),
        (H[0], H[0], SINGLE),  # a constant
        (float("inf"), H[1], SINGLE),
    ],
)
def test_extremes_tell_where_no_values_are(most: float, least: float, unit: float) -> None:
    assert of_extremes(most, least) == unit


def test_extremes_of_double_precision_tell_nothing() -> None:
    assert of_extremes(H[0], H[1], "Float64") == 2.0**-53


def with_casts(norm: float, *casts: tuple[str, str, float]) -> TensorRun:
    """A tensor, and Casts by the types of what they read and write and the norm of that."""
    columns = Columns()
    ops: list[Op] = []
    for before, after, result in casts:
        given = tensor(columns, "input.0", dtype=before, norm=1.0)
        put = tensor(columns, "output.0", dtype=after, norm=result)
        ops.append(Op(len(ops), "Cast", "Cast", "forward", [given], [put]))
    given = tensor(columns, "input.0", norm=norm)
    ops.append(Op(len(ops), "MatMul", "MatMul", "forward", [given], []))
    return run(columns, ops)


@pytest.mark.parametrize(
    ("casts", "unit"),
    [
        ((("Float16", "Float32", 7.0),), HALF),
        ((("BFloat16", "Float32", 7.0), ("Float16", "Float32", 7.0)), BRAIN),
        ((("Float16", "Float32", 7.5),), SINGLE),
        ((("Float32", "Float32", 7.0),), SINGLE),
        ((), SINGLE),
    ],
)
def test_a_cast_that_puts_out_the_same_values_is_where_they_come_from(
    casts: tuple[tuple[str, str, float], ...], unit: float
) -> None:
    found = with_casts(7.0, *casts)
    op = found.ops[-1]
    assert true_unit(found, op, op.inputs[0]) == unit
    nothing = with_casts(float("nan"), *casts)
    assert true_unit(nothing, nothing.ops[-1], nothing.ops[-1].inputs[0]) == SINGLE


def test_a_cast_of_other_sizes_is_another_one() -> None:
    found = with_casts(7.0, ("Float16", "Float32", 7.0))
    found.columns.shapes[1] = (4, 5)
    op = found.ops[-1]
    assert true_unit(found, op, op.inputs[0]) == SINGLE


GRAPH = """\
# IR entry: @net_1
%para1_x: <Tensor[Float32], (4, 8)>

subgraph @net_1() {
  %0(a) = Cast(%para1_x, I64(42))
      : (<Tensor[Float32], (4, 8)>, <Int64, NoShape>) -> (<Tensor[Float16], (4, 8)>)
  %1(b) = Cast(%0, I64(43))
      : (<Tensor[Float16], (4, 8)>, <Int64, NoShape>) -> (<Tensor[Float32], (4, 8)>)
  %2(c) = Reshape(%1, (8, 4))
      : (<Tensor[Float32], (4, 8)>, <Tuple[Int64*2], NoShape>) -> (<Tensor[Float32], (8, 4)>)
  %3(d) = Exp(%1)
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (4, 8)>)
  %4(e) = MatMul(%2, %3)
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (8, 8)>)
  Return(%4)
      : (<Tensor[Float32], (8, 8)>)
}
"""


def test_the_graph_shows_casts_as_long_as_nothing_is_computed() -> None:
    """Input 0 is a view of what was Float16; between it and input 1 stands Exp."""
    columns = Columns()
    places = [tensor(columns, f"input.{n}") for n in range(2)]
    node = irtool.loads(GRAPH).graphs[0].nodes[4]
    op = Op(0, "MatMul", "MatMul", "forward", places, [], node=node)
    found = run(columns, [op])
    assert [true_unit(found, op, place) for place in places] == [HALF, SINGLE]
    columns.labels[0] = "output.0"
    assert true_unit(found, op, places[0]) == SINGLE
    columns.labels[0] = "input.9"
    assert true_unit(found, op, places[0]) == SINGLE
