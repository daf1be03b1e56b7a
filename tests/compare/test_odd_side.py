"""A tensor that ranks of one run hold differently: which operator of which run it is told of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.layouts.across_ranks import _of_odd  # pyright: ignore[reportPrivateUsage]

OPS = [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def judged(which: int, label: str = "", partners: dict[int, int] | None = None) -> Any:
    """What is told of operator 1 of a run whose ranks 2 and 3 differ."""
    sides = [SimpleNamespace(run=SimpleNamespace(ops=ops)) for ops in OPS]
    odd = SimpleNamespace(which=which, op=1, why="why", error=0.5, ranks=(2, 3), label=label)
    return _of_odd(SimpleNamespace(sides=sides), odd, partners or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("which", "partners", "left", "right", "wrong"),
    [
        (0, {}, "a1", "a1", "left"),
        (0, {1: 2}, "a1", "a1", "left"),
        (1, {1: 2}, "a2", "b1", "right"),  # beside its partner in the left run
        (1, {2: 1}, "b1", "b1", "right"),  # it has none
    ],
)
def test_it_is_that_of_the_run_whose_ranks_differ(
    which: int, partners: dict[int, int], left: str, right: str, wrong: str
) -> None:
    found = judged(which, partners=partners)
    assert (found.pair.left, found.pair.right, found.wrong) == (left, right, wrong)
    assert (found.error_out, found.ranks, found.why) == (0.5, (2, 3), "why")


@pytest.mark.parametrize(("label", "between"), [("output.0", "replica"), ("", "sum")])
def test_copies_differ_or_a_sum_is_none(label: str, between: str) -> None:
    assert judged(0, label).between == between
