"""Sends and Receives of stages: which go together, and why others do not."""

from __future__ import annotations

import pytest

from irtool.cluster.pipeline.stage_transfers import Ends, Transfers, transfers
from irtool.cluster.ranks import cluster_of
from tests.cluster.rank_dumps import Do, rank_dump, receive, send


def ends(rank: int, stage: int, *steps: Do, ranks: tuple[int, ...] = ()) -> Ends:
    """One class of ranks, and what its first communicates."""
    program = cluster_of({rank: rank_dump(*steps)}, 8).ranks[rank].program
    return Ends(rank, stage, ranks or (rank,), [step.collective for step in program.steps])


def told(found: Transfers) -> list[tuple[int, int | None, str, bool]]:
    return [(one.rank, one.peer, one.why, one.is_certain) for one in found.unmatched]


def test_equal_transfers_of_two_stages_are_one_with_a_count() -> None:
    found = transfers([ends(0, 0, send(4), send(4)), ends(4, 1, receive(0), receive(0))])
    (item,) = found.items
    assert (item.from_stage, item.to_stage, item.direction) == (0, 1, "forward")
    assert (item.count, item.bytes, item.ranks) == (2, 2 * 4 * 64 * 4, (0, 4))
    assert (found.matched, found.unmatched) == (2, ())


def test_other_sizes_are_another_transfer() -> None:
    large = {"shape": (8, 64)}
    found = transfers(
        [ends(0, 0, send(4), send(4, **large)), ends(4, 1, receive(0), receive(0, **large))]
    )
    assert [(item.count, item.shape) for item in found.items] == [(1, (4, 64)), (1, (8, 64))]


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (receive(0, shape=(4, 32)), "rank 4 receives Float32[4, 32]"),
        (receive(0, dtype="Float16"), "rank 4 receives Float16[4, 64]"),
    ],
)
def test_what_is_taken_as_something_else_is_told(taken: Do, why: str) -> None:
    found = transfers([ends(0, 0, send(4)), ends(4, 1, taken)])
    assert (found.items, told(found)) == ((), [(0, 4, why, True)])


def test_a_send_or_a_receive_without_the_other_is_told() -> None:
    found = transfers([ends(0, 0, send(4, 1)), ends(4, 1, receive(0, 2))])
    assert told(found) == [(0, 4, "no Receive", True), (4, 0, "no Send", True)]


def test_without_the_dump_of_the_other_end_nothing_is_certain() -> None:
    found = transfers([ends(0, 0, send(4), receive(2))])
    assert [certain for *_, certain in told(found)] == [False, False]
    assert told(found)[0] == (0, 4, "no dump of rank 4", False)


def test_ranks_of_one_class_are_represented_by_one() -> None:
    found = transfers(
        [
            ends(0, 0, send(2), ranks=(0, 1)),
            ends(2, 1, receive(0), ranks=(2,)),
            ends(3, 1, receive(1, shape=(4, 32)), ranks=(3,)),
        ]
    )
    assert found.matched == 1
    assert told(found) == [(1, 3, "rank 3 receives Float32[4, 32]", True)]
