"""A function that one side alone puts between two calls, from both sides of each limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors.judging.inserted import chain_before, inserted_function
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op
from tests.compare.operators import run, tensor
from tests.compare.test_limits_of_causes import op, saved

UNIT = 2.0**-8
"""Roundoff of BFloat16: what the input is said to have been through."""
SIZE = 1 << 12
SAME = Measure(0.0, 1.0, 1.0, True, 0, 0, True)
"""Of what comes out of the function and what the other side reads: as near as can be."""


def turned(values: np.ndarray, angle: float, seed: int) -> np.ndarray:
    """The tensor turned towards one at right angles to it: as long, and ``angle`` off."""
    other = np.random.default_rng(seed).standard_normal(values.shape)
    other -= values * (other @ values) / (values @ values)
    other *= np.linalg.norm(values) / np.linalg.norm(other)
    return values * np.cos(angle) + other * np.sin(angle)


def inserted(
    folder: Path,
    effect: float = 0.0,
    entry: float = 0.0,
    *,
    types: Sequence[str] = ("Torch.tanh.0",),
    scale: float = 0.0,
    before: float = 0.0,
    is_made_up: bool = False,
    is_left: bool = True,
    measure: Measure = SAME,
) -> str:
    """What is said of calls of one side that turn an input by so much, or make it longer.

    Args:
        folder: of the tensors.
        effect: the angle between what goes in and what comes out.
        entry: the angle between what goes in and what the other side reads.
        types: of the calls, the last of which does it all.
        scale: how much longer they make it.
        before: the largest error before.
        is_made_up: whether the other side has such a call later.
        is_left: whose side they are on.
        measure: of what comes out and what the other side reads.
    """
    given = np.random.default_rng(1).standard_normal(SIZE)
    columns, others = Columns(), Columns()
    place = saved(columns, folder, given)
    calls: list[Op] = []
    for number, type_ in enumerate(types):
        is_last = number == len(types) - 1
        made = turned(given, effect, 2) * (1 + scale) if is_last else given
        result = saved(columns, folder, made)
        calls.append(op(number, type_, [place], [result]))
        place = result
    reader = op(len(calls), "Torch.softmax.0", [place], [])
    read = saved(others, folder, turned(given, entry, 3))
    other = op(0, "Torch.softmax.0", [read], [])
    own = 0 if is_left else 1
    sides: list[Any] = [run(columns, [*calls, reader]), run(others, [other])]
    made_by = {result: call for call in calls for result in call.outputs}
    makers: Any = SimpleNamespace(
        maker=lambda which, _, at: made_by.get(at) if which == own else None,
        has_call_after=lambda which, by, within: (
            is_made_up and (which, by, within) == (1 - own, other, 8)
        ),
    )
    ends = [(reader, place), (other, read)]
    if not is_left:
        sides, ends = sides[::-1], ends[::-1]
    (left, a), (right, b) = ends
    return inserted_function(
        (sides[0], sides[1]), makers, (left, right), (a, b), measure, before, UNIT
    )


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize(("units", "is_told"), [(3.9, False), (4.1, True)])
def test_rounding_moves_an_input_by_four_units(
    tmp_path: Path, units: float, is_told: bool, is_left: bool
) -> None:
    said = inserted(tmp_path, units * UNIT, is_left=is_left)
    assert bool(said) == is_told
    if is_told:
        side = "left" if is_left else "right"
        assert said.startswith(f" goes through Torch.tanh.0 on the {side} alone, which moves it by")


@pytest.mark.parametrize(("units", "is_told"), [(7.8, False), (8.2, True)])
def test_of_four_calls_it_is_twice_as_much(tmp_path: Path, units: float, is_told: bool) -> None:
    types = [f"Torch.tanh.{number}" for number in range(4)]
    said = inserted(tmp_path, units * UNIT, types=types)
    assert ("through Torch.tanh.0 to Torch.tanh.3 on" in said) == is_told


@pytest.mark.parametrize(("units", "is_told"), [(5.9, False), (6.1, True)])
def test_it_is_more_than_twice_what_goes_in_is_off_by(
    tmp_path: Path, units: float, is_told: bool
) -> None:
    assert bool(inserted(tmp_path, units * UNIT, 3 * UNIT)) == is_told


@pytest.mark.parametrize(
    ("entry", "before", "is_told"),
    [
        (7.9 * UNIT, 0.0, True),
        (8.1 * UNIT, 0.0, False),
        (0.079, 0.01, True),
        (0.081, 0.01, False),
    ],
)
def test_what_goes_in_agrees_up_to_eight_units_or_times_the_error_before(
    tmp_path: Path, entry: float, before: float, is_told: bool
) -> None:
    assert bool(inserted(tmp_path, 0.5, entry, before=before)) == is_told


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("types", "eighths", "is_told"),
    [
        (["Torch.tanh.0"], 0.95, False),
        (["Torch.tanh.0"], 1.05, True),
        ([f"Torch.tanh.{n}" for n in range(4)], 1.9, False),
        ([f"Torch.tanh.{n}" for n in range(4)], 2.1, True),
        (["Torch.mul.0"], 4.0, False),  # a bare factor may be rounded itself
        (["Torch.mul.0", "Torch.tanh.0"], 4.0, True),
    ],
)
def test_rounding_makes_an_input_longer_by_an_eighth_of_a_unit(
    tmp_path: Path, types: list[str], eighths: float, is_told: bool, sign: int
) -> None:
    said = inserted(tmp_path, types=types, scale=sign * eighths * UNIT / 8)
    assert ("longer: rounding does not" in said) == is_told


@pytest.mark.parametrize(
    ("units", "is_made_up", "is_told"),
    [(0.9, False, False), (1.1, False, True), (1.1, True, False)],
)
def test_a_change_of_a_unit_is_lacking_unless_the_other_side_makes_it_later(
    tmp_path: Path, units: float, is_made_up: bool, is_told: bool
) -> None:
    """What the other side reads is what goes in: all of the change is missing."""
    norm = float(np.linalg.norm(np.random.default_rng(1).standard_normal(SIZE)))
    apart = Measure(units * UNIT, norm, norm, False, 0, 0, True)
    said = inserted(tmp_path, units * UNIT, is_made_up=is_made_up, measure=apart)
    assert ("the other side lacks that change" in said) == is_told


@pytest.mark.parametrize("types", [["Tensor.view.0"], ["Torch.dropout.0"], []])
def test_views_and_random_calls_are_no_such_function(tmp_path: Path, types: list[str]) -> None:
    assert not inserted(tmp_path, 0.5, types=types)


@pytest.mark.parametrize(("length", "first"), [(7, 0), (8, 0), (9, 1)])
def test_eight_calls_are_followed_back(length: int, first: int) -> None:
    columns = Columns()
    places = [tensor(columns, "x", (4, 4)) for _ in range(length + 1)]
    calls = [op(n, f"Torch.tanh.{n}", [places[n]], [places[n + 1]]) for n in range(length)]
    reader = op(length, "Torch.cos.0", [places[-1]], [])
    made_by = dict(zip(places[1:], calls, strict=True))
    found, source = chain_before(
        run(columns, [*calls, reader]), lambda _, place: made_by.get(place), reader, places[-1]
    )
    assert found == calls[first:]
    assert source == places[first]


@pytest.mark.parametrize(
    ("shapes", "is_chain"),
    [([(4, 4)], True), ([(4, 4), (4,)], True), ([(2, 8), (4, 4)], False), ([(4,)], False)],
)
def test_a_call_with_two_tensors_of_that_size_has_another_history(
    shapes: list[tuple[int, ...]], is_chain: bool
) -> None:
    columns = Columns()
    given = [tensor(columns, "input", shape) for shape in shapes]
    number = tensor(columns, "index", (4, 4), "Int64")
    made = tensor(columns, "output.0", (4, 4))
    call = op(0, "Torch.tanh.0", [*given, number], [made])
    reader = op(1, "Torch.cos.0", [made], [])
    found, source = chain_before(
        run(columns, [call, reader]),
        lambda _, place: call if place == made else None,
        reader,
        made,
    )
    assert (found, source) == (([call], given[0]) if is_chain else ([], made))
