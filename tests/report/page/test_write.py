"""Pages as files: self-contained, escaped, and of one form."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from typing import Any

import pytest

from irtool.report.model import (
    Amount,
    Answer,
    Column,
    Element,
    Explorer,
    Facts,
    FindingCard,
    FindingCards,
    Heading,
    Link,
    Note,
    Picture,
    Report,
    Table,
)
from irtool.report.page.cells import cell_parts
from irtool.report.page.svg import NoPicture, clean_svg
from irtool.report.page.write import render_page

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0L9 9"/></svg>'


def page(*sections: Element) -> str:
    return render_page(Report("title", Answer("answer"), sections))


def payload(text: str) -> Any:
    found = re.search(r'id="data">([^<]*)</script>', text)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1]), -15))


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def every_kind(text: str) -> list[Element]:
    return [
        Heading(text),
        Note(text),
        Note(text, verbatim=True),
        Facts([(text, text), (text, Link(text, text))], text),
        FindingCards(text, [FindingCard("error", text, text, [(text, text)])], 3),
        Table(text, [Column(text)], [[text], [Link(text, text)]], note=text),
        Picture(text, SVG, text, text),
    ]


def test_the_policy_allows_this_page_its_own_script_and_style_and_nothing_else() -> None:
    text = page(Explorer("g", {}))
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(script) == len(style) == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert f"'sha256-{digest(script[0])}'" in policy[1]
    assert f"'sha256-{digest(style[0])}'" in policy[1]
    assert "unsafe" not in policy[1]


def test_a_page_refers_to_nothing_outside_itself() -> None:
    text = page(*every_kind("x"), Explorer("g", {}))
    outside = set(re.findall(r"https?://[^\"'\s<>)]+", text))
    assert outside == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", text) == []


def test_every_text_is_escaped() -> None:
    text = render_page(Report(EVIL, Answer(EVIL, "bad", [EVIL]), every_kind(EVIL)))
    body = text[: text.index('<script type="application')]
    assert "<script" not in body
    assert "<img" not in body
    assert "\x1b" not in body
    assert "\u202e" not in body
    assert "&lt;script&gt;alert(1)" in body


def test_a_lone_surrogate_does_not_stop_a_page() -> None:
    text = page(*every_kind("bytes \udcff\ud800"))
    text.encode("utf-8")
    assert "\\xff" in text


def test_the_answer_stands_first() -> None:
    text = render_page(Report("q", Answer("refused", "bad", ["why"]), every_kind("x")))
    assert text.index("refused") < text.index("why") < text.index('class="section')
    assert 'class="answer bad"' in text


def test_pictures_and_graph_stand_beside() -> None:
    text = page(*every_kind("x"))
    assert '<body class="both">' in text
    assert text.index('class="beside"') < text.index("<figure")
    assert '<body class="graph">' in page(Explorer("g", {}))
    assert '<body class="text">' in page(Note("y"))


@pytest.mark.parametrize(("lines", "place"), [(19, "below"), (20, "beside")])
def test_a_graph_stands_beside_text_of_half_its_height(lines: int, place: str) -> None:
    facts = Facts([(f"fact {number}", "x") for number in range(lines)])
    text = page(facts, Table("T", [Column("n")], [[1]]), Explorer("g", {}))
    sections = text[text.index(f'<div class="{place}">') :]
    assert sections.index(">g</h2>") < sections.index(">T</h2>")  # tables lead into it
    assert (text.index('<div class="below">') < text.index(">g</h2>")) is (place == "below")
    assert f'<body class="{"both" if place == "beside" else "wide"}">' in text


def test_long_texts_count_with_the_lines_that_they_wrap_to() -> None:
    facts = Facts([(f"fact {number}", "x" * 80) for number in range(10)])
    assert '<body class="both">' in page(facts, Explorer("g", {}))
    card = FindingCard("error", "x", facts=[("a", "b")] * 2)
    assert '<body class="both">' in page(FindingCards("", [card] * 4), Explorer("g", {}))
    assert '<body class="wide">' in page(FindingCards("", [card] * 3), Explorer("g", {}))


def test_a_page_without_a_graph_does_not_carry_its_script() -> None:
    assert len(page(Note("y"))) < 20_000 < len(page(Explorer("g", {})))


def test_two_graphs_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="at most one graph to explore, not 2"):
        Report("t", Answer("a"), [Explorer("g", {}), Explorer("h", {})])


def test_all_rows_of_a_table_are_on_the_page() -> None:
    rows = [[n] for n in range(3000)]
    text = page(Table("t", [Column("n", "number")], rows))
    assert len(payload(text)["tables"][0]) == 3000
    assert text.count("<tr>") == 51  # the head, and some for those who read without scripts


# -- cells -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("a\nb\tc", "text", ("a\nb\\tc", None, None)),
        (None, "number", ("", None, None)),
        (12345, "number", ("12,345", 12345, None)),
        (1536, "bytes", ("1.5 KiB", 1536, None)),
        (0.0032, "seconds", ("3.2 ms", 0.0032, None)),
        (150.0, "seconds", ("2.5 min", 150, None)),
        (0.25, "share", ("25.0 %", 0.25, None)),
        (float("inf"), "seconds", ("∞", 1e308, None)),
        (float("nan"), "number", ("not a number", None, None)),
        (Amount(7, "bytes", "2 unknown"), "number", ("2 unknown", 7, None)),
        (Amount(0.5, "share"), "text", ("50.0 %", 0.5, None)),
        (Amount(None, "bytes"), "bytes", ("?", None, None)),
        (Link("%12 MatMul", "3:%12"), "text", ("%12 MatMul", 12, "3:%12")),
        (Link("weight", "k"), "text", ("weight", None, "k")),
    ],
)
def test_a_cell_has_a_text_a_key_and_a_node(cell: Any, kind: Any, expected: Any) -> None:
    assert cell_parts(cell, Column("c", kind)) == expected


# -- headings and what text cuts ---------------------------------------------------------------


def test_a_heading_is_the_title_of_what_has_none() -> None:
    text = page(
        Heading("first"), Facts([("a", "b")]), Heading("second"), Table("own", [Column("n")], []),
        Heading("last"),
    )  # fmt: skip
    assert re.findall("<h2>(.*?)</h2>", text) == ["first", "second", "own", "last"]


def test_rows_that_text_hides_are_on_the_page_and_those_not_made_are_announced() -> None:
    table = Table("t", [Column("n", "number")], [[1], [2], [3]], left_out=7, most=1)
    text = page(table)
    assert [row[0][0] for row in payload(text)["tables"][0]] == ["1", "2", "3"]
    assert "… 7 more rows" in text


# -- pictures ----------------------------------------------------------------------------------


def test_a_picture_keeps_what_draws() -> None:
    text = clean_svg(
        '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "x" "y"><svg xmlns="http://www.w3.org/2000/svg"'
        ' viewBox="0 0 9 9"><g id="g"><title>a &lt; b</title><path d="M0 0" fill="#fff"/></g></svg>'
    )
    assert 'viewBox="0 0 9 9"' in text
    assert "<title>a &lt; b</title>" in text
    assert 'd="M0 0"' in text


@pytest.mark.parametrize(
    "part",
    [
        "<script>alert(1)</script>",
        "<foreignObject><b>x</b></foreignObject>",
        "<style>@import url(//x)</style>",
        '<image href="//x"/>',
        '<use href="#a"/>',
        '<path d="M0 0" onclick="alert(1)"/>',
        '<path d="M0 0" style="fill:url(//x)"/>',
        '<path d="M0 0" fill="url(//x)"/>',
        '<animate attributeName="href" values="javascript:alert(1)"/>',
    ],
)
def test_a_picture_loses_what_could_act(part: str) -> None:
    text = clean_svg(f'<svg xmlns="http://www.w3.org/2000/svg">{part}</svg>')
    for word in ("alert", "//x", "onclick", "href", "foreign"):
        assert word not in text.replace("http://www", "")


def test_a_link_in_a_picture_is_replaced_by_what_it_holds() -> None:
    text = clean_svg(
        '<svg xmlns="http://www.w3.org/2000/svg"><a href="javascript:x"><g><path d="M1 1"/></g></a>'
        "</svg>"
    )
    assert "javascript" not in text
    assert 'd="M1 1"' in text


@pytest.mark.parametrize("text", ["", "no picture", "<svg><g></svg>", "<p>x</p>", "<svg/><svg/>",
                                  '<!DOCTYPE x [<!ENTITY a "b">]><svg/>'])  # fmt: skip
def test_what_is_no_picture_is_refused(text: str) -> None:
    with pytest.raises(NoPicture):
        clean_svg(text)
