"""Which nodes of a network have a gradient: those whose result depends on a trained weight."""

from __future__ import annotations

from collections.abc import Iterable

from irtool.ir.graph import Graph, GraphParameter
from irtool.ir.node import Node
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.care import primitive
from irtool.sharding.network.graphs import Network, Port

NO_GRADIENT = frozenset({"StopGradient", "UpdateState", "Shape", "TensorShape", "DType"})
"""Operators behind which nothing has a gradient."""


def nodes_with_gradient(analysis: Analysis, trained: Iterable[GraphParameter]) -> set[Node]:
    """Nodes whose result depends on a trained weight.

    Args:
        analysis: the network.
        trained: the parameters that have a gradient.

    Returns:
        Nodes of the forward pass to whose result a gradient comes back.
    """
    network = analysis.network
    todo: list[Port] = list(trained)
    marked: set[Node] = set()
    seen: set[int] = set()
    while todo:
        port = todo.pop()
        if id(port) in seen:
            continue
        seen.add(id(port))
        for use in network.users_of(port):
            todo += _reached(analysis, use.node, use.position, marked)
    return marked


def sharded_graph(network: Network, node: Node) -> Graph | None:
    """The graph that a node calls through ``Shard(@graph)``; None if it calls no such thing."""
    maker = network.callee.get(node)
    if not isinstance(maker, Node) or primitive(maker) != "Shard":
        return None
    graph = network.first(maker)
    return graph if isinstance(graph, Graph) else None


def _reached(analysis: Analysis, node: Node, position: int, marked: set[Node]) -> list[Port]:
    """Where a value that has a gradient goes on from one of its users."""
    network = analysis.network
    name = primitive(node)
    if node not in network.forward or name in NO_GRADIENT or position < 0:
        return []
    if name == "Depend" and position != 0:
        return []
    graph = network.called(node) or sharded_graph(network, node)
    if graph is not None:
        inner = network.parameter(graph, position)
        return [] if inner is None else [inner]
    if node.is_return:
        owner = node.graph
        if owner is None:
            return []
        calls = network.calls.get(owner.name)
        return list(
            calls or (use for use in network.callee if sharded_graph(network, use) is owner)
        )
    marked.add(node)
    return [node]
