"""Go to definition: of nodes, parameters and graphs in the dump, of source lines in Python."""

from __future__ import annotations

from lsprotocol.types import Location, Position, Range
from pygls.uris import from_fs_path

from irtool.editor.document import Document
from irtool.editor.project import Project
from irtool.ir.comments import Location as SourcePlace
from irtool.ir.graph import Node


def definition(document: Document, position: Position) -> list[Location]:
    """Where what is named at a position is defined.

    In a comment line that names a line of Python, that line.

    Args:
        document: the dump.
        position: of the cursor.

    Returns:
        the likeliest first, where a name may mean several nodes; empty where nothing is named, or
        the Python file is not here.
    """
    mention = document.mention_at(position)
    if mention is None:
        place = document.place_at(position)
        location = python_location(document.project, place) if place is not None else None
        return [] if location is None else [location]
    places = (document.location(thing) for thing in mention.things)
    return [place for place in places if place is not None]


def source_line(document: Document, position: Position) -> list[Location]:
    """The line of Python that made the statement, or the named node, at a position.

    Args:
        document: the dump.
        position: of the cursor.

    Returns:
        one place; none where the dump names no line, or its file is not here.
    """
    mention = document.mention_at(position)
    node = mention.thing if mention is not None else document.node_at(position)
    place = node.location if isinstance(node, Node) else None
    if mention is None:
        place = document.place_at(position) or place
    location = python_location(document.project, place) if place is not None else None
    return [] if location is None else [location]


def python_location(project: Project, place: SourcePlace) -> Location | None:
    """A line of Python in the file that is here; None where it is not here."""
    path = project.python_file(place.path)
    uri = from_fs_path(path) if path is not None else None
    if uri is None:
        return None
    # Columns of Python are bytes, and the file may have changed: the line is what is known.
    line = max(place.line - 1, 0)
    start = Position(line, 0)
    return Location(uri, Range(start, start))
