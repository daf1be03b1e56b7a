"""One price of a step's communications: fused ones start once, and computing hides what it can."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cluster.machine import Level, Machine
from irtool.cluster.pricing import (
    Launch,
    Queued,
    buckets,
    end_of,
    exposed_seconds,
    overlap,
    seconds_within,
    step_seconds,
)

MACHINE = Machine("m", "Ascend", (Level("link", None, 100.0, 0.0, 7.0),), 1)
SUM = Launch("AllReduce", 400, (0, 1), 1, "Float32", "sum")

launches = st.lists(
    st.builds(
        Launch,
        st.sampled_from(["AllReduce", "AllGather", "ReduceScatter", "AlltoAll"]),
        st.integers(0, 10**6),
        st.sampled_from([(0, 1), (0, 2), (0, 1, 2, 3)]),
        st.integers(0, 2),
        st.sampled_from(["Float32", "Float16"]),
        st.sampled_from(["sum", "max"]),
        st.integers(1, 2),
    ),
    max_size=12,
)


def test_equal_launches_with_one_id_start_once() -> None:
    alone = MACHINE.seconds("AllReduce", 400, (0, 1))
    assert step_seconds([SUM], MACHINE) == [pytest.approx(alone)]
    both = step_seconds([SUM, SUM], MACHINE)
    assert sum(both) == pytest.approx(2 * alone - 7.0)
    assert both[0] == pytest.approx(both[1])


def test_bytes_and_start_are_shared_out() -> None:
    small, large = step_seconds([replace(SUM, size=100), replace(SUM, size=300)], MACHINE)
    assert small == pytest.approx(7.0 / 2 + 100 / 100)
    assert large == pytest.approx(7.0 / 2 + 300 / 100)


@pytest.mark.parametrize(
    "other",
    [
        replace(SUM, fusion=0),
        replace(SUM, fusion=2),
        replace(SUM, dtype="Float16"),
        replace(SUM, reduction="max"),
        replace(SUM, ranks=(0, 2)),
        replace(SUM, op="ReduceScatter"),
        replace(SUM, zone=2),
    ],
)
def test_what_differs_starts_by_itself(other: Launch) -> None:
    assert buckets([SUM, other]) == [(0,), (1,)]
    apart = MACHINE.seconds(SUM.op, 400, SUM.ranks) + MACHINE.seconds(other.op, 400, other.ranks)
    assert sum(step_seconds([SUM, other], MACHINE)) == pytest.approx(apart)


def test_nothing_with_id_0_and_no_alltoall_is_fused() -> None:
    assert buckets([replace(SUM, fusion=0)] * 2) == [(0,), (1,)]
    assert buckets([replace(SUM, op="AlltoAll")] * 2) == [(0,), (1,)]


def test_a_group_whose_ranks_nobody_knows_is_told_by_its_name() -> None:
    unknown = replace(SUM, ranks=(), group="2-5")
    assert buckets([unknown, unknown, replace(unknown, group="2-6")]) == [(0, 1), (2,)]


@given(launches)
def test_a_step_costs_what_its_buckets_cost(step: list[Launch]) -> None:
    whole = 0.0
    for places in buckets(step):
        first = step[places[0]]
        whole += MACHINE.seconds(first.op, sum(step[at].size for at in places), first.ranks)
    assert sum(step_seconds(step, MACHINE)) == pytest.approx(whole)
    assert sorted(at for places in buckets(step) for at in places) == list(range(len(step)))


@given(launches)
def test_parts_for_a_search_are_never_above_the_price(step: list[Launch]) -> None:
    parts = sum(seconds_within(launch, MACHINE, len(step)) for launch in step)
    assert parts <= sum(step_seconds(step, MACHINE)) * (1 + 1e-9) + 1e-9


def test_parts_for_a_search_are_the_price_where_all_share_a_bucket() -> None:
    parts = sum(seconds_within(SUM, MACHINE, 5) for _ in range(5))
    assert parts == pytest.approx(sum(step_seconds([SUM] * 5, MACHINE)))


# -- hiding --------------------------------------------------------------------------------------


def test_buckets_go_when_they_are_ready_and_the_links_are_free() -> None:
    assert end_of([Queued(3.0, 0.0), Queued(2.0, 1.0), Queued(1.0, 9.0)]) == 10.0


def test_what_ends_with_computing_is_hidden_and_what_goes_on_is_not() -> None:
    queue = [Queued(3.0, 5.0)]
    assert exposed_seconds(queue, 8.0) == 0.0
    assert exposed_seconds(queue, 7.5) == 0.5
    assert exposed_seconds(queue, 5.0) == 3.0


def test_one_bucket_waits_for_its_last_member_and_two_do_not() -> None:
    ready = {0: 0.0, 1: 100.0}
    fused = overlap([SUM, SUM], ready, 100.0, MACHINE)
    assert fused.hidden == 0.0
    assert fused.exposed == pytest.approx(7.0 + 800 / 100)
    apart = overlap([SUM, replace(SUM, fusion=2)], ready, 100.0, MACHINE)
    assert apart.hidden == pytest.approx(7.0 + 400 / 100)
    assert apart.exposed == pytest.approx(7.0 + 400 / 100)


def test_what_is_waited_for_is_not_looked_at() -> None:
    found = overlap([SUM, replace(SUM, fusion=0)], {0: 0.0}, 100.0, MACHINE)
    assert found.hideable == pytest.approx(MACHINE.seconds("AllReduce", 400, (0, 1)))


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), max_size=6), st.floats(0, 9))
def test_no_more_is_exposed_than_there_is_after_the_last_is_ready(
    pairs: list[tuple[float, float]], horizon: float
) -> None:
    queue = [Queued(seconds, ready) for seconds, ready in pairs]
    last = max((one.ready for one in queue), default=0.0)
    most = sum(one.seconds for one in queue) + max(0.0, last - horizon)
    assert 0.0 <= exposed_seconds(queue, horizon) <= most + 1e-9
