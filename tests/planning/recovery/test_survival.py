"""What survives a loss, whom to fetch from, and how long that takes: recounted on small layouts."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cluster.machine import Level, Machine
from irtool.operators.layout import TensorLayout
from irtool.planning.cost.holdings import Box, Holding, Holdings
from irtool.planning.recovery.fetch import Fetch, stored_box
from irtool.planning.recovery.reshard import Move, Resharding
from irtool.planning.recovery.survival import (
    LostSlice,
    SurvivingSlice,
    WeakPoint,
    common_replicas,
    lost_slices,
    surviving_slices,
    weak_points,
)
from irtool.planning.recovery.times import Assumptions, RecoveryTime, compare_times
from irtool.planning.recovery.transfers import Senders, Transfer
from irtool.planning.search.layout_pairs import LayoutPair

RANKS = 6


def holding(name: str, *sets: tuple[int, ...], item_bytes: float = 4.0) -> Holding:
    """One slice of ten elements for each set of ranks."""
    boxes: dict[int, Box] = {
        rank: ((10 * place, 10 * place + 10),) for place, ranks in enumerate(sets) for rank in ranks
    }
    return Holding(name, name, (10 * len(sets),), item_bytes, boxes)


def held(*items: Holding) -> Holdings:
    return Holdings(RANKS, 1, items, {}, {})


@st.composite
def layouts(draw: st.DrawFn) -> Holdings:
    """Up to three parameters, each cut so that every rank has one of some slices."""
    items: list[Holding] = []
    for number in range(draw(st.integers(1, 3))):
        slices = draw(st.lists(st.integers(0, 2), min_size=RANKS, max_size=RANKS))
        sets = [tuple(r for r in range(RANKS) if slices[r] == n) for n in range(3)]
        items.append(holding(f"p{number}", *filter(None, sets)))
    return held(*items)


# -- survival --------------------------------------------------------------------------------------


@given(layouts(), st.sets(st.integers(0, RANKS - 1)))
def test_every_slice_is_whole_lost_or_partly_lost(old: Holdings, lost: set[int]) -> None:
    gone, some = lost_slices(old, lost), surviving_slices(old, lost)
    expected_gone: list[LostSlice] = []
    expected_some: list[SurvivingSlice] = []
    for item in old.items:
        for ranks in item.replica_sets:
            missing = tuple(rank for rank in ranks if rank in lost)
            left = tuple(rank for rank in ranks if rank not in lost)
            if not left:
                expected_gone.append(LostSlice(item.name, ranks, 40))
            elif missing:
                expected_some.append(SurvivingSlice(item.name, missing, left, 40))
    assert list(gone) == expected_gone
    assert list(some) == expected_some


@given(layouts(), st.sampled_from([1, 2, 3]))
def test_weak_points_are_the_smallest_losses_that_lose_a_slice(old: Holdings, unit: int) -> None:
    """Against every set of servers: those of the least size whose loss leaves a slice nowhere."""
    units = sorted({rank // unit for rank in range(RANKS)})
    for size in range(1, len(units) + 1):
        killing: dict[tuple[int, ...], tuple[str, ...]] = {}
        for chosen in combinations(units, size):
            lost = [rank for rank in range(RANKS) if rank // unit in chosen]
            names = tuple(dict.fromkeys(one.parameter for one in lost_slices(old, lost)))
            if names:
                killing[chosen] = names
        if killing:
            assert weak_points(old, unit) == tuple(
                WeakPoint(chosen, names) for chosen, names in sorted(killing.items())
            )
            return
    raise AssertionError("the loss of all loses everything")


def test_nothing_held_is_nothing_weak() -> None:
    assert weak_points(held()) == ()


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        # a halves over the world; b is on all: nested, the smallest counts
        ([((0, 1, 2), (3, 4, 5)), ((0, 1, 2, 3, 4, 5),)], ((0, 1, 2), (3, 4, 5))),
        # {0, 1, 2} and {0, 3} are not nested: rank 0 alone; 1 has {0,1,2} and {1,4}: alone
        (
            [((0, 1, 2), (3, 4, 5)), ((0, 3), (1, 4), (2, 5))],
            ((0,), (1,), (2,), (3,), (4,), (5,)),
        ),
        ([((0, 1), (2, 3))], ((0, 1), (2, 3))),
    ],
)
def test_what_the_framework_restores_from(
    sets: list[tuple[tuple[int, ...], ...]], expected: tuple[tuple[int, ...], ...]
) -> None:
    items = [holding(f"p{n}", *own) for n, own in enumerate(sets)]
    assert common_replicas(held(*items)) == expected


# -- times -----------------------------------------------------------------------------------------

RATES = Assumptions(
    start_seconds=7.0, group_seconds=0.5, rank_seconds=0.25, statement_seconds=0.125,
    storage_bandwidth=100.0, step_seconds=3.0, checkpoint_steps=20, data_bytes=50,
)  # fmt: skip
MACHINE = Machine("m", "Ascend", (Level("in", 2, 10.0), Level("out", None, 1.0)), 1)
MOVES = Resharding((), (Transfer(0, 1, None, "out", 11),), MACHINE, 0, True)


def test_both_ways_to_go_on() -> None:
    """Groups of 2 and 6 ranks, 8 statements, 1000 bytes; half of the steps between checkpoints."""
    found = compare_times(RATES, [2, 6], 8, MOVES, 1000)
    shared = {"start": 7.0, "groups": 2 * 0.5 + 8 * 0.25, "compile": 1.0, "data": 0.5}
    assert found.peers is not None
    assert dict(found.peers.terms()) == {**shared, "state": 11.0, "lost steps": 3.0}
    assert dict(found.checkpoint.terms()) == {**shared, "state": 10.0, "lost steps": 30.0}
    assert found.peers.total == 25.5
    assert found.checkpoint.total == 51.5
    assert (found.peers.largest, found.checkpoint.largest) == ("state", "lost steps")
    assert (found.checkpoint_bytes, found.store_seconds) == (1000, 10.0)


def test_peers_are_no_way_where_a_slice_is_lost_or_unknown() -> None:
    lost = Resharding((Move(1, None, 0, 4, {}),), (), MACHINE, 0, True)
    assert compare_times(RATES, [], 0, lost, 0).peers is None
    assert compare_times(RATES, [], 0, None, 0).peers is None
    assert compare_times(RATES, [], 0, MOVES, 0, is_partial=True).peers is None
    assert compare_times(RATES, [], 0, MOVES, 0).peers is not None


def test_what_is_assumed_unless_somebody_says_otherwise() -> None:
    assert Assumptions() == Assumptions(60.0, 0.05, 0.01, 0.044, 0.0, 10e9, 0.0, 0, 0)
    assert RecoveryTime(1, 2, 3, 4, 5, 6).total == 21


# -- fetching --------------------------------------------------------------------------------------


def elements(box: Box) -> set[tuple[int, ...]]:
    return set(product(*(range(low, high) for low, high in box)))


BOXES = st.sampled_from(
    [((0, 8), (0, 4)), ((0, 4), (0, 4)), ((4, 8), (0, 4)), ((0, 8), (0, 2)), ((0, 8), (2, 4)),
     ((0, 4), (0, 2)), ((4, 8), (2, 4)), ((2, 6), (1, 3))]
)  # fmt: skip


@given(
    st.lists(BOXES, min_size=RANKS, max_size=RANKS),
    BOXES,
    st.sampled_from([None, 0, 3]),
    st.sets(st.integers(0, RANKS - 1), max_size=5),
)
def test_the_nearest_peers_give_what_is_missing_and_the_rest_is_lost(
    before: list[Box], need: Box, device: int | None, gone: set[int]
) -> None:
    holds = {rank: box for rank, box in enumerate(before) if rank not in gone}
    pair = LayoutPair({0: need}, holds, 2.0)
    found, lost = Senders([pair], MACHINE).to(0, device)
    own = elements(holds[device]) if device in holds else set[tuple[int, ...]]()
    missing = elements(need) - own
    everywhere = set[tuple[int, ...]]().union(*map(elements, holds.values()))
    near: set[tuple[int, ...]] = set()
    if device is not None:
        near = set[tuple[int, ...]]().union(
            *(elements(box) for rank, box in holds.items() if rank // 2 == device // 2)
        )
    by_level = {"in": 0, "out": 0}
    for one in found:
        assert one.rank == 0
        assert one.device == device
        assert one.source in holds
        assert one.level == "out" or device is not None
        by_level[one.level] += one.bytes
    assert by_level["in"] == 2 * len(missing & near)
    assert by_level["out"] == 2 * len((missing & everywhere) - near)
    assert lost == 2 * len(missing - everywhere)


def test_of_equal_peers_the_least_busy_sends_then_the_first() -> None:
    need: Box = ((0, 4),)
    senders = Senders([LayoutPair({0: need, 1: need, 2: need}, {2: need, 3: need}, 1.0)], MACHINE)
    taken = [senders.to(rank, None)[0] for rank in (0, 1, 2)]
    assert taken == [
        [Transfer(2, 0, None, "out", 4)],
        [Transfer(3, 1, None, "out", 4)],
        [Transfer(2, 2, None, "out", 4)],
    ]


def test_two_parameters_from_one_peer_are_one_transfer() -> None:
    need: Box = ((0, 4),)
    pairs = [LayoutPair({0: need}, {5: need}, 1.0), LayoutPair({0: need}, {5: need}, 2.0)]
    assert Senders(pairs, MACHINE).to(0, 0) == ([Transfer(5, 0, 0, "out", 12)], 0)
    # a parameter that the new rank does not have asks for nothing
    assert Senders([LayoutPair({1: need}, {5: need}, 1.0)], MACHINE).to(0, 0) == ([], 0)


@given(
    st.sampled_from([(0, -1), (-1, 0), (1, -1), (1, 0), (-1, -1), (0, 1)]),
    st.sampled_from([1, 2]),
    st.permutations([None, 0, 1, 2]),
)
def test_what_is_fetched_is_counted_element_by_element(
    axes: tuple[int, int], shared: int, devices: list[int | None]
) -> None:
    """Four ranks in two axes; an 8 x 4 weight whose dimensions are cut along some of them."""
    layout = TensorLayout((2, 2), axes, (8, 4))
    repeats = 4 // (2 ** sum(axis >= 0 for axis in axes))
    if repeats % shared:
        return
    cells = [elements(stored_box(layout, (4, 5, 6, 7), shared, place)) for place in range(4)]
    # together they hold everything, each element as often as there are copies left
    for element in product(range(8), range(4)):
        assert sum(element in own for own in cells) == repeats // shared
    old = Holding("w", "w", (8, 4), 4.0, {0: ((0, 8), (0, 2)), 1: ((0, 4), (0, 4))})
    fetch = Fetch((4, 5, 6, 7), tuple(devices))
    having = fetch.held(old)
    holding = {place: old.boxes[d] for place, d in enumerate(devices) if d in (0, 1)}
    assert dict(having) == holding
    expected = sum(
        len(own - (elements(holding[place]) if place in holding else set()))
        for place, own in enumerate(cells)
    )
    assert fetch.elements(layout, shared, having) == expected
    assert fetch.elements(layout, shared, having) == expected  # kept, and the same
    assert fetch.elements(layout, shared, fetch.held(None)) == sum(map(len, cells))


def test_a_scalar_is_fetched_where_nothing_is() -> None:
    layout = TensorLayout((2,), (), ())
    fetch = Fetch((0, 1), (0, None))
    old = Holding("s", "s", (), 4.0, {0: ()})
    assert fetch.elements(layout, 1, fetch.held(old)) == 1
    assert fetch.elements(layout, 1, fetch.held(None)) == 2


def test_what_a_million_new_devices_fetch_is_counted_without_asking_each() -> None:
    count = 1 << 20
    layout = TensorLayout((count // 4, 4), (0,), (64,))
    old = Holding("w", "w", (64,), 4.0, {0: ((0, 64),), 1: ((0, 8),)})
    fetch = Fetch(range(count), [0, 1, *[None] * (count - 2)])
    # ranks 0 and 1 need elements 0 to 15 and 16 to 31: the one has them, the other none of them
    assert fetch.elements(layout, 1, fetch.held(old)) == 16 * (count - 1)
