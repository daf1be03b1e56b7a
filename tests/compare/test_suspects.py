"""What in two graphs could make numbers differ, and what could not."""

from __future__ import annotations

import json
import math

import pytest

from irtool.compare.graph_diff import diff_graphs
from irtool.compare.runs.dump_settings import mindspore_dump_settings, msprobe_settings
from irtool.compare.runs.suspects import Suspect, suspects
from irtool.compare.series import Snapshot, timeline
from irtool.ir.dump import Dump
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


HALF, SINGLE = 2.0**-11, 2.0**-24


def found(left: list[str], right: list[str]) -> list[Suspect]:
    return suspects(diff_graphs(dump(*left), dump(*right)))


REST = "r = ReLU(%m) f32 (8, 16) @Default/b"


@pytest.mark.parametrize(
    ("kind", "inserted", "error"),
    [
        ("f32", "c = AllReduce(%m) f32 (8, 16) @Default", None),
        ("f16", "c = AllReduce(%m) f16 (8, 16) @Default", 0.5 * math.sqrt(8) * HALF),
        (
            "f16",
            "c = AllReduce(%m) f16 (8, 16) @Default {rank_size: I64(4)}",
            0.5 * 2 * HALF,
        ),
    ],
)
def test_a_collective_more_is_a_suspect_where_it_adds_up_in_half_precision(
    kind: str, inserted: str, error: float | None
) -> None:
    product = f"m = MatMul(%x, %w) {kind} (8, 16) @Default/a"
    left = [product, "r = ReLU(%m) f32 (8, 16) @Default/b"]
    right = [product, inserted, "r = ReLU(%c) f32 (8, 16) @Default/b"]
    for one, other, word in ((left, right, "inserted"), (right, left, "removed")):
        items = [item for item in found(one, other) if item.kind == f"collective {word}"]
        if error is None:
            assert items == []
        else:
            (item,) = items
            assert item.error == pytest.approx(error)
            assert item.why == "AllReduce adds up in half precision"


@pytest.mark.parametrize(("kind", "error"), [("f16", HALF), ("f32", SINGLE)])
def test_a_cast_more_brings_a_rounding_of_its_type(kind: str, error: float) -> None:
    left = [PRODUCT, REST]
    right = [
        PRODUCT,
        f"c = Cast(%m) {kind} (8, 16) @Default",
        "r = ReLU(%c) f32 (8, 16) @Default/b",
    ]
    items = [item for item in found(left, right) if item.kind == "cast inserted"]
    assert [item.error for item in items] == [error]


def test_another_order_of_a_sum_brings_roundings() -> None:
    sums = [
        "a = Add(%x, %b) f32 (8, 16) @Default/s",
        "r = Add(%a, %v) f32 (8, 16) @Default/s",
    ]
    other = [
        "a = Add(%b, %v) f32 (8, 16) @Default/s",
        "r = Add(%x, %a) f32 (8, 16) @Default/s",
    ]
    items = found(sums, other)
    assert [item.kind for item in items] == ["reduction reordered"]
    assert items[0].error == pytest.approx(0.4 * 8 * SINGLE)


def test_another_constant_or_attribute_brings_anything() -> None:
    for before, after in (
        ("r = Mul(%m, F32(2)) f32 (8, 16)", "r = Mul(%m, F32(3)) f32 (8, 16)"),
        (
            "r = Softmax(%m) f32 (8, 16) {axis: I64(0)}",
            "r = Softmax(%m) f32 (8, 16) {axis: I64(1)}",
        ),
    ):
        (item,) = found([PRODUCT, before], [PRODUCT, after])
        assert item.error == 1.0


@pytest.mark.parametrize("name", ["format", "dst_type"])
def test_how_a_tensor_is_laid_out_brings_nothing(name: str) -> None:
    before, after = (f"r = Softmax(%m) f32 (8, 16) {{{name}: I64({value})}}" for value in (0, 1))
    assert found([PRODUCT, before], [PRODUCT, after]) == []


@pytest.mark.parametrize(("op", "is_suspect"), [("Reshape", False), ("Exp", True)])
def test_another_operator_counts_if_it_computes(op: str, is_suspect: bool) -> None:
    left = [PRODUCT, REST]
    right = [PRODUCT, f"e = {op}(%m) f32 (8, 16) @Default", "r = ReLU(%e) f32 (8, 16) @Default/b"]
    items = found(left, right)
    assert bool(items) == is_suspect
    if is_suspect:
        assert [item.error for item in items] == [0.5]


def test_the_heaviest_is_named_first_and_what_layers_share_once() -> None:
    def layers(function: str, constant: str) -> list[str]:
        made: list[str] = []
        for n in range(3):
            before = f"%a{n - 1}" if n else "%x"
            made += [
                f"m{n} = MatMul({before}, %w) f32 (8, 16) @Default/layers/{n}-Cell",
                f"a{n} = {function}(%m{n}) f32 (8, 16) @Default/layers/{n}-Cell",
            ]
        return [*made, f"r = Mul(%a2, F32({constant})) f32 (8, 16) @Default/head"]

    items = found(layers("ReLU", "2"), layers("GeLU", "3"))
    assert [(item.kind, item.times, item.error) for item in items] == [
        ("constant changed", 1, 1.0),
        ("replaced", 3, 0.5),
    ]
    assert len(items[1].nodes) == 6
    assert items[1].node is items[1].nodes[0]


# -- what to dump


def test_settings_name_the_steps_and_operators_once() -> None:
    items = found([PRODUCT, REST], [PRODUCT, "r = GeLU(%m) f32 (8, 16) @Default/b"])
    common = json.loads(mindspore_dump_settings([*items, *items], (3, 5, 9), "/here"))[
        "common_dump_settings"
    ]
    assert (common["iteration"], common["dump_mode"]) == ("3-9", 1)
    assert (common["path"], common["kernels"]) == ("/here", ["ReLU", "GeLU"])
    assert (common["saved_data"], common["input_output"]) == ("tensor", 0)
    everything = json.loads(mindspore_dump_settings([], (4,)))
    assert everything["common_dump_settings"]["dump_mode"] == 0
    assert everything["common_dump_settings"]["kernels"] == []
    assert everything["common_dump_settings"]["iteration"] == "4"
    assert everything["e2e_dump_settings"] == {"enable": True, "trans_flag": True}


def test_settings_of_msprobe_name_the_same_steps() -> None:
    made = json.loads(msprobe_settings((3, 5), "/here"))
    assert (made["step"], made["dump_path"]) == ([3, 5], "/here")
    assert (made["task"], made["level"], made["rank"]) == ("statistics", "mix", [])
    assert made["statistics"]["data_mode"] == ["all"]


# -- passes


def snapshot(name: str, fingerprint: str, one: Dump) -> Snapshot:
    return Snapshot(name, fingerprint, one)


def test_a_timeline_tells_what_each_pass_changed() -> None:
    first = dump(PRODUCT, REST)
    last = dump(PRODUCT, "r = GeLU(%m) f32 (8, 16) @Default/b")
    steps = list(
        timeline(
            [
                snapshot("0", "a", first),
                snapshot("1", "a", first),
                snapshot("2", "b", dump(PRODUCT, REST, shift=5)),
                snapshot("3", "c", last),
            ]
        )
    )
    assert [(step.before, step.after) for step in steps] == [("0", "1"), ("1", "2"), ("2", "3")]
    assert [step.is_identical for step in steps] == [True, True, False]
    assert [step.diff is None for step in steps] == [True, False, False]
    assert [step.counts for step in steps] == [{}, {}, {"replaced": 1}]
