"""Which operators of the forward pass compute the same, so that one of them is left.

The compiler merges equal operators before the parallel pass and after the gradients are made. Those
that differ by the name of their primitive's instance alone are merged the second time only: each
gets its strategy, and what is inserted, and one of both is left.

Source: validate dumps of MindSpore 2.7 of networks that multiply the same two values twice.
"""

from __future__ import annotations

from collections.abc import Hashable

from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.ir.operators import POINT_TO_POINT
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.recomputation import in_recomputed_cell
from irtool.sharding.network.sharded_nodes import primitive

EFFECT = "side_effect"
"""What the names of attributes begin with of operators that do more than give a result."""


def representatives(analysis: Analysis) -> dict[int, Node]:
    """Which nodes the compiler merges away, and the node that each of them becomes.

    Operators whose cells are recomputed stay, and those that draw numbers, or have an effect.

    Args:
        analysis: of the network; operators are merged only with equal attributes and strategies.

    Returns:
        By identity (``id``) of a node that is merged away, the node that is left of both.
    """
    network = analysis.network
    known: dict[Hashable, Node] = {}
    merged: dict[int, Node] = {}
    for graph in network.dump.graphs:
        for node in graph.nodes:
            key = _key(network, graph, node, merged)
            if key is None:
                continue
            other = known.setdefault(key, node)
            if other is not node and _alike(other, node):
                merged[id(node)] = other
    return merged


def _key(network: Network, graph: Graph, node: Node, merged: dict[int, Node]) -> Hashable:
    """What equal nodes have in common; None of one that is merged with no other."""
    name, inputs = primitive(node), network.inputs[node]
    if not name or node.is_return or node not in network.forward:
        return None
    if name == "Load" and inputs:
        return graph.name, name, id(inputs[0])
    if name in POINT_TO_POINT or in_recomputed_cell(node):
        return None
    return graph.name, name, node.micro, tuple(_operand(source, merged) for source in inputs)


def _alike(first: Node, second: Node) -> bool:
    """Whether two nodes that apply one operator to the same operands give the same value."""
    attributes = first.primitive_attributes
    if attributes is not None and any(key.startswith(EFFECT) for key in attributes):
        return False
    if operator_of(primitive(first)).is_("random"):
        return False
    blocks = (
        (node.primitive_attributes, node.strategy, node.written_strategy("user_strategy"))
        for node in (first, second)
    )
    one, other = (tuple(str(block) for block in triple) for triple in blocks)
    return one == other


def _operand(source: Source, merged: dict[int, Node]) -> Hashable:
    if isinstance(source, Node | GraphParameter):
        return id(merged.get(id(source), source))
    text = str(source)
    return id(source) if "..." in text else text
