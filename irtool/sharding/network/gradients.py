"""What of a network has a gradient: nodes between a trained weight and the loss."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from math import prod

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.ir.operators import PLUMBING, POINT_TO_POINT
from irtool.ir.types import Abstract
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.edges import Redistribution
from irtool.sharding.network.graphs import Network, Port, Use
from irtool.sharding.network.loss import loss_nodes
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.weights import operators_behind

NO_GRADIENT = frozenset({"StopGradient", "UpdateState", "Shape", "TensorShape", "DType"})
"""Operators behind which nothing has a gradient."""

DISCRETE = ("Int", "UInt", "Bool")
"""What the names of element types begin with that have no gradient."""


@dataclass(frozen=True, slots=True)
class Differentiated:
    """What of the forward pass a gradient comes back through.

    ``nodes``: nodes that depend on a trained weight and lead to the loss. ``uses``: through which
    of their operands the gradient goes on. ``trained``: identities of the parameters whose gradient
    is computed. ``constant``: identities of those nodes and parameters
    whose gradient is known when the network is compiled: MindSpore folds what sums it up.
    ``behind``: by identity of a port what of it leads to the loss: from where a gradient comes
    back, and through which use.
    """

    nodes: frozenset[Node] = frozenset()
    uses: tuple[Use, ...] = ()
    trained: frozenset[int] = frozenset()
    constant: frozenset[int] = frozenset()
    constant_uses: frozenset[Use] = frozenset()
    behind: Mapping[int, list[tuple[Port, Use]]] = field(
        default_factory=dict[int, list[tuple[Port, Use]]]
    )


@dataclass(slots=True)
class _Walk:
    """Ports that depend on a trained weight: from which uses each was reached, and which end.

    ``roots``: names of the graphs whose result is differentiated. ``finds_loss``: one was reached.
    """

    analysis: Analysis
    roots: frozenset[str]
    trained: frozenset[int]
    before: dict[int, list[tuple[Port, Use]]] = field(
        default_factory=dict[int, list[tuple[Port, Use]]]
    )
    marked: set[Node] = field(default_factory=set[Node])
    ends: list[Port] = field(default_factory=list[Port])
    finds_loss: bool = False


def differentiated(
    analysis: Analysis,
    trained: Iterable[GraphParameter],
    redistributions: Iterable[Redistribution] = (),
) -> Differentiated:
    """Nodes whose result depends on a trained weight, and to which a gradient comes back.

    Args:
        analysis: the network.
        trained: the parameters that have a gradient.
        redistributions: what is inserted between operators; behind it no gradient is constant.

    Returns:
        Nodes of the forward pass to whose result a gradient comes back. Where the loss is not
        found all count that depend on a trained weight.
    """
    todo: list[Port] = [*trained]
    walk = _Walk(analysis, _roots(analysis.network), frozenset(id(port) for port in todo))
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
    chained = frozenset(
        Use(item.edge.consumer, item.edge.position) for item in redistributions if item.operators
    )
    return _leading_to_loss(walk, chained)


def _of_other_stages(analysis: Analysis, known: set[int]) -> list[Port]:
    """Weights that only other pipeline stages use: the dump does not tell which are trained."""
    entry = analysis.network.entry
    if entry is None or not analysis.foreign:
        return []
    parameters: list[Port] = []
    for parameter in entry.parameters:
        if id(parameter) in known or parameter.declaration is None:
            continue
        users: set[Node] = set()
        if parameter.declaration.has_default:
            users = operators_behind(analysis, parameter)
        if users and users <= analysis.foreign:
            parameters.append(parameter)
    return parameters


def _leading_to_loss(walk: _Walk, chained: frozenset[Use]) -> Differentiated:
    """The part of what was reached from which the loss can be reached."""
    if not walk.finds_loss:
        every = [use for predecessors in walk.before.values() for _, use in predecessors]
        return Differentiated(frozenset(walk.marked), tuple(dict.fromkeys(every)), walk.trained)
    todo = list(walk.ends)
    seen = {id(port) for port in todo}
    live: set[Node] = set()
    uses: dict[Use, None] = {}
    behind: dict[int, list[tuple[Port, Use]]] = {}
    while todo:
        port = todo.pop()
        if isinstance(port, Node):
            live.add(port)
        for earlier, use in walk.before.get(id(port), ()):
            uses[use] = None
            behind.setdefault(id(earlier), []).append((port, use))
            if id(earlier) not in seen:
                seen.add(id(earlier))
                todo.append(earlier)
    constant, constant_uses = frozenset[int](), frozenset[Use]()
    if not walk.analysis.accumulates:
        constant, constant_uses = _constant(walk, behind, chained)
    return Differentiated(
        frozenset(walk.marked & live), tuple(uses), walk.trained, constant, constant_uses, behind
    )


def _constant(
    walk: _Walk, behind: dict[int, list[tuple[Port, Use]]], chained: frozenset[Use]
) -> tuple[frozenset[int], frozenset[Use]]:
    """Ports whose gradient is constant, and uses through which a constant gradient comes.

    ``behind``: by identity of a port, what of it leads to the loss. Whatever a varying gradient
    comes back to varies; the rest is constant. ``chained``: before these uses something is
    inserted, the gradient of which is computed at run time.
    """
    varying: set[int] = set()
    todo: list[Port] = []
    losses = loss_nodes(walk.analysis)

    def computes(use: Use) -> bool:
        return reads_values(walk.analysis, use) or _is_divided(walk.analysis, use, losses)

    def vary(port: Port) -> None:
        if id(port) not in varying:
            varying.add(id(port))
            todo.append(port)

    for port in walk.ends:
        graph = port.graph if isinstance(port, Node) and port.is_return else None
        if graph is None or not _begins_constant(walk.analysis, graph):
            vary(port)
    for links in behind.values():
        for _, use in links:
            if use in chained or computes(use):
                for earlier, other in walk.before.get(id(use.node), ()):
                    if other == use:
                        vary(earlier)
    while todo:
        for earlier, _ in walk.before.get(id(todo.pop()), ()):
            vary(earlier)
    constant = frozenset(key for key in behind if key not in varying)
    constant |= {id(port) for port in walk.ends if id(port) not in varying}
    uses = frozenset(
        use
        for links in behind.values()
        for port, use in links
        if id(port) not in varying and not computes(use)
    )
    return constant, uses


def _is_divided(analysis: Analysis, use: Use, losses: Container[Node]) -> bool:
    """Whether the gradient of an operand of more than one number is divided.

    MindSpore divides such constants when the network runs (that of a mean, and that of the loss by
    the devices that repeat it); what it does to them otherwise it does beforehand.
    """
    node, judged = use.node, analysis.judged.get(use.node)
    operands = node.input_types
    operand = operands[use.position] if use.position < len(operands) else None
    if operand is None or prod(operand.dimensions or ()) == 1:
        return False
    repeats = node in losses and judged is not None and judged.judgement.loss_divisor > 1
    return repeats or operator_of(primitive(node)).is_("averages")


def _begins_constant(analysis: Analysis, graph: Graph) -> bool:
    """Whether the gradient that a differentiated graph's result is given is a constant."""
    network = analysis.network
    begun = False
    for node, item in network.callee.items():
        if not isinstance(item, Node) or primitive(item) != "TupleGetItem":
            continue
        applied = network.first(item)
        maker = network.callee.get(applied) if isinstance(applied, Node) else None
        if not isinstance(maker, Node) or network.first(maker) is not graph:
            continue
        if any(not is_constant(source) for source in network.inputs[node]):
            return False
        begun = True
    return begun


