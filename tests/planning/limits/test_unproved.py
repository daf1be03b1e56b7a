"""What a search says that may make small tables alone: a plan, and a bound that is true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import built_in
from irtool.planning.limits.memory import search, total_seconds
from irtool.planning.search.effort import EFFORTS
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.tables import Model, model_of
from irtool.sharding.network.context import ParallelContext

CONTEXT = ParallelContext(devices=8, mode="auto_parallel", full_batch=True)
DUMPS = {
    "mlp": ("mlp_recursive_search/step_parallel_begin_0019.ir", 8),
    "gpt": ("gpt/step_parallel_begin_0018.ir", 64),
}


def model(samples: Path, dump: str, entries: int) -> Model:
    """The tables of a sample, to be searched with tables of so many entries at most."""
    path, devices = DUMPS[dump]
    context = replace(CONTEXT, devices=devices)
    problem = problem_of(irtool.load(samples / path), context, planned_context(context, devices))
    effort = replace(EFFORTS["full"], entries=entries)
    structure, machine = problem.structure, built_in("ascend_910b")
    return model_of(structure, machine, problem.current, {}, effort=effort)


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize("entries", [4, 40, 400])
def test_a_bound_is_below_the_optimum_however_little_is_looked_at(
    samples: Path, dump: str, entries: int
) -> None:
    best = search(model(samples, dump, EFFORTS["full"].entries), None)
    small = model(samples, dump, entries)
    made = search(small, None)
    optimum = best.bound
    assert made.bound <= optimum * (1 + 1e-9)
    assert total_seconds(small, made.choices) >= optimum * (1 - 1e-9)


def test_efforts_differ_in_what_they_may_look_at() -> None:
    quick, default, full = (EFFORTS[name].entries for name in ("quick", "default", "full"))
    assert quick < default < full
