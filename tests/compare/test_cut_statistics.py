"""Runs that are cut, of which only MindSpore's ``statistic.csv`` is there: figures put together.

The runs of ``data/executed_mlp.tar.xz`` and ``data/executed_mlp_cut.tar.xz``, with the figures of
their tensors in place of the tensors.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.layouts.figures import apart, joined_figures
from irtool.compare.layouts.slices import Cut
from irtool.compare.runs.comparison import RunComparison
from irtool.report.diff.runs.sentences import sentences
from tests.compare.executed import compared
from tests.compare.test_two_cuts import change, named, runs  # noqa: F401 - a fixture

_FILE = re.compile(
    r"([^.]+)\.(.+)\.(\d+)\.(\d+)\.(\d+)\.(input|output)\.(\d+)\.[^.]+\.([^.]+)\.npy"
)
_HEADER = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
           "Max Value,Min Value,Avg Value,L2Norm Value")  # fmt: skip


def figures_alone(run: Path) -> Path:
    """Put a statistic.csv in the place of every rank's tensors."""
    for folder in run.glob("rank_*/Net/0/0"):
        rows: list[tuple[int, list[object]]] = []
        for file in folder.glob("*.npy"):
            match = _FILE.fullmatch(file.name)
            assert match is not None
            values = np.load(file)
            wide = values.astype(np.float64)
            figures = [wide.max(), wide.min(), wide.mean(), np.linalg.norm(wide.ravel())]
            shape = f"({','.join(map(str, values.shape))})"
            rows.append((int(match[5]), [*match.groups()[:7], values.nbytes, match[8].lower(),
                                         shape, *map(float, figures)]))  # fmt: skip
            file.unlink()
        with (folder / "statistic.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(_HEADER.split(","))
            writer.writerows(row for _, row in sorted(rows, key=lambda row: row[0]))
    return run


def compared_by_figures(folder: Path, left: str, right: str) -> RunComparison:
    return compared(figures_alone(folder / left), figures_alone(folder / right))


@pytest.mark.parametrize(
    "sides", [("mlp_single", "mlp_tp2"), ("mlp_single", "mlp_dp2"), ("mlp_tp2", "mlp_dp2")]
)
def test_healthy_runs_accuse_nobody_and_say_what_is_left_out(
    runs: Path,  # noqa: F811 - the fixture
    sides: tuple[str, str],
) -> None:
    found = compared_by_figures(runs, *sides)
    assert found.first is None
    assert not found.is_suspicious
    assert found.units[0].pairs > 30
    text = " ".join(sentences(found, None))
    assert "terms of a sum over ranks (dump tensors)" in text


def test_a_fault_in_the_sharded_region_is_named(runs: Path) -> None:  # noqa: F811
    for rank in (0, 1):
        for tensor in ("ReLU.Default|output.0", "_down-Dense_MatMul-op0|input.0"):
            operator, label = tensor.split("|")
            prefix = "" if operator.startswith("ReLU") else "Mlp"
            change(runs / "mlp_tp2", (rank,), f"{prefix}{operator}|{label}", lambda x: x * 1.05)
    found = compared_by_figures(runs, "mlp_single", "mlp_tp2")
    assert "ReLU" in named(found)


def test_a_replica_of_other_figures_is_named_with_its_rank(runs: Path) -> None:  # noqa: F811
    change(runs / "mlp_tp2", (1,), "LayerNorm.Default|input.0", lambda x: x + np.float32(1))
    found = compared_by_figures(runs, "mlp_single", "mlp_tp2")
    assert found.first is not None
    assert found.first.ranks == (1,)


def test_parts_of_one_size_tell_the_figures_of_the_whole() -> None:
    values = np.random.default_rng(1).standard_normal((4, 6))
    parts = [(p.max(), p.min(), p.mean(), np.linalg.norm(p)) for p in np.split(values, 2)]
    whole = (values.max(), values.min(), values.mean(), np.linalg.norm(values))
    assert np.allclose(joined_figures(parts), whole)


def test_terms_of_a_sum_are_no_replicas() -> None:
    cut = Cut((4,), (1,), {0: (0,), 1: (0,), 2: (0,)})
    figures = {0: (1.0, 0.0, 0.5, 2.0), 1: (3.0, 0.0, 0.5, 4.0), 2: (1.0, 0.0, 0.5, 2.0)}
    none = dict.fromkeys(figures, frozenset[int]())
    assert apart(cut, figures, none) == {1: 1.0, 2: 0.0}
    assert apart(cut, figures, {**none, 0: frozenset((0, 1))}) == {2: 0.0}


def test_paths_from_the_current_folder(
    runs: Path,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("mlp_single", "mlp_tp2"):
        figures_alone(runs / name)
    monkeypatch.chdir(runs)
    comparison = compared(Path("mlp_single"), Path("mlp_tp2"))
    assert not comparison.left.complaints
    assert [unit.comparison is not None for unit in comparison.units] == [True]
