"""Plays of random runs against the simplest machine: who meets at the head of every queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cluster.hang import HangReport, play
from irtool.cluster.ranks import cluster_of
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
        (SAME, "max", "reduction", False),
        (all_reduce(BOTH, shape=(4, 32)), "", "shape", True),
        (all_reduce(BOTH, dtype="Float16"), "", "dtype", True),
        (Do("AllGather", BOTH), "", "operator", True),
    ],
)
def test_members_of_a_group_agree_on_what_they_do(
    other: Do, turned: str, kind: str | None, hangs: bool
) -> None:
    """Another reduction gives other numbers on each side: it is told, though nobody waits."""
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
