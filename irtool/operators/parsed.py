"""Entries of the table that were parsed before, as data: parsing all of them takes 0.3 s.

They are made when a wheel is built (``hatch_build.py``), as JSON beside the texts.  They fit these
texts, one grammar and one reader only, which their key says; where it differs (a checkout) they
come from the user's folder for caches, else from the texts.

Whatever the JSON says, reading it makes objects of the classes below and calls nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from irtool.operators.facts import Search
from irtool.operators.notation import (
    Attribute,
    Axis,
    Change,
    Declaration,
    InputPattern,
    Judged,
    Limit,
    OutputPattern,
    Reduce,
    Whole,
)

_CLASSES = (
    Attribute, Axis, Change, Declaration, InputPattern, Judged, Limit, OutputPattern, Reduce,
    Search, Whole,
)  # fmt: skip


def _tuple(*items: Any) -> tuple[Any, ...]:
    return items


def _set(*items: Any) -> frozenset[Any]:
    return frozenset(items)


def _mapping(*items: Any) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "tuple": _tuple,
    "set": _set,
    "mapping": _mapping,
    **{kind.__name__: kind for kind in _CLASSES},
}


def kept_form() -> str:
    """Changes when a class, or a field of one, does: what was kept before then fits no more."""
    named = (f"{kind.__name__} {' '.join(one.name for one in fields(kind))}" for kind in _CLASSES)
    return "\n".join(named)


def parsed_bytes(key: str, declarations: Mapping[str, Declaration]) -> bytes:
    """Declarations by operator, to be kept under a key.

    Args:
        key: of the texts that they were read from, and of the form that they are kept in.
        declarations: by the operator's name.

    Returns:
        JSON in UTF-8, for :func:`parsed_from`.

    Raises:
        TypeError: one holds a value of a class that is none of the notation's.
    """
    entries = {name: _plain(one) for name, one in declarations.items()}
    return json.dumps({"key": key, "entries": entries}, separators=(",", ":")).encode()


class Parsed:
    """Declarations that were kept; each is made when it is first asked for."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries

    def of(self, name: str) -> Declaration | None:
        """What the texts say of an operator, None where they say nothing.

        Raises:
            ValueError: what was kept is damaged.
        """
        if name not in self._entries:
            return None
        try:
            made = _made(self._entries[name])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from None
        if not isinstance(made, Declaration):
            raise ValueError(f"{name}: no declaration")
        return made


def parsed_from(key: str, data: bytes) -> Parsed | None:
    """What was kept under a key; None where the key is another one, or the data are damaged.

    Args:
        key: of the texts as they are now.
        data: that :func:`parsed_bytes` made.
    """
    try:
        document = json.loads(data)
        fits = document["key"] == key and isinstance(document["entries"], dict)
        return Parsed(document["entries"]) if fits else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A value as JSON has it: itself, or a list that begins with its kind."""
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, int, str):
        return value
    if kind is tuple:
        return ["tuple", *map(_plain, value)]
    if kind is frozenset:
        return ["set", *sorted(value)]
    if kind is dict:
        return ["mapping", *(_plain(part) for item in value.items() for part in item)]
    if kind not in _CLASSES or not is_dataclass(value):
        raise TypeError(f"a value of class {kind.__name__}")
    return [kind.__name__, *(_plain(getattr(value, one.name)) for one in fields(value))]


def _made(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *parts = cast("list[Any]", value)
    return _MAKERS[kind](*map(_made, parts))
