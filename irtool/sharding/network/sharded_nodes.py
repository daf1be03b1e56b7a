"""Which nodes are sharded: those that get a layout of their own, and those that are seen through.

Source: which nodes of a dump bear ``{in_strategy: …}`` after the parallel pass.
"""

from __future__ import annotations

from irtool.ir.graph import Node
from irtool.ir.statement import PrimitiveTarget
from irtool.ir.types import SequenceShape
from irtool.operators.table import operator_of
from irtool.sharding.network.graphs import Network

TIES = frozenset({"MakeTuple", "make_tuple", "MakeList", "make_list"})
"""Operators that tie tensors together; they have the layouts of who uses them."""

TRANSFERS = frozenset({"Send", "Receive", "send", "receive"})
"""The borders of pipeline stages."""


_MOST_NAMES = 10_000
_names: dict[str, str] = {}
"""What ``primitive`` said before: it is asked dozens of times a node."""


def primitive(node: Node) -> str:
    """Name of the primitive that a node applies; empty for calls.

    Args:
        node: of any kind.
    """
    target = node.target
    if not isinstance(target, PrimitiveTarget):
        return ""
    name = _names.get(target.name)
    if name is None:
        if len(_names) > _MOST_NAMES:
            _names.clear()
        name = _names[target.name] = node.op
    return name


def is_sharded(network: Network, node: Node) -> bool:
    """Whether MindSpore's parallel pass gives a node a sharding, or looks through it to others.

    Args:
        network: that knows what is forward.
        node: of any kind.
    """
    name = primitive(node)
    if not name:
        return False
    always = name in ("GetNext", "_VirtualOutput")
    # Asked first, so that nobody reads entries of operators that the optimizer alone applies.
    if not always and node not in network.forward:
        return False
    if operator_of(name).is_("unsharded"):
        return False
    return always or name != "Reshape" or not _is_mask_of_attention(network, node)


def has_strategy(network: Network, node: Node) -> bool:
    """Whether the node gets a strategy and layouts of its own.

    A Cast has them only where a search gave it some (then they stand behind the statement).

    Args:
        network: that knows what is forward.
        node: of any kind.
    """
    if not is_sharded(network, node):
        return False
    name = primitive(node)
    if name in TIES or name in TRANSFERS:
        return False
    return name != "Cast" or node.strategy is not None


def _is_mask_of_attention(network: Network, node: Node) -> bool:
    """A Reshape that stands between DropoutGenMask and FlashAttentionScore alone."""
    inputs = network.inputs[node]
    if not inputs or not isinstance(inputs[0], Node) or primitive(inputs[0]) != "DropoutGenMask":
        return False
    users = network.users_of(node)
    return len(users) == 1 and primitive(users[0].node) == "FlashAttentionScore"


def is_nested(node: Node) -> bool:
    """Whether a node's strategies follow the nesting of its operands.

    Args:
        node: of any kind; a call is never nested.
    """
    if not isinstance(node.target, PrimitiveTarget):
        return False
    name = primitive(node)
    entry = operator_of(name)
    if entry.is_("nested") or node.attribute("self_define_shard") is not None:
        return True
    return entry.is_("nests") and any(
        (isinstance(abstract.shape, SequenceShape) or len(abstract.tensors) != 1)
        and abstract.dimensions is None
        and abstract.dtype is None
        for abstract in node.input_types
        if abstract is not None
    )
