"""What depends on what in a network, before anybody chose strategies.

Which edges there are, whose layouts a Reshape takes over, which operator decides how a parameter
lies and where its gradient is summed: all that is the parallel pass' own business, and the modules
of :mod:`irtool.sharding.network` know it.  Here they run once on layouts that stand for themselves:
every operator's input and output has a layout object of its own, and wherever one of these objects
comes out again, that operator's choice is what decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from math import prod
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.operators.call import Operand
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import WHOLE, Shape, TensorLayout
from irtool.planning.cost.costs import Fusion, item_bytes
from irtool.planning.cost.kept import Carried, Keeping, carriers, keeping, kept_results
from irtool.planning.cost.micro_batches import held_at_once
from irtool.sharding.network.analysis import Analysis, Judged, analysis_of
from irtool.sharding.network.calls import NodeCall
from irtool.sharding.network.communications import instances
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.data import result_layout
from irtool.sharding.network.edges import SKIP, Edge, EdgeFinder, is_silent
from irtool.sharding.network.gradients import differentiated
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.judged import judge_operators
from irtool.sharding.network.received import is_received, received_layout
from irtool.sharding.network.recomputation import recomputed
from irtool.sharding.network.reshape import judge_reshapes
from irtool.sharding.network.sharded_nodes import TIES, primitive
from irtool.sharding.network.states import ParameterReport, original_of
from irtool.sharding.network.weights import behind, weights


@dataclass(frozen=True, slots=True)
class Ref:
    """A layout that an operator's strategy decides: that of one of its tensors.

    ``node`` None: nobody decides it, it is ``layout``.
    """

    node: Node | None
    side: Literal["input", "output"] = "input"
    index: int = 0
    layout: TensorLayout | None = None

    def of(self, judgement: Judgement | None) -> TensorLayout | None:
        """The layout under a judgement of the node."""
        if self.node is None or judgement is None:
            return self.layout
        own = judgement.input_layouts if self.side == "input" else judgement.output_layouts
        return own[self.index] if self.index < len(own) else None


@dataclass(frozen=True, slots=True)
class Link:
    """A place where something may be redistributed: an edge, or a Reshape (``keep_reshape``).

    ``element``: bytes of one element there; ``gradient``: whether a gradient comes back.
    ``is_bool``: truth values, which nothing can gather. ``runs``: how often a step.
    """

    edge: Edge
    source: Ref
    target: Ref
    element: int
    gradient: bool
    keep_reshape: bool = False
    is_bool: bool = False
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A weight: who decides how it lies (``owner``), and who where its gradient is summed.

    ``element``: bytes of one of its elements; ``states``: bytes of optimizer states for one of its
    own elements. ``users``: every operand that is this weight. ``accumulated``: bytes of a sum of
    its gradients, for one of its elements.
    """

    name: str
    weight: ParameterReport
    owner: Ref | None
    mirror: Ref | None
    element: int
    states: float
    users: tuple[Ref, ...]
    accumulated: float = 0.0

    @property
    def trained(self) -> bool:
        """Whether it has a gradient."""
        return self.mirror is not None

    @property
    def dtype(self) -> str | None:
        """The type of its elements."""
        type = self.weight.parameter.type
        return type.dtype if type is not None else None


