"""Whether a network keeps parameters on servers (MindSpore's parameter server mode)."""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.sharding.network.sharded_nodes import primitive

_OPERATORS = frozenset({"Push", "Pull", "PushWeight", "PullWeight"})
_MARKS = ("ps_key", "cache_enable")
"""Attributes of primitives whose parameter lives on a server."""


def serves_parameters(dump: Dump) -> bool:
    """Whether an operator pushes to or pulls from a server, or is marked to.

    Args:
        dump: of any pass.
    """
    for node in dump.nodes():
        block = node.primitive_attributes
        marked = block is not None and any(key in block for key in _MARKS)
        if marked or primitive(node) in _OPERATORS:
            return True
    return False
