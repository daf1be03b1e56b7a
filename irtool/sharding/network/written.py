"""What the user's code tells of the users of a value: in which order they came to it.

MindSpore looks at the users of a value in the order in which they came to it. Two things change
that order after the graph was made, and only the lines of Python still tell them:

- Calls of functions are replaced by what the functions compute: operators of Python (``x * y``),
  functions (``ops.square``) and cells. What is used inside came later than what uses the value in
  the function that made it, and the deeper the call the later.
- The compiler takes out what computes nothing (a product with one, a Cast to the type that is
  there) and gives its users the value before it. These come last, wherever they stand. In the
  source line of the user the operand is the result of a call, and no location of what is used now
  is that call.

The graph of a micro-batch in a pipeline is copied for all micro-batches but the last, after all of
it stands in one graph: in a copy users come in the graph's own order. The names of what the parser
made hold a ``$`` there (``CNode_191$y``), those of copies do not. Where no name tells, nodes of a
copy are numbered in the order in which they compute; in what the parser made a value's number is
larger than those of its users. A cell that is called several times is copied before its functions
are put in, so that its users come as elsewhere.

Source: compilations with MindSpore 2.7 of rotary embeddings by a constant of ones, of values that
operators, functions and cells use in all orders, and of experts in a pipeline.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Sequence

from irtool.ir.comments import Location
from irtool.ir.graph import Node
from irtool.ir.statement import PrimitiveTarget
from irtool.sharding.network.graphs import Network, Use

_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.AugAssign)

Place = tuple[str, int, int | None, int | None]
"""File, line, first and last column of an expression."""

NUMBERED = re.compile(r"CNode_(\d+)")
"""The name of a node that the user gave none."""


def parsed_scopes(network: Network) -> frozenset[str]:
    """Scopes in which the names of nodes tell what the parser made from copies of it.

    Args:
        network: of a pipeline's dump.
    """
    nodes = (node for node in network.inputs if "$" in (node.name or ""))
    return frozenset(node.scope or "" for node in nodes)


def as_they_came(source: Node, uses: Sequence[Use], parsed: Container[str] = ()) -> Sequence[Use]:
    """The users of a node's result in the order in which they came to it.

    Args:
        source: the node.
        uses: its users, in the order in which a search of the graph comes across them.
        parsed: the :func:`parsed_scopes` of the network.
    """
    if len(uses) < 2 or ((source.scope or "") in parsed and _is_of_a_copy(source, uses)):
        return uses
    made = {_place(location) for location in source.comments.locations}

    def came(use: Use) -> tuple[bool, int, int]:
        late = _was_another(use, made) and not _is_copy(source, use.node)
        return late, *_calls_between(source, use.node)

    return sorted(uses, key=came)


def _calls_between(source: Node, user: Node) -> tuple[int, int]:
    """How many calls lead into the function of a user, and how many out of that of the value.

    None, as far as the comments tell, where both stand in one function.
    """
    made, used = _functions(source), _functions(user)
    if not made or not used:
        return 0, 0
    shared = 0
    while shared < min(len(made), len(used)) and made[shared] == used[shared]:
        shared += 1
    if shared == min(len(made), len(used)) and not _is_within(source, user, len(made) <= len(used)):
        shared -= 1  # cells of a loop are called in one line
    return len(used) - shared + _is_operator(user), len(made) - shared


def _is_operator(node: Node) -> bool:
    """Whether a node is written as an operator of Python, a function that leaves no location."""
    expression = _expression(node)
    return isinstance(expression, _OPERATORS)


def _is_within(source: Node, user: Node, inwards: bool) -> bool:
    """Whether one node's cell is that of the other or inside it: the user's, or the value's."""
    outer, inner = (source.scope, user.scope) if inwards else (user.scope, source.scope)
    return outer is None or inner is None or f"{inner}/".startswith(f"{outer}/")


def _functions(node: Node) -> list[tuple[Place, ...]]:
    """The functions around a node, outermost first: where each is called and defined."""
    functions: list[tuple[Place, ...]] = []
    places: list[Place] = []
    for location in node.comments.locations:
        if location.is_shared:
            return []
        places.append(_place(location))
        if _defines(location):
            functions.append(tuple(places))
            places.clear()
    return functions


def _defines(location: Location) -> bool:
    """Whether a location is a whole function, and no expression in it."""
    source = location.source or ""
    return source.removeprefix("/")[location.column or 0 :].startswith("def ")


def _is_of_a_copy(source: Node, uses: Sequence[Use]) -> bool:
    """Whether the numbered nodes around a value, the nearest first, are those of a copy."""
    near = [source, *(use.node for use in uses)]
    near += [user for use in uses for user in use.node.users]
    near += [operand for operand in source.operands if isinstance(operand, Node)]
    names = (node.name or "" for node in near if node.scope == source.scope)
    return next(("$" not in name for name in names if NUMBERED.match(name)), False)


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
    if use.position < 0 or not isinstance(use.node.target, PrimitiveTarget):
        return None
    call = _expression(use.node)
    if not isinstance(call, ast.Call) or use.position >= len(call.args):
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    argument = call.args[use.position]
    if not isinstance(argument, ast.Call) or argument.end_col_offset is None:
        return None
    last = use.node.comments.locations[-1]
    begin = last.column or 0
    return last.path, last.line, begin + argument.col_offset, begin + argument.end_col_offset


def _expression(node: Node) -> ast.expr | ast.stmt | None:
    """What a node is written as: an expression, or ``x *= y``; None if it is not known."""
    for last in node.comments.locations[-1:]:
        text, begin, end = last.source, last.column, last.end_column
        if text is None or begin is None or end is None or last.end_line not in (None, last.line):
            return None
        return _parsed(text.removeprefix("/")[begin:end])
    return None


def _parsed(text: str) -> ast.expr | ast.stmt | None:
    if not text.isascii():
        return None  # columns of the syntax tree count bytes
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    written = statements[0] if len(statements) == 1 else None
    return written.value if isinstance(written, ast.Expr) else written


def _place(location: Location) -> Place:
    return location.path, location.line, location.column, location.end_column
