"""References, highlights and jumps between forward and backward."""

from __future__ import annotations

from lsprotocol.types import DocumentHighlightKind, Position

from irtool.editor.features.partners import earlier, later
from irtool.editor.features.references import highlights, references
from irtool.ir.graph import Node
from tests.editor.opened import FLOW, REJECTED, VALIDATE, at, line_of, opened, text_in


def test_references_of_a_node_are_its_definition_and_its_uses() -> None:
    document = opened(REJECTED)
    found = references(document, at(document, "%10(CNode_24) = PrimFunc_BiasAdd(", "%8"))
    assert [text_in(document, place.range) for place in found] == ["%8", "%8"]
    lines = [line_of(document, place).split("(")[0].strip() for place in found]
    assert lines == ["%8", "%10"]


def test_the_definition_is_left_out_where_the_client_wants_that() -> None:
    document = opened(REJECTED)
    place = at(document, "%8(CNode_23)")
    assert len(references(document, place)) == 2
    assert len(references(document, place, declared=False)) == 1


def test_references_of_a_parameter_reach_into_other_graphs() -> None:
    document = opened(REJECTED)
    found = references(document, at(document, "%para5_mid.weight"))
    names = {text_in(document, place.range) for place in found}
    assert "%para5_mid.weight" in names
    assert any(name.startswith("$(@1_mindspore") for name in names)


def test_references_of_a_graph_are_its_calls() -> None:
    document = opened(FLOW)
    place = at(document, "= call ", "@")
    name = text_in(document, references(document, place)[0].range)
    for found in references(document, place):
        assert text_in(document, found.range) == name


def test_highlights_tell_the_definition_from_uses() -> None:
    document = opened(REJECTED)
    found = highlights(document, at(document, "%8(CNode_23)"))
    kinds = [each.kind for each in found]
    assert kinds == [DocumentHighlightKind.Write, DocumentHighlightKind.Read]
    assert highlights(document, at(document, "# Scope")) == []


def test_a_jump_forward_and_back_returns_to_the_node() -> None:
    document = opened(VALIDATE, answered=True)
    ties = document.answers.ties
    assert ties is not None
    tied = [tie for tie in ties if tie.kind == "gradient" and isinstance(tie.left, Node)]
    assert len(tied) > 10
    for tie in tied:
        assert isinstance(tie.left, Node)
        forward = Position(tie.left.line - 1, 2)
        backward = Position(tie.right.line - 1, 2)
        assert tie.right.line in [p.range.start.line + 1 for p in later(document, forward)]
        assert tie.left.line in [p.range.start.line + 1 for p in earlier(document, backward)]


def test_there_are_no_jumps_before_ties_are_known() -> None:
    document = opened(VALIDATE)
    assert later(document, Position(60, 2)) == []
