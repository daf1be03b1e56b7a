"""What in two graphs could make numbers differ, and what could not."""

from __future__ import annotations

import json

from irtool.compare.graph_diff import diff_graphs
from irtool.compare.suspects import mindspore_dump_settings, suspects
from tests.compare.graphs import dump

PRODUCT = "m = MatMul(%x, %w) f32 (8, 16) @Default/a"


def test_another_operator_is_a_suspect_and_is_dumped() -> None:
    left = dump(PRODUCT, "r = ReLU(%m) f32 (8, 16) @Default/b")
    right = dump(PRODUCT, "r = GeLU(%m) f32 (8, 16) @Default/b")
    found = suspects(diff_graphs(left, right))
    assert [item.kind for item in found] == ["replaced"]
    settings = json.loads(mindspore_dump_settings(found))
    assert settings["common_dump_settings"]["kernels"] == ["ReLU", "GeLU"]


def test_marks_and_plumbing_compute_nothing() -> None:
    left = dump("v = _VirtualDataset(%x) f32 (8, 16) @Default", "m = MatMul(%v, %w) f32 (8, 16)")
    right = dump("m = MatMul(%x, %w) f32 (8, 16)", "s = StopGradient(%m) f32 (8, 16) @Default")
    assert not suspects(diff_graphs(left, right))


def test_how_a_collective_is_sent_does_not_change_what_is_sent() -> None:
    left = dump(PRODUCT, 's = AllReduce(%m) f32 (8, 16) @Default {op: "sum", freeze: Bool(0)}')
    right = dump(PRODUCT, 's = AllReduce(%m) f32 (8, 16) @Default {op: "sum", freeze: Bool(1)}')
    diff = diff_graphs(left, right)
    assert not diff.is_identical
    assert not suspects(diff)


def test_another_sum_of_a_collective_is_a_suspect() -> None:
    left = dump(PRODUCT, 's = AllReduce(%m) f32 (8, 16) @Default {op: "sum"}')
    right = dump(PRODUCT, 's = AllReduce(%m) f32 (8, 16) @Default {op: "max"}')
    assert [item.kind for item in suspects(diff_graphs(left, right))] == ["attribute changed"]


def test_shapes_that_follow_from_other_operands_are_no_suspects() -> None:
    left = dump(PRODUCT, "r = ReLU(%m) f32 (8, 16) @Default/b")
    right = dump("m = MatMul(%x, %w) f32 (4, 16) @Default/a", "r = ReLU(%m) f32 (4, 16) @Default/b")
    found = suspects(diff_graphs(left, right))
    assert [(item.kind, item.node.op) for item in found] == [("shape changed", "MatMul")]
