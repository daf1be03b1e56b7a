"""Bytes of results that a device keeps for the backward pass, where every strategy is known."""

from __future__ import annotations

from math import prod
from typing import cast

from irtool.ir.graph import Node, likeliest
from irtool.operators.steps import RESHAPE
from irtool.operators.table import operator_of
from irtool.planning.cost.costs import SUMS, item_bytes
from irtool.planning.cost.kept import FIXED, Operand, Read, Result
from irtool.planning.cost.structure import Structure
from irtool.sharding.network.graphs import Use
from irtool.sharding.network.recomputation import in_recomputed_cell
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.network.sharded_nodes import primitive


def kept_in(structure: Structure, report: CheckResult) -> int:
    """Bytes of results that are kept.

    Where a gradient reads an operand that was redistributed, the copy in the new layout stays, not
    what it was made from.

    Args:
        structure: of the dump that was checked (the same object).
        report: what ``check`` says.
    """
    return _Kept(structure, report).bytes()


_INDICES = 1
"""The operand of a Gather that says which rows."""


class _Kept:
    def __init__(self, structure: Structure, report: CheckResult) -> None:
        self.structure = structure
        self.report = report
        chains = report.again.chains
        self.again = structure.beside | report.again.nodes
        self.moved: dict[Operand, RedistributionReport] = {}
        for item in report.redistributions:
            use = Use(item.consumer, 0 if item.replaces else item.input, item.item)
            again = use in chains and in_recomputed_cell(item.consumer)
            if again or item.consumer in structure.beside:
                continue  # made again, of what it was made from
            own = report.by_node.get(item.consumer)
            tensor = own.call.slots.tensor(item.input, item.item) if own is not None else None
            if not item.operators:
                continue
            if item.replaces:
                # Where a device's slice is only seen in another shape, nothing is made.
                if any(step.op != RESHAPE for step in item.operators):
                    self.moved[item.consumer, -1] = item
            elif tensor is not None:
                self.moved[item.consumer, tensor] = item

    def bytes(self) -> int:
        kept: dict[object, float] = {}
        for read in self.structure.keeping.reads_of(self.again):
            stays = self._stays(read)
            if stays is not None:
                key, size = stays
                key = self._left(key)
                reader = read.operand[0] if read.operand is not None else read.result[0]
                kept[key] = self.structure.held(reader) * size
        return round(sum(kept.values()))

    def _left(self, key: object) -> object:
        """What names a result where operators that compute the same are one."""
        if isinstance(key, tuple):
            return tuple(map(self._left, cast("tuple[object, ...]", key)))
        return self.report.merged.get(id(key), key) if isinstance(key, Node) else key

    def _stays(self, read: Read) -> tuple[object, int] | None:
        """What stays for a read, with its bytes; None for weights, batches and unknown sizes."""
        operand = read.operand
        if operand is None:
            return self._made(read.result)
        if self._is_masked(operand):
            return self._mask(operand[0])
        if operand in self.moved:
            return self._copy(operand)
        if self._is_cast(operand):
            return self._of_cast(operand)
        return self._made(read.result, operand)

    def _is_cast(self, operand: Operand) -> bool:
        """Whether an operand comes out of a Cast that does not run again beside its neighbours."""
        keeping, beside = self.structure.keeping, self.structure.beside
        cast, maker = keeping.casts.get(operand), keeping.makers.get(operand)
        if operand[0] in beside or (maker is not None and maker[0] in beside):
            return False
        return cast is not None and cast not in self.again

    def _of_cast(self, operand: Operand) -> tuple[object, int] | None:
        """What a Cast makes, as its user has it."""
        own = self.report.by_node[operand[0]]
        dtype = own.call.call.tensors[operand[1]].dtype
        size = _bytes(own.judgement.input_slices, dtype, operand)
        return None if size is None else (self.structure.keeping.casts[operand], size)

    def _is_masked(self, operand: Operand) -> bool:
        """Whether a device looks up only indices of the rows that it has."""
        node, index = operand
        own = self.report.by_node.get(node)
        if own is None or index != _INDICES or not operator_of(own.op).is_("masks"):
            return False
        return any(item.op in SUMS for item in own.collectives)

    def _mask(self, node: Node) -> tuple[object, int] | None:
        """Indices in a device's own rows, and which of them are: both stay for the gradient."""
        own = self.report.by_node[node]
        call, slices = own.call.call, own.judgement.input_slices
        tensor = (node, _INDICES)
        indices = _bytes(slices, call.tensors[_INDICES].dtype, tensor)
        mask = _bytes(slices, call.results[0].dtype, tensor)
        return None if indices is None or mask is None else (tensor, indices + mask)

    def _copy(self, operand: Operand) -> tuple[object, int] | None:
        """A redistributed operand; users that want it alike share one."""
        item = self.moved[operand]
        own = self.report.by_node[operand[0]]
        size = _bytes(own.judgement.input_slices, own.call.call.tensors[operand[1]].dtype, operand)
        holder, position = (item.tie, item.item) if item.tie else (item.consumer, item.input)
        if size is None:
            return None
        source = likeliest(holder.inputs[position])
        return (source if isinstance(source, Node) else id(source), item.operators), size

    def _made(self, result: Result, operand: Operand | None = None) -> tuple[object, int] | None:
        made: Result | None = result
        for _ in range(1000):
            if made is None:
                return None
            node = made[0]
            if (node, -1) in self.moved or not operator_of(primitive(node)).is_("renames"):
                break
            if (node, 0) in self.moved:
                return self._copy((node, 0))
            if self._is_cast((node, 0)):
                return self._of_cast((node, 0))
            operand = (node, 0)
            maker = self.structure.keeping.makers.get(operand)
            if maker is not None and maker[0] in self.again and node not in self.again:
                break  # what is read outside of a recomputed cell stays
            made = maker
        else:
            return None
        if made[0] not in self.report.by_node and made[0] not in self.again:
            return self._received(made, operand)
        return self._result(made)

    def _received(self, made: Result, operand: Operand | None) -> tuple[object, int] | None:
        """What another stage sent, as the operator has it that takes it."""
        own = self.report.by_node.get(operand[0]) if operand is not None else None
        if own is None or operand is None:
            return None
        dtype = own.call.call.tensors[operand[1]].dtype
        size = _bytes(own.judgement.input_slices, dtype, operand)
        return None if size is None else (made, size)

    def _result(self, made: Result) -> tuple[object, int] | None:
        node, index = made
        if node in self.again:
            return None
        own = self.report.by_node.get(node)
        if own is None:
            return None
        results = own.call.call.results
        if index >= len(results):
            return None
        size = _bytes(own.judgement.output_slices, results[index].dtype, made)
        if size is None:
            return None
        slices = own.judgement.output_slices[index]
        if primitive(node) in FIXED and not self.structure.cuts_batch(slices, results[index]):
            return None  # the batch itself
        return made, size


def _bytes(
    slices: tuple[tuple[int, ...], ...], dtype: str | None, tensor: tuple[Node, int]
) -> int | None:
    place = tensor[1]
    if place >= len(slices) or min(slices[place], default=0) < 0:
        return None
    return prod(slices[place]) * item_bytes(dtype)
