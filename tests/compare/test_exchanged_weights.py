"""Weights of one shape that took each other's values, and calls that run in another order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

WIDTH, ROWS = 6, 5
Numbers = Any


class Calls:
    """Calls in the order in which they are made, numbered by function as msprobe does."""

    def __init__(self) -> None:
        self.made: list[Entry] = []

    def call(self, name: str, given: Sequence[Numbers], result: Numbers) -> Numbers:
        count = sum(entry[0].startswith(f"{name}.") for entry in self.made)
        result = np.asarray(result, np.float32)
        self.made.append((f"{name}.{count}.forward", list(given), result))
        return result

    def linear(self, x: Numbers, weight: Numbers) -> Numbers:
        return self.call("Functional.linear", [x, weight], x @ weight.T)


def weights(count: int = 12) -> list[Numbers]:
    draw = np.random.default_rng(4)
    return [(draw.normal(size=(WIDTH, WIDTH)) / 3).astype(np.float32) for _ in range(count)]


def data(seed: int = 5) -> Numbers:
    return np.random.default_rng(seed).normal(size=(ROWS, WIDTH)).astype(np.float32)


def softmax(x: Numbers) -> Numbers:
    power = np.exp(x)
    return power / power.sum(-1, keepdims=True)


def attending(given: Sequence[Numbers], order: str = "qkv") -> list[Entry]:
    """Layers of a query, a key and a value, which are made in some order."""
    calls, x = Calls(), data()
    for layer in range(len(given) // 4):
        of = dict(zip("qkv", given[4 * layer :], strict=False))
        made = {which: calls.linear(x, of[which]) for which in order}
        scores = calls.call("Torch.matmul", [made["q"], made["k"].T], made["q"] @ made["k"].T)
        shares = calls.call("Torch.softmax", [scores], softmax(scores))
        y = calls.call("Torch.matmul", [shares, made["v"]], shares @ made["v"])
        y = calls.linear(y, given[4 * layer + 3])
        x = calls.call("Tensor.__add__", [x, y], x + y)
    return calls.made


def branches(given: Sequence[Numbers], order: Sequence[int] = (0, 1)) -> list[Entry]:
    """Two branches of two layers, of other data each, of which either may run first."""
    calls = Calls()
    ends: dict[int, Numbers] = {}
    for branch in order:
        x = data(5 + branch)
        for weight in given[2 * branch : 2 * branch + 2]:
            x = calls.call("Torch.tanh", [y := calls.linear(x, weight)], np.tanh(y))
        ends[branch] = x
    calls.call("Tensor.__add__", [ends[0], ends[1]], ends[0] + ends[1])
    return calls.made


def compared(
    folder: Path, left: list[Entry], right: list[Entry], *, tensors: bool = True
) -> RunComparison:
    paths = [
        msprobe(folder / "left", left, tensors=tensors),
        msprobe(folder / "right", right, tensors=tensors),
    ]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def told(found: RunComparison) -> tuple[str, str]:
    row = next(row for row in found.hyperparameters if row.name == "initial weights")
    return row.right, row.where


def moved(given: Sequence[Numbers], *places: int) -> list[Numbers]:
    """The weights of some places each in the one before."""
    values = list(given)
    for place, other in zip(places, (*places[1:], places[0]), strict=True):
        values[place] = given[other]
    return values


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(
    ("places", "count", "which"),
    [
        ((0, 4), 2, "linear.0.forward.input.1: exchanged with Functional.linear.4."),
        ((3, 11), 2, "linear.3.forward.input.1: exchanged with Functional.linear.11."),
        ((0, 4, 8), 3, "linear.0.forward.input.1: the right one holds what Functional.linear.4."),
        ((0, 1), 2, "linear.0.forward.input.1: exchanged with Functional.linear.1."),
        ((1, 2), 2, "linear.1.forward.input.1: exchanged with Functional.linear.2."),
        ((4, 6), 2, "linear.4.forward.input.1: exchanged with Functional.linear.6."),
        ((6, 7), 2, "linear.6.forward.input.1: exchanged with Functional.linear.7."),
    ],
)
def test_weights_that_changed_places_are_told_and_their_first_call_is_named(
    tmp_path: Path, places: tuple[int, ...], count: int, which: str, tensors: bool
) -> None:
    given = weights()
    found = compared(tmp_path, attending(given), attending(moved(given, *places)), tensors=tensors)
    text, where = told(found)
    assert text == f"{count} of 12 differ"
    assert which in where
    assert found.first is not None
    assert found.first.parameter
    assert found.first.pair.left.name == f"Functional.linear.{min(places)}.forward"


@pytest.mark.parametrize("tensors", [True, False])
def test_whole_layers_that_changed_places_are_told_from_the_first_call_on(
    tmp_path: Path, tensors: bool
) -> None:
    given = weights()
    right = [*given[4:8], *given[:4], *given[8:]]
    found = compared(tmp_path, attending(given), attending(right), tensors=tensors)
    assert told(found)[0] == "8 of 12 differ"
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.linear.0.forward"


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("order", ["qvk", "vkq", "kqv"])
def test_calls_of_one_layer_in_another_order_are_nothing_to_see(
    tmp_path: Path, order: str, tensors: bool
) -> None:
    given = weights()
    found = compared(tmp_path, attending(given), attending(given, order), tensors=tensors)
    word = "equal" if tensors else "equal extremes, means and norms"
    assert told(found)[0] == f"{word} (12 compared)"
    assert not found.is_suspicious


@pytest.mark.parametrize("tensors", [True, False])
def test_branches_in_another_order_are_nothing_to_see(tmp_path: Path, tensors: bool) -> None:
    given = weights()
    found = compared(tmp_path, branches(given), branches(given, (1, 0)), tensors=tensors)
    assert not found.is_suspicious


def test_weights_of_branches_that_changed_places_are_told(tmp_path: Path) -> None:
    given = weights()
    found = compared(tmp_path, branches(given), branches(moved(given, 0, 2)))
    assert "exchanged with" in told(found)[1]
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.linear.0.forward"
