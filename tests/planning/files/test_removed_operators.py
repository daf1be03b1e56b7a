"""Operators that MindSpore numbered and removed before the dump."""

from __future__ import annotations

import json

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.files.handing_over import Again, hand_over
from irtool.planning.files.removed_operators import RemovedOperators
from irtool.planning.files.strategy_files import NotExpressible, operator_file
from irtool.planning.plans.plan import Plan, plan
from irtool.planning.search.problem import Carried
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.sharded_nodes import primitive

MACHINE = default_machine()
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
REMOVED = "x = self.reshape(self.act(x), (8, 16))"
"""To the shape that its operand has: this Reshape is ``op0``, and not in the dump."""
SCOPE = "Default/net-Tables"
BODY = "net.py:10~16, 4~16/    def construct(self, x):/"
FIRST = "{instance name: first} primitive_attrs: {}"
RESHAPE = "{instance name: reshape} primitive_attrs: {}"
FLAT, CUBE = "<Tensor[Float32], (8, 16)>", "<Tensor[Float32], (8, 4, 4)>"


def recommender(first_line: str) -> Dump:
    """A recommender's cross behind a line: two Reshapes, of operands of 2 and 3 dimensions."""
    weight = "<Ref[Tensor[Float32]], (16, 16)>"

    def said(kind: str, span: str, source: str) -> str:
        lines = f"# Scope: ({SCOPE})", f"# In file {BODY}", f"# In file net.py:{span}/{source}/"
        return "\n".join(f"      {line}" for line in (f": {kind}", *lines))

    return irtool.loads(f"""
%para1_x: {FLAT} : [8, 16]
%para2_w: <Ref[Tensor[Float32]], (16, 16), ref_key=w, is_parameter>  :  has_default

subgraph attr:
subgraph instance: main : 0x1
subgraph @main() {{
  %0(CNode_10) = _VirtualDataset(%para1_x) primitive_attrs: {{}}
      : ({FLAT}) -> ({FLAT})
      # Scope: (Default)
  %1(CNode_30) = PrimFunc_Sigmoid(%0) {{instance name: act}} primitive_attrs: {{}}
{said(f"({FLAT}) -> ({FLAT})", "11, 25~36", f"        {first_line}")}
  %2(y) = PrimFunc_MatMul(%1, %para2_w, Bool(0), Bool(0)) {FIRST}
{said(f"({FLAT}, {weight}, <Bool, NoShape>, <Bool, NoShape>) -> ({FLAT})", "12, 12~33",
      "        y = self.first(x, self.w)")}
  %3(z) = PrimFunc_Reshape(%2, (I64(8), I64(4), I64(4))) {RESHAPE}
{said(f"({FLAT}, <Tuple[Int64*3]>) -> ({CUBE})", "13, 12~38",
      "        z = self.reshape(y, (8, 4, 4))")}
  %4(CNode_36) = PrimFunc_ReLU(%3) {{instance name: relu}} primitive_attrs: {{}}
{said(f"({CUBE}) -> ({CUBE})", "14, 25~37", "        y = self.reshape(self.relu(z), (8, 16))")}
  %5(y) = PrimFunc_Reshape(%4, (I64(8), I64(16))) {RESHAPE}
{said(f"({CUBE}, <Tuple[Int64*2]>) -> ({FLAT})", "14, 12~47",
      "        y = self.reshape(self.relu(z), (8, 16))")}
  Return(%5)
      : ({FLAT})
}}
""")  # fmt: skip


def again(dump: Dump) -> Again:
    def make(carried: Carried, context: ParallelContext) -> Plan:
        return plan(dump, context, MACHINE, carried=carried)

    return Again(dump, make)


def reshapes_of(text: str) -> dict[str, list[int]]:
    rows = json.loads(text)["parallel_strategy_item"]
    return {
        key.rpartition("/")[2]: [len(row) for row in item["parallel_strategy"]]
        for key, item in rows.items()
        if "Reshape" in key
    }


def test_numbers_that_no_line_puts_in_doubt_are_written() -> None:
    dump = recommender("x = self.act(x)")
    made = hand_over(plan(dump, CONTEXT, MACHINE), again(dump))
    assert made.keys == "operators"
    assert reshapes_of(made.text) == {"Reshape-op0": [2], "Reshape-op1": [3]}