@dataclass(frozen=True, eq=False)
class Structure:
    """A network as a planner sees it.

    ``calls``: operators that have a strategy, with what MindSpore makes of them now (Reshape has
    none); ``with_gradient``: nodes whose result has a gradient; ``losses``: those whose
    gradient is a constant, which nobody communicates. ``micro_batches``: how
    often operators run for one update of the weights. ``keeping``: what the backward pass reads;
    ``beside``: what runs again though nothing in the dump asks for it; ``counts_all``: in tables,
    every result with a gradient counts as kept, with who makes it: what no gradient reads is what
    another operator may be recomputed from. ``instances``: how often each graph runs in a step;
    ``at_once``: how many results of a node are held at once for each in the dump, where not one.
    """

    dump: Dump
    context: ParallelContext
    operators: Context
    calls: dict[Node, Judged]
    links: tuple[Link, ...]
    parameters: tuple[Parameter, ...]
    with_gradient: frozenset[Node]
    differentiates: bool
    losses: frozenset[Node] = frozenset()
    micro_batches: int = 1
    keeping: Keeping = field(default_factory=Keeping)
    beside: frozenset[Node] = frozenset()
    counts_all: bool = False
    instances: Mapping[str, int] = field(default_factory=dict[str, int])
    at_once: Mapping[Node, float] = field(default_factory=dict[Node, float])

    def runs(self, node: Node) -> int:
        """How often a node runs in a step: a cell inlined late once for each of its calls."""
        return self.instances.get(node.graph.name, 1) if node.graph is not None else 1

    def held(self, node: Node) -> float:
        """How many results of a node are held at once, for each that stands in the dump."""
        return self.at_once.get(node, 1)

    @cached_property
    def kept(self) -> dict[Node, tuple[int, ...]]:
        """Which results of each operator count as kept for the backward pass, with the operator."""
        if self.counts_all:
            return {
                node: tuple(range(len(judged.call.call.results)))
                for node, judged in self.calls.items()
                if node in self.with_gradient
            }
        return kept_results(self.keeping)

    @cached_property
    def carried(self) -> dict[Node, tuple[Carried, ...]]:
        """By operator the operands and results that count as kept with it, each tensor once."""
        return carriers(self.keeping)

    def under(
        self, *, enable_alltoall: bool | None = None, parallel_optimizer: bool | None = None
    ) -> Structure:
        """This network under settings that decide on no operator's layouts.

        Args:
            enable_alltoall: None: as it is.
            parallel_optimizer: None: as it is.
        """
        own = self.context
        alltoall = own.enable_alltoall if enable_alltoall is None else enable_alltoall
        parallel = own.parallel_optimizer if parallel_optimizer is None else parallel_optimizer
        context = replace(own, enable_alltoall=alltoall, parallel_optimizer=parallel)
        return replace(self, context=context)

    def reads(self, parameter: Parameter) -> bool:
        """Whether the backward pass reads a weight, so that it stays as it was gathered."""
        read = self.keeping.weights
        return any(
            ref.node is not None and (ref.node, ref.index) in read for ref in parameter.users
        )

    def cuts_batch(self, slice: Shape, operand: Operand) -> bool:
        """Whether a device cuts its part out of a batch that every device gets whole."""
        context = self.context
        whole_batch = context.full_batch or context.dataset is not None
        arrives_cut = isinstance(context.dataset, tuple) or not whole_batch
        return not arrives_cut and tuple(slice) != tuple(operand.shape or ())

    @cached_property
    def _fusions(self) -> dict[str | None, Fusion]:
        """By element type how many weights may share a bucket."""
        sums = Counter(item.dtype for item in self.parameters if item.trained)
        gathers = Counter(item.dtype for item in self.parameters)
        return {dtype: Fusion(dtype, sums[dtype], count) for dtype, count in gathers.items()}

    def fusion_of(self, parameter: Parameter) -> Fusion:
        """With how many others the collectives of a weight may be fused."""
        return self._fusions[parameter.dtype]

    def communicates_back(self, node: Node) -> bool:
        """Whether what an operator sums in the forward pass is communicated in the backward one."""
        return node in self.with_gradient and node not in self.losses


def structure_of(
    dump: Dump,
    context: ParallelContext,
    beside: Collection[Node] = (),
    network: Network | None = None,
) -> Structure:
    """Look at a begin dump under a context; strategies in it don't matter for what is found.

    Args:
        dump: the dump ``step_parallel_begin``.
        context: devices and options.
        beside: nodes to recompute beside those whose cells ask for it.
        network: the dump with its edges resolved, where somebody has it already.
    """
    plain = replace(context, parallel_optimizer=False, loss_repeated_mean=True)
    analysis = analysis_of(network or network_of(dump), plain)
    judge_operators(analysis)
    calls = dict(analysis.judged)
    symbols = _Symbols(analysis)
    analysis.findings.clear()
    judge_reshapes(analysis)
    own = {node: judged for node, judged in calls.items() if node not in analysis.foreign}
    all_weights = weights(analysis)
    trained = [item.parameter for item in all_weights if item.mirror_ranks is not None]
    gradients = differentiated(analysis, trained)
    marked, runs = gradients.nodes, instances(analysis.network)
    again = {*recomputed(analysis, gradients, ()).nodes, *beside}
    return Structure(
        dump,
        context,
        context.for_operators(dynamic=analysis.dynamic),
        own,
        tuple(_with_runs(_links(analysis, symbols, marked), runs)),
        tuple(_parameters(analysis, symbols, all_weights)),
        marked,
        analysis.differentiates,
        frozenset(node for node in own if id(node) in gradients.constant),
        keeping=keeping(analysis, marked, _trained_operands(analysis, all_weights), again),
        beside=frozenset(beside),
        instances=runs,
        at_once=held_at_once(analysis, runs),
    )


