"""The cast that an operator needs whose operands have different types."""

from __future__ import annotations

import ast
import re

from irtool.ir.finding import Edit, SourceLine
from irtool.ir.types import BITS

_OPERAND = re.compile(r"([A-Z]\w*?\d+)\[")
_SAME_TYPE = re.compile(r"\btypes?\b.*\b(same|match|differ|consistent)", re.IGNORECASE | re.DOTALL)


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
    types = [found[1] if (found := _OPERAND.match(each)) else "" for each in operands]
    floats = {each for each in types if "Float" in each and each in BITS}
    if len(floats) != 2:
        return None
    wide = max(floats, key=lambda each: (BITS[each], each))
    narrow = [place for place, each in enumerate(types) if each in floats and each != wide]
    found = _argument(source.text, len(types), narrow[0]) if len(narrow) == 1 else None
    if found is None:
        return None
    start, end = found
    text = source.text
    cast = f"ops.cast({text[start:end]}, mindspore.{wide.lower()})"
    return Edit(file=source.path, line=source.line, old=text, new=text[:start] + cast + text[end:])


def _argument(text: str, count: int, place: int) -> tuple[int, int] | None:
    """Where an argument of the only call with so many of them stands in a line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
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
    if found.end_col_offset is None or found.lineno != 1 or not text.isascii():
        return None
    return found.col_offset, found.end_col_offset