def test_a_call_whose_operator_is_gone_leads_to_a_file_without_numbers() -> None:
    dump = recommender(REMOVED)
    made = hand_over(plan(dump, CONTEXT, MACHINE), again(dump))
    assert made.keys == "parameters"
    assert "net.py:11 calls an operator Default/net-Tables/Reshape" in made.notes[0]
    assert not reshapes_of(made.text)


def test_a_file_by_operators_alone_is_declined_then() -> None:
    dump = recommender(REMOVED)
    with pytest.raises(NotExpressible, match="no longer holds"):
        hand_over(plan(dump, CONTEXT, MACHINE), again(dump), keys="operators")


def test_a_saved_file_tells_the_numbers_that_are_left() -> None:
    dump = recommender(REMOVED)
    free = plan(dump, CONTEXT, MACHINE)
    counted = operator_file(plan(recommender("x = self.act(x)"), CONTEXT, MACHINE))
    text = json.dumps(counted).replace("Reshape-op1", "Reshape-op2")
    names = json.loads(text.replace("Reshape-op0", "Reshape-op1"))
    made = hand_over(free, again(dump), names=names)
    assert made.keys == "operators"
    assert reshapes_of(made.text) == {"Reshape-op1": [2], "Reshape-op2": [3]}


def numbers_of(text: str, operator: str) -> list[int]:
    """The numbers that a file gives an operator, where all of them get one strategy."""
    rows = json.loads(text)["parallel_strategy_item"]
    own = {key: item for key, item in rows.items() if f"/{operator}-op" in key}
    assert len({json.dumps(item) for item in own.values()}) == 1
    return sorted(int(key.rpartition("-op")[2]) for key in own)


def test_what_is_left_gets_an_entry_at_each_number_where_one_strategy_says_all() -> None:
    dump = recommender("x = self.act(self.act(x))")  # one of two is gone
    made = hand_over(plan(dump, CONTEXT, MACHINE), again(dump))
    assert made.keys == "operators"
    assert not made.notes
    assert numbers_of(made.text, "Sigmoid") == list(range(10))
    assert numbers_of(made.text, "ReLU") == [0]


def test_keys_that_must_be_those_of_a_saved_file_get_none_of_these() -> None:
    made = plan(recommender("x = self.act(self.act(x))"), CONTEXT, MACHINE)
    with pytest.raises(NotExpressible, match="no longer holds"):
        operator_file(made, exact=True)


@pytest.mark.parametrize(("number", "numbers"), [(49, 1), (51, 10)])
def test_an_operator_that_a_pass_made_stands_for_others(number: int, numbers: int) -> None:
    """Passes number what they make behind the Loads, here 50."""
    text = irtool.dumps(recommender("x = self.act(x)")).replace("CNode_36", f"CNode_{number}")
    load = "  %9(CNode_50) = Load(%para2_w, UMonad[U])\n  %0(CNode_10)"
    dump = irtool.loads(text.replace("  %0(CNode_10)", load))
    made = hand_over(plan(dump, CONTEXT, MACHINE), again(dump))
    assert len(numbers_of(made.text, "ReLU")) == numbers
    assert numbers_of(made.text, "Sigmoid") == [0]


def test_the_mark_of_the_dataset_stands_for_no_others() -> None:
    """The parallel pass puts it behind the Loads, too, and makes it of nothing."""
    text = irtool.dumps(recommender("x = self.act(x)"))
    load = "  %9(CNode_50) = Load(%para2_w, UMonad[U])\n  %0(CNode_60)"
    dump = irtool.loads(text.replace("  %0(CNode_10)", load))
    made = hand_over(plan(dump, CONTEXT, MACHINE), again(dump))
    assert numbers_of(made.text, "_VirtualDataset") == [0]


@pytest.mark.parametrize(
    ("line", "is_gone"),
    [
        (REMOVED, True),
        ("x = self.act(x).view(8, 16)", True),
        ("x = ops.flatten(self.act(x))", True),
        ("x = self.act(x)  # no reshape(x) is needed", False),
        ("x = self.act(x)", False),
    ],
)
def test_a_line_shows_calls_of_what_is_gone(line: str, is_gone: bool) -> None:
    dump = recommender(line)
    nodes = [item.node for item in plan(dump, CONTEXT, MACHINE).report.operators]
    reshapes = [node for node in nodes if primitive(node) == "Reshape"]
    location = RemovedOperators(dump, nodes).line_of(reshapes)
    assert (location is not None) == is_gone
    assert location is None or location.line == 11
