"""Operators, edges and shared weights, in the order in which the propagation sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.planning.cost.costs import item_bytes
from irtool.planning.recursive.inserted import Dataset, inserted_datasets, is_weight
from irtool.planning.recursive.operators import HANDED_ON, is_listed
from irtool.sharding.network.analysis import Analysis, item_of
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.graphs import Network, Port
from irtool.sharding.network.sharded_nodes import TIES, primitive

_MOST_STEPS = 100_000


@dataclass(slots=True, eq=False)
class Vertex:
    """An operator, a weight that several operators use, or the dataset that is inserted.

    ``call`` is None for the last two. ``place``: its place in the order of the propagation.
    """

    place: int
    node: Node | None
    call: NodeCall | None
    weight: GraphParameter | None = None
    dataset: Dataset | None = None
    before: list[Edge] = field(default_factory=lambda: list[Edge]())
    behind: list[Edge] = field(default_factory=lambda: list[Edge]())

    @property
    def op(self) -> str:
        """Name of the primitive; empty for a weight."""
        if self.dataset is not None:
            return "_VirtualDataset"
        return primitive(self.node) if self.node is not None else ""


@dataclass(slots=True, eq=False)
class Edge:
    """A result (``output``) of ``source`` that is tensor ``tensor`` of ``target``.

    ``element``: bytes of one of its elements. ``is_weight``: the source is a shared weight, which
    must have one layout for all.
    """

    source: Vertex
    output: int
    target: Vertex
    tensor: int
    element: int
    is_weight: bool = False


def vertices_of(analysis: Analysis) -> list[Vertex]:
    """All operators in their order, then the shared weights; edges are set.

    Args:
        analysis: of the network.
    """
    return _Builder(analysis).built()


@dataclass(slots=True)
class _Builder:
    analysis: Analysis
    by_port: dict[int, Vertex] = field(default_factory=dict[int, Vertex])
    outputs: dict[int, int] = field(default_factory=dict[int, int])

    def built(self) -> list[Vertex]:
        network = self.analysis.network
        order = _inputs_first(network)
        vertices: list[Vertex] = []
        for dataset in inserted_datasets(self.analysis):
            vertex = Vertex(len(order) + 1, None, None, dataset=dataset)
            vertices.append(vertex)
            for position, parameter in enumerate(dataset.parameters):
                self.by_port[id(parameter)] = vertex
                self.outputs[id(parameter)] = position
        for place, node in enumerate(node for node in order if is_listed(self.analysis, node)):
            last = primitive(node) == "_VirtualDataset"
            vertex = Vertex(len(order) if last else place, node, call_of(network, node))
            self.by_port[id(node)] = vertex
            vertices.append(vertex)
        for vertex in vertices:
            self._link(vertex)
        vertices += self._weights(vertices)
        return vertices

    def _link(self, vertex: Vertex) -> None:
        if vertex.node is None or vertex.call is None:
            return
        for position, source in enumerate(self.analysis.network.inputs[vertex.node]):
            for item, port, output in self._producers(source):
                producer = self.by_port.get(id(port))
                tensor = vertex.call.slots.tensor(position, item)
                if producer is None or tensor is None:
                    continue
                dtype = vertex.call.call.tensors[tensor].dtype
                edge = Edge(producer, output, vertex, tensor, item_bytes(dtype))
                producer.behind.append(edge)
                vertex.before.append(edge)

    def _producers(self, source: Source) -> Iterator[tuple[int, Port, int]]:
        """Items of an operand with what they come from, and which output of it they are."""
        producer = self._producer(source)
        if producer is None:
            return
        port, output = producer
        if isinstance(port, Node) and primitive(port) in TIES:
            for item, part in enumerate(self.analysis.network.inputs[port]):
                inner = self._producer(part)
                if inner is not None:
                    yield item, *inner
            return
        yield 0, port, output

    def _producer(self, source: Source | None) -> tuple[Port, int] | None:
        """The operator, or the parameter, behind an operand."""
        network = self.analysis.network
        item = -1
        for _ in range(_MOST_STEPS):
            if isinstance(source, GraphParameter):
                if id(source) in self.by_port:
                    return source, self.outputs.get(id(source), 0)
                source = _argument(network, source)
                if source is None:
                    return None
                continue
            if not isinstance(source, Node):
                return None
            name = primitive(source)
            graph = network.called(source)
            if graph is not None:
                source = network.returned(graph)
            elif is_listed(self.analysis, source):
                return source, max(item, 0)
            elif name == "TupleGetItem":
                item = item_of(source)
                source = network.first(source)
            elif name in TIES and item >= 0:
                items = network.inputs[source]
                source, item = (items[item] if item < len(items) else None), -1
            elif name in TIES:
                return source, 0
            elif name in HANDED_ON and network.inputs[source]:
                source = network.first(source)
            else:
                return None
        return None

    def _weights(self, vertices: list[Vertex]) -> Iterator[Vertex]:
        """A vertex for each weight that several operands are."""
        users: dict[int, list[tuple[Vertex, int]]] = {}
        weights: dict[int, GraphParameter] = {}
        for vertex in vertices:
            if vertex.node is None or vertex.call is None:
                continue
            for position, source in enumerate(self.analysis.network.inputs[vertex.node]):
                weight = _weight_behind(self.analysis.network, source)
                tensor = vertex.call.slots.tensor(position)
                if weight is not None and tensor is not None:
                    weights[id(weight)] = weight
                    users.setdefault(id(weight), []).append((vertex, tensor))
        for key, uses in users.items():
            if len(uses) < 2:
                continue
            place = len(vertices) + len(self.analysis.network.preorder)
            shared = Vertex(place, None, None, weight=weights[key])
            for vertex, tensor in uses:
                edge = Edge(shared, 0, vertex, tensor, 0, is_weight=True)
                shared.behind.append(edge)
                vertex.before.append(edge)
            yield shared


def _weight_behind(network: Network, source: Source | None) -> GraphParameter | None:
    for _ in range(_MOST_STEPS):
        if isinstance(source, GraphParameter):
            if is_weight(source):
                return source
            source = _argument(network, source)
        elif isinstance(source, Node) and primitive(source) in ("Load", "Depend"):
            source = network.first(source)
        else:
            return None
    return None


def _argument(network: Network, parameter: GraphParameter) -> Source | None:
    place = network.index_of(parameter)
    if place is None:
        return None
    calls = network.calls.get(place[0].name, ())
    argument = network.argument(calls[0], place[1]) if calls else None
    return None if argument is parameter else argument


def _inputs_first(network: Network) -> list[Node]:
    """All nodes, inputs before their users, first inputs first."""
    entry = network.entry
    if entry is None or entry.result is None:
        return [node for graph in network.dump.graphs for node in graph.nodes]
    ordered: list[Node] = []
    seen: set[int] = set()
    done: set[int] = set()
    todo: list[Node] = [entry.result]
    while todo:
        node = todo[-1]
        if id(node) in seen:
            todo.pop()
            if id(node) not in done:
                done.add(id(node))
                ordered.append(node)
            continue
        seen.add(id(node))
        todo.extend(reversed(_inputs(network, node)))
    return ordered


def _inputs(network: Network, node: Node) -> list[Node]:
    inputs: list[Node] = []
    called = network.called(node)
    sources: list[Source] = [called] if called is not None else []
    if node in network.callee:
        sources.append(network.callee[node])
    for source in (*sources, *network.inputs[node]):
        if isinstance(source, Node):
            inputs.append(source)
        elif isinstance(source, Graph) and source.result is not None:
            inputs.append(source.result)
    return inputs
