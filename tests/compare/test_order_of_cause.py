"""Backward calls that lie amid forward ones hold later values: they count behind these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.comparison import compare_tensors
from irtool.compare.tensors.pairing.cause import order_of_cause
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import numbers, unit

X = numbers(8, 6)
WEIGHT, OTHER = numbers(6, 6, seed=1), numbers(6, 6, seed=2)


def linear(place: int, weight: np.ndarray = WEIGHT) -> Entry:
    return f"Functional.linear.{place}.forward", [X, weight], X @ weight.T


def gradient(place: int, factor: float = 1.0) -> Entry:
    x = np.float32(factor) * X
    return f"Functional.linear.{place}.backward", [x], x @ WEIGHT


def times(place: int, factor: float) -> Entry:
    return f"Tensor.__rmul__.{place}.forward", [X, factor], np.float32(factor) * X


def order(tmp_path: Path, entries: Sequence[Entry]) -> list[str]:
    run = unit(msprobe(tmp_path / "run", entries))
    moved = order_of_cause(run)
    ops = sorted(run.ops, key=lambda op: moved.get(op.index, op.index))
    return [op.name.removeprefix("Functional.").removeprefix("Tensor.") for op in ops]


def test_the_penalty_that_is_another_one_is_named_and_not_its_gradient(tmp_path: Path) -> None:
    sides = [
        unit(msprobe(tmp_path / name, [
            linear(0), gradient(0, factor), ("Tensor.norm.0.forward", [X], np.float32([2.0])),
            times(0, factor), ("Tensor.__rmul__.0.backward", [X], np.float32(factor) * X),
        ], tensors=True))
        for name, factor in (("a", 10.0), ("b", 8.0))
    ]  # fmt: skip
    first = compare_tensors(*sides).first
    assert first is not None
    assert first.pair.left.name == "Tensor.__rmul__.0.forward"


def test_backward_calls_keep_their_order_behind_all_forward_ones(tmp_path: Path) -> None:
    entries = [linear(0), gradient(0), linear(1), gradient(2), gradient(1), linear(2), gradient(3)]
    assert order(tmp_path, entries) == [
        "linear.0.forward", "linear.1.forward", "linear.2.forward",
        "linear.0.backward", "linear.2.backward", "linear.1.backward", "linear.3.backward",
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["another weight", "a call of an optimizer", "a write in place"])
def test_an_optimizer_between_keeps_them_where_they_are(by: str, tmp_path: Path) -> None:
    """What it updates is made of the gradients before it."""
    update: dict[str, Entry] = {
        "another weight": linear(1, OTHER),
        "a call of an optimizer": ("Optimizer.adam.0.forward", [OTHER], OTHER),
        "a write in place": ("Tensor.addcdiv_.0.forward", [WEIGHT, X, X], OTHER),
    }
    entries = [linear(0), gradient(0), update[by], gradient(1), linear(2), gradient(3)]
    names = order(tmp_path, entries)
    assert names[1] == "linear.0.backward"
    assert names[3:] == ["linear.2.forward", "linear.1.backward", "linear.3.backward"]


def test_a_run_of_one_backward_pass_stays_as_it_is(tmp_path: Path) -> None:
    run = unit(msprobe(tmp_path / "run", [linear(0), linear(1), gradient(1), gradient(0)]))
    assert order_of_cause(run) == {}
