"""Where a run that hangs stops, who left the common script, and how."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import irtool
from irtool.cluster.hang import HangReport, play
from irtool.cluster.hang.script import Departure, departures, stages_of
from irtool.cluster.ranks import cluster_of
from tests.cluster.rank_dumps import Do, all_reduce, rank_dump, rank_text, receive, send

WORLD = (0, 1, 2)


def played(*programs: Sequence[Do]) -> HangReport:
    return play(cluster_of({rank: rank_dump(*steps) for rank, steps in enumerate(programs)}))


def usual(*shapes: int, odd: int = -1) -> list[Do]:
    """AllReduces of all ranks; the one of number ``odd`` has another shape."""
    return [all_reduce(WORLD, shape=(4, 99 if n == odd else s)) for n, s in enumerate(shapes)]


def test_a_run_that_gets_done_is_blocked_nowhere_and_has_no_odd_rank() -> None:
    report = played(usual(8, 16), usual(8, 16), usual(8, 16))
    assert (report.hangs, report.blocked, report.left, report.odd_ranks) == (False, None, (), ())


def test_the_first_collective_on_which_members_disagree_is_where_it_stops() -> None:
    report = played(usual(8, 16, 32), usual(8, 16, 32, odd=1), usual(8, 16, 32))
    assert report.blocked is not None
    assert (report.blocked.index, report.odd_ranks) == (1, (1,))
    assert [(member.rank, member.state) for member in report.blocked.members] == [
        (0, "waits"),
        (1, "waits"),
        (2, "waits"),
    ]
    assert report.stuck == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize(
    ("odd", "kind", "words"),
    [
        (usual(8, 16, 32, odd=1), "size", "[4,99] instead of [4,16]"),
        ([*usual(8), Do("AllGather", WORLD, shape=(4, 16)), *usual(32)], "operator", "AllGather"),
        (usual(8, 32), "fewer", "1 communication fewer"),
        (usual(8, 64, 16, 32), "more", "1 communication more"),
        (usual(8, 32, 16), "order", "comes before"),
        (
            [*usual(8), all_reduce(WORLD, shape=(4, 16), dtype="Float16"), *usual(32)],
            "type",
            "Float16 instead of Float32",
        ),
        (
            [*usual(8), all_reduce((1, 2), shape=(4, 16)), *usual(32)],
            "group",
            "the group of ranks 1,2 instead of",
        ),
    ],
)
def test_how_a_rank_leaves_the_script_is_named(odd: list[Do], kind: str, words: str) -> None:
    report = played(usual(8, 16, 32), odd, usual(8, 16, 32))
    (departure,) = report.left
    assert report.hangs
    assert (departure.kind, departure.ranks, departure.common) == (kind, (1,), (0, 2))
    assert words in departure.text
    assert report.odd_ranks == (1,)
    assert report.blocked is not None
    assert departure.text in report.blocked.why


def test_another_reduction_is_named() -> None:
    dumps = {rank: rank_dump(*usual(8)) for rank in WORLD}
    dumps[2] = irtool.load(rank_text(*usual(8)).replace('op: "sum"', 'op: "max"').encode())
    report = play(cluster_of(dumps))
    assert [item.kind for item in report.left] == ["reduction"]
    assert report.odd_ranks == (2,)


def test_of_two_that_part_nobody_is_odd() -> None:
    pair = (0, 1)
    report = played(
        [all_reduce(pair), all_reduce(pair, shape=(2, 2))],
        [all_reduce(pair), all_reduce(pair, shape=(3, 3))],
    )
    assert report.odd_ranks == ()
    assert [item.certain for item in report.left] == [False]
    assert report.blocked is not None
    assert "no side has more ranks" in report.blocked.why


def test_ranks_that_leave_alike_are_told_once() -> None:
    five = tuple(range(5))
    left = [all_reduce(five, shape=(1, 1))]
    report = played(*([all_reduce(five)] if rank in (0, 2, 4) else left for rank in five))
    assert [(item.ranks, item.common) for item in report.left] == [((1, 3), (0, 2, 4))]


def test_what_comes_after_the_first_disagreement_is_never_done() -> None:
    """Two groups: the second one agrees, and waits for the first all the same."""
    one, other = (0, 1), (1, 2)
    report = played(
        [all_reduce(one)],
        [all_reduce(one, shape=(2, 2)), all_reduce(other)],
        [all_reduce(other)],
    )
    assert report.blocked is not None
    assert [member.rank for member in report.blocked.members] == [0, 1]
    assert tuple(report.stuck) == (0, 1, 2)


def test_a_transfer_without_its_other_end_is_where_it_stops() -> None:
    report = played([send(1, 0)], [receive(0, 0), receive(0, 1)])
    assert report.blocked is not None
    assert report.blocked.peers == (0, 1)
    assert [(member.rank, member.state) for member in report.blocked.members] == [
        (0, "done"),
        (1, "waits"),
    ]


def test_of_a_send_that_waits_the_sender_is_the_first_end() -> None:
    report = played([receive(1, 0)], [send(0, 0), send(0, 1)])
    assert report.blocked is not None
    assert report.blocked.peers == (1, 0)
    assert [(member.rank, member.state) for member in report.blocked.members] == [
        (1, "waits"),
        (0, "done"),
    ]


def test_stages_are_told_by_how_far_apart_ranks_send() -> None:
    cluster = cluster_of(
        {rank: rank_dump(send(rank + 2) if rank < 2 else receive(rank - 2)) for rank in range(4)}
    )
    assert stages_of(cluster) == {0: 0, 1: 0, 2: 1, 3: 1}


def test_without_transfers_there_is_one_stage() -> None:
    assert stages_of(cluster_of({0: rank_dump(all_reduce((0, 1)))})) == {0: 0}


# -- stages ---------------------------------------------------------------------------------------


def pipeline(
    *micro_batches: int, width: int = 1, odd: dict[int, int] | None = None
) -> tuple[Departure, ...]:
    """Who leaves the script, where each stage sends so many micro-batches to the next.

    ``odd``: ranks that work through another number of them.
    """

    def steps(stage: int, count: int, place: int) -> list[Do]:
        rank, found = stage * width + place, list[Do]()
        for micro in range(count):
            if stage:
                found.append(receive(rank - width, micro, micro=micro))
            if stage < len(micro_batches) - 1:
                found.append(send(rank + width, micro, micro=micro))
        return found

    return departures(
        cluster_of(
            {
                stage * width + place: rank_dump(
                    *steps(stage, (odd or {}).get(stage * width + place, count), place)
                )
                for stage, count in enumerate(micro_batches)
                for place in range(width)
            }
        )
    )


def test_stages_that_work_through_as_many_micro_batches_agree() -> None:
    assert pipeline(2, 2, 2) == ()


@pytest.mark.parametrize("width", [1, 2])
def test_a_stage_with_another_number_of_micro_batches_is_named(width: int) -> None:
    (left,) = pipeline(2, 2, 3, width=width)
    assert left.ranks == tuple(range(2 * width, 3 * width))
    assert left.common == tuple(range(2 * width))
    assert (left.kind, left.certain, left.index) == ("micro-batches", True, 0)
    assert left.text == "3 micro-batches instead of 2"
    assert left.here is not None
    assert left.here.rank == 2 * width


def test_of_two_stages_that_part_nobody_knows_which_is_wrong() -> None:
    (left,) = pipeline(3, 2)
    assert (left.ranks, left.common, left.certain) == ((1,), (0,), False)
    assert left.text == "2 micro-batches instead of 3"


@pytest.mark.parametrize("rank", [0, 1])
def test_of_two_ranks_of_a_stage_the_one_is_odd_that_no_other_stage_agrees_with(rank: int) -> None:
    (left,) = pipeline(4, 4, width=2, odd={rank: 2})
    assert (left.ranks, left.common, left.certain) == ((rank,), (1 - rank,), True)
    assert (left.setting, left.value) == ("micro_size", 4)


def test_nobody_is_odd_where_the_other_stages_agree_with_neither() -> None:
    found = pipeline(4, 3, width=2, odd={1: 2})
    assert not any(left.certain for left in found)


WHOLE, OTHER = all_reduce((0, 1)), all_reduce((0, 1), shape=(2, 2))


def two_by_two(weights: dict[int, tuple[str, ...]]) -> tuple[Departure, ...]:
    """Two stages of two ranks; those of the first disagree, and hold these weights."""
    steps = {
        0: [WHOLE, send(2)], 1: [OTHER, send(3)],
        2: [receive(0), all_reduce((2, 3))], 3: [receive(1), all_reduce((2, 3))],
    }  # fmt: skip
    return departures(
        cluster_of({rank: rank_dump(*some, weights=weights.get(rank, ())) for rank, some
                    in steps.items()})
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "odd"),
    [
        (("a", "b"), ("a", "c"), 1),  # c stands on the other stage
        (("a", "c"), ("a", "b"), 0),
        (("a", "b"), ("a",), 1),  # b stands nowhere else
        (("a",), ("a", "b"), 0),
    ],
)
def test_of_two_that_part_the_one_with_weights_of_another_stage_is_odd(
    first: tuple[str, ...], second: tuple[str, ...], odd: int
) -> None:
    """Each weight stands on one stage."""
    (left,) = two_by_two({0: first, 1: second, 2: ("c",), 3: ("c",)})
    assert (left.ranks, left.common, left.certain) == ((odd,), (1 - odd,), True)


def test_of_two_that_part_with_the_same_weights_nobody_is_odd() -> None:
    (left,) = two_by_two({0: ("a", "b"), 1: ("a", "b"), 2: ("c",), 3: ("c",)})
    assert not left.certain
