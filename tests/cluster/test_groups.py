"""What a run communicates: axes, totals, members that agree, names of groups, many ranks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.axes import axes
from irtool.cluster.groups import GroupReport, exchange, group_report, named_group
from irtool.cluster.machine import default_machine
from irtool.cluster.matching import disagreements, transfers
from irtool.cluster.ranks import Cluster, cluster_of, cluster_of_classes, single
from irtool.ir.collectives import collectives
from irtool.ir.dump import Dump
from irtool.ir.group_names import group_name
from irtool.syntax.run import Run
from irtool.syntax.source import read_content
from tests.cluster.rank_dumps import Movable, all_reduce, rank_dump, receive, send


def folded(run: Run, load: Callable[[int], Dump] | None = None) -> Cluster:
    """A run with equal ranks held once."""
    compilations = run.across_ranks()

    def read(rank: int) -> Dump:
        return compilations[rank].read(compilations[rank].main)

    def text(rank: int) -> tuple[str, str]:
        path = compilations[rank].main.path
        return path, read_content(path).data.decode("utf-8", "surrogateescape")

    classes = [(item.ranks, read(item.representative)) for item in run.classes()]
    return cluster_of_classes(classes, text, load or read)


def report_of(path: Path, devices: int | None = None) -> GroupReport:
    (file,) = path.glob("*validate*.ir")
    return group_report(single(irtool.load(file), 0, devices), default_machine())


# -- axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("data_parallel", {"data"}),
        ("optimizer_parallel", {"optimizer", "tensor", "data"}),
        ("gpt", {"data", "tensor", "data and tensor"}),
        ("pipeline_run/rank_0", {"pipeline", "tensor", "data"}),
    ],
)
def test_collectives_serve_the_axes_that_the_network_is_split_along(
    samples: Path, sample: str, expected: set[str]
) -> None:
    found = set(report_of(samples / sample, 8).by_axis)
    assert found <= expected
    assert len(found) >= len(expected) - 1
    assert "unknown" not in found


def test_a_backward_collective_serves_what_its_forward_one_serves(samples: Path) -> None:
    (file,) = (samples / "pipeline_run" / "rank_0").glob("*validate*.ir")
    found = collectives(irtool.load(file), 8)
    by_ranks: dict[tuple[int, ...] | None, set[str]] = {}
    axis_of = axes(found)
    for item in found:
        if item.op == "AllReduce":
            by_ranks.setdefault(item.ranks, set()).add(axis_of[item.node])
    assert by_ranks == {(0, 1): {"tensor"}, (0, 2): {"data"}}


def test_sharded_gradients_of_micro_batches_serve_the_optimizer(samples: Path) -> None:
    found = collectives(irtool.load(samples / "memory/accumulated_sharded.ir.xz"), 8)
    axis_of = axes(found)
    scattered = [item for item in found if item.op == "ReduceScatter"]
    assert len(scattered) == 4
    assert {axis_of[item.node] for item in scattered} == {"optimizer"}


def test_tokens_go_to_experts_and_back(samples: Path) -> None:
    """No scope or source line says so: the products behind the exchange do."""
    found = collectives(irtool.load(samples / "moe/20_validate_0080.ir.xz"), 8)
    axis_of = axes(found)
    by_ranks = {
        (item.op, item.ranks): axis_of[item.node] for item in found if item.op == "AlltoAll"
    }
    assert by_ranks == {
        ("AlltoAll", (0, 2, 4, 6)): "expert",
        # The weights of experts are replicated over these two; others are sharded.
        ("AlltoAll", (0, 1)): "tensor",
    }
    assert sum(axis == "expert" for axis in axis_of.values()) == 8
    assert "unknown" not in axis_of.values()


def test_what_users_communicate_themselves_has_no_known_axis() -> None:
    dump = rank_dump(all_reduce((0, 1)))
    assert set(axes(collectives(dump)).values()) == {"unknown"}


# -- totals --------------------------------------------------------------------------------------


def test_totals_count_every_rank_and_the_links_between_them() -> None:
    dumps = {rank: rank_dump(all_reduce((0, 8))) for rank in (0, 8)}
    report = group_report(cluster_of(dumps, 16), default_machine())
    (total,) = report.by_axis.values()
    assert (total.count, total.bytes) == (2, 2 * 4 * 64 * 4)
    assert list(report.by_level) == ["RoCE"]
    assert report.missing == tuple(rank for rank in range(16) if rank not in (0, 8))


def test_a_transfer_uses_the_links_between_its_ends_not_those_of_the_world() -> None:
    dumps = {0: rank_dump(send(1)), 1: rank_dump(receive(0))}
    report = group_report(cluster_of(dumps, 16), default_machine())
    assert list(report.by_level) == ["HCCS"]


def test_the_dearest_come_first() -> None:
    small, large = all_reduce((0, 1)), all_reduce((0, 1), shape=(4096, 4096))
    report = group_report(single(rank_dump(small, large), 0), default_machine())
    assert [kind.shape for kind in report.kinds] == [(4096, 4096), (4, 64)]


def test_every_group_has_a_stream_numbered_in_launch_order() -> None:
    dump = rank_dump(all_reduce((0, 1)), send(4), all_reduce((0, 2)), all_reduce((0, 1)))
    report = group_report(single(dump, 0, 8), default_machine())
    assert [row.stream for row in report.rows] == [1, 2, 3, 1]


# -- ranks that agree ----------------------------------------------------------------------------


def test_every_send_of_a_pipeline_is_matched(samples: Path) -> None:
    for name, count in (("pipeline_2_stages", 8), ("pipeline_4_stages", 48)):
        found = transfers(folded(irtool.load_run(samples / name)))
        assert len(found) == count
        assert all(item.matched and not item.mismatch for item in found)


def test_transfers_of_earlier_passes_are_not_matched(samples: Path) -> None:
    cluster = replace(folded(irtool.load_run(samples / "pipeline_run")), partial="pipeline_split")
    assert group_report(cluster, default_machine()).transfers == ()


def test_members_of_every_group_of_a_pipeline_agree(samples: Path) -> None:
    for name in ("pipeline_2_stages", "pipeline_4_stages"):
        assert disagreements(folded(irtool.load_run(samples / name))) == ()


def test_the_first_place_where_members_part_is_named() -> None:
    same, other = all_reduce((0, 1)), all_reduce((0, 1), dtype="Float16")
    dumps = {0: rank_dump(same, same, same), 1: rank_dump(same, other, same)}
    (found,) = disagreements(cluster_of(dumps))
    assert (found.kind, found.index) == ("dtype", 1)
    assert found.left.collective.node.id == "%1"


def test_a_rank_that_is_no_member_of_its_group_is_told_of() -> None:
    (found,) = disagreements(cluster_of({5: rank_dump(all_reduce((0, 1)))}))
    assert found.kind == "not a member"


def test_a_group_with_the_name_of_other_ranks_is_told_of() -> None:
    dump = rank_dump(all_reduce((0, 1), group=group_name((0, 2))))
    assert [item.kind for item in disagreements(cluster_of({0: dump}))] == ["name"]


# -- one group by its name -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("2-5004544844489628105", (0, 1)),
        ("4-5226697808808137312", (0, 2, 4, 6)),
        ("2-16453000547691086251", (0, 4)),
        ("8-12158923167718251343", tuple(range(8))),
        ("4-5226697808808137312_all2all", (0, 2, 4, 6)),
    ],
)
def test_a_name_of_no_dump_is_decoded_by_search(name: str, ranks: tuple[int, ...]) -> None:
    nobody = Cluster({}, (), 0)
    report = group_report(nobody, default_machine())
    found = named_group(report, nobody, name, devices=8)
    assert (found.ranks, found.found_by) == (ranks, "name")


@pytest.mark.parametrize(
    ("name", "ranks", "found_by"),
    [
        ("hccl_world_group", tuple(range(8)), "world"),
        ("0-4-6", (0, 4, 6), "plain"),
        ("0-4-9", None, "nothing"),  # there is no rank 9
        ("4-999", None, "nothing"),
        ("mine", None, "nothing"),
    ],
)
def test_how_a_name_of_no_dump_was_understood(
    name: str, ranks: tuple[int, ...] | None, found_by: str
) -> None:
    nobody = Cluster({}, (), 0)
    found = named_group(group_report(nobody, default_machine()), nobody, name, devices=8)
    assert (found.ranks, found.found_by) == (ranks, found_by)


def test_a_group_of_the_dump_comes_with_its_operators(samples: Path) -> None:
    cluster = folded(irtool.load_run(samples / "pipeline_2_stages"))
    report = group_report(cluster, default_machine())
    found = named_group(report, cluster, group_name((2, 3)))
    assert (found.ranks, found.axes, found.members) == ((2, 3), ("tensor",), (2, 3))
    assert {row.collective.op for row in found.rows} == {"AllReduce"}


def test_every_group_name_of_the_corpus_is_decoded(corpus: Path) -> None:
    pattern = re.compile(r'\bgroup: "([^"]+)"')
    names: set[str] = set()
    for path in (corpus / "verdicts").glob("*/*validate*.ir"):
        names.update(pattern.findall(path.read_text(errors="replace")))
    assert len(names) > 40
    nobody = Cluster({}, (), 0)
    report = group_report(nobody, default_machine())
    for name in names:
        ranks = named_group(report, nobody, name, 8).ranks
        assert ranks is not None
        if name.partition("-")[2][10:]:
            assert name.startswith(group_name(ranks))


# -- many ranks ----------------------------------------------------------------------------------


def test_folded_ranks_have_what_their_own_dumps_say(samples: Path) -> None:
    run = irtool.load_run(samples / "pipeline_4_stages")
    compilations = run.across_ranks()
    own = {rank: one.read(one.main) for rank, one in compilations.items()}
    full, short = cluster_of(own), folded(run)
    assert len(short.classes) == 4
    for rank in run.ranks:
        assert short.ranks[rank].parties == full.ranks[rank].parties


def test_ranks_share_the_list_of_all_devices(samples: Path) -> None:
    """Else each transfer of 4,096 ranks would hold a list of 4,096."""
    compilations = irtool.load_run(samples / "pipeline_2_stages").across_ranks()
    dumps = {rank: one.read(one.main) for rank, one in compilations.items()}

    def text(rank: int) -> tuple[str, str]:
        path = compilations[rank].main.path
        return path, Path(path).read_text()

    classes = [((0, 1), dumps[0]), ((2, 3), dumps[2])]
    cluster = cluster_of_classes(classes, text, dumps.__getitem__, 4)
    parties = [party for rank in (1, 3) for party in cluster.ranks[rank].parties]
    world = [party.ranks for party in parties if party.ranks == (0, 1, 2, 3)]
    assert len(world) > 1
    assert len({id(ranks) for ranks in world}) == 1


@pytest.mark.slow
def test_of_1024_ranks_only_distinct_ones_are_parsed(samples: Path, tmp_path: Path) -> None:
    # 256 jobs of two stages side by side: the ranks of a real run, moved.
    folder = samples / "pipeline_2_stages"
    dumps = [
        Movable((folder / f"rank_{rank}" / "20_validate_0080.ir").read_text(), rank, range(4))
        for rank in range(4)
    ]
    for rank in range(1024):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        text = dumps[rank % 4].moved(rank // 4 * 4, 1024)
        (folder / "20_validate_0080.ir").write_text(text)
    run = irtool.load_run(tmp_path)
    parsed: list[int] = []

    def load(rank: int) -> Dump:
        parsed.append(rank)
        return run.across_ranks()[rank].dump("validate") or rank_dump()

    cluster = folded(run, load)
    assert [len(ranks) for ranks in cluster.classes] == [512, 512]
    assert parsed == []  # beyond the first of each class
    assert cluster.missing == ()
    report = group_report(cluster, default_machine())
    assert len(report.transfers) == 256 * 8
    assert all(item.matched for item in report.transfers)
    assert report.disagreements == ()
    assert report.by_axis["tensor"].count == 256 * 24


# -- who exchanges with whom ---------------------------------------------------------------------


def test_members_of_a_group_exchange_and_a_sender_with_its_receiver() -> None:
    """An AllReduce of 1,024 bytes on each of ranks 0 and 1; rank 1 sends 1,024 bytes to rank 2."""
    dumps = {
        0: rank_dump(all_reduce((0, 1))),
        1: rank_dump(all_reduce((0, 1)), send(2)),
        2: rank_dump(receive(1)),
    }
    made = exchange(group_report(cluster_of(dumps, 3), default_machine()))
    assert made.names == ("0", "1", "2")
    assert made.bytes == ((None, 1024.0, None), (1024.0, None, 1024.0), (None, None, None))


def test_many_ranks_are_put_together_in_runs() -> None:
    ranks = tuple(range(0, 128, 2))
    report = group_report(cluster_of({0: rank_dump(all_reduce(ranks))}, 128), default_machine())
    made = exchange(report)
    assert (len(made.names), made.names[:3]) == (64, ("0-", "2-", "4-"))
    assert made.bytes[0][0] is None  # one member of each run
    assert made.bytes[0][1] == made.bytes[63][0] == 1024 / 64
