"""Texts of a picture in graphviz's language: labels are html-like, tooltips plain; all escaped."""

from __future__ import annotations

from html import escape as escape_html

from irtool.ir.units import bytes_text, count_text, plural
from irtool.report.picture.colours import Colouring
from irtool.report.picture.legend import legend_rows
from irtool.report.picture.model import Box, Edge, LegendRow, Picture
from irtool.report.text import escape, shortened

_TITLE = 44
_MOST_NODES = 6
_LONGEST = 200
_COLUMNS = 4


def html(text: str) -> str:
    """Text inside graphviz's html-like labels: nothing in it is markup or steers a terminal."""
    return escape_html(escape(text), quote=True) or " "


def plain(text: str) -> str:
    """Text of a quoted attribute: backslashes and entities stay what they are."""
    lines = (
        escape_html(shortened(escape(line), _LONGEST), quote=False) for line in text.split("\n")
    )
    return "\\n".join(line.replace("\\", "\\\\") for line in lines)


def small(text: str, size: int, colour: str = "#444444", bold: bool = False) -> str:
    """A line in a smaller font; nothing for no text."""
    if not text:
        return ""
    inner = f"<B>{html(text)}</B>" if bold else html(text)
    return f'<FONT POINT-SIZE="{size}" COLOR="{colour}">{inner}</FONT>'


def head_label(picture: Picture, colours: Colouring, crowded: bool) -> str:
    """Title and legend, as one table above the picture."""
    title = html(shortened(picture.title, 110))
    rows = [_wide(f'<B><FONT POINT-SIZE="18">{title}</FONT></B>')]
    notes = (_counts(picture), *picture.notes)
    rows += [_wide(f'<FONT COLOR="#555555">{html(note)}</FONT>') for note in notes]
    if colours.title:
        rows.append(_wide(f"colours: {html(colours.title)}"))
    legend = legend_rows(picture, colours, crowded)
    for start in range(0, len(legend), _COLUMNS):
        some = legend[start : start + _COLUMNS]
        cells = "".join(_legend_cell(row) for row in some)
        rows.append(f"<TR>{cells}{'<TD></TD><TD></TD>' * (_COLUMNS - len(some))}</TR>")
    style = 'BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="2"'
    return f"<<TABLE {style}>{''.join(rows)}</TABLE>>"


def _wide(text: str) -> str:
    return f'<TR><TD ALIGN="LEFT" COLSPAN="{2 * _COLUMNS}">{text}</TD></TR>'


def _counts(picture: Picture) -> str:
    boxes = sum(box.kind not in ("parameter", "input") for box in picture.boxes)
    text = f"{plural(picture.shown, 'operator')} in {count_text(boxes)} box{'es' * (boxes != 1)}"
    if picture.hidden:
        text += f"; {count_text(picture.hidden)} loads, monads and tuples are not drawn"
    if picture.left_out:
        text += f"; {plural(picture.left_out, 'operator')} not asked for"
    return text


def _legend_cell(row: LegendRow) -> str:
    if row.colour and row.symbol:
        symbol = f'<FONT COLOR="{row.colour}"><B>{html(row.symbol)}</B></FONT>'
        key = f'<TD WIDTH="22">{symbol}</TD>'
    elif row.colour:
        key = f'<TD BGCOLOR="{row.colour}" BORDER="1" COLOR="#555555" WIDTH="22"></TD>'
    else:
        key = f'<TD WIDTH="22">{html(row.symbol)}</TD>'
    # Fonts that stand in for Helvetica are wider than graphviz thinks.
    text = html(row.text) + 3 * "&#160;"
    return f'{key}<TD ALIGN="LEFT"><FONT POINT-SIZE="10">{text}</FONT></TD>'


def frame_title(title: str) -> str:
    """The inner ones of a way of scopes, which tell more than the outer ones."""
    parts = title.split(" / ")
    while len(parts) > 2 and len(" / ".join(parts)) > _TITLE:
        parts = ["…", *parts[2 if parts[0] == "…" else 1 :]]
    return shortened(" / ".join(parts), 2 * _TITLE)


def edge_label(edge: Edge, tail: Box) -> str:
    """How many, shape and bytes; what parameters hold stands in their boxes."""
    lines: list[str] = []
    if tail.kind not in ("parameter", "input") or edge.note or "→" in edge.label:
        lines = [edge.label] if edge.label and edge.label != "scalar" else []
        if edge.bytes:
            lines.append(bytes_text(edge.bytes))
    if edge.count > 1:
        lines = [f"× {count_text(edge.count)}", *lines]
    text = "<BR/>".join(html(line) for line in lines if line)
    if edge.note:
        text += f"{'<BR/>' if text else ''}<B>{html(shortened(edge.note, 40))}</B>"
    return f"<{text}>" if text else ""


def edge_tooltip(edge: Edge, tail: Box, head: Box) -> str:
    """From where to where, and what."""
    note = f"\n{edge.note}" if edge.note else ""
    what = " · ".join(filter(None, (edge.label, bytes_text(edge.bytes) if edge.bytes else "")))
    return f"{tail.title} → {head.title}\n{what}{note}".rstrip()


def box_tooltip(box: Box) -> str:
    """What a box holds, and where its statements stand in the dump."""
    lines = [f"{box.title}" + (f" × {box.repeats}" if box.repeats > 1 else ""), *box.lines]
    if box.strategy:
        lines.append(f"strategy {box.strategy}")
    lines += [
        f"{node.id} {node.op}, line {node.line}: {node.full_name or node.scope or ''}"
        for node in box.nodes[:_MOST_NODES]
    ]
    if len(box.nodes) > _MOST_NODES:
        lines.append(f"… and {len(box.nodes) - _MOST_NODES} more")
    return "\n".join(lines)
