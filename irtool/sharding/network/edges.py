"""Edges between operators: who uses what, through tuples and calls, and what is inserted there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import lru_cache

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.types import SequenceType, Type
from irtool.operators import checks
from irtool.operators.judgement import Context, Refused
from irtool.operators.layout import DYNAMIC, TensorLayout, ranks_along
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, item_of
from irtool.sharding.network.collective_types import takes_type
from irtool.sharding.network.data import result_layout
from irtool.sharding.network.graphs import Network, Port, Use
from irtool.sharding.network.received import (
    NOT_TOLD,
    fits_slice,
    is_received,
    received_layout,
)
from irtool.sharding.network.sharded_nodes import TIES, primitive
from irtool.sharding.network.unknown_sizes import reshape_chain
from irtool.sharding.part_chains import exchanged, with_part_axis
from irtool.sharding.redistribution import (
    RedistributionError,
    RedistributionStep,
    created_groups,
    infer,
)

_NO_EDGE = ("UpdateState", "Switch")
"""Look at a tensor without wanting it in a layout, as what glances."""

_SILENT = ("Send", "MakeTuple", "MakeList")
"""Nothing is redistributed behind them."""

SKIP = "skip_redistribution"
"""Attribute of a Reshape that is not to redistribute."""

PARTS = "one side computes in parts that don't lie beside each other: what joins them is not known"


def is_silent(op: str) -> bool:
    """Whether nothing is redistributed behind an operator.

    Args:
        op: name of the primitive.
    """
    return op in _SILENT or operator_of(op).is_("silent")


@dataclass(frozen=True, slots=True)
class Edge:
    """A use of a producer's result that wants a layout.

    ``output``: which output of the producer; ``position`` and ``item``: operand of the consumer
    and, if that is a tuple, which of its items. ``tie``: the MakeTuple before the consumer.
    """

    producer: Node
    output: int
    consumer: Node
    position: int
    item: int = 0
    tie: Node | None = None


@dataclass(frozen=True, slots=True)
class Redistribution:
    """What is inserted on an edge. ``operators`` is None where it is not known (``why`` says it).

    ``in_parts``: where a side computes in parts, the collectives and how often each of them runs.
    For a Reshape, which is replaced by such a chain, producer and consumer are the Reshape itself.
    """

    edge: Edge
    source: TensorLayout | None
    target: TensorLayout | None
    operators: tuple[RedistributionStep, ...] | None
    why: str = ""
    replaces: bool = False
    in_parts: tuple[tuple[RedistributionStep, int], ...] = ()


@dataclass(slots=True)
class _Walk:
    """The state of one search for the users of a producer."""

    found: list[Edge] = field(default_factory=list[Edge])
    seen: set[tuple[int, int, int]] = field(default_factory=set[tuple[int, int, int]])
    through: dict[int, GraphParameter] = field(default_factory=dict[int, GraphParameter])


@dataclass(slots=True)
class EdgeFinder:
    """Finds the edges behind producers.

    ``owners``: parameters of graphs that are called several times; the first caller's producer
    decides how they lie. ``loops``: whether a graph leads to its caller again.
    """

    analysis: Analysis
    owners: dict[int, Node] = field(default_factory=dict[int, Node])
    loops: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def edges(self, producer: Node) -> list[Edge]:
        """All edges behind a node, in MindSpore's order, each once."""
        walk = _Walk()
        self._follow(walk, producer, producer, -1, -1)
        return walk.found

    def _follow(
        self, walk: _Walk, producer: Node, port: Port, output: int, tuple_index: int
    ) -> None:
        key = (id(port), output, tuple_index)
        if key in walk.seen:
            return
        walk.seen.add(key)
        network = self.analysis.network
        for use in network.users_of(port):
            node, name = use.node, primitive(use.node)
            graph = network.called(node)
            if graph is not None:
                self._enter(walk, producer, use, graph, output, tuple_index)
                continue
            if name in TIES:
                # What follows among the users is seen as behind this tuple, too.
                tuple_index = use.position
                self._follow(walk, producer, node, output, tuple_index)
                continue
            if name in ("TupleGetItem", "list_getitem"):
                index = item_of(node)
                if tuple_index != -1 and index != tuple_index:
                    continue
                result = -1 if tuple_index != -1 else self._result(node, max(output, 0), index)
                self._follow(walk, producer, node, result, -1)
                continue
            if node.is_return:
                self._leave(walk, producer, node, output, tuple_index)
                continue
            if (name == "Depend" and use.position != 0) or node in network.callee:
                continue
            if name in _NO_EDGE or operator_of(name).is_("glances"):
                continue
            if node in self.analysis.judged:
                self._add(walk, producer, use, output, tuple_index)
                continue
            self._follow(walk, producer, node, output, tuple_index)

    def _result(self, item: Node, first: int, index: int) -> int:
        """Which result of a producer an item is: of a list among the results each tensor counts.

        Args:
            item: takes the item out of a tuple or list.
            first: the result with which that begins.
            index: the item's; -1 if it is no constant.
        """
        source = self.analysis.network.first(item)
        abstract = source.output_type if isinstance(source, Node) else None
        kind = abstract.type if abstract is not None else None
        if index < 0 or not isinstance(kind, SequenceType):
            return index
        return first + sum(_width(one) for one in kind.elements[:index])

    def _enter(
        self,
        walk: _Walk,
        producer: Node,
        call: Use,
        graph: Graph,
        output: int,
        tuple_index: int,
    ) -> None:
        """Follow a value into a graph that is called with it."""
        network = self.analysis.network
        own = call.node.graph
        if own is None or self._repeats(own, graph):
            return
        parameter = network.parameter(graph, call.position)
        if parameter is None:
            return
        if id(parameter) in self.owners:
            walk.found.append(Edge(producer, max(output, 0), call.node, call.position))
            return
        before = len(walk.found)
        self._follow(walk, producer, parameter, output, tuple_index)
        if len(walk.found) > before and producer.graph is not graph:
            walk.through[id(parameter)] = parameter

    def _repeats(self, caller: Graph, graph: Graph) -> bool:
        key = caller.name, graph.name
        is_loop = self.loops.get(key)
        if is_loop is None:
            is_loop = self.loops[key] = _leads_back(self.analysis.network, caller, graph)
        return is_loop

    def _leave(
        self, walk: _Walk, producer: Node, result: Node, output: int, tuple_index: int
    ) -> None:
        """Follow a value out of the graph that returns it."""
        network = self.analysis.network
        graph = result.graph
        if graph is None:
            return
        if self.analysis.splits_results and graph is network.entry:
            self._append(walk, Edge(producer, max(output, 0), result, 0, max(tuple_index, 0)))
        for call in network.calls.get(graph.name, ()):
            self._follow(walk, producer, call, output, tuple_index)

    def _add(self, walk: _Walk, producer: Node, use: Use, output: int, tuple_index: int) -> None:
        tie = None
        item = 0
        if tuple_index != -1:
            operand = self.analysis.network.inputs[use.node][use.position]
            if isinstance(operand, Node) and primitive(operand) in TIES:
                tie, item = operand, tuple_index
        self._append(walk, Edge(producer, max(output, 0), use.node, use.position, item, tie))

    def _append(self, walk: _Walk, edge: Edge) -> None:
        for other in walk.found:
            if edge.tie is not None:
                same = other.tie is edge.tie and other.item == edge.item
            else:
                same = other.consumer is edge.consumer and other.position == edge.position
                same = same and other.item == edge.item
            if same and other.output == edge.output:
                return
        walk.found.append(edge)


