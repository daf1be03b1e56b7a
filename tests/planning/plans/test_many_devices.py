"""Plans for so many devices that an operator has more strategies than are looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.plans.plan import plan
from irtool.planning.search.effort import EFFORTS, Effort
from irtool.sharding.network.context import ParallelContext

CONTEXT = ParallelContext(devices=64, mode="auto_parallel", full_batch=True)


@pytest.fixture
def begin(samples: Path) -> Dump:
    return irtool.load(samples / "mlp_recursive_search" / "step_parallel_begin_0019.ir")


def test_what_is_left_out_leaves_a_bound_of_arithmetic_and_is_said(
    begin: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = plan(begin, CONTEXT, default_machine())
    assert best.lower_bound == pytest.approx(best.after.seconds)
    monkeypatch.setitem(EFFORTS, "default", Effort(pairs=0, few=30))
    found = plan(begin, CONTEXT, default_machine())
    assert found.lower_bound is not None
    assert 0 < found.lower_bound < best.after.seconds
    assert any("more strategies than are looked at" in note for note in found.notes)
    assert found.after.seconds >= best.after.seconds * (1 - 1e-9)
    assert found.after.seconds <= best.after.seconds * 1.05


def test_a_plan_of_few_strategies_is_near_that_of_all(
    begin: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = plan(begin, CONTEXT, default_machine(), effort="full")
    monkeypatch.setitem(EFFORTS, "default", Effort(pairs=0, few=60))
    found = plan(begin, CONTEXT, default_machine())
    assert best.after.seconds * (1 - 1e-9) <= found.after.seconds <= best.after.seconds * 1.02
