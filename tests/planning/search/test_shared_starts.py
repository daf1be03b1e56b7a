"""Starts that fused collectives share: exact for choices, and never too much for a search."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import built_in
from irtool.planning.plans.plan import plan_of_choices
from irtool.planning.search.exact import value_of
from irtool.planning.search.paid_once import seconds_of_links
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.search import Search, Solution
from irtool.planning.search.shared_starts import Case, model_of_case, seconds_above, unpaid
from irtool.planning.search.tables import Model, model_of
from irtool.sharding.network.context import ParallelContext

CONTEXT = ParallelContext(devices=8, mode="auto_parallel", full_batch=True)


@pytest.fixture(params=[False, True], ids=["whole", "optimizer parallel"])
def model(samples: Path, request: pytest.FixtureRequest) -> Model:
    begin = irtool.load(samples / "mlp_recursive_search" / "step_parallel_begin_0019.ir")
    context = replace(CONTEXT, parallel_optimizer=request.param, threshold=0)
    problem = problem_of(begin, context, planned_context(context, 8))
    return model_of(problem.structure, built_in("ascend_910b"), problem.current, {})


def choices_of(model: Model, seed: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randrange(len(each)) for each in model.candidates)


def asked(model: Model, choices: tuple[int, ...]) -> tuple[int, ...] | None:
    """Choices with exact prices between them; None where they do not fit together."""
    search = Search(model)
    if search.refuse(choices):
        return None
    search.refine(choices)
    fits = all(each.agrees(choices) for each in model.shared)
    return choices if fits and _told(model, choices) < inf else None


def _told(model: Model, choices: tuple[int, ...]) -> float:
    own = sum(float(each[at]) for each, at in zip(model.unary, choices, strict=True))
    return model.constant + own + seconds_of_links(model, choices)


def test_tables_and_shared_starts_add_up_to_the_price_of_the_plan(model: Model) -> None:
    tried = 0
    for seed in range(40):
        choices = asked(model, choices_of(model, seed))
        if choices is None:
            continue
        tried += 1
        plan = plan_of_choices(model, Solution(choices, 0.0, 0), {}, None, 0.0)
        whole = _told(model, choices) + seconds_above(model, choices)
        assert plan.after.seconds == pytest.approx(whole, rel=1e-9)
    assert tried > 5


def test_open_buckets_are_paid_whole_and_closed_ones_hold_nothing(model: Model) -> None:
    for seed in range(20):
        choices = choices_of(model, seed)
        case = Case()
        while (key := unpaid(model, choices, case)) is not None:
            before = _own(model_of_case(model, case), choices)
            closed = replace(case, closed=case.closed | {key})
            assert _own(model_of_case(model, closed), choices) == inf
            case = replace(case, opened=case.opened | {key})
            assert _own(model_of_case(model, case), choices) >= before * (1 - 1e-9)
        paid = _own(model_of_case(model, case), choices)
        assert paid == pytest.approx(_own(model, choices) + seconds_above(model, choices))


def test_a_bucket_that_nobody_uses_costs_its_start_where_it_is_open(model: Model) -> None:
    choices = choices_of(model, 1)
    used = {
        start.bucket
        for weights, choice in zip(model.starts, choices, strict=True)
        for weight in weights
        for start in weight.kinds[int(weight.which[choice])]
    }
    other = next(
        start
        for weights in model.starts
        for weight in weights
        for kind in weight.kinds
        for start in kind
        if start.bucket not in used
    )
    opened = model_of_case(model, Case(opened=frozenset({other.bucket})))
    assert opened.constant == pytest.approx(model.constant + other.seconds)


def _own(model: Model, choices: tuple[int, ...]) -> float:
    return value_of(choices, model.unary, []) + model.constant


def _best(search: Search) -> tuple[float, float]:
    _, value, bound = search.best(search.model.unary)
    return value, bound


def test_a_search_that_learnt_from_another_case_finds_the_same(model: Model) -> None:
    first = Search(model)
    first.best(model.unary)
    keys = (unpaid(model, choices_of(model, seed), Case()) for seed in range(40))
    key = next(filter(None, keys))
    for case in (Case(opened=frozenset({key})), Case(closed=frozenset({key}))):
        changed = model_of_case(model, case)
        if changed.constant < inf:
            alone = _best(Search(changed))
            assert _best(first.with_numbers(changed)) == pytest.approx(alone, rel=1e-9)
    assert first.model is model
    assert first.enough == inf


@pytest.mark.parametrize("part", [0.5, 0.999, 1.001])
def test_a_search_ends_at_a_bound_that_is_enough(model: Model, part: float) -> None:
    least, _ = _best(Search(model))
    value, bound = _best(Search(model).with_numbers(model, part * least))
    assert bound <= least * (1 + 1e-9)
    assert value >= least * (1 - 1e-9)
    if part < 1:
        assert bound >= part * least
    else:
        assert value == pytest.approx(least, rel=1e-9)
