"""Which operators in front of an operand were inserted, and what comes before them."""

from __future__ import annotations

import pytest

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.whole import WholeNode
from irtool.sharding.against.edges import chain_before
from tests.sharding.network.small import Body, Small, Value, constant, tensor

PAIR = "<Tuple[Tensor[Float32]*2], TupleShape((8, 16), (8, 16))>"
MADE = 'cnode_primal_attrs: {forward_comm_node_unique_id: "17"}'
"""What stands at a step of a redistribution that lost its name."""


def split(body: Body, source: Value, note: str = "") -> Value:
    return body.add("PrimFunc_Split", [source, constant(0), constant(2)], PAIR, note=note)


def item(body: Body, source: Value, index: int = 1) -> Value:
    return body.add("TupleGetItem", [source, constant(index)], tensor((8, 16)))


def network(*steps: str, strategy: bool = False) -> Dump:
    """ReLU, then these steps, then Tanh."""
    small = Small()
    inputs = small.input("x", (16, 16))
    body = small.graph("main")
    value = body.op("ReLU", inputs, (16, 16))
    for step in steps:
        if step == "split":
            note = " {in_strategy: ((2, 1))}" if strategy else ""
            value = item(body, split(body, value, note))
        elif step == "named split":
            name = f" {MADE}"
            value = item(body, split(body, value, name))
        elif step == "pair":
            other = body.op("Neg", inputs, (16, 16))
            tied = body.add("MakeTuple", [value, other], PAIR)
            value = item(body, body.add("Depend", [tied, inputs], PAIR), 0)
        elif step == "reshape":
            value = body.reshape(value, (16, 16))
        else:
            value = body.add(step, [value], tensor((16, 16)))
    body.result = body.op("Tanh", value, (16, 16))
    return small.dump()


def chain(dump: Dump, *, reshapes: bool, known: tuple[str, ...] = ()) -> tuple[list[str], str]:
    """The operators of the chain before Tanh, and what comes before it."""
    whole = dump.whole()
    (last,) = (place for place in whole.nodes if place.op == "Tanh")
    those: set[Node] = {place.node for place in whole.nodes if place.op in known}
    found, before = chain_before(last.inputs[0], reshapes, those)
    assert isinstance(before, WholeNode)
    return [place.op for place in found], before.op


def test_nothing_was_inserted_between_two_operators() -> None:
    assert chain(network(), reshapes=True) == ([], "ReLU")
    assert chain(network(), reshapes=False) == ([], "ReLU")


@pytest.mark.parametrize(
    ("steps", "with_reshapes", "without"),
    [
        pytest.param(("split",), ([], "TupleGetItem"), (["Split"], "ReLU"), id="a nameless Split"),
        pytest.param(("reshape",), ([], "Reshape"), (["Reshape"], "ReLU"), id="a merged Reshape"),
        pytest.param(("Cast",), ([], "ReLU"), ([], "ReLU"), id="what hands on is looked through"),
        pytest.param(
            ("reshape", "split"), ([], "TupleGetItem"), (["Reshape", "Split"], "ReLU"), id="both"
        ),
        pytest.param(("pair",), ([], "ReLU"), ([], "ReLU"), id="an item of a tuple that is made"),
        pytest.param(
            ("pair", "split"), ([], "TupleGetItem"), (["Split"], "ReLU"), id="and a Split of it"
        ),
        pytest.param(
            ("Neg", "split"), ([], "TupleGetItem"), (["Split"], "Neg"), id="up to another"
        ),
    ],
)
def test_what_later_passes_merged_belongs_to_a_chain_where_reshapes_do_not_count(
    steps: tuple[str, ...], with_reshapes: tuple[list[str], str], without: tuple[list[str], str]
) -> None:
    dump = network(*steps)
    assert chain(dump, reshapes=True) == with_reshapes
    assert chain(dump, reshapes=False) == without


def test_a_split_of_the_network_is_no_part_of_a_chain() -> None:
    """Nor is one with a strategy of its own."""
    assert chain(network("split"), reshapes=False, known=("Split",)) == ([], "TupleGetItem")
    assert chain(network("split", strategy=True), reshapes=False) == ([], "TupleGetItem")
