"""Which predicted redistribution an inserted operator belongs to, where several are on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.plans.edits import edits_of_causes
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.redistribution import RedistributionStep
from irtool.sharding.why import Cause, explain_in
from irtool.sharding.why.layouts import _is_step, redistribution_of
from irtool.sharding.why.walk import Surroundings, surroundings

FOUR = ParallelContext(devices=4, full_batch=True)


def record(name: str) -> Dump:
    """A small transformer that MindSpore 2.7.0 compiled for four devices."""
    return irtool.load(Path(__file__).with_name(f"behind_reshape_{name}.ir.xz"))


@pytest.fixture(scope="module")
def begin() -> Dump:
    return record("begin")


@pytest.fixture(scope="module")
def report(begin: Dump) -> CheckResult:
    return check(begin, FOUR)


@pytest.fixture(scope="module")
def around(begin: Dump) -> Surroundings:
    return surroundings(record("validate"), begin)


def gathers(around: Surroundings, report: CheckResult) -> list[Cause]:
    """Those between the first Transpose and the norm that follows it."""
    causes = (explain_in(around, node, report) for node in around.dump.nodes("AllGather"))
    return [
        cause
        for cause in causes
        if cause.producer_begin is not None
        and cause.producer_begin.op == "Transpose"
        and cause.begin is not None
        and cause.begin.op == "RmsNorm"
    ]


def splits(cause: Cause) -> Sequence[object]:
    return [layout and layout.splits for layout in (cause.source, cause.target)]


def the_reshape(report: CheckResult) -> RedistributionReport:
    return next(item for item in report.redistributions if item.replaces)


def without(report: CheckResult, *items: RedistributionReport) -> CheckResult:
    kept = tuple(item for item in report.redistributions if item not in items)
    return replace(report, redistributions=kept)


# -- a Reshape between, with a chain in its own place and one behind it ----------------------------


def test_a_gather_belongs_to_the_redistribution_that_holds_its_group(
    around: Surroundings, report: CheckResult
) -> None:
    own, behind = gathers(around, report)
    assert (own.ranks, splits(own)) == ((0, 2), [(1, 2, 1), (4, 1)])
    assert "in the place of Reshape %5; (32, 2, 32) cut (1, 2, 1)" in own.message
    assert (behind.ranks, splits(behind)) == ((0, 1), [(4, 1), (2, 1)])
    assert "RmsNorm %24 behind Reshape %5; (64, 32) cut (4, 1) is wanted as" in behind.message


def test_its_gradient_belongs_there_too(around: Surroundings, report: CheckResult) -> None:
    _, behind = gathers(around, report)
    gradient = next(
        cause
        for node in around.dump.nodes("ReduceScatter")
        if (cause := explain_in(around, node, report)).forward is behind.node
    )
    assert splits(gradient) == [(4, 1), (2, 1)]


def test_operands_of_one_operator_that_are_cut_alike_are_one_redistribution(
    around: Surroundings, report: CheckResult
) -> None:
    """Three slices, of query, key and value."""
    slices = [explain_in(around, node, report) for node in around.dump.nodes("StridedSlice")]
    told = [
        splits(cause)
        for cause in slices
        if cause.begin is not None and cause.begin.op == "FlashAttentionScore"
        and not cause.is_recomputed
    ]  # fmt: skip
    assert told == [[(1, 2, 1), (1, 2, 2)]] * 3


# -- where none or several hold it -----------------------------------------------------------------


def test_a_gather_that_no_redistribution_holds_is_not_told_as_another_one(
    begin: Dump, around: Surroundings, report: CheckResult
) -> None:
    _, behind = gathers(around, report)
    found = redistribution_of(around, behind, report).redistribution
    assert found is not None
    less = without(report, found)
    cause = explain_in(around, behind.node, less)
    assert (cause.source, cause.target, cause.remedy) == (None, None, "")
    why = "no redistribution predicted here holds this AllGather over 0,1: in the place of Reshape"
    assert any(why in text for text in cause.missing)
    edits = edits_of_causes(around, [cause], begin, FOUR, less, default_machine())
    assert cause.node not in edits.edits
    assert why in edits.why_none[cause.node]


def test_a_gather_that_two_redistributions_hold_is_told_as_neither(
    around: Surroundings, report: CheckResult
) -> None:
    _, behind = gathers(around, report)
    found = redistribution_of(around, behind, report).redistribution
    reshape = the_reshape(report)
    assert found is not None
    assert reshape.operators is not None
    assert found.operators is not None
    both = replace(reshape, operators=(*reshape.operators, *found.operators))
    items = tuple(both if item is reshape else item for item in report.redistributions)
    cause = explain_in(around, behind.node, replace(report, redistributions=items))
    assert (cause.source, cause.target, cause.remedy) == (None, None, "")
    why = "2 predicted redistributions hold an equal AllGather over 0,1: Reshape %5 → RmsNorm %7"
    assert any(why in text for text in cause.missing)


def test_a_gather_of_an_unknown_redistribution_says_why_it_is_unknown(
    around: Surroundings, report: CheckResult
) -> None:
    _, behind = gathers(around, report)
    found = redistribution_of(around, behind, report).redistribution
    unknown = replace(found, operators=None) if found is not None else None
    items = tuple(unknown if item is found else item for item in report.redistributions)
    altered = replace(report, redistributions=tuple(item for item in items if item is not None))
    assert redistribution_of(around, behind, altered).redistribution is unknown


# -- what a predicted operator has to have in common -----------------------------------------------


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"op": "AlltoAll"}, False),
        ({"ranks": (0, 2)}, False),
        ({"input_shape": (32, 32)}, False),
        ({"output_shape": (64, 32)}, False),
        ({"output_shape": (32, 32, 1)}, False),
        ({"input_shape": (-1, 32), "output_shape": (-1, 32)}, True),
        ({"input_shape": (-1, 16)}, False),
        ({"input_shape": (-2,), "output_shape": (-2,)}, True),  # of any number of dimensions
        ({"output_shape": (-2,)}, True),
        ({"ranks": ()}, True),  # nothing is said of the group
    ],
)
def test_name_group_and_shapes_decide(
    around: Surroundings, report: CheckResult, change: dict[str, object], fits: bool
) -> None:
    node: Node = gathers(around, report)[1].node
    step = RedistributionStep("AllGather", (16, 32), (32, 32), axis=0, ranks=(0, 1))
    assert _is_step(node, replace(step, **change), (0, 1)) == fits  # pyright: ignore[reportArgumentType]  # fields by name


def test_an_operator_without_types_may_be_any_step_of_its_name_and_group() -> None:
    """Right after the parallel pass what it inserted has none."""
    text = "# IR entry: @main\nsubgraph @main() {\n  %0(a) = AllGather(%para1_x)\n  Return(%0)\n}\n"
    node = next(node for node in irtool.loads(text).nodes() if node.op == "AllGather")
    step = RedistributionStep("AllGather", (16, 32), (32, 32), axis=0, ranks=(0, 1))
    assert _is_step(node, step, (0, 1))
    assert not _is_step(node, step, (0, 2))
    assert not _is_step(node, replace(step, op="Split"), (0, 1))
