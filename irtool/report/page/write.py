"""Writes a page: one template, one stylesheet, our scripts, and the data in compressed form."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from html import escape as escape_html
from importlib.resources import files
from string import Template
from urllib.parse import quote

from irtool.ir.units import plural
from irtool.report.model import (
    Cell,
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
from irtool.report.page.cells import cell_parts, shown_text
from irtool.report.page.svg import clean_svg
from irtool.report.plain import cell_text
from irtool.report.text import escape

_STATIC_ROWS = 50
"""Rows of a table that stand in the page itself, for those who read it without scripts; the
script replaces them by all of them."""

_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def render_page(page: Report) -> str:
    """The page as one html file that needs nothing else: no network, no other file.

    Args:
        page: the report, pictures and graph included.
    """
    elements = _titled(page.elements)
    graph = next((item for item in elements if isinstance(item, Explorer)), None)
    tables = [item for item in elements if isinstance(item, Table)]
    style = _asset("page.css") + (_asset("graph.css") if graph else "")
    script = _script(graph is not None)
    data = {
        "tables": [[[cell_parts(cell, column) for cell, column in
                     zip(row, table.columns, strict=True)] for row in table.rows]
                   for table in tables],
        "graph": graph.data if graph else None,
    }  # fmt: skip
    return Template(_asset("page.html")).substitute(
        policy=_POLICY.format(script=_digest(script), style=_digest(style)),
        title=_text(page.title),
        style=style,
        tone=page.answer.tone,
        answer=_text(page.answer.text),
        details="".join(f"<p>{_text(line)}</p>" for line in page.answer.details),
        shape=_shape(elements),
        **_placed(elements),
        data=_packed(data),
        script=script,
    )


def _titled(elements: Iterable[Element]) -> list[Element]:
    """Elements of which each heading is the title of the one behind it, where that has none."""
    titled: list[Element] = []
    for element in elements:
        before = titled[-1] if titled else None
        takes_title = isinstance(element, Facts | Table) and not element.title
        if isinstance(before, Heading) and takes_title:
            titled.pop()
            element = replace(element, title=before.text)
        titled.append(element)
    return titled


def _shape(elements: Sequence[Element]) -> str:
    """How the page is laid out, for the stylesheet.

    ``graph``: nothing but a graph; ``both``: something stands beside the text; ``wide``: a graph
    stands between text and tables; ``text``: neither.
    """
    if len(elements) == 1 and isinstance(elements[0], Explorer):
        return "graph"
    beside = [_is_beside(item, elements) for item in elements]
    if any(beside) and not all(beside):
        return "both"
    return "wide" if any(isinstance(item, Explorer) for item in elements) else "text"


# -- elements ----------------------------------------------------------------------------------


_KINDS: dict[type, str] = {
    Heading: "text", Note: "text", Facts: "facts", FindingCards: "findings", Table: "table",
    Picture: "picture", Explorer: "graph",
}  # fmt: skip
"""What the stylesheet calls each element."""


_GRAPH_LINES = 40
"""How many lines of text are as high as the graph (``.viewer`` in graph.css: 78 % of the window,
900 px at most) where the window is 1,000 px high and a line 20 px."""
_COLUMN_WIDTH = 80
"""Characters in a line of the text that something stands beside, in a window of 1,400 px."""


def _is_beside(element: Element, elements: Sequence[Element]) -> bool:
    """Whether an element stands beside the text of its page.

    Pictures are about as high as the facts that they show. A graph is as high as the window: text
    that is less than half of that would leave most of its side blank, so the graph follows it over
    the whole width.
    """
    if isinstance(element, Explorer):
        return sum(map(_lines_of, _text_of(elements))) * 2 >= _GRAPH_LINES
    return isinstance(element, Picture)


def _text_of(elements: Sequence[Element]) -> list[Element]:
    """What stands ahead of the first table, pictures and the graph left out."""
    text: list[Element] = []
    for element in elements:
        if isinstance(element, Table):
            break
        if not isinstance(element, Explorer | Picture):
            text.append(element)
    return text


def _lines_of(element: Element) -> int:
    """About how many lines an element takes in a column of text."""
    match element:
        case Facts():
            return _lines_of_facts(element.pairs) + bool(element.title)
        case FindingCards():
            return sum(
                2 + _wrapped(item.message) + _lines_of_facts(item.facts)
                for item in element.findings
            )
        case Note() | Heading():
            return 1 + sum(map(_wrapped, element.text.split("\n")))
        case _:
            return 0


def _lines_of_facts(pairs: Iterable[tuple[str, Cell]]) -> int:
    return sum(_wrapped(f"{label} {cell_text(value)}") for label, value in pairs)


def _wrapped(text: str) -> int:
    return 1 + len(text) // _COLUMN_WIDTH


def _placed(elements: Sequence[Element]) -> dict[str, str]:
    """The sections by where they stand.

    Text ahead of the first table, what stands beside that text, and everything else below both,
    where a graph and tables have the whole width; the graph first, as tables lead into it.
    """
    places: dict[str, list[str]] = {"column": [], "beside": [], "graph": [], "below": []}
    table = 0
    for index, element in enumerate(elements):
        is_table = isinstance(element, Table)
        if _is_beside(element, elements):
            place = "beside"
        elif isinstance(element, Explorer):
            place = "graph"
        else:
            place = "below" if is_table or table else "column"
        places[place].append(_section(element, index, table))
        table += is_table
    places["below"] = places.pop("graph") + places["below"]
    return {place: "\n".join(sections) for place, sections in places.items()}


def _section(element: Element, index: int, table: int) -> str:
    name = element.text if isinstance(element, Heading) else getattr(element, "title", "")
    title = f"<h2>{_text(name)}</h2>" if name else ""
    kind = _KINDS[type(element)]
    body = _body(element, table)
    return f'<section class="section of-{kind}" id="section-{index}">{title}{body}</section>'


def _body(element: Element, table: int) -> str:
    match element:
        case Heading():
            return ""
        case Note():
            if element.page:
                return f'<p><a href="{_text(quote(element.page))}">{_lines(element.text)}</a></p>'
            tag = "pre" if element.verbatim else "p"
            return f"<{tag}>{_lines(element.text)}</{tag}>"
        case Facts():
            return _facts(element.pairs)
        case FindingCards():
            rest = plural(element.left_out, "more finding")
            note = f'<p class="note">… {rest}</p>' if element.left_out else ""
            return "".join(map(_finding, element.findings)) + note
        case Table():
            return _table(element, table)
        case Picture():
            note = f'<p class="note">{_text(element.note)}</p>' if element.note else ""
            label = escape_html(escape(element.description))
            return (
                f'<figure class="picture" role="img" aria-label="{label}" tabindex="0">'
                f"{clean_svg(element.svg)}</figure>{note}"
            )
        case Explorer():
            return (
                '<div class="viewer" id="viewer"><noscript>The graph needs JavaScript.</noscript>'
                '<p class="waiting">Drawing the graph…</p></div>'
            )


def _facts(pairs: Iterable[tuple[str, Cell]]) -> str:
    rows = "".join(f"<dt>{_text(label)}</dt><dd>{_linked(value)}</dd>" for label, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def _finding(item: FindingCard) -> str:
    code = f'<code class="code">{_text(item.code)}</code>' if item.code else ""
    return (
        f'<article class="finding {item.severity}"><h3><span class="severity">{item.severity}'
        f"</span> {_text(item.message)} {code}</h3>{_facts(item.facts)}</article>"
    )


def _table(table: Table, index: int) -> str:
    heads = "".join(
        f'<th scope="col" class="{_kind(column)}" aria-sort="none">'
        f'<button type="button">{_text(column.title)}</button></th>'
        for column in table.columns
    )
    rows = "".join(
        "<tr>" + "".join(
            f'<td class="{_kind(column)}">{escape_html(shown_text(cell, column))}</td>'
            for cell, column in zip(row, table.columns, strict=True)
        ) + "</tr>"
        for row in table.rows[:_STATIC_ROWS]
    )  # fmt: skip
    left_out = f"… {plural(table.left_out, f'more {table.noun}')}" if table.left_out else ""
    notes = "".join(f'<p class="note">{_text(text)}</p>' for text in (left_out, table.note) if text)
    label = escape_html(escape(table.title or "table"))
    return (
        f'<div class="table" data-table="{index}" data-label="{label}">'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><thead><tr>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div></div>{notes}"
    )


def _kind(column: Column) -> str:
    """What the stylesheet calls a column: by its unit, and whether long words in it are broken."""
    return f"{column.unit} wraps" if column.wraps else column.unit


def _linked(value: Cell) -> str:
    if isinstance(value, Link):
        key = escape_html(escape(value.node))
        return f'<span class="link" data-node="{key}">{_text(value.text)}</span>'
    return _lines(value) if isinstance(value, str) else escape_html(cell_text(value))


def _text(text: str) -> str:
    return escape_html(escape(text))


def _lines(text: str) -> str:
    return "\n".join(_text(line) for line in text.split("\n"))


# -- pieces of the file ------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    return (files("irtool.report.page") / "assets" / name).read_text(encoding="utf-8")


_SCRIPTS = (
    "page.js", "lookup.js", "layout.js", "model.js", "picture.js", "draw.js", "paint.js",
    "words.js", "map.js", "search.js", "panel.js", "keys.js", "pointer.js", "steps.js", "viewer.js",
)  # fmt: skip
"""In the order in which a page with a graph holds them; any other has the first alone."""

_COMMENTS = re.compile(r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)
"""Lines that hold nothing but a comment."""


@cache
def _script(graph: bool) -> str:
    names = _SCRIPTS if graph else _SCRIPTS[:1]
    bodies = "\n".join(without_comments(_asset(name)) for name in names)
    return f'(() => {{\n"use strict";\n{bodies}\nstart();\n}})();\n'


def without_comments(script: str) -> str:
    """A script without the lines that hold nothing but comments: no page need carry them.

    Args:
        script: that has no text over several lines, in which a line could look like a comment.
    """
    return _COMMENTS.sub("", script)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _packed(data: object) -> str:
    """JSON, deflated without a header, in base64: the script reads it with DecompressionStream."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    return base64.b64encode(packed).decode()
