"""Fewer devices are named where a step takes less time on them, and not where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.planning.plans.fewer_devices import LEAST_GAIN, with_fewer
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.context import ParallelContext

NETWORK = "mlp_recursive_search/step_parallel_begin_0019.ir"


def planned(samples: Path, devices: int) -> Plan:
    context = ParallelContext(devices=devices, mode="auto_parallel", full_batch=True)
    return plan(irtool.load(samples / NETWORK), context, default_machine())


def note_of(made: Plan, seconds: Mapping[int, float]) -> tuple[list[str], list[int]]:
    """What is said where plans for other devices take so long, and which were asked for."""
    asked: list[int] = []

    def plan_for(devices: int) -> Plan:
        asked.append(devices)
        if devices not in seconds:
            raise CannotPlan("no strategy is legal")
        cost = made.after
        return replace(made, after=replace(cost, hides=cost.spent - seconds[devices]))

    noted = with_fewer(made, plan_for)
    assert noted.notes[: len(made.notes)] == made.notes
    return list(noted.notes[len(made.notes) :]), asked


def test_a_plan_across_nodes_is_slower_than_one_within_a_node(samples: Path) -> None:
    made = with_fewer(planned(samples, 16), lambda devices: planned(samples, devices))
    assert made.notes[-1] == "fewer devices are faster: on 1 a step takes 84.3 µs"
    assert planned(samples, 8).after.seconds == pytest.approx(107e-6, rel=0.01)
    assert planned(samples, 1).after.seconds == pytest.approx(84.3e-6, rel=0.01)


@pytest.mark.parametrize(
    ("parts", "best", "asked"),
    [
        ({8: 0.9, 4: 0.95}, 8, [8, 4, 2, 1]),
        ({8: 0.9, 4: 0.8, 2: 0.7, 1: 0.9}, 2, [8, 4, 2, 1]),
        ({8: 1.1, 4: 0.5}, 4, [8, 4, 2, 1]),  # beyond the first that is slower
        ({8: 1.1, 4: 1.1, 2: 0.5}, None, [8, 4, 1]),  # not beyond two of them
        ({8: 1.1, 4: 1.1, 1: 0.5}, 1, [8, 4, 1]),  # but for a single device
        ({8: 1 - 1.1 * LEAST_GAIN, 4: 1.0}, 8, [8, 4, 2, 1]),
        ({8: 1 - 0.9 * LEAST_GAIN}, None, [8, 4, 1]),
        ({8: 0.9}, 8, [8, 4, 2, 1]),  # there is no plan for fewer
        ({}, None, [8, 4, 1]),
    ],
)
def test_powers_of_two_are_tried_until_two_in_a_row_are_no_faster(
    samples: Path, parts: Mapping[int, float], best: int | None, asked: list[int]
) -> None:
    made = planned(samples, 16)
    seconds = {devices: part * made.after.seconds for devices, part in parts.items()}
    notes, tried = note_of(made, seconds)
    assert tried == asked
    assert [f"on {best} a step" in note for note in notes] == ([] if best is None else [True])


@pytest.mark.parametrize(("devices", "first"), [(24, 16), (16, 8), (8, 4), (1, None)])
def test_the_first_is_the_next_power_of_two_below(
    samples: Path, devices: int, first: int | None
) -> None:
    _, tried = note_of(planned(samples, devices), {})
    assert tried[:1] == ([] if first is None else [first])
