"""Plays of random runs against the simplest machine: who meets at the head of every queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cluster.hang import HangReport, play
from irtool.cluster.hang.script import departures
from irtool.cluster.matching import transfers
from irtool.cluster.ranks import cluster_of, least_world
from irtool.ir.group_names import group_name
from tests.cluster.rank_dumps import Do, all_reduce, rank_dump, rank_text, receive, send

GROUPS = [(0, 1), (1, 2), (0, 2), (0, 1, 2)]
Programs = Sequence[Sequence[tuple[int, ...]]]


def left_over(programs: Programs) -> dict[int, int]:
    """Collectives that are never done, by rank, if each waits for the one before it."""
    queues = [list(program) for program in programs]
    goes_on = True
    while goes_on:
        goes_on = False
        for group in GROUPS:
            if all(queues[rank] and queues[rank][0] == group for rank in group):
                for rank in group:
                    queues[rank].pop(0)
                goes_on = True
    return {rank: len(queue) for rank, queue in enumerate(queues) if queue}


@st.composite
def runs(draw: st.DrawFn) -> Programs:
    """Three ranks that take part in the same collectives, now and then in another order."""
    order = draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=5))
    programs = [[group for group in order if rank in group] for rank in range(3)]
    for program in programs:
        if len(program) > 1 and draw(st.booleans()):
            place = draw(st.integers(0, len(program) - 2))
            program[place : place + 2] = reversed(program[place : place + 2])
        if len(program) > 1 and draw(st.integers(0, 5)) == 0:
            program.pop()
    return [program or [(rank,)] for rank, program in enumerate(programs)]


@settings(max_examples=60)
@given(runs())
def test_what_gets_done_is_what_meets_at_the_head_of_every_queue(programs: Programs) -> None:
    dumps = {
        rank: rank_dump(*(all_reduce(group) for group in program))
        for rank, program in enumerate(programs)
    }
    report = play(cluster_of(dumps))
    whole = [[group for group in program if len(group) > 1] for program in programs]
    expected = left_over(whole)
    assert {rank: n for rank, n in report.stuck.items() if n} == expected
    counts = Counter(group for program in whole for group in program)
    uneven = any(counts[group] % len(group) for group in counts)
    if expected:
        assert report.hangs
        assert report.cycle
    elif not uneven:
        assert not report.hangs
        assert report.cycle == ()
    assert report.played == sum(map(len, programs))
    assert report.counts == {rank: len(program) for rank, program in enumerate(programs)}


# -- what the members of a group must agree on -----------------------------------------------------


def pair(left: Do, right: Do, *, turned: str = "") -> HangReport:
    """Two ranks that meet once; the second reduces otherwise if ``turned`` says how."""
    text = rank_text(right)
    if turned:
        text = text.replace('op: "sum"', f'op: "{turned}"')
    return play(cluster_of({0: rank_dump(left), 1: irtool.load(text.encode())}))


BOTH = (0, 1)
SAME = all_reduce(BOTH)


@pytest.mark.parametrize(
    ("other", "turned", "kind", "hangs"),
    [
        (SAME, "", None, False),
        (SAME, "max", "reduction", True),
        (all_reduce(BOTH, shape=(4, 32)), "", "shape", True),
        (all_reduce(BOTH, dtype="Float16"), "", "dtype", True),
        (Do("AllGather", BOTH), "", "operator", True),
    ],
)
def test_members_of_a_group_agree_on_what_they_do(
    other: Do, turned: str, kind: str | None, hangs: bool
) -> None:
    """Another reduction is refused by some backends and gives wrong numbers with others."""
    report = pair(SAME, other, turned=turned)
    assert [item.kind for item in report.mismatches] == ([kind] if kind else [])
    assert report.hangs == report.certain == hangs


@pytest.mark.parametrize(
    ("taken", "fits"),
    [
        (receive(0, 3), True),
        (receive(0, 4), False),
        (receive(0, 3, shape=(4, 32)), False),
        (receive(0, 3, dtype="Float16"), False),
    ],
)
def test_a_transfer_has_two_ends_of_one_tag_type_and_shape(taken: Do, fits: bool) -> None:
    report = play(cluster_of({0: rank_dump(send(1, 3)), 1: rank_dump(taken)}))
    assert report.hangs == (not fits)
    same_tag = taken.tag == 3
    assert len(report.unmatched) == (0 if same_tag else 2)
    assert len(report.unfit) == (1 if same_tag and not fits else 0)


@pytest.mark.parametrize(("ahead", "waits"), [(True, True), (False, False)])
def test_sends_on_both_sides_before_the_receives_need_buffers(ahead: bool, waits: bool) -> None:
    """A Send that has to wait for its Receive waits for ever if both sides send first."""
    first = (send(1), receive(1)) if ahead else (receive(1), send(1))
    report = play(cluster_of({0: rank_dump(*first), 1: rank_dump(send(0, 0), receive(0, 0))}))
    assert not report.hangs
    assert bool(report.needs_buffers) == waits


# -- what is told of transfers ---------------------------------------------------------------------


def ends(sent: Sequence[int], received: Sequence[int]) -> HangReport:
    """Rank 0 sends these tags in turn, rank 1 receives those."""
    return play(
        cluster_of(
            {
                0: rank_dump(*(send(1, tag) for tag in sent)),
                1: rank_dump(*(receive(0, tag) for tag in received)),
            }
        )
    )


@pytest.mark.parametrize(
    ("sent", "received", "shifted"),
    [
        ((0, 1), (2, 3), ((0, 1, 2),)),
        ((5, 2, 9), (6, 10, 3), ((0, 1, 1),)),
        ((0, 1), (2, 4), ()),
        ((0,), (1,), ()),
        ((0, 1), (2,), ()),
        ((0, 1), (0, 1), ()),
    ],
)
def test_tags_that_all_differ_by_one_number_are_of_two_compilations(
    sent: Sequence[int], received: Sequence[int], shifted: tuple[tuple[int, int, int], ...]
) -> None:
    report = ends(sent, received)
    assert report.shifted == shifted
    assert len(report.unmatched) == len(set(sent) ^ set(received))


@pytest.mark.parametrize(
    ("sent", "received", "index"),
    [((0, 1, 2), (0, 2, 1), 1), ((0, 1), (1, 0), 0), ((0, 1, 2), (0, 1, 2), None)],
)
def test_tags_that_cross_are_told_from_the_first_that_does(
    sent: Sequence[int], received: Sequence[int], index: int | None
) -> None:
    report = ends(sent, received)
    assert [item.index for item in report.crossed] == ([] if index is None else [index])
    for item in report.crossed:
        assert item.right is not None
        assert (item.left.op, item.right.op, item.right_rank) == ("Send", "Receive", 1)
        assert item.message == (
            f"rank 0 sends tag {sent[item.index]} to rank 1 where that expects tag "
            f"{received[item.index]}"
        )


@pytest.mark.parametrize("op", ["Send", "Receive"])
def test_a_peer_without_a_dump_is_taken_to_do_its_part(op: str) -> None:
    report = play(cluster_of({0: rank_dump(send(7) if op == "Send" else receive(7))}))
    assert not report.hangs
    assert report.unmatched == report.mismatches == ()
    assert 7 in report.missing_ranks


@pytest.mark.parametrize("op", ["Send", "Receive"])
def test_a_transfer_to_nobody_known_is_no_missing_end(op: str) -> None:
    (transfer,) = transfers(cluster_of({0: rank_dump(send(-1) if op == "Send" else receive(-1))}))
    ours = transfer.send if op == "Send" else transfer.receive
    assert ours is not None
    assert ours.rank == 0
    assert not transfer.matched
    assert not transfer.known


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        ((send(1, 3), receive(1, 4)), "rank 1 has no Send to rank 0 with tag 4"),
        ((all_reduce((0, 1)),), "rank 1 communicates nothing in that group"),
        (
            (all_reduce((0, 2), group="g"), all_reduce((0, 1), group="g")),
            "rank 1 has another group under that name: ranks (1, 2)",
        ),
    ],
)
def test_what_never_comes_is_named(waiting: Sequence[Do], reason: str) -> None:
    others = {
        1: [receive(0, 3), all_reduce((1, 2), group="g")],
        2: [all_reduce((0, 2), group="g"), all_reduce((1, 2), group="g")],
    }
    dumps = {0: rank_dump(*waiting), **{rank: rank_dump(*some) for rank, some in others.items()}}
    report = play(cluster_of(dumps))
    assert report.hangs
    assert reason in [wait.reason for wait in report.cycle]
    assert not report.closed


def test_a_group_with_the_name_of_other_ranks_is_told() -> None:
    wrong = group_name((2, 3))
    report = play(cluster_of({rank: rank_dump(all_reduce((0, 1), group=wrong)) for rank in (0, 1)}))
    assert [(item.kind, item.left.rank) for item in report.mismatches] == [("name", 0), ("name", 1)]
    assert not report.hangs
    stranger = play(cluster_of({0: rank_dump(all_reduce((1, 2), group="mine"))}))
    assert [item.kind for item in stranger.mismatches] == ["not a member"]
    assert stranger.hangs


def test_optimizer_parallel_on_one_rank_alone_is_named() -> None:
    gather = Do("AllGather", (0, 1), instance="parallel_optimizer_1")
    common = all_reduce((0, 1))
    (left,) = departures(cluster_of({0: rank_dump(common), 1: rank_dump(gather, common)}, 2))
    assert left.setting == "enable_parallel_optimizer"
    assert (
        "optimizer parallel cuts weights on rank 1, none on rank 0: it is off there, or"
        in left.text
    )
    both = cluster_of({0: rank_dump(gather, common), 1: rank_dump(gather)}, 2)
    assert departures(both)[0].setting == ""


@pytest.mark.parametrize(
    ("ranks", "devices"),
    [
        ((5,), 6),
        ((0, 1), 2),
        ((0, 2), 4),
        ((0, 128), 256),
        ((1, 3, 5, 7), 8),
        ((7, 5, 3, 1), 8),
        ((0, 1, 4, 5), 8),  # along two axes
        ((8, 9, 12, 13), 16),  # in the second block
        ((0, 1, 2, 3, 8, 9, 10, 11), 16),
        ((0, 4, 8, 12, 16, 20), 24),
        ((0, 3), 4),  # no cluster has six devices
        ((0, 6), 7),  # nor twelve
        ((0, 1, 3), 4),  # along no axes
        ((0, 1, 3, 4), 5),
        ((0, 2, 3, 5), 6),
        ((0, 1, 8, 9, 16), 17),
        ((3, 4), 5),  # across two blocks
    ],
)
def test_a_group_along_axes_fills_the_devices_that_they_make(
    ranks: tuple[int, ...], devices: int
) -> None:
    assert least_world(ranks) == devices


@pytest.mark.parametrize(
    ("steps", "devices", "exact"),
    [
        ([all_reduce((0, 1))], 2, False),
        ([all_reduce((0, 5))], 6, False),
        ([all_reduce((0, 2, 4, 6))], 8, False),  # every second one: one more holds the last
        ([all_reduce((0, 2, 4, 6)), send(1)], 7, False),  # but between stages some are left out
        ([send(7)], 8, False),  # a peer is a rank, too
        ([receive(7)], 8, False),
        ([send(7), all_reduce((0, 9))], 10, False),
        ([all_reduce((0, 1, 2, 3), group="hccl_world_group")], 4, True),
    ],
)
def test_there_are_as_many_devices_as_anything_tells(
    steps: Sequence[Do], devices: int, exact: bool
) -> None:
    found = cluster_of({0: rank_dump(*steps)})
    assert (found.devices, found.exact) == (devices, exact)
    told = cluster_of({0: rank_dump(*steps)}, 32)
    assert (told.devices, told.exact) == (32, True)


@pytest.mark.parametrize("is_more", [True, False])
@pytest.mark.parametrize(("before", "others"), [(2, 0), (0, 1), (1, 1)])
def test_where_a_rank_leaves_what_both_do_there_is_told_until_one_is_through(
    before: int, others: int, is_more: bool
) -> None:
    """Rank 2 does one more, or less, between what all three do."""
    whole = [all_reduce((0, 1, 2)) for _ in range(before)]
    rest = [Do("AllGather", (0, 1, 2)) for _ in range(others)]
    own = Do("ReduceScatter", (0, 1, 2))
    longer, shorter = [*whole, own, *rest], [*whole, *rest]
    programs = dict.fromkeys((0, 1), shorter if is_more else longer)
    programs[2] = longer if is_more else shorter
    (left,) = departures(cluster_of({rank: rank_dump(*some) for rank, some in programs.items()}, 3))
    assert (left.ranks, left.common, left.certain) == ((2,), (0, 1), True)
    assert (left.kind, left.index) == ("more" if is_more else "fewer", before)
    ops = [None if one is None else one.op for one in (left.here, left.there)]
    next_one = "AllGather" if others else None
    assert ops == (["ReduceScatter", next_one] if is_more else [next_one, "ReduceScatter"])
