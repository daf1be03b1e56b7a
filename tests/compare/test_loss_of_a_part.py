"""A loss curve that one data parallel rank wrote, beside one of the whole batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.layouts.declared import SideLayout
from irtool.compare.losses.series import LossRun, series
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import sentences
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry
from tests.compare.test_declared_layouts import ONE, written

DRAW = np.random.default_rng(3)
ROWS, TARGET = (DRAW.normal(size=(8, 6)).astype(np.float32) for _ in range(2))
WEIGHT = DRAW.normal(size=(6, 6)).astype(np.float32)


def entries(part: slice) -> tuple[list[Entry], float]:
    """A product and its loss on some rows."""
    made = ROWS[part] @ WEIGHT.T
    loss = np.asarray(((made - TARGET[part]) ** 2).mean(), np.float32)
    return [
        ("Functional.linear.0.forward", (ROWS[part], WEIGHT), made),
        ("Functional.mse_loss.0.forward", (made, TARGET[part]), loss),
    ], float(loss)


def curves(folder: Path, ours: float, theirs: float) -> RunComparison:
    """One rank, and two data parallel ones, with losses that begin so and go on alike."""
    parts = [entries(slice(0, 4))[0], entries(slice(4, 8))[0]]
    paths = (
        written(folder / "one", [entries(slice(0, 8))[0]]), written(folder / "two", parts),
    )  # fmt: skip
    sides = [
        side_of_run(load_run(str(path)),
                    LossRun(str(path), "json", series(enumerate((first, first * 0.9)))))
        for path, first in zip(paths, (ours, theirs), strict=True)
    ]  # fmt: skip
    return compare_runs(*sides, Settings(layouts=(ONE, SideLayout(data_parallel=2))))


@pytest.mark.parametrize("rank", [0, 1])
def test_the_loss_of_one_ranks_part_accuses_nobody(tmp_path: Path, rank: int) -> None:
    whole = entries(slice(0, 8))[1]
    part = entries(slice(4 * rank, 4 * rank + 4))[1]
    result = curves(tmp_path, whole, part)
    assert result.losses is not None
    assert result.losses.is_suspicious
    assert result.loss_parts == {"right": (rank,)}
    assert not result.is_suspicious
    text = f"the right curve is the loss of rank {rank}, on a part of the batch"
    assert any(text in sentence for sentence in sentences(result, None))


@pytest.mark.parametrize(("off", "is_part"), [(0.9e-3, True), (1.2e-3, False)])
def test_the_mean_over_ranks_has_to_be_the_other_loss(
    tmp_path: Path, off: float, is_part: bool
) -> None:
    result = curves(tmp_path, entries(slice(0, 8))[1] * (1 + off), entries(slice(0, 4))[1])
    assert bool(result.loss_parts) == is_part
    assert result.is_suspicious != is_part


@pytest.mark.parametrize(("off", "is_part"), [(0.9e-6, True), (3e-6, False)])
def test_it_is_the_number_that_the_rank_put_out(tmp_path: Path, off: float, is_part: bool) -> None:
    result = curves(tmp_path, entries(slice(0, 8))[1], entries(slice(0, 4))[1] * (1 + off))
    assert bool(result.loss_parts) == is_part