def _leads_back(network: Network, caller: Graph, graph: Graph) -> bool:
    """Whether the called graph leads to its caller again: the body of a loop."""
    todo, seen = [graph], {graph.name}
    while todo:
        for name in _named(network, todo.pop()):
            if name == caller.name:
                return True
            inner = network.dump.graph(name)
            if inner is not None and name not in seen:
                seen.add(name)
                todo.append(inner)
    return False


def _width(kind: Type) -> int:
    """How many results something of this type is."""
    return sum(map(_width, kind.elements)) if isinstance(kind, SequenceType) else 1


def _named(network: Network, graph: Graph) -> Iterator[str]:
    """The graphs that one calls, or chooses between."""
    for node in graph.nodes:
        called = network.called(node)
        if called is not None:
            yield called.name
        for source in network.inputs.get(node, ()):
            if isinstance(source, Graph):
                yield source.name


def redistribute(analysis: Analysis) -> list[Redistribution]:
    """What is inserted on every edge, in MindSpore's order; refusals go to the analysis.

    Args:
        analysis: with operators and Reshapes judged; takes refusals and doubts.

    Returns:
        Reshapes first, then edges by producer; an edge where nothing has to move has no operators,
        one of which they are not known has None.
    """
    redistributions = [
        _reshape(analysis, node) for node in analysis.judged if primitive(node) == "Reshape"
    ]
    finder = EdgeFinder(analysis)
    for port in analysis.order:
        if not isinstance(port, Node) or is_silent(primitive(port)):
            continue
        if port in analysis.judged:
            redistributions.extend(_on_edge(analysis, edge) for edge in finder.edges(port))
        elif is_received(analysis, port):
            redistributions.extend(_of_other_stage(analysis, finder.edges(port)))
    return redistributions


