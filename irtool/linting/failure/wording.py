"""Failures that MindSpore tells in words of its own machinery, in those of the user's line."""

from __future__ import annotations

import ast
import re

from irtool.ir.finding import SourceLine

_INDEX = re.compile(r"index should be in range\[-(\d{1,6}), (\d{1,6})\), but got (\d{1,6})")
_KEY = re.compile(r"(?:\w+: )?KeyError: '(\w+)'")


def worded(message: str, op: str, source: SourceLine | None) -> str:
    """What a message means: one of Python's own says less than the line that it is about.

    Args:
        message: MindSpore's.
        op: what is called there.
        source: the line of Python.

    Returns:
        The message itself where it says it well enough.
    """
    index = _INDEX.search(message)
    if index is not None and source is not None:
        wanted = _unpacked(source.text)
        if wanted is not None and wanted > int(index[2]):
            return f"{wanted} values are unpacked, and there are {index[2]}"
    key = _KEY.fullmatch(message)
    if key is not None and op:
        return f"{op} is called without its argument {key[1]} ({message})"
    return message


def _unpacked(text: str) -> int | None:
    """How many names an assignment unpacks to."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Assign):
        return None
    target = body[0].targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    starred = any(isinstance(item, ast.Starred) for item in target.elts)
    return None if starred else len(target.elts)
