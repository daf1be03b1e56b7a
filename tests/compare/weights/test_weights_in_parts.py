"""Weights that one side reads in parts, known by figures alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

WIDTH = 64
Numbers = Any
DRAW = np.random.default_rng(11)


def matrix(rows: int) -> Numbers:
    return (DRAW.normal(size=(rows, WIDTH)) / 8).astype(np.float32)


X = matrix(5)
WEIGHTS = [matrix(WIDTH), matrix(2 * WIDTH), matrix(WIDTH), matrix(2 * WIDTH)]


def products(weights: list[Numbers], halves: bool) -> list[Entry]:
    """Products of the same data, in two halves of what they add over where it is asked for."""
    made: list[Entry] = []
    for n, weight in enumerate(weights):
        whole = (X @ weight.T).astype(np.float32)
        if not halves:
            made.append((f"Functional.linear.{n}.forward", [X, weight], whole))
            continue
        cut = WIDTH // 2
        parts = [
            (X[:, :cut], weight[:, :cut].copy()), (X[:, cut:], weight[:, cut:].copy())
        ]  # fmt: skip
        sums = [(x.copy() @ part.T).astype(np.float32) for x, part in parts]
        for k, ((x, part), result) in enumerate(zip(parts, sums, strict=True)):
            made.append((f"Functional.linear.{2 * n + k}.forward", [x.copy(), part], result))
        made.append((f"Tensor.__add__.{n}.forward", sums, (sums[0] + sums[1]).astype(np.float32)))
    return made


def compared(folder: Path, right: list[Numbers], *, tensors: bool) -> RunComparison:
    paths = [
        msprobe(folder / "left", products(WEIGHTS, False), tensors=tensors),
        msprobe(folder / "right", products(right, True), tensors=tensors),
    ]
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def told(found: RunComparison) -> str:
    return next(row.right for row in found.hyperparameters if row.name == "initial weights")


@pytest.mark.parametrize("tensors", [True, False])
def test_halves_of_weights_are_those_that_make_up_a_whole(tmp_path: Path, tensors: bool) -> None:
    """Of figures any weights are near each other: halves of one are no part of the next one."""
    found = compared(tmp_path, WEIGHTS, tensors=tensors)
    word = "equal" if tensors else "equal extremes, means and norms"
    assert told(found).startswith(f"{word} (")
    assert not found.told_differently


@pytest.mark.parametrize("tensors", [True, False])
def test_halves_of_a_weight_that_differs_are_told(tmp_path: Path, tensors: bool) -> None:
    other = list(WEIGHTS)
    other[1] = (other[1] * np.float32(1.02)).astype(np.float32)
    found = compared(tmp_path, other, tensors=tensors)
    assert "differ" in told(found)
