"""Where the batch goes: which dimension of which tensor is divided among micro-batches.

As a data-parallel plan would find it: the inputs are split, and the sharding rule of every operator
says how its results are then split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.ir.types import SequenceShape
from irtool.operators.judgement import Context, Judgement
from irtool.operators.table import operator_of
from irtool.planning.search.candidates import candidates_of
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.judge import judge
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.data import outer_parameter
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import TIES, primitive

_HANDS_ON = ("Load", "Depend", "Cast", "StopGradient")
DATASET = frozenset({"_VirtualDataset", "GetNext"})
"""Operators that bring the batch into the network."""


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


@dataclass(eq=False, slots=True)
class Follower:
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
            current = todo[-1]
            if not isinstance(current, (Node, GraphParameter)) or id(current) in self.known:
                todo.pop()
                continue
            waits = [
                other
                for other in self._before(current)
                if isinstance(other, (Node, GraphParameter)) and id(other) not in self.known
            ]
            if waits and len(todo) < len(self.network.inputs) + 1000:
                todo += waits
                continue
            todo.pop()
            self.known[id(current)] = self._part_of(current)
        return self.known.get(id(source)) if isinstance(source, (Node, GraphParameter)) else None

    def operand(self, source: Source) -> Parts:
        """The part of a value that was looked at."""
        return self.known.get(id(source)) if isinstance(source, (Node, GraphParameter)) else None

    def _before(self, port: Node | GraphParameter) -> list[Source]:
        """What must be known before a value is."""
        if isinstance(port, GraphParameter):
            source = self._argument(port)
            return [] if source is None else [source]
        if primitive(port) in DATASET:
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

    def _part_of(self, port: Node | GraphParameter) -> Parts:
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
        if name in DATASET:
            tensors = node.output_type.tensors if node.output_type is not None else ()
            return tuple(Part(0) if shape else None for _, shape in tensors)
        parts = [self.operand(source) for source in inputs]
        graph = self.network.called(node)
        if graph is not None:
            result = self.network.returned(graph)
            return None if result is None else self.operand(result)
        if not any(is_cut(part) for part in parts):
            return None
        if name in _HANDS_ON or operator_of(name).is_("hands_on") or node.is_return:
            return parts[0] if parts else None
        if name in TIES:
            return tuple(parts)
        if name in ("TupleGetItem", "list_getitem"):
            index = getattr(node.operands[1], "value", None) if len(node.operands) > 1 else None
            first = parts[0]
            if isinstance(first, tuple) and isinstance(index, int) and index < len(first):
                return first[index]
            return first if not isinstance(first, tuple) else None
        if name == "Reshape":
            return self._reshaped(node, parts[0])
        if not name or operator_of(name).is_("unsharded"):
            return None
        results = self._by_rule(node, parts)
        return results[0] if len(results) == 1 and not _has_tuple(node) else results

    def _reshaped(self, node: Node, part: Parts) -> Parts:
        """The dimension of the result whose step in memory is that of the batch."""
        given = node.input_types[0] if node.input_types else None
        before = given.dimensions if given is not None else None
        after = node.output_type.dimensions if node.output_type is not None else None
        if not isinstance(part, Part) or before is None or after is None:
            raise self._lost(node)
        extent = prod(before[part.dimension :]) // part.outside
        for dimension in range(len(after)):
            outer, inner = prod(after[dimension:]), prod(after[dimension + 1 :])
            if inner < extent <= outer:
                if outer % extent or extent % (inner * self.count):
                    break
                return Part(dimension, outer // extent)
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
        results: list[Part | None] = []
        for layout in judgement.output_layouts:
            cut = [
                dimension for dimension, splits in enumerate(layout.splits) if splits == self.count
            ]
            if len(cut) > 1 or any(splits not in (1, self.count) for splits in layout.splits):
                raise self._lost(node)
            results.append(Part(cut[0], outside) if cut else None)
        if outside > 1 and not self._keeps(call, own, results):
            raise self._lost(node)
        if key is not None:
            self.judged[key] = tuple(results)
        return tuple(results)

    def _of_tensors(
        self, node: Node, call: NodeCall, parts: Sequence[Parts]
    ) -> tuple[Part | None, ...]:
        """Parts of the tensors of a call, tuples taken apart."""
        placed: list[Part | None] = [None] * len(call.call.tensors)
        for position, part in enumerate(parts):
            items = part if isinstance(part, tuple) else (part,)
            for item, inner in enumerate(items):
                tensor = call.slots.tensor(position, item)
                if tensor is not None and tensor < len(placed):
                    if isinstance(inner, tuple):
                        raise self._lost(node)
                    placed[tensor] = inner
        return tuple(placed)

    def _judgement(self, call: NodeCall, own: Sequence[Part | None]) -> Judgement | None:
        """A judgement under which the tensors are split where the batch stands."""
        context = Context(tuple(range(self.count)), self.count, target="GPU", full_batch=True)
        rows = [[1] * len(tensor.shape or ()) for tensor in call.call.tensors]
        for row, part in zip(rows, own, strict=True):
            if part is not None:
                row[part.dimension] = self.count
        judgement = judge(call.call, tuple(map(tuple, rows)), context)
        if judgement.verdict == "legal" and _splits(judgement, rows, own):
            return judgement
        # The rule wants its strategy in another form.
        for item in candidates_of(call.call, context).items:
            if item.judgement.verdict == "legal" and _splits(item.judgement, rows, own):
                return item.judgement
        return None

    def _keeps(
        self, call: NodeCall, own: Sequence[Part | None], results: Sequence[Part | None]
    ) -> bool:
        """Whether results have the dimension of the operands as it is."""
        extents = {
            (tensor.shape or ())[part.dimension]
            for tensor, part in zip(call.call.tensors, own, strict=True)
            if part is not None
        }
        return len({part.outside for part in own if part is not None}) == 1 and all(
            (result.shape or ())[part.dimension] in extents
            for result, part in zip(call.call.results, results, strict=False)
            if part is not None
        )

    def _lost(self, node: Node) -> CannotPlan:
        return CannotPlan(
            f"what {node.id} {node.op} (line {node.line}) makes of one of {self.count} "
            "micro-batches is not known: it has no sharding rule, or an operand of the size of the "
            "whole batch that is the same for every micro-batch"
        )


def _splits(
    judgement: Judgement, rows: Sequence[Sequence[int]], own: Sequence[Part | None]
) -> bool:
    """Whether the batch, and nothing that a micro-batch has whole, is split."""
    layouts = judgement.input_layouts
    return len(layouts) >= len(rows) and all(
        (part is None and all(splits == 1 for splits in layout.splits))
        or tuple(layout.splits) == tuple(row)
        for layout, row, part in zip(layouts, rows, own, strict=False)
    )


def is_cut(part: Parts) -> bool:
    """Whether anything of a value is divided.

    Args:
        part: how a tensor is divided, None where it is not; of a tuple of values one for each.
    """
    return any(map(is_cut, part)) if isinstance(part, tuple) else part is not None


def _has_tuple(node: Node) -> bool:
    return node.output_type is not None and isinstance(node.output_type.shape, SequenceShape)
