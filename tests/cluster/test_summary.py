"""What is in a dump, in numbers: counted by hand."""

from __future__ import annotations

from pathlib import Path

import irtool
from irtool.cluster.summary import GroupCount, Summary, group_nodes, merge_groups, summarize
from irtool.ir.dump import Dump
from irtool.ir.graph import Node

TEXT = """\
# IR entry: @main
# Total params: 4
# Params:
%para1_x: <Tensor[Float32], (4, 8)> : [4, 8]
%para2_w: <Ref[Tensor[Float16]], (8, 8), ref_key=w, is_parameter>  :  has_default
%para3_moments.w: <Ref[Tensor[Float32]], (8, 8), ref_key=moments.w, is_parameter>  :  has_default
%para4_y: <Tensor[Int32], (4)> : [4]

subgraph @main() {
  %0(a) = Load(%para2_w, %para1_x)
      : (<Ref[Tensor[Float16]], (8, 8), ref_key=w>, <Tensor[Float32], (4, 8)>) -> (<Tensor[Float16], (8, 8)>)
  %1(b) = PrimFunc_MatMul(%para1_x, %0, Bool(0), Bool(0)) {in_strategy: ((2, 1), (1, 2))}
      : (<Tensor[Float32], (4, 8)>, <Tensor[Float16], (8, 8)>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (4, 8)>)
  %2(c) = PrimFunc_ReLU(%1)
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (4, 8)>)
  %3(d) = PrimFunc_ReLU(%2)
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (-1, 8)>)
  %4(e) = AllReduce(%2) primitive_attrs: {group: "2-1", rank_list: (0, 1), op: "sum", fusion: I64(0)}
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (4, 8)>)
  %5(f) = AllReduce(%4) primitive_attrs: {group: "2-1", rank_list: (0, 1), op: "sum", fusion: I64(0)}
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (4, 8)>)
  %6(g) = AllGather(%5) primitive_attrs: {group: "2-2", rank_list: (0, 2), fusion: I64(0)}
      : (<Tensor[Float32], (4, 8)>) -> (<Tensor[Float32], (8, 8)>)
  Return(%6)
      : (<Tensor[Float32], (8, 8)>)
}
"""  # noqa: E501  (lines as MindSpore prints them)


def dump() -> Dump:
    found = irtool.loads(TEXT, "20_validate_0080.ir")
    assert not found.problems
    return found


def summary() -> Summary:
    return summarize(dump(), "validate", 3)


def test_operators_by_bytes_of_their_results() -> None:
    rows = [(row.op, row.count, row.bytes, row.unknown) for row in summary().operators]
    assert rows == [
        ("AllGather", 1, 256, 0), ("AllReduce", 2, 256, 0),
        ("MatMul", 1, 128, 0), ("ReLU", 2, 128, 1),
    ] or rows == [
        ("AllReduce", 2, 256, 0), ("AllGather", 1, 256, 0),
        ("ReLU", 2, 128, 1), ("MatMul", 1, 128, 0),
    ]  # fmt: skip
    assert [row[0] for row in rows[:2]] == ["AllReduce", "AllGather"]  # more of them come first


def test_what_hands_on_is_told_apart() -> None:
    found = summary()
    assert found.passing == 2  # Load and Return
    assert found.nodes == 8
    assert found.graphs == (("main", 8),)
    assert found.with_strategy == 1


def test_collectives_by_group() -> None:
    rows = [(row.op, row.group, row.ranks, row.count, row.bytes) for row in summary().collectives]
    assert rows == [("AllReduce", "2-1", (0, 1), 2, 256), ("AllGather", "2-2", (0, 2), 1, 256)]


def test_parameters_by_what_they_are() -> None:
    found = summary()
    rows = {row.kind: (row.count, row.bytes) for row in found.parameters}
    assert rows["input"] == (2, 4 * 8 * 4 + 4 * 4)
    assert sum(count for count, _ in rows.values()) == 4
    assert found.weight_bytes == 8 * 8 * 2 + 8 * 8 * 4


def test_ties_are_looked_for_unless_told_otherwise(samples: Path) -> None:
    step = irtool.load(samples / "mlp_semi_auto" / "20_validate_0080.ir")
    assert summarize(step, with_ties=False).backward_tied is None
    tied, tieable = summarize(step).backward_tied or (0, 0)
    assert 0 < tied <= tieable
    assert summary().backward_tied is None  # nothing there is a gradient


def test_only_what_is_asked_for_is_counted() -> None:
    found = summarize(dump(), where=lambda node: node.op == "ReLU")
    assert found.nodes == 2
    assert [row.op for row in found.operators] == ["ReLU"]
    assert found.collectives == ()
    assert found.passing == 0


def op_of(node: Node) -> object:
    return node.op


def test_nodes_are_grouped_by_fields_the_most_frequent_first() -> None:
    nodes = [node for node in dump().nodes() if not node.is_return]
    rows = group_nodes(nodes, [op_of, lambda node: node.in_strategy])
    assert [(row.key[0], row.count, row.bytes) for row in rows] == [
        ("AllReduce", 2, 256), ("ReLU", 2, 128), ("AllGather", 1, 256), ("Load", 1, 128),
        ("MatMul", 1, 128),
    ]  # fmt: skip
    assert rows[-1].key == ("MatMul", ((2, 1), (1, 2)))


def test_groups_of_several_dumps_are_added_up() -> None:
    one, other = GroupCount(("ReLU",), 2, 10), GroupCount(("Add",), 3, 1)
    assert merge_groups([one, other, one]) == (GroupCount(("ReLU",), 4, 20), other)
    assert merge_groups([]) == ()
