"""Which pipeline stage a node belongs to, where one dump holds several.

With shared cells the dump before the parallel pass holds all stages; MindSpore judges all of them
and cuts the others away afterwards. A node without a stage of its own has that of its inputs, or of
its users, or of the call of its graph.
"""

from __future__ import annotations

from collections.abc import Container

from irtool.ir.graph import Node
from irtool.operators.table import operator_of
from irtool.sharding.network.graphs import Network, Port
from irtool.sharding.network.sharded_nodes import TRANSFERS, primitive

Stages = dict[Node, frozenset[int]]


def foreign_nodes(network: Network, stage: int) -> set[Node]:
    """Nodes that other pipeline stages own; none where the dump holds one stage only.

    Args:
        network: of the dump.
        stage: the own one, from 0.
    """
    borders = {
        node.stage
        for node in network.inputs
        if primitive(node) in TRANSFERS and node.stage is not None
    }
    if len(borders) < 2:
        return set()
    by_node = _stages(network)
    return {node for node, stages in by_node.items() if stages and stage not in stages}


def serves_stage(network: Network, judged: Container[Node], foreign: set[Node], node: Node) -> bool:
    """Whether the result of a node reaches an operator of the own stage.

    What is made of the dataset for other stages (their micro-batch, their labels) is cut away with
    them, and what was inserted before it, too.

    Args:
        network: that knows who uses a result.
        judged: the operators that are sharded.
        foreign: nodes of other stages.
        node: whose result is followed.
    """
    todo: list[Port] = [node]
    seen: set[int] = set()
    while todo:
        port = todo.pop()
        if id(port) in seen:
            continue
        seen.add(id(port))
        for use in network.users_of(port):
            user = use.node
            graph = network.called(user)
            if user in foreign or primitive(user) == "UpdateState":
                continue
            if graph is not None:
                inner = network.parameter(graph, use.position)
                todo += [inner] if inner is not None else []
            elif _computes(judged, user) or primitive(user) in TRANSFERS or _ends(network, user):
                return True
            elif user.is_return and user.graph is not None:
                todo += network.calls.get(user.graph.name, ())
            else:
                todo.append(user)
    return False


def _computes(judged: Container[Node], node: Node) -> bool:
    """Whether a node is an operator, and not one more that only cuts a part out of the dataset."""
    return node in judged and not operator_of(primitive(node)).is_("cuts")


def _ends(network: Network, node: Node) -> bool:
    return node.is_return and node.graph is network.entry


def _stages(network: Network) -> Stages:
    """The stages of each node: one, or several in a graph that several stages call."""
    by_node: Stages = {}
    called: dict[str, frozenset[int]] = {}
    for graph in network.dump.graphs:
        _forward(network, graph.nodes, by_node)
        _backward(network, graph.nodes, by_node)
    # Down the calls, until nothing changes: graphs stand in any order.
    for _ in network.dump.graphs:
        before = dict(called)
        for graph in network.dump.graphs:
            calls = network.calls.get(graph.name, ())
            called[graph.name] = frozenset(
                stage
                for call in calls
                for stage in by_node.get(call) or called.get(_owner(call), frozenset())
            )
        if called == before:
            break
    for graph in network.dump.graphs:
        for node in graph.nodes:
            if not by_node.get(node):
                by_node[node] = called[graph.name]
    return by_node


def _owner(node: Node) -> str:
    return node.graph.name if node.graph is not None else ""


def _forward(network: Network, nodes: tuple[Node, ...], by_node: Stages) -> None:
    for node in nodes:
        if node.stage is not None:
            by_node[node] = frozenset({node.stage})
            continue
        before = [
            stage
            for source in network.inputs[node]
            if isinstance(source, Node) and primitive(source) != "UpdateState"
            for stage in by_node.get(source, ())
        ]
        if before:
            by_node[node] = frozenset({max(before)})


def _backward(network: Network, nodes: tuple[Node, ...], by_node: Stages) -> None:
    for node in reversed(nodes):
        if by_node.get(node):
            continue
        behind = [
            stage for use in network.users_of(node) for stage in by_node.get(use.node, frozenset())
        ]
        if behind:
            by_node[node] = frozenset({min(behind)})