def is_constant(source: object) -> bool:
    """Whether a value is known when the network is compiled.

    Args:
        source: what an operand resolves to.
    """
    return not isinstance(source, Node | GraphParameter)


def reads_values(analysis: Analysis, use: Use) -> bool:
    """Whether the gradient of an operand is computed from values of the forward pass."""
    values = values_read(analysis, use)
    return values is None or any(not is_constant(value) for value in values)


def values_read(analysis: Analysis, use: Use) -> list[Source] | None:
    """The values of the forward pass that the gradient of an operand is computed from.

    Args:
        analysis: of the network.
        use: the operator, and the position of the operand whose gradient is asked for.

    Returns:
        Operands of that operator, in order; none where the gradient is only handed on; None where
        it reads results as well, or where nobody measured what it reads.
    """
    network = analysis.network
    if use.node.is_return or network.called(use.node) or sharded_graph(network, use.node):
        return []
    read, reads_results = gradient_reads(primitive(use.node), use.position)
    if read is None or reads_results:
        return None
    inputs = network.inputs[use.node]
    return [inputs[place] for place in read if place < len(inputs)]


def gradient_reads(name: str, position: int) -> tuple[tuple[int, ...] | None, bool]:
    """What the gradient of an operand reads of its operator.

    Args:
        name: the primitive.
        position: the operand's.

    Returns:
        The positions of the operands that it reads (None: nobody measured it, so all may be read),
        and whether it reads results.
    """
    if name in PLUMBING:
        return (), False
    measured = operator_of(name).gradients
    if measured is None:
        return None, True
    for one in measured:
        if one.of == position:
            return tuple(one.operands), bool(one.results)
    return None, True


def sharded_graph(network: Network, node: Node) -> Graph | None:
    """The graph that a node calls through ``Shard(@graph)``; None if it calls no such thing.

    Args:
        network: that resolves what the node calls.
        node: a call.
    """
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
    """Whether a gradient comes back to an operand; taken for granted where it was not measured.

    Args:
        name: of the operator's primitive.
        position: of the operand, from 0, without the callee.
    """
    measured = operator_of(name).gradients
    return measured is None or any(one.of == position for one in measured)


def _is_discrete(node: Node) -> bool:
    """Whether all results are whole numbers or truth values, and come of others: no gradient.

    The gradients of whole numbers that are computed with alone are taken like all others.
    """
    result = node.output_type
    if result is None or not _counts(result):
        return False
    return not all(_counts(one) for one in node.input_types if one is not None and one.tensors)


def _counts(abstract: Abstract) -> bool:
    """Whether all tensors of a type hold whole numbers or truth values, and there are some."""
    has_tensors = False
    for dtype, _ in abstract.each_tensor():
        has_tensors = True
        if not (dtype or "").startswith(DISCRETE):
            return False  # most do at once: tuples of all gradients are long
    return has_tensors


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
    firsts = map(network.first, network.applying("J"))
    return frozenset(graph.name for graph in firsts if isinstance(graph, Graph))
