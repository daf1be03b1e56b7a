"""Where a value of a network really comes from: through tuples, calls, and what hands it on."""

from __future__ import annotations

import pytest

from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.sharding.network.analysis import analysis_of, real_source
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from tests.sharding.network.small import Body, Small, Value, constant, tensor

SHAPE = (8, 16)
PAIR = "<Tuple[Tensor[Float32]*2], TupleShape((8, 16), (8, 16))>"


def source_of(dump: Dump, **asked: bool) -> tuple[str, int]:
    """The operator, or the parameter, behind Tanh's operand, and the item of it."""
    analysis = analysis_of(network_of(dump), ParallelContext(8))
    (last,) = (node for node in dump.nodes() if node.op == "Tanh")
    found, item = real_source(analysis, analysis.network.inputs[last][0], **asked)
    assert isinstance(found, Node | GraphParameter)
    return (found.op if isinstance(found, Node) else found.name), item


def network(make: str, item: int) -> Dump:
    """Tanh of an item of a tuple: made here, returned by a call, or of an operator's results."""
    small = Small()
    inputs = small.input("x", SHAPE)
    if make == "call":
        inner = small.graph("inner")
        given = inner.parameter(tensor(SHAPE))
        inner.result = pair(inner, given)
    body = small.graph("main")
    if make == "call":
        tied = body.add("call @inner", [inputs], PAIR)
    elif make == "made":
        tied = pair(body, inputs)
    else:
        tied = body.add("PrimFunc_Split", [inputs, constant(0), constant(2)], PAIR)
    value = body.add("TupleGetItem", [tied, constant(item)], tensor(SHAPE))
    value = body.add("Depend", [value, inputs], tensor(SHAPE))
    body.result = body.op("Tanh", value, SHAPE)
    return small.dump()


def pair(body: Body, of: Value) -> Value:
    return body.add("MakeTuple", [body.op("ReLU", of, SHAPE), body.op("Neg", of, SHAPE)], PAIR)


@pytest.mark.parametrize("make", ["made", "call"])
@pytest.mark.parametrize(("item", "op"), [(0, "ReLU"), (1, "Neg")])
def test_an_item_of_a_tuple_is_what_was_put_there(make: str, item: int, op: str) -> None:
    assert source_of(network(make, item)) == (op, -1)


@pytest.mark.parametrize("item", [0, 1])
def test_a_result_of_an_operator_keeps_its_number(item: int) -> None:
    assert source_of(network("results", item)) == ("Split", item)


def test_items_are_a_source_of_their_own_where_nobody_looks_through_them() -> None:
    assert source_of(network("results", 1), through_items=False) == ("TupleGetItem", -1)


def test_an_item_that_a_tuple_has_not_ends_the_search() -> None:
    assert source_of(network("made", 2)) == ("MakeTuple", 2)


def test_what_a_graph_is_given_and_returns_comes_from_the_argument() -> None:
    small = Small()
    inputs = small.input("x", SHAPE)
    inner = small.graph("inner")
    inner.result = inner.parameter(tensor(SHAPE))
    body = small.graph("main")
    body.result = body.op("Tanh", body.add("call @inner", [inputs], tensor(SHAPE)), SHAPE)
    assert source_of(small.dump()) == ("x", -1)
