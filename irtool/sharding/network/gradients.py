"""What of a network has a gradient: nodes between a trained weight and the loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.care import primitive
from irtool.sharding.network.graphs import Network, Port, Use

NO_GRADIENT = frozenset({"StopGradient", "UpdateState", "Shape", "TensorShape", "DType"})
"""Operators behind which nothing has a gradient."""

DISCRETE = ("Int", "UInt", "Bool")
"""What the names of element types begin with that have no gradient."""


@dataclass(frozen=True, slots=True)
class Differentiated:
    """What of the forward pass a gradient comes back through.

    ``nodes``: nodes that depend on a trained weight and lead to the loss. ``uses``: through which
    of their operands the gradient goes on.
    """

    nodes: frozenset[Node] = frozenset()
    uses: tuple[Use, ...] = ()


@dataclass(slots=True)
class _Walk:
    """Ports that depend on a trained weight: from which uses each was reached, and which end.

    ``roots``: names of the graphs whose result is differentiated. ``finds_loss``: one was reached.
    """

    analysis: Analysis
    roots: frozenset[str]
    before: dict[int, list[tuple[Port, Use]]] = field(
        default_factory=dict[int, list[tuple[Port, Use]]]
    )
    marked: set[Node] = field(default_factory=set[Node])
    ends: list[Port] = field(default_factory=list[Port])
    finds_loss: bool = False


def differentiated(analysis: Analysis, trained: Iterable[GraphParameter]) -> Differentiated:
    """Nodes whose result depends on a trained weight, and to which a gradient comes back.

    Args:
        analysis: the network.
        trained: the parameters that have a gradient.

    Returns:
        Nodes of the forward pass to whose result a gradient comes back. Where the loss is not
        found all count that depend on a trained weight.
    """
    walk = _Walk(analysis, _roots(analysis.network))
    todo: list[Port] = [*trained]
    todo += _of_other_stages(analysis, {id(port) for port in todo})
    seen = {id(port) for port in todo}
    while todo:
        port = todo.pop()
        for use in analysis.network.users_of(port):
            for reached in _reached(walk, use):
                walk.before.setdefault(id(reached), []).append((port, use))
                if id(reached) not in seen:
                    seen.add(id(reached))
                    todo.append(reached)
    return _leading_to_loss(walk)


def _of_other_stages(analysis: Analysis, known: set[int]) -> list[Port]:
    """Weights that only other pipeline stages use: the dump does not tell which are trained."""
    entry, network = analysis.network.entry, analysis.network
    if entry is None or not analysis.foreign:
        return []
    found: list[Port] = []
    for parameter in entry.parameters:
        if id(parameter) in known or parameter.declaration is None:
            continue
        todo: list[Port] = [parameter] if parameter.declaration.has_default else []
        users: set[Node] = set()
        while todo:
            for use in network.users_of(todo.pop()):
                graph = network.called(use.node)
                inner = network.parameter(graph, use.position) if graph is not None else None
                if inner is not None:
                    todo.append(inner)
                elif primitive(use.node) == "Load" and use.position == 0:
                    todo.append(use.node)
                elif use.node in analysis.judged:
                    users.add(use.node)
        if users and users <= analysis.foreign:
            found.append(parameter)
    return found


def _leading_to_loss(walk: _Walk) -> Differentiated:
    """The part of what was reached from which the loss can be reached."""
    if not walk.finds_loss:
        every = [use for found in walk.before.values() for _, use in found]
        return Differentiated(frozenset(walk.marked), tuple(dict.fromkeys(every)))
    todo = list(walk.ends)
    seen = {id(port) for port in todo}
    live: set[Node] = set()
    uses: dict[Use, None] = {}
    while todo:
        port = todo.pop()
        if isinstance(port, Node):
            live.add(port)
        for earlier, use in walk.before.get(id(port), ()):
            uses[use] = None
            if id(earlier) not in seen:
                seen.add(id(earlier))
                todo.append(earlier)
    return Differentiated(frozenset(walk.marked & live), tuple(uses))


def sharded_graph(network: Network, node: Node) -> Graph | None:
    """The graph that a node calls through ``Shard(@graph)``; None if it calls no such thing."""
    maker = network.callee.get(node)
    if not isinstance(maker, Node) or primitive(maker) != "Shard":
        return None
    graph = network.first(maker)
    return graph if isinstance(graph, Graph) else None


def _reached(walk: _Walk, use: Use) -> list[Port]:
    """Where a value that has a gradient goes on from one of its users."""
    network, node = walk.analysis.network, use.node
    name = primitive(node)
    if node not in network.forward or name in NO_GRADIENT or use.position < 0:
        return []
    if name == "Depend" and use.position != 0:
        return []
    graph = network.called(node) or sharded_graph(network, node)
    if graph is not None:
        inner = network.parameter(graph, use.position)
        return [] if inner is None else [inner]
    if node.is_return:
        return _behind_return(walk, node)
    if not has_gradient(name, use.position) or _is_discrete(node):
        return []
    walk.marked.add(node)
    if name in POINT_TO_POINT:
        walk.ends.append(node)
    return [node]


def has_gradient(name: str, position: int) -> bool:
    """Whether a gradient comes back to an operand; taken for granted where it was not measured."""
    measured = operator_of(name).gradients
    return measured is None or any(one.of == position for one in measured)


def _is_discrete(node: Node) -> bool:
    """Whether all results are whole numbers or truth values: nothing to differentiate."""
    abstract = node.output_type
    dtypes = [dtype for dtype, _ in abstract.tensors] if abstract is not None else []
    return bool(dtypes) and all((dtype or "").startswith(DISCRETE) for dtype in dtypes)


def _behind_return(walk: _Walk, node: Node) -> list[Port]:
    """Where what a graph returns goes on: in its callers, or it is what is differentiated."""
    network, owner = walk.analysis.network, node.graph
    if owner is None:
        return []
    calls: list[Port] = [call for call in network.calls.get(owner.name, ()) if call.graph]
    calls = calls or [use for use in network.callee if sharded_graph(network, use) is owner]
    if owner.name in walk.roots:
        walk.ends.append(node)
        walk.finds_loss = True
        return [node]
    return calls


def _roots(network: Network) -> frozenset[str]:
    """The graphs whose gradient function is taken: their results are what is differentiated."""
    firsts = (network.first(node) for node in network.inputs if primitive(node) == "J")
    return frozenset(graph.name for graph in firsts if isinstance(graph, Graph))
