"""Who holds the same, read off validate dumps alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.ranks import Cluster, cluster_of
from irtool.planning.cost.holdings import Holdings, holdings
from irtool.planning.recovery.groups import group_table
from irtool.planning.recovery.holdings_seen import seen_holdings
from irtool.planning.recovery.recover import Request, recover
from irtool.planning.recovery.survival import lost_slices, weak_points
from irtool.sharding.network.context import ParallelContext
from tests.planning.recovery_networks import context_of


def sets_of(network: Holdings) -> dict[str, set[tuple[int, ...]]]:
    return {item.name: set(item.replica_sets) for item in network.items}


@pytest.mark.parametrize("name", ["mlp_semi_auto", "gpt", "shard_size_4"])
def test_later_dumps_show_the_replicas_that_the_begin_dump_gives(samples: Path, name: str) -> None:
    folder = samples / name
    context = context_of(folder)
    (begin,) = folder.glob("step_parallel_begin*")
    (path,) = folder.glob("*validate*")
    seen = seen_holdings(cluster_of({0: irtool.load(path)}, context.devices), context.devices, 1)
    predicted = holdings(irtool.load(begin), context)
    assert sets_of(seen).items() <= sets_of(predicted).items()
    assert sets_of(predicted).keys() == sets_of(seen).keys() | seen.unknown.keys()
    assert len(seen.items) > len(seen.unknown)
    known = seen.by_name()
    for item in predicted.items:
        if item.name in known:
            assert known[item.name].whole_bytes == item.whole_bytes


@pytest.mark.corpus
def test_the_corpus_agrees_on_who_holds_the_same(corpus: Path) -> None:
    equal = other = 0
    for folder in sorted(each.parent for each in corpus.glob("verdicts/*/case.json"))[::8]:
        begin, later = (sorted(folder.glob(f"*{name}*")) for name in ("parallel_begin", "validate"))
        context = context_of(folder)
        if not begin or not later or context.stages > 1 or not context.is_parallel:
            continue
        cluster = cluster_of({context.rank: irtool.load(later[0])}, context.devices)
        seen = sets_of(seen_holdings(cluster, context.devices, 1))
        for name, sets in sets_of(holdings(irtool.load(begin[0]), context)).items():
            equal += name in seen and seen[name] == sets
            other += name in seen and seen[name] != sets
    assert equal > 150
    # A custom operator whose weights nobody sums; a weight cast once for all its users, whose
    # shards the begin dump does not show.
    assert other < equal / 20


@pytest.fixture
def pipeline(samples: Path) -> tuple[Cluster, ParallelContext]:
    folder = samples / "pipeline_run"
    dumps = {rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir") for rank in (0, 4)}
    return cluster_of(dumps, 8), context_of(folder / "rank_0")


def test_stages_of_a_pipeline(pipeline: tuple[Cluster, ParallelContext]) -> None:
    seen = seen_holdings(pipeline[0], 8, 2)
    assert sets_of(seen)["layers.0.up"] == {(0, 2), (1, 3)}
    assert sets_of(seen)["moments.layers.1.down"] == {(4, 6), (5, 7)}
    assert sets_of(seen)["global_step"] == {tuple(range(8))}
    assert not seen.unknown
    assert not seen.missing
    one = seen_holdings(cluster_of({4: pipeline[0].ranks[4].program.dump}, 8), 8, 2)
    assert one.missing == (0,)


def test_half_of_the_replicas_share_a_weight(samples: Path) -> None:
    dump = irtool.load(samples / "shard_size_4/20_validate_0080.ir.xz")
    seen = seen_holdings(cluster_of({0: dump}, 8), 8, 1)
    assert sets_of(seen)["w0"] == {(0, 4), (1, 5), (2, 6), (3, 7)}


def test_without_data_parallelism_there_are_no_replicas(samples: Path) -> None:
    folder = samples / "pipeline_no_replicas"
    context = context_of(folder)
    begins = {
        s: irtool.load(folder / f"rank_{2 * s}/step_parallel_begin_0018.ir.xz") for s in (0, 1)
    }
    dumps = {rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir.xz") for rank in (0, 2)}
    for found in (holdings(begins, context), seen_holdings(cluster_of(dumps, 4), 4, 2)):
        assert sets_of(found)["bs.0.w"] == {(0,), (1,)}
        assert [point.units for point in weak_points(found)] == [(0,), (1,), (2,), (3,)]


def test_optimizer_parallel_leaves_one_holder(samples: Path) -> None:
    dump = irtool.load(samples / "optimizer_parallel/19_validate_0078.ir")
    seen = seen_holdings(cluster_of({0: dump}, 8), 8, 1)
    assert sets_of(seen)["layers.0.up"] == {(rank,) for rank in range(8)}
    assert {each.parameter for each in lost_slices(seen, [3])} >= {"layers.0.up", "layers.0.down"}
    assert len(weak_points(seen)[0].units) == 1


def test_a_weight_whose_mirror_nobody_names_is_unknown(samples: Path) -> None:
    (path,) = (samples / "mlp_semi_auto").glob("*validate*")
    text = path.read_text(encoding="utf-8").replace('mirror_user_id: "', 'other_id: "')
    seen = seen_holdings(cluster_of({0: irtool.loads(text)}, 8), 8, 1)
    assert "up.weight" in seen.unknown
    assert "moments.up.weight" in seen.unknown
    assert "up.weight" not in seen.by_name()


def test_devices_can_be_replaced_but_not_planned_anew(
    pipeline: tuple[Cluster, ParallelContext],
) -> None:
    cluster, context = pipeline
    seen, groups = seen_holdings(cluster, 8, 2), group_table(cluster, 8, 2)
    replaced = recover({}, context, Request(lost=(2,), added=1), groups, seen)
    assert replaced.moves is not None
    assert replaced.moves.peer_bytes == seen.bytes_on(2)
    assert replaced.times.peers is not None
    fewer = recover({}, context, Request(lost=(2,)), groups, seen)
    assert fewer.target == 4
    assert fewer.moves is None
    assert fewer.times.peers is None
    assert not fewer.lost
    assert any("no plan for other devices" in note for note in fewer.notes)
