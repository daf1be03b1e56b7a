"""Reshape: it has no strategy of its own, but takes the layouts of its neighbours.

Its input lies as its producer leaves it, its output as its first user wants it. Where these differ
the Reshape is replaced by a chain that redistributes.
"""

from __future__ import annotations

from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.operators import checks
from irtool.operators.judgement import Judgement, Reason, Refused
from irtool.operators.layout import WHOLE, TensorLayout, TensorMap, replicas
from irtool.sharding.network.analysis import Analysis, Judged, item_of, real_source
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.data import result_layout
from irtool.sharding.network.graphs import Use, where
from irtool.sharding.network.received import NOT_TOLD, is_received, received_layout
from irtool.sharding.network.sharded_nodes import has_strategy, primitive
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.network.written import as_they_came, parsed_scopes

NOTHING = "parallel_preprocessor.cc:InitReshapeOpInfo"


class _UnknownNeighbour(Exception):
    """The layout of a neighbour is not known."""


def judge_reshapes(analysis: Analysis) -> None:
    """Give every Reshape the layouts of its neighbours, in MindSpore's order.

    Args:
        analysis: with every other operator judged; takes the judgements, refusals and doubts.
    """
    network = analysis.network
    nodes = where(analysis.order, lambda node: primitive(node) == "Reshape")
    pending = [node for node in nodes if has_strategy(network, node)]
    copies = pending and analysis.context.stages > 1
    parsed = parsed_scopes(network) if copies else frozenset[str]()
    for node in pending:
        call = call_of(network, node)
        judged = _judged(analysis, node, call, parsed)
        analysis.judged[node] = judged
        for reason in judged.judgement.reasons:
            if judged.judgement.verdict == "illegal":
                analysis.refuse(reason.code, reason.message, reason.check, node)
            else:
                analysis.doubt(reason.message, node)


def _judged(analysis: Analysis, node: Node, call: NodeCall, parsed: frozenset[str]) -> Judged:
    if call.missing or not call.call.tensors or not call.call.results:
        return _unknown(node, call, call.missing or "its shapes are not known")
    search = _Search(analysis, parsed)
    try:
        source = search.before(analysis.network.first(node))
        target = search.after(node, source)
    except _UnknownNeighbour as unknown:
        return _unknown(node, call, f"the layout of a neighbour is not known: {unknown}")
    if (
        node.written_strategy("user_strategy") is not None
        and not search.from_parameter
        and not _searched(node)
    ):
        useless = Reason("reshape-strategy", "a strategy of Reshape has no effect", NOTHING)
        return Judged(node, call, Wanted(), Judgement("illegal", (), (useless,)))
    shape = call.call.tensors[0].shape or ()
    source = source or whole_layout(shape, analysis.context.stage_size)
    if target is None and search.next_is_reshape:
        target = source
    target = target or whole_layout(call.call.results[0].shape or (), analysis.context.stage_size)
    return Judged(node, call, Wanted(), _judgement(analysis, source, target))


def _searched(node: Node) -> bool:
    return node.strategy is not None


def _unknown(node: Node, call: NodeCall, reason: str) -> Judged:
    judgement = Judgement("unknown", (), (Reason("unknown", reason, ""),))
    return Judged(node, call, Wanted(), judgement)


def _judgement(analysis: Analysis, source: TensorLayout, target: TensorLayout) -> Judgement:
    context = analysis.operators
    mirror = replicas(source, context.devices, context.own_rank)
    try:
        checks.check_group(mirror, "mirror group of input 0", context)
    except Refused as refused:
        return Judgement("illegal", (), (refused.reason,), devices=context.devices)
    return Judgement(
        verdict="legal",
        strategy=(source.splits,),
        device_matrix=source.device_matrix,
        input_layouts=(source,),
        output_layouts=(target,),
        input_slices=(source.slice_shape,),
        output_slices=(target.slice_shape,),
        raw_inputs=(source.slice_shape,),
        raw_outputs=(target.slice_shape,),
        mirrors=(mirror,),
        repeats=source.repeats,
        loss_divisor=context.stage_size // _product(target.splits),
        devices=context.devices,
        replaced="a redistribution from producer to first user",
    )


