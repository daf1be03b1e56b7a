"""A dump as it would be of one micro-batch: the first dimension of every input divided.

``PipelineCell(net, M)`` cuts each input of the network along its first dimension into ``M`` parts,
and compiles the network for one of them.  Which dimension of a tensor inside comes from there is
found as a data-parallel plan would find it: the inputs are split into ``M``, and the sharding rule
of every operator says how its results are then split.  Slices are what a micro-batch looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod
from typing import TypeAlias

from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter, Source
from irtool.ir.items import Item, Parameter, ParameterList
from irtool.ir.node import Node
from irtool.ir.types import Abstract, AnyShape, SequenceShape, Shape, Signature
from irtool.ir.values import Scalar, Value, Word
from irtool.ir.values import Sequence as SequenceLiteral
from irtool.planning.search.candidates import candidates_of
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.judge import judge
from irtool.sharding.judgement import Context, Judgement
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.care import NOT_SHARDED, TIES, primitive
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.data import outer_parameter
from irtool.sharding.network.graphs import Network, network_of

_HANDS_ON = frozenset(
    {"Load", "Depend", "Cast", "StopGradient", "InsertGradientOf", "DumpGradient"}
)
_DATASET = frozenset({"_VirtualDataset", "GetNext"})


@dataclass(frozen=True, slots=True)
class Part:
    """The dimension of a tensor that the batch stands in.

    ``outside``: what the dimension holds outside of the batch, where a Reshape put both into one:
    every so manieth part of it is divided.
    """

    dimension: int
    outside: int = 1


Parts: TypeAlias = "Part | tuple[Parts, ...] | None"
"""Of a value; None: it is the same for every micro-batch."""


def dataset_splits(context: ParallelContext) -> int:
    """Into how many parts the dataset cuts a batch over the devices of a stage."""
    if isinstance(context.dataset, tuple):
        rows = [row if isinstance(row, tuple) else row.strategy for row in context.dataset]
        return max((row[0] for row in rows if row), default=1)
    return 1 if context.full_batch or context.dataset is not None else context.stage_size


def default_micro_batches(dump: Dump, stages: int, splits: int = 1) -> int:
    """Four a stage, or the next fewer that the batch can be cut into (but one a stage).

    Args:
        dump: of the whole batch.
        stages: of the pipeline.
        splits: parts that the dataset cuts every micro-batch into.
    """
    batch = batch_of(dump) // splits
    wanted = 4 * stages
    found = [count for count in range(stages, wanted + 1) if batch % count == 0]
    return found[-1] if batch and found else wanted


def batch_of(dump: Dump) -> int:
    """What the first dimensions of all inputs can be divided by; 0 where none is known."""
    network = network_of(dump)
    return gcd(*(shape[0] for _, shape in _inputs(network) if shape and shape[0] > 0), 0)


def micro_batch(dump: Dump, count: int) -> Dump:
    """The dump of one of so many micro-batches; nodes are the same, in the same order.

    Args:
        dump: a begin dump of the whole batch.
        count: how many micro-batches a step has.

    Raises:
        CannotPlan: the batch can't be divided like this, or can't be followed through an operator.
    """
    if count == 1:
        return dump
    network = network_of(dump)
    for name, shape in _inputs(network):
        if shape and shape[0] < 0:
            raise CannotPlan(f"input {name} has an unknown number of rows: no micro-batch is known")
        if shape and shape[0] % count:
            legal = [n for n in range(1, shape[0] + 1) if shape[0] % n == 0]
            near = sorted(sorted(legal, key=lambda n: abs(n - count))[:3])
            raise CannotPlan(
                f"input {name} has {shape[0]} rows, which cannot be cut into {count} "
                f"micro-batches: {', '.join(map(str, near))} would do"
            )
    follower = _Follower(network, count)
    for graph in network.forward_graphs:
        for node in graph.nodes:
            follower.of(node)
    return _Writer(follower).written(dump)


def _inputs(network: Network) -> list[tuple[str, tuple[int, ...]]]:
    """Inputs of the network with their shapes."""
    found: dict[str, tuple[int, ...]] = {}
    for node in network.inputs:
        if primitive(node) == "_VirtualDataset" and node.output_type is not None:
            for at, (_, shape) in enumerate(node.output_type.tensors):
                found[str(at)] = shape
            return list(found.items())
    for item in network.dump.parameters:
        dimensions = item.type.dimensions if item.type is not None else None
        if not item.is_weight and dimensions is not None:
            found[item.name] = dimensions
    return list(found.items())


# -- where the batch goes ------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Follower:
    """Finds the part of each value."""

    network: Network
    count: int
    known: dict[int, Parts] = field(default_factory=dict[int, Parts])
    judged: dict[object, tuple[Part | None, ...]] = field(
        default_factory=dict[object, "tuple[Part | None, ...]"]
    )

    def of(self, source: Source) -> Parts:
        """The part of a value, found from what it is computed from."""
        todo: list[Source] = [source]
        while todo:
            each = todo[-1]
            if not isinstance(each, (Node, GraphParameter)) or id(each) in self.known:
                todo.pop()
                continue
            waits = [
                other
                for other in self._before(each)
                if isinstance(other, (Node, GraphParameter)) and id(other) not in self.known
            ]
            if waits and len(todo) < len(self.network.inputs) + 1000:
                todo += waits
                continue
            todo.pop()
            self.known[id(each)] = self._found(each)
        return self.known.get(id(source)) if isinstance(source, (Node, GraphParameter)) else None

    def operand(self, source: Source) -> Parts:
        """The part of a value that was looked at."""
        return self.known.get(id(source)) if isinstance(source, (Node, GraphParameter)) else None

    def _before(self, port: Node | GraphParameter) -> list[Source]:
        """What must be known before a value is."""
        if isinstance(port, GraphParameter):
            source = self._argument(port)
            return [] if source is None else [source]
        if primitive(port) in _DATASET:
            return []
        graph = self.network.called(port)
        if graph is not None:
            result = self.network.returned(graph)
            return [*self.network.inputs[port], *([] if result is None else [result])]
        return list(self.network.inputs[port])

    def _argument(self, parameter: GraphParameter) -> Source | None:
        place = self.network.index_of(parameter)
        if place is None:
            return None
        graph, index = place
        calls = self.network.calls.get(graph.name, ())
        return self.network.argument(calls[0], index) if calls else None

    def _found(self, port: Node | GraphParameter) -> Parts:
        if isinstance(port, GraphParameter):
            source = self._argument(port)
            if source is not None:
                return self.operand(source)
            outer = outer_parameter(self.network, port)
            declared = outer.declaration if outer is not None else None
            is_data = declared is not None and not declared.is_weight
            shape = declared.type.dimensions if declared is not None and declared.type else None
            return Part(0) if is_data and shape else None
        return self._of_node(port)

    def _of_node(self, node: Node) -> Parts:
        name, inputs = primitive(node), self.network.inputs[node]
        if name in _DATASET:
            tensors = node.output_type.tensors if node.output_type is not None else ()
            return tuple(Part(0) if shape else None for _, shape in tensors)
        parts = [self.operand(source) for source in inputs]
        graph = self.network.called(node)
        if graph is not None:
            result = self.network.returned(graph)
            return None if result is None else self.operand(result)
        if not any(_is_cut(part) for part in parts):
            return None
        if name in _HANDS_ON or node.is_return:
            return parts[0] if parts else None
        if name in TIES:
            return tuple(parts)
        if name in ("TupleGetItem", "list_getitem"):
            first, index = parts[0], getattr(node.operands[1], "value", None)
            if isinstance(first, tuple) and isinstance(index, int) and index < len(first):
                return first[index]
            return first if not isinstance(first, tuple) else None
        if name == "Reshape":
            return self._reshaped(node, parts[0])
        if not name or name in NOT_SHARDED:
            return None
        found = self._by_rule(node, parts)
        return found[0] if len(found) == 1 and not _has_tuple(node) else found

    def _reshaped(self, node: Node, part: Parts) -> Parts:
        """The dimension of the result whose step in memory is that of the batch."""
        before = node.input_types[0].dimensions if node.input_types[0] is not None else None
        after = node.output_type.dimensions if node.output_type is not None else None
        if not isinstance(part, Part) or before is None or after is None:
            raise self._lost(node)
        whole = prod(before[part.dimension :]) // part.outside
        for at in range(len(after)):
            outer, inner = prod(after[at:]), prod(after[at + 1 :])
            if inner < whole <= outer:
                if outer % whole or whole % (inner * self.count):
                    break
                return Part(at, outer // whole)
        raise self._lost(node)

    def _by_rule(self, node: Node, parts: Sequence[Parts]) -> tuple[Part | None, ...]:
        """What the sharding rule says of the results."""
        call = call_of(self.network, node)
        own = self._of_tensors(node, call, parts)
        outside = max((part.outside for part in own if part is not None), default=1)
        key: object = None
        try:
            shown = tuple((item, type(item.value)) for item in call.call.inputs)
            key = (call.call.op, shown, call.call.outputs, node.primitive_attributes, own)
            if key in self.judged:
                return self.judged[key]
        except TypeError:
            key = None
        judgement = self._judgement(call, own)
        if judgement is None:
            raise self._lost(node)
        found: list[Part | None] = []
        for layout in judgement.output_layouts:
            cut = [at for at, splits in enumerate(layout.splits) if splits == self.count]
            if len(cut) > 1 or any(splits not in (1, self.count) for splits in layout.splits):
                raise self._lost(node)
            found.append(Part(cut[0], outside) if cut else None)
        if outside > 1 and not self._keeps(call, own, found):
            raise self._lost(node)
        if key is not None:
            self.judged[key] = tuple(found)
        return tuple(found)

    def _of_tensors(
        self, node: Node, call: NodeCall, parts: Sequence[Parts]
    ) -> tuple[Part | None, ...]:
        """Parts of the tensors of a call, tuples taken apart."""
        found: list[Part | None] = [None] * len(call.call.tensors)
        for position, part in enumerate(parts):
            items = part if isinstance(part, tuple) else (part,)
            for item, each in enumerate(items):
                tensor = call.slots.tensor(position, item)
                if tensor is not None and tensor < len(found):
                    if isinstance(each, tuple):
                        raise self._lost(node)
                    found[tensor] = each
        return tuple(found)

    def _judgement(self, call: NodeCall, own: Sequence[Part | None]) -> Judgement | None:
        """A judgement under which the tensors are split where the batch stands."""
        context = Context(tuple(range(self.count)), self.count, target="GPU", full_batch=True)
        rows = [[1] * len(tensor.shape or ()) for tensor in call.call.tensors]
        for row, part in zip(rows, own, strict=True):
            if part is not None:
                row[part.dimension] = self.count
        found = judge(call.call, tuple(map(tuple, rows)), context)
        if found.verdict == "legal" and _splits(found, rows, own):
            return found
        # The rule wants its strategy in another form.
        for item in candidates_of(call.call, context).items:
            if item.judgement.verdict == "legal" and _splits(item.judgement, rows, own):
                return item.judgement
        return None

    def _keeps(
        self, call: NodeCall, own: Sequence[Part | None], found: Sequence[Part | None]
    ) -> bool:
        """Whether results have the dimension of the operands as it is."""
        extents = {
            (tensor.shape or ())[part.dimension]
            for tensor, part in zip(call.call.tensors, own, strict=True)
            if part is not None
        }
        return len({part.outside for part in own if part is not None}) == 1 and all(
            (result.shape or ())[part.dimension] in extents
            for result, part in zip(call.call.results, found, strict=False)
            if part is not None
        )

    def _lost(self, node: Node) -> CannotPlan:
        return CannotPlan(
            f"what {node.id} {node.op} (line {node.line}) makes of one of {self.count} "
            "micro-batches is not known: it has no sharding rule, or an operand of the size of the "
            "whole batch that is the same for every micro-batch"
        )


def _splits(found: Judgement, rows: Sequence[Sequence[int]], own: Sequence[Part | None]) -> bool:
    """Whether the batch, and nothing that a micro-batch has whole, is split."""
    layouts = found.input_layouts
    return len(layouts) >= len(rows) and all(
        (part is None and all(splits == 1 for splits in layout.splits))
        or tuple(layout.splits) == tuple(row)
        for layout, row, part in zip(layouts, rows, own, strict=False)
    )


def _is_cut(part: Parts) -> bool:
    return any(map(_is_cut, part)) if isinstance(part, tuple) else part is not None


def _has_tuple(node: Node) -> bool:
    return node.output_type is not None and isinstance(node.output_type.shape, SequenceShape)


# -- the dump --------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Writer:
    """Writes a dump with the shapes of a micro-batch."""

    follower: _Follower

    def written(self, dump: Dump) -> Dump:
        """The dump, with every part divided."""
        forward = {graph.name for graph in self.follower.network.forward_graphs}
        return replace(dump, items=tuple(self._item(item, forward) for item in dump.items))

    def _item(self, item: Item | Graph, forward: set[str]) -> Item | Graph:
        if isinstance(item, Parameter):
            shape = item.type.dimensions if item.type is not None else None
            if item.is_weight or item.type is None or not shape:
                return item
            return replace(item, type=self._abstract(item.type, Part(0)))
        if not isinstance(item, Graph):
            return item
        if item.name not in forward:
            return replace(item, dump=None)
        items = tuple(self._node(each) if isinstance(each, Node) else each for each in item.items)
        prelude = tuple(
            self._types(each, item) if isinstance(each, ParameterList) else each
            for each in item.prelude
        )
        return replace(item, items=items, prelude=prelude, dump=None)

    def _types(self, listed: ParameterList, graph: Graph) -> ParameterList:
        parts = [self.follower.of(parameter) for parameter in graph.parameters]
        types = tuple(
            self._abstract(type, parts[at]) if type is not None and at < len(parts) else type
            for at, type in enumerate(listed.types)
        )
        return replace(listed, types=types)

    def _node(self, node: Node) -> Node:
        follower = self.follower
        parts = [follower.operand(source) for source in follower.network.inputs[node]]
        own = follower.operand(node)
        if primitive(node) in _DATASET:
            # Its operands are the inputs themselves, one by one or in a tuple.
            parts = [
                Part(0) if each is not None and each.dimensions else part
                for each, part in zip(node.input_types, parts, strict=False)
            ]
        if node.signature is None or not (_is_cut(own) or any(map(_is_cut, parts))):
            return replace(node, graph=None)
        inputs = tuple(
            self._abstract(type, parts[at]) if type is not None and at < len(parts) else type
            for at, type in enumerate(node.signature.inputs)
        )
        outputs = node.signature.outputs
        if outputs is not None:
            outputs = tuple(self._abstract(each, own) if each else each for each in outputs)
        operands = tuple(
            self._constant(node, value, parts, own) if isinstance(value, SequenceLiteral) else value
            for value in node.operands
        )
        signature = Signature(
            inputs, outputs, node.signature.lead, node.signature.arrow, node.signature.null
        )
        return replace(node, operands=operands, signature=signature, graph=None)

    def _abstract(self, abstract: Abstract, parts: Parts) -> Abstract:
        if abstract.shape is None or not _is_cut(parts):
            return abstract
        return replace(abstract, shape=self._shape(abstract.shape, parts))

    def _shape(self, shape: AnyShape, parts: Parts) -> AnyShape:
        if isinstance(shape, Shape) and isinstance(parts, Part):
            return replace(shape, dimensions=self._divided(shape.dimensions, parts))
        if isinstance(shape, SequenceShape) and isinstance(parts, tuple):
            items = [
                self._shape(item, parts[at]) if at < len(parts) else item
                for at, item in enumerate(shape.items)
            ]
            return replace(shape, items=tuple(items))
        return shape

    def _divided(self, dimensions: tuple[int, ...], part: Part) -> tuple[int, ...]:
        at = part.dimension
        short = dimensions[at] // self.follower.count
        return (*dimensions[:at], short, *dimensions[at + 1 :])

    def _constant(
        self, node: Node, value: SequenceLiteral, parts: Sequence[Parts], own: Parts
    ) -> SequenceLiteral:
        """A shape, or an end of a slice: where it says how long the batch is, it says less now."""
        tensors = [*zip(node.input_types, parts, strict=False), (node.output_type, own)]
        for abstract, part in reversed(tensors):
            shape = abstract.dimensions if abstract is not None else None
            if shape is None or not isinstance(part, Part) or len(shape) != len(value.items):
                continue
            item = value.items[part.dimension]
            if isinstance(item, (Scalar, Word)) and item.value == shape[part.dimension]:
                short = shape[part.dimension] // self.follower.count
                items: list[Value] = list(value.items)
                items[part.dimension] = replace(item, text=str(short))
                return replace(value, items=tuple(items))
        return value