def _of_other_stage(analysis: Analysis, edges: Iterable[Edge]) -> Iterator[Redistribution]:
    """What is inserted behind a Receive; nothing where what comes is as large as what is wanted."""
    for edge in edges:
        source, target = received_layout(analysis, edge.producer), _target(analysis, edge)
        if source is not None and target is not None:
            yield _inferred(analysis, edge, source, target, edge.consumer, keep_reshape=False)
        elif not fits_slice(target, edge.producer):
            yield Redistribution(edge, source, target, None, NOT_TOLD)


def _on_edge(analysis: Analysis, edge: Edge) -> Redistribution:
    source = analysis.judged[edge.producer].output_layout(edge.output)
    target = _target(analysis, edge)
    if source is not None and target is None and edge.consumer.is_return:
        return Redistribution(edge, source, source, ())  # the result is left as it comes
    if source is None or target is None:
        return Redistribution(edge, source, target, None, _why(analysis, edge))
    apart = _exchanged(analysis, edge, source, target)
    if apart is None:
        return Redistribution(edge, source, target, None, PARTS)
    redistribution = _inferred(analysis, edge, source, target, edge.consumer, keep_reshape=False)
    _check_type(analysis, redistribution)
    return replace(redistribution, in_parts=apart) if apart else redistribution


def _exchanged(
    analysis: Analysis, edge: Edge, source: TensorLayout, target: TensorLayout
) -> tuple[tuple[RedistributionStep, int], ...] | None:
    """What is exchanged where one side computes in parts; nothing elsewhere; None if unknown."""
    producer, consumer = analysis.judged[edge.producer], analysis.judged.get(edge.consumer)
    parts = max(item.judgement.parts for item in (producer, consumer) if item is not None)
    if parts == 1:
        return ()
    incoming = () if consumer is None else consumer.wanted.in_layout or ()
    if any(layout.scatters for layout in (*producer.outgoing, *incoming)):
        return None  # nobody measured parts that don't lie beside each other
    outputs = producer.judgement.part_outputs
    inputs = () if consumer is None else consumer.judgement.part_inputs
    tensor = None if consumer is None else consumer.call.slots.tensor(edge.position, edge.item)
    before = outputs[edge.output] if edge.output < len(outputs) else with_part_axis(source, parts)
    behind = with_part_axis(target, parts)
    if tensor is not None and tensor < len(inputs):
        behind = inputs[tensor]
    context = analysis.operators
    try:
        return tuple(
            exchanged(
                before, behind, context.devices, context.own_rank,
                enable_alltoall=analysis.context.enable_alltoall,
            )
        )  # fmt: skip
    except RedistributionError:
        return None


def _check_type(analysis: Analysis, redistribution: Redistribution) -> None:
    """Refuse a collective that is of no such type; around a Reshape MindSpore casts."""
    edge = redistribution.edge
    holder, position = (edge.consumer, edge.position)
    if edge.tie is not None:
        holder, position = (edge.tie, edge.item)
    # A Cast without a strategy stands before what is inserted.
    abstract = holder.input_types[position] if position < len(holder.input_types) else None
    dtypes = [dtype for dtype, _ in abstract.tensors] if abstract is not None else []
    gathers = any(step.op == "AllGather" for step in redistribution.operators or ())
    if gathers and dtypes[:1] and not takes_type("AllGather", dtypes[0]):
        message = (
            f"{edge.consumer.id} wants the result of {edge.producer.id} in another layout, "
            f"but AllGather takes no {dtypes[0]}"
        )
        analysis.refuse("collective-type", message, "", edge.consumer, "AllGather")


