"""Of several ranks the one is shown where the first cause lies."""

from __future__ import annotations

import pytest

from irtool.compare.runs.units import UnitResult, shown_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots

FAULT = Op(0, "op", "op", "forward", (), ())


def unit(name: str, cause: tuple[int, ...]) -> UnitResult:
    """A unit whose first fault is there: step, collectives before, whether it is one, place."""
    first = Judged(OpPair(FAULT, FAULT, "order"), Slots((), ())) if cause else None
    return UnitResult(name, {}, 1, 0, 0, first, False, (None, None), cause=cause)


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ((0, 0, False, 2), "rank 1"),  # before the collective
        ((0, 0, True, 9), "rank 0"),  # the same collective: the lower place
        ((0, 1, False, 2), "rank 0"),  # after it
        ((1, 0, False, 2), "rank 0"),  # in a later step
        ((), "rank 0"),
    ],
)
def test_an_operator_before_a_collective_comes_before_it(
    other: tuple[int, ...], shown: str
) -> None:
    chosen = shown_unit([unit("rank 0", (0, 0, True, 7)), unit("rank 1", other)])
    assert chosen is not None
    assert chosen.name == shown


def test_without_faults_the_first_one_is_shown() -> None:
    chosen = shown_unit([unit("rank 0", ()), unit("rank 1", ())])
    assert chosen is not None
    assert chosen.name == "rank 0"
    assert shown_unit([]) is None
