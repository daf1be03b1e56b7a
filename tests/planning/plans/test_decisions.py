"""Optimizer parallel and recomputation as decisions: cheaper memory, priced as it is chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.cluster.pricing import bucket_key
from irtool.ir.dump import Dump
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.search.tables import CannotPlan
from irtool.planning.stages.stages import staged_plan
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
MACHINE = default_machine()


@pytest.fixture(scope="module")
def begin() -> Dump:
    return irtool.load(str(SAMPLES / "mlp_loop" / "step_parallel_begin_0019.ir"))


@pytest.fixture(scope="module")
def made(begin: Dump) -> Plan:
    return plan(begin, CONTEXT, MACHINE, decide_optimizer=True, decide_recompute=True)


def test_a_decision_never_makes_a_plan_dearer(begin: Dump, made: Plan) -> None:
    assert made.after.seconds <= plan(begin, CONTEXT, MACHINE).after.seconds * (1 + 1e-9)


@pytest.mark.parametrize("devices", [8, 16, 64])
@pytest.mark.parametrize("sample", ["mlp_loop", "mlp_recursive_search"])
def test_what_may_be_cut_never_makes_a_plan_dearer(sample: str, devices: int) -> None:
    """Buckets that cut weights open cost a start each, which their search does not know."""
    begin = irtool.load(SAMPLES / sample / "step_parallel_begin_0019.ir")
    context = replace(CONTEXT, devices=devices)
    free = plan(begin, context, MACHINE)
    decided = plan(begin, context, MACHINE, decide_optimizer=True)
    assert decided.after.seconds <= free.after.seconds * (1 + 1e-9)
    assert decided.lower_bound is not None
    assert decided.lower_bound <= decided.after.seconds


def test_what_may_be_cut_in_stages_never_makes_them_dearer() -> None:
    begin = irtool.load(SAMPLES / "gpt" / "step_parallel_begin_0018.ir")
    context = replace(CONTEXT, devices=64)
    free, decided = (
        staged_plan(begin, context, MACHINE, 2, decide_optimizer=decides)
        for decides in (False, True)
    )
    assert decided.seconds <= free.seconds * (1 + 1e-9)


def test_the_plan_is_priced_as_it_was_chosen(made: Plan) -> None:
    starts = {
        bucket_key(each.launch): made.after.machine.line(each.op, each.ranks)[0]
        for each in made.after.communications
        if each.fusion
    }
    assert made.lower_bound is not None
    # Starts that fused collectives share are in the cost whole, and in part in the bound.
    assert 0 <= made.after.seconds - made.lower_bound <= sum(starts.values()) * (1 + 1e-9)


def test_without_a_limit_nothing_is_run_again(made: Plan) -> None:
    assert made.decisions is not None
    assert made.decisions.recomputed == ()


def test_cut_weights_fit_into_less_memory(begin: Dump) -> None:
    """Data parallel: every device holds all weights, unless optimizer parallel cuts them."""
    pins = {node: ((8, 1), (1, 1)) for node in begin.nodes() if node.op == "MatMul"}
    limit = int(plan(begin, CONTEXT, MACHINE, pinned=pins).after.memory.total * 0.6)
    with pytest.raises(CannotPlan, match="--optimizer-parallel auto"):
        plan(begin, CONTEXT, MACHINE, pinned=pins, memory_limit=limit)
    found = plan(begin, CONTEXT, MACHINE, pinned=pins, memory_limit=limit, decide_optimizer=True)
    assert found.after.memory.total <= limit
    assert found.decisions is not None
    assert found.decisions.sharded


def test_what_a_limit_leaves_is_close_to_the_bound(begin: Dump) -> None:
    free = plan(begin, CONTEXT, MACHINE)
    limit = int(free.after.memory.total * 0.97)
    found = plan(begin, CONTEXT, MACHINE, memory_limit=limit)
    assert found.after.memory.total <= limit
    assert found.gap is not None
    # Of so small a batch, the buffer of fused sums, which no table counts, is more than is kept.
    assert found.gap <= 0.04


@pytest.mark.corpus
@pytest.mark.parametrize("part", [0.5, 0.65, 0.9])
def test_recomputation_under_a_limit_is_close_to_the_bound(corpus: Path, part: float) -> None:
    """The bound is one of plans that recompute, and layers share what they hold meanwhile."""
    folder = corpus / "planning" / "gpt_L8_B64_rec_8"
    begin = irtool.load(str(folder / "step_parallel_begin.ir"))
    free = plan(begin, CONTEXT, MACHINE)
    limit = int(free.after.memory.total * part)
    found = plan(begin, CONTEXT, MACHINE, memory_limit=limit, decide_recompute=True)
    assert found.after.memory.total <= limit
    assert found.lower_bound is not None
    assert found.lower_bound > free.after.seconds
    assert found.gap is not None
    assert found.gap <= 0.01
