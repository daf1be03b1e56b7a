"""The cast that an operator needs whose operands have different types."""

from __future__ import annotations

import ast
import re

from irtool.ir.finding import Edit, SourceLine
from irtool.ir.types import BITS
from irtool.operators.table import operator_of

_OPERAND = re.compile(r"([A-Z]\w*?\d+)\[")
_TUPLE = re.compile(r"Tuple\[(.*)\]")
_ITEM = re.compile(r"([A-Z]\w*?\d+)\[[^\]]*\]")
_SAME_TYPE = re.compile(
    r"\bsame types?\b|\btypes?\b.*\b(same|match|differ|consistent)", re.IGNORECASE | re.DOTALL
)


def cast_of(message: str, operands: tuple[str, ...], source: SourceLine | None) -> Edit | None:
    """A cast of the narrower operand to the type of the wider one.

    Args:
        message: what MindSpore says.
        operands: types of the failing statement's operands (``Float16[16,32]``).
        source: the line of Python that makes it.

    Returns:
        None where the message is about something else, or the line does not tell which text is
        which operand.
    """
    if source is None or not source.text or not _SAME_TYPE.search(message):
        return None
    joined = _TUPLE.fullmatch(operands[0]) if operands else None
    if joined is not None:  # elements of one tuple, of which the first type is what others join
        return _cast_in_tuple(_ITEM.findall(joined[1]), source)
    types = [match[1] if (match := _OPERAND.match(dtype)) else "" for dtype in operands]
    known = {dtype for dtype in types if dtype in BITS}
    floats = {dtype for dtype in known if "Float" in dtype}
    if len(known) != 2 or not floats:
        return None
    wide = max(floats, key=lambda dtype: (BITS[dtype], dtype))
    narrow = [place for place, dtype in enumerate(types) if dtype in known and dtype != wide]
    tree = parsed(source.text)
    given = None if tree is None else operands_in(tree, len(types), message)
    if given is None or len(narrow) != 1:
        return None
    extent = span(given[narrow[0]], source.text)
    return None if extent is None else _cast(source, extent, wide)


def _cast(source: SourceLine, place: tuple[int, int], to: str) -> Edit:
    (start, end), text = place, source.text
    cast = f"ops.cast({text[start:end]}, mindspore.{to.lower()})"
    return Edit(file=source.path, line=source.line, old=text, new=text[:start] + cast + text[end:])


def _cast_in_tuple(types: list[str], source: SourceLine) -> Edit | None:
    """A cast of the one element whose type is another, to the widest float of all."""
    known = set(types)
    floats = [dtype for dtype in known if "Float" in dtype and dtype in BITS]
    if len(known) != 2 or not floats:
        return None
    wide = max(floats, key=lambda dtype: (BITS[dtype], dtype))
    narrow = [place for place, dtype in enumerate(types) if dtype != wide]
    tree = parsed(source.text)
    literals = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(types)
    ]
    if len(narrow) != 1 or len(literals) != 1:
        return None
    extent = span(literals[0].elts[narrow[0]], source.text)
    return None if extent is None else _cast(source, extent, wide)


_SIGNS: dict[str, type[ast.operator]] = {
    "__add__": ast.Add,
    "__sub__": ast.Sub,
    "__mul__": ast.Mult,
    "__truediv__": ast.Div,
    "__matmul__": ast.MatMult,
}
"""Python's methods behind its signs."""
_OF = re.compile(r"For (?:primitive\[|')(\w+)")


def _sign_of(op: str) -> type[ast.operator] | None:
    """The sign that makes an operator; None where the table of operators knows of none."""
    entry = operator_of(op)
    if entry.computes == "matmul":
        return ast.MatMult
    return next((_SIGNS[name] for name in entry.torch if name in _SIGNS), None)


def operands_in(tree: ast.Module, count: int, message: str) -> tuple[ast.expr, ...] | None:
    """What the failing call of a line, or sign between two operands, is given.

    Args:
        tree: the line.
        count: how many operands.
        message: what MindSpore says; it may name the operator.

    Returns:
        None where several calls or signs, or none, have so many.
    """
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == count
    ]
    signs = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and count == 2]
    named = _OF.search(message)
    op = named[1] if named is not None else ""
    sign = _sign_of(op)
    alike = [node for node in signs if isinstance(node.op, sign or ast.operator)]
    if calls and sign is not None and len(alike) == 1:
        name = op.removesuffix("Ext").lower()
        calls = [node for node in calls if name in ast.unparse(node.func).lower().replace("_", "")]
    if len(calls) == 1:
        return tuple(calls[0].args)
    if not calls and len(alike) == 1:
        return alike[0].left, alike[0].right
    return None


def parsed(text: str) -> ast.Module | None:
    """A line of Python as a tree; None where it is no whole statement.

    Args:
        text: the line, without the blanks that indent it.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def span(node: ast.expr, text: str) -> tuple[int, int] | None:
    """The columns of a part of a line of Python, from 0, the end exclusive.

    Args:
        node: of the tree of that line.
        text: the line itself.

    Returns:
        None where the part does not begin in the first line, or the line is not ASCII.
    """
    if node.end_col_offset is None or node.lineno != 1 or not text.isascii():
        return None
    return node.col_offset, node.end_col_offset
