"""Operators of one weight want it in one layout, and one that all of them can have."""

from __future__ import annotations

import math

import pytest

from irtool.planning.search.shared_weights import alike_of

FIRST, SECOND = ["rows", "columns", "whole"], ["columns", "rows", "corners", "corners"]
"""What tells the candidates of two operators."""


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([0, 1], True),
        ([1, 0], True),
        ([0, 0], False),
        ([2, 0], False),
        ([2, 2], False),  # neither can be had by both, which is not the same one
        ([0, 2], False),
    ],
)
def test_operators_agree_on_what_both_can_have(choices: list[int], expected: bool) -> None:
    shared = alike_of([(0, FIRST), (1, SECOND)])
    assert shared.agrees(choices) == expected
    fits = [table[choice] for table, choice in zip(shared.values, choices, strict=True)]
    assert bool((fits[0] + fits[1]).min() == 0) == expected  # the tables say the same


def test_variables_need_not_be_numbered_by_their_place() -> None:
    shared = alike_of([(2, FIRST), (0, SECOND)])
    assert shared.agrees([1, 99, 0])
    assert not shared.agrees([0, 99, 0])


def test_tables_are_as_wide_as_there_are_common_layouts() -> None:
    shared = alike_of([(0, FIRST), (1, SECOND)])
    assert shared.count == 2
    assert [table.shape for table in shared.values] == [(3, 2), (4, 2)]
    assert shared.values[0].tolist() == [[0, math.inf], [math.inf, 0], [math.inf, math.inf]]
    nothing = alike_of([(0, ["a"]), (1, ["b"])])
    assert nothing.count == 1
    assert all((table == math.inf).all() for table in nothing.values)
