"""A loss curve that ends on one side of another: from which step on, and when it is too little."""

from __future__ import annotations

import pytest

from irtool.compare.losses.comparison import (
    _left,  # pyright: ignore[reportPrivateUsage]
    _usual,  # pyright: ignore[reportPrivateUsage]
)

STEPS = 40


def leaves(deltas: list[float]) -> int | None:
    """What is said of two curves this far apart at steps 100, 101, …; the left one falls slowly."""
    ours = [2.0 - 0.001 * n for n in range(len(deltas))]
    theirs = [a + delta for a, delta in zip(ours, deltas, strict=True)]
    return _left(range(100, 100 + len(deltas)), ours, theirs)


def noisy(level: float, count: int) -> list[float]:
    return [level + (0.001 if n % 2 else -0.001) for n in range(count)]


@pytest.mark.parametrize("side", [1, -1])
def test_the_step_is_the_one_behind_the_last_that_lay_on_the_other_side(side: int) -> None:
    """Both cross one another again and again before."""
    before = [0.01 * (-1) ** n for n in range(20)]
    before[19] = -0.01 * side
    deltas = before + [side * value for value in noisy(0.2, 20)]
    assert leaves(deltas) == 120


def test_a_curve_that_crosses_back_at_the_end_has_not_left() -> None:
    assert leaves([*noisy(0.2, STEPS - 1), -0.2]) is None


def test_curves_that_never_differ_have_not_left() -> None:
    assert leaves([0.0] * STEPS) is None


@pytest.mark.parametrize(("last", "has_left"), [(0.2, True), (0.0005, False)])
def test_it_has_to_stay_apart_by_more_than_its_noise(last: float, has_left: bool) -> None:
    deltas = [-0.2] * 10 + [0.2] * 5 + [last + 0.0001 * (n % 2) for n in range(25)]
    assert (leaves(deltas) is not None) is has_left


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3.0], 3.0), ([1.0, 3.0], 2.0), ([1.0, 1.0, 9.0], 1.0), ([-9.0, 1.0, 2.0, 3.0], 2.0)],
)
def test_one_step_makes_no_level(values: list[float], expected: float) -> None:
    assert _usual(values) == pytest.approx(expected)
