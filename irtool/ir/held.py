"""Where in a network of cells an operator's primitive is held: what its scope and name spell.

A scope spells the way from the compiled cell to the one that an operator stands in
(``Default/network-GPT/blocks-CellList/0-Block`` is ``net.network.blocks[0]``), and the instance
name the attribute that holds the primitive.
"""

from __future__ import annotations

import re

from irtool.ir.graph import Node

_RECOMPUTED = "recompute_"
"""Before the scopes of cells that are computed again."""
ROOT = "net"
"""What the compiled cell is called."""


def held_by(node: Node) -> tuple[str, str] | None:
    """The cell and the attribute of it that hold an operator's primitive; None: none does.

    Args:
        node: whose scope, instance name and source lines are asked.

    Returns:
        The path to the cell (:func:`cell_path`), and the attribute's name.
    """
    name = node.instance_name or ""
    path = cell_path(node.scope or "")
    if not name.isidentifier() or not path:
        return None
    # What a function, or a sign, makes is called after itself; a primitive may be handed on.
    locations = node.comments.locations
    attribute = re.compile(rf"\bself\.{name}\b")
    if locations and not any(attribute.search(one.source or "") for one in locations):
        return None
    return path, name


def cell_path(scope: str) -> str:
    """``net.network.blocks[0]``: the way to a cell; empty where the scope does not show it.

    Args:
        scope: of a node, ``Default/network-GPT/blocks-CellList/0-Block``.
    """
    path = ROOT
    parts = scope.split("/")
    if parts[0].removeprefix(_RECOMPUTED) != "Default":
        return ""
    for part in parts[1:]:
        name = part.partition("-")[0]
        if name.isdecimal():
            path += f"[{name}]"
        elif name.isidentifier() and "-" in part:
            path += f".{name}"
        else:
            return ""
    return path
