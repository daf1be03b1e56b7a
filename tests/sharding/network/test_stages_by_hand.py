"""Which pipeline stage a node serves, in a dump that holds several stages; nodes by their names.

``main`` cuts ``x``, calls ``inner`` with the piece, and gives what comes of it to ``own`` and to
``other``.  ``inner`` hands on what it makes, and computes something beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import irtool
from irtool.ir.graph import Node
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.stages import foreign_nodes, serves_stage

SIZE = "<Tensor[Float32], (8, 8)>"


def statement(number: int, name: str, call: str, stage: int | None = None, inputs: int = 1) -> str:
    note = "" if stage is None else f" cnode_attrs: {{stage: I64({stage})}}"
    types = ", ".join([SIZE] * inputs)
    return f"  %{number}({name}) = {call}{note}\n      : ({types}) -> ({SIZE})\n"


def text(result: str = "%4") -> str:
    return (
        f"# IR entry: @main\n%para1_x: {SIZE} : [8, 8]\nsubgraph @main() {{\n"
        + statement(0, "piece", "PrimFunc_StridedSlice(%para1_x)")
        + statement(1, "made", "call @inner(%0)")
        + statement(2, "own", "PrimFunc_Exp(%1)")
        + statement(3, "other", "PrimFunc_Neg(%1)")
        + statement(4, "end", "PrimFunc_Sin(%2)")
        + f"  Return({result})\n}}\nsubgraph @inner(%para2_p) {{\n"
        + statement(0, "inside", "PrimFunc_Neg(%para2_p)")
        + statement(1, "beside", "PrimFunc_Cos(%para2_p)")
        + "  Return(%0)\n}\n"
    )


def named(network: Network) -> dict[str, Node]:
    return {node.name: node for node in network.inputs if node.name}


def serves(node: str, judged: Iterable[str], foreign: Iterable[str], result: str = "%4") -> bool:
    network = network_of(irtool.loads(text(result), "net.ir"))
    nodes = named(network)
    return serves_stage(
        network, {nodes[name] for name in judged}, {nodes[name] for name in foreign}, nodes[node]
    )


@pytest.mark.parametrize(
    ("node", "judged", "foreign", "expected"),
    [
        ("piece", ["inside"], [], True),  # in the graph that is called with it
        ("piece", ["beside"], ["inside"], True),
        ("piece", ["own"], ["beside"], True),  # behind the call
        ("piece", ["other"], ["own", "end"], True),
        ("piece", ["other"], ["own", "other", "end"], False),
        ("inside", ["own"], [], True),  # by way of what its graph returns
        ("inside", [], ["own", "other"], False),
        ("beside", ["own", "other", "end"], [], False),  # nobody reads it
        ("own", [], [], True),  # the network's result
        ("own", [], ["end"], False),
        ("other", ["end"], [], False),
        ("piece", ["piece"], ["inside", "beside", "own", "other"], False),
    ],
)
def test_a_result_serves_the_stage_where_it_reaches_an_operator_of_it(
    node: str, judged: list[str], foreign: list[str], expected: bool
) -> None:
    assert serves(node, judged, foreign) == expected


def test_the_result_of_the_network_is_one_and_that_of_a_graph_is_not() -> None:
    assert serves("inside", [], [], result="%1")
    assert serves("inside", [], ["own", "other"], result="%1")
    assert not serves("inside", [], ["own"], result="%para1_x")
    assert not serves("other", [], [], result="%2")


def test_an_operator_that_only_cuts_a_part_out_computes_nothing() -> None:
    network = network_of(irtool.loads(text(), "net.ir"))
    nodes = named(network)
    cuts = network_of(irtool.loads(text().replace("PrimFunc_Exp", "PrimFunc_StridedSlice"), "n.ir"))
    others = named(cuts)
    assert serves_stage(network, {nodes["own"]}, {nodes["end"], nodes["other"]}, nodes["made"])
    assert not serves_stage(cuts, {others["own"]}, {others["end"], others["other"]}, others["made"])


@pytest.mark.parametrize(
    ("stages", "foreign"),
    [
        ((0, 1), {0: "received behind beside sum", 1: "made sent", 2: "all"}),
        ((1, 0), {0: "made sent", 1: "received behind beside sum", 2: "all"}),
        ((0, 0), {0: "", 1: "", 2: ""}),  # one stage is no border
        ((None, 1), {0: "", 1: ""}),
    ],
)
def test_a_node_is_of_the_stage_of_what_it_reads_or_else_of_what_reads_it(
    stages: tuple[int | None, int], foreign: dict[int, str]
) -> None:
    body = (
        statement(0, "made", "PrimFunc_Neg(%para1_x)")
        + statement(1, "sent", "PrimFunc_Send(%0)", stages[0])
        + statement(2, "received", "PrimFunc_Receive(%1)", stages[1])
        + statement(3, "behind", "PrimFunc_Exp(%2)")
        + statement(4, "beside", "PrimFunc_Cos(%para1_x)")
        + statement(5, "sum", "PrimFunc_Add(%3, %4)", inputs=2)
    )
    head = f"# IR entry: @main\n%para1_x: {SIZE} : [8, 8]\nsubgraph @main() {{\n"
    network = network_of(irtool.loads(f"{head}{body}  Return(%5)\n}}\n", "net.ir"))
    for stage, names in foreign.items():
        found = {node.name for node in foreign_nodes(network, stage) if node.name}
        everything = {"made", "sent", "received", "behind", "beside", "sum"}
        assert found == (everything if names == "all" else set(names.split()))
