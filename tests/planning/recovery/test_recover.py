"""Recovery: who holds what, what survives, what moves, how long it takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.ranks import cluster_of
from irtool.ir.dump import Dump
from irtool.planning.cost.holdings import Box, holdings, uncovered, volume
from irtool.planning.recovery.groups import group_changes, group_table, predicted_groups
from irtool.planning.recovery.growth import grown
from irtool.planning.recovery.recover import CannotRecover, Request, recover
from irtool.planning.recovery.scale import scaled_plan
from irtool.planning.recovery.survival import (
    common_replicas,
    lost_slices,
    surviving_slices,
    weak_points,
)
from irtool.planning.recovery.times import Assumptions
from irtool.planning.search.device_counts import device_count_problem, legal_counts
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from tests.planning.recovery_networks import chain_of, context_of, laid_out, with_layout


@pytest.fixture
def perceptron(samples: Path) -> tuple[Dump, ParallelContext]:
    folder = samples / "mlp_semi_auto"
    return irtool.load(folder / "step_parallel_begin_0018.ir"), context_of(folder)


@pytest.fixture
def chain(samples: Path) -> Dump:
    return chain_of(samples)


# -- who holds what ------------------------------------------------------------------------------


def test_replicas_of_each_parameter(perceptron: tuple[Dump, ParallelContext]) -> None:
    found = holdings(*perceptron).by_name()
    assert found["up.weight"].replica_sets == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert found["mid.bias"].replica_sets == (tuple(range(8)),)
    assert found["moments.up.weight"].weight == "up.weight"
    assert found["moments.up.weight"].replica_sets == found["up.weight"].replica_sets


def test_optimizer_parallel_leaves_no_replicas(perceptron: tuple[Dump, ParallelContext]) -> None:
    dump, context = perceptron
    sharded = replace(context, parallel_optimizer=True, threshold=0)
    found = holdings(dump, sharded)
    assert found.by_name()["up.weight"].replica_sets == tuple((rank,) for rank in range(8))
    assert len(weak_points(found)[0].units) == 1
    whole = holdings(dump, context)
    assert found.bytes_on(0) < whole.bytes_on(0)


def test_all_boxes_of_a_parameter_cover_it(perceptron: tuple[Dump, ParallelContext]) -> None:
    dump, context = perceptron
    for options in (context, replace(context, parallel_optimizer=True, threshold=0)):
        for item in holdings(dump, options).items:
            whole = tuple((0, size) for size in item.shape)
            assert uncovered(whole, list(item.boxes.values())) == 0
            assert {volume(box) for box in item.boxes.values()} == {
                volume(next(iter(item.boxes.values())))
            }


def test_the_smallest_losses_that_peers_cannot_repair(
    perceptron: tuple[Dump, ParallelContext],
) -> None:
    found = holdings(*perceptron)
    assert [point.units for point in weak_points(found)] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [point.units for point in weak_points(found, 4)] == [(0, 1)]
    assert not lost_slices(found, [0, 1, 2, 3])
    assert {each.parameter for each in lost_slices(found, [1, 5])} == {
        "up.weight", "up.bias", "mid.weight",
        "moments.up.weight", "moments.up.bias", "moments.mid.weight",
    }  # fmt: skip


# -- what survives ------------------------------------------------------------------------------


def test_mindspore_restores_only_what_is_held_alike(
    perceptron: tuple[Dump, ParallelContext], chain: Dump
) -> None:
    assert common_replicas(holdings(*perceptron)) == ((0, 4), (1, 5), (2, 6), (3, 7))
    first, *_ = laid_out(chain, 2, 4).items
    by_four, by_two, pairs = (
        _boxes([rank % 4 for rank in range(8)]),
        _boxes([rank % 2 for rank in range(8)]),
        _boxes([rank // 2 for rank in range(8)]),
    )
    nested = [replace(first, boxes=boxes) for boxes in (by_four, by_two)]
    crossed = [replace(first, boxes=boxes) for boxes in (pairs, by_two)]
    whole = laid_out(chain, 2, 4)
    assert common_replicas(replace(whole, items=tuple(nested)))[0] == (0, 4)
    assert common_replicas(replace(whole, items=tuple(crossed)))[0] == (0,)


def _boxes(places: list[int]) -> dict[int, Box]:
    return {rank: ((place, place + 1),) for rank, place in enumerate(places)}


def test_what_survives_of_a_lost_rank(perceptron: tuple[Dump, ParallelContext]) -> None:
    found = {each.parameter: each for each in surviving_slices(holdings(*perceptron), [1, 2])}
    assert (found["mid.bias"].lost, found["mid.bias"].survivors) == ((1, 2), (0, 3, 4, 5, 6, 7))
    both = [
        (each.lost, each.survivors)
        for each in surviving_slices(holdings(*perceptron), [1, 2])
        if each.parameter == "up.weight"
    ]
    assert both == [((1,), (5,)), ((2,), (6,))]
    assert not surviving_slices(holdings(*perceptron), [])


# -- groups --------------------------------------------------------------------------------------


def test_predicted_groups_are_those_of_the_dumps(samples: Path) -> None:
    folder = samples / "pipeline_run"
    context = context_of(folder / "rank_0")
    begins = {
        stage: irtool.load(folder / f"rank_{rank}/step_parallel_begin_0018.ir")
        for stage, rank in enumerate((0, 4))
    }
    predicted = predicted_groups(holdings(begins, context))
    dumps = {rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir") for rank in (0, 4)}
    seen = group_table(cluster_of(dumps, 8), 8, 2)
    assert {group.ranks for group in predicted.groups} == {group.ranks for group in seen.groups}


def test_groups_that_change(chain: Dump) -> None:
    old, new = (predicted_groups(laid_out(chain, 2, tensor)) for tensor in (4, 2))
    found = group_changes(old, new)
    # Four ranks were one model; now they are all there are.
    assert {group.ranks for group in found.kept} == {(0, 1, 2, 3)}
    assert {group.ranks for group in found.added} == {(0, 1), (2, 3), (0, 2), (1, 3)}
    assert {group.ranks for group in found.removed} >= {(0, 4), (4, 5, 6, 7), tuple(range(8))}


# -- how many devices ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "legal"),
    [(1, True), (2, True), (4, True), (6, False), (7, False), (8, True), (12, False), (24, True)],
)
@pytest.mark.parametrize("target", ["Ascend", "GPU"])
def test_numbers_of_devices(count: int, legal: bool, target: str) -> None:
    assert (device_count_problem(count, ParallelContext(target=target)) == "") == legal


def test_numbers_of_devices_for_a_search_and_for_stages() -> None:
    search = ParallelContext(mode="auto_parallel", search="recursive_programming")
    assert list(legal_counts(60, search)) == [32, 16, 8, 4, 2, 1]
    stages = ParallelContext(devices=8, stages=4)
    assert next(legal_counts(60, stages)) == 56


# -- all of it -----------------------------------------------------------------------------------


def test_losing_a_rank_whose_slices_survive(perceptron: tuple[Dump, ParallelContext]) -> None:
    found = recover(*perceptron, Request(lost=(5,)))
    assert (found.target, found.legal) == (4, (4, 2, 1))
    assert not found.lost
    assert found.accepted
    assert found.times.peers is not None


@pytest.mark.parametrize(
    ("request_", "target", "why"),
    [
        (Request(), 8, "nothing happened to the devices"),
        (Request(lost=(5,)), 4, "the largest legal number of those that are left; 3 stay idle"),
        (Request(lost=(4, 5, 6, 7)), 4, "the largest legal number of those that are left"),
        (Request(lost=(1, 5), added=2), 8, "the largest legal number of those that are left"),
        (Request(to=4), 4, "as asked for"),
        (Request(to=8), 8, "as asked for"),
        (Request(lost=(5,), to=8), 8, "as asked for, 1 of them new"),
    ],
)
def test_why_it_is_that_number_of_devices(
    perceptron: tuple[Dump, ParallelContext], request_: Request, target: int, why: str
) -> None:
    found = recover(*perceptron, replace(request_, search=False))
    assert (found.target, found.why_target) == (target, why)


@pytest.mark.parametrize("search", [True, False])
def test_a_dataset_cut_for_all_devices_is_cut_for_those_that_are_left(
    perceptron: tuple[Dump, ParallelContext], search: bool
) -> None:
    begin, context = perceptron
    parts = replace(context, full_batch=False, dataset=((8, 1), (8, 1)))
    found = recover(begin, parts, Request(lost=(5,), search=search))
    assert (found.target, found.accepted) == (4, True)
    assert found.new.reports[0].dataset[0].slice[0] * 4 == found.new.reports[0].dataset[0].shape[0]
    assert any(note.startswith("dataset_strategy cuts batches into 8") for note in found.notes)
    word = replace(context, full_batch=False, dataset=None)
    alike = recover(begin, word, Request(lost=(5,), search=search))
    assert [one.plan.seconds for one in found.alternatives] == [
        one.plan.seconds for one in alike.alternatives
    ]
    assert not any("dataset_strategy" in note for note in alike.notes)


def test_losing_both_holders_of_a_slice(perceptron: tuple[Dump, ParallelContext]) -> None:
    found = recover(*perceptron, Request(lost=(1, 5)))
    assert len(found.lost) == 6
    assert found.moves is not None
    assert found.moves.lost_bytes > 0
    assert found.times.peers is None


def test_a_spare_device_takes_the_place_of_a_lost_one(
    perceptron: tuple[Dump, ParallelContext],
) -> None:
    found = recover(*perceptron, Request(lost=(5,), added=1))
    assert found.target == 8
    assert not found.alternatives
    assert not found.replanned
    assert found.changed == 0
    assert found.moves is not None
    assert found.moves.peer_bytes == found.old.bytes_on(5)


def test_the_planner_is_asked_and_scaling_stands_beside(
    perceptron: tuple[Dump, ParallelContext],
) -> None:
    found = recover(*perceptron, Request(lost=(5,)))
    assert [alternative.plan.how for alternative in found.alternatives] == ["searched", "scaled"]
    searched, scaled = found.alternatives
    assert searched.plan.seconds is not None
    assert scaled.plan.seconds is not None
    assert searched.plan.accepted
    assert found.plan is searched.plan
    assert found.moves is searched.moves
    assert found.changed == len(searched.plan.changes) > 0
    assert not found.notes


def test_a_short_horizon_changes_less(perceptron: tuple[Dump, ParallelContext]) -> None:
    soon = recover(*perceptron, Request(lost=(5,), horizon=1))
    late = recover(*perceptron, Request(lost=(5,), horizon=float("inf")))
    assert soon.moves is not None
    assert late.moves is not None
    assert soon.moves.peer_bytes <= late.moves.peer_bytes
    seconds = [each.plan.seconds if each.plan is not None else None for each in (late, soon)]
    assert seconds == sorted(each for each in seconds if each is not None)


def test_without_a_search_strategies_are_scaled(
    perceptron: tuple[Dump, ParallelContext],
) -> None:
    found = recover(*perceptron, Request(lost=(5,), search=False))
    assert [alternative.plan.how for alternative in found.alternatives] == ["scaled"]
    assert any("not searched: no search was asked for" in note for note in found.notes)


def test_a_given_plan_counts_the_operators_that_it_changes(chain: Dump) -> None:
    old, new = with_layout(chain, 2, 4), with_layout(chain, 2, 2)
    context = ParallelContext(devices=8, full_batch=True)
    found = recover(old, context, Request(lost=(5,)), new_begin=new)
    before = {node.name: node.in_strategy for node in old.nodes()}
    differ = [node for node in new.nodes() if before[node.name] != node.in_strategy]
    assert found.changed == len(differ) > 0
    same = recover(old, context, Request(lost=(5,), added=1), new_begin=old)
    assert same.changed == 0


def test_a_given_plan_for_a_number_that_the_search_refuses(chain: Dump) -> None:
    searching = ParallelContext(
        devices=64, full_batch=True, mode="auto_parallel", search="recursive_programming"
    )
    dump = with_layout(chain, 16, 4)
    assert recover(dump, searching, Request(lost=(1,), search=False)).target == 32
    found = recover(dump, searching, Request(lost=(1,), to=56, search=False))
    assert found.target == 56
    assert re.search("have to be given: .* powers of two", found.why_target)


def test_more_devices(perceptron: tuple[Dump, ParallelContext]) -> None:
    found = recover(*perceptron, Request(added=8))
    assert found.target == 16
    assert found.accepted


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(lost=(8,)), "there is no rank 8"),
        (Request(lost=tuple(range(8))), "all devices are lost"),
        (Request(lost=(1,), to=6), "legal here: 4, 2, 1"),
    ],
)
def test_no_way_on(perceptron: tuple[Dump, ParallelContext], request_: Request, words: str) -> None:
    with pytest.raises(CannotRecover, match=words):
        recover(*perceptron, request_)


def test_the_time_names_its_largest_term(perceptron: tuple[Dump, ParallelContext]) -> None:
    rates = Assumptions(step_seconds=10, checkpoint_steps=1000, data_bytes=10**11)
    found = recover(*perceptron, Request(lost=(5,)), assumptions=rates).times
    assert found.checkpoint.largest == "lost steps"
    assert found.checkpoint.lost_steps == 5000
    assert found.checkpoint.data == 10
    assert found.peers is not None
    assert found.peers.total < found.checkpoint.total


@pytest.mark.parametrize(
    ("name", "devices"),
    [("mlp_semi_auto", 2), ("mlp_semi_auto", 24), ("gpt", 4), ("gpt", 16), ("gpt", 32)],
)
def test_scaled_strategies_are_legal(samples: Path, name: str, devices: int) -> None:
    folder = samples / name
    begin = irtool.load(folder / "step_parallel_begin_0018.ir")
    context = context_of(folder)
    new = replace(context, devices=devices)
    plan = scaled_plan(begin, check(begin, context), new)
    assert not plan.failed
    assert check(plan.dump, new).accepted
    again = irtool.loads(irtool.dumps(plan.dump))
    assert [node.in_strategy for node in again.nodes()] == [
        node.in_strategy for node in plan.dump.nodes()
    ]


# -- layers added --------------------------------------------------------------------------------


def test_an_added_layer(samples: Path) -> None:
    folder = samples / "mlp_grown"
    before, after = (irtool.load(folder / f"{name}/step_parallel_begin_0019.ir")
                     for name in ("before", "after"))  # fmt: skip
    context = context_of(folder / "before")
    found = grown({0: before}, {0: after}, holdings(before, context), holdings(after, context))
    fates = {each.name: each.fate for each in found.parameters}
    assert fates["added0.weight"] == fates["moments.added0.weight"] == "new"
    assert fates["fc0.weight"] == "kept"
    # The search gave the last layer another strategy, though nothing about it changed.
    assert fates["fc3.weight"] == "resharded"
    assert not found.is_local
    assert not found.dropped
    slices = next(each.slices for each in found.parameters if each.name == "added0.weight")
    assert slices[0] == ((0, 512), (0, 1024))
    assert [node.op for node in found.added] == ["MatMul", "ReLU", "ZerosLike", "ApplyMomentum"]
    assert {node.op for node in found.border} == {"MatMul", "ReLU"}
    assert [node.op for node in found.resharded] == ["MatMul", "Sub", "Square", "ReduceMean"]
    assert found.unchanged > 0
    assert not found.removed


def test_a_renamed_parameter(samples: Path) -> None:
    path = samples / "mlp_grown/before/step_parallel_begin_0019.ir"
    text = path.read_text(encoding="utf-8")
    before, after = irtool.loads(text), irtool.loads(text.replace("fc1.weight", "middle.weight"))
    context = context_of(path.parent)
    found = grown({0: before}, {0: after}, holdings(before, context), holdings(after, context))
    renamed = {each.name: each.old for each in found.parameters if each.fate == "renamed"}
    assert renamed["middle.weight"] == "fc1.weight"
    assert not any(each.fate == "new" for each in found.parameters if each.name == "middle.weight")
