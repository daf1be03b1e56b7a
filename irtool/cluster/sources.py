"""The user's line of Python behind a node: a gradient node's is that of its forward node."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from irtool.ir.collectives import named_origin
from irtool.ir.comments import Location
from irtool.ir.dump import Dump
from irtool.ir.framework import is_framework
from irtool.ir.graph import Node

_MOST_STEPS = 8


def user_location(node: Node) -> Location | None:
    """Where the user's code asks for a node; None where the dump does not tell.

    MindSpore's own code is no answer: of a gradient node the forward node is looked up, and of a
    node that MindSpore inserted (most collectives) the operator that it is there for: the one whose
    result it takes, of a redistribution or a Receive the one that takes its result.

    Args:
        node: of a dump, or alone.
    """
    location = _own(node)
    if location is not None:
        return location
    forward = forward_node(node)
    if forward is not None:
        return _own(forward) or _around(forward)
    return _around(node) if node.graph is not None else None


def forward_node(node: Node) -> Node | None:
    """The forward node whose gradient a node computes, where the node names it; else None.

    Args:
        node: of a dump, or alone.
    """
    forward_id = node.forward_unique_id
    dump = node.graph.dump if node.graph is not None else None
    if forward_id is None or dump is None:
        return None
    return _forward_nodes(dump).get(forward_id)


def _own(node: Node) -> Location | None:
    for locations in (node.comments.locations, node.comments.forward_locations):
        for location in reversed(locations):
            if not is_framework(location.path):
                return location
    return None


def _serves_its_users(node: Node) -> bool:
    """Whether an inserted node is there for who takes its result, rather than for its input.

    A redistribution makes the layout that the operator behind it asks for (and bears that one's
    scope); what sums a split operator's partial results belongs to the operator before it.
    """
    return node.op == "Receive" or named_origin(node) == "redistribution"


def _around(node: Node) -> Location | None:
    """The line of the nearest operator that a node is there for, else of the nearest before it."""
    if _serves_its_users(node) and (location := _nearest(node, _first_user)):
        return location
    return None if node.op == "Receive" else _nearest(node, _first_input)


def _first_user(node: Node) -> Node | None:
    return next((user for user in node.users if user.op != "UpdateState"), None)


def _first_input(node: Node) -> Node | None:
    first = node.inputs[0] if node.operands else None
    return first if isinstance(first, Node) else None


def _nearest(node: Node, following: Callable[[Node], Node | None]) -> Location | None:
    for _ in range(_MOST_STEPS):
        neighbour = following(node)
        if neighbour is None:
            return None
        node = neighbour
        location = _own(node)
        if location is not None:
            return location
    return None


@lru_cache(maxsize=16)
def _forward_nodes(dump: Dump) -> dict[str, Node]:
    return {node.unique_id: node for node in dump.nodes() if node.unique_id is not None}
