"""Statements that people paste from a page, a chat or a mail are read where they can be."""

from __future__ import annotations

import irtool
from irtool.ir.graph import Node

CHAT = """\
my MatMul looks wrong, see below

```
%4(a) = PrimFunc_MatMul(%2, %3) {instance name: matmul} primitive_attrs: {in_strategy: ((4, 2))}
      : (<Tensor[Float32], (256, 784)>, <null>) -> (<Tensor[Float32], (256, 512)>)
```
and then
    %5(b) = AllReduce(%4) primitive_attrs: {group: "2-5004544844489628105"}
some prose directly below
> %6(c) = ReLU(%5) {in_strategy: ((4, 1))}
[...]
%7(d) = ReLU(%6)
…
  ...
%8(e) = ReLU(%7)
"""


def test_statements_between_prose_are_one_excerpt() -> None:
    dump = irtool.loads(CHAT)
    (graph,) = dump.graphs
    assert [node.op for node in graph.nodes] == ["MatMul", "AllReduce", "ReLU", "ReLU", "ReLU"]
    assert graph.nodes[0].in_strategy == ((4, 2),)
    producers = [node.inputs[0] for node in graph.nodes[1:]]
    assert all(isinstance(producer, Node) for producer in producers)


def test_prose_is_a_warning_and_fences_are_nothing() -> None:
    dump = irtool.loads(CHAT)
    assert [(problem.line, problem.severity) for problem in dump.problems] == [
        (1, "warning"),
        (7, "warning"),
        (9, "warning"),
    ]


def test_the_excerpt_prints_back() -> None:
    assert irtool.dumps(irtool.loads(CHAT)) == CHAT


def test_a_mapped_function_of_several_bodies_can_be_called() -> None:
    called = "HyperMapPy_hyper_map[add_backward]{fn_leaf: MultitypeFuncGraph_add{(Tensor, Tuple)}}"
    dump = irtool.loads(f"%1(x) = {called}(%0)\n%2(y) = Partial({called}, %1)\n")
    assert not dump.problems
    first, second = dump.nodes()
    assert first.op == "HyperMapPy_hyper_map"
    assert second.inputs[1] is first


def test_nodes_say_in_a_line_what_they_are() -> None:
    (node,) = irtool.loads("%4(a) = MatMul(%2, %3)\n").nodes()
    assert len(repr(node)) < 100
    assert "MatMul" in repr(node)