def _target(analysis: Analysis, edge: Edge) -> TensorLayout | None:
    if edge.consumer.is_return:
        return result_layout(analysis, edge.consumer, edge.item)
    judged = analysis.judged.get(edge.consumer)
    return None if judged is None else judged.input_layout(edge.position, edge.item)


def _why(analysis: Analysis, edge: Edge) -> str:
    for node in (edge.producer, edge.consumer):
        judged = analysis.judged.get(node)
        if judged is not None and judged.judgement.verdict != "legal":
            return f"the layouts of {node.id} {primitive(node)} are not known"
    return ""


def _reshape(analysis: Analysis, node: Node) -> Redistribution:
    """The chain that a Reshape is replaced by."""
    judged = analysis.judged[node]
    edge = Edge(node, 0, node, 0)
    source, target = judged.input_layout(0), judged.output_layout(0)
    if source is None or target is None:
        return Redistribution(edge, source, target, None, _why(analysis, edge), replaces=True)
    if source.is_whole and target.is_whole and not node.attribute(SKIP):
        return Redistribution(edge, source, target, (), replaces=True)
    if node.attribute(SKIP) is True:
        # The Reshape stays one, to the local shape; what it needs the user takes care of.
        step = RedistributionStep("Reshape", source.slice_shape, target.slice_shape)
        return Redistribution(edge, source, target, (step,), replaces=True)
    return _inferred(analysis, edge, source, target, node, keep_reshape=True)


def _inferred(
    analysis: Analysis,
    edge: Edge,
    source: TensorLayout,
    target: TensorLayout,
    node: Node,
    *,
    keep_reshape: bool,
) -> Redistribution:
    if source.same_as(target) and not keep_reshape:
        return Redistribution(edge, source, target, ())
    try:
        steps = _steps(
            source,
            target,
            analysis.operators,
            alltoall=analysis.context.enable_alltoall,
            keep_reshape=keep_reshape,
        )
    except Refused as refused:
        reason = refused.reason
        analysis.refuse(reason.code, reason.message, reason.check, node)
        return Redistribution(edge, source, target, None, reason.message, replaces=keep_reshape)
    except RedistributionError as error:
        if keep_reshape and _groups_fit(analysis.operators, source, target):
            # MindSpore gathers dimension by dimension where it can't do better.
            analysis.note(f"redistribution: {error}", node)
        else:
            analysis.doubt(f"redistribution: {error}", node)
        return Redistribution(edge, source, target, None, str(error), replaces=keep_reshape)
    return Redistribution(edge, source, target, steps, replaces=keep_reshape)


@lru_cache(maxsize=4096)
def _steps(
    source: TensorLayout,
    target: TensorLayout,
    context: Context,
    *,
    alltoall: bool,
    keep_reshape: bool,
) -> tuple[RedistributionStep, ...]:
    """The chain between two layouts, if its groups can be made.

    Raises:
        Refused: a group can't be made.
        RedistributionError: the chain is not known, or there is none.
    """
    ranks, rank = context.devices, context.own_rank
    try:
        groups = created_groups(source, target, ranks, rank, enable_alltoall=alltoall)
        for group in groups:
            checks.check_group(group, "group of a redistribution", context)
        return infer(
            source, target, ranks, rank, enable_alltoall=alltoall, keep_reshape=keep_reshape
        )
    except RedistributionError:
        steps = None
        if keep_reshape and _groups_fit(context, source, target):
            steps = reshape_chain(source, target, ranks, rank, enable_alltoall=alltoall)
        if steps is None:
            raise
        return steps


def _groups_fit(context: Context, *layouts: TensorLayout) -> bool:
    """Whether sizes are unknown, and groups along every axis that splits could be made."""
    if all(DYNAMIC not in layout.tensor_shape for layout in layouts):
        return False
    return all(
        checks.group_problem(
            ranks_along(layout.device_matrix, (axis,), context.devices, context.own_rank), context
        )
        is None
        for layout in layouts
        for axis in layout.used_axes
    )
