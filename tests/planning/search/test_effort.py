"""How much a search looks at, and what is known of what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from operator import is_
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cluster.machine import MeasuredTime, default_machine
from irtool.planning.cost.costs import compute_seconds
from irtool.planning.limits.memory import search
from irtool.planning.plans.plan import plan
from irtool.planning.plans.ties import with_slower_links
from irtool.planning.search.arithmetic import least_arithmetic, least_of
from irtool.planning.search.candidates import MOST, count_of
from irtool.planning.search.effort import EFFORTS, Effort, EffortName, Sizes
from irtool.planning.search.known import Known
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.tables import Hiding, Model, model_of
from irtool.sharding.network.context import ParallelContext

MACHINE = default_machine()
SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(devices=8, mode="auto_parallel", full_batch=True)
BEGIN = next((SAMPLES / "gpt").rglob("step_parallel_begin*.ir"))
DUMP = irtool.load(str(BEGIN))


def model(devices: int) -> Model:
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, devices))
    return model_of(problem.structure, MACHINE, {}, {})


@pytest.mark.parametrize("devices", [8, 24])
def test_no_strategy_computes_faster_than_work_divided_evenly(devices: int) -> None:
    tables = model(devices)
    for node, candidates in zip(tables.nodes, tables.candidates, strict=True):
        call = tables.structure.calls[node].call.call
        least = least_of(call, MACHINE, devices)
        for item in candidates.items:
            taken = compute_seconds(call, item.judgement, MACHINE, gradient=False)
            assert taken >= least * (1 - 1e-9), f"{node.op} {item.strategy}"


def test_of_a_machine_whose_operators_were_measured_no_arithmetic_is_known() -> None:
    call = next(iter(model(8).structure.calls.values())).call.call
    measured = replace(MACHINE, measured={("MatMul", "Float32", ((1, 1),)): MeasuredTime(1.0)})
    assert least_of(call, measured, 8) == 0


FEW: dict[EffortName, Effort] = {
    name: replace(effort, pairs=min(effort.pairs, 100_000)) for name, effort in EFFORTS.items()
}
"""Efforts with which networks of samples have too many strategies, too."""


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", FEW["quick"])
    monkeypatch.setitem(EFFORTS, "default", FEW["default"])


def test_networks_whose_strategies_are_all_looked_at_are_planned_alike() -> None:
    best, quick = (plan(DUMP, CONTEXT, MACHINE, devices=64, effort=e) for e in ("default", "quick"))
    assert quick.after.seconds == best.after.seconds
    assert quick.gap == pytest.approx(0, abs=1e-6)


def test_a_quick_plan_is_legal_and_its_bound_is_below_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = plan(DUMP, CONTEXT, MACHINE, devices=64)
    monkeypatch.setitem(EFFORTS, "quick", FEW["quick"])
    quick = plan(DUMP, CONTEXT, MACHINE, devices=64, effort="quick")
    assert best.gap == pytest.approx(0, abs=1e-6)
    assert quick.report.accepted
    assert quick.lower_bound is not None
    assert best.lower_bound is not None
    assert 0 < quick.lower_bound <= best.lower_bound
    assert best.after.seconds <= quick.after.seconds * (1 + 1e-6)
    assert any("--effort full" in note for note in quick.notes)
    assert not any("--effort full" in note for note in best.notes)


@pytest.mark.usefixtures("_few")
def test_the_bound_with_operators_left_out_is_above_that_of_arithmetic() -> None:
    made, quick = (plan(DUMP, CONTEXT, MACHINE, devices=64, effort=e) for e in ("default", "quick"))
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 64))
    arithmetic = least_arithmetic(problem.structure, MACHINE)
    assert made.lower_bound is not None
    assert made.lower_bound > 1.5 * arithmetic
    assert quick.lower_bound == pytest.approx(arithmetic)
    assert quick.after.seconds == made.after.seconds


@pytest.mark.usefixtures("_few")
def test_of_weights_that_are_cut_arithmetic_alone_is_known() -> None:
    made = plan(DUMP, CONTEXT, MACHINE, devices=64, decide_optimizer=True)
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 64))
    assert made.lower_bound == pytest.approx(least_arithmetic(problem.structure, MACHINE))


def test_tables_without_some_operators_say_no_more_than_those_of_all() -> None:
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 8))
    least = search(model_of(problem.structure, MACHINE, {}, {}), None).bound
    sizes = Sizes.of(problem.structure)
    for pairs in (0, 300, 3_000, sizes.pairs()):
        loose = sizes.widest(pairs)
        kept = model_of(problem.structure, MACHINE, {}, {}, loose=loose)
        rest = search(kept, None).bound if kept.nodes else 0.0
        arithmetic = least_arithmetic(problem.structure, MACHINE, loose)
        assert rest + arithmetic <= least * (1 + 1e-9)
    assert not sizes.widest(sizes.pairs())
    assert sizes.widest(sizes.pairs() - 1)


def test_arithmetic_of_parts_adds_up() -> None:
    structure = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 8)).structure
    nodes = list(structure.calls)
    parts = [least_arithmetic(structure, MACHINE, set(nodes[half::2])) for half in (0, 1)]
    ownerless = sum(weight.owner is None for weight in structure.parameters if weight.trained)
    assert not ownerless
    assert sum(parts) == pytest.approx(least_arithmetic(structure, MACHINE))


def test_all_strategies_are_looked_at_up_to_a_number_of_pairs() -> None:
    structure = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 64)).structure
    pairs = Sizes.of(structure).pairs()
    assert Effort(pairs=pairs, few=7).most(structure) == MOST
    assert Effort(pairs=pairs - 1, few=7).most(structure) == 7
    assert Effort(pairs=inf, few=7).most(structure) == MOST


def test_strategies_are_counted_without_looking_at_them() -> None:
    tables = model(24)
    for node, candidates in zip(tables.nodes, tables.candidates, strict=True):
        call = tables.structure.calls[node].call.call
        plain = {item.strategy for item in candidates.items}
        assert count_of(call, tables.structure.operators) >= len(plain), node.op


def test_tables_of_operators_whose_candidates_stay_are_made_once() -> None:
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 64))
    known = Known()
    first = model_of(problem.structure, MACHINE, {}, {}, effort=FEW["quick"], known=known)
    near = {node: item.strategy for node, item in first.chosen([0] * len(first.nodes)).items()}
    again, others = (
        model_of(problem.structure, MACHINE, {}, {}, near=around, effort=FEW["quick"], known=known)
        for around in ({}, {node: rows for node, rows in near.items() if rows})
    )
    assert first.left_out
    assert all(map(is_, first.candidates, again.candidates))
    assert all(map(is_, first.unary, again.unary))
    for one, other in zip(first.candidates, others.candidates, strict=True):
        assert (one is other) == (not one.left_out)


def test_candidates_outlive_what_is_hidden_and_prices_the_machine() -> None:
    problem = problem_of(DUMP, CONTEXT, planned_context(CONTEXT, 64))
    known = Known()
    slower = with_slower_links(MACHINE, 1.0)
    plain, hidden, slow = (
        model_of(problem.structure, machine, {}, {}, hiding=hiding, known=known)
        for machine, hiding in ((MACHINE, None), (MACHINE, Hiding(1.0, 1.0, 0.5)), (slower, None))
    )
    for model in (hidden, slow):
        assert all(map(is_, plain.candidates, model.candidates))
    for one, other in zip(plain.links, hidden.links, strict=True):
        assert one.table is other.table
    fresh = model_of(problem.structure, slower, {}, {})
    for one, other in zip(fresh.links, slow.links, strict=True):
        assert np.array_equal(one.table.prices, other.table.prices)
    for model, alone in (
        (slow, fresh),
        (hidden, model_of(problem.structure, MACHINE, {}, {}, hiding=Hiding(1.0, 1.0, 0.5))),
    ):
        assert all(map(np.array_equal, model.unary, alone.unary))
