"""Weights that products and sums read: told by being the same to the bit behind an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.facts import facts_of
from tests.compare.dumps import Entry
from tests.compare.test_judging import compared, numbers, single

LEVELS = [True, False]


def scaled_rows(other: int = -1, factor: float = 1.02, moved: tuple[int, ...] = ()) -> list[Entry]:
    """Rows that are normalised by hand and multiplied by a weight each, six times.

    Args:
        other: which weight is another one.
        factor: how many times.
        moved: weights that are off by rounding alone, as what was computed is.
    """
    x, w = numbers(12, 16), numbers(16, 16, seed=50)
    is_right = other >= 0 or bool(moved)
    entries: list[Entry] = []
    for n in range(6):
        weight = single(1 + 0.1 * numbers(16, seed=n))
        if n == other:
            weight = single(weight * factor)
        if n in moved:
            weight = single(weight * (1 + 2.0**-22))
        y = single(x @ w)
        if is_right:
            y = single(y * (1 + 1e-7 * numbers(12, 16, seed=90 + n)))
        entries.append((f"Torch.matmul.{n}.forward", (x, w), y))
        scale = single(y / np.sqrt((y * y).mean(-1, keepdims=True)))
        entries.append((f"Torch.tanh.{n}.forward", (y,), scale))
        x = single(scale * weight)
        entries.append((f"Tensor.__mul__.{n}.forward", (scale, weight), x))
    return entries


@pytest.mark.parametrize("tensors", LEVELS)
def test_another_weight_that_a_product_reads_is_a_fact(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, scaled_rows(), scaled_rows(other=4), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Tensor.__mul__.4.forward"
    assert found.first.parameter
    (fact,) = [fact for fact in facts_of(found) if fact.kind == "initial weights"]
    assert fact.compared == 6
    assert [item.name for item in fact.differing] == ["Tensor.__mul__.4.forward.input.1"]


def test_what_differs_by_rounding_was_computed(tmp_path: Path) -> None:
    """One of a kind that is off by rounding says that the kind is none of weights."""
    found = compared(tmp_path, scaled_rows(), scaled_rows(other=4, moved=(1,)))
    assert found.first is not None
    assert not found.first.parameter


@pytest.mark.parametrize(("count", "are_weights"), [(2, True), (3, False)])
def test_two_of_three_have_to_be_equal(tmp_path: Path, count: int, are_weights: bool) -> None:
    right = scaled_rows(other=5)
    for n in range(1, count):  # of six, so many are others
        name, (scale, weight), _ = right[3 * (5 - n) + 2]
        other = single(weight * 1.02)
        right[3 * (5 - n) + 2] = (name, (scale, other), single(scale * other))
    found = compared(tmp_path, scaled_rows(), right)
    assert found.first is not None
    assert found.first.parameter == are_weights


def test_where_nothing_differs_before_equal_inputs_prove_nothing(tmp_path: Path) -> None:
    left, right = scaled_rows(), scaled_rows()
    name, (scale, weight), _ = right[-1]
    other = single(weight * 1.02)
    right[-1] = (name, (scale, other), single(scale * other))
    found = compared(tmp_path, left, right)
    assert found.first is not None
    assert not found.first.parameter
