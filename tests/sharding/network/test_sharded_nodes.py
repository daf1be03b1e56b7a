"""Which nodes MindSpore's parallel pass looks at."""

from __future__ import annotations

import pytest

from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.sharded_nodes import has_strategy, is_nested, is_sharded
from tests.sharding.network.small import Body, Small, Value, constant, tensor

SHAPE = (4, 8, 16)


def attention(body: Body, mask: Value, query: Value) -> Value:
    none = Value("None", "<None, NoShape>")
    operands = [query, query, query, none, mask, none, none, none, none, none, constant(4)]
    return body.add("PrimFunc_FlashAttentionScore", operands, tensor(SHAPE))


@pytest.mark.parametrize(
    ("maker", "user", "users", "cared"),
    [
        pytest.param("DropoutGenMask", "attention", 1, False, id="between mask and attention"),
        pytest.param("ReLU", "attention", 1, True, id="of something else"),
        pytest.param("DropoutGenMask", "Neg", 1, True, id="before something else"),
        pytest.param("DropoutGenMask", "attention", 2, True, id="before two"),
    ],
)
def test_a_reshape_that_forms_the_mask_of_attention_is_passed_over(
    maker: str, user: str, users: int, cared: bool
) -> None:
    small = Small()
    query = small.input("x", SHAPE)
    body = small.graph("main")
    mask = body.add(maker, [query], tensor((512,)))
    formed = body.reshape(mask, SHAPE)
    for _ in range(users):
        last = (
            attention(body, formed, query) if user == "attention" else body.op(user, formed, SHAPE)
        )
    body.result = last
    dump = small.dump()
    network = network_of(dump)
    (reshape,) = (node for node in dump.nodes() if node.op == "Reshape")
    assert is_sharded(network, reshape) is cared
    assert has_strategy(network, reshape) is cared


@pytest.mark.parametrize(
    ("op", "cared", "strategy"),
    [
        ("ReLU", True, True),
        ("Cast", True, False),
        ("TupleGetItem", False, False),
        ("Send", True, False),
        ("DropoutGenMask", False, False),
    ],
)
def test_what_hands_on_or_sends_has_no_strategy_of_its_own(
    op: str, cared: bool, strategy: bool
) -> None:
    small = Small()
    body = small.graph("main")
    name = op if op in ("TupleGetItem", "Send") else f"PrimFunc_{op}"
    body.result = body.add(name, [small.input("x", SHAPE), constant(0)], tensor(SHAPE))
    dump = small.dump()
    network = network_of(dump)
    node = next(node for node in dump.nodes() if node.op == op)
    assert is_sharded(network, node) is cared
    assert has_strategy(network, node) is strategy


def test_a_cast_with_a_strategy_behind_it_has_one() -> None:
    """Users give it none; a search does."""
    small = Small()
    body = small.graph("main")
    operands = [small.input("x", SHAPE), constant(43)]
    body.result = body.add("PrimFunc_Cast", operands, tensor(SHAPE), strategy=((2, 1, 1),))
    dump = small.dump()
    (cast,) = (node for node in dump.nodes() if node.op == "Cast")
    assert has_strategy(network_of(dump), cast)


def test_transfers_are_sharded() -> None:
    small = Small()
    body = small.graph("main")
    body.result = body.add("Send", [small.input("x", SHAPE)], tensor(SHAPE))
    dump = small.dump()
    (send,) = (node for node in dump.nodes() if node.op == "Send")
    assert is_sharded(network_of(dump), send)


def test_an_operator_of_lists_nests_its_strategies() -> None:
    small = Small()
    x = small.input("x", SHAPE)
    body = small.graph("main")
    pair = "<Tuple[Tensor[Float32]*2], TupleShape((4, 8, 16), (4, 8, 16))>"
    both = body.add("MakeTuple", [x, x], pair)
    body.result = body.add("PrimFunc_Concat", [both, constant(0)], tensor((8, 8, 16)))
    body.result = body.op("ReLU", body.result, (8, 8, 16))
    dump = small.dump()
    nested = {node.op: is_nested(node) for node in dump.nodes()}
    assert not nested["ReLU"]
    assert not nested["MakeTuple"]
