"""The legend: a row for each colour, shape, border and line that a picture holds, and no other."""

from __future__ import annotations

from irtool.ir.units import count_text, plural
from irtool.report.picture.colours import SEVERITIES, Colouring, severities_in
from irtool.report.picture.model import LegendRow, Picture
from irtool.report.picture.ranking import same_lane

MOVE = "#AA3377"
"""Colour of lines on which MindSpore will insert operators."""
SENT = "#CC3311"
"""Colour of lines from Send to Receive."""
ACROSS = "#BBBBBB"
"""Colour of lines between lanes."""

_SHAPES = (
    ("scope", "closed scope: several operators", "▤"),
    ("parameter", "weight or state", "○"),
    ("input", "input of the network", "▱"),
    ("call", "call that is not inlined", "▭"),
)
_LINES = (
    ("data", "value, with shape and bytes", "→"),
    ("repeat", "to the next repeat", "⇢"),
    ("tie", "belong together: forward and backward, weight and update", "┄"),
    ("recompute", "copy computed again", "┄"),
    ("call", "result of what is called", "⇢"),
    ("order", "order only, or through what is left out", "⇢"),
)


def counts_text(picture: Picture) -> str:
    """How much of a dump the picture shows.

    Args:
        picture: with the numbers of statements shown, hidden and not asked for.
    """
    boxes = sum(box.kind not in ("parameter", "input") for box in picture.boxes)
    text = f"{plural(picture.shown, 'operator')} in {count_text(boxes)} box{'es' * (boxes != 1)}"
    if picture.hidden:
        text += f"; {count_text(picture.hidden)} loads, monads and tuples are not drawn"
    if picture.left_out:
        text += f"; {plural(picture.left_out, 'operator')} not asked for"
    return text


def legend_rows(picture: Picture, colours: Colouring, crowded: bool = False) -> list[LegendRow]:
    """Rows of the legend, colours first.

    Args:
        picture: only what it holds is explained.
        colours: with their own rows.
        crowded: whether the picture has so many boxes that ties are shown by height alone.
    """
    kinds = {box.kind for box in picture.boxes}
    lines = {edge.kind for edge in picture.edges}
    rows = list(colours.rows)
    if picture.colour_by != "op" and any(box.groups for box in picture.boxes):
        rows.append(LegendRow("collective", symbol="octagon"))
    rows += [LegendRow(text, symbol=symbol) for kind, text, symbol in _SHAPES if kind in kinds]
    if any(box.repeats > 1 for box in picture.boxes) or any(
        frame.repeats > 1 for frame in picture.frames
    ):
        rows.append(LegendRow("so many of equal structure, drawn once", symbol="× n"))
    for severity in severities_in(picture.boxes):
        colour, word = SEVERITIES[severity]
        rows.append(LegendRow(f"border: {word}", colour, "▢"))
    if any(box.focus for box in picture.boxes):
        rows.append(LegendRow("asked for", symbol="◎"))
    if any(edge.note and edge.kind == "data" for edge in picture.edges):
        rows.append(LegendRow("redistribution that MindSpore will insert", MOVE, "→"))
    if "transfer" in lines:
        rows.append(LegendRow("sent to another stage", SENT, "→"))
    rows += _bundles(picture, crowded)
    if crowded and "tie" in lines:
        rows.append(LegendRow("on one level: an operator and its gradient", symbol="↔"))
    lines -= {"tie", "recompute"} if crowded else set()
    rows += [LegendRow(text, symbol=symbol) for kind, text, symbol in _LINES if kind in lines]
    return rows


def _bundles(picture: Picture, crowded: bool) -> list[LegendRow]:
    """Rows for lines of several values, and for those between lanes."""
    boxes = {box.id: box for box in picture.boxes}
    edges = [edge for edge in picture.edges if edge.kind == "data" and not edge.note]
    within = [same_lane(boxes[edge.tail], boxes[edge.head]) for edge in edges]
    rows: list[LegendRow] = []
    if any(edge.count > 1 for edge, inside in zip(edges, within, strict=True) if inside):
        rows.append(LegendRow("× n on a line: so many values", symbol="━"))
    if not all(within):
        between = "between lanes: frames say it, no line" if crowded else "value between lanes"
        rows.append(LegendRow(between, ACROSS, "…" if crowded else "→"))
    return rows
