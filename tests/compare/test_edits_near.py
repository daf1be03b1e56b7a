"""Which edits of two graphs are told beside an operator that is accused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.graph_diff import diff_graphs
from irtool.compare.tensors.case import _edits_near
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from tests.compare.graphs import dump

CHAIN = (
    "a = Exp(%x) f32 (8, 16)",
    "b = ReduceSum(%a, %w) f32 (8, 16) {keep_dims: Bool(0)}",
    "c = Exp(%b) f32 (8, 16)",
    "d = Abs(%c) f32 (8, 16)",
    "e = Neg(%d) f32 (8, 16)",
)


def near(place: int, edited: int) -> list[str]:
    """Edits told of the operator at a place, where another is asked for something else."""
    other = list(CHAIN)
    other[edited] = other[edited].replace("Bool(0)", "Bool(1)")
    graphs = dump(*CHAIN), dump(*other)
    comparison: Any = SimpleNamespace(graphs=diff_graphs(*graphs))
    ops = [
        Op(0, "call", "call", "forward", [], [], node=list(graph.nodes())[place])
        for graph in graphs
    ]
    judged = Judged(OpPair(ops[0], ops[1], "node"), Slots((), ()), "introduces error")
    return list(_edits_near(comparison, judged))


@pytest.mark.parametrize(
    ("place", "is_told"), [(0, False), (1, True), (2, True), (3, True), (4, False)]
)
def test_edits_at_an_operator_and_up_to_two_before_it_are_told(place: int, is_told: bool) -> None:
    assert near(place, 1) == ["attribute changed: keep_dims: False → True"] * is_told


def test_runs_without_graphs_have_no_edits() -> None:
    comparison: Any = SimpleNamespace(graphs=None)
    op = Op(0, "call", "call", "forward", [], [])
    judged = Judged(OpPair(op, op, "name"), Slots((), ()), "introduces error")
    assert list(_edits_near(comparison, judged)) == []


def test_five_different_edits_are_told_at_most() -> None:
    names = [f"%{name}" for name in "xwvb"]
    one = [f"n{n} = Exp({names[n % 4]}) f32 (8, 16) {{axis: I64(1)}}" for n in range(6)]
    other = [text.replace("I64(1)", f"I64({n + 2})") for n, text in enumerate(one)]
    last = f"m = AddN({', '.join(f'%n{n}' for n in range(6))}) f32 (8, 16)"
    graphs = dump(*one, last), dump(*other, last)
    comparison: Any = SimpleNamespace(graphs=diff_graphs(*graphs))
    node = list(graphs[0].nodes())[6]
    op = Op(0, "call", "call", "forward", [], [], node=node)
    judged = Judged(OpPair(op, op, "node"), Slots((), ()), "introduces error")
    assert len(comparison.graphs.edits) == 6
    assert len(list(_edits_near(comparison, judged))) == 5
