"""Inlay hints: what a device holds of each tensor, where the text shows the whole of it."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import InlayHint, InlayHintKind, Range

from irtool.editor.document import Document
from irtool.ir.graph import Node
from irtool.ir.items import Parameter
from irtool.ir.units import tuple_text


def inlays(document: Document, where: Range) -> list[InlayHint]:
    """The slices of operators and parameters in a range, once ``check`` has said them.

    Args:
        document: the dump; those of operators are shown where the strategy is legal.
        where: the part of the text that the editor shows.
    """
    text = document.text
    first, last = text.line_at(text.offset(where.start)), text.line_at(text.offset(where.end))
    return list(_hints(document, first, last))


def _hints(document: Document, first: int, last: int) -> Iterator[InlayHint]:
    report = document.answers.report
    if report is None:
        return
    slices = {
        entry.parameter.declaration.line: entry
        for entry in report.parameters
        if entry.parameter.declaration is not None and entry.slice is not None
    }
    for owner in document.between(max(first - 1, 1), last):
        if isinstance(owner.item, Parameter):
            sliced = slices.get(owner.line)
            if sliced is not None and sliced.slice is not None and sliced.slice != sliced.shape:
                yield _hint(document, owner.line, f"slice {tuple_text(sliced.slice)}")
        elif isinstance(owner.item, Node):
            operator = report.operator(owner.item)
            if operator is None or operator.verdict != "legal":
                continue
            inputs = ", ".join(map(tuple_text, operator.input_slices))
            outputs = ", ".join(map(tuple_text, operator.output_slices))
            line = owner.line + (owner.item.signature is not None)
            yield _hint(document, line, f"slices {inputs} → {outputs}")


def _hint(document: Document, line: int, text: str) -> InlayHint:
    end = document.text.position(document.text.end_of(line))
    return InlayHint(end, text, InlayHintKind.Type, padding_left=True)
