"""References and highlights: where a node, parameter or graph is named."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import DocumentHighlight, DocumentHighlightKind, Location, Position

from irtool.editor.document import Document, Mention, Thing, key_of


def references(document: Document, position: Position, declared: bool = True) -> list[Location]:
    """Where the thing at a position is named.

    Args:
        document: the dump.
        position: in a name; elsewhere in a statement, its node is meant.
        declared: whether its definition counts, too.
    """
    thing = thing_at(document, position)
    if thing is None:
        return []
    own = document.location(thing) if declared else None
    locations = [] if own is None else [own]
    for mention in mentions_of(document, thing):
        where = document.text.range(mention.start, mention.end)
        locations.append(Location(document.uri, where))
    return locations


def highlights(document: Document, position: Position) -> list[DocumentHighlight]:
    """The names that light up with the one under the cursor: its definition and its uses.

    Args:
        document: the dump.
        position: of the cursor; empty where it touches no name.
    """
    mention = document.mention_at(position)
    if mention is None:
        return []
    own = document.definition(mention.thing)
    marks = [] if own is None else [DocumentHighlight(own, DocumentHighlightKind.Write)]
    for use in mentions_of(document, mention.thing):
        where = document.text.range(use.start, use.end)
        marks.append(DocumentHighlight(where, DocumentHighlightKind.Read))
    return marks


def thing_at(document: Document, position: Position) -> Thing | None:
    """What is named at a position, else the node whose lines hold it.

    Args:
        document: the dump.
        position: of the cursor.

    Returns:
        None outside of names and statements.
    """
    mention = document.mention_at(position)
    return mention.thing if mention is not None else document.node_at(position)


def mentions_of(document: Document, thing: Thing) -> Iterator[Mention]:
    """Every name that may mean a thing, its definition left out."""
    key = key_of(thing)
    for owner in document.uses.get(key, ()):
        for mention in document.mentions(owner):
            if not mention.is_definition and any(
                key_of(meaning) == key for meaning in mention.things
            ):
                yield mention
