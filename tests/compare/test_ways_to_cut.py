"""Runs that MindSpore 2.7.0 really executed whose sizes leave several ways to put slices together.

``data/executed_ways.tar.xz``: a residual network data parallel, and over four ranks with optimizer
parallel and a batch as large as its features; experts cut over ranks, added up by a ReduceSum; and
two pipeline stages whose loss is a sum that a number divides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.stages import CannotJoin, stages_of, without_own
from irtool.compare.tensors.model import Columns, Op, TensorRun
from tests.compare.executed import DATA, compared, unpack

ARCHIVE = DATA / "executed_ways.tar.xz"
Values = NDArray[np.float32]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return unpack(tmp_path, ARCHIVE)


def change(run: Path, rank: int, tensor: str, what: Callable[[Values], Values]) -> None:
    """Change a tensor of one rank's dump, by parts of its operator's name and its label."""
    operator, _, label = tensor.partition("|")
    folder = run / f"rank_{rank}" / "Net" / "0" / "0"
    files = [f for f in folder.iterdir() if operator in f.name and f".{label}." in f.name]
    assert files
    for file in files:
        np.save(file, what(np.load(file)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("tower_dp2", "tower_optimizer"),  # shards of shards: the groups of collectives say which
        ("experts_single", "experts_dp2tp2"),  # what an AllReduce gave is no partial sum
        ("stages_single", "stages_pp2"),  # the loss of a micro-batch is divided by its own rows
    ],
)
def test_healthy_runs_accuse_nobody(runs: Path, left: str, right: str) -> None:
    found = compared(runs / left, runs / right)
    assert found.first is None
    assert found.units[0].counts.get("introduces error", 0) == 0


def test_gathered_weights_are_weights(runs: Path) -> None:
    (unit,) = compared(runs / "tower_optimizer", runs / "tower_dp2").units
    (fact,) = [fact for fact in unit.facts if fact.kind == "initial weights"]
    assert fact.compared >= 8  # two matrices and biases of each of its layers
    assert not fact.differing


@pytest.mark.parametrize("rank", [0, 1])
def test_of_two_replicas_the_other_run_tells_which_is_odd(runs: Path, rank: int) -> None:
    change(runs / "experts_dp2tp2", rank, "router-Linear_MatMul-op0|input.1", lambda x: x * 2)
    found = compared(runs / "experts_single", runs / "experts_dp2tp2")
    assert found.first is not None
    assert "router" in found.first.pair.right.name
    assert found.first.ranks == (rank,)


def test_another_factor_of_one_micro_batch_is_named_with_its_stage(runs: Path) -> None:
    for tensor in ("CellList_1-Residual_Tanh-op0|output.0",
                   "CellList_1-Residual_down-Linear_MatMul-op0|input.0"):  # fmt: skip
        change(runs / "stages_pp2", 1, tensor, lambda x: x * np.float32(1.05))
    found = compared(runs / "stages_single", runs / "stages_pp2")
    assert found.first is not None
    assert "Tanh" in found.first.pair.left.name
    assert found.first.ranks == (1,)


def test_a_shard_that_is_gathered_belongs_to_the_rank_that_sent_it(runs: Path) -> None:
    def later_rows(x: Values) -> Values:
        return np.concatenate([x[: len(x) // 2], x[len(x) // 2 :] * np.float32(1.05)])

    for rank in range(4):  # all of them have gathered the four shards
        change(runs / "tower_optimizer", rank, "first-Linear_MatMul-op0|input.1", later_rows)
    found = compared(runs / "tower_dp2", runs / "tower_optimizer")
    assert found.first is not None
    assert found.first.ranks == (2, 3)


def run_of(*names: str) -> TensorRun:
    ops = [Op(n, name, "Add", "forward", [], []) for n, name in enumerate(names)]
    return TensorRun("run", "mindspore", "tensors", "mindspore", Columns(), ops)


def test_what_one_rank_alone_runs_is_left_out_of_the_whole() -> None:
    names = [f"Add-op{n}" for n in range(20)]
    runs = {0: run_of(*names), 1: run_of(*names[:5], "Cast-op0", *names[5:])}
    kept = without_own(runs, stages_of(runs))
    assert kept[0] is runs[0]
    assert [op.name for op in kept[1].ops] == names
    assert [op.index for op in kept[1].ops] == list(range(20))


def test_ranks_that_run_other_networks_are_not_put_together() -> None:
    with pytest.raises(CannotJoin, match="different operators"):
        stages_of({0: run_of("A", "B", "C"), 1: run_of("A", "D", "E")})
