"""What neighbours exchange of split images: sizes against windows that are laid one by one."""

from __future__ import annotations

from itertools import product

from irtool.operators.functions.halo import used_padding


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
