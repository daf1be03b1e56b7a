"""Uneven stages are told by their seconds, or by their work where starting operators hides it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.cluster.pipeline.cut import Layer, best_cut
from irtool.diagnosis.tasks import stage_balance

Costs = list[list[float]]


def layers_of(costs: Costs) -> list[tuple[Layer, ...]]:
    numbers = iter(range(99))
    return [tuple(Layer(f"layers.{next(numbers)}", cost) for cost in one) for one in costs]


def told(monkeypatch: pytest.MonkeyPatch, seconds: Costs, work: Costs) -> list[Any]:
    """What is said of stages whose layers take so long, and so long without starts."""
    timed, busy = layers_of(seconds), layers_of(work)
    sums = [sum(one) for one in seconds]
    stages = [
        SimpleNamespace(
            index=at, rank=at, ranks=(at,), path="stage.ir", layer_seconds=sums[at], layers=one
        )
        for at, one in enumerate(timed)
    ]
    found = SimpleNamespace(
        stages=stages, stage_count=len(stages), missing=(), micro_batches=4,
        imbalance=max(sums) / (sum(sums) / len(sums)) - 1,
        cut=best_cut([layer for one in timed for layer in one], len(stages)),
    )  # fmt: skip
    subject: Any = SimpleNamespace(
        parallel=SimpleNamespace(stages=len(stages), devices=len(stages)), memories=[],
        machine=None, command=lambda *words: ("irtool", *words),
    )  # fmt: skip
    monkeypatch.setattr(stage_balance, "pipeline", lambda *_: found)
    monkeypatch.setattr(stage_balance, "layer_times", lambda *_: busy)
    return list(stage_balance.examine(subject))


EVEN = [[10.0, 10.0, 10.0], [10.0, 10.0, 11.0]]


def test_a_head_that_starts_of_operators_hide_is_told_by_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (found,) = told(monkeypatch, EVEN, [[1.0, 1.0, 1.0], [1.0, 1.0, 3.0]])
    assert found.severity == "warning"
    assert found.rank == 1
    assert "stage 1 computes and moves 25.0 % more than the mean" in found.message
    assert "(1.6 % with them)" in found.message
    assert found.edit.value == "0: layers.0 to layers.3; 1: layers.4 to layers.5"
    assert found.gain.seconds == pytest.approx((5 - 4) * 4)


@pytest.mark.parametrize(
    "work",
    [
        [[1.0, 1.0, 1.0], [1.0, 1.0, 2.05]],  # 15 % above the mean are no cause
        [[1.0, 1.0, 1.0], [0.1, 0.1, 5.0]],  # no cut mends one layer
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ],
)
def test_even_work_and_work_that_no_cut_evens_are_silent(
    monkeypatch: pytest.MonkeyPatch, work: Costs
) -> None:
    assert told(monkeypatch, EVEN, work) == []


def test_what_takes_longer_is_told_once_by_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [[10.0, 10.0, 10.0], [10.0, 10.0, 30.0]]
    (found,) = told(monkeypatch, seconds, seconds)
    assert "takes 50 s a micro-batch, 25.0 % more than the mean" in found.message
