"""Which of equal items MindSpore takes: the first one behind an unstable sort."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irtool.planning.propagation.unstable_sort import first_of_sorted


def test_up_to_sixteen_items_are_sorted_stably() -> None:
    assert first_of_sorted([]) == -1
    assert first_of_sorted([1.0] * 16) == 0
    assert first_of_sorted([2.0, 1.0, 1.0]) == 1


# what a C++ program says that was compiled with GCC: sort, then look at the first index
def test_more_items_that_are_equal_are_moved_about() -> None:
    firsts = {count: first_of_sorted([1.0] * count) for count in (17, 18, 20, 33, 84, 100)}
    assert firsts == {17: 8, 18: 9, 20: 10, 33: 25, 84: 52, 100: 62}


# fmt: off
OF_GCC = (
    3, 63, 54, 21, 57, 50, 141, 18, 41, 110, 34, 58, 100, 74, 34, 125, 40, 18, 62, 20, 85, 24,
    23, 81, 71, 15, 98, 43, 9, 62, 45, 138, 37, 33, 0, 73, 4, 23, 32, 18, 1, 33, 15, 71, 46,
    72, 59, 66, 16, 38, 73, 61, 8, 38, 64, 61, 60, 70, 100, 32, 45, 82, 89, 35, 39, 35, 37,
    67, 59, 94, 42, 117, 42, 93, 69, 51, 1, 82, 30, 76, 103, 73, 39, 28, 14, 47, 115, 98, 42,
    67, 41, 58, 99, 40, 23, 14, 37, 38, 30, 52, 128, 105, 33, 36, 1, 110, 95, 40, 39, 70, 113,
    34, 10, 31, 1, 109, 61, 112, 47, 1,
)
# fmt: on
"""What the same program says first of drawn lists: of 17 to 200 items, of up to six costs."""


def test_what_stands_first_is_what_gcc_leaves_there() -> None:
    state = 12345

    def drawn() -> int:
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return state >> 16

    firsts: list[int] = []
    for _ in OF_GCC:
        count, kinds = 17 + drawn() % 184, 1 + drawn() % 6
        firsts.append(first_of_sorted([float(drawn() % kinds) for _ in range(count)]))
    assert tuple(firsts) == OF_GCC


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_it_is_always_one_of_the_least(numbers: list[int]) -> None:
    costs = [float(number) for number in numbers]
    assert costs[first_of_sorted(costs)] == min(costs)
