"""Plans for other devices: legal, on a Pareto list, and counted as recovery counts it."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.holdings import holdings, overlap, volume
from irtool.planning.plans.plan import plain_dump, plan
from irtool.planning.recovery.elastic import ElasticPlan, replan
from irtool.planning.search.effort import EffortName
from irtool.planning.search.tables import CannotPlan
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
def halved(begin: Dump) -> ElasticPlan:
    return replan(begin, CONTEXT, MACHINE, lost=(3, 5))


def test_the_chosen_plan_is_accepted(halved: ElasticPlan) -> None:
    assert [each.report.accepted for each in halved.plans.values()] == [True]


def test_the_largest_legal_number_is_among_those_that_were_tried(halved: ElasticPlan) -> None:
    assert halved.legal == (4, 2, 1)
    assert 4 in {point.devices for point in halved.points}


def test_survivors_keep_their_order(halved: ElasticPlan) -> None:
    assert halved.devices == (0, 1, 2, 4)


def test_no_plan_of_the_list_beats_another_one(halved: ElasticPlan) -> None:
    finite = [point for point in halved.points if point.horizon < inf]
    assert not any(other.beats(point) for point in finite for other in halved.points)


@pytest.mark.parametrize("horizon", [1.0, 50.0, 3e3, 1e4, 2e5, 1e9])
def test_the_cheapest_over_a_horizon_is_the_one_whose_range_holds_it(
    halved: ElasticPlan, horizon: float
) -> None:
    costs = [point.seconds_over(horizon, halved.bandwidth) for point in halved.points]
    inside = [best is not None and best[0] <= horizon <= best[1] for best in halved.best_over]
    assert inside[costs.index(min(costs))]
    assert sum(inside) <= 2  # two where one range ends and the next begins


def test_ranges_of_horizons_cover_all_of_them_once(halved: ElasticPlan) -> None:
    ranges = sorted(best for best in halved.best_over if best is not None)
    assert ranges[0][0] == 1
    assert ranges[-1][1] == inf
    assert all(one[1] == pytest.approx(two[0]) for one, two in pairwise(ranges))


def test_an_endless_horizon_gives_the_optimum(begin: Dump) -> None:
    found = replan(begin, CONTEXT, MACHINE, to=4, horizon=inf)
    best = plan(begin, CONTEXT, MACHINE, devices=4)
    assert found.point.seconds == pytest.approx(best.after.seconds)


def test_a_short_horizon_fetches_no_more(begin: Dump) -> None:
    soon = replan(begin, CONTEXT, MACHINE, to=4, horizon=1)
    late = replan(begin, CONTEXT, MACHINE, to=4, horizon=inf)
    before = soon.point.seconds_before(soon.bandwidth), late.point.seconds_before(late.bandwidth)
    assert before[0] <= before[1]
    assert soon.point.seconds >= late.point.seconds


def test_fetched_bytes_are_those_that_the_devices_lack(begin: Dump, halved: ElasticPlan) -> None:
    """Counted again from what each rank holds before and after."""
    made = next(iter(halved.plans.values()))
    old, new = holdings(begin, CONTEXT).by_name(), holdings(made.dump, made.context)
    missing = 0
    for item in new.items:
        for rank, need in item.boxes.items():
            device = halved.devices[rank]
            assert device is not None
            have = overlap(need, old[item.name].boxes[device])
            missing += item.bytes_of(need) - (
                int(volume(have) * item.item_bytes) if have is not None else 0
            )
    assert halved.point.fetched_bytes == missing


def test_new_devices_hold_nothing(begin: Dump) -> None:
    found = replan(begin, CONTEXT, MACHINE, to=16)
    assert found.devices[8:] == (None,) * 8
    assert found.point.fetched_bytes > 0


def test_a_dump_without_strategies_has_nothing_to_go_on_from(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="no strategies"):
        replan(plain_dump(begin), CONTEXT, MACHINE, to=4)


def test_an_illegal_number_is_answered_with_legal_ones(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="8 or 16 would do"):
        replan(begin, CONTEXT, MACHINE, to=12)


def test_a_quick_plan_for_more_devices_is_near_the_optimum() -> None:
    gpt = irtool.load(str(SAMPLES / "gpt" / "step_parallel_begin_0018.ir"))
    ways: tuple[EffortName, ...] = ("quick", "full")
    quick, full = (
        replan(gpt, CONTEXT, MACHINE, to=64, horizon=inf, effort=effort) for effort in ways
    )
    assert full.point.seconds * 0.999 <= quick.point.seconds <= full.point.seconds * 1.02
