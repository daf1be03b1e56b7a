"""The parallel context that stands beside dumps: ``case.json``."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from typing import Any, cast

from irtool.syntax.reading import read_json

Context = Mapping[str, object]
"""Keys of ``set_auto_parallel_context`` with Python values."""

CASE_FILE = "case.json"
TELLING_KEYS = frozenset(
    (
        *("device_num", "global_rank", "pipeline_stages", "parallel_mode", "device_target"),
        *("dataset_strategy", "full_batch", "gradients_mean", "enable_parallel_optimizer"),
    )
)
"""Keys that say that the top of a file is a context; ``rank`` or ``target`` may mean anything."""


def read_case(path: str) -> tuple[dict[str, object] | None, str]:
    """The context of a ``case.json``: its table ``context``, else what stands at the top.

    Args:
        path: of the file.

    Returns:
        The values by key, and why there are none; None and "" where the file is about something
        else: it has no ``context``, and no key that only a context has.
    """
    try:
        content = read_json(path)
    except OSError as error:
        return None, (error.strerror or str(error)).lower()
    except ValueError as error:
        return None, f"is not JSON: {error}"
    if not isinstance(content, dict):
        return None, "is not a JSON object"
    table = cast("dict[str, Any]", content)
    if "context" not in table and TELLING_KEYS.isdisjoint(table):
        return None, ""
    raw = table.get("context", table)
    if not isinstance(raw, dict):
        return None, 'has a "context" that is no table'
    context = cast("dict[str, Any]", raw)
    return {key: context_value(value) for key, value in context.items()}, ""


def context_value(value: object) -> object:
    """A value of a context; strings that hold a Python or JSON literal become it.

    >>> context_value("[[1, 2]]"), context_value("True"), context_value("full_batch")
    (((1, 2),), True, 'full_batch')
    """
    if isinstance(value, str):
        text = value.strip()
        plain = {"true": True, "false": False, "null": None, "none": None}
        if text.lower() in plain:
            return plain[text.lower()]
        if len(text) < 10_000 and text[:1] in tuple("([{-+.0123456789'\""):
            try:
                return _tuples(ast.literal_eval(text))
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                return value
        return value
    return _tuples(value)


def _tuples(value: object) -> object:
    """Lists become tuples, as ``set_auto_parallel_context`` takes them."""
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in cast("list[object]", value))
    return value


def context_beside(path: str) -> dict[str, object] | None:
    """The context of the ``case.json`` beside a dump; None where there is none that can be read.

    Args:
        path: of the dump.
    """
    return read_case(os.path.join(os.path.dirname(path), CASE_FILE))[0]
