"""Plans to choose from after a loss: which one is the cheapest depends on how long it will run."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.recovery.elastic.target import HORIZONS, Point, best_along, best_over
from irtool.planning.recovery.elastic.transition import COMPILE_SECONDS

BANDWIDTH = 1e9


def point(seconds: float, fetched: int = 0, recompiled: int = 0, devices: int = 4) -> Point:
    return Point(devices, inf, seconds, fetched, recompiled, recompiled)


def test_what_it_costs_to_get_there_is_paid_off_over_the_horizon() -> None:
    one = point(2.0, fetched=8 * 10**9, recompiled=3)
    assert one.fetched_per_device == 2e9
    assert one.seconds_before(BANDWIDTH) == pytest.approx(2 + 3 * COMPILE_SECONDS)
    assert one.seconds_over(100, BANDWIDTH) == pytest.approx(2 + (2 + 3 * COMPILE_SECONDS) / 100)
    assert one.seconds_over(inf, BANDWIDTH) == 2.0


points = st.builds(
    point,
    st.integers(1, 4).map(float),
    st.integers(0, 4).map(lambda gigabytes: gigabytes * 10**9),
    st.integers(0, 2),
    st.sampled_from([2, 4]),
)


@given(st.lists(points, min_size=1, max_size=6))
def test_each_horizon_lies_in_the_range_of_its_cheapest_plan(choices: list[Point]) -> None:
    ranges = best_over(choices, BANDWIDTH)
    for horizon in (1.01, 1.3, 2.7, 5.9, 31.0, 1e4, 1e9):
        cost = [each.seconds_over(horizon, BANDWIDTH) for each in choices]
        # Of plans that cost the same the first counts.
        cheapest = min(range(len(choices)), key=lambda at: (cost[at], at))
        if sorted(cost)[1:2] and sorted(cost)[1] - cost[cheapest] < 1e-9 * cost[cheapest]:
            continue
        held = ranges[cheapest]
        assert held is not None
        assert held[0] <= horizon <= held[1]
        for at, other in enumerate(ranges):
            assert at == cheapest or other is None or not other[0] < horizon < other[1]


def test_of_equal_plans_the_first_is_the_cheapest() -> None:
    same = [point(1.0, 10**9), point(1.0, 10**9), point(1.0, 2 * 10**9)]
    assert best_over(same, BANDWIDTH) == ((1.0, inf), None, None)


@given(points, points)
def test_one_beats_another_where_it_is_no_worse_in_anything(one: Point, other: Point) -> None:
    ours = (one.seconds, one.fetched_bytes, one.recompiled, one.changed)
    theirs = (other.seconds, other.fetched_bytes, other.recompiled, other.changed)
    better = all(a <= b for a, b in zip(ours, theirs, strict=True)) and ours != theirs
    assert one.beats(other) is better


def test_rounding_makes_no_plan_worse() -> None:
    assert point(1.0 + 1e-12, 10).beats(point(1.0, 20))
    assert not point(1.0 + 1e-6, 10).beats(point(1.0, 20))


def test_the_cheapest_with_more_devices_goes_by_the_horizon() -> None:
    few, fast, near = point(4.0, devices=2), point(1.0, 40 * 10**9), point(2.0, 0)
    many = point(0.5, 400 * 10**9, devices=8)

    def plan(horizon: float, chosen: int = 0) -> ElasticPlan:
        return ElasticPlan({}, (few, fast, near, many), chosen, horizon, BANDWIDTH, (), (), (),
                           0, "", 0.0)  # fmt: skip

    assert plan(2.0).best_with_more is near  # 40 GB over four devices take 10 seconds
    assert plan(20.0).best_with_more is fast
    assert plan(1000.0).best_with_more is many
    assert plan(2.0, chosen=1).best_with_more is many  # only eight are more than four
    assert plan(2.0, chosen=3).best_with_more is None


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=8))
def test_what_is_best_for_two_horizons_is_looked_for_between_them_no_more(
    plans: list[tuple[int, int]],
) -> None:
    asked: list[float] = []

    def find(horizon: float) -> tuple[int, int]:
        asked.append(horizon)
        return min(plans, key=lambda plan: (plan[0] + plan[1] / horizon, plan))

    along = best_along(HORIZONS, find)
    assert len(set(asked)) == len(asked)
    if along[0] == along[-1]:
        assert len(asked) == 2
    for horizon, best in zip(HORIZONS, along, strict=True):
        least = min(step + before / horizon for step, before in plans)
        assert best[0] + best[1] / horizon == pytest.approx(least, rel=1e-12)
