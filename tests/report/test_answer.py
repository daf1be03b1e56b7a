"""Answers as JSON text: the whole object, a line for each item of its lists."""

from __future__ import annotations

import json
import math
from typing import Annotated

from msgspec import field

from irtool.report.answer import AnswerObject, answer_pieces, as_json, doc


class Part(AnswerObject, frozen=True, kw_only=True):
    """A part."""

    name: str
    size: Annotated[float | None, doc("null: unknown")] = None


class Whole(AnswerObject, frozen=True, kw_only=True, tag_field="schema", tag="irtool.test/1"):
    """A whole."""

    path: str
    parts: list[Part]
    source: str | None = field(default=None, name="from")
    later: list[Part]


def test_text_is_the_object_with_an_item_a_line() -> None:
    whole = Whole(path="a", parts=[Part(name="x", size=1.5), Part(name="y")], later=[], source="b")
    text = "".join(answer_pieces(whole))
    assert json.loads(text) == as_json(whole)
    assert text == (
        '{"schema": "irtool.test/1", "path": "a", "from": "b", "later": [],\n'
        ' "parts": [\n'
        '  {"name": "x", "size": 1.5},\n'
        '  {"name": "y", "size": null}\n'
        " ]}\n"
    )


def test_items_become_text_one_after_the_other() -> None:
    """A large answer is not held as plain data, or as text, a second time."""
    whole = Whole(path="a", parts=[Part(name=str(place)) for place in range(1000)], later=[])
    assert max(map(len, answer_pieces(whole))) < 100


def test_numbers_that_json_lacks_are_texts() -> None:
    whole = Whole(path="a", parts=[Part(name="x", size=math.inf)], later=[])
    assert json.loads("".join(answer_pieces(whole)))["parts"][0]["size"] == "Infinity"
