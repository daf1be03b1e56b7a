"""What one side alone does to an input, as far as its factor or its size shows it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.tensors.judging import entering
from irtool.compare.tensors.judging.entering import Entering
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from tests.compare.operators import run, tensor

UNIT = 2.0**-11
"""Roundoff of Float16."""


def entered(makers: tuple[Op | None, Op | None] = (None, None), dtype: str = "Float16") -> Entering:
    """The only input of a call; ``makers``: who made it on each side, without a partner."""
    columns = Columns(), Columns()
    places = [tensor(one, "input.0", dtype=dtype) for one in columns]
    calls = [Op(0, "reader", "softmax", "forward", [place], []) for place in places]
    judged = Judged(OpPair(calls[0], calls[1], "order"), Slots(((0, 0),), ()))
    sides = [run(one, [call]) for one, call in zip(columns, calls, strict=True)]
    known: Any = SimpleNamespace(maker=lambda which, *_: makers[which])
    past: Any = SimpleNamespace(before=lambda _: 0.0)
    return Entering(sides[0], sides[1], judged, past, known)


def measured(scale: float, error: float = 0.0) -> Measure:
    """Of tensors of which the right one is so much longer, and otherwise off by so much."""
    distance = math.hypot(scale, error)
    right = math.hypot(1 + scale, error)
    return Measure(distance / max(1.0, right), 1.0, right, False, 0, 0, True)


# -- a product with a number -----------------------------------------------------------------------


def times(factor: float) -> Op:
    return Op(0, "times", "mul", "forward", [0], [0], attributes={"input.1": factor})


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("factor", "scale", "is_told"),
    [
        (0.006, 0.0051, True),  # from half a per cent on
        (0.006, 0.0049, False),
        (0.0051, 0.0055, True),  # of the factor as well
        (0.0049, 0.0055, False),
        (0.04, 0.0301, True),  # up to a quarter off
        (0.04, 0.0299, False),
        (0.04, 0.0499, True),
        (0.04, 0.0501, False),
    ],
)
def test_a_factor_of_one_side_shows_in_what_it_makes(
    which: int, sign: int, factor: float, scale: float, is_told: bool
) -> None:
    number = 1 + sign * factor
    given = 1 / number if which == 0 else number
    makers = (times(given), None) if which == 0 else (None, times(given))
    found = entered(makers).from_factor((0, 0), measured(sign * scale))
    side = ("right", "left")[which]
    assert found == (f" is {given:g} times what it is on the {side}" if is_told else "")


def test_a_call_of_both_sides_makes_no_factor() -> None:
    assert not entered().from_factor((0, 0), measured(0.04))


# -- another function ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "error", "is_asked"),
    [
        (0.0, 3.9, False),  # units of half precision
        (0.0, 4.1, True),
        (0.12, 0.0, False),  # or an eighth of one that all elements share
        (0.13, 0.0, True),
        (-0.12, 0.0, False),
        (-0.13, 0.0, True),
    ],
)
def test_a_function_of_one_side_is_looked_for_where_rounding_moves_less(
    monkeypatch: pytest.MonkeyPatch, scale: float, error: float, is_asked: bool
) -> None:
    monkeypatch.setattr(entering, "inserted_function", lambda *_: "asked")
    found = entered().from_function((0, 0), measured(scale * UNIT, error * UNIT))
    assert found == ("asked" if is_asked else "")


def test_single_precision_hides_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entering, "inserted_function", lambda *_: "asked")
    single = entered(dtype="Float32")
    assert single.from_function((0, 0), measured(0.0, 0.5 * 2.0**-20)) == ""
