"""A run on one device against one of two pipeline stages, with two micro-batches.

``data/executed_mlp_pp2.tar.xz``: the perceptron of ``executed_mlp.tar.xz``, really run by MindSpore
2.7.0 on two processes: norm, up and ReLU on the first stage, the rest on the second one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.layouts.ranks import micro_of
from irtool.compare.losses.series import LossRun, series
from irtool.compare.runs.comparison import compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run
from tests.compare.executed import DATA, compared, unpack
from tests.compare.test_layouts import ARCHIVE, Values, named

PIPELINE = DATA / "executed_mlp_pp2.tar.xz"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return unpack(unpack(tmp_path, ARCHIVE, begins=("mlp_single/",)), PIPELINE)


@pytest.mark.parametrize(("times", "is_explained"), [(2.0, True), (3.0, False)])
def test_losses_that_micro_batches_add_up(runs: Path, times: float, is_explained: bool) -> None:
    """A stage reports the sum over its two micro-batches: twice the loss of the same training."""
    losses = [1.7, 1.5, 1.2, 1.1]
    sides = [
        side_of_run(
            load_run(str(runs / name)),
            LossRun(name, "json", series(enumerate(factor * loss for loss in losses))),
        )
        for name, factor in (("mlp_single", 1.0), ("mlp_pp2", times))
    ]
    comparison = compare_runs(sides[0], sides[1], Settings())
    assert comparison.losses is not None
    assert comparison.losses.multiple == pytest.approx(times)
    assert comparison.are_losses_summed == is_explained
    assert comparison.is_suspicious != is_explained


def change(runs: Path, rank: int, tensor: str, what: Callable[[Values], Values]) -> None:
    """Change one tensor of a rank's dump, by a part of its operator's name and its label."""
    operator, _, label = tensor.partition("|")
    folder = runs / "mlp_pp2" / f"rank_{rank}" / "Net" / "0" / "0"
    files = [f for f in folder.iterdir() if operator in f.name and f".{label}." in f.name]
    assert len(files) == 1, [f.name for f in files]
    files[0].chmod(0o644)
    np.save(files[0], what(np.load(files[0])))


@pytest.mark.parametrize("sides", [("mlp_single", "mlp_pp2"), ("mlp_pp2", "mlp_single")])
def test_a_healthy_pipeline_accuses_nobody(runs: Path, sides: tuple[str, str]) -> None:
    found = compared(*(runs / name for name in sides))
    assert found.first is None
    assert not found.is_suspicious
    (unit,) = found.units
    alone = unit.only_left if sides[0] == "mlp_single" else unit.only_right
    assert alone == 0, "every operator of the run on one device has its partner"


def test_micro_batches_are_joined_and_gradients_of_parameters_added_up(runs: Path) -> None:
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    layout = found.units[0].layout
    assert layout is not None
    run, logical = layout.logical.run, layout.logical
    up = next(op for op in run.ops if op.type == "MatMul" and "_up-Dense_MatMul" in op.name)
    assert logical.cuts[up.outputs[0]].counts == (2, 1)
    assert logical.cuts[up.inputs[1]].counts == (1, 1)
    assert logical.gradient_factor == 0.5, "means over half of the batch, two of them"
    moved = [op for op in run.ops if op.type == "ApplyMomentum" and " of " not in op.name]
    assert len(moved) == 8


@pytest.mark.parametrize("micro", [0, 1])
def test_a_fault_in_one_micro_batch_of_the_second_stage_is_named(runs: Path, micro: int) -> None:
    tanh, head = f"Mlp_Tanh-op{micro}.|output.0", f"Mlp_head-Dense_MatMul-op{micro}.|input.0"
    change(runs, 1, tanh, lambda x: x * np.float32(1.05))
    change(runs, 1, head, lambda x: x * np.float32(1.05))
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    assert "Tanh" in named(found)
    assert found.first is not None
    assert (found.first.stage, found.first.ranks) == (1, (1,))


def test_another_weight_of_the_first_stage_is_a_parameter_that_differs(runs: Path) -> None:
    for micro in (0, 1):
        change(runs, 0, f"Default_network-PipelineCell_network-WithLossCell__backbone-Mlp_up-Dense"
               f"_MatMul-op{micro}.|input.1", lambda x: np.flip(x, 0))  # fmt: skip
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    assert "up-Dense_MatMul" in named(found)
    assert found.first is not None
    assert found.first.parameter
    assert found.first.ranks == (0,)


def test_what_does_not_arrive_as_it_was_sent_is_named(runs: Path) -> None:
    change(runs, 1, "Receive.Default_Receive-op0.|output.0", lambda x: x * np.float32(0.5))
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    assert "Receive-op0" in named(found)
    assert found.first is not None
    assert found.first.ranks == (1,)
    assert "what rank 0 sent" in found.first.why


def test_a_gradient_that_is_not_divided_shows_where_it_is_taken(runs: Path) -> None:
    for label in ("input.1", "input.3"):  # the momentum, and the gradient that it is made of
        change(runs, 0, f"ApplyMomentum.Default_optimizer-Momentum_ApplyMomentum-op1.|{label}",
               lambda x: x * np.float32(2))  # fmt: skip
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    assert found.first is not None
    assert found.first.pair.left.type == "ApplyMomentum"


def test_accumulated_gradients_belong_to_no_micro_batch(runs: Path) -> None:
    found = compared(runs / "mlp_single", runs / "mlp_pp2")
    layout = found.units[0].layout
    assert layout is not None
    for op in layout.logical.run.ops:
        if op.type in ("AssignAdd", "Assign", "ApplyMomentum"):
            assert micro_of(op.node) is None
