"""Answers for scripts: each is a class, whose fields are the keys of its JSON object.

A key is written once, as a field with its type and what it means; the JSON text, its schema and
the page in docs (:mod:`irtool.report.reference`) are made of that.  Keys stay within a version;
more may come beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Meta

from irtool.report.json import json_text, json_value

Json: TypeAlias = Any
"""A value of a dump or of a context, as plain JSON data."""


def doc(text: str) -> Meta:
    """What a field means, for schemas and pages: it stands behind the type, in ``Annotated``.

    Args:
        text: unit, range, what null means; it becomes the ``description`` of the JSON schema.
    """
    return Meta(description=text)


class AnswerObject(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of an answer."""


def as_json(answer: AnswerObject | Sequence[AnswerObject]) -> Any:
    """Objects of an answer as plain JSON data."""
    return _plain(answer)


def answer_pieces(answer: AnswerObject) -> Iterator[str]:
    """An answer as JSON: its plain values in the first line, then each list with an item a line.

    Items become text one after the other, so that a large answer is in memory once.

    Args:
        answer: the object; the order of its fields is kept among plain values and among lists.

    Yields:
        pieces that make one JSON text when put together, a line end behind the last.
    """
    plain: dict[str, object] = {}
    tag = answer.__struct_config__
    if tag.tag is not None:
        plain[str(tag.tag_field)] = tag.tag
    lists: dict[str, Sequence[object]] = {}
    for entry in msgspec.structs.fields(answer):
        value: object = getattr(answer, entry.name)
        if _is_listed(value):
            lists[entry.encode_name] = cast("Sequence[object]", value)
        else:
            plain[entry.encode_name] = _plain(value)
    yield _text(plain)[:-1]
    for key, items in lists.items():
        for place, item in enumerate(items):
            yield (
                f",\n  {_text(_plain(item))}"
                if place
                else f',\n "{key}": [\n  {_text(_plain(item))}'
            )
        yield "\n ]"
    yield "}\n"


def opened_text(answer: AnswerObject, key: str) -> str:
    """An object up to its last list, ``key``, whose items are written as they are made.

    Args:
        answer: the object; whatever it holds in that field is left out.
        key: the field's name in JSON.

    Returns:
        JSON that ends behind ``"key": ``; the list and ``}`` are for the caller to write.
    """
    plain = cast("dict[str, object]", _plain(answer))
    plain.pop(key)
    return f'{_text(plain)[:-1]}{", " if plain else ""}"{key}": '


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, enc_hook=json_value)


def _is_listed(value: object) -> bool:
    """Whether it is a list with an object in it."""
    if not isinstance(value, list | tuple) or not value:
        return False
    first = cast("Sequence[object]", value)[0]
    return isinstance(first, AnswerObject | Mapping) or is_dataclass(first)


def _text(value: object) -> str:
    try:
        return json_text(value)
    except ValueError:  # a number that JSON lacks
        return json.dumps(json_value(value))
