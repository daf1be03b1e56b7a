"""The difference of two graphs, in people's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dump import Dump
from tests.compare.graphs import dump

NET = (
    "a = MatMul(%x, %w) f32 (8, 16) @Default/layers.0",
    "c = Add(%a, %b) f32 (8, 16) @Default/layers.0",
    "d = ReLU(%c) f32 (8, 16) @Default/layers.0",
    "e = MatMul(%d, %v) f32 (8, 16) @Default/layers.1",
    "f = Softmax(%e) f32 (8, 16) @Default/layers.1",
)


def changed(position: int, statement: str) -> Dump:
    return dump(*NET[:position], statement, *NET[position + 1 :])


def kinds(diff: GraphDiff) -> list[str]:
    return [edit.kind for edit in diff.edits]


def only(diff: GraphDiff) -> tuple[str, str]:
    """The one edit of a difference."""
    assert len(diff.edits) == 1, kinds(diff)
    return diff.edits[0].kind, diff.edits[0].detail


# -- identical -----------------------------------------------------------------------------------


def test_numbers_and_debug_names_make_no_difference() -> None:
    diff = diff_graphs(dump(*NET), dump(*NET, shift=100))
    assert diff.is_identical
    assert diff.first_divergence is None
    assert {pair.round for pair in diff.pairs} == {"identical"}


def test_the_order_of_printing_makes_no_difference() -> None:
    one = ("a = ReLU(%x) f32 (8, 16)", "c = Tanh(%w) f32 (8, 16)", "d = Mul(%a, %c) f32 (8, 16)")
    other = (one[1], one[0], one[2])
    assert diff_graphs(dump(*one), dump(*other)).is_identical


def test_what_only_orders_makes_a_difference_though_every_value_is_the_same() -> None:
    """A Depend that waits for something else launches in another order."""
    values = ("a = ReLU(%x) f32 (8, 16)", "c = Tanh(%w) f32 (8, 16)", "e = Exp(%v) f32 (8, 16)")
    last = ("m = Mul(%d, %c) f32 (8, 16)", "n = Mul(%m, %e) f32 (8, 16)")
    one = dump(*values, "d = Depend(%a, %c) f32 (8, 16)", *last)
    same = dump(*values, "d = Depend(%a, %c) f32 (8, 16)", *last, shift=7)
    other = dump(*values, "d = Depend(%a, %e) f32 (8, 16)", *last)
    assert diff_graphs(one, same).is_identical
    reordered = diff_graphs(one, other)
    assert not reordered.edits
    assert not reordered.is_identical
    assert reordered.first_divergence is not None


SAMPLES = (
    "gpt/20_validate_0080.ir",
    "gpt/step_parallel_begin_0018.ir",
    "recompute/20_validate_0081.ir",
    "mlp_semi_auto/20_validate_0080.ir",
)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_real_dump_equals_itself_renumbered(samples: Path, name: str) -> None:
    text = (samples / name).read_text(encoding="utf-8")
    ids = re.sub(r'(unique_id: ")(\d+)"', lambda found: f'{found[1]}{int(found[2]) + 5000}"', text)
    other = re.sub(r"CNode_(\d+)", lambda found: f"CNode_{int(found[1]) * 3}", ids)
    other = re.sub(r"0x[0-9a-f]{6,}", "0x7f00deadbeef", other)
    diff = diff_graphs(irtool.loads(text), irtool.loads(other))
    assert diff.is_identical
    assert not diff.only_left
    assert not diff.only_right


def test_world_groups_of_both_targets_are_equal() -> None:
    ascend = changed(1, 'c = AllReduce(%a) f32 (8, 16) @Default {group: "hccl_world_group"}')
    gpu = changed(1, 'c = AllReduce(%a) f32 (8, 16) @Default {group: "nccl_world_group"}')
    assert diff_graphs(ascend, gpu).is_identical


# -- edits ---------------------------------------------------------------------------------------


def test_an_attribute_changed() -> None:
    left = changed(4, "f = Softmax(%e) f32 (8, 16) @Default/layers.1 {axis: I64(1)}")
    right = changed(4, "f = Softmax(%e) f32 (8, 16) @Default/layers.1 {axis: I64(0)}")
    assert only(diff_graphs(left, right)) == ("attribute changed", "axis: 1 → 0")


def test_a_constant_operand_changed() -> None:
    left = changed(4, "f = LayerNorm(%e, F32(1e-05)) f32 (8, 16) @Default/layers.1")
    right = changed(4, "f = LayerNorm(%e, F32(0.001)) f32 (8, 16) @Default/layers.1")
    assert only(diff_graphs(left, right)) == ("constant changed", "operand 2: 1e-05 → 0.001")


def test_a_strategy_changed() -> None:
    left = changed(
        0, "a = MatMul(%x, %w) f32 (8, 16) @Default/layers.0 {in_strategy: ((2, 1), (1, 4))}"
    )
    right = changed(
        0, "a = MatMul(%x, %w) f32 (8, 16) @Default/layers.0 {in_strategy: ((8, 1), (1, 1))}"
    )
    kind, detail = only(diff_graphs(left, right))
    assert kind == "re-sharded"
    assert detail == "in_strategy: ((2, 1), (1, 4)) → ((8, 1), (1, 1))"


def test_recompute_was_lost() -> None:
    left = changed(2, "d = ReLU(%c) f32 (8, 16) @Default/layers.0 {recompute: Bool(1)}")
    assert kinds(diff_graphs(left, dump(*NET))) == ["recompute changed"]


def test_a_group_changed() -> None:
    text = 'c = AllReduce(%a) f32 (8, 16) @Default/layers.0 {group: "2-5004544844489628105"}'
    left, right = changed(1, text), changed(1, text.replace("5004544844489628105", "999"))
    assert kinds(diff_graphs(left, right)) == ["group changed"]


def test_a_result_type_changed_and_what_follows() -> None:
    half = [text.replace("f32", "f16") if "layers.1" in text else text for text in NET]
    diff = diff_graphs(dump(*NET), dump(*half))
    assert kinds(diff) == ["dtype changed", "dtype changed"]
    assert [edit.follows for edit in diff.edits] == [False, True]


def test_a_node_moved_to_another_scope() -> None:
    right = changed(2, "d = ReLU(%c) f32 (8, 16) @Default/layers.7")
    assert only(diff_graphs(dump(*NET), right)) == (
        "moved",
        "scope: Default/layers.0 → Default/layers.7",
    )


def test_a_cast_was_inserted() -> None:
    right = dump(
        *NET[:3],
        "k = Cast(%d) f16 (8, 16) @Default/layers.1",
        NET[3].replace("%d", "%k"),
        NET[4],
    )
    diff = diff_graphs(dump(*NET), right)
    assert kinds(diff) == ["cast inserted"]
    assert kinds(diff_graphs(right, dump(*NET))) == ["cast removed"]
    assert len(diff.pairs) == 6


def test_a_collective_was_inserted() -> None:
    right = dump(
        NET[0],
        'k = AllReduce(%a) f32 (8, 16) @Default/layers.0 {group: "hccl_world_group"}',
        NET[1].replace("%a", "%k"),
        *NET[2:],
    )
    assert kinds(diff_graphs(dump(*NET), right)) == ["collective inserted"]


def test_an_operator_was_replaced() -> None:
    right = changed(2, "d = GeLU(%c) f32 (8, 16) @Default/layers.0")
    assert only(diff_graphs(dump(*NET), right)) == ("replaced", "ReLU → GeLU")


def test_operators_were_fused_and_split() -> None:
    fused = dump("a = FusedLinear(%x, %w, %b) f32 (8, 16) @Default/layers.0",
                 "d = ReLU(%a) f32 (8, 16) @Default/layers.0", *NET[3:])  # fmt: skip
    assert only(diff_graphs(dump(*NET), fused)) == ("fused", "MatMul, Add → FusedLinear")
    assert only(diff_graphs(fused, dump(*NET))) == ("split", "FusedLinear → MatMul, Add")


def test_a_reduction_was_split() -> None:
    split = dump(
        "s = StridedSlice(%x, I64(0)) f32 (8, 8) @Default/layers.0",
        "t = StridedSlice(%x, I64(8)) f32 (8, 8) @Default/layers.0",
        "u = StridedSlice(%w, I64(0)) f32 (8, 16) @Default/layers.0",
        "q = StridedSlice(%w, I64(8)) f32 (8, 16) @Default/layers.0",
        "a = MatMul(%s, %u) f32 (8, 16) @Default/layers.0",
        "k = MatMul(%t, %q) f32 (8, 16) @Default/layers.0",
        "m = AddN(%a, %k) f32 (8, 16) @Default/layers.0",
        NET[1].replace("%a", "%m"),
        *NET[2:],
    )
    diff = diff_graphs(dump(*NET), split)
    assert kinds(diff) == ["reduction split"]
    assert diff.edits[0].detail.startswith("MatMul → ")
    assert kinds(diff_graphs(split, dump(*NET))) == ["reduction joined"]


def test_a_sum_was_reordered() -> None:
    one = dump("a = Add(%x, %w) f32 (8, 16)", "c = Add(%a, %v) f32 (8, 16)")
    other = dump("a = Add(%w, %v) f32 (8, 16)", "c = Add(%x, %a) f32 (8, 16)")
    assert set(kinds(diff_graphs(one, other))) <= {"reduction reordered", "operands reordered"}


def test_operands_changed_places() -> None:
    right = changed(1, "c = Add(%b, %a) f32 (8, 16) @Default/layers.0")
    assert kinds(diff_graphs(dump(*NET), right)) == ["operands reordered"]


def test_an_input_comes_from_elsewhere() -> None:
    right = changed(3, "e = MatMul(%c, %v) f32 (8, 16) @Default/layers.1")
    diff = diff_graphs(dump(*NET), right)
    assert "input changed" in kinds(diff)


def test_another_parameter_is_read() -> None:
    right = changed(3, "e = MatMul(%d, %w) f32 (8, 16) @Default/layers.1")
    diff = diff_graphs(dump(*NET), right)
    assert kinds(diff) == ["parameter renamed"]
    assert diff.edits[0].detail == "operand 2: v → w"


def test_a_layer_was_appended() -> None:
    right = dump(*NET, "g = Tanh(%f) f32 (8, 16) @Default/layers.2")
    diff = diff_graphs(dump(*NET), right)
    assert ("added", "Tanh") in [(edit.kind, edit.detail) for edit in diff.edits]
    assert [node.op for node in diff.only_right] == ["Tanh"]


# -- where it begins, patterns -------------------------------------------------------------------


def test_the_first_divergence_is_the_first_in_the_flow() -> None:
    right = dump(
        NET[0], NET[1], "d = GeLU(%c) f32 (8, 16) @Default/layers.0", NET[3],
        "f = LogSoftmax(%e) f32 (8, 16) @Default/layers.1",
    )  # fmt: skip
    first = diff_graphs(dump(*NET), right).first_divergence
    assert first is not None
    assert first.left is not None
    assert first.right is not None
    assert (first.left.op, first.right.op) == ("ReLU", "GeLU")


def test_equal_edits_of_repeated_layers_are_one_pattern() -> None:
    def layers(activation: str) -> Dump:
        return dump(
            *(
                f"{'abcdefgh'[n]} = {activation}(%{'xabcdefg'[n]}) f32 (8, 16) @Default/layers.{n}"
                for n in range(8)
            )
        )

    diff = diff_graphs(layers("ReLU"), layers("GeLU"))
    assert len(diff.patterns) == 1
    changed = diff_graphs(
        dump(*(f"{'abcdefgh'[n]} = Tanh(%{'xabcdefg'[n]}) f32 (8, 16) @Default/layers.{n}"
               for n in range(8))),
        dump(*(f"{'abcdefgh'[n]} = Tanh(%{'xabcdefg'[n]}) f32 (8, 16) @Default/layers.{n} "
               "{mode: I64(1)}" for n in range(8))),
    )  # fmt: skip
    assert [(len(p.edits), p.layers) for p in changed.patterns] == [(8, 8)]


def test_a_backward_pass_that_one_dump_lacks_is_one_edit(samples: Path) -> None:
    begin = irtool.load(samples / "gpt/step_parallel_begin_0018.ir")
    validate = irtool.load(samples / "gpt/20_validate_0080.ir")
    diff = diff_graphs(begin, validate)
    assert kinds(diff).count("backward pass added") == 1
    forward = [node for node in validate.nodes(op="MatMul") if not node.is_backward]
    assert not set(forward) & set(diff.only_right)


# -- invariants ----------------------------------------------------------------------------------

OPERATORS = ("ReLU", "Tanh", "GeLU", "Neg")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 5)), min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 5)), min_size=1, max_size=12),
)
def test_every_operator_is_matched_or_alone(
    left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    def made(items: list[tuple[str, int]]) -> Dump:
        names = [f"n{number}" for number in range(len(items))]
        statements: list[str] = []
        for number, (operator, back) in enumerate(items):
            source = names[number - 1 - back] if number - 1 - back >= 0 else "x"
            statements.append(f"{names[number]} = {operator}(%{source}) f32 (8, 16)")
        return dump(*statements)

    one, other = made(left), made(right)
    diff = diff_graphs(one, other)
    lefts = {pair.left for pair in diff.pairs} | set(diff.only_left)
    rights = {pair.right for pair in diff.pairs} | set(diff.only_right)
    assert len(lefts) == sum(1 for _ in one.nodes())
    assert len(rights) == sum(1 for _ in other.nodes())
    assert diff_graphs(one, one).is_identical
    assert diff.is_identical == (not diff.edits)
