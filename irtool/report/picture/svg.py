"""Writes a picture as svg by a layout of our own, where graphviz is not there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape as escape_xml
from itertools import pairwise

from irtool.report.picture.colours import Colouring
from irtool.report.picture.layout.place import Area, DrawnLine, Label, Layout, layout
from irtool.report.picture.layout.text_size import LINE_HEIGHT, line_size, text_width
from irtool.report.picture.legend import counts_text, legend_rows
from irtool.report.picture.looks import (
    FONT,
    FONT_SIZE,
    GREY,
    LINE_FONT_SIZE,
    Looks,
    Run,
    Shape,
    TextLine,
)
from irtool.report.picture.model import Box, LegendRow, Picture
from irtool.report.picture.overlay import Overlay
from irtool.report.picture.tooltips import box_tooltip, edge_tooltip
from irtool.report.text import escape, escape_lines, shortened

_EDGE = 14.0
"""Free margin around everything."""
_ARROW = 6.0
_COLUMNS = 4
_KEY = 26.0
_NO_XML = re.compile("[\ufffe\uffff]")
"""Letters that no XML document may hold, beyond those that are escaped anyway."""


def svg_text(picture: Picture, overlays: Sequence[Overlay] = ()) -> str:
    """The picture as an svg document.

    Lines between an operator and what belongs to it (its gradient, its copy) are not drawn: they
    would cross everything between the lanes.

    Args:
        picture: what is drawn.
        overlays: their units and titles; the marks are in the boxes already.

    Raises:
        LookupError: colours by an overlay that is not there.
    """
    looks = Looks(picture, overlays)
    edges = [edge for edge in picture.edges if not looks.is_left_out(edge, ties=False)]
    placed = layout(picture, edges, looks)
    head, head_width, head_height = _head(replace(picture, edges=tuple(edges)), looks)
    width = max(placed.width, head_width) + 2 * _EDGE
    height = placed.height + head_height + 2 * _EDGE
    body = [
        f'<g transform="translate({_EDGE:g} {_EDGE:g})">',
        *head,
        f'<g transform="translate(0 {_n(head_height)})">',
        *_frames(placed, looks, picture),
        *(part for line in placed.lines for part in _line(line, looks)),
        *(_label(label) for label in placed.labels),
        *(part for box in picture.boxes for part in _box(box, placed.boxes[box.id], looks)),
        "</g>",
        "</g>",
    ]
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" '
            f'font-size="{FONT_SIZE}">',
            f"<title>{_xml(picture.title)}</title>",
            f'<rect width="{_n(width)}" height="{_n(height)}" fill="#FFFFFF"/>',
            *body,
            "</svg>\n",
        ]
    )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _xml(text: str) -> str:
    """One line of text: nothing in it is markup or steers a terminal."""
    return escape_xml(_NO_XML.sub("\ufffd", escape(text)), quote=True)


def _spoken(text: str) -> str:
    lines = _NO_XML.sub("\ufffd", escape_lines(text))
    return f"<title>{escape_xml(lines, quote=True)}</title>"


# -- texts ---------------------------------------------------------------------------------------


def _text(line: TextLine, x: float, y: float, anchor: str = "start", default: int = 0) -> str:
    """A line of texts, whose foot is at ``y``."""
    runs = [run for run in line if run.text]
    spans = "".join(f"<tspan{_run_look(run)}>{_xml(run.text)}</tspan>" for run in runs)
    size = f' font-size="{default}"' if default else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{size} xml:space="preserve">'
        f"{spans}</text>"
    )


def _run_look(run: Run) -> str:
    size = f' font-size="{run.size}"' if run.size else ""
    bold = ' font-weight="bold"' if run.bold else ""
    colour = f' fill="{run.colour}"' if run.colour else ""
    return size + bold + colour


def _texts(lines: Iterable[TextLine], x: float, top: float, anchor: str, default: int) -> list[str]:
    texts: list[str] = []
    for line in lines:
        _, height = line_size(line, default)
        size = height / LINE_HEIGHT
        top += height
        texts.append(_text(line, x, top - (LINE_HEIGHT - 1) * size, anchor, default))
    return texts


# -- head ----------------------------------------------------------------------------------------


def _head(picture: Picture, looks: Looks) -> tuple[list[str], float, float]:
    """Title, notes and legend; how wide and how high they are."""
    lines: list[TextLine] = [(Run(shortened(picture.title, 110), 18, bold=True),)]
    notes = [counts_text(picture), *picture.notes]
    lines += [(Run(note, 12, GREY),) for note in notes]
    colours: Colouring = looks.colours
    if colours.title:
        lines.append((Run(f"colours: {colours.title}", 12),))
    parts = _texts(lines, 0, 0, "start", 12)
    sizes = [line_size(line, 12) for line in lines]
    width, y = max(size[0] for size in sizes), sum(size[1] for size in sizes) + 6
    legend = legend_rows(picture, colours, looks.crowded)
    columns = [legend[start::_COLUMNS] for start in range(_COLUMNS)]
    x = 0.0
    for column in columns:
        if not column:
            continue
        for number, row in enumerate(column):
            parts += _legend_row(row, x, y + number * 16)
        x += _KEY + max(text_width(row.text, 10) for row in column) + 18
    return parts, max(width, x), y + 16 * len(columns[0]) + 10


def _legend_row(row: LegendRow, x: float, y: float) -> list[str]:
    parts: list[str] = []
    if row.colour and not row.symbol:
        parts.append(
            f'<rect x="{_n(x)}" y="{_n(y + 1)}" width="20" height="11" fill="{row.colour}" '
            f'stroke="{GREY}" stroke-width="0.6"/>'
        )
    elif row.symbol == "octagon":
        parts.append(_outline("octagon", Area(x, y + 1, 20, 11), f'fill="none" stroke="{GREY}"'))
    elif row.symbol:
        symbol = Run(row.symbol, 12, row.colour or None, bold=bool(row.colour))
        parts.append(_text((symbol,), x + 10, y + 11, "middle"))
    parts.append(_text((Run(row.text, 10),), x + _KEY, y + 10))
    return parts


# -- frames and boxes ----------------------------------------------------------------------------


def _frames(placed: Layout, looks: Looks, picture: Picture) -> Iterable[str]:
    """The frames, outer ones first."""
    frames = {frame.id: frame for frame in picture.frames}
    for id, area in placed.frames.items():
        look = looks.frame(frames[id])
        dashed = ' stroke-dasharray="5 3"' if "dashed" in look.style else ""
        paint = f'fill="{look.fill}" stroke="{look.line}" stroke-width="{look.width}"{dashed}'
        yield f"<g>{_spoken(frames[id].title)}{_rect(area, paint, 6)}</g>"
        yield from _texts(placed.titles[id].lines, area.x + 10, area.y + 3, "start", look.size)


def _box(box: Box, area: Area, looks: Looks) -> Iterable[str]:
    look = looks.box(box)
    dashed = ' stroke-dasharray="5 3"' if look.dashed else ""
    stroke = f'stroke="{look.line}" stroke-width="{look.width}"{dashed}'
    yield f"<g>{_spoken(box_tooltip(box))}"
    if look.doubled:
        yield _outline(look.shape, area, f'fill="none" stroke="{look.line}" stroke-width="1.2"')
        area = Area(area.x + 4, area.y + 4, area.w - 8, area.h - 8)
    yield _outline(look.shape, area, f'fill="{look.fill}" {stroke}')
    lines = looks.texts(box)
    height = sum(line_size(line)[1] for line in lines)
    middle = area.x + area.w / 2
    yield from _texts(lines, middle, area.y + (area.h - height) / 2, "middle", FONT_SIZE)
    yield "</g>"


def _outline(shape: Shape, area: Area, paint: str) -> str:
    x, y, right, bottom = area.x, area.y, area.x + area.w, area.y + area.h
    if shape == "ellipse":
        return _rect(area, paint, area.h / 2)
    if shape == "parallelogram":
        slant = min(12.0, area.w / 4)
        return _polygon([(x + slant, y), (right, y), (right - slant, bottom), (x, bottom)], paint)
    if shape == "octagon":
        cut = min(6.0, area.h / 3)
        return _polygon(
            [(x + cut, y), (right - cut, y), (right, y + cut), (right, bottom - cut),
             (right - cut, bottom), (x + cut, bottom), (x, bottom - cut), (x, y + cut)],
            paint,
        )  # fmt: skip
    if shape == "box3d":
        front = Area(x, y + 4, area.w - 4, area.h - 4)
        back = _polygon([(x, y + 4), (x + 4, y), (right, y), (right, bottom - 4),
                         (right - 4, bottom), (right - 4, y + 4)], paint)  # fmt: skip
        return back + _rect(front, paint, 0)
    if shape == "component":
        tabs = "".join(_rect(Area(x + 3, y + offset, 7, 4), paint, 0) for offset in (4, area.h - 8))
        return _rect(Area(x + 6, y, area.w - 6, area.h), paint, 0) + tabs
    return _rect(area, paint, 5)


def _rect(area: Area, paint: str, radius: float) -> str:
    round = f' rx="{_n(radius)}"' if radius else ""
    return (
        f'<rect x="{_n(area.x)}" y="{_n(area.y)}" width="{_n(area.w)}" height="{_n(area.h)}"'
        f"{round} {paint}/>"
    )


def _polygon(points: Sequence[tuple[float, float]], paint: str) -> str:
    return f'<polygon points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in points)}" {paint}/>'


# -- lines ---------------------------------------------------------------------------------------


def _line(line: DrawnLine, looks: Looks) -> Iterable[str]:
    look = looks.line(line.edge)
    dashed = ' stroke-dasharray="5 3"' if look.dashed else ""
    paint = f'fill="none" stroke="{look.colour}" stroke-width="{look.width}"{dashed}'
    tip = _spoken(edge_tooltip(line.edge, looks.boxes[line.edge.tail], looks.boxes[line.edge.head]))
    yield f"<g>{'' if looks.plain_edges else tip}"
    for piece in line.pieces:
        yield f'<path d="{_path(piece)}" {paint}/>'
    if look.arrow:
        x, y = line.pieces[-1][-1]
        above = line.pieces[-1][-2][1] < y
        back = y - _ARROW if above else y + _ARROW
        points = [(x, y), (x - _ARROW / 2, back), (x + _ARROW / 2, back)]
        yield _polygon(points, f'fill="{look.colour}"')
    yield "</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Straight down and along, in a bow where it is aslant; the bow stays between its ends."""
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(x - to_x) < 0.05 or abs(y - to_y) < 0.05:
            parts.append(f"L{_n(to_x)} {_n(to_y)}")
        else:
            middle = (y + to_y) / 2
            bow = f"{_n(x)} {_n(middle)} {_n(to_x)} {_n(middle)} {_n(to_x)} {_n(to_y)}"
            parts.append(f"C{bow}")
    return "".join(parts)


def _label(label: Label) -> str:
    """The text of a line, on white: where lines cross it, it is still read."""
    area = label.area
    runs = [(replace(run, colour=label.colour),) for run in label.lines]
    texts = _texts(runs, area.x + area.w / 2, area.y + 1, "middle", LINE_FONT_SIZE)
    back = _rect(area, 'fill="#FFFFFF" fill-opacity="0.8"', 2)
    return f"<g>{back}{''.join(texts)}</g>"
