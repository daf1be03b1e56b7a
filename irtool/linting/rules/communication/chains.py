"""What a collective's result goes through before it is used."""

from __future__ import annotations

from irtool.ir.graph import Node

CARRIES = frozenset(("Load", "Depend"))
"""Nodes that hand on their first input."""


def only_reader(node: Node) -> Node | None:
    """The one operator that reads a result, looked through loads and depends; None if several.

    Args:
        node: whose result.
    """
    while True:
        readers = [user for user in node.users if not _only_orders(user, node)]
        if len(readers) != 1:
            return None
        if readers[0].op not in CARRIES:
            return readers[0]
        node = readers[0]


def producer(node: Node) -> Node | None:
    """The operator that makes the first input, looked through loads and depends.

    Args:
        node: that reads it.

    Returns:
        None where a parameter or a constant is read.
    """
    for _ in range(64):
        if not node.operands:
            return None
        source = node.inputs[0]
        if not isinstance(source, Node):
            return None
        if source.op not in CARRIES:
            return source
        node = source
    return None


def _only_orders(user: Node, node: Node) -> bool:
    """Whether a reader only waits for a node: UpdateState, the second input of Depend."""
    if user.op == "UpdateState":
        return True
    if user.op != "Depend" or not user.operands:
        return False
    return user.inputs[0] is not node
