"""Which node of a graph each dumped operator is: names, numberings, shapes, parameters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import irtool
from irtool.compare.tensors.join import Names, choose, full_names, graph_files, join
from irtool.compare.tensors.model import Columns, Op, Shape, TensorRun
from irtool.ir.dump import Dump
from tests.compare.operators import run, tensor

GRAPH = """\
# IR entry: @net_1
%para1_x: <Tensor[Float32], (4, 8)>
%para2_layer.w: <Ref[Tensor[Float32]], (8, 16), ref_key=layer.w>  :  has_default

subgraph @net_1() {
  %0(a) = Load(%para2_layer.w, U)
      : (<Ref[Tensor[Float32]], (8, 16)>, <UMonad, NoShape>) -> (<Tensor[Float32], (8, 16)>)
      # Fullname with scope: (Default/Load-op0)
  %1(b) = MatMul(%para1_x, %0)
      : (<Tensor[Float32], (4, 8)>, <Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (4, 16)>)
      # Fullname with scope: (Default/layer/MatMul-op7)
      # In file /net.py:12/        return self.mul(x, self.w)/
  %2(c) = TopK(%1, I64(2))
      : (<Tensor[Float32], (4, 16)>, <Int64, NoShape>) -> (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((4, 2), (4, 2))>)
      # Fullname with scope: (Default/layer/TopK-op3)
  %3(d) = TupleGetItem(%2, I64(0))
      : (<Tuple[Tensor[Float32],Tensor[Int32]], TupleShape((4, 2), (4, 2))>, <Int64, NoShape>) -> (<Tensor[Float32], (4, 2)>)
  Return(%3)
      : (<Tensor[Float32], (4, 2)>)
}
"""  # noqa: E501  (lines as MindSpore prints them)

PRINTED = ["Default/Load-op0", "Default/layer/MatMul-op7", "Default/layer/TopK-op3"]
ANEW = ["Default/Load-op0", "Default/layer/MatMul-op0", "Default/layer/TopK-op0"]


def graph() -> Dump:
    return irtool.loads(GRAPH, "ms_output_0.ir")


def dumped(*ops: tuple[str, str, list[Shape], list[Shape]]) -> TensorRun:
    """Operators by type, name, shapes of inputs and of outputs."""
    columns = Columns()
    made: list[Op] = []
    for kind, name, inputs, outputs in ops:
        given = [tensor(columns, f"input.{n}", shape) for n, shape in enumerate(inputs)]
        put = [tensor(columns, f"output.{n}", shape) for n, shape in enumerate(outputs)]
        made.append(Op(len(made), name, kind, "forward", given, put))
    return run(columns, made)


MATMUL = ("MatMul", "Default_layer_MatMul-op7", [(4, 8), (8, 16)], [(4, 16)])


def test_names_are_found_by_text_alone() -> None:
    found = full_names("x.ir", GRAPH.encode())
    assert (found.path, list(found.names)) == ("x.ir", PRINTED)
    assert full_names(
        "x.ir", b"# fullname with scope: (a)\n#Fullname with scope: (b) \nc"
    ).names == (
        "a",
        "b",
    )


def test_the_file_that_knows_most_is_chosen_and_the_first_of_equals() -> None:
    some = dumped(MATMUL, ("TopK", "Default_layer_TopK-op3", [], []), ("Parameter", "w", [], []))
    less = Names("less.ir", ("Default/layer/MatMul-op7", "Default/layer/TopK-op9"))
    chosen = choose(some, [less, Names("a.ir", tuple(PRINTED)), Names("b.ir", tuple(PRINTED))])
    assert chosen == ("a.ir", False, PRINTED)
    assert choose(some, [Names("none.ir", ("Default/x-op1",))]) is None
    assert choose(some, []) is None


def test_stale_numbers_are_counted_anew() -> None:
    some = dumped(
        ("MatMul", "Default_layer_MatMul-op0", [], []), ("TopK", "Default_layer_TopK-op0", [], [])
    )
    assert choose(some, [Names("a.ir", tuple(PRINTED))]) == ("a.ir", True, ANEW)


def test_graphs_of_one_process_are_counted_on() -> None:
    """The second graph that a dump itself wrote goes on where the first one ended."""
    some = dumped(("MatMul", "Default_layer_MatMul-op1", [], []))
    names = ("Default/layer/MatMul-op7",)
    two = [Names("graphs/ms_output_0.ir", names), Names("graphs/ms_output_1.ir", names)]
    assert choose(some, two) == (
        "graphs/ms_output_1.ir",
        True,
        ["Default/layer/MatMul-op1"],
    )
    other = [Names("validate_0.ir", names), Names("validate_1.ir", names)]
    assert choose(some, other) is None


def test_an_operator_gets_its_node_source_and_parameters() -> None:
    some = dumped(MATMUL)
    found = join(some, graph(), PRINTED, False)
    (op,) = some.ops
    assert op.node is not None
    assert (op.node.id, op.source) == ("%1", "/net.py:12")
    assert op.parameters == {op.inputs[1]}  # seen through Load
    assert (found.operators, found.with_node, found.checked) == (1, 1, 3)
    assert (found.stale, found.mismatched, found.unknown) == (0, 0, ())
    assert (found.rate, found.replayed, found.path) == (1.0, False, "ms_output_0.ir")


def test_names_counted_anew_lead_to_the_nodes_in_their_order() -> None:
    some = dumped(("MatMul", "Default_layer_MatMul-op0", *MATMUL[2:]))
    found = join(some, graph(), ANEW, True)
    assert some.ops[0].node is not None
    assert some.ops[0].node.id == "%1"
    assert (found.stale, found.replayed) == (1, True)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "checked"),
    [
        ("matmul", [(4, 8), (8, 16)], [(4, 16)], 3),
        ("MatMul", [(8, 4), (8, 16)], [(2, 32)], 1),  # laid out otherwise on the device
        ("MatMul", [(4, 8), (8, 16), (1,)], [(4, 16), (7,)], 3),  # of which the graph says nothing
        ("MatMul", [(4, 9), (8, 16)], [(4, 16)], None),
        ("MatMul", [(4, 8), (8, 16)], [(4, 17)], None),
        ("Mul", [(4, 8), (8, 16)], [(4, 16)], None),
    ],
)
def test_operators_and_numbers_of_elements_must_agree(
    kind: str, inputs: list[Shape], outputs: list[Shape], checked: int | None
) -> None:
    some = dumped((kind, MATMUL[1], inputs, outputs))
    found = join(some, graph(), PRINTED, False)
    if checked is None:
        assert (found.with_node, found.mismatched, found.unknown) == (0, 1, (MATMUL[1],))
        assert some.ops[0].node is None
        assert found.rate == 0.0
    else:
        assert (found.with_node, found.mismatched, found.checked) == (1, 0, checked)


def test_what_has_no_node_is_told_by_name() -> None:
    some = dumped(
        MATMUL,
        ("ReLU", "Default_ReLU-op1", [], []),
        ("Parameter", "layer_w", [], []),
        ("Parameter", "other_w", [], []),
    )
    found = join(some, graph(), PRINTED, False)
    assert (found.operators, found.with_node, found.rate) == (4, 2, 0.5)
    assert found.unknown == ("Default_ReLU-op1", "other_w")
    assert join(dumped(), graph(), PRINTED, False).rate == 0.0


def test_results_that_nobody_reads_may_be_memory_that_nobody_wrote() -> None:
    some = dumped(("TopK", "Default_layer_TopK-op3", [(4, 16)], [(4, 2), (4, 2)]))
    join(some, graph(), PRINTED, False)
    (op,) = some.ops
    assert some.columns.notes == {op.outputs[1]: "dead output"}


def test_results_that_are_read_as_a_whole_are_all_written() -> None:
    whole = irtool.loads(GRAPH.replace("TupleGetItem(%2, I64(0))", "MakeTuple(%2, I64(0))"))
    some = dumped(("TopK", "Default_layer_TopK-op3", [(4, 16)], [(4, 2), (4, 2)]))
    join(some, whole, PRINTED, False)
    assert some.columns.notes == {}


def test_graphs_of_a_dump_stand_beside_it_in_order(tmp_path: Path) -> None:
    graphs = tmp_path / "net" / "graphs"
    graphs.mkdir(parents=True)
    for name in ("ms_output_10.ir", "ms_output_2.ir.gz", "ms_output_1.ir.xz", "notes.txt"):
        (graphs / name).write_text("")
    step = tmp_path / "net" / "0" / "1" / "2"
    step.mkdir(parents=True)
    names = [os.path.basename(path) for path in graph_files(str(step))]
    assert names == ["ms_output_1.ir.xz", "ms_output_2.ir.gz", "ms_output_10.ir"]
    deep = step / "3" / "4"
    deep.mkdir(parents=True)
    assert graph_files(str(deep)) == []
    assert len(graph_files(str(step / "3"))) == 3
