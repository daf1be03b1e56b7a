"""What neighbours exchange of split images: sizes against windows that are laid one by one."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from irtool.operators.functions.halo import exchanged, used_padding


def reached_behind(size: int, kernel: int, stride: int, before: int, after: int) -> int:
    """How many rows of the padding behind the image are in some window."""
    begins = range(-before, size + after - kernel + 1, stride)
    last = max(begin + kernel for begin in begins)
    return last - size


def test_the_padding_that_counts_is_what_windows_reach() -> None:
    cases = 0
    for size, kernel, stride, before, after in product(
        range(4, 12), range(1, 5), range(1, 5), range(3), range(3)
    ):
        reached = reached_behind(size, kernel, stride, before, after)
        wanted = reached if reached >= 0 else after  # rows of the image itself are left over
        assert used_padding(size, kernel, stride, before, after) == wanted
        cases += 1
    assert cases == 1152


Sides = dict[int, tuple[int, int]]


def cells_around(own: tuple[int, ...], rows: Sides) -> int:
    """Cells of a slice's surroundings, corners included, counted one by one."""
    ranges = [
        range(-rows.get(axis, (0, 0))[0], size + rows.get(axis, (0, 0))[1])
        for axis, size in enumerate(own)
    ]
    return sum(
        any(not 0 <= place < size for place, size in zip(cell, own, strict=True))
        for cell in product(*ranges)
    )


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        ({2: (1, 0)}, {2: (1, 0)}),
        ({2: (1, 1)}, {2: (0, 1)}),
        ({2: (0, 0)}, {2: (2, 1)}),  # what is sent alone counts, too
        ({2: (1, 1), 3: (1, 0)}, {2: (1, 1), 3: (0, 1)}),
        ({2: (2, 1), 3: (0, 0)}, {2: (0, 0), 3: (1, 2)}),
        ({3: (1, 1)}, {}),
    ],
)
def test_what_is_exchanged_is_the_larger_of_both_surroundings(received: Sides, sent: Sides) -> None:
    own = (2, 3, 4, 5)
    counted = max(cells_around(own, received), cells_around(own, sent))
    assert exchanged(own, received, sent) == (counted,)
    assert counted < prod(own)


def test_what_is_exchanged_of_an_unknown_size_is_not_known() -> None:
    assert exchanged((-1, 3, 4, 5), {2: (1, 1)}, {2: (1, 1)}) is None
