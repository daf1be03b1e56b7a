"""What is said of single collectives: those of the optimizer, of its shards, of the user's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from irtool.ir.collectives import collective
from irtool.ir.graph import Node
from irtool.sharding.why import _optimizer_parallel, _user_code
from irtool.sharding.why.walk import Surroundings
from tests.sharding.network.small import Small, tensor


def launched(op: str, scope: str = "Default", attributes: str = "") -> Node:
    """A collective of eight devices."""
    small = Small()
    x = small.input("x", (8, 4))
    main = small.graph("main")
    group = 'group_ranks: "0-1-2-3-4-5-6-7"'
    given = f"{group}, {attributes}" if attributes else group
    main.result = main.add(op, [x], tensor((8, 4)), attributes=given, scope=scope)
    return small.dump().graphs[0].nodes[0]


def around(phases: Mapping[Node, Any] | None = None) -> Surroundings:
    """Surroundings of which nothing is known but phases."""
    nothing = cast("Any", None)
    return Surroundings(nothing, nothing, phases or {}, {}, {})


@pytest.mark.parametrize(
    ("op", "does"),
    [
        ("AllGather", "optimizer parallel: gathers a parameter, of which each device holds a part"),
        (
            "ReduceScatter",
            "optimizer parallel: sums the gradient of a parameter and leaves each device its part",
        ),
    ],
)
def test_weights_are_gathered_and_gradients_scattered(op: str, does: str) -> None:
    node = launched(op)
    sent = collective(node, 8)
    assert sent is not None
    cause = _optimizer_parallel(around(), node, sent, None)
    assert (cause.kind, cause.message) == ("optimizer parallel", does)
    assert cause.missing == ("which parameter: no attribute says it",)


def test_what_the_optimizer_launches_is_not_the_networks() -> None:
    inside = launched("AllReduce", "Default/optimizer-Lamb")
    sent = collective(inside, 8)
    assert sent is not None
    assert _user_code(around(), inside, sent, None).kind == "optimizer"
    plain = launched("AllReduce")
    own = _user_code(around(), plain, sent, None)
    assert (own.kind, own.operator) == ("user code", plain)
    late = _user_code(around({plain: "optimizer"}), plain, sent, None)
    assert (late.kind, late.operator) == ("optimizer", None)
    assert _user_code(around({plain: "forward"}), plain, sent, None).kind == "user code"
