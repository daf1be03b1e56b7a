"""The loss: the operator whose result is differentiated, and where its gradient is divided."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.graph import Graph, Node
from irtool.sharding.network.analysis import Analysis, real_source
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import primitive

NO_LOSS = frozenset({"GetNext", "VirtualLoss", "Load", "UpdateState"})
"""Operators that may stand where a loss does, but are none."""


def loss_nodes(analysis: Analysis) -> set[Node]:
    """The nodes that give the value that is differentiated and handed a gradient.

    Args:
        analysis: of the network.

    Returns:
        Empty without ``loss_repeated_mean``, or seen from a stage that is not the last one.
    """
    context, network = analysis.context, analysis.network
    if not context.loss_repeated_mean or context.stage != context.stages - 1:
        return set()
    losses = (_loss(analysis, graph) for _, graph in gradients_asked(network))
    return {loss for loss in losses if loss is not None}


def gradients_asked(network: Network) -> Iterator[tuple[Node, Graph]]:
    """Calls that hand a gradient in, each with the graph that is differentiated.

    Args:
        network: of whose entry the calls are taken.
    """
    for node in network.entry.nodes if network.entry is not None else ():
        # A gradient is handed to item 1 of what the differentiated graph gives.
        item = network.callee.get(node)
        if not isinstance(item, Node) or primitive(item) != "TupleGetItem":
            continue
        applied = network.first(item)
        maker = network.callee.get(applied) if isinstance(applied, Node) else None
        if not isinstance(maker, Node) or primitive(maker) != "J":
            continue
        graph = network.first(maker)
        if isinstance(graph, Graph):
            yield node, graph


def _loss(analysis: Analysis, graph: Graph) -> Node | None:
    result = analysis.network.returned(graph)
    if result is None:
        return None
    source, _ = real_source(analysis, result)
    if not isinstance(source, Node) or primitive(source) in NO_LOSS:
        return None
    return source if source in analysis.judged else None
