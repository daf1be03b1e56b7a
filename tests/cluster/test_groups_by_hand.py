"""What four ranks communicate: rows, totals, kinds, groups and names, each counted by hand.

A tensor of 4 × 64 Float32 has 1,024 bytes; the machine is one of nodes of eight.
"""

from __future__ import annotations

import pytest

from irtool.cluster.groups import (
    GroupReport,
    Total,
    exchange,
    group_report,
    named_group,
)
from irtool.cluster.machine import default_machine
from irtool.cluster.matching import disagreements, transfers
from irtool.cluster.ranks import Cluster, cluster_of, single
from irtool.ir.group_names import group_name
from tests.cluster.rank_dumps import Do, all_reduce, rank_dump, receive, send

MACHINE = default_machine()
PAIR, ACROSS = (0, 1), (0, 1, 8, 9)
KB = 1024


def cluster() -> Cluster:
    """Two pairs, each inside a node, and all four across nodes; 0 sends to 8."""
    dumps = {}
    for rank in ACROSS:
        pair = (0, 1) if rank < 8 else (8, 9)
        steps = [all_reduce(pair), all_reduce(pair, shape=(8, 64)), Do("AllGather", ACROSS)]
        steps += [send(8, 3)] if rank == 0 else [receive(0, 3)] if rank == 8 else []
        dumps[rank] = rank_dump(*steps)
    return cluster_of(dumps, 16)


@pytest.fixture(scope="module")
def report() -> GroupReport:
    return group_report(cluster(), MACHINE)


# -- rows ----------------------------------------------------------------------------------------


def test_rows_are_those_of_each_rank_in_launch_order(report: GroupReport) -> None:
    rows = [
        (row.rank, row.alike, row.collective.op, row.collective.bytes, row.level, row.stream)
        for row in report.rows
    ]
    pair = [("AllReduce", KB, "HCCS", 1), ("AllReduce", 2 * KB, "HCCS", 1),
            ("AllGather", KB, "RoCE", 2)]  # fmt: skip
    assert rows == [
        *((0, 1, *row) for row in [*pair, ("Send", KB, "RoCE", 3)]),
        *((1, 1, *row) for row in pair),
        *((8, 1, *row) for row in [*pair, ("Receive", KB, "RoCE", 3)]),
        *((9, 1, *row) for row in pair),
    ]
    assert not any(row.conditional for row in report.rows)
    assert report.ranks == ACROSS
    assert report.missing == tuple(rank for rank in range(16) if rank not in ACROSS)
    assert (report.devices, report.is_exact, report.partial) == (16, True, "")


def test_one_dump_speaks_for_one_rank(report: GroupReport) -> None:
    alone = group_report(single(rank_dump(all_reduce(PAIR)), 1, 16), MACHINE)
    assert [(row.rank, row.alike) for row in alone.rows] == [(1, 1)]
    assert alone.total == Total(1, KB, alone.rows[0].seconds or 0.0, 0)


# -- totals --------------------------------------------------------------------------------------


def test_totals_by_link_count_every_rank(report: GroupReport) -> None:
    seconds = {
        level: sum(row.seconds or 0.0 for row in report.rows if row.level == level)
        for level in ("RoCE", "HCCS")
    }
    assert report.by_level == {
        "RoCE": Total(6, 6 * KB, pytest.approx(seconds["RoCE"]), 0),  # type: ignore[arg-type]
        "HCCS": Total(8, 12 * KB, pytest.approx(seconds["HCCS"]), 0),  # type: ignore[arg-type]
    }
    assert list(report.by_level) == sorted(seconds, key=lambda level: -seconds[level])
    assert all((row.seconds or 0.0) > 0 for row in report.rows)


def test_totals_by_axis_add_up_to_the_same(report: GroupReport) -> None:
    assert set(report.by_axis) == {"unknown", "pipeline"}
    assert (report.by_axis["pipeline"].count, report.by_axis["pipeline"].bytes) == (2, 2 * KB)
    assert (report.by_axis["unknown"].count, report.by_axis["unknown"].bytes) == (12, 16 * KB)
    assert {key: (one.count, one.bytes) for key, one in report.by_axis_and_level.items()} == {
        ("unknown", "HCCS"): (8, 12 * KB), ("unknown", "RoCE"): (4, 4 * KB),
        ("pipeline", "RoCE"): (2, 2 * KB),
    }  # fmt: skip
    total = report.total
    assert (total.count, total.bytes, total.unknown) == (14, 18 * KB, 0)
    assert total.seconds == pytest.approx(sum(row.seconds or 0.0 for row in report.rows))


def test_what_has_no_known_size_is_counted_and_not_priced() -> None:
    dump = rank_dump(all_reduce(PAIR), all_reduce(PAIR, shape=("?", 64)))  # type: ignore[arg-type]
    found = group_report(single(dump, 0, 16), MACHINE)
    (total,) = found.by_axis.values()
    assert (total.count, total.bytes, total.unknown) == (2, KB, 1)
    assert [row.seconds is None for row in found.rows] == [False, True]
    known, unknown = found.kinds
    assert (known.bytes, unknown.bytes, unknown.seconds) == (KB, None, None)


