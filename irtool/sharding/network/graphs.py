"""A dump as MindSpore's parallel pass walks it: users, order of nodes, and what is forward.

Positions of operands count from 0 and leave the callee out. A *port* is what an operand can come
from: a node or a parameter of a graph.

Source: the order of refusals and of inserted operators in dumps and logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, Graph, GraphParameter, Node, Source, likeliest
from irtool.ir.statement import ClosureTarget, GraphTarget, PrimitiveTarget
from irtool.ir.worked_out import once

Port: TypeAlias = Node | GraphParameter

FORWARD_MAKERS = frozenset({"J", "Shard"})
"""Operators whose first operand is a graph that is differentiated or sharded as a whole."""


class Use(NamedTuple):
    """A node that uses something as its operand at ``position``; -1: as what it calls.

    ``item``: which item of the operand it is, where a tuple was looked through.
    """

    node: Node
    position: int
    item: int = 0


@dataclass(slots=True)
class Network:
    """A dump with its edges resolved once.

    ``inputs`` and ``callee`` are by node; ``users`` by identity of a port (see ``users_of``);
    ``calls`` are the direct calls of a graph, by its name, and ``references`` all nodes that name
    a graph. ``preorder``: nodes and parameters as a search from the entry's Return finds them.
    ``by_primitive``: nodes by the name of what they apply (see ``applying``).
    """

    dump: Dump
    entry: Graph | None
    inputs: dict[Node, tuple[Source, ...]] = field(default_factory=dict[Node, tuple[Source, ...]])
    callee: dict[Node, Source] = field(default_factory=dict[Node, Source])
    users: dict[int, list[Use]] = field(default_factory=dict[int, list[Use]])
    calls: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    preorder: list[Port] = field(default_factory=list[Port])
    forward: set[Node] = field(default_factory=set[Node])
    forward_graphs: tuple[Graph, ...] = ()
    by_primitive: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])

    def applying(self, *names: str) -> Sequence[Node]:
        """Nodes that apply one of these primitives, by primitive and then in the dump's order."""
        return [node for name in names for node in self.by_primitive.get(name, ())]

    def users_of(self, port: Port) -> Sequence[Use]:
        """Uses of a node's result or of a parameter, the first one that MindSpore sees first."""
        return self.users.get(id(port), ())

    def called(self, node: Node) -> Graph | None:
        """The graph that a node calls by name, or None."""
        if isinstance(node.target, GraphTarget):
            return self.dump.graph(node.target.graph)
        return None

    def returned(self, graph: Graph) -> Source | None:
        """What a graph's Return gives back."""
        result = graph.result
        if result is None:
            return None
        inputs = self.inputs.get(result, ())
        return inputs[0] if inputs else None

    def first(self, node: Node) -> Source | None:
        """A node's first operand; None of one that has none, whatever its operator needs."""
        inputs = self.inputs.get(node, ())
        return inputs[0] if inputs else None

    def argument(self, call: Node, index: int) -> Source | None:
        """The argument of a call at ``index``."""
        inputs = self.inputs.get(call, ())
        return inputs[index] if index < len(inputs) else None

    def parameter(self, graph: Graph, index: int) -> GraphParameter | None:
        """The parameter of a graph that a call's argument at ``index`` fills."""
        parameters = graph.parameters
        return parameters[index] if 0 <= index < len(parameters) else None

    def index_of(self, parameter: GraphParameter) -> tuple[Graph, int] | None:
        """The graph that a parameter belongs to, and its place there."""
        graph = self.dump.graph(parameter.graph)
        if graph is None:
            return None
        for index, item in enumerate(graph.parameters):
            if item is parameter:
                return graph, index
        return None


def is_operator(node: Node) -> bool:
    """Whether a node applies a primitive (and doesn't call a graph).

    Args:
        node: of any graph.
    """
    return isinstance(node.target, PrimitiveTarget)


def network_of(dump: Dump) -> Network:
    """A dump with every edge resolved, and what is forward marked; made once for a dump.

    Args:
        dump: of which every graph is taken in.
    """
    return once(dump, "network", lambda: _resolved(dump))


def _resolved(dump: Dump) -> Network:
    network = Network(dump, dump.entry)
    for graph in dump.graphs:
        for node in graph.nodes:
            _resolve(network, graph, node)
    users = defaultdict[int, list[Use]](list)
    for node, inputs in network.inputs.items():
        for position, source in enumerate(inputs):
            if isinstance(source, (Node, GraphParameter)):
                users[id(source)].append(Use(node, position))
        callee = network.callee.get(node)
        if isinstance(callee, Node):
            users[id(callee)].append(Use(node, -1))
    network.users = dict(users)
    order_users(network)
    _mark_forward(network)
    return network


def _resolve(network: Network, graph: Graph, node: Node) -> None:
    inputs = node.inputs
    if any(isinstance(source, AmbiguousReference) for source in inputs):
        inputs = tuple(likeliest(source) for source in inputs)
    network.inputs[node] = inputs
    target = node.target
    if isinstance(target, PrimitiveTarget):
        network.by_primitive.setdefault(node.op, []).append(node)
    elif isinstance(target, GraphTarget):
        network.calls.setdefault(target.graph, []).append(node)
    elif isinstance(target, ClosureTarget) and not isinstance(target.callee, str):
        network.callee[node] = likeliest(graph.source(target.callee))


