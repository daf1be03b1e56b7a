"""Plans where computing hides communication: never dearer than others there, within their bound."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import Machine, MachineError, default_machine, machine_from
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import CannotPlan, Plan, plan
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.tables import model_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

BEGIN = Path(__file__).parents[3] / "samples" / "mlp_loop" / "step_parallel_begin_0019.ir"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
DUMP = irtool.load(str(BEGIN))


def machine(overlap: float) -> Machine:
    return replace(default_machine(), overlap=overlap)


@cache
def made(overlap: float) -> Plan:
    return plan(DUMP, CONTEXT, machine(overlap))


def at(cost: StepCost, overlap: float) -> float:
    return cost.spent - overlap * cost.hidden_at_best


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_a_step_is_what_is_spent_less_what_is_hidden(overlap: float) -> None:
    after = made(overlap).after
    assert after.hidden_at_best > 0
    assert after.seconds == pytest.approx(at(after, overlap))
    assert sum(after.shares.values()) == pytest.approx(after.spent)


@pytest.mark.parametrize("overlap", [0.5, 1.0])
def test_no_plan_for_another_overlap_is_cheaper_and_none_below_the_bound(overlap: float) -> None:
    own = made(overlap)
    assert own.before is not None
    assert own.lower_bound is not None
    others = [at(made(other).after, overlap) for other in (0.0, 0.5, 1.0)]
    others.append(at(own.before, overlap))
    assert own.after.seconds <= min(others) * (1 + 1e-9)
    assert own.lower_bound <= min(others) * (1 + 1e-9)


def test_no_strategies_that_anybody_draws_are_below_the_bound() -> None:
    bound = made(1.0).lower_bound
    assert bound is not None
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 8))
    model = model_of(problem.structure, machine(1.0), {}, {})
    draw, seen = random.Random(7), 0
    for _ in range(12):
        drawn = [draw.choice(candidates.items) for candidates in model.candidates]
        chosen = {
            node: item.strategy
            for node, item in zip(model.nodes, drawn, strict=True)
            if item.strategy is not None
        }
        dump = with_strategies(problem.structure.dump, chosen)
        report = check(dump, problem.target)
        if report.accepted is True:
            seen += 1
            cost = step_cost(structure_of(dump, problem.target), report, machine(1.0))
            assert cost.seconds >= bound
    assert seen > 3


def test_what_is_decided_beside_strategies_is_not_planned_with_an_overlap() -> None:
    with pytest.raises(CannotPlan, match="leave out the overlap"):
        plan(DUMP, CONTEXT, machine(0.5), decide_recompute=True)


@pytest.mark.parametrize(("value", "is_fine"), [(0, True), (1, True), (1.1, False), ("x", False)])
def test_the_overlap_of_a_machine_is_a_part(value: object, is_fine: bool) -> None:
    table = {"levels": [{"bandwidth": 1e9}], "overlap": value}
    if is_fine:
        assert machine_from(table).overlap == value
        return
    with pytest.raises(MachineError, match="from 0 to 1"):
        machine_from(table)
