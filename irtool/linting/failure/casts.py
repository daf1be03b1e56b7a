"""The cast that an operator needs whose operands have different types."""

from __future__ import annotations

import ast
import re

from irtool.ir.finding import Edit, SourceLine
from irtool.ir.types import BITS

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
    types = [found[1] if (found := _OPERAND.match(each)) else "" for each in operands]
    known = {each for each in types if each in BITS}
    floats = {each for each in known if "Float" in each}
    if len(known) != 2 or not floats:
        return None
    wide = max(floats, key=lambda each: (BITS[each], each))
    narrow = [place for place, each in enumerate(types) if each in known and each != wide]
    found = _argument(source.text, len(types), narrow[0]) if len(narrow) == 1 else None
    if found is None:
        return None
    return _cast(source, found, wide)


def _cast(source: SourceLine, place: tuple[int, int], to: str) -> Edit:
    (start, end), text = place, source.text
    cast = f"ops.cast({text[start:end]}, mindspore.{to.lower()})"
    return Edit(file=source.path, line=source.line, old=text, new=text[:start] + cast + text[end:])


def _cast_in_tuple(types: list[str], source: SourceLine) -> Edit | None:
    """A cast of the one element whose type is another, to the widest float of all."""
    known = set(types)
    floats = [each for each in known if "Float" in each and each in BITS]
    if len(known) != 2 or not floats:
        return None
    wide = max(floats, key=lambda each: (BITS[each], each))
    narrow = [place for place, each in enumerate(types) if each != wide]
    tree = parsed(source.text)
    literals = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(types)
    ]
    if len(narrow) != 1 or len(literals) != 1:
        return None
    found = span(literals[0].elts[narrow[0]], source.text)
    return None if found is None else _cast(source, found, wide)


def _argument(text: str, count: int, place: int) -> tuple[int, int] | None:
    """Where an argument of the only call with so many of them stands in a line."""
    tree = parsed(text)
    if tree is None:
        return None
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == count
    ]
    operators = [
        node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and count == 2 and not calls
    ]
    if len(calls) == 1:
        found: ast.expr = calls[0].args[place]
    elif len(operators) == 1:
        found = (operators[0].left, operators[0].right)[place]
    else:
        return None
    return span(found, text)


def parsed(text: str) -> ast.Module | None:
    """A line of Python as a tree; None where it is no whole statement."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def span(node: ast.expr, text: str) -> tuple[int, int] | None:
    """From and to which column a part of one line stands."""
    if node.end_col_offset is None or node.lineno != 1 or not text.isascii():
        return None
    return node.col_offset, node.end_col_offset
