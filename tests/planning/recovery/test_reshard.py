"""What has to be moved to where: the best mapping of devices to ranks, and the links it takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.holdings import (
    Box,
    Holding,
    Holdings,
    overlap,
    uncovered,
    volume,
    without,
)
from irtool.planning.recovery.reshard import Resharding, _second, reshard
from irtool.planning.search.assignment import best_assignment, preferred
from irtool.planning.search.layout_pairs import LayoutPair
from tests.planning.recovery_networks import MIB, chain_of, laid_out


@pytest.fixture(scope="module")
def chain(samples: Path) -> Dump:
    return chain_of(samples)


def servers_of(devices: int) -> Machine:
    machine = default_machine()
    inner, *outer = machine.levels
    return replace(machine, levels=(replace(inner, devices=devices), *outer))


EIGHT = servers_of(8)


def test_bytes_to_move_under_the_best_mapping(chain: Dump) -> None:
    old, new = laid_out(chain, 2, 4), laid_out(chain, 2, 2)
    found = reshard(old, new, (0, 1, 2, 3), EIGHT)
    assert round(found.identity_bytes / MIB) == 114
    assert round(found.peer_bytes / MIB) == 76
    assert [move.device for move in found.moves] == [0, 2, 1, 3]
    assert found.lost_bytes == 0


def test_what_no_survivor_holds_comes_from_storage(chain: Dump) -> None:
    old, new = laid_out(chain, 2, 4), laid_out(chain, 2, 2)
    found = reshard(old, new, (0, 1, 4, 5), EIGHT)
    assert round(found.lost_bytes / MIB) == 76


def test_the_same_layout_on_the_same_devices_moves_nothing(chain: Dump) -> None:
    old = laid_out(chain, 2, 4)
    found = reshard(old, old, range(8), EIGHT)
    assert (found.peer_bytes, found.lost_bytes, found.transfers) == (0, 0, ())
    assert [move.device for move in found.moves] == list(range(8))


def test_a_new_device_gets_all_from_peers(chain: Dump) -> None:
    old = laid_out(chain, 2, 4)
    found = reshard(old, old, (0, 1, 2, 4, 5, 6, 7), EIGHT, fresh=1)
    (fresh,) = [move for move in found.moves if move.device is None]
    assert fresh.rank == 3  # rank 7 holds the same, and keeps its device
    assert fresh.peers == found.peer_bytes == old.bytes_on(3)
    assert found.lost_bytes == 0


# -- links ---------------------------------------------------------------------------------------


def by_level(found: Resharding) -> dict[str, int]:
    return {each.level.name: each.bytes for each in found.levels}


def test_bytes_by_kind_of_link(chain: Dump) -> None:
    old, new = laid_out(chain, 2, 4), laid_out(chain, 2, 2)
    one_server = reshard(old, new, (0, 1, 2, 3), EIGHT)
    assert by_level(one_server) == {"HCCS": one_server.peer_bytes, "RoCE": 0}
    # Devices are given to ranks so that nothing has to leave a server.
    assert by_level(reshard(old, new, (0, 1, 2, 3), servers_of(2))) == by_level(one_server)
    alone = reshard(old, new, (0, 1, 2, 3), servers_of(1))
    assert by_level(alone) == {"HCCS": 0, "RoCE": one_server.peer_bytes}


def test_transfers_are_what_the_ranks_get(chain: Dump) -> None:
    old, new = laid_out(chain, 2, 4), laid_out(chain, 4, 1)
    found = reshard(old, new, (0, 1, 2, 5, 6, 7), servers_of(4))
    for move in found.moves:
        own = [each for each in found.transfers if each.rank == move.rank]
        assert sum(each.bytes for each in own) == move.peers
        assert all(each.source != move.device for each in own)
        assert all(each.source in (0, 1, 2, 5, 6, 7) for each in own)
        for each in own:
            near = each.source // 4 == (move.device or 0) // 4
            assert each.level == ("HCCS" if near else "RoCE")
    busiest = max(each.bytes for each in found.transfers)
    assert found.busiest[0].bytes == busiest


def test_equal_holders_share_the_work(chain: Dump) -> None:
    old = laid_out(chain, 8, 1)
    found = reshard(old, laid_out(chain, 16, 1), range(8), EIGHT, fresh=8)
    sent: dict[int, int] = {}
    for each in found.transfers:
        sent[each.source] = sent.get(each.source, 0) + each.bytes
    # Eight devices hold everything, and eight new ones need it.
    assert max(sent.values()) - min(sent.values()) <= old.bytes_on(0) // 2
    assert len(sent) == 8


def test_a_link_of_a_mesh_is_one_pair_and_a_ring_is_shared() -> None:
    whole: dict[int, Box] = dict.fromkeys((0, 1), ((0, 8),))
    parts = {rank: ((4 * rank, 4 * rank + 4),) for rank in (0, 1)}
    old, new = one_parameter(parts, 4), one_parameter(whole, 4)
    found = reshard(old, new, (0, 1), EIGHT)
    hccs, roce = found.levels
    assert (hccs.bytes, hccs.link, hccs.pairs) == (32, 16, 2)
    assert hccs.seconds == 16 / hccs.level.bandwidth
    assert (roce.bytes, roce.seconds) == (0, 0)


def one_parameter(boxes: dict[int, Box], item_bytes: float = 1.0) -> Holdings:
    size = max(end for box in boxes.values() for _, end in box)
    item = Holding("w", "w", (size,) * len(next(iter(boxes.values()))), item_bytes, boxes)
    return Holdings(len(boxes), 1, (item,), {}, {})


# -- boxes ---------------------------------------------------------------------------------------

boxes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda pair: (min(pair), max(pair))),
    min_size=2,
    max_size=2,
).map(tuple)
full_boxes = boxes.filter(lambda box: volume(box) > 0)


def cells(box: Box) -> set[tuple[int, ...]]:
    return set(product(*(range(start, end) for start, end in box)))


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(boxes, st.lists(boxes, max_size=5))
def test_uncovered_counts_elements(box: Box, holders: list[Box]) -> None:
    left = cells(box)
    for holder in holders:
        left -= cells(holder)
    assert uncovered(box, holders) == len(left)
    for holder in holders:
        shared = overlap(box, holder)
        assert volume(shared) if shared else len(cells(box) & cells(holder)) == 0
        assert sum(map(volume, without(box, holder))) == len(cells(box) - cells(holder))


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(st.lists(full_boxes, min_size=3, max_size=3), st.lists(full_boxes, min_size=3, max_size=3))
def test_what_moves_is_counted_element_by_element(before: list[Box], after: list[Box]) -> None:
    old, new = (
        Holdings(3, 1, (Holding("w", "w", (6, 6), 1.0, dict(enumerate(each))),), {}, {})
        for each in (before, after)
    )
    found = reshard(old, new, (0, 1, 2), servers_of(2))
    everywhere = {cell for box in before for cell in cells(box)}
    for move in found.moves:
        need, own = cells(after[move.rank]), cells(before[move.device or 0])
        assert move.local == len(need & own)
        assert move.lost == len(need - everywhere)
        assert move.peers == len((need & everywhere) - own)
    best = max(
        sum(len(cells(after[rank]) & cells(before[device])) for rank, device in enumerate(order))
        for order in permutations(range(3))
    )
    assert found.local_bytes == best


# -- assignments ---------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=1, max_size=5),
    st.integers(0, 1000),
)
def test_the_assignment_is_the_best_of_all(rows: list[list[int]], seed: int) -> None:
    costs = np.array(rows, dtype=float)
    second = np.random.default_rng(seed).integers(0, 9, costs.shape).astype(float)

    def sums(columns: tuple[int, ...]) -> tuple[float, float]:
        places = list(range(len(rows))), list(columns)
        return float(costs[places].sum()), float(second[places].sum())

    every = [sums(columns) for columns in permutations(range(5), len(rows))]
    assert sums(best_assignment(costs).columns)[0] == min(every)[0]
    assert sums(preferred(costs, second)) == min(every)


def test_more_rows_than_columns_cannot_be_assigned() -> None:
    with pytest.raises(ValueError, match="3 rows"):
        best_assignment(np.zeros((3, 2)))


# -- many devices --------------------------------------------------------------------------------


@pytest.mark.parametrize(("devices", "kept"), [(1536, 1536), (1537, 0)])
def test_the_best_mapping_is_looked_for_up_to_1536_devices(devices: int, kept: int) -> None:
    """Every rank moves on by one: its device can stay, unless ranks keep their order."""

    def held(rank: int) -> Box:
        return ((4 * rank, 4 * rank + 4),)

    old, new = (
        Holdings(devices, 1, (Holding("w", "w", (4 * devices,), 1.0, boxes),), {}, {})
        for boxes in (
            {rank: held(rank) for rank in range(devices)},
            {rank: held((rank + 1) % devices) for rank in range(devices)},
        )
    )
    moved = reshard(old, new, range(devices), EIGHT)
    assert moved.is_best == (kept > 0)
    assert moved.local_bytes == 4 * kept
    assert moved.identity_bytes == 4 * devices
    assert moved.peer_bytes == 4 * (devices - kept)


@pytest.mark.parametrize(
    ("server", "costs"),
    [
        (2, [[0, 0.5, 1, 1], [0.5, 0, 1, 1], [1, 1, 0, 0.5], [1, 1, 0.5, 0]]),
        (None, [[0, 0.5, 0.5, 0.5], [0.5, 0, 0.5, 0.5], [0.5, 0.5, 0, 0.5], [0.5, 0.5, 0.5, 0]]),
    ],
)
def test_a_rank_stays_on_its_device_or_else_its_server(
    server: int | None, costs: list[list[float]]
) -> None:
    """Without servers all devices are on one."""
    found = _second((), np.zeros((4, 4)), range(4), server)
    assert found.tolist() == costs


@pytest.mark.parametrize(
    ("server", "near"),
    [
        (2, [[6, 6, 0, 0], [4, 4, 2, 2], [0, 0, 6, 6]]),
        (1, [[4, 2, 0, 0], [0, 4, 2, 0], [0, 0, 4, 2]]),
        (None, [[6, 6, 6, 6], [6, 6, 6, 6], [6, 6, 6, 6]]),
    ],
)
def test_a_device_is_better_whose_server_holds_more_of_what_a_rank_needs(
    server: int | None, near: list[list[int]]
) -> None:
    """Of six bytes in a row each of three ranks needs, four devices hold four of them each."""
    needs: dict[int, Box] = {rank: ((4 * rank, 4 * rank + 6),) for rank in range(3)}
    holds: dict[int, Box] = {rank: ((4 * rank, 4 * rank + 4),) for rank in range(4)}
    plain = _second((), np.zeros((3, 4)), range(4), server)
    found = _second((LayoutPair(needs, holds, 1.0),), np.zeros((3, 4)), range(4), server)
    assert (plain - found).tolist() == near


def test_bytes_of_several_parameters_add_up() -> None:
    box: Box = ((0, 4),)
    pairs = [LayoutPair({0: box}, {1: box}, size) for size in (1.0, 2.5)]
    found = _second(pairs, np.zeros((1, 2)), range(2), 1)
    assert found.tolist() == [[0.0, 1.0 - 4 * 3.5]]


def test_a_device_that_is_new_holds_nothing() -> None:
    box: Box = ((0, 4),)
    found = _second([LayoutPair({0: box}, {0: box}, 1.0)], np.zeros((1, 2)), [0, None], 1)
    assert found.tolist() == [[-4.0, 1.0]]
