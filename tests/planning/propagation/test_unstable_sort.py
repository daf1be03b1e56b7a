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


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_it_is_always_one_of_the_least(numbers: list[int]) -> None:
    costs = [float(number) for number in numbers]
    assert costs[first_of_sorted(costs)] == min(costs)
