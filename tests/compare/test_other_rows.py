"""An expert that gets fewer rows is named, not what reads its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.case import case_of
from irtool.compare.tensors.comparison import TensorComparison
from tests.compare.dumps import Entry
from tests.compare.test_judging import compared, numbers

X, WEIGHT = numbers(12, 6), numbers(6, 6, seed=1)


def expert(rows: int, width: int = 6, between: bool = False) -> list[Entry]:
    """So many rows go through an expert, and are added to where they belong."""
    given = X[:rows]
    made = given @ WEIGHT[:, :width]
    calls: list[Entry] = [
        ("Torch.where.0.forward", [X > 0], [np.arange(12), np.arange(12)]),
        ("Torch.matmul.0.forward", [given, WEIGHT[:, :width]], made),
        ("Functional.silu.0.forward", [made], np.tanh(made)),
    ]
    if between:
        calls.append(("Torch.exp.0.forward", [X], np.exp(X)))
    total = np.zeros((12, width), np.float32)
    total[:rows] += np.tanh(made)
    zeros = np.zeros_like(total)
    calls.append(("Tensor.index_add_.0.forward", [zeros, 0, np.arange(rows), np.tanh(made)], total))
    return calls


def found(tmp_path: Path, left: list[Entry], right: list[Entry], values: bool) -> TensorComparison:
    return compared(tmp_path, left, right, values)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(("rows", "is_accused"), [(5, True), (12, False)])
def test_the_first_call_with_other_rows_is_named(
    rows: int, is_accused: bool, values: bool, tmp_path: Path
) -> None:
    comparison = found(tmp_path, expert(12), expert(rows), values)
    first = comparison.first
    assert (first is not None) is is_accused
    if first is not None:
        assert first.pair.left.name == "Torch.matmul.0.forward"
        assert first.gets_other_rows
        assert "another number of rows, as has 1 call behind it" in first.why
        assert "capacity" in case_of(comparison, first).advice[0]


def test_a_call_that_has_a_partner_between_leaves_it_open(tmp_path: Path) -> None:
    first = found(tmp_path, expert(12, between=True), expert(5, between=True), True).first
    assert first is not None
    assert first.pair.left.name == "Tensor.index_add_.0.forward"


def test_other_widths_are_no_rows(tmp_path: Path) -> None:
    first = found(tmp_path, expert(12), expert(5, width=3), True).first
    assert first is None or not first.gets_other_rows
