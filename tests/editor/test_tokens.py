"""Semantic tokens: names by what they stand for and by phase."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lsprotocol.types import Position, Range

from irtool.editor.document import Document
from irtool.editor.features.tokens import MODIFIERS, TYPES, tokens
from tests.editor.opened import BEGIN, FLOW, REJECTED, VALIDATE, opened


def read(document: Document, where: Range | None = None) -> Iterator[tuple[str, str, set[str]]]:
    """The text, type and modifiers of each token, as a client takes them apart."""
    data = tokens(document, where).data
    line = character = 0
    for index in range(0, len(data), 5):
        down, along, length, type, bits = data[index : index + 5]
        line, character = line + down, (along if down else character + along)
        start = Position(line, character)
        end = Position(line, character + length)
        text = document.text
        content = text.content[text.offset(start) : text.offset(end)]
        yield content, TYPES[type], {name for i, name in enumerate(MODIFIERS) if bits >> i & 1}


def test_names_are_coloured_by_what_they_stand_for() -> None:
    found = {(text, type) for text, type, _ in read(opened(REJECTED))}
    assert ("%8", "variable") in found
    assert ("PrimFunc_MatMul", "method") in found
    assert ("%para5_mid.weight", "property") in found
    assert ("%para1_inputs0", "parameter") in found
    assert ("call", "method") in found


def test_graphs_and_collectives_have_colours_of_their_own() -> None:
    assert any(type == "function" and text[0] == "@" for text, type, _ in read(opened(FLOW)))
    found = {(text, type) for text, type, _ in read(opened(VALIDATE))}
    assert ("AllReduce", "event") in {(t.removeprefix("PrimFunc_"), k) for t, k in found}


def test_modifiers_tell_phase_and_definition() -> None:
    tokens_of = list(read(opened(VALIDATE)))
    assert any({"declaration", "backward"} <= bits for _, _, bits in tokens_of)
    assert any("optimizer" in bits for _, _, bits in tokens_of)


def test_a_name_that_nothing_defines_is_marked() -> None:
    text = "subgraph @f() {\n  %1(a) = Add(%0, %7)\n  Return(%1)\n}\n"
    found = {text: bits for text, _, bits in read(opened(REJECTED, text))}
    assert "unresolved" in found["%7"]
    assert "unresolved" not in found["%1"]


@pytest.mark.parametrize("name", [BEGIN, FLOW])
def test_tokens_of_a_part_are_those_of_the_whole_there(name: str) -> None:
    document = opened(name)
    first, last = 20, 90
    where = Range(Position(first, 0), Position(last, 0))
    part = list(read(document, where))
    assert part
    whole = list(read(document))
    start = whole.index(part[0])
    assert any(whole[i : i + len(part)] == part for i in range(start, len(whole)))
