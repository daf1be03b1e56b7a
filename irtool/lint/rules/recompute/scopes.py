"""Cells by scope: which of them are recomputed, and which are layers of one kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from irtool.ir.graph import Node

_LAYER = re.compile(r"^(?P<head>.*?[/.])(?P<number>\d+)(?P<tail>-[^/]*)?(?=/|$)")


def layer_of(scope: str | None) -> tuple[str, int] | None:
    """The outermost numbered cell of a scope: ``(".../layers-CellList/#-Layer", 3)``."""
    found = _LAYER.match(scope or "")
    if found is None:
        return None
    return f"{found['head']}#{found['tail'] or ''}", int(found["number"])


def by_layer(nodes: Iterable[Node]) -> dict[str, dict[int, list[Node]]]:
    """Nodes by the kind of their outermost numbered cell, then by its number."""
    found: dict[str, dict[int, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        layer = layer_of(node.scope)
        if layer is not None:
            found[layer[0]][layer[1]].append(node)
    return found
