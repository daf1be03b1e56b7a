"""Weights that one stage hands to another, and results that are no loss."""

from __future__ import annotations

import pytest

from irtool.sharding.network.analysis import analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.weights_across_stages import handed_weight
from tests.sharding.network.small import Small, Value, constant, tensor

SHAPE = (8, 16)


@pytest.mark.parametrize(
    ("sender", "receiver", "handed"),
    [
        pytest.param("Send", "Receive", "w", id="a Receive of a Send in the same dump"),
        pytest.param("ReLU", "Receive", None, id="a Receive of something else"),
        pytest.param("Send", "ReLU", None, id="another operator"),
    ],
)
@pytest.mark.parametrize("through", ["", "Load"])
def test_a_weight_is_handed_by_send_and_receive(
    sender: str, receiver: str, handed: str | None, through: str
) -> None:
    small = Small()
    x, value = small.input("x", SHAPE), small.weight("w", SHAPE)
    body = small.graph("main")
    if through:
        value = body.add(through, [value, x], tensor(SHAPE))
    sent = body.add(sender, [value], tensor(SHAPE))
    body.result = body.add(receiver, [sent], tensor(SHAPE))
    dump = small.dump()
    analysis = analysis_of(network_of(dump), ParallelContext(8))
    last = next(node for node in reversed(list(dump.nodes())) if node.op == receiver)
    found = handed_weight(analysis, last)
    assert (found.name if found is not None else None) == handed


def test_an_input_that_is_sent_is_no_weight() -> None:
    small = Small()
    body = small.graph("main")
    sent = body.add("Send", [small.input("x", SHAPE)], tensor(SHAPE))
    body.result = body.add("Receive", [sent], tensor(SHAPE))
    dump = small.dump()
    analysis = analysis_of(network_of(dump), ParallelContext(8))
    (receive,) = (node for node in dump.nodes() if node.op == "Receive")
    assert handed_weight(analysis, receive) is None


@pytest.mark.parametrize(
    ("result", "losses"),
    [
        pytest.param("operator", ["ReLU"], id="an operator's result"),
        pytest.param("parameter", [], id="what the graph is given"),
        pytest.param("constant", [], id="a number"),
    ],
)
def test_the_loss_is_what_an_operator_computes(result: str, losses: list[str]) -> None:
    """Its gradient is divided; nothing is where the differentiated graph computes nothing."""
    small = Small()
    x, weight = small.input("x", SHAPE), small.weight("w", SHAPE)
    inner = small.graph("inner")
    given = inner.parameter(tensor(SHAPE))
    results: dict[str, Value] = {
        "operator": inner.op("ReLU", given, SHAPE, ((2, 4),)),
        "parameter": given,
        "constant": constant(1),
    }
    inner.result = results[result]
    body = small.graph("main")
    (body.result,) = body.gradients(inner, [x], [weight])
    assert [item.op for item in small.checked().operators if item.is_loss] == losses
