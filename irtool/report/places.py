"""Where a node comes from, in words and for scripts."""

from __future__ import annotations

from typing import Annotated

from irtool.ir.comments import Location
from irtool.ir.graph import Node
from irtool.report.answer import AnswerObject, doc


class NodePlace(AnswerObject, frozen=True, kw_only=True):
    """A node of a dump."""

    node: Annotated[str, doc("its number, `%4`")]
    op: str
    line: Annotated[int, doc("of the dump")]


def node_place(node: Node | None) -> NodePlace | None:
    """A node of a dump by number, operator and line.

    Args:
        node: None is null.
    """
    return None if node is None else NodePlace(node=node.id, op=node.op, line=node.line)


def location_text(location: Location | None) -> str:
    """``net.py:33: return self.matmul(x, w)``; empty where nothing is known.

    Args:
        location: a line of Python as the dump names it.
    """
    if location is None:
        return ""
    code = (location.source or "").strip().strip("/").strip()
    return f"{location.path}:{location.line}" + (f": {code}" if code else "")


def place_text(node: Node | None) -> str:
    """The line of Python that a node comes from, or that of the dump.

    Args:
        node: None comes from nowhere: "".
    """
    if node is None:
        return ""
    return location_text(node.location) or f"line {node.line} of the dump"