def _mark_forward(network: Network) -> None:
    """Nodes that take part in the forward computation.

    With differentiation these are the differentiated graphs with all they use, free variables
    included; without it every node is.
    """
    graphs = _differentiated(network)
    network.forward_graphs = tuple(graphs)
    if not graphs:
        network.forward_graphs = network.dump.graphs
        network.forward = {node for graph in network.dump.graphs for node in graph.nodes}
        return
    for graph in graphs:
        result = graph.result
        if result is not None:
            network.forward.update(depends_on(network, result))
    # A search left its mark on what it took for forward.
    network.forward.update(node for node in network.inputs if node.strategy is not None)
    # Calls of graphs count as forward wherever they stand.
    for calls in network.calls.values():
        network.forward.update(calls)


def _differentiated(network: Network) -> list[Graph]:
    graphs: dict[str, Graph] = {}
    makers = set(network.applying(*FORWARD_MAKERS))
    for node in network.inputs if makers else ():
        graph = network.first(node) if node in makers else None
        if isinstance(graph, Graph):
            for used in _used_graphs(network, graph):
                graphs.setdefault(used.name, used)
    return list(graphs.values())


def _used_graphs(network: Network, graph: Graph) -> Iterator[Graph]:
    """A graph and all graphs that it names, directly or not."""
    seen, todo = {graph.name}, [graph]
    while todo:
        current = todo.pop()
        yield current
        for node in current.nodes:
            named = [item for item in network.inputs[node] if isinstance(item, Graph)]
            named += [item for name in node.callees if (item := network.dump.graph(name))]
            for item in named:
                if item.name not in seen:
                    seen.add(item.name)
                    todo.append(item)


def depends_on(network: Network, result: Node) -> Iterator[Node]:
    """A node and those that it depends on, without entering the graphs that they call.

    Args:
        network: that resolves operands and callees.
        result: the node to begin with.

    Yields:
        Each node once, the given one first; no parameters.
    """
    seen, todo = {result}, [result]
    while todo:
        node = todo.pop()
        yield node
        for source in (*network.inputs[node], network.callee.get(node)):
            if isinstance(source, Node) and source not in seen:
                seen.add(source)
                todo.append(source)


def search_order(network: Network, *, scoped: bool = True) -> list[Port]:
    """All nodes and parameters in the order in which MindSpore looks at them.

    Args:
        network: to be put in order.
        scoped: true for training: a depth-first search from the entry's Return that visits inputs
            from last to first and the graph of every node, turned round. Else as for evaluation:
            inputs before their users, the subtree of the last input first.

    Returns:
        Without an entry or its Return all nodes as the dump lists them, without parameters.
    """
    if network.entry is None or network.entry.result is None:
        return [node for graph in network.dump.graphs for node in graph.nodes]
    if scoped:
        return network.preorder[::-1]
    return _postorder(network, network.entry.result)


def _children(network: Network, port: Port) -> list[Port]:
    """What a search visits from here, the first one last."""
    children: list[Port] = []
    if isinstance(port, Node):
        if port in network.callee:
            _add_visited(children, network.callee[port])
        elif isinstance(port.target, GraphTarget):
            _add_visited(children, network.dump.graph(port.target.graph))
        for source in network.inputs[port]:
            _add_visited(children, source)
    return children


def _add_visited(children: list[Port], source: Source | None) -> None:
    if isinstance(source, (Node, GraphParameter)):
        children.append(source)
    elif isinstance(source, Graph) and source.result is not None:
        children.append(source.result)


def _preorder(network: Network, root: Node) -> list[Port]:
    seen: set[int] = set()
    order: list[Port] = []
    todo: list[Port] = [root]
    while todo:
        port = todo.pop()
        if id(port) in seen:
            continue
        seen.add(id(port))
        order.append(port)
        todo += _children(network, port)
        # Of every node and parameter the graph that it belongs to is visited, first of all.
        graph = port.graph if isinstance(port, Node) else network.dump.graph(port.graph)
        if graph is not None and graph.result is not None and id(graph.result) not in seen:
            todo.append(graph.result)
    return order


def _postorder(network: Network, root: Node) -> list[Port]:
    seen: set[int] = set()
    done: set[int] = set()
    order: list[Port] = []
    todo: list[Port] = [root]
    while todo:
        port = todo[-1]
        if id(port) in seen:
            todo.pop()
            if id(port) not in done:
                done.add(id(port))
                order.append(port)
            continue
        seen.add(id(port))
        todo += _children(network, port)
    return order


def order_users(network: Network) -> None:
    """Put the users of everything in the order in which MindSpore comes across them.

    That is a depth-first search from the entry's Return, last inputs first.

    Args:
        network: whose ``users`` and ``preorder`` are written anew.
    """
    if network.entry is None or network.entry.result is None:
        return
    network.preorder = _preorder(network, network.entry.result)
    place = {id(port): index for index, port in enumerate(network.preorder)}
    last = len(place)
    for uses in network.users.values():
        if len(uses) > 1:
            uses.sort(key=lambda use: (place.get(id(use.node), last), use.position))


def where(nodes: Sequence[Port], test: Callable[[Node], bool]) -> list[Node]:
    """The nodes among nodes and parameters that pass a test, in their order.

    Args:
        nodes: to choose from.
        test: asked of each node.
    """
    return [port for port in nodes if isinstance(port, Node) and test(port)]
