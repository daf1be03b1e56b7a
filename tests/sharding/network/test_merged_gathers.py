"""AllGathers of one value: one of them is left before the gradients are made, or all of them.

``whole_graphs.json.xz`` holds networks that MindSpore 2.7 compiled so: with Reshapes and products
behind one value (``reshape_and_two_products`` and others), in recomputed cells
(``812377_0065_moe``), and with AlltoAlls (``440517_0123_layouts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import pytest

from irtool.sharding.network.communications import _Counter
from tests.sharding.network.small import Body, Small, Value, tensor

SPLIT, WHOLE = [(8, 1), (1, 1)], [(1, 1), (1, 8)]
"""Strategies of a product: rows on eight devices, or columns of the second matrix."""


def launched(*uses: str, trains: bool = True) -> Counter[tuple[str, str]]:
    """Gathers and scatters of a step that uses one product, of split rows, in several ways.

    Args:
        uses: ``product``, wants it whole; ``flat``, a product of it in another shape; ``half``, a
            product that gathers among two devices only; ``apart``, a product of the ReLU of it.
        trains: whether gradients are taken.
    """
    small = Small()
    x = small.input("x", (64, 32))
    weights = [small.weight(f"w{index}", (32, 32)) for index in range(len(uses) + 1)]
    inner = small.graph("inner")
    given = inner.parameter(tensor((64, 32)))
    first = inner.product(given, weights[0], (64, 32), SPLIT)
    found = [used(inner, first, w, use) for w, use in zip(weights[1:], uses, strict=True)]
    inner.result = found[0]
    for other in found[1:]:
        inner.result = inner.add(
            "PrimFunc_Add", [inner.result, other], tensor((64, 32)), user=[(1, 8), (1, 8)]
        )
    main = small.graph("main")
    if trains:
        main.result = main.gradients(inner, [x], weights)[0]
    else:
        main.result = main.add("call @inner", [x], tensor((64, 32)))
    report = small.checked()
    assert report.accepted
    counts: Counter[tuple[str, str]] = Counter()
    for item in report.communications:
        if "redistribution" in item.why and item.op in ("AllGather", "ReduceScatter"):
            counts[item.op, item.phase] += item.count
    return counts


def used(body: Body, value: Value, weight: Value, use: str) -> Value:
    """One use of a value."""
    strategy: Sequence[Sequence[int]] = WHOLE
    if use == "flat":
        value = body.reshape(body.reshape(value, (32, 64)), (64, 32))
    if use == "half":
        strategy = [(4, 1), (1, 1)]
    if use == "apart":
        value = body.op("ReLU", value, (64, 32), [(8, 1)])
    return body.product(value, weight, (64, 32), strategy)


both = _Counter.both
FORWARD, BACK = ("AllGather", "forward"), ("ReduceScatter", "backward")


def test_equal_gathers_of_one_value_are_one_and_so_are_their_gradients() -> None:
    counts = launched("product", "product")
    assert (counts[FORWARD], counts[BACK]) == (1, 1)
    counts = launched("product", "product", "product")
    assert (counts[FORWARD], counts[BACK]) == (1, 1)


def test_gathers_of_other_values_are_their_own() -> None:
    counts = launched("product", "apart")
    assert (counts[FORWARD], counts[BACK]) == (2, 2)


def test_where_one_gathers_among_others_each_keeps_its_gradient() -> None:
    one = launched("product", "half")[BACK]
    assert launched("product", "product", "half")[BACK] == one + 1


def test_without_gradients_equal_ones_are_merged_afterwards() -> None:
    counts = launched("product", "product", trains=False)
    assert counts == launched("product", trains=False)
    assert counts[BACK] == 0


@pytest.mark.parametrize("uses", [("product", "flat"), ("product", "product", "flat")])
def test_a_reshape_before_one_of_them_keeps_all_apart(uses: tuple[str, ...]) -> None:
    assert launched(*uses)[BACK] == len(uses)


@pytest.mark.parametrize(
    ("op", "forward", "back", "backward"),
    [
        ("AllReduce", 64, "AllReduce", 64),
        ("AllGather", 64, "ReduceScatter", 256),
        ("ReduceScatter", 64, "AllGather", 16),
        ("AlltoAll", 64, "AlltoAll", 64),
    ],
)
def test_a_gradient_puts_in_what_came_out(op: str, forward: int, back: str, backward: int) -> None:
    node = cast("Any", None)  # it is only asked how often its graph runs
    asked: dict[str, Any] = {"gradient": True, "once": True}
    there, again = both(node, op, (0, 1, 2, 3), forward, node, "user code", **asked)
    assert (there.op, there.bytes, there.phase) == (op, forward, "forward")
    assert (again.op, again.bytes, again.phase) == (back, backward, "backward")
    unknown = [one.bytes for one in both(node, op, (0, 1), None, node, "", **asked)]
    assert unknown == [None, None]
    folded = list(both(node, op, (0, 1), 64, node, "", constant=True, **asked))
    assert len(folded) == (1 if op == "AllReduce" else 2)
