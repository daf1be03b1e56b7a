"""Bytes of results that a device keeps for the backward pass, where every strategy is known."""

from __future__ import annotations

from math import prod

from irtool.ir.graph import Node
from irtool.operators.table import operator_of
from irtool.planning.cost.costs import item_bytes
from irtool.planning.cost.kept import Operand, Read, Result
from irtool.planning.cost.structure import FIXED, Structure
from irtool.planning.search.link_tables import brought
from irtool.planning.search.tables import kept_bytes
from irtool.sharding.network.care import primitive
from irtool.sharding.network.report import CheckResult, RedistributionReport


def kept_in(structure: Structure, report: CheckResult) -> int:
    """Bytes of results that are kept.

    Where a gradient reads an operand that was redistributed, the copy in the new layout stays, not
    what it was made from.

    Args:
        structure: of the dump that was checked (the same object).
        report: what ``check`` says.
    """
    return _Kept(structure, report).bytes()


def all_results(structure: Structure, report: CheckResult) -> int:
    """Bytes of the results that count as kept by themselves, each as its operator makes it."""
    return int(
        sum(
            kept_bytes(structure, node, item.judgement)
            for node, item in report.by_node.items()
            if node in structure.calls
        )
    )


class _Kept:
    def __init__(self, structure: Structure, report: CheckResult) -> None:
        self.structure = structure
        self.report = report
        self.moved: dict[Operand, RedistributionReport] = {}
        for item in report.redistributions:
            own = report.by_node.get(item.consumer)
            tensor = own.call.slots.tensor(item.input, item.item) if own is not None else None
            if not item.operators:
                continue
            if item.replaces:
                self.moved[item.consumer, -1] = item
            elif tensor is not None:
                self.moved[item.consumer, tensor] = item

    def bytes(self) -> int:
        found: dict[object, int] = {}
        for read in self.structure.keeping.reads:
            stays = self._stays(read)
            if stays is not None:
                key, size = stays
                found[key] = size
        return sum(found.values())

    def _stays(self, read: Read) -> tuple[object, int] | None:
        """What stays for a read, with its bytes; None for weights, batches and unknown sizes."""
        if read.operand is not None and read.operand in self.moved:
            return self._copy(read.operand)
        return self._made(read.result)

    def _copy(self, operand: Operand) -> tuple[object, int] | None:
        """A redistributed operand; users that want it alike share one."""
        item = self.moved[operand]
        own = self.report.by_node[operand[0]]
        size = _bytes(own.judgement.input_slices, own.call.call.tensors[operand[1]].dtype, operand)
        holder, position = (item.tie, item.item) if item.tie else (item.consumer, item.input)
        if size is None:
            return None
        return (id(brought(holder, position)), item.operators), size

    def _made(self, result: Result) -> tuple[object, int] | None:
        made: Result | None = result
        for _ in range(1000):
            if made is None:
                return None
            node = made[0]
            if (node, -1) in self.moved or not operator_of(primitive(node)).is_("renames"):
                break
            if (node, 0) in self.moved:
                return self._copy((node, 0))
            made = self.structure.keeping.makers.get((node, 0))
        else:
            return None
        return self._result(made)

    def _result(self, made: Result) -> tuple[object, int] | None:
        node, index = made
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
