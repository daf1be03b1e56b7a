"""Three operands that broadcast against one another: those that are whole along an axis agree."""

from __future__ import annotations

from itertools import permutations

import pytest

from irtool.operators.layout import Shape
from tests.sharding.calls import call, judged, reason

BROADCAST, FULL = [1, 4], [8, 4]


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize(
    ("splits", "is_legal"),
    [
        (((1, 1), (2, 1), (2, 1)), True),
        (((1, 1), (1, 1), (1, 1)), True),
        (((1, 1), (1, 1), (2, 1)), False),
        (((1, 1), (2, 1), (4, 1)), False),
        (((1, 2), (2, 2), (2, 2)), True),
        (((1, 1), (2, 2), (2, 2)), False),
    ],
)
def test_operands_of_full_size_agree_whatever_their_order(
    order: tuple[int, ...], splits: tuple[Shape, ...], is_legal: bool
) -> None:
    """The first operand has one row, which is broadcast; the others have all eight."""
    shapes = [[BROADCAST, FULL, FULL][place] for place in order]
    found = judged(call("Lerp", *shapes, out=FULL), tuple(splits[place] for place in order))
    assert found.verdict == ("legal" if is_legal else "illegal")
    if not is_legal:
        assert reason(found)[0] == "axis-mismatch"
    else:
        assert found.output_slices[0] == (8 // splits[1][0], 4 // splits[1][1])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_two_of_one_row_leave_the_third_free(order: tuple[int, ...]) -> None:
    shapes = [[BROADCAST, BROADCAST, FULL][place] for place in order]
    splits = [((1, 1), (1, 1), (4, 1))[place] for place in order]
    found = judged(call("Lerp", *shapes, out=FULL), tuple(splits))
    assert found.verdict == "legal"
    assert found.output_slices == ((2, 4),)
