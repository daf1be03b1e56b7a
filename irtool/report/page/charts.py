"""Charts as svg: curves, timelines, heat maps and bars.

Each chart stands for itself (its colours are in it, for paper and for viewers of svg); on a page
the stylesheet takes over by class, so that it is right in light and dark.  Values are plain
numbers; ``kind`` says how they are written (:data:`irtool.ir.units.Unit`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape as escape_html
from itertools import pairwise

from irtool.ir.dataclass import dataclass
from irtool.ir.units import quantity_text
from irtool.report.model import Unit
from irtool.report.text import escape, shortened

_COLOURS = (
    "#3b6fb6", "#d1742b", "#3f8f5f", "#b04a73", "#7457b5", "#8a7a2c", "#2c8a93", "#757d8a",
)  # fmt: skip
_WIDTH = 760
_TEXT = "#1a1f29"
_QUIET = "#5a6474"
_GRID = "#dce0e7"
_LEAST = 1e-200
"""What is smaller is drawn as nothing."""
_CHAR = 6.6
"""Width of a character of a label, in pixels (12 px sans serif)."""
_MOST_NAME = 12
"""Characters of a name below an axis."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: points from left to right; ``step`` holds each value until the next point."""

    name: str
    points: Sequence[tuple[float, float]]
    step: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the horizontal axis that deserves a line and a word."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a lane.  Spans with the same ``series`` have the same colour."""

    start: float
    end: float
    label: str
    series: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of a timeline: a stage, a stream, a rank."""

    name: str
    spans: Sequence[Span]


# -- the charts ---------------------------------------------------------------------------


def nothing_to_draw() -> str:
    """A picture that says that there is nothing in it."""
    return _svg(60, [_label(10, 30, "nothing to draw", "quiet")])


def line_chart(
    series: Sequence[Series],
    x_title: str = "",
    y_title: str = "",
    kind: Unit = "number",
    marks: Sequence[Mark] = (),
    limit: float | None = None,
    height: int = 300,
    names: Sequence[str] = (),
) -> str:
    """Curves over one axis from zero.

    Args:
        series: curves of values that are not negative.
        x_title: below the horizontal axis.
        y_title: above the vertical axis.
        kind: unit of the values.
        marks: places on the horizontal axis with a line and a word.
        limit: draws a level that should not be passed; None: none.
        height: of the picture, in pixels.
        names: those of the places 1, 2, … where these are no numbers: written below the axis, and
            with each value where the pointer rests on it.

    Returns:
        an ``<svg>`` element; it says so where there is no point to draw.
    """
    points = [point for item in series for point in item.points]
    if not points:
        return nothing_to_draw()
    ticks = _ticks(max([y for _, y in points] + ([limit] if limit else [])), kind)
    left = 14 + _CHAR * max(len(quantity_text(tick, kind)) for tick in ticks)
    top, bottom, right = 14 + 20 * bool(y_title or len(series) > 1), height - 44, _WIDTH - 16
    low, high = min(x for x, _ in points), max(x for x, _ in points)

    def place(x: float, y: float) -> tuple[float, float]:
        share = (x - low) / (high - low) if high > low else 0.5
        return left + share * (right - left), bottom - y / ticks[-1] * (bottom - top)

    heights = [place(low, tick)[1] for tick in ticks]
    parts = _horizontal_grid(zip(ticks, heights, strict=True), kind, left, right)
    for tick in _inner_ticks(low, high):
        x, _ = place(tick, 0)
        text = quantity_text(tick, "number")
        if names:
            text = shortened(names[int(tick) - 1], _MOST_NAME) if tick == int(tick) else ""
        anchor = "end" if x > right - _CHAR * len(text) / 2 else "middle"
        parts.append(_label(x, bottom + 18, text, "quiet", anchor))
    for index, item in enumerate(series):
        parts += _curve([place(*point) for point in item.points], item, index, bottom, len(series))
        for x, y in item.points if names else ():
            title = f"{names[int(x) - 1]}, {item.name}: {quantity_text(y, kind)}"
            parts.append(_dot(*place(x, y), index, title))
    for mark in marks:
        x, _ = place(mark.x, 0)
        anchor = "end" if x > (left + right) / 2 else "start"
        parts.append(_line(x, top, x, bottom, "mark", "#c3262f", "4 3"))
        parts.append(_label(x + (-6 if anchor == "end" else 6), top + 12, mark.label, "", anchor))
    if limit is not None:
        y = place(low, limit)[1]
        parts.append(_line(left, y, right, y, "mark", "#c3262f", "2 3"))
    parts.append(_label((left + right) / 2, height - 8, x_title, "quiet", "middle"))
    parts += _legend([item.name for item in series], y_title, len(series) > 1)
    return _svg(height, parts)


def timeline(lanes: Sequence[Lane], kind: Unit = "seconds", names: Sequence[str] = ()) -> str:
    """Lanes of spans over time.

    Args:
        lanes: from the top down; the earliest span begins at the left edge.
        kind: unit of beginnings and ends.
        names: those of the series, for the legend; none: no legend.

    Returns:
        an ``<svg>`` element; it says so where there is no span to draw.
    """
    ends = [span.end for lane in lanes for span in lane.spans]
    if not ends:
        return nothing_to_draw()
    start = min(span.start for lane in lanes for span in lane.spans)
    left = 20 + _CHAR * min(24, max(len(lane.name) for lane in lanes))
    top, lane_height, right = 10 + 24 * bool(names), 30, _WIDTH - 16
    length = (max(ends) - start) or 1.0
    bottom = top + lane_height * len(lanes)
    parts = _legend(names, "", bool(names))
    for tick in _ticks(length, kind):
        x = left + tick / length * (right - left)
        if x <= right + 1:
            parts.append(_line(x, top, x, bottom, "grid", _GRID))
            parts.append(_label(x, bottom + 18, quantity_text(tick, kind), "quiet", "middle"))
    for row, lane in enumerate(lanes):
        y = top + row * lane_height
        name = shortened(lane.name, 24)
        parts.append(_label(left - 8, y + 19, name, "", "end"))
        for span in lane.spans:
            x = left + (span.start - start) / length * (right - left)
            width = max(0.5, (span.end - span.start) / length * (right - left) - 0.5)
            title = f"{lane.name}: {span.label}, {quantity_text(span.end - span.start, kind)}"
            parts.append(_box(x, y + 4, width, lane_height - 8, span.series, title))
            if len(span.label) * _CHAR + 4 < width:
                parts.append(_label(x + width / 2, y + 19, span.label, "on", "middle", "#ffffff"))
    return _svg(bottom + 28, parts)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    kind: Unit = "number",
) -> str:
    """A matrix of non-negative values, darker for more; None stays empty.

    Args:
        rows: their names, from the top down.
        columns: their names, from the left.
        values: a row of values for each of ``rows``; 0 stays empty as well.
        kind: unit of the values.

    Returns:
        an ``<svg>`` element.

    Raises:
        ValueError: ``values`` has not one row for each of ``rows``, or a row not one value for each
            of ``columns``.
    """
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise ValueError("a heat map needs a value for each row and column")
    most = max((value for row in values for value in row if value is not None), default=0) or 1
    left = 14 + _CHAR * min(24, max((len(name) for name in rows), default=0))
    size = max(3.0, min(40.0, (_WIDTH - 16 - left) / max(1, len(columns))))
    every = max(1, math.ceil(18 / size))
    top = 14 + _CHAR * min(14, max((len(name) for name in columns), default=0)) * (size < 60)
    parts: list[str] = []
    for column, name in enumerate(columns):
        if column % every == 0:
            x = left + (column + 0.5) * size + 4
            turned = f' transform="rotate(-90 {x:.1f} {top - 6:.1f})"'
            parts.append(_label(x, top - 6, shortened(name, 14), "quiet", more=turned))
    for row, (name, line) in enumerate(zip(rows, values, strict=True)):
        y = top + row * size
        if row % every == 0:
            parts.append(_label(left - 8, y + size / 2 + 4, shortened(name, 24), "", "end"))
        for column, value in enumerate(line):
            if value:
                title = f"{name}, {columns[column]}: {quantity_text(value, kind)}"
                x = left + column * size
                parts.append(
                    f'<rect class="heat" x="{x:.1f}" y="{y:.1f}" width="{size - 0.5:.1f}" '
                    f'height="{size - 0.5:.1f}" fill="{_COLOURS[0]}" '
                    f'fill-opacity="{0.12 + 0.88 * value / most:.3f}">{_title(title)}</rect>'
                )
    right, bottom = left + size * len(columns), top + size * len(rows)
    for x1, y1, x2, y2 in ((left, top, right, top), (left, bottom, right, bottom),
                           (left, top, left, bottom), (right, top, right, bottom)):  # fmt: skip
        parts.append(_line(x1, y1, x2, y2, "grid", _GRID))
    parts.append(_label(left, bottom + 20, f"darkest: {quantity_text(most, kind)}", "quiet"))
    return _svg(bottom + 30, parts)


def bars(
    rows: Sequence[tuple[str, Sequence[float]]], kind: Unit = "number", names: Sequence[str] = ()
) -> str:
    """Horizontal bars, one a row, made of parts side by side.

    Args:
        rows: name and values of each; parts that are not above 0 are not drawn.
        kind: unit of the values; their sum is written behind the bar.
        names: those of the parts, for the legend.

    Returns:
        an ``<svg>`` element.
    """
    totals = [sum(parts) for _, parts in rows]
    most = max(totals, default=0) or 1
    left = 20 + _CHAR * min(30, max((len(name) for name, _ in rows), default=0))
    written = [quantity_text(total, kind) for total in totals]
    right = _WIDTH - 20 - _CHAR * max(map(len, written), default=0)
    top, step = 8 + 24 * (len(names) > 1), 26
    drawn = _legend(names, "", len(names) > 1)
    for row, ((name, parts), text) in enumerate(zip(rows, written, strict=True)):
        x, y = left, top + row * step
        drawn.append(_label(left - 8, y + 16, shortened(name, 30), "", "end"))
        for index, part in enumerate(parts):
            if part > 0:
                width = part / most * (right - left)
                of = f", {names[index]}" if index < len(names) else ""
                drawn.append(
                    _box(
                        x, y + 3, width, step - 8, index, f"{name}{of}: {quantity_text(part, kind)}"
                    )
                )
                x += width
        drawn.append(_label(x + 6, y + 16, text, "quiet"))
    return _svg(top + step * len(rows) + 6, drawn)


def cells(rows: Sequence[tuple[str, Sequence[tuple[str, int, str]]]], names: Sequence[str]) -> str:
    """Rows of small boxes, such as the devices of each server.

    Args:
        rows: name of a row, and of each of its boxes the label, the series, and what it says when
            it is pointed at.
        names: of the series.
    """
    left = 14 + _CHAR * min(24, max((len(name) for name, _ in rows), default=0))
    widest = max((len(row) for _, row in rows), default=0)
    size = max(4.0, min(56.0, (_WIDTH - 16 - left) / max(1, widest)))
    high = min(size, 26.0)
    drawn = _legend(names, "", True)
    top = 32
    for index, (name, row) in enumerate(rows):
        y = top + index * (high + 4)
        drawn.append(_label(left - 8, y + high / 2 + 4, shortened(name, 24), "", "end"))
        for column, (label, series, title) in enumerate(row):
            x = left + column * size
            drawn.append(_box(x, y, size - 2, high, series, title))
            if _CHAR * len(label) < size - 2:
                middle = x + size / 2 - 1
                drawn.append(_label(middle, y + high / 2 + 4, label, "on", "middle", "#ffffff"))
    return _svg(top + len(rows) * (high + 4) + 8, drawn)


# -- pieces ------------------------------------------------------------------------------------


def _curve(
    places: list[tuple[float, float]], item: Series, index: int, bottom: float, count: int
) -> Iterable[str]:
    if not places:
        return
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for _, (x, y) in pairwise(places):
        path += f"H{x:.1f}V{y:.1f}" if item.step else f"L{x:.1f} {y:.1f}"
    colour = _COLOURS[index % len(_COLOURS)]
    series = f"s{index % len(_COLOURS) + 1}"
    if count == 1:
        yield (
            f'<path class="{series} area" d="{path}V{bottom:.1f}H{places[0][0]:.1f}Z" '
            f'fill="{colour}" fill-opacity="0.18"/>'
        )
    yield (
        f'<path class="{series} stroke" d="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="1.8" stroke-linejoin="round">{_title(item.name)}</path>'
    )


def _horizontal_grid(
    ticks: Iterable[tuple[float, float]], kind: Unit, left: float, right: float
) -> list[str]:
    parts: list[str] = []
    for tick, y in ticks:
        parts.append(_line(left, y, right, y, "grid", _GRID))
        parts.append(_label(left - 8, y + 4, quantity_text(tick, kind), "quiet", "end"))
    return parts


def _legend(names: Sequence[str], title: str, wanted: bool) -> list[str]:
    parts: list[str] = []
    x = 10.0
    if title:
        parts.append(_label(x, 14, title, "quiet"))
        x += _CHAR * len(title) + 18
    for index, name in enumerate(names if wanted else ()):
        text = shortened(name, 28)
        parts += [_box(x, 5, 10, 10, index, name), _label(x + 15, 14, text, "")]
        x += 15 + _CHAR * len(text) + 14
    return parts


def _ticks(most: float, kind: Unit) -> list[float]:
    """Round values from zero to beyond ``most``; bytes are round in powers of two."""
    if most < _LEAST:
        return [0.0, 1.0]
    base = 2.0 ** (10 * math.floor(math.log2(most) / 10)) if kind == "bytes" and most >= 1 else 1.0
    step = _round_step(most / base / 4) * base
    return [step * index for index in range(math.ceil(most / step - 1e-9) + 1)]


def _inner_ticks(low: float, high: float) -> list[float]:
    if high - low < _LEAST:
        return [low]
    step = _round_step((high - low) / 6)
    first = math.ceil(low / step - 1e-9)
    ticks = [step * index for index in range(first, math.floor(high / step + 1e-9) + 1)]
    return [float(round(tick, 12)) for tick in ticks]


def _round_step(rough: float) -> float:
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(step * scale for step in (1, 2, 2.5, 5, 10) if step * scale >= rough * 0.999)


def _box(x: float, y: float, width: float, height: float, series: int, title: str) -> str:
    index = series % len(_COLOURS)
    return (
        f'<rect class="s{index + 1} fill" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="2" fill="{_COLOURS[index]}">{_title(title)}</rect>'
    )


def _dot(x: float, y: float, series: int, title: str) -> str:
    index = series % len(_COLOURS)
    return (
        f'<circle class="s{index + 1} fill" cx="{x:.1f}" cy="{y:.1f}" r="3" '
        f'fill="{_COLOURS[index]}">{_title(title)}</circle>'
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, name: str, colour: str, dashes: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}"{dashed}/>'
    )


def _label(
    x: float,
    y: float,
    text: str,
    name: str,
    anchor: str = "start",
    colour: str = "",
    more: str = "",
) -> str:
    colour = colour or (_QUIET if name == "quiet" else _TEXT)
    return (
        f'<text class="{escape_html(name)}" x="{x:.1f}" y="{y:.1f}" fill="{colour}" '
        f'text-anchor="{anchor}"{more}>{_xml(text)}</text>'
    )


def _title(text: str) -> str:
    return f"<title>{_xml(text)}</title>"


def _xml(text: str) -> str:
    # Not of xml.sax, which imports half of what Python has for the network.
    return escape_html(escape(text), quote=False)


def _svg(height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{_WIDTH}" '
        f'height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}" font-family="sans-serif" '
        f'font-size="12">\n{chr(10).join(parts)}\n</svg>\n'
    )
