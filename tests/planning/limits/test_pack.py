"""Which operators run again: what is cheapest by the byte, and nothing that is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.planning.limits.modes import Choice, Modes, choice_of
from irtool.planning.limits.pack import packed, smallest

Mode = tuple[float, float, float]
"""Seconds, bytes held, bytes made anew."""

CONSTANT, CONSTANT_BYTES = 7.0, 11.0
MODEL: Any = SimpleNamespace(constant=CONSTANT, constant_memory=CONSTANT_BYTES, links=(), equal=())


class Layers:
    """Operators in layers, of which the largest is held while it is made anew."""

    def __init__(self, names: Sequence[str], operators: Sequence[Sequence[Mode]]) -> None:
        self.names, self.operators = names, operators

    def above(self, choices: Sequence[int], modes: Sequence[int]) -> float:
        sums: dict[str, float] = {}
        for name, rows, mode in zip(self.names, self.operators, modes, strict=True):
            sums[name] = sums.get(name, 0.0) + rows[mode][2]
        return max(sums.values())

    def made(self, variable: int, choice: int, mode: int) -> float:
        return self.operators[variable][mode][2]

    def layer(self, variable: int) -> str:
        return self.names[variable]

    def share(self, variable: int) -> float:
        return 0.0


def modes_of(operators: Sequence[Sequence[Mode]]) -> list[Modes]:
    return [
        Modes(
            tuple(np.array([seconds]) for seconds, _, _ in rows),
            tuple(np.array([held]) for _, held, _ in rows),
        )
        for rows in operators
    ]


def taken(names: str, operators: Sequence[Sequence[Mode]], room: float) -> tuple[int, ...] | None:
    """The modes that are taken under a limit that leaves so much beside the constant bytes."""
    modes, layers = modes_of(operators), Layers(names, operators)
    start = choice_of(MODEL, modes, [0] * len(operators), [0] * len(operators))
    found = packed(MODEL, modes, layers, start, room + CONSTANT_BYTES)
    return None if found is None else found.modes


A: list[Mode] = [(0.0, 10.0, 0.0), (1.0, 0.0, 0.0)]
B: list[Mode] = [(0.0, 10.0, 0.0), (3.0, 0.0, 0.0)]
C: list[Mode] = [(0.0, 20.0, 0.0), (3.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (40, (0, 0, 0)),
        (39, (1, 0, 0)),  # a tenth of a second for a byte
        (30, (1, 0, 0)),
        (29, (0, 0, 1)),  # 10 of A are too few, 20 of C enough: A is not needed then
        (20, (0, 0, 1)),
        (19, (1, 0, 1)),
        (10, (1, 0, 1)),
        (9, (1, 1, 1)),
        (0, (1, 1, 1)),
        (-1, None),
    ],
)
def test_the_cheapest_bytes_are_freed_first(room: float, expected: tuple[int, ...] | None) -> None:
    assert taken("xyz", [A, B, C], room) == expected


def test_the_largest_layer_is_held_while_it_is_made_anew() -> None:
    """Two in one layer free nothing together; one of each layer does."""
    rows: list[Mode] = [(0.0, 100.0, 0.0), (1.0, 0.0, 100.0)]
    found = taken("aab", [rows, rows, rows], 200)
    assert found is not None
    assert sum(found) == 2
    assert found[2] == 1


def test_a_choice_starts_with_the_fastest_modes_of_those_the_smallest() -> None:
    rows: list[Mode] = [(2.0, 0.0, 0.0), (1.0, 30.0, 0.0), (1.0, 20.0, 0.0)]
    assert taken("a", [rows], 30) == (2,)
    assert taken("a", [rows], 19) == (0,)


def test_what_cannot_be_done_is_not_taken() -> None:
    rows: list[Mode] = [(0.0, 10.0, 0.0), (inf, 0.0, 0.0), (5.0, 5.0, 0.0)]
    assert taken("a", [rows], 5) == (2,)
    assert taken("a", [rows], 4) is None


def test_a_choice_says_what_it_takes_with_what_is_constant() -> None:
    modes = modes_of([A, C])
    found = choice_of(MODEL, modes, (0, 0), (1, 0), 0.5)
    assert found == Choice((0, 0), (1, 0), CONSTANT + 1.0, CONSTANT_BYTES + 20.0, 0.5)
    link = SimpleNamespace(source=0, target=1, table=SimpleNamespace(values=np.array([[4.0]])))
    equal = SimpleNamespace(variables=(0, 1), values=np.array([[0.25]]))
    model: Any = SimpleNamespace(
        constant=CONSTANT, constant_memory=CONSTANT_BYTES, links=(link,), equal=(equal,)
    )
    assert choice_of(model, modes, (0, 0), (1, 0)).seconds == CONSTANT + 1.0 + 4.0 + 0.25


def test_the_smallest_frees_all_that_is_not_made_anew_in_one_layer() -> None:
    rows: list[Mode] = [(0.0, 100.0, 0.0), (1.0, 0.0, 60.0)]
    modes, layers = modes_of([rows, rows, rows]), Layers("aab", [rows] * 3)
    start = choice_of(MODEL, modes, (0, 0, 0), (0, 0, 0))
    found = smallest(MODEL, modes, layers, start)
    # all three: nothing is held, 120 made anew; one of each layer: 100 held, 60 made anew
    assert found.modes == (1, 1, 1)


def test_a_price_of_bytes_chooses_a_mode() -> None:
    modes = Modes(
        (np.array([1.0, 5.0]), np.array([2.0, 5.0])), (np.array([9.0, 4.0]), np.array([3.0, 3.0]))
    )
    assert list(modes.priced(0.0)) == [1.0, 5.0]
    assert list(modes.priced(1.0)) == [5.0, 8.0]
    assert (modes.chosen(0, 0.0), modes.chosen(0, 0.16), modes.chosen(0, 0.17)) == (0, 0, 1)
    assert modes.chosen(1, 0.0) == 1  # as fast, and smaller


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, list[list[Mode]], float]:
    count = draw(st.integers(1, 5))
    small = st.integers(0, 20).map(float)
    operators = [
        [(0.0, held + draw(small), 0.0), (draw(small) + 1, held, draw(small))]
        for held in [draw(small) for _ in range(count)]
    ]
    names = "".join(draw(st.sampled_from("ab")) for _ in range(count))
    return names, operators, float(draw(st.integers(0, 120)))


@given(networks())
@settings(max_examples=150, deadline=None)
def test_what_is_packed_fits_and_is_near_the_best(
    case: tuple[str, list[list[Mode]], float],
) -> None:
    names, operators, room = case
    layers = Layers(names, operators)

    def bytes_of(picked: Sequence[int]) -> float:
        held = sum(rows[mode][1] for rows, mode in zip(operators, picked, strict=True))
        return held + layers.above((), picked)

    def seconds_of(picked: Sequence[int]) -> float:
        return sum(rows[mode][0] for rows, mode in zip(operators, picked, strict=True))

    found = taken(names, operators, room)
    every = list(product(*(range(len(rows)) for rows in operators)))
    fitting = [seconds_of(picked) for picked in every if bytes_of(picked) <= room]
    if found is None:
        # Everything in its fastest mode is among what is tried.
        assert bytes_of([0] * len(operators)) > room
        return
    assert bytes_of(found) <= room
    assert seconds_of(found) >= min(fitting)
    if bytes_of([0] * len(operators)) <= room:
        assert found == (0,) * len(operators)
    elif not any(made for rows in operators for _, _, made in rows):
        for at, mode in enumerate(found):
            back = [*found[:at], 0, *found[at + 1 :]]
            assert mode == 0 or bytes_of(back) > room