@dataclass(slots=True)
class _Symbols:
    """Layouts and groups that stand for what an operator decides, by identity."""

    analysis: Analysis
    refs: dict[int, Ref] = field(default_factory=dict[int, Ref])
    kept: list[object] = field(default_factory=list[object])

    def __post_init__(self) -> None:
        for node, judged in self.analysis.judged.items():
            symbol = self._judgement(node, judged)
            if node in self.analysis.foreign:
                self._settle(judged.judgement, symbol)
            self.analysis.judged[node] = replace(judged, judgement=symbol)

    def _settle(self, judgement: Judgement, symbol: Judgement) -> None:
        """Layouts of another stage's operators are nobody's choice."""
        pairs = (
            *zip(symbol.input_layouts, judgement.input_layouts, strict=False),
            *zip(symbol.output_layouts, judgement.output_layouts, strict=False),
        )
        for stands, layout in pairs:
            self.refs[id(stands)] = Ref(None, layout=layout)

    def _judgement(self, node: Node, judged: Judged) -> Judgement:
        size = self.analysis.context.stage_size
        ranks = self.analysis.operators.devices
        inputs = [self._layout(item.shape or (), size) for item in judged.call.call.tensors]
        outputs = [self._layout(item.shape or (), size) for item in judged.call.call.results]
        # Made anew each time: the object stands for the operand. Two ranks count as a group.
        mirrors = [tuple([ranks[0], ranks[-1] + 1]) for _ in inputs]  # noqa: C409 - a new object
        for index, layout in enumerate(inputs):
            self._add(layout, Ref(node, "input", index))
        for index, layout in enumerate(outputs):
            self._add(layout, Ref(node, "output", index))
        for index, group in enumerate(mirrors):
            self._add(group, Ref(node, "input", index))
        return Judgement(
            "legal",
            (),
            device_matrix=(size,),
            input_layouts=tuple(inputs),
            output_layouts=tuple(outputs),
            input_slices=tuple(layout.tensor_shape for layout in inputs),
            output_slices=tuple(layout.tensor_shape for layout in outputs),
            mirrors=tuple(mirrors),
            devices=ranks,
        )

    def _layout(self, shape: tuple[int, ...], size: int) -> TensorLayout:
        return TensorLayout((size,), (WHOLE,) * len(shape), shape)

    def _add(self, thing: object, ref: Ref) -> None:
        self.kept.append(thing)  # identities must stay taken
        self.refs[id(thing)] = ref

    def layout(self, layout: TensorLayout | None) -> Ref | None:
        """Who decides a layout that came out."""
        if layout is None:
            return None
        return self.refs.get(id(layout)) or Ref(None, layout=layout)

    def group(self, ranks: tuple[int, ...] | None) -> Ref | None:
        """Who decides a group that came out."""
        return None if ranks is None else self.refs.get(id(ranks))


def _links(analysis: Analysis, symbols: _Symbols, marked: frozenset[Node]) -> Iterator[Link]:
    """Everything that may be redistributed, in MindSpore's order."""
    for node, judged in analysis.judged.items():
        if primitive(node) != "Reshape" or node in analysis.foreign:
            continue
        source = symbols.layout(judged.input_layout(0))
        target = symbols.layout(judged.output_layout(0))
        if source is None or target is None or node.attribute(SKIP) is True:
            continue
        dtype = judged.call.call.tensors[0].dtype
        yield Link(Edge(node, 0, node, 0), source, target, item_bytes(dtype), node in marked, True)
    finder = EdgeFinder(analysis)
    for port in analysis.order:
        if not isinstance(port, Node) or is_silent(primitive(port)):
            continue
        if port not in analysis.judged and not is_received(analysis, port):
            continue
        for edge in finder.edges(port):
            if edge.consumer in analysis.foreign:
                continue
            link = _link(analysis, symbols, edge, marked)
            if link is not None:
                yield link


def _with_runs(links: Iterable[Link], instances: Mapping[str, int]) -> Iterator[Link]:
    for link in links:
        graph = link.edge.consumer.graph
        runs = instances.get(graph.name, 1) if graph is not None else 1
        yield link if runs == 1 else replace(link, runs=runs)


