r"""JSON for scripts: every command's output is made of these pieces.

Texts are ASCII with ``\u`` escapes, so that no control character of a dump gets through; numbers
that JSON lacks are the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from irtool.ir.types import Abstract


def json_text(value: object) -> str:
    """One line of JSON for plain data (what :func:`json_value` gives).

    Args:
        value: of texts, numbers, booleans, None, lists and mappings with texts as keys.

    Returns:
        ASCII without a line end.
    """
    return _ENCODER.encode(value).replace("\x7f", "\\u007f")


_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(", ", ": "))


def json_value(value: object) -> object:
    """A value of a dump as plain JSON data; what has no JSON form becomes its printed text.

    Args:
        value: any value of the model; tuples become lists, NaN and infinities texts.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [json_value(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {str(key): json_value(item) for key, item in entries.items()}
    from irtool.syntax.query_fields import plain_value  # values of dumps: few outputs have them

    return plain_value(value)


def type_text(type: Abstract | None) -> str | None:
    """``Float32[256,784]``; None where the dump does not say.

    Args:
        type: of a result, input or parameter.
    """
    return None if type is None else type.short()


def json_list(items: Iterable[Iterable[str]], indent: str) -> Iterator[str]:
    """Pieces of a JSON list with one item a line, written as they come; an item is pieces too.

    Args:
        items: pieces of JSON text of each item.
        indent: blanks before the closing bracket; items stand one further in.
    """
    separator = "["
    for item in items:
        yield f"{separator}\n{indent} "
        yield from item
        separator = ","
    yield "[]" if separator == "[" else f"\n{indent}]"
