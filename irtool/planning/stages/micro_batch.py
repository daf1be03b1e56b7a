"""A dump as it would be of one micro-batch: the first dimension of every input divided.

``PipelineCell(net, M)`` cuts each input of the network along its first dimension into ``M`` parts,
and compiles the network for one of them.  Which dimension of a tensor inside comes from there is
found as a data-parallel plan would find it: the inputs are split into ``M``, and the sharding rule
of every operator says how its results are then split.  Slices are what a micro-batch looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import Parameter, ParameterList
from irtool.ir.types import Abstract, AnyShape, SequenceShape, Shape, Signature
from irtool.ir.values import Scalar, Value, Word
from irtool.ir.values import Sequence as SequenceLiteral
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.stages.micro_batch_parts import DATASET, Follower, Part, Parts, is_cut
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.sharded_nodes import primitive


def dataset_splits(context: ParallelContext) -> int:
    """Into how many parts the dataset cuts a batch over the devices of a stage.

    Args:
        context: ``full_batch`` and ``dataset_strategy`` decide; of the latter the largest cut of a
            first dimension.
    """
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
    counts = [count for count in range(stages, wanted + 1) if batch % count == 0]
    return counts[-1] if batch and counts else wanted


def batch_of(dump: Dump) -> int:
    """What the first dimensions of all inputs can be divided by; 0 where none is known.

    Args:
        dump: a begin dump.
    """
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
    follower = Follower(network, count)
    for graph in network.forward_graphs:
        for node in graph.nodes:
            follower.of(node)
    return _Writer(follower).written(dump)


def _inputs(network: Network) -> list[tuple[str, tuple[int, ...]]]:
    """Inputs of the network with their shapes."""
    inputs: dict[str, tuple[int, ...]] = {}
    for node in network.inputs:
        if primitive(node) == "_VirtualDataset" and node.output_type is not None:
            for position, (_, shape) in enumerate(node.output_type.tensors):
                inputs[str(position)] = shape
            return list(inputs.items())
    for item in network.dump.parameters:
        dimensions = item.type.dimensions if item.type is not None else None
        if not item.is_weight and dimensions is not None:
            inputs[item.name] = dimensions
    return list(inputs.items())


# -- the dump --------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Writer:
    """Writes a dump with the shapes of a micro-batch."""

    follower: Follower

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
        items = tuple(
            self._node(inner) if isinstance(inner, Node) else inner for inner in item.items
        )
        prelude = tuple(
            self._types(line, item) if isinstance(line, ParameterList) else line
            for line in item.prelude
        )
        return replace(item, items=items, prelude=prelude, dump=None)

    def _types(self, listed: ParameterList, graph: Graph) -> ParameterList:
        parts = [self.follower.of(parameter) for parameter in graph.parameters]
        types = tuple(
            self._abstract(type, parts[position])
            if type is not None and position < len(parts)
            else type
            for position, type in enumerate(listed.types)
        )
        return replace(listed, types=types)

    def _node(self, node: Node) -> Node:
        follower = self.follower
        parts = [follower.operand(source) for source in follower.network.inputs[node]]
        own = follower.operand(node)
        if primitive(node) in DATASET:
            # Its operands are the inputs themselves, one by one or in a tuple.
            parts = [
                Part(0) if operand is not None and operand.dimensions else part
                for operand, part in zip(node.input_types, parts, strict=False)
            ]
        if node.signature is None or not (is_cut(own) or any(map(is_cut, parts))):
            return replace(node, graph=None)
        inputs = tuple(
            self._abstract(type, parts[position])
            if type is not None and position < len(parts)
            else type
            for position, type in enumerate(node.signature.inputs)
        )
        outputs = node.signature.outputs
        if outputs is not None:
            outputs = tuple(self._abstract(output, own) if output else output for output in outputs)
        operands = tuple(
            self._constant(node, value, parts, own) if isinstance(value, SequenceLiteral) else value
            for value in node.operands
        )
        signature = Signature(
            inputs, outputs, node.signature.lead, node.signature.arrow, node.signature.null
        )
        return replace(node, operands=operands, signature=signature, graph=None)

    def _abstract(self, abstract: Abstract, parts: Parts) -> Abstract:
        if abstract.shape is None or not is_cut(parts):
            return abstract
        return replace(abstract, shape=self._shape(abstract.shape, parts))

    def _shape(self, shape: AnyShape, parts: Parts) -> AnyShape:
        if isinstance(shape, Shape) and isinstance(parts, Part):
            return replace(shape, dimensions=self._divided(shape.dimensions, parts))
        if isinstance(shape, SequenceShape) and isinstance(parts, tuple):
            items = [
                self._shape(item, parts[position]) if position < len(parts) else item
                for position, item in enumerate(shape.items)
            ]
            return replace(shape, items=tuple(items))
        return shape

    def _divided(self, dimensions: tuple[int, ...], part: Part) -> tuple[int, ...]:
        axis = part.dimension
        short = dimensions[axis] // self.follower.count
        return (*dimensions[:axis], short, *dimensions[axis + 1 :])

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
