"""Groups that lie across nodes without need, on a machine of nodes of eight with known prices."""

from __future__ import annotations

import pytest

from irtool.cluster.machine import default_machine
from irtool.cluster.ranks import cluster_of
from irtool.cluster.spread_groups import SpreadGroup, spread_groups
from tests.cluster.rank_dumps import Do, rank_dump

MACHINE = default_machine()
MIB = 1 << 20
IN_LAYER, OF_WEIGHT = "forward_op_1", "mirror_1"
LARGE = (1024, 1024)
"""4 MiB."""


def reduced(ranks: tuple[int, ...], instance: str = IN_LAYER) -> Do:
    return Do("AllReduce", ranks, shape=LARGE, instance=instance)


def spread(*steps: Do) -> tuple[SpreadGroup, ...]:
    return spread_groups(cluster_of({0: rank_dump(*steps)}, 16).ranks[0], MACHINE)


def test_a_pair_across_nodes_becomes_neighbours() -> None:
    (group,) = spread(reduced((0, 8)))
    assert (group.ranks, group.nodes) == ((0, 8), 2)
    assert group.before == MACHINE.seconds("AllReduce", 4 * MIB, (0, 8))
    assert group.after == MACHINE.seconds("AllReduce", 4 * MIB, (0, 1))
    assert group.saved > 0


def test_what_then_lies_apart_is_counted() -> None:
    eight = tuple(range(8))
    (group,) = spread(reduced((0, 8)), reduced(eight, OF_WEIGHT))
    evens = tuple(range(0, 16, 2))
    assert group.after == pytest.approx(
        MACHINE.seconds("AllReduce", 4 * MIB, (0, 1)) + MACHINE.seconds("AllReduce", 4 * MIB, evens)
    )


def test_gradients_of_a_group_start_once() -> None:
    mirrors = [reduced((0, 4), OF_WEIGHT)] * 2
    (group,) = spread(reduced((0, 8)), *mirrors)
    assert group.before == pytest.approx(
        MACHINE.seconds("AllReduce", 4 * MIB, (0, 8))
        + MACHINE.seconds("AllReduce", 8 * MIB, (0, 4))
    )


@pytest.mark.parametrize(
    "steps",
    [
        [reduced((0, 1))],  # inside a node
        [reduced((0, 8), OF_WEIGHT)],  # no layer waits for it
        [reduced(tuple(range(16)))],  # no node holds so many
        [reduced((0, 3, 8))],  # no axis of a device matrix
    ],
)
def test_others_stay_where_they_are(steps: list[Do]) -> None:
    assert spread(*steps) == ()


def test_the_dearest_group_comes_first() -> None:
    small = Do("AllReduce", (0, 4, 8, 12), shape=(4, 4), instance=IN_LAYER)
    for steps in ([small, reduced((0, 8))], [reduced((0, 8)), small]):
        found = spread(*steps)
        assert {group.ranks for group in found} == {(0, 8), (0, 4, 8, 12)}
        assert found[0].saved > found[1].saved
