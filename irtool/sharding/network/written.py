"""What the user's code tells of an operand: whether something stood there that is gone by now.

The compiler takes out what computes nothing (a product with one, a Cast to the type that is there)
and gives its users the value before it. MindSpore looks at the users of a value in the order in
which they came to it, so these come last, wherever they stand. The graph does not show it any
more; the source line of the user does: there the operand is the result of a call, and no location
of what is used now is that call.

A graph that several calls use is copied for all of them but the last, and in a copy users come in
the graph's own order. Nodes of a copy are numbered in the order in which they compute; in what the
parser made a value's number is larger than those of its users.

Source: compilations with MindSpore 2.7 of rotary embeddings by a constant of ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from irtool.ir.comments import Location
from irtool.ir.graph import Node
from irtool.ir.statement import PrimitiveTarget
from irtool.sharding.network.graphs import Use

Place = tuple[str, int, int | None, int | None]
"""File, line, first and last column of an expression."""

NUMBERED = re.compile(r"CNode_(\d+)")
"""The name of a node that the user gave none."""


def as_they_came(source: Node, uses: Sequence[Use]) -> Sequence[Use]:
    """The users of a node's result, those last that were given it in the place of another value.

    Args:
        source: the node.
        uses: its users, in the order in which a search of the graph comes across them.
    """
    if len(uses) < 2:
        return uses
    made = {_place(location) for location in source.comments.locations}
    return sorted(uses, key=lambda use: _was_another(use, made) and not _is_copy(source, use.node))


def _is_copy(source: Node, user: Node) -> bool:
    """Whether a value and its user are numbered as a copy of a graph is: the value before it."""
    numbers = [NUMBERED.match(node.name or "") for node in (source, user)]
    first, second = (int(match[1]) if match is not None else None for match in numbers)
    return first is not None and second is not None and first < second


def _was_another(use: Use, made: set[Place]) -> bool:
    """Whether the operand is written as a call that did not make the value it is now."""
    written = _written(use)
    return written is not None and written not in made


def _written(use: Use) -> Place | None:
    """Where the call stands that an operand is written as; None if it is none, or not known."""
    locations = use.node.comments.locations
    if not locations or use.position < 0 or not isinstance(use.node.target, PrimitiveTarget):
        return None
    last = locations[-1]
    text, begin, end = last.source, last.column, last.end_column
    if text is None or begin is None or end is None or last.end_line not in (None, last.line):
        return None
    call = _call(text.removeprefix("/")[begin:end])
    if call is None or use.position >= len(call.args):
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    argument = call.args[use.position]
    if not isinstance(argument, ast.Call) or argument.end_col_offset is None:
        return None
    return last.path, last.line, begin + argument.col_offset, begin + argument.end_col_offset


def _call(text: str) -> ast.Call | None:
    if not text.isascii():
        return None  # columns of the syntax tree count bytes
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.body if isinstance(tree.body, ast.Call) else None


def _place(location: Location) -> Place:
    return location.path, location.line, location.column, location.end_column
