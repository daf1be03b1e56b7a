"""Who makes a value and who takes it, behind what only hands it on; what a pass inserted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import irtool
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.ties import Phase
from irtool.ir.whole import WholeNode
from irtool.sharding.why.walk import (
    before,
    consumers,
    hands_on,
    is_inserted,
    is_redistribution,
    producer,
)

T = "<Tensor[Float32], (8, 4)>"


def places(*statements: str) -> list[WholeNode]:
    """Where statements run: ``Op(operands)``, then what stands behind them; "@" and a scope."""
    lines = ["# IR entry: @main", "", f"%para1_x: {T} : [8, 4]", "", "subgraph @main() {"]
    for number, text in enumerate(statements):
        call, _, scope = text.partition(" @")
        lines += [f"  %{number}(v{number}) = {call}", f"      : ({T}) -> ({T})"]
        lines += [f"      # Scope: ({scope or 'Default'})"]
    lines += [f"  Return(%{len(statements) - 1})", "}", ""]
    dump = irtool.loads("\n".join(lines))
    assert not dump.problems, dump.problems
    whole = dump.whole()
    return [whole.instances(node)[0] for node in dump.nodes()]


def node(text: str) -> Node:
    return places(text)[0].node


def ids(found: list[WholeNode]) -> list[str]:
    return ["Return" if item.node.is_return else item.node.id for item in found]


# -- who takes a value -----------------------------------------------------------------------------


def test_a_value_is_taken_behind_what_hands_it_on() -> None:
    found = places(
        "PrimFunc_Exp(%para1_x)",
        "Load(%0)",
        "Depend(%1, %para1_x)",
        "MakeTuple(%2)",
        "TupleGetItem(%3, I64(0))",
        "PrimFunc_Neg(%4)",
    )
    assert ids(consumers(found[0], {})) == ["%5"]


def test_who_only_waits_for_a_value_does_not_take_it() -> None:
    found = places(
        "PrimFunc_Exp(%para1_x)",
        "UpdateState(%para1_x, %0)",
        "Depend(%para1_x, %0)",
        "PrimFunc_Neg(%2)",
        "PrimFunc_Tanh(%0)",
        "MakeTuple(%1, %3, %4)",
    )
    assert ids(consumers(found[0], {})) == ["%4"]


LATE: Mapping[str, Phase] = {"%1": "forward", "%2": "backward", "%3": "recompute"}


@pytest.mark.parametrize(
    ("own", "stages", "taken"),
    [
        ("forward", LATE, ["%1"]),
        ("backward", LATE, ["%2", "%3"]),
        ("optimizer", LATE, ["%2", "%3"]),
        (None, LATE, ["%1"]),
        ("forward", {"%1": "backward", "%2": "backward", "%3": "optimizer"}, ["%1", "%2", "%3"]),
        ("backward", {"%1": "forward", "%2": "forward"}, ["%1", "%2", "%3"]),
    ],
)
def test_those_of_the_same_pass_go_before_others(
    own: Phase | None, stages: Mapping[str, Phase], taken: list[str]
) -> None:
    """Where there is none of the same pass, all do."""
    found = places(
        "PrimFunc_Exp(%para1_x)",
        *(f"PrimFunc_{op}(%0)" for op in ("Neg", "Tanh", "Sqrt")),
        "PrimFunc_AddN(%1, %2, %3)",
    )
    phases = {item.node: stages[item.node.id] for item in found if item.node.id in stages}
    if own is not None:
        phases[found[0].node] = own
    assert ids(consumers(found[0], phases)) == taken


def test_the_operator_of_the_same_scope_is_the_first() -> None:
    found = places(
        "PrimFunc_Exp(%para1_x) @Default/b",
        "PrimFunc_Neg(%0) @Default/a",
        "PrimFunc_Tanh(%0) @Default/b",
        "PrimFunc_Add(%1, %2) @Default/a",
    )
    assert ids(consumers(found[0], {})) == ["%2", "%1"]


def test_the_result_of_a_graph_is_taken_by_its_return() -> None:
    found = places("PrimFunc_Exp(%para1_x)", "Depend(%0, %para1_x)")
    assert ids(consumers(found[0], {})) == ["Return"]


# -- who makes a value -----------------------------------------------------------------------------


def test_a_value_is_made_before_what_hands_it_on() -> None:
    found = places(
        "PrimFunc_Exp(%para1_x)",
        "Load(%0)",
        "PrimFunc_Cast(%1)",
        "AllGather(%2) {instance name: redistribution_op_1}",
        "PrimFunc_Neg(%3)",
    )
    assert producer(found[4]) is found[0]
    assert ids(list(before(found[4]))) == ["%3", "%2", "%1", "%0"]


def test_a_cast_of_the_users_makes_a_value() -> None:
    found = places("PrimFunc_Exp(%para1_x)", f"PrimFunc_Cast(%0) {OWN}", "PrimFunc_Neg(%1)")
    assert producer(found[2]) is found[1]


def test_an_input_is_made_by_nobody_and_a_constant_is_nothing() -> None:
    found = places("Load(%para1_x)", "PrimFunc_Neg(%0)", "PrimFunc_Neg(F32(1))")
    assert isinstance(producer(found[1]), GraphParameter)
    assert producer(found[2]) is None


# -- what a pass inserted --------------------------------------------------------------------------

COMM = 'cnode_primal_attrs: {forward_comm_node_unique_id: "5"}'
CHAIN = "{instance name: redistribution_op_12}"
PART = "{instance name: 1234567}"
OWN = "primitive_attrs: {in_strategy: ((8, 1))}"
BEHIND = "{in_strategy: ((8, 1))}"


@pytest.mark.parametrize(
    ("text", "inserted", "redistributes"),
    [
        (f"AllGather(%para1_x) {CHAIN}", True, True),
        ("AllGather(%para1_x) {instance name: grad_redistribution_op_12}", True, True),
        ("AllReduce(%para1_x) {instance name: forward_op_1}", True, False),
        ("AllGather(%para1_x) {instance name: parallel_optimizer_1}", True, False),
        ("AllReduce(%para1_x) {instance name: grad_mirror_1}", True, False),
        ("PrimFunc_Exp(%para1_x) {instance name: exp}", False, False),
        (f"PrimFunc_Exp(%para1_x) {CHAIN} {BEHIND}", False, False),
        ("Send(%para1_x) {instance name: redistribution_op_12}", False, True),
        ("_MirrorOperator(%para1_x)", True, False),
        (f"PrimFunc_StridedSlice(%para1_x) {COMM}", True, True),
        ("PrimFunc_StridedSlice(%para1_x)", False, False),
        (f"PrimFunc_StridedSlice(%para1_x) {{instance name: cut}} {COMM}", True, True),
        (f"PrimFunc_StridedSlice(%para1_x) {{instance name: cut}} {COMM} {BEHIND}", False, False),
        (f"PrimFunc_StridedSlice(%para1_x) {PART} {COMM}", False, False),
    ],
)
def test_names_and_marks_say_what_was_inserted(
    text: str, inserted: bool, redistributes: bool
) -> None:
    item = node(text)
    assert is_inserted(item) is inserted
    assert is_redistribution(item) is redistributes


@pytest.mark.parametrize(
    ("text", "hands"),
    [
        ("Load(%para1_x)", True),
        ("PrimFunc_Cast(%para1_x)", True),
        (f"PrimFunc_Cast(%para1_x) {BEHIND}", False),
        (f"PrimFunc_Cast(%para1_x) {OWN}", False),
        (f"AllGather(%para1_x) {CHAIN}", True),
        ("PrimFunc_Exp(%para1_x)", False),
    ],
)
def test_what_hands_its_operand_on_is_no_operator_of_the_users(text: str, hands: bool) -> None:
    assert hands_on(node(text)) is hands
