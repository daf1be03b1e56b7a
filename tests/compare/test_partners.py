"""Tensors of two frameworks that are the same by their figures: counted by hand."""

from __future__ import annotations

import pytest

from irtool.compare.tensors.model import NAN, Columns, Op, Phase, Shape, TensorRun
from irtool.compare.tensors.pairing.fingerprints import partners
from tests.compare.operators import run, tensor

Figures = tuple[float, float, float]
"""Norm, largest and smallest element."""


def dump(*values: Figures, phase: Phase = "forward", dtype: str = "Float32",
         shape: Shape = (4, 4)) -> TensorRun:  # fmt: skip
    columns = Columns()
    ops: list[Op] = []
    for norm, most, least in values:
        place = tensor(columns, "output.0", shape, dtype, norm, extremes=(most, least))
        ops.append(Op(len(ops), "a", "a", phase, [], [place]))
    return run(columns, ops)


ONE: Figures = (8.0, 4.0, -2.0)


def of(one: TensorRun, other: TensorRun) -> dict[str, tuple[int, int]]:
    return dict(partners(one, other))


def test_equal_figures_are_partners() -> None:
    assert of(dump(ONE, (1.0, 1.0, 0.0)), dump(ONE)) == {"forward": (1, 2)}


def test_what_several_operators_read_counts_once() -> None:
    assert of(dump(ONE, ONE, ONE), dump(ONE)) == {"forward": (1, 1)}


@pytest.mark.parametrize(
    ("other", "is_near"),
    [
        ((8.0 * (1 + 0.9e-4), 4.0, -2.0), True),
        ((8.0 * (1 + 1.1e-4), 4.0, -2.0), False),
        ((8.0 / (1 + 0.9e-4), 4.0, -2.0), True),
        ((8.0 / (1 + 1.1e-4), 4.0, -2.0), False),
        ((8.0, 4.0 + 3.9e-4, -2.0), True),
        ((8.0, 4.0 + 4.1e-4, -2.0), False),
        ((8.0, 4.0, -2.0 + 3.9e-4), True),  # held against the largest magnitude
        ((8.0, 4.0, -2.0 - 4.1e-4), False),
    ],
)
def test_how_near_figures_must_be(other: Figures, is_near: bool) -> None:
    assert of(dump(ONE), dump(other)) == {"forward": (int(is_near), 1)}
    assert of(dump(other), dump(ONE)) == {"forward": (int(is_near), 1)}


def test_short_types_may_be_eight_roundings_apart() -> None:
    near = 8.0 * (1 + 7.9 * 2.0**-11)
    far = 8.0 * (1 + 8.1 * 2.0**-11)
    half = dump(ONE, dtype="Float16")
    assert of(half, dump((near, 4.0, -2.0))) == {"forward": (1, 1)}
    assert of(half, dump((far, 4.0, -2.0))) == {"forward": (0, 1)}


def test_other_sizes_and_phases_are_no_partners() -> None:
    assert of(dump(ONE), dump(ONE, shape=(4, 5))) == {"forward": (0, 1)}
    assert of(dump(ONE), dump(ONE, shape=(16,))) == {"forward": (1, 1)}
    assert of(dump(ONE), dump(ONE, phase="backward")) == {"forward": (0, 1)}
    gradient = dump(ONE, phase="backward")
    assert of(gradient, gradient) == {"backward": (1, 1)}


def test_what_says_nothing_is_left_out() -> None:
    assert of(dump(ONE, phase="optimizer"), dump(ONE)) == {}
    assert of(dump(ONE, dtype="Int32"), dump(ONE)) == {}
    assert of(dump((8.0, NAN, -2.0)), dump(ONE)) == {}
