"""What stands on an edge: shape and bytes, global → local where ``check`` predicts slices."""

from __future__ import annotations

from math import prod

from irtool.ir.graph import Node
from irtool.ir.types import BITS, Abstract
from irtool.report.picture.leaves import Leaf
from irtool.report.text import shortened
from irtool.sharding.network.report import CheckResult, RedistributionReport


class EdgeLabels:
    """Labels of edges, with or without a report of ``check`` on the dump that is drawn."""

    def __init__(self, report: CheckResult | None) -> None:
        self._report = report
        self._moves: dict[tuple[Node, int], RedistributionReport] = {}
        for item in report.redistributions if report is not None else ():
            if item.operators:
                self._moves.setdefault((item.consumer, item.input), item)

    def of(self, tail: Leaf, head: Node, position: int) -> tuple[int | None, str, str]:
        """Bytes, label and redistribution of what ``tail`` gives as an operand of ``head``."""
        type = _type(tail, head, position)
        if type is None:
            return None, "", ""
        slice = self._slice(head, position)
        note = self._move(head, position)
        shape = type.dimensions
        if slice is None or shape is None:
            return type.size, shape_text(shape), note
        size = (
            prod(slice) * BITS.get(type.dtype or "", 0) // 8 if min(slice, default=0) >= 0 else None
        )
        if slice == shape:
            return size or type.size, shape_text(shape), note
        return size, f"{shape_text(shape)} → {shape_text(slice)}", note

    def _slice(self, head: Node, position: int) -> tuple[int, ...] | None:
        operator = self._report.operator(head) if self._report is not None else None
        if operator is None or not 0 <= position < len(operator.input_slices):
            return None
        if position >= len(head.input_types) or head.input_types[position] is None:
            return None
        part = tuple(operator.input_slices[position])
        type = head.input_types[position]
        # Slices come in the order of tensor inputs; only an equal rank shows that it is this one.
        same = (
            type is not None and type.dimensions is not None and len(type.dimensions) == len(part)
        )
        return part if same else None

    def _move(self, head: Node, position: int) -> str:
        move = self._moves.get((head, position))
        if move is None or move.operators is None:
            return ""
        return ", ".join(dict.fromkeys(step.op for step in move.operators))


def shape_text(dimensions: tuple[int, ...] | None) -> str:
    """``8192×1024``; ``?`` for a dimension that is not known; ``scalar`` for none.

    Args:
        dimensions: negative ones are not known; "" is written where there are none at all to know
            (None).
    """
    if dimensions is None:
        return ""
    if not dimensions:
        return "scalar"
    return shortened("×".join("?" if size < 0 else str(size) for size in dimensions), 60)


def _type(tail: Leaf, head: Node, position: int) -> Abstract | None:
    types = head.input_types
    if 0 <= position < len(types) and types[position] is not None:
        return types[position]
    if tail.node is not None:
        return tail.node.output_type
    return tail.parameter.type if tail.parameter is not None else None
