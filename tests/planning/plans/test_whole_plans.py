"""What must hold of any plan, on networks that MindSpore compiled.

``whole_plans.jsonl.xz``: networks of MindSpore's own tests, before their strategies are applied;
beside them the random networks whose compilation ``tests/sharding/network`` keeps.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.plan import CannotPlan, Plan, plan
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from tests.records import records
from tests.sharding.network import test_networks as compiled_networks

MACHINE = default_machine()

NETWORKS = {
    "an operator split over all devices or none": (
        "test_auto_parallel_for_loop_simplify.test_auto_parallel.1"
    ),
    "a strategy of the dump's that no axis leads to": (
        "test_reshape_and_cache.test_reshape_and_cache_semi_auto_parallel.1"
    ),
    "operands that several definitions may mean": "test_control_flow.test_control_flow.1",
    "operators beside the differentiated graph": (
        "test_auto_parallel_for_loop_multi_subgraph.test_double_subgraphs.1"
    ),
    "a later stage, whose result is split": (
        "test_pipeline_split.test_pipeline_split_shared_parameter_stage1_predict.1"
    ),
    "an evaluation, whose result is split": (
        "test_distribute_predict.test_distribute_predict.1"
    ),
    "all stages in one dump": (
        "test_pipeline_interleave.test_pipeline_interleave_gpipe_stage0.1"
    ),
}  # fmt: skip
"""By what is special about them, cases."""


SLOW = ("0173_images",)
RANDOM = {
    name: record
    for name, record in compiled_networks.NETWORKS.items()
    if name not in SLOW and len(record.dumps["begin"]) < 60_000
}
CASES = records(Path(__file__).parent / "whole_plans.jsonl.xz") | RANDOM
ALL = {
    **NETWORKS,
    **{name: name for name in RANDOM if "unknown" not in name},
}


def read(case: str) -> tuple[Dump, ParallelContext]:
    record = CASES[case]
    return record.dump("begin"), record.context


@cache
def planned(case: str) -> Plan:
    return plan(*read(case), MACHINE)


@pytest.mark.parametrize("case", ALL.values(), ids=list(ALL))
def test_a_plan_is_accepted_and_no_dearer_than_the_dump(case: str) -> None:
    made = planned(case)
    assert made.report.accepted is not False
    assert made.lower_bound is not None
    assert made.lower_bound <= made.after.seconds * (1 + 1e-9)
    if made.before is not None:
        assert made.after.seconds <= made.before.seconds * (1 + 1e-9)


@pytest.mark.parametrize("case", ALL.values(), ids=list(ALL))
def test_the_cost_before_is_what_the_dump_costs(case: str) -> None:
    dump, context = read(case)
    made = planned(case)
    report = check(dump, context)
    alone = step_cost(structure_of(dump, context), report, MACHINE)
    assert made.before is None or made.before.seconds == pytest.approx(alone.seconds)


@pytest.mark.parametrize("case", ALL.values(), ids=list(ALL))
def test_shares_and_operators_add_up_to_the_step(case: str) -> None:
    made = planned(case)
    for cost in filter(None, (made.before, made.after)):
        assert sum(cost.shares.values()) == pytest.approx(cost.seconds)
        assert all(seconds >= 0 for item in cost.items for seconds in item.seconds.values())
        assert all(received >= 0 for received in cost.received.values())


@pytest.mark.parametrize("case", ALL.values(), ids=list(ALL))
def test_planning_a_plan_changes_nothing(case: str) -> None:
    _, context = read(case)
    made = planned(case)
    again = plan(made.dump, context, MACHINE)
    assert again.after.seconds == pytest.approx(made.after.seconds)


@pytest.mark.parametrize(
    "case",
    [
        "test_control_flow.test_control_flow.1",
        "test_batch_matmul_high_dimension.test_batch_matmul_2D_TP.1",
    ],
    ids=["some operators have no strategy", "operators have layouts"],
)
def test_what_mindspore_adds_to_a_semi_automatic_plan_is_in_the_cost_before(case: str) -> None:
    dump, context = read(case)
    made = planned(case)
    alone = step_cost(structure_of(dump, context), check(dump, context), MACHINE)
    assert made.before is not None
    assert made.before.seconds == pytest.approx(alone.seconds)


def test_a_dump_that_is_cheaper_than_its_plan_is_the_plan() -> None:
    """Layouts of its code are handed on to operators whose strategies do not say so."""
    case = "test_sharding_propagation_multi_input.test_mint_add_layout_222.1"
    made = planned(case)
    assert made.before is not None
    assert made.after.seconds == made.before.seconds
    assert made.lower_bound is None
    assert not any(item.changes for item in made.operators)
    assert any("layouts of the code are handed on" in text for text in made.notes)


def test_operators_of_other_stages_keep_their_strategies() -> None:
    case = NETWORKS["all stages in one dump"]
    dump, _ = read(case)
    made = planned(case)
    nodes = {item.node for item in made.operators}
    pairs = zip(dump.nodes(), made.dump.nodes(), strict=True)
    others = [
        (old.in_strategy, new.in_strategy)
        for old, new in pairs
        if new not in nodes and old.op == "MatMul" and old.in_strategy is not None
    ]
    assert others
    assert all(old == new for old, new in others)


@pytest.mark.parametrize("case", [name for name in RANDOM if "unknown" in name])
def test_no_plan_is_made_of_sizes_that_are_not_known(case: str) -> None:
    with pytest.raises(CannotPlan, match=r"sizes of \d+ operators are not known"):
        plan(*read(case), MACHINE)
