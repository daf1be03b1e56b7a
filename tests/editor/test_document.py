"""What stands where: every name of a statement at its place, and what it stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.editor.document import key_of
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.items import Parameter
from irtool.syntax.printer import print_value
from tests.editor.opened import BEGIN, FLOW, REJECTED, SAMPLES, VALIDATE, at, opened

DUMPS = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.ir"))


@pytest.mark.parametrize("name", DUMPS)
def test_every_name_stands_where_it_is_said_to(name: str) -> None:
    document = opened(name)
    content = document.text.content
    for owner in document.owners:
        start = document.text.start_of(owner.line)
        spans = document.spans(owner)
        assert spans or not isinstance(owner.item, Node)
        for span in spans:
            text = content[start + span.start : start + span.end]
            if span.value is not None and not isinstance(span.value, Parameter):
                assert text == print_value(span.value)
            elif isinstance(owner.item, Node) and span.kind == "definition":
                assert text in (owner.item.id, owner.item.style.return_word)
            elif isinstance(owner.item, Node) and span.kind == "name":
                assert text == owner.item.name


@pytest.mark.parametrize("name", [BEGIN, FLOW, VALIDATE])
def test_each_thing_that_is_mentioned_is_defined_in_one_place(name: str) -> None:
    document = opened(name)
    for owner in document.owners:
        for mention in document.mentions(owner):
            where = document.definition(mention.thing)
            assert where is not None
            there = document.mention_at(where.start)
            assert there is not None
            assert there.is_definition
            assert key_of(there.thing) == key_of(mention.thing)


@pytest.mark.parametrize("name", [BEGIN, FLOW, VALIDATE])
def test_uses_of_a_node_are_its_users(name: str) -> None:
    document = opened(name)
    for node in document.dump.nodes():
        found = [owner.item for owner in document.uses.get(key_of(node), [])]
        assert set(found) >= set(node.users)


def test_a_name_is_found_under_the_cursor_and_right_behind_it() -> None:
    document = opened(REJECTED)
    start = at(document, "%8(CNode_23) = PrimFunc_MatMul(", "%6")
    for character in (0, 1, 2):
        start.character += 1 if character else 0
        mention = document.mention_at(start)
        assert mention is not None
        assert isinstance(mention.thing, Node)
        assert mention.thing.id == "%6"


def test_names_of_all_kinds_are_told_apart() -> None:
    document = opened(REJECTED)
    entry = "1_mindspore_nn_wrap_cell_wrapper_TrainOneStepCell_construct_21"
    foreign = document.mention_at(at(document, "%7(CNode_328) = Load(", f"$(@{entry}"))
    assert foreign is not None
    assert isinstance(foreign.thing, GraphParameter)
    assert foreign.thing.name == "mid.weight"
    head = document.mention_at(at(document, f"subgraph @{entry}", ""))
    assert head is None
    head = document.mention_at(at(document, "subgraph ", f"@{entry}("))
    assert head is not None
    assert isinstance(head.thing, Graph)


def test_lines_below_a_statement_belong_to_it(tmp_path: Path) -> None:
    document = opened(REJECTED)
    node = document.node_at(at(document, "%8(CNode_23)", "# In file"))
    assert node is not None
    assert node.id == "%8"
    place = document.place_at(at(document, "%8(CNode_23)", "# In file"))
    assert place is not None
    assert (place.path, place.line) == ("net.py", 33)
    assert document.place_at(at(document, "%8(CNode_23)", "# Scope")) is None


def test_a_reference_without_definition_names_nothing() -> None:
    text = "subgraph @f() {\n  %1(a) = Add(%0, %7)\n  Return(%1)\n}\n"
    document = opened(REJECTED, text)
    assert document.mention_at(at(document, "Add(", "%7")) is None
