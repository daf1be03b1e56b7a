"""Elimination: the least sum is the least sum, and what is divided is still a bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.planning.search.exact import Memo, Table, solve, value_of


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[np.ndarray], list[Table]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    unary = [rng.integers(0, 50, size).astype(float) for size in sizes]
    pairs: list[Table] = []
    for first in range(len(sizes)):
        for second in range(first + 1, len(sizes)):
            if draw(st.booleans()):
                values = rng.integers(0, 50, (sizes[first], sizes[second])).astype(float)
                pairs.append(Table((first, second), values))
    return sizes, unary, pairs


def by_trying(sizes: list[int], unary: list[np.ndarray], pairs: list[Table]) -> float:
    return min(value_of(choices, unary, pairs) for choices in product(*(range(n) for n in sizes)))


@given(problems())
@settings(max_examples=80, deadline=None)
def test_the_solution_is_the_least_of_all(
    problem: tuple[list[int], list[np.ndarray], list[Table]],
) -> None:
    sizes, unary, pairs = problem
    found = solve(sizes, unary, pairs)
    assert found.value == by_trying(sizes, unary, pairs)
    assert found.is_optimal


@given(problems())
@settings(max_examples=80, deadline=None)
def test_divided_tables_give_a_bound_below_and_a_choice_above(
    problem: tuple[list[int], list[np.ndarray], list[Table]],
) -> None:
    sizes, unary, pairs = problem
    found = solve(sizes, unary, pairs, most=4)
    least = by_trying(sizes, unary, pairs)
    assert found.bound <= least + 1e-9
    assert found.value >= least - 1e-9


def test_tables_that_are_the_same_objects_are_not_eliminated_again() -> None:
    """A second call with the same tables, and equal parts of one call, find their results."""
    link = np.array([[0.0, 3.0], [2.0, 1.0]])
    own = np.array([1.0, 1.5])
    memo = Memo()
    star = [Table((0, leaf), link) for leaf in range(1, 20)]
    solve([2] * 20, [own] * 20, star, memo)
    first = len(memo.results)
    assert first < 5
    solve([2] * 20, [own] * 20, star, memo)
    assert len(memo.results) == first


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_what_is_kept_for_later_calls_is_bounded(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irtool.planning.search.exact.MOST_KEPT", most)
    memo, own = Memo(), np.array([1.0, 2.0])
    pair = [Table((0, 1), np.array([[0.0, 5.0], [1.0, 0.0]]))]
    first = solve([2, 2], [own, own], pair, memo)
    kept = set(memo.results)
    assert kept
    other = solve([2, 2], [own, np.array([9.0, 0.0])], pair, memo)
    assert (kept <= set(memo.results)) == (most > 0)
    assert (first.value, other.value) == (2.0, 2.0)
