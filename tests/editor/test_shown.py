"""Inlay hints, code lenses and search."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position, Range

from irtool.editor.features.inlays import inlays
from irtool.editor.features.lenses import PLACES, WHY, lenses, places, why
from irtool.editor.features.search import query_error, search
from irtool.ir.collectives import is_collective
from irtool.syntax.query import query
from tests.editor.opened import BEGIN, REJECTED, VALIDATE, at, opened, text_in

WHOLE = Range(Position(0, 0), Position(100_000, 0))


def test_slices_stand_behind_the_types_of_an_operator() -> None:
    document = opened(BEGIN, answered=True)
    line = at(document, "%8(CNode_23)").line + 1
    found = {hint.position.line: hint for hint in inlays(document, WHOLE)}
    assert found[line].label == "slices (32, 128), (512, 128) → (32, 512)"
    assert found[line].position.character == len(document.text.line(line + 1))


def test_slices_of_weights_stand_behind_them() -> None:
    document = opened(BEGIN, answered=True)
    found = {hint.position.line: hint.label for hint in inlays(document, WHOLE)}
    assert found[at(document, "%para5_mid.weight").line] == "slice (512, 128)"


def test_illegal_operators_have_no_slices() -> None:
    document = opened(REJECTED, answered=True)
    lines = {hint.position.line for hint in inlays(document, WHOLE)}
    assert lines
    assert at(document, "%8(CNode_23)").line + 1 not in lines


def test_hints_are_those_of_the_range() -> None:
    document = opened(BEGIN, answered=True)
    line = at(document, "%8(CNode_23)").line
    (found,) = inlays(document, Range(Position(line, 0), Position(line + 1, 0)))
    assert found.position.line == line + 1
    assert inlays(opened(BEGIN), WHOLE) == []


def test_every_collective_shows_its_group_and_why_it_is_there() -> None:
    document = opened(VALIDATE, answered=True)
    found = lenses(document)
    for node in document.dump.nodes(where=is_collective):
        here = [lens for lens in found if lens.range.start.line == node.line - 1]
        commands = {lens.command.command for lens in here if lens.command}
        assert commands == {PLACES, WHY}
        assert why(document, node.line - 1).startswith(f"{node.id} {node.op}\nwhy it is here: ")
        members = places(document, node.line - 1)
        assert node.line - 1 in {place.range.start.line for place in members}
    titles = [lens.command.title for lens in found if lens.command]
    assert (
        "AllReduce over ranks 0-3 in 4-6301172352641561019, 64.0 KiB, 3 others in this group"
        in titles
    )


def test_a_graph_shows_its_users() -> None:
    document = opened(REJECTED)
    (first, *_) = lenses(document)
    assert first.command is not None
    assert first.command.title == "24 statements, used in 1 graph"
    assert [text_in(document, p.range)[:2] for p in places(document, first.range.start.line)]


def test_there_is_no_reason_where_none_is_known() -> None:
    document = opened(BEGIN, answered=True)
    assert why(document, at(document, "%8(CNode_23)").line) == ""


@pytest.mark.parametrize(
    "text", ['op == "MatMul"', 'op == "MatMul" and shape[0] >= 8', "recompute"]
)
def test_a_query_finds_what_it_finds_elsewhere(text: str) -> None:
    document = opened(BEGIN)
    found = [symbol.location.range.start.line + 1 for symbol in search(document, text)]
    assert found == [node.line for node in document.dump.nodes(where=query(text))]


@pytest.mark.parametrize(
    ("text", "expected"), [("matmul", "MatMul"), ("mid-Lin", "MatMul"), ("%8", "%8")]
)
def test_other_texts_are_looked_for_in_names(text: str, expected: str) -> None:
    found = search(opened(BEGIN), text)
    assert any(expected in symbol.name for symbol in found)


def test_an_empty_text_finds_nothing_and_a_wrong_query_says_why() -> None:
    assert search(opened(BEGIN), " ") == []
    assert query_error('op == "MatMul"') == ""
    assert "column" in query_error("op ==")
