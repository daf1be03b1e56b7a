"""Layers that repeat, found by their scopes and held against one another; and more of the last."""

from __future__ import annotations

from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, Node
from irtool.sharding.network.graphs import Network


@dataclass(frozen=True, eq=False, slots=True)
class Repeated:
    """Equal layers in a row: a list of cells of one kind.

    Attributes:
        prefix: of their names: ``blocks`` of ``blocks.0`` and ``blocks.1``.
        count: how many there are.
        graph: that they stand in.
    """

    prefix: str
    count: int
    graph: Graph


def repeated_layers(network: Network, wanted: int | None) -> Repeated | tuple[int, ...]:
    """The layers of a network; numbers of layers where several kinds of them repeat.

    Args:
        network: of a begin dump.
        wanted: how many layers those have that are meant.
    """
    families: dict[str, dict[int, Node]] = {}
    for graph in network.forward_graphs:
        for node in graph.nodes:
            name = layer_of_scope(node.scope)
            prefix, _, number = name.rpartition(".")
            if name != NETWORK and prefix and number.isdecimal():
                families.setdefault(prefix, {}).setdefault(int(number), node)
    complete = {
        prefix: nodes
        for prefix, nodes in families.items()
        if len(nodes) > 1 and sorted(nodes) == list(range(len(nodes)))
    }
    if wanted is not None:
        complete = {prefix: nodes for prefix, nodes in complete.items() if len(nodes) == wanted}
    if len(complete) != 1:
        return tuple(sorted(len(nodes) for nodes in complete.values()))
    ((prefix, nodes),) = complete.items()
    graph = nodes[0].graph
    if graph is None:
        return ()
    return Repeated(prefix, len(nodes), graph)