# -- kinds ---------------------------------------------------------------------------------------


def test_equal_communications_are_one_kind_the_dearest_first() -> None:
    large = all_reduce(PAIR, shape=(4096, 4096))
    dump = rank_dump(all_reduce(PAIR), large, all_reduce(PAIR), Do("AllGather", PAIR))
    found = group_report(single(dump, 0, 16), MACHINE)
    dearest = found.kinds[0]
    assert (dearest.op, dearest.shape, dearest.dtype) == ("AllReduce", (4096, 4096), "Float32")
    assert (dearest.count, dearest.bytes) == (1, 4096 * 4096 * 4)
    assert (dearest.ranks, dearest.level) == (PAIR, "HCCS")
    small = next(kind for kind in found.kinds if kind.count == 2)
    assert (small.op, small.shape, small.bytes) == ("AllReduce", (4, 64), 2 * KB)
    assert small.first is found.rows[0]
    assert small.seconds == pytest.approx(sum(found.rows[at].seconds or 0.0 for at in (0, 2)))
    assert len(found.kinds) == 3
    seconds = [kind.seconds or 0.0 for kind in found.kinds]
    assert seconds == sorted(seconds, reverse=True)


def test_ranks_of_another_class_are_kinds_of_their_own(report: GroupReport) -> None:
    assert len(report.kinds) == 14
    assert {kind.count for kind in report.kinds} == {1}


# -- groups --------------------------------------------------------------------------------------


def test_groups_have_members_axes_links_and_bytes_of_all_ranks(report: GroupReport) -> None:
    named = {group_name(ranks): ranks for ranks in ((0, 1), (8, 9), ACROSS)}
    listed = [
        (group.ranks, group.ranks_from, group.axes, group.level, group.count, group.bytes)
        for group in report.groups
        if group.name in named
    ]
    assert listed == [
        ((0, 1), "rank_list", ("unknown",), "HCCS", 4, 6 * KB),
        ((8, 9), "rank_list", ("unknown",), "HCCS", 4, 6 * KB),
        (ACROSS, "rank_list", ("unknown",), "RoCE", 4, 4 * KB),
    ]
    world = next(group for group in report.groups if group.name == "hccl_world_group")
    assert (world.axes, world.count, world.bytes) == (("pipeline",), 2, 2 * KB)


def test_members_share_what_a_group_moves(report: GroupReport) -> None:
    """Of each pair's 6 KB every member has half, of the 4 KB across nodes a quarter; 0 sends 1."""
    made = exchange(report)
    assert made.names == tuple(map(str, range(16)))
    rows = {
        (one, other): made.bytes[one][other] for one in ACROSS for other in ACROSS if one != other
    }
    assert rows == {
        (0, 1): 4 * KB, (1, 0): 4 * KB, (8, 9): 4 * KB, (9, 8): 4 * KB,
        (0, 8): 2 * KB, (8, 0): KB, (0, 9): KB, (9, 0): KB,
        (1, 8): KB, (8, 1): KB, (1, 9): KB, (9, 1): KB,
    }  # fmt: skip
    assert all(made.bytes[rank][rank] is None for rank in range(16))
    assert not any(made.bytes[2])


def test_runs_of_ranks_exchange_inside_and_between(report: GroupReport) -> None:
    """Sixteen ranks in runs of eight: two members of each pair are inside one."""
    made = exchange(report, most=2)
    assert made.names == ("0-", "8-")
    # inside: 2 · 3 KB of the pair and 2 · 1 KB of all; between: 2 · 2 · 1 KB, and what is sent
    assert made.bytes == ((8 * KB, 5 * KB), (4 * KB, 8 * KB))


# -- one group by its name -----------------------------------------------------------------------


def test_a_group_of_the_dumps_by_its_name(report: GroupReport) -> None:
    found = named_group(report, cluster(), group_name(PAIR))
    assert (found.ranks, found.found_by, found.axes, found.level) == (
        PAIR, "dump", ("unknown",), "HCCS",
    )  # fmt: skip
    assert found.members == PAIR
    assert [(row.rank, row.collective.bytes) for row in found.rows] == [
        (0, KB), (0, 2 * KB), (1, KB), (1, 2 * KB),
    ]  # fmt: skip
    assert found.disagreements == ()


@pytest.mark.parametrize(
    ("name", "devices", "ranks", "found_by"),
    [
        (group_name((2, 3)), None, (2, 3), "name"),
        ("hccl_world_group_more", 4, (0, 1, 2, 3), "world"),
        ("nobody's", None, None, "nothing"),
    ],
)
def test_a_name_of_no_dump(
    report: GroupReport, name: str, devices: int | None, ranks: object, found_by: str
) -> None:
    found = named_group(report, cluster(), name, devices)
    assert (found.ranks, found.found_by, found.members, found.rows) == (ranks, found_by, (), ())
    assert found.level == (None if ranks is None else "HCCS")