def _link(
    analysis: Analysis, symbols: _Symbols, edge: Edge, marked: frozenset[Node]
) -> Link | None:
    source = symbols.layout(_made(analysis, edge))
    target = symbols.layout(_wanted(analysis, edge))
    if source is None or target is None or source == target:
        return None
    holder, position = (edge.consumer, edge.position)
    if edge.tie is not None:
        holder, position = (edge.tie, edge.item)
    abstract = holder.input_types[position] if position < len(holder.input_types) else None
    dtypes = [dtype for dtype, _ in abstract.tensors] if abstract is not None else []
    dtype = dtypes[0] if dtypes else ""
    gradient = edge.producer in marked
    return Link(edge, source, target, item_bytes(dtype), gradient, is_bool=dtype == "Bool")


def _made(analysis: Analysis, edge: Edge) -> TensorLayout | None:
    """How what an edge hands on lies; what comes from another stage, as its operator left it."""
    producer = analysis.judged.get(edge.producer)
    if producer is None:
        return received_layout(analysis, edge.producer)
    return producer.output_layout(edge.output)


def _wanted(analysis: Analysis, edge: Edge) -> TensorLayout | None:
    """How what an edge hands on has to lie; of an evaluation's result the context says it."""
    if edge.consumer.is_return:
        return result_layout(analysis, edge.consumer, edge.item)
    consumer = analysis.judged.get(edge.consumer)
    return None if consumer is None else consumer.input_layout(edge.position, edge.item)


# -- parameters ----------------------------------------------------------------------------------


def _parameters(
    analysis: Analysis, symbols: _Symbols, all_weights: list[ParameterReport]
) -> Iterator[Parameter]:
    """Weights that operators use, with their states."""
    users: dict[int, list[Ref]] = {}
    for node, judged in analysis.judged.items():
        for index, parameter in _operands(analysis, node, judged.call):
            ref = symbols.layout(judged.judgement.input_layouts[index])
            if ref is not None:
                users.setdefault(id(parameter), []).append(ref)
    by_name = {weight.name: weight for weight in all_weights}
    states: dict[str, float] = {}
    sums: dict[str, float] = {}
    for weight in all_weights:
        original = original_of(weight, by_name)
        if original is None or original.user is None:
            continue
        total, own = prod(original.shape), prod(weight.shape)
        if total <= 0 or own < 0:
            continue
        share = _element(weight) * own / total
        if weight.role == "accumulated gradient":
            sums[original.name] = sums.get(original.name, 0.0) + share
        elif weight.role == "state" and weight.user is None:
            states[original.name] = states.get(original.name, 0.0) + share
    for weight in all_weights:
        owner = symbols.layout(weight.layout)
        if weight.user is None or not weight.is_read or weight.role == "accumulated gradient":
            continue
        yield Parameter(
            weight.name,
            weight,
            owner,
            None if weight.mirror_ranks is None else symbols.group(weight.mirror_ranks) or owner,
            _element(weight),
            states.get(weight.name, 0.0),
            tuple(dict.fromkeys(users.get(id(weight.parameter), ()))),
            sums.get(weight.name, 0.0),
        )


def _trained_operands(
    analysis: Analysis, all_weights: list[ParameterReport]
) -> dict[Node, list[int]]:
    """By node the tensor operands that are weights with a gradient."""
    trained = {id(item.parameter) for item in all_weights if item.mirror_ranks is not None}
    return {
        node: [
            index for index, item in _operands(analysis, node, judged.call) if id(item) in trained
        ]
        for node, judged in analysis.judged.items()
    }


def _element(weight: ParameterReport) -> int:
    type = weight.parameter.type
    return item_bytes(type.dtype if type is not None else None)


def _operands(
    analysis: Analysis, node: Node, call: NodeCall
) -> Iterator[tuple[int, GraphParameter]]:
    """Tensor operands of a node that are weights."""
    for position, source in enumerate(analysis.network.inputs[node]):
        items: tuple[Source, ...] = (source,)
        if isinstance(source, Node) and primitive(source) in TIES:
            items = analysis.network.inputs[source]
        for item, part in enumerate(items):
            tensor = call.slots.tensor(position, item)
            parameter = behind(analysis, part) if tensor is not None else None
            if tensor is not None and parameter is not None:
                yield tensor, parameter
