"""Jumps between forward and backward: to what belongs to a node, as ties say."""

from __future__ import annotations

from lsprotocol.types import Location, Position

from irtool.editor.document import Document
from irtool.editor.features.references import thing_at
from irtool.ir.graph import GraphParameter, Node


def later(document: Document, position: Position) -> list[Location]:
    """Of a forward node its gradient nodes and copies; of a parameter what updates it.

    Args:
        document: the dump; nothing belongs together until its ties are known.
        position: of the cursor, in a name or elsewhere in a statement.

    Returns:
        the places in the order of lines.
    """
    return _partners(document, position, is_later=True)


def earlier(document: Document, position: Position) -> list[Location]:
    """Of a backward node or a copy its forward node; of an update its parameter.

    Args:
        document: the dump; nothing belongs together until its ties are known.
        position: of the cursor, in a name or elsewhere in a statement.

    Returns:
        the places in the order of lines.
    """
    return _partners(document, position, is_later=False)


def _partners(document: Document, position: Position, *, is_later: bool) -> list[Location]:
    thing = thing_at(document, position)
    ties = document.answers.ties
    if ties is None or not isinstance(thing, Node | GraphParameter):
        return []
    locations: list[Location | None] = []
    for tie in ties.of(thing):
        is_left = tie.left is thing or tie.left == thing
        if is_left == is_later:
            locations.append(document.location(tie.right if is_left else tie.left))
    places = [place for place in locations if place is not None]
    return sorted(places, key=lambda place: place.range.start.line)
