"""Answers for scripts: each is a class, whose fields are the keys of its JSON object.

A key is written once, as a field with its type and what it means; the JSON text, its schema and
the page in docs (:mod:`irtool.report.reference`) are made of that.  Keys stay within a version;
more may come beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, cast, get_args

import msgspec
from msgspec import Meta

from irtool.cluster.context.model import Assumption, RunContext, Source, shown
from irtool.operators.layout import UserLayout
from irtool.report.json import json_text, json_value

Json: TypeAlias = Any
"""A value of a dump or of a context, as plain JSON data."""


def doc(text: str) -> Meta:
    """What a field means, for schemas and pages: it stands behind the type, in ``Annotated``."""
    return Meta(description=text)


class AnswerObject(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of an answer."""


class ContextValue(AnswerObject, frozen=True, kw_only=True):
    """A value of the parallel context, and where it comes from."""

    value: Annotated[Json, doc("as MindSpore's setting has it")]
    origin: Annotated[Source, doc("`assumed`: nobody says it, and MindSpore's default is taken")]
    path: Annotated[str | None, doc("the file that says it")]
    what: Annotated[str | None, doc("what in it says so")]


_ORIGINS = {"type": "object", "additionalProperties": {"enum": list(get_args(Source))}}
CONTEXT = Meta(
    description="the parallel context, by key; beside them `origins`: of each key its origin alone",
    extra_json_schema={"properties": {"origins": _ORIGINS}},
)
"""What the context of an answer is, in schemas and on pages."""


class RunAnswer(AnswerObject, frozen=True, kw_only=True):
    """An answer about a run, with the context that it was given for."""

    context: Annotated[dict[str, ContextValue], CONTEXT]
    assumptions: Annotated[list[str], doc("what the answer takes for granted, as texts")]
    contradictions: Annotated[list[str], doc("what two sources say differently, as texts")]


def context_fields(context: RunContext, more: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of :class:`RunAnswer`; ``more`` are assumptions beside those of the context."""
    values: dict[str, object] = {
        key: ContextValue(
            value=_context_value(entry.value),
            origin=entry.origin.source,
            path=entry.origin.path or None,
            what=entry.origin.what or None,
        )
        for key, entry in context.entries.items()
    }
    values["origins"] = {key: entry.origin.source for key, entry in context.entries.items()}
    return {
        "context": values,
        "assumptions": [*map(assumption_text, context.assumptions), *more],
        "contradictions": [each.message for each in context.contradictions],
    }


def assumption_text(item: Assumption) -> str:
    """``dataset_strategy data_parallel (MindSpore's default)``."""
    return f"{item.key} {shown(item.value)} ({item.why})"


def as_json(answer: AnswerObject | Sequence[AnswerObject]) -> Any:
    """Objects of an answer as plain JSON data."""
    return _plain(answer)


def answer_pieces(answer: AnswerObject) -> Iterator[str]:
    """An answer as JSON: its plain values in the first line, then each list with an item a line.

    Items become text one after the other, so that a large answer is in memory once.
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
    """An object up to its last list, ``key``, whose items are written as they are made."""
    plain = cast("dict[str, object]", _plain(answer))
    plain.pop(key)
    return f'{_text(plain)[:-1]}{", " if plain else ""}"{key}": '


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, enc_hook=json_value)


def _is_listed(value: object) -> bool:
    """Whether it is a list with an object in it."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return isinstance(cast("Sequence[object]", value)[0], AnswerObject | Mapping)


def _text(value: object) -> str:
    try:
        return json_text(value)
    except ValueError:  # a number that JSON lacks
        return json.dumps(json_value(value))


def _context_value(value: object) -> Json:
    if isinstance(value, UserLayout):
        return {
            "device_matrix": list(value.device_matrix),
            "tensor_map": [_context_value(entry) for entry in value.tensor_map],
        }
    if isinstance(value, tuple | list):
        return [_context_value(item) for item in cast("Sequence[object]", value)]
    return value
