"""Nodes of the two sides of a comparison: for scripts, in words, and as links into the graphs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from irtool.ir.graph import Node
from irtool.ir.statement import PrimitiveTarget
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import Cell, Link
from irtool.report.page.keys import node_key

Side: TypeAlias = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
"""What the two graphs are called on a page, and so in keys of their nodes."""


class DiffNode(AnswerObject, frozen=True, kw_only=True):
    """A node of a dump, or an operator of a tensor dump with the node that it was joined with."""

    node: Annotated[str, doc("its number, `%4`; of an operator without a graph its name")]
    op: Annotated[str, doc("as the dump has it")]
    file: Annotated[str | None, doc("the dump")]
    line: Annotated[int | None, doc("of the dump")]
    graph: str | None
    scope: str | None
    source: Annotated[str | None, doc("the innermost line of the user's code: `train.py:44`")]
    name: Annotated[str | UnsetType, doc("of an operator: its name in the tensor dump")] = UNSET
    phase: Annotated[str | UnsetType, doc("of an operator: forward, backward or optimizer")] = UNSET
    owner: Annotated[str | UnsetType | None, doc("of an operator: the module it ran in")] = UNSET


def diff_node(node: Node) -> DiffNode:
    """A node of a dump, for scripts.

    Args:
        node: its operator is told by the dump's own name.
    """
    target = node.target
    dump = node.graph.dump if node.graph else None
    return DiffNode(
        node=node.id,
        op=target.name if isinstance(target, PrimitiveTarget) else node.op,
        file=dump.path if dump else None,
        line=node.line,
        graph=node.graph.name if node.graph else None,
        scope=node.scope,
        source=source_text(node) or None,
    )


def optional_node(node: Node | None) -> DiffNode | None:
    """A node of a dump that may not be there, for scripts.

    Args:
        node: None is null.
    """
    return None if node is None else diff_node(node)


def source_text(node: Node | None) -> str:
    """``train.py:44``: the innermost line outside the framework; empty where there is none.

    Args:
        node: None has none.
    """
    location = node.location if node is not None else None
    return "" if location is None else f"{location.path}:{location.line}"


def place_text(node: Node) -> str:
    """``a.ir:957 %13 MatMul``.

    Args:
        node: of one of the two dumps; the number is the line in it.
    """
    dump = node.graph.dump if node.graph else None
    return f"{dump.path if dump else ''}:{node.line} {node.id} {node.op}"


def node_link(node: Node | None, side: Side, text: str = "") -> Cell:
    """A text that shows a node in the graph of its side; empty without a node.

    Args:
        node: the node.
        side: whose dump it is in.
        text: what is shown; the node's place by default.
    """
    return None if node is None else Link(text or place_text(node), node_key(node, side))
