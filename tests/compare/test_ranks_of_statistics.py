"""MindSpore's own statistics of several ranks, without a graph: whose numbers differ is told."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.compare.executed import compared

HEAD = [
    "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size",
    "Data Type", "Shape", "Max Value", "Min Value", "Avg Value", "L2Norm Value",
]  # fmt: skip


def _row(call: tuple[str, int], io: str, slot: int, values: NDArray[np.float32]) -> list[str]:
    op, number = call
    shape = f"({','.join(map(str, values.shape))})"
    figures = (values.max(), values.min(), values.mean(), np.linalg.norm(values))
    return [
        op, f"Default_{op}-op{number}", "0", "0", str(number), io, str(slot), str(values.nbytes),
        "float32", shape, *(f"{figure:.6g}" for figure in figures),
    ]  # fmt: skip


def written(folder: Path, factor: float = 1.0) -> Path:
    """Two ranks of four products; the third one of rank 1 is scaled."""
    for rank in (0, 1):
        x = np.random.default_rng(rank).standard_normal((8, 16)).astype(np.float32)
        weights = np.random.default_rng(9)
        rows: list[list[str]] = []
        for number in range(4):
            w = (weights.standard_normal((16, 16)) / 4).astype(np.float32)
            y = x @ w * np.float32(factor if (rank, number) == (1, 2) else 1)
            call = "MatMul", number
            rows += [
                _row(call, "input", 0, x),
                _row(call, "input", 1, w),
                _row(call, "output", 0, y),
            ]
            x = y
        step = folder / f"rank_{rank}" / "Net" / "0" / "0"
        step.mkdir(parents=True)
        with (step / "statistic.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([HEAD, *rows])
    return folder


@pytest.mark.parametrize(("factor", "named"), [(1.0, None), (1.05, "Default_MatMul-op2")])
def test_the_rank_of_an_operator_that_is_off_is_told(
    tmp_path: Path, factor: float, named: str | None
) -> None:
    left, right = written(tmp_path / "left"), written(tmp_path / "right", factor)
    result = compared(left, right)
    first = result.first
    assert (first.pair.left.name if first else None) == named
    off = [unit.name for unit in result.units if unit.first is not None]
    assert off == ([] if named is None else ["rank 1, step 0"])
