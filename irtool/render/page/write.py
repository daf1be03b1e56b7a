"""Writes a page: one template, one stylesheet, our scripts, and the data in compressed form."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape as escape_html
from importlib.resources import files
from string import Template

from irtool.render.page.cells import cell_parts
from irtool.render.page.page import (
    FactsSection,
    Finding,
    FindingsSection,
    GraphSection,
    Link,
    Page,
    PictureSection,
    Section,
    TableSection,
    TextSection,
)
from irtool.render.page.svg import clean_svg
from irtool.render.text import escape, plural

_STATIC_ROWS = 50
"""Rows of a table that stand in the page itself, for those who read it without scripts; the
script replaces them by all of them."""

_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def render_page(page: Page) -> str:
    """The page as one html file that needs nothing else: no network, no other file."""
    graph = next((item for item in page.sections if isinstance(item, GraphSection)), None)
    tables = [item for item in page.sections if isinstance(item, TableSection)]
    style = _asset("page.css") + (_asset("graph.css") if graph else "")
    script = _script(graph is not None)
    data = {
        "tables": [[[cell_parts(cell, column.kind) for cell, column in
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
        shape=_shape(page),
        sections=_sections(page.sections, beside=False),
        beside=_sections(page.sections, beside=True),
        data=_packed(data),
        script=script,
    )


def _shape(page: Page) -> str:
    """``graph``: nothing but a graph; ``both``: something stands beside the text; ``text``."""
    beside = [isinstance(item, GraphSection | PictureSection) for item in page.sections]
    if len(beside) == 1 and isinstance(page.sections[0], GraphSection):
        return "graph"
    return "both" if any(beside) and not all(beside) else "text"


# -- sections ----------------------------------------------------------------------------------


def _sections(sections: Sequence[Section], beside: bool) -> str:
    chosen: list[str] = []
    table = 0
    for index, section in enumerate(sections):
        if isinstance(section, GraphSection | PictureSection) is beside:
            title = f"<h2>{_text(section.title)}</h2>" if section.title else ""
            kind = type(section).__name__.removesuffix("Section").lower()
            body = _body(section, table)
            chosen.append(
                f'<section class="section of-{kind}" id="section-{index}">{title}{body}</section>'
            )
        table += isinstance(section, TableSection)
    return "\n".join(chosen)


def _body(section: Section, table: int) -> str:
    match section:
        case TextSection():
            tag = "pre" if section.verbatim else "p"
            return "".join(f"<{tag}>{_lines(text)}</{tag}>" for text in section.paragraphs)
        case FactsSection():
            return _facts(section.pairs)
        case FindingsSection():
            rest = plural(section.left_out, "more finding")
            note = f'<p class="note">… {rest}</p>' if section.left_out else ""
            return "".join(map(_finding, section.findings)) + note
        case TableSection():
            return _table(section, table)
        case PictureSection():
            note = f'<p class="note">{_text(section.note)}</p>' if section.note else ""
            label = escape_html(escape(section.description))
            return (
                f'<figure class="picture" role="img" aria-label="{label}" tabindex="0">'
                f"{clean_svg(section.svg)}</figure>{note}"
            )
        case GraphSection():
            return (
                '<div class="viewer" id="viewer"><noscript>The graph needs JavaScript.</noscript>'
                '<p class="waiting">Drawing the graph…</p></div>'
            )


def _facts(pairs: Iterable[tuple[str, str | Link]]) -> str:
    rows = "".join(f"<dt>{_text(label)}</dt><dd>{_linked(value)}</dd>" for label, value in pairs)
    return f'<dl class="facts">{rows}</dl>'


def _finding(item: Finding) -> str:
    code = f'<code class="code">{_text(item.code)}</code>' if item.code else ""
    return (
        f'<article class="finding {item.severity}"><h3><span class="severity">{item.severity}'
        f"</span> {_text(item.message)} {code}</h3>{_facts(item.facts)}</article>"
    )


def _table(section: TableSection, index: int) -> str:
    heads = "".join(
        f'<th scope="col" class="{column.kind}" aria-sort="none">'
        f'<button type="button">{_text(column.title)}</button></th>'
        for column in section.columns
    )
    rows = "".join(
        "<tr>" + "".join(
            f'<td class="{column.kind}">{_text(cell_parts(cell, column.kind)[0])}</td>'
            for cell, column in zip(row, section.columns, strict=True)
        ) + "</tr>"
        for row in section.rows[:_STATIC_ROWS]
    )  # fmt: skip
    note = f'<p class="note">{_text(section.note)}</p>' if section.note else ""
    label = escape_html(escape(section.title or "table"))
    return (
        f'<div class="table" data-table="{index}" data-label="{label}">'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><thead><tr>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div></div>{note}"
    )


def _linked(value: str | Link) -> str:
    if isinstance(value, Link):
        key = escape_html(escape(value.node))
        return f'<span class="link" data-node="{key}">{_text(value.text)}</span>'
    return _lines(value)


def _text(text: str) -> str:
    return escape_html(escape(text))


def _lines(text: str) -> str:
    return "\n".join(_text(line) for line in text.split("\n"))


# -- pieces of the file ------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    return (files("irtool.render.page") / "assets" / name).read_text(encoding="utf-8")


@cache
def _script(graph: bool) -> str:
    names = (
        ("page.js", "layout.js", "model.js", "draw.js", "paint.js", "viewer.js")
        if graph
        else ("page.js",)
    )
    bodies = "\n".join(_asset(name) for name in names)
    return f'(() => {{\n"use strict";\n{bodies}\nstart();\n}})();\n'


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _packed(data: object) -> str:
    """JSON, deflated without a header, in base64: the script reads it with DecompressionStream."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    return base64.b64encode(packed).decode()