def _product(splits: tuple[int, ...]) -> int:
    product = 1
    for split in splits:
        product *= split
    return product


def whole_layout(shape: tuple[int, ...], devices: int) -> TensorLayout:
    """Every device holds the whole tensor."""
    return TensorLayout((devices,), (WHOLE,) * len(shape), shape)


class _Search:
    """The search for the layouts around one Reshape."""

    def __init__(self, analysis: Analysis, parsed: frozenset[str]) -> None:
        self.analysis = analysis
        self.parsed = parsed
        self.network = analysis.network
        self.from_parameter = False
        self.next_is_reshape = False
        self._seen: set[Node] = set()

    # -- before it -----------------------------------------------------------------------------

    def before(self, source: Source | None) -> TensorLayout | None:
        """The layout in which a value comes, or None if nothing says so."""
        if isinstance(source, GraphParameter):
            return self._before_parameter(source)
        if not isinstance(source, Node):
            return None
        graph = self.network.called(source)
        if graph is not None:
            result = self.network.returned(graph)
            return None if result is None else self.before(real_source(self.analysis, result)[0])
        name = primitive(source)
        if not name:
            return None
        if is_received(self.analysis, source):
            return self._received(source)
        if source in self.analysis.judged and name != "Reshape":
            return self._output(source, 0)
        if name == "TupleGetItem":
            return self._before_item(source)
        inputs = self.network.inputs[source]
        for index, item in enumerate(inputs):
            if name == "Depend" and index != 0:
                continue
            layout = self.before(item)
            if layout is not None:
                return layout
        return None

    def _received(self, node: Node) -> TensorLayout:
        layout = received_layout(self.analysis, node)
        if layout is None:
            raise _UnknownNeighbour(f"{node.id} Receive: {NOT_TOLD}")
        return layout

    def _before_item(self, node: Node) -> TensorLayout | None:
        producer = self.network.first(node)
        if not isinstance(producer, Node):
            return None
        graph = self.network.called(producer)
        if graph is not None:
            result = self.network.returned(graph)
            if result is None:
                return None
            return self.before(real_source(self.analysis, result, item_of(node))[0])
        if producer in self.analysis.judged:
            return self._output(producer, item_of(node))
        raise _UnknownNeighbour(f"{node.id} takes an item of what is no operator")

    def _before_parameter(self, parameter: GraphParameter) -> TensorLayout | None:
        declaration = parameter.declaration
        if declaration is not None and declaration.is_weight:
            self.from_parameter = True
            return self._weight(parameter)
        place = self.network.index_of(parameter)
        if place is None:
            return None
        graph, index = place
        for call in self.network.calls.get(graph.name, ()):
            argument = self.network.argument(call, index)
            while isinstance(argument, Node) and primitive(argument) in ("Cast", "Load", "Depend"):
                argument = self.network.first(argument)
            return self.before(argument)
        return None

    def _weight(self, parameter: GraphParameter) -> TensorLayout:
        """A weight lies as its first other user wants it; else along its first dimension."""
        shape = (parameter.type.dimensions if parameter.type else None) or ()
        layout = self._weight_user(parameter, shape)
        if layout is not None:
            return layout
        devices = self.analysis.context.stage_size
        split = bool(shape) and shape[0] % devices == 0
        entries: TensorMap = (0 if split else WHOLE, *(WHOLE for _ in shape[1:])) if shape else ()
        return TensorLayout((devices,), entries, shape)

    def _weight_user(
        self, port: Node | GraphParameter, shape: tuple[int, ...]
    ) -> TensorLayout | None:
        for use in self.network.users_of(port):
            name = primitive(use.node)
            graph = self.network.called(use.node)
            if name == "Load":
                layout = self._weight_user(use.node, shape)
            elif graph is not None:
                inner = self.network.parameter(graph, use.position)
                layout = self._weight_user(inner, shape) if inner is not None else None
            elif name == "Reshape":
                layout = self._reshape_strategy(use.node, shape)
            elif use.node in self.analysis.judged:
                layout = self._input(use)
            else:
                layout = None
            if layout is not None:
                return layout
        return None

    def _reshape_strategy(self, node: Node, shape: tuple[int, ...]) -> TensorLayout | None:
        """The strategy that a user gave a Reshape of a weight: it holds for the weight."""
        strategy = node.written_strategy("user_strategy")
        if not isinstance(strategy, tuple) or not strategy or not isinstance(strategy[0], tuple):
            return None
        row = tuple(int(value) for value in strategy[0])  # type: ignore[arg-type]  # numbers, as it was read
        devices = self.analysis.context.stage_size
        product = _product(row)
        if len(row) != len(shape) or product == 0:
            return None
        if product > devices:
            message = f"the strategy {row} of a Reshape needs {product} devices of {devices}"
            self.analysis.refuse("device-count", message, "arrangement.cc:Init", node)
            return None
        if devices % product:
            return None
        matrix = row if product == devices else (devices // product, *row)
        entries = tuple(range(len(row) - 1, -1, -1))
        return TensorLayout(matrix, entries, shape)

    # -- behind it -----------------------------------------------------------------------------

    def after(
        self,
        port: Node | GraphParameter,
        source: TensorLayout | None,
        tuple_index: int = -1,
        item: int = -1,
    ) -> TensorLayout | None:
        """The layout that the first user wants, depth first; None if there is none."""
        uses = self.network.users_of(port)
        if isinstance(port, Node):
            uses = as_they_came(port, uses, self.parsed)
        else:
            uses = sorted(uses, key=lambda use: self.network.called(use.node) is not None)
        for use in uses:
            node, name = use.node, primitive(use.node)
            if node in self._seen:
                continue
            self._seen.add(node)
            if name in ("Print", "TensorDump"):
                return source
            layout, skip = self._special(use, source, tuple_index, item)
            if layout is not None:
                return layout
            if skip or not name:
                continue
            if name == "Reshape":
                self.next_is_reshape = True
                continue
            if name in ("Depend", "UpdateState") and use.position != 0:
                continue
            if node in self.analysis.judged:
                return self._input(use, tuple_index)
            layout = self.after(node, source, tuple_index, item)
            if layout is not None:
                return layout
        return None

    def _special(
        self, use: Use, source: TensorLayout | None, tuple_index: int, item: int
    ) -> tuple[TensorLayout | None, bool]:
        """Calls, returns, tuples: what stands behind them, and whether to pass the use over."""
        node, name = use.node, primitive(use.node)
        graph = self.network.called(node)
        if graph is not None:
            parameter = self.network.parameter(graph, use.position)
            layout = (
                self.after(parameter, source, tuple_index, item) if parameter is not None else None
            )
            return layout, False
        if node.is_return and isinstance(node.graph, Graph):
            if self.analysis.splits_results and node.graph is self.network.entry:
                return self._result(node, tuple_index), False
            for call in self.network.calls.get(node.graph.name, ()):
                layout = self.after(call, source, tuple_index, item)
                if layout is not None:
                    return layout, False
            return None, False
        if name == "TupleGetItem":
            index = item_of(node)
            if tuple_index >= 0 and index != tuple_index:
                return None, True
            return self.after(node, source, -1, -1 if tuple_index >= 0 else index), False
        if name == "MakeTuple":
            return self.after(node, source, use.position, item), False
        return None, False

    def _result(self, node: Node, tuple_index: int) -> TensorLayout | None:
        return result_layout(self.analysis, node, max(tuple_index, 0))

    def _input(self, use: Use, tuple_index: int = -1) -> TensorLayout:
        judged = self.analysis.judged[use.node]
        if judged.judgement.verdict != "legal":
            raise _UnknownNeighbour(f"{use.node.id} {primitive(use.node)}")
        position, item = use.position, max(tuple_index, 0)
        layout = judged.input_layout(position, item)
        if layout is None:
            raise _UnknownNeighbour(f"operand {position} of {use.node.id} has no layout")
        return layout

    def _output(self, node: Node, index: int) -> TensorLayout | None:
        judged = self.analysis.judged.get(node)
        if judged is None or judged.judgement.verdict != "legal":
            raise _UnknownNeighbour(f"{node.id} {primitive(node)}")
        layout = judged.output_layout(max(index, 0))
        if layout is None:
            raise _UnknownNeighbour(f"output {index} of {node.id} has no layout")
        return layout
