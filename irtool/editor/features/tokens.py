"""Semantic tokens: what a name is, and of which phase, which no grammar can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol.types import Range, SemanticTokens, SemanticTokensLegend

from irtool.editor.document import Document, Owner, Thing
from irtool.editor.spans import Span
from irtool.ir.collectives import is_collective
from irtool.ir.graph import GraphParameter, Node
from irtool.syntax.query_fields import phase

TYPES = ("variable", "parameter", "property", "function", "method", "event")
"""Of nodes, inputs, weights, graphs, operators, collectives."""
MODIFIERS = ("declaration", "backward", "recompute", "optimizer", "unresolved")
LEGEND = SemanticTokensLegend(list(TYPES), list(MODIFIERS))


class _Token(NamedTuple):
    start: int
    end: int
    type: str
    modifiers: int


def tokens(document: Document, where: Range | None = None) -> SemanticTokens:
    """The tokens of a document, or of the lines of a part of it.

    Args:
        document: the dump.
        where: the part; None is all of it.

    Returns:
        five numbers a token, as the protocol encodes them: lines and characters from the token
        before (the first from the start of the document), length, type, bits of modifiers.
    """
    text = document.text
    first, last = 1, text.line_count
    if where is not None:
        first = text.line_at(text.offset(where.start))
        last = text.line_at(text.offset(where.end))
    data: list[int] = []
    line = character = 0
    for owner in document.between(first, last):
        for token in _tokens(document, owner):
            start = text.position(token.start)
            length = text.position(token.end).character - start.character
            if length <= 0:
                continue  # a name that goes over a line end
            same = start.line == line
            data += (
                start.line - line,
                start.character - character if same else start.character,
                length,
                TYPES.index(token.type),
                token.modifiers,
            )
            line, character = start.line, start.character
    return SemanticTokens(data)


def _tokens(document: Document, owner: Owner) -> Iterator[_Token]:
    base = document.text.start_of(owner.line)
    for span in document.spans(owner):
        start, end = base + span.start, base + span.end
        if span.kind == "operator" and isinstance(owner.item, Node):
            kind = "event" if is_collective(owner.item) else "method"
            yield _Token(start, end, kind, _phase_bits(owner.item))
        elif span.kind in ("definition", "reference"):
            yield _named(document.meant(owner, span), span, start, end)


def _named(thing: Thing | None, span: Span, start: int, end: int) -> _Token:
    bits = _bit("declaration") if span.kind == "definition" else 0
    if thing is None:
        return _Token(start, end, "variable", bits | _bit("unresolved"))
    if isinstance(thing, Node):
        return _Token(start, end, "variable", bits | _phase_bits(thing))
    if isinstance(thing, GraphParameter):
        declared = thing.declaration
        is_weight = declared is not None and declared.is_weight
        return _Token(start, end, "property" if is_weight else "parameter", bits)
    return _Token(start, end, "function", bits)


def _phase_bits(node: Node) -> int:
    modifier = phase(node)
    return _bit(modifier) if modifier in MODIFIERS else 0


def _bit(name: str) -> int:
    return 1 << MODIFIERS.index(name)
