"""An accused tensor that is a multiple of the other side's is said to be one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from irtool.report.diff.runs.sentences import why_text
from tests.compare.dumps import Entry
from tests.compare.test_judging import compared, numbers, single

X, W = numbers(12, 16), numbers(16, 16, seed=1)


def step(factor: float = 1.0, noise: float = 0.0) -> list[Entry]:
    """Two products, their gradients; the second product's and those behind it are multiples."""
    y = single(X @ W.T)
    z = single(np.tanh(y))
    other = 1 + noise * numbers(12, 16, seed=7)
    g = single(factor * numbers(12, 16, seed=2) * other)
    middle = single(g * (1 - z * z))
    return [
        ("Functional.linear.0.forward", (X, W), y),
        ("Torch.tanh.0.forward", (y,), z),
        ("Torch.sum.0.forward", (z,), single(np.asarray(z.sum()))),
        ("Torch.sum.0.backward", (single(np.asarray(1.0)),), g),
        ("Torch.tanh.0.backward", (g,), middle),
        ("Functional.linear.0.backward", (middle,), (single(middle @ W), single(middle.T @ X))),
    ]


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("factor", [0.5, 2.0, 0.75])
def test_a_mean_for_a_sum_is_told_as_a_factor(tmp_path: Path, factor: float, tensors: bool) -> None:
    found = compared(tmp_path, step(), step(factor), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Torch.sum.0.backward"
    assert math.isclose(found.first.multiple, factor, rel_tol=1e-6)
    assert f"{factor:g} times the left one, as are 4 of 4 gradients" in why_text(found.first)


@pytest.mark.parametrize(("factor", "is_told"), [(1.009, False), (1.012, True)])
def test_from_a_hundredth_on(tmp_path: Path, factor: float, is_told: bool) -> None:
    found = compared(tmp_path, step(), step(factor))
    assert found.first is not None
    assert math.isnan(found.first.multiple) is not is_told


def test_what_is_no_multiple_is_not_called_one(tmp_path: Path) -> None:
    found = compared(tmp_path, step(), step(0.5, noise=1e-3))
    assert found.first is not None
    assert math.isnan(found.first.multiple)
