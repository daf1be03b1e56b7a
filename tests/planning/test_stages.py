"""Stages: every layer in one of them, balanced, with the memory that 1F1B holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost_tables import CannotPlan
from irtool.planning.stages import StagedPlan, staged_plan
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[2] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
MACHINE = default_machine()


@pytest.fixture(scope="module")
def begin() -> Dump:
    return irtool.load(str(SAMPLES / "mlp_recursive_search" / "step_parallel_begin_0019.ir"))


@pytest.fixture(scope="module")
def halves(begin: Dump) -> StagedPlan:
    return staged_plan(begin, CONTEXT, MACHINE, 2, micro_batches=4)


def test_each_stage_has_its_share_of_the_devices(halves: StagedPlan) -> None:
    assert halves.devices == 8
    assert halves.inner.context.devices == 4
    assert halves.inner.report.accepted is True


def test_every_layer_is_in_one_stage(halves: StagedPlan) -> None:
    layers = [layer for stage in halves.stages for layer in stage.layers]
    named = [layer for layer in layers if layer != "between layers"]
    assert len(named) == len(set(named))
    scopes = {item.node.scope for item in halves.inner.report.operators}
    assert {scope for stage in halves.stages for scope in stage.scopes} == scopes


def test_the_stages_together_do_all_of_the_work(halves: StagedPlan) -> None:
    work = sum(stage.seconds for stage in halves.stages)
    priced = sum(item.total for item in halves.inner.after.items if item.node is not None)
    assert work == pytest.approx(priced)


def test_the_first_stage_holds_results_of_more_micro_batches(begin: Dump) -> None:
    two, eight = (staged_plan(begin, CONTEXT, MACHINE, 2, micro_batches=count) for count in (2, 8))
    assert eight.stages[0].activation_bytes < two.stages[0].activation_bytes
    assert eight.bubble < two.bubble


def test_more_stages_than_layers_are_refused(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="as many layers"):
        staged_plan(begin, CONTEXT, MACHINE, 8)


def test_stages_that_the_devices_do_not_divide_into_are_refused(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="cannot be divided"):
        staged_plan(begin, CONTEXT, MACHINE, 3)


def test_a_stage_that_does_not_fit_is_named(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="stage 0 needs"):
        staged_plan(begin, CONTEXT, MACHINE, 2, memory_limit=1)


@pytest.mark.corpus
def test_a_stage_that_does_not_fit_is_planned_anew(corpus: Path) -> None:
    """The others stay as they are, and the pipeline is no faster than without a limit."""
    folder = corpus / "planning" / "gpt_L8_B8_rec_64"
    begin = irtool.load(str(folder / "step_parallel_begin.ir"))
    free = staged_plan(begin, CONTEXT, MACHINE, 2)
    limit = free.stages[0].bytes * 9 // 10
    assert free.stages[1].bytes <= limit
    found = staged_plan(begin, CONTEXT, MACHINE, 2, memory_limit=limit)
    assert found.replanned == (0,)
    assert found.stages[0].bytes <= limit
    assert found.stages[1].bytes == free.stages[1].bytes
    assert found.seconds >= free.seconds
    assert found.inner.report.accepted is True
    assert found.inner.lower_bound == free.inner.lower_bound
    before = [(item.before, item.out_before) for item in free.inner.operators]
    assert [(item.before, item.out_before) for item in found.inner.operators] == before
