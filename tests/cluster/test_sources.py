"""The line of Python behind a node: its own, its forward node's, or that of its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.sources import user_location
from irtool.ir.collectives import is_collective
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.places import located

TENSOR = "<Tensor[Float32], (4, 64)>"
LIBRARY = "/venv/site-packages/mindspore/nn/layer/basic.py"


def nodes(*statements: tuple[str, str, str]) -> list[Node]:
    """Statements: operator with operands, attributes, file of its line of Python ("": none)."""
    lines = ["# IR entry: @net", "", f"%para1_x: {TENSOR} : [4, 64]", "", "subgraph @net() {"]
    for number, (call, attributes, file) in enumerate(statements):
        marks = f" cnode_primal_attrs: {{{attributes}}}" if attributes else ""
        lines += [f"  %{number}(v{number}) = {call}{marks}", f"      : ({TENSOR}) -> ({TENSOR})"]
        lines += [f"      # In file {file}:{number + 1}, 8~20/        x = f(x)/"] if file else []
    lines += [f"  Return(%{len(statements) - 1})", "}", ""]
    dump = irtool.loads("\n".join(lines))
    assert not dump.problems
    return [node for node in dump.nodes() if not node.is_return]


def lines_of(*statements: tuple[str, str, str]) -> list[int | None]:
    """The line of Python that is told of each statement."""
    found = (user_location(node) for node in nodes(*statements))
    return [None if location is None else location.line for location in found]


RELU = ("PrimFunc_ReLU(%para1_x)", "", "net.py")


def test_a_node_has_its_own_line() -> None:
    assert lines_of(RELU) == [1]


def test_mindspores_own_code_is_no_answer() -> None:
    assert lines_of(("PrimFunc_ReLU(%para1_x)", "", LIBRARY)) == [None]


@pytest.mark.parametrize("between", [0, 1, 3])
def test_what_is_inserted_has_the_line_of_the_operator_before_it(between: int) -> None:
    casts = [(f"PrimFunc_Cast(%{number})", "", "") for number in range(between)]
    last = (f"AllReduce(%{between})", "", "")
    behind = (f"PrimFunc_Exp(%{between + 1})", "", "net.py")
    assert lines_of(RELU, *casts, last, behind) == [*[1] * (between + 2), between + 3]


@pytest.mark.parametrize(("between", "line"), [(7, 1), (8, None)])
def test_eight_nodes_before_it_are_looked_at(between: int, line: int | None) -> None:
    casts = [(f"PrimFunc_Cast(%{number})", "", "") for number in range(between)]
    assert lines_of(RELU, *casts, (f"AllReduce(%{between})", "", ""))[-1] == line


def test_a_receive_has_the_line_of_who_takes_it() -> None:
    taken = [("Receive(%para1_x)", "", ""), ("PrimFunc_Cast(%0)", "", "")]
    assert lines_of(RELU, ("Receive(%0)", "", ""), ("PrimFunc_Exp(%1)", "", "net.py"))[1] == 3
    assert lines_of(*taken, ("PrimFunc_Exp(%1)", "", "net.py")) == [3, None, 3]


GATHER = ("AllGather(%0) {instance name: redistribution_op_12AllGather_}", "", "")
SUM = ("AllReduce(%0) {instance name: forward_op_12}", "", "")


def test_a_redistribution_has_the_line_of_who_asks_for_its_layout() -> None:
    behind = ("PrimFunc_Exp(%1)", "", "net.py")
    assert lines_of(RELU, GATHER, behind) == [1, 3, 3]
    assert lines_of(RELU, GATHER) == [1, 1]  # nobody asks: the operator before it


def test_a_sum_of_partial_results_has_the_line_of_who_made_them() -> None:
    assert lines_of(RELU, SUM, ("PrimFunc_Exp(%1)", "", "net.py")) == [1, 1, 3]


@pytest.mark.parametrize("path", ["gpt", "mlp_semi_auto", "pipeline_run"])
def test_findings_and_tables_tell_the_same_line_of_a_collective(path: str, samples: Path) -> None:
    dump = irtool.load(min((samples / path).rglob("*validate*.ir")))
    inserted = [node for node in dump.nodes() if is_collective(node)]
    assert len(inserted) > 9
    for node in inserted:
        line, told = user_location(node), located(Finding("X", "info", "", subject=node)).source
        of_finding = None if told is None else (told.path, told.line)
        assert of_finding == (None if line is None else (line.path, line.line)), node.id


def test_an_input_has_no_line() -> None:
    assert lines_of(("AllReduce(%para1_x)", "", "")) == [None]
    assert lines_of(("Receive(%para1_x)", "", "")) == [None]


def test_a_gradient_has_the_line_of_its_forward_node() -> None:
    forward = ("PrimFunc_ReLU(%para1_x)", 'unique_id: "7"', "net.py")
    gradient = ("PrimFunc_ReluGrad(%0, %0)", 'forward_unique_id: "7"', "")
    unknown = ("PrimFunc_ReluGrad(%1, %1)", 'forward_unique_id: "8"', "")
    assert lines_of(forward, gradient, unknown) == [1, 1, 1]
    inserted = ("AllReduce(%0)", 'unique_id: "9"', "")
    back = ("AllReduce(%para1_x)", 'forward_unique_id: "9"', "")
    assert lines_of(RELU, inserted, back) == [1, 1, 1]
