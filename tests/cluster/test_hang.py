"""Playing all ranks: what gets done, who waits for whom, and what is said of missing ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import irtool
from irtool.cluster.hang import HangReport, play
from irtool.cluster.ranks import Cluster, cluster_of
from irtool.ir.dump import Dump
from tests.cluster.rank_dumps import all_reduce, rank_dump, rank_text, receive, send

A, B = (0, 1), (0, 1)


def played(*dumps: Dump) -> HangReport:
    return play(cluster_of(dict(enumerate(dumps))))


def real(folder: Path, changes: dict[int, tuple[str, str]] | None = None) -> Cluster:
    """All ranks of a run folder, some with a piece of their text replaced."""
    run = irtool.load_run(folder)
    dumps: dict[int, Dump] = {}
    for rank, compilation in run.across_ranks().items():
        file = compilation.main
        dumps[rank] = compilation.read(file)
        if rank in (changes or {}):
            pattern, replacement = (changes or {})[rank]
            text = Path(file.path).read_text()
            assert re.search(pattern, text)
            dumps[rank] = irtool.load(re.sub(pattern, replacement, text, count=1).encode())
    return cluster_of(dumps)


# -- runs that get done --------------------------------------------------------------------------


def test_a_pipeline_of_two_stages_gets_done(samples: Path) -> None:
    report = play(real(samples / "pipeline_2_stages"))
    assert not report.hangs
    assert (report.played, report.stuck, report.missing_ranks) == (40, {}, ())


def test_a_pipeline_of_four_stages_gets_done_even_if_sends_wait(samples: Path) -> None:
    report = play(real(samples / "pipeline_4_stages"))
    assert not report.hangs
    assert report.needs_buffers == ()
    assert report.mismatches == report.unmatched == ()


def test_a_stage_sends_as_many_micro_batches_ahead_as_stages_follow(samples: Path) -> None:
    cluster = real(samples / "pipeline_4_stages")
    ahead: list[int] = []
    for rank in (0, 2, 4, 6):
        steps = [step.collective for step in cluster.ranks[rank].program.steps]
        pairs = [item for item in steps if item.op in ("Send", "Receive")]
        first = next(n for n, item in enumerate(pairs) if item.is_gradient)
        kinds = {"Send"} if rank == 0 else {"Receive"}
        ahead.append(sum(item.op in kinds for item in pairs[:first]))
    assert ahead == [4 - 1, 3, 2, 1]


@pytest.mark.parametrize("name", ["pipeline_interleaved", "pipeline_interleaved_gpipe"])
def test_stages_that_reuse_cells_get_done(samples: Path, name: str) -> None:
    """What orders the calls of a cell is an argument that the cell does not read."""
    report = play(real(samples / name))
    assert not report.hangs
    assert report.mismatches == report.unmatched == ()
    assert report.played == 48


def test_launch_order_counts_and_not_the_order_of_the_dump() -> None:
    one, other = all_reduce(A, group="first"), all_reduce(B, group="second")
    straight = rank_text(one, other, chained=False)
    lines = straight.split("\n")
    first = next(n for n, line in enumerate(lines) if line.startswith("  %0("))
    # The same graph, printed the other way round: Return takes the same operands.
    turned = [*lines[:first], *lines[first + 3 : first + 6], *lines[first : first + 3]]
    turned += lines[first + 6 :]
    dumps = [irtool.load(text.encode()) for text in (straight, "\n".join(turned))]
    assert [node.id for node in dumps[1].nodes()][:2] == ["%1", "%0"]
    assert not played(*dumps).hangs


# -- circles -------------------------------------------------------------------------------------


def test_two_groups_in_opposite_order_wait_in_a_circle() -> None:
    one, other = all_reduce(A, group="first"), all_reduce(B, group="second")
    report = played(rank_dump(one, other), rank_dump(other, one))
    assert report.hangs
    assert report.closed
    assert report.certain
    assert [(wait.place.rank, wait.place.party.group) for wait in report.cycle] == [
        (0, "first"),
        (1, "second"),
    ]
    assert report.cycle[0].waits_for == 1
    location = report.cycle[0].place.collective.node.location
    assert location is not None
    assert (location.path, location.line) == ("net.py", 1)


def test_independent_groups_in_opposite_order_hang_unless_streams_are_their_own() -> None:
    one, other = all_reduce(A, group="first"), all_reduce(B, group="second")
    report = played(rank_dump(one, other, chained=False), rank_dump(other, one, chained=False))
    assert report.hangs
    assert not report.certain


def test_a_circle_over_three_ranks_and_groups_names_all_three() -> None:
    ab, bc, ca = (all_reduce(ranks) for ranks in ((0, 1), (1, 2), (0, 2)))
    report = played(rank_dump(ab, ca), rank_dump(bc, ab), rank_dump(ca, bc))
    assert report.hangs
    assert {wait.place.rank for wait in report.cycle} == {0, 1, 2}


def test_what_only_leads_to_a_circle_is_no_part_of_it() -> None:
    one, other = all_reduce((0, 1), group="first"), all_reduce((0, 1), group="second")
    waits = all_reduce((1, 2))
    report = played(rank_dump(one, other), rank_dump(other, one, waits), rank_dump(waits))
    assert {wait.place.rank for wait in report.cycle} == {0, 1}
    assert report.stuck == {0: 2, 1: 3, 2: 1}


def test_receives_before_sends_on_both_sides_wait_in_a_circle() -> None:
    report = played(
        rank_dump(receive(1, 7), send(1, 8)),
        rank_dump(receive(0, 8), send(0, 7)),
    )
    assert report.hangs
    assert {wait.place.op for wait in report.cycle} == {"Receive"}


def test_sends_first_on_both_sides_only_need_buffers() -> None:
    report = played(
        rank_dump(send(1, 8), receive(1, 7)),
        rank_dump(send(0, 7), receive(0, 8)),
    )
    assert not report.hangs
    assert {wait.place.op for wait in report.needs_buffers} == {"Send"}


# -- what is missing -----------------------------------------------------------------------------


def test_a_missing_receive_is_found_in_a_real_pipeline(samples: Path) -> None:
    # A Receive of rank 2 becomes an operator that communicates nothing.
    change = (r"= Receive\(%(\d+)\)", r"= ReLU(%\1)")
    report = play(real(samples / "pipeline_2_stages", {2: change}))
    assert report.hangs
    (missing,) = [item for item in report.unmatched if item.send is not None]
    assert (missing.sender, missing.receiver) == (0, 2)
    assert missing.receive is None


def test_a_receive_that_nobody_sends_to_stops_the_rank_for_good() -> None:
    report = played(rank_dump(all_reduce(A)), rank_dump(receive(0, 5), all_reduce(A)))
    assert report.hangs
    assert report.cycle[-1].reason == "rank 0 has no Send to rank 1 with tag 5"
    assert not report.closed


def test_a_wrong_rank_list_is_found_in_a_real_pipeline(samples: Path) -> None:
    change = (r"rank_list: \(0, 1\)", "rank_list: (1, 2)")
    report = play(real(samples / "pipeline_2_stages", {1: change}))
    assert report.hangs
    assert {item.kind for item in report.mismatches} == {"name", "members"}
    assert report.cycle[-1].place.rank == 1
    assert report.cycle[-1].reason == "rank 2 communicates nothing in that group"


def test_a_member_with_fewer_collectives_is_named() -> None:
    one = all_reduce(A)
    report = played(rank_dump(one, one, one), rank_dump(one, one))
    assert report.hangs
    (found,) = report.mismatches
    assert found.kind == "count"
    assert found.message == ("rank 0 has 3 collectives in the group, rank 1 has 2")
    assert report.cycle[-1].reason == "rank 1 has fewer collectives in that group"


def test_members_that_reduce_different_shapes_do_not_fit() -> None:
    report = played(rank_dump(all_reduce(A)), rank_dump(all_reduce(A, shape=(8, 64))))
    (found,) = report.mismatches
    assert report.hangs
    assert found.kind == "shape"
    assert "[4,64]" in found.message
    assert "[8,64]" in found.message


def test_a_receive_of_another_type_does_not_fit() -> None:
    report = played(rank_dump(send(1)), rank_dump(receive(0, dtype="Float16")))
    (found,) = report.unfit
    assert report.hangs
    assert found.mismatch == "Float32 is sent, Float16 expected"


def test_tags_that_cross_are_told_of() -> None:
    report = played(
        rank_dump(send(1, 1), send(1, 2)),
        rank_dump(receive(0, 2), receive(0, 1)),
    )
    assert not report.hangs
    assert [item.kind for item in report.crossed] == ["order"]


def test_ranks_without_dumps_are_said_and_taken_to_do_their_part(samples: Path) -> None:
    report = play(real(samples / "pipeline_run"))
    assert not report.hangs
    assert report.missing_ranks == (1, 2, 3, 5, 6, 7)
