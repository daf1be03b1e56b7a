"""Which statements tell what parameters are: those that a parameter or a gradient may reach."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Node
from irtool.ir.parameter_evidence import evidence
from irtool.ir.whole import Ran, Reason
from irtool.ir.whole.running import MAX_NODES, Bound, Frame, Runner

SAMPLES = Path(__file__).parents[2] / "samples"

BRANCHES = """# Total params: 3
# Params:
%para1_x: <Tensor[Float32], (8, 4)> : [8, 4]
%para2_w: <Ref[Tensor[Float32]], (8, 4), ref_key=w, is_parameter>  :  has_default
%para3_b: <Ref[Tensor[Float32]], (8, 4), ref_key=b, is_parameter>  :  has_default

subgraph @2_then(%para4_y, %para5_v) {
  %0(y) = PrimFunc_Mul(%para4_y, %para5_v)
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8, 4)>)
  Return(%0)
      : (<Tensor[Float32], (8, 4)>)
}

subgraph @3_else(%para6_y, %para7_v) {
  Return(%para6_y)
      : (<Tensor[Float32], (8, 4)>)
}

subgraph @1_f() {
  %0(c) = PrimFunc_Switch(Bool(1), @2_then, @3_else)
      : (<Bool, NoShape>, <Func, NoShape>, <Func, NoShape>) -> (<Func, NoShape>)
  %1(v) = PrimFunc_Load(%para2_w, U)
      : (<Ref[Tensor[Float32]], (8, 4)>, <UMonad, NoShape>) -> (<Tensor[Float32], (8, 4)>)
  %2(z) = %0[@FuncUnion(@2_then, @3_else)](%para1_x, %1)
      : (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (8, 4)>) -> (<Tensor[Float32], (8, 4)>)
  Return(%2)
      : (<Tensor[Float32], (8, 4)>)
}
"""


class Everything(Runner):
    """Runs every statement, and counts them."""

    def __init__(self, dump: Dump) -> None:
        super().__init__(dump, MAX_NODES)
        self.count = 0

    def make(
        self, frame: Frame, node: Node, inputs: tuple[Bound, ...], function: Bound | None
    ) -> Ran:
        self.count += 1
        return Ran(node, inputs)

    def keep(self, call: Ran, graphs: tuple[Graph, ...], reason: Reason) -> None:
        """Nothing to do."""


def test_what_a_call_hands_to_a_branch_is_computed_with() -> None:
    found = evidence(irtool.load(BRANCHES.encode()))
    assert found.computed_with == {"w"}, "the branch knows it by its own parameter only"
    assert found.mentioned == {"w"}, "nobody takes b"


def test_a_value_of_many_parameters_is_of_none() -> None:
    """A norm of all gradients or weights says nothing of a single one: 64 parameters do."""
    for count, kept in ((64, 64), (65, 0)):
        names = [f"w{place}" for place in range(count)]
        lines = [
            f"%para{place + 1}_{name}: <Ref[Tensor[Float32]], (4), ref_key={name}, is_parameter>"
            "  :  has_default"
            for place, name in enumerate((*names, "sum"))
        ]
        loads = [f"%para{place + 1}_{name}" for place, name in enumerate(names)]
        types = ", ".join(["<Ref[Tensor[Float32]], (4)>"] * count)
        text = "\n".join(
            (f"# Total params: {count + 1}", "# Params:", *lines, "", "subgraph @1_f() {",
             f"  %0(t) = PrimFunc_MakeTuple({', '.join(loads)})",
             f"      : ({types}) -> (<Tuple[Tensor[Float32]*{count}], NoShape>)",
             f"  %1(s) = PrimFunc_Assign(%para{count + 1}_sum, %0)",
             f"      : (<Ref[Tensor[Float32]], (4)>, <Tuple[Tensor[Float32]*{count}], NoShape>)"
             " -> (<Tensor[Float32], (4)>)",
             "  Return(%1)", "      : (<Tensor[Float32], (4)>)", "}", "")
        )  # fmt: skip
        found = evidence(irtool.load(text.encode()))
        assert len(found.updated_from["sum"]) == kept, count


@pytest.mark.parametrize("sample", ["gpt", "grad_accumulation", "control_flow"])
def test_running_everything_makes_what_inlining_makes(sample: str) -> None:
    for file in (SAMPLES / sample).glob("*.ir*"):
        dump = irtool.load(file)
        run = Everything(dump)
        run.run()
        assert run.count == len(dump.whole())
