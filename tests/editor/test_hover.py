"""Hover: what a thing is, and what the analyses say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.editor.document import Document
from irtool.editor.features.hover import hover
from tests.editor.opened import BEGIN, REJECTED, VALIDATE, at, opened, text_in


def shown(document: Document, before: str, name: str = "") -> str:
    found = hover(document, at(document, before, name))
    assert found is not None
    return found.contents.value  # type: ignore[union-attr]  # it is always Markdown


def test_a_node_says_what_it_is_before_any_analysis_is_done() -> None:
    text = shown(opened(REJECTED), "%8(CNode_23) = ", "MatMul")
    assert "**%8 MatMul** (CNode\\_23)" in text
    assert "- output: Float32\\[64,512\\], 128.0 KiB" in text
    assert "- strategy: ((2, 4), (1, 2))" in text
    assert "- FLOPs: 33.6 MFLOP" in text  # 2 * 64 * 512 * 512
    assert "- rule: " in text
    assert "- instance name: " in text
    assert "::" not in text
    assert "- used by: %10 BiasAdd (line 83)" in text
    assert "verdict" not in text


def test_a_node_says_what_check_says_once_it_is_done() -> None:
    text = shown(opened(REJECTED, answered=True), "%8(CNode_23) = ", "MatMul")
    assert "- verdict: illegal" in text
    text = shown(opened(BEGIN, answered=True), "%8(CNode_23) = ", "MatMul")
    assert "- verdict: legal" in text
    assert "- input slices: (32, 128), (512, 128)" in text


def test_a_backward_node_names_its_forward_node_and_says_why_it_is_there() -> None:
    document = opened(VALIDATE, answered=True)
    ties = document.answers.ties
    assert ties is not None
    tie = next(
        tie for tie in ties if tie.kind == "gradient" and tie.left in ties.partners(tie.right)
    )
    text = shown(document, f"{tie.right.id}({tie.right.name}) = ")
    assert "- gradient of: " in text
    reduce = next(document.dump.nodes(op="AllReduce"))
    text = shown(document, f"{reduce.id}({reduce.name}) = ")
    assert "- why it is here: " in text
    assert "- group: " in text


def test_a_parameter_says_its_type_users_and_slice() -> None:
    document = opened(BEGIN, answered=True)
    text = shown(document, "%para5_mid.weight")
    assert "**%para5** mid.weight" in text
    assert "- type: Float32\\[512,512\\], 1.0 MiB" in text
    assert "- used by: " in text
    assert "- slice: (512, 512) → (512, 128)" in text


def test_a_graph_says_what_is_in_it() -> None:
    text = shown(opened(BEGIN), "# IR entry: ", "@1")
    assert "statement" in text
    assert "- entry: " in text


def test_the_range_is_that_of_the_name() -> None:
    document = opened(REJECTED)
    found = hover(document, at(document, "%8(CNode_23) = PrimFunc_MatMul(", "%6"))
    assert found is not None
    assert text_in(document, found.range) == "%6"


def test_no_hover_where_nothing_stands() -> None:
    document = opened(REJECTED)
    assert hover(document, at(document, "# Total params")) is None


def test_a_link_leads_to_python_where_the_file_is_here(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("\n" * 40, encoding="utf-8")
    text = shown(opened(REJECTED, folder=tmp_path), "%8(CNode_23) = ", "MatMul")
    assert f"[net.py:33]({(tmp_path / 'net.py').as_uri()}#L33)" in text


@pytest.mark.parametrize("name", ["*x*", "[y](http://z)", "<b>", "a`b", "c\x1b[31md"])
def test_names_of_a_dump_are_shown_as_they_are(name: str) -> None:
    text = f"subgraph @f() {{\n  %1({name}) = Add(F32(1), F32(2))\n  Return(%1)\n}}\n"
    document = opened(REJECTED, text)
    if document.dump.problems:
        return  # such a name was not read, and is not shown
    found = shown(document, "= ", "Add")
    assert f"({name})" not in found
    assert "\x1b" not in found
