"""Edits of a network: each is accepted by the whole of it, and makes a step shorter."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.carried import carried
from irtool.planning.plans.edits import (
    NetworkEdits,
    _communicates,
    _why_none,
    network_edits,
)
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

EIGHT = ParallelContext(devices=8)


@pytest.fixture
def begin(samples: Path) -> Dump:
    return irtool.load(samples / "mlp_semi_auto/step_parallel_begin_0018.ir")


def edits_of(dump: Dump, context: ParallelContext = EIGHT, work: int = 40_000) -> NetworkEdits:
    return network_edits(dump, context, check(dump, context), default_machine(), work=work)


def test_each_edit_is_accepted_and_saves_what_it_says(begin: Dump) -> None:
    found = edits_of(begin)
    assert found.edits
    for edit in found.edits:
        context, dump = EIGHT, begin
        if edit.setting:
            context = ParallelContext(devices=8, enable_alltoall=True)
        elif edit.new is not None:
            dump = with_strategies(begin, dict.fromkeys(edit.nodes, edit.new))
        report = check(dump, context)
        after = step_cost(structure_of(dump, context), report, default_machine())
        assert report.accepted
        assert found.before.seconds - after.seconds == pytest.approx(edit.seconds)
        assert edit.seconds > 0


def test_alltoall_is_proposed_where_it_is_off_and_something_moves(begin: Dump) -> None:
    assert [edit.value for edit in edits_of(begin).edits if edit.setting] == [True]
    on = ParallelContext(devices=8, enable_alltoall=True)
    assert not [edit for edit in edits_of(begin, on).edits if edit.setting]


def test_large_networks_get_fewer_trials(begin: Dump) -> None:
    assert edits_of(begin, work=1).tried <= 3 < edits_of(begin).tried


def test_edits_of_one_redistribution_say_whether_it_goes(begin: Dump) -> None:
    report = check(begin, EIGHT)
    told = 0
    for edge in (edge for edge in report.redistributions if edge.operators):
        found = network_edits(begin, EIGHT, report, default_machine(), [edge])
        best = next((item for item in found.edits if item.removes and item.new), None)
        if best is None:
            continue
        told += 1
        after = check(with_strategies(begin, dict.fromkeys(best.nodes, best.new or ())), EIGHT)
        left = {(e.producer.id, e.consumer.id) for e in after.redistributions if e.operators}
        assert (edge.producer.id, edge.consumer.id) not in left
    assert told


def test_a_gather_that_only_moves_does_not_go(samples: Path) -> None:
    """OneHot takes what is there, and another gather comes behind it."""
    dump = irtool.load(next((samples / "gpt").glob("step_parallel_begin*")))
    report = check(dump, EIGHT)
    (edge,) = (
        edge for edge in report.redistributions
        if edge.producer.op == "Reshape" and "AllGather" in [op.op for op in edge.operators or ()]
    )  # fmt: skip
    found = network_edits(dump, EIGHT, report, default_machine(), [edge])
    assert (found.edits, found.dearer) == ((), ())
    assert found.tried == found.refused + found.kept + 1
    assert "1 replace it with another" in _why_none(found)
    after = check(with_strategies(dump, {edge.consumer.users[0]: ((8, 1), (), ())}), EIGHT)
    assert sum(map(_communicates, after.redistributions)) >= sum(
        map(_communicates, report.redistributions)
    )


@pytest.mark.parametrize("name", ["mlp_semi_auto", "gpt"])
def test_what_takes_a_redistribution_away_leaves_fewer_and_the_dearer_come_by_cost(
    samples: Path, name: str
) -> None:
    dump = irtool.load(next((samples / name).glob("step_parallel_begin*")))
    report = check(dump, EIGHT)
    for edge in (edge for edge in report.redistributions if _communicates(edge)):
        found = network_edits(dump, EIGHT, report, default_machine(), [edge])
        costs = [-edit.seconds for edit in found.dearer]
        assert costs == sorted(costs)
        for edit in (*found.edits, *found.dearer):
            if not edit.removes or edit.new is None:
                continue
            given = {
                **dict.fromkeys(edit.nodes, edit.new),
                **{node: new for node, _, new in edit.beside},
            }
            after = check(with_strategies(dump, given), EIGHT)
            left = [one for one in after.redistributions if _communicates(one)]
            places = {(one.producer.id, one.consumer.id, one.input) for one in left}
            assert (edge.producer.id, edge.consumer.id, edge.input) not in places


def test_a_layout_is_carried_on_through_operators_that_only_move_a_gather_alone(
    samples: Path,
) -> None:
    dump = irtool.load(next((samples / "mlp_semi_auto").glob("step_parallel_begin*")))
    report = check(dump, EIGHT)
    for edge in (edge for edge in report.redistributions if _communicates(edge)):
        for chain in carried(edge, report):
            first, *others = chain
            assert first in (edge.consumer, edge.producer)
            near = {first}
            for node in others:  # each is next to one before it
                assert {*node.users, *node.inputs} & near
                near.add(node)
            assert len(chain) <= 4


def test_a_gather_goes_though_a_reshape_of_the_device_s_own_slice_stays() -> None:
    """MindSpore 2.7.0: MatMul, Cast, Reshape, LayerNorm; with the edit no AllGather is left."""
    four = ParallelContext(devices=4)
    dump = irtool.load(Path(__file__).with_name("cast_and_reshape_begin.ir.xz"))
    report = check(dump, four)
    edge = next(edge for edge in report.redistributions if edge.consumer.op == "Reshape")
    assert "AllGather" in [item.op for item in edge.operators or ()]
    found = network_edits(dump, four, report, default_machine(), [edge])
    (edit,) = (item for item in found.edits if item.removes and item.new)
    assert [node.op for node in edit.nodes] == ["LayerNorm"]
    assert edit.new == ((2, 2, 1), (1,), (1,))
    after = check(with_strategies(dump, dict.fromkeys(edit.nodes, edit.new)), four)
    left = next(one for one in after.redistributions if one.consumer.op == "Reshape")
    assert "AllGather" not in [item.op for item in left.operators or ()]
