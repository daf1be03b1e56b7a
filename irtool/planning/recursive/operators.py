"""The operators of a network as the search lists them, with who produces what they take.

Source: order and names of operators in MindSpore's log of the search, and the ``_VirtualDataset``
that stands in the dump after it and not in the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.operators.call import OperatorCall
from irtool.operators.case import Case
from irtool.operators.facts import Search
from irtool.operators.judgement import Context, Unsure
from irtool.operators.layout import Shape
from irtool.operators.notation import Rule
from irtool.operators.table import operator_of
from irtool.planning.recursive.inserted import (
    DATASET,
    RESULT,
    Dataset,
    inserted_datasets,
    is_weight,
    marked_results,
)
from irtool.planning.recursive.kinds import Kind, fitting, kind_of
from irtool.sharding.network.analysis import Analysis, item_of
from irtool.sharding.network.calls import call_of
from irtool.sharding.network.graphs import Port
from irtool.sharding.network.sharded_nodes import TIES, TRANSFERS, is_sharded, primitive

HANDED_ON = ("Depend", "Load", "Shape")
"""Operators that are looked through: the value is that of their first operand."""
_MOST_STEPS = 100_000


_NOT_KNOWN = Search("unknown")


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator that takes part in the search.

    Attributes:
        index: its place in the search's list; 0 is the one nearest to the result.
        node: where it stands in the dump; None: MindSpore inserts it before it searches.
        call: its operands, results and attributes.
        kind: its class.
        inputs: shapes of its tensor inputs, elements of tuples in line.
        outputs: shapes of its results.
        producers: for each operand the operator that it comes from, None: none does. An operand
            that hangs on an operator without strategy is missing, so that later ones move up.
    """

    index: int
    node: Node | None
    call: OperatorCall
    kind: Kind
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    producers: tuple[int | None, ...] = ()

    @property
    def op(self) -> str:
        """Name of the primitive."""
        return self.call.op

    @property
    def search(self) -> Search:
        """What the table says of it; of an operator that the search does not know: nothing."""
        return operator_of(self.op).search or _NOT_KNOWN

    @property
    def is_result(self) -> bool:
        """Whether MindSpore put it behind a result."""
        return self.op == RESULT

    def value(self, name: str, default: object = None) -> object:
        """An attribute, or the constant input in its place."""
        try:
            return self._case.attribute(name)
        except Unsure:
            return default

    def flag(self, name: str) -> bool:
        """A truth value among the attributes; absent: False."""
        return bool(self.value(name, False))

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A number or numbers among the attributes; None where they are not known."""
        try:
            return self._case.numbers(name)
        except Unsure:
            return None

    @property
    def _case(self) -> Case:
        entry = operator_of(self.op)
        rule = entry.rule or Rule(self.op, attributes=entry.attributes)
        return Case(rule, self.call, (), Context(devices=(0,), device_num=1))


def operators_of(analysis: Analysis) -> list[Operator]:
    """Everything that takes part in the search, in its order.

    Args:
        analysis: of the network.

    Returns:
        from the result back to the inputs; what MindSpore inserts before it searches is there, too.
    """
    return _Lister(analysis).listed()


def users_of_weights(analysis: Analysis, operators: Sequence[Operator]) -> dict[str, list[int]]:
    """By name of a weight, the places of the operators that use it, once for each use.

    Args:
        analysis: of the network.
        operators: in the search's order.
    """
    places = {operator.node: operator.index for operator in operators if operator.node is not None}
    weights: dict[str, list[int]] = {}
    for port in analysis.network.preorder:
        if isinstance(port, GraphParameter) and is_weight(port):
            users = [places[node] for node in _users(analysis, port) if node in places]
            if users:
                weights[port.name] = users
    return weights


def _users(analysis: Analysis, weight: GraphParameter) -> Iterator[Node]:
    """Operators behind the reads of a weight, each once a use."""
    network = analysis.network
    for use in network.users_of(weight):
        if primitive(use.node) != "Load":
            yield use.node
            continue
        for reader in network.users_of(use.node):
            if reader.node not in network.forward:
                continue
            user = _first_listed(analysis, reader.node, reader.position)
            if user is not None:
                yield user


def _first_listed(analysis: Analysis, node: Node, position: int) -> Node | None:
    """The first operator of the list at or behind a use, looking into calls."""
    network = analysis.network
    todo: list[tuple[Node, int]] = [(node, position)]
    seen: set[tuple[int, int]] = set()
    while todo:
        current, operand = todo.pop(0)
        if (id(current), operand) in seen:
            continue
        seen.add((id(current), operand))
        if primitive(current) == "UpdateState":
            continue  # what comes behind only comes later
        if is_listed(analysis, current):
            return current
        graph = network.called(current)
        behind: Port | None = current
        if graph is not None:
            behind = network.parameter(graph, operand)
        if behind is not None:
            todo += [(use.node, use.position) for use in network.users_of(behind)]
    return None


def is_listed(analysis: Analysis, node: Node) -> bool:
    """Whether a node takes part in the search; a Cast does, though it gets no strategy.

    Args:
        analysis: of the network.
        node: of it.
    """
    name = primitive(node)
    return is_sharded(analysis.network, node) and name not in TIES and name not in TRANSFERS


@dataclass(slots=True)
class _Lister:
    """Lists operators, then finds their producers."""

    analysis: Analysis
    datasets: list[Dataset] = field(default_factory=list[Dataset])
    places: dict[int, int] = field(default_factory=dict[int, int])
    marked: dict[int, Node] = field(default_factory=dict[int, Node])

    def listed(self) -> list[Operator]:
        """All operators in the search's order, each with its producers."""
        self.datasets = inserted_datasets(self.analysis)
        results = {id(node): node for node in marked_results(self.analysis)}
        size = self.analysis.context.stage_size
        operators: list[Operator] = []
        for port in self.analysis.network.preorder:
            if isinstance(port, GraphParameter):
                operators += self._dataset(port, len(operators))
                continue
            if id(port) in results:
                self.marked[len(operators)] = port
                operators.append(_result_operator(len(operators), port))
            if is_listed(self.analysis, port):
                self.places[id(port)] = len(operators)
                call = fitting(call_of(self.analysis.network, port).call)
                operators.append(_operator(len(operators), port, call, kind_of(call, size)))
        return [self._linked(operator) for operator in operators]

    def _dataset(self, parameter: GraphParameter, index: int) -> Iterator[Operator]:
        """The dataset's operator, where the search comes across the first input it splits."""
        for dataset in self.datasets:
            if any(own is parameter for own in dataset.parameters):
                if id(dataset.parameters[0]) in self.places:
                    return
                for own in dataset.parameters:
                    self.places[id(own)] = index
                yield _dataset_operator(index, dataset)
                return

    def _linked(self, operator: Operator) -> Operator:
        producers: list[int | None] = []
        if operator.index in self.marked:
            producers += self._producer(self.marked[operator.index])
        elif operator.node is not None:
            for source in self.analysis.network.inputs[operator.node]:
                producers += self._producer(source)
        return replace(operator, producers=tuple(producers))

    def _producer(self, source: Source | None) -> list[int | None]:
        """Who an operand comes from: nobody (None), or nothing that can be said (empty)."""
        if isinstance(source, GraphParameter):
            if id(source) in self.places:
                return [self.places[id(source)]]
            source = self._argument(source)
        if not isinstance(source, Node) or not _is_plain(self.analysis, source):
            return [None]
        item = 0
        for _ in range(_MOST_STEPS):
            name = primitive(source)
            graph = self.analysis.network.called(source)
            following: Source | None
            if graph is not None:
                following = self.analysis.network.returned(graph)
            elif is_listed(self.analysis, source):
                return [self.places.get(id(source))]
            elif name == "TupleGetItem":
                item = max(item_of(source), 0)
                following = self.analysis.network.first(source)
            elif name == "MakeTuple":
                items = self.analysis.network.inputs[source]
                following = items[item] if item < len(items) else None
                item = 0
            elif name in HANDED_ON and self.analysis.network.inputs[source]:
                following = self.analysis.network.first(source)
            else:
                return []
            if isinstance(following, GraphParameter) and id(following) in self.places:
                return [self.places[id(following)]]
            if not isinstance(following, Node) or not _is_plain(self.analysis, following):
                return [None]
            source = following
        return [None]

    def _argument(self, parameter: GraphParameter) -> Source | None:
        """What the first call of a parameter's graph hands over for it."""
        network = self.analysis.network
        place = network.index_of(parameter)
        if place is None:
            return None
        graph, index = place
        calls = {id(call) for call in network.calls.get(graph.name, ())}
        for port in network.preorder:
            if id(port) in calls and isinstance(port, Node):
                return network.argument(port, index)
        return None


def _is_plain(analysis: Analysis, node: Node) -> bool:
    """Whether a node applies a primitive or calls a graph by name."""
    return bool(primitive(node)) or analysis.network.called(node) is not None


def _operator(index: int, node: Node, call: OperatorCall, kind: Kind) -> Operator:
    inputs = tuple(tensor.shape or () for tensor in call.tensors)
    outputs = tuple(tensor.shape or () for tensor in call.results)
    return Operator(index, node, call, kind, inputs, outputs)


def _dataset_operator(index: int, dataset: Dataset) -> Operator:
    call = OperatorCall(DATASET, (), ())
    return Operator(index, None, call, Kind.VIRTUAL, dataset.shapes, dataset.shapes)


def _result_operator(index: int, node: Node) -> Operator:
    abstract = node.output_type
    shape = (abstract.dimensions or ()) if abstract is not None else ()
    call = OperatorCall(RESULT, (), ())
    return Operator(index, None, call, Kind.VIRTUAL, (shape,), (shape,))
