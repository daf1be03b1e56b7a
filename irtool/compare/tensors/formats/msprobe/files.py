"""msprobe's JSON, whole or cut off, and what lies beside dump.json: stacks and modules."""

from __future__ import annotations

import json
import os
import re
from typing import Any, cast

from irtool.compare.tensors.formats.msprobe.names import parsed
from irtool.compare.tensors.model import Op
from irtool.ir.limits import MAX_DOCUMENT
from irtool.syntax.reading import parse_json, read_bytes, read_text

_SMALL = 1 << 20
_DATA = re.compile(r'"data"\s*:\s*\{')
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
_FRAME = re.compile(r"File (?P<file>.+?),? line (?P<line>\d+),? in ")
_LIBRARY = re.compile(r"site-packages/|/msprobe/|dist-packages/|<string>|<frozen")


def load_json(path: str) -> Any:
    """A JSON file, NaN and Infinity allowed; by the quick reader where that pays.

    Args:
        path: of the file.

    Raises:
        OSError: it can't be read.
        ValueError: it is no JSON.
    """
    data = read_bytes(path)
    if len(data) < _SMALL:
        return parse_json(data, special=True)  # quicker than to import the other one
    import orjson

    try:
        return orjson.loads(data)
    except ValueError:
        return parse_json(data, special=True)  # NaN and Infinity are no JSON, and dumps have them


def whole_part(path: str) -> dict[str, Any] | None:
    """What a file that is cut off still says: its operators up to there; None if there are none.

    Args:
        path: of a ``dump.json``.
    """
    text = read_text(path, MAX_DOCUMENT, errors="replace")
    start = _DATA.search(text)
    if start is None:
        return None
    try:
        document: Any = parse_json(f"{text[: start.start()].rstrip().rstrip(',')}}}", special=True)
    except ValueError:
        document = {}
    decoder = json.JSONDecoder()
    operators: dict[str, Any] = {}
    place = start.end()
    while (name := _KEY.match(text, place)) is not None:
        try:
            entry, place = decoder.raw_decode(text, name.end())
            operators[json.loads(name[1])] = entry
        except (ValueError, RecursionError):
            break
    return {**document, "data": operators} if operators else None


def add_sources(ops: list[Op], folder: str) -> None:
    """Add the user's line to each forward call; older files state frames by name, newer by number.

    Args:
        ops: whose ``source`` is written; "" where the file tells none.
        folder: with a ``stack.json``; without one nothing is added.
    """
    try:
        stacks = load_json(os.path.join(folder, "stack.json"))
    except (OSError, ValueError):
        return
    if not isinstance(stacks, dict):
        return
    lines: dict[str, str] = {}
    for key, value in cast("dict[str, Any]", stacks).items():
        if not isinstance(value, list):
            continue
        parts = cast("list[Any]", value)
        if len(parts) == 2 and all(isinstance(part, list) for part in parts):
            line = _innermost(parts[1])
            for name in parts[0]:
                lines[str(name)] = line
        else:
            lines[key] = _innermost(parts)
    for op in ops:
        op.source = lines.get(op.name) or lines.get(op.call) or ""


def _innermost(frames: list[Any]) -> str:
    """``model.py:12``: the first frame that is not a library's."""
    for frame in frames:
        text = str(frame)
        if _LIBRARY.search(text):
            continue
        match = _FRAME.search(text)
        if match is not None:
            return f"{match['file']}:{match['line']}"
    return ""


def add_owners(ops: list[Op], folder: str) -> None:
    """Add the module that each call ran in, by construct.json.

    Args:
        ops: whose ``owner`` is written where it is not known.
        folder: with a ``construct.json``; without one nothing is added.
    """
    try:
        parents = load_json(os.path.join(folder, "construct.json"))
    except (OSError, ValueError):
        return
    if not isinstance(parents, dict) or not parents:
        return
    known = cast("dict[str, Any]", parents)
    for op in ops:
        if not op.owner:
            parent = known.get(op.name) or known.get(op.call)
            if isinstance(parent, list):
                parent = cast("list[Any]", parent)[0] if parent else None
            if isinstance(parent, str):
                op.owner = parsed(parent)[2]