# -- who agrees ----------------------------------------------------------------------------------


def told(left: list[Do], right: list[Do]) -> list[tuple[object, ...]]:
    found = disagreements(cluster_of({0: rank_dump(*left), 1: rank_dump(*right)}, 2))
    return [
        (item.kind, item.index, item.left.step, item.right and item.right.step, item.right_rank,
         item.message)
        for item in found
    ]  # fmt: skip


SAME = all_reduce(PAIR)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([SAME, SAME], [SAME, SAME], None),
        (
            [SAME, SAME], [SAME, Do("AllGather", PAIR)],
            ("operator", 1, 1, 1, 1,
             "collective 2 of the group is AllReduce on rank 0, AllGather on rank 1"),
        ),
        (
            [send(1), SAME], [receive(0), all_reduce(PAIR, shape=(2, 64))],
            ("shape", 0, 1, 1, 1,
             "collective 1 of the group is AllReduce with shape [4,64] on rank 0, AllReduce with "
             "shape [2,64] on rank 1"),
        ),
        (
            [SAME], [all_reduce(PAIR, dtype="Float16")],
            ("dtype", 0, 0, 0, 1,
             "collective 1 of the group is AllReduce with dtype Float32 on rank 0, AllReduce with "
             "dtype Float16 on rank 1"),
        ),
        (
            [SAME, SAME], [SAME],
            ("count", 1, 1, None, 1,
             "rank 0 has 2 collectives in the group, rank 1 has 1"),
        ),
        (
            [SAME], [SAME, SAME, SAME],
            ("count", 1, 1, None, 0,
             "rank 1 has 3 collectives in the group, rank 0 has 1"),
        ),
    ],
)  # fmt: skip
def test_the_first_difference_of_two_members(
    left: list[Do], right: list[Do], expected: tuple[object, ...] | None
) -> None:
    assert told(left, right) == ([] if expected is None else [expected])


def test_members_that_list_other_members() -> None:
    name = group_name(PAIR)
    other = all_reduce((0, 1, 2), group=name)
    kinds = told([SAME], [other])
    assert [item[0] for item in kinds] == ["name", "members"]
    assert kinds[0][-1] == "the group's name is not that of ranks (0, 1, 2)"
    assert kinds[1][-1] == ("the group has ranks (0, 1) on rank 0 and (0, 1, 2) on rank 1")


def test_a_rank_outside_of_its_own_group_is_told_once() -> None:
    outside = all_reduce((2, 3))
    found = told([outside, outside], [SAME])
    assert found == [
        ("not a member", 0, 0, None, 0, "rank 0 communicates in a group of ranks (2, 3)")
    ]


# -- transfers -----------------------------------------------------------------------------------


def test_the_first_of_a_route_and_tag_goes_with_the_first() -> None:
    dumps = {
        0: rank_dump(send(1, 5), send(1, 5), send(1, 6), send(7, 1)),
        1: rank_dump(receive(0, 5), receive(0, 5, shape=(2, 64)), receive(0, 8)),
    }
    found = [
        (item.sender, item.receiver, item.tag, item.send and item.send.step,
         item.receive and item.receive.step, item.known, item.matched, item.mismatch)
        for item in transfers(cluster_of(dumps, 8))
    ]  # fmt: skip
    assert found == [
        (0, 1, 5, 0, 0, True, True, ""),
        (0, 1, 5, 1, 1, True, True, "[4,64] is sent, [2,64] expected"),
        (0, 1, 6, 2, None, True, False, ""),
        (0, 7, 1, 3, None, False, False, ""),
        (0, 1, 8, None, 2, True, False, ""),
    ]
    report = group_report(cluster_of(dumps, 8), MACHINE)
    assert [item.tag for item in report.unfit_transfers] == [5, 6, 8]


def test_another_type_is_told_before_another_shape() -> None:
    dumps = {
        0: rank_dump(send(1)),
        1: rank_dump(receive(0, dtype="Float16", shape=(2, 64))),
    }
    (only,) = transfers(cluster_of(dumps, 2))
    assert only.mismatch == "Float32 is sent, Float16 expected"


def test_what_goes_to_nobody_known_is_exchanged_with_nobody() -> None:
    known = {0: rank_dump(send(1)), 1: rank_dump(receive(0))}
    lost = {0: rank_dump(send(1), send(-1)), 1: rank_dump(receive(0), receive(-1))}
    tables = [exchange(group_report(cluster_of(dumps, 2), MACHINE)) for dumps in (known, lost)]
    assert tables[0] == tables[1]
    assert tables[0].bytes == ((None, 4 * 64 * 4), (None, None))
