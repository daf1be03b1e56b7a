"""The legend: a row for each colour, shape, border and line that a picture holds, and no other."""

from __future__ import annotations

from irtool.render.picture.colours import SEVERITIES, Colouring, severities_in
from irtool.render.picture.model import LegendRow, Picture

_SHAPES = (
    ("scope", "closed scope: several operators", "▤"),
    ("parameter", "weight or state", "○"),
    ("input", "input of the network", "▱"),
    ("call", "call that is not inlined", "▭"),
)
_LINES = (
    ("data", "value, with shape and bytes", "→"),
    ("repeat", "to the next repeat", "⇢"),
    ("transfer", "sent to another stage", "→"),
    ("tie", "belong together: forward and backward, weight and update", "┄"),
    ("recompute", "copy computed again", "┄"),
    ("call", "result of what is called", "⇢"),
    ("order", "order only, or through what is left out", "⇢"),
)


def legend_rows(picture: Picture, colours: Colouring, crowded: bool = False) -> list[LegendRow]:
    """Rows of the legend, colours first; ``crowded`` pictures show ties by height alone."""
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
        rows.append(LegendRow(f"border: {word}", colour))
    if any(box.focus for box in picture.boxes):
        rows.append(LegendRow("asked for", symbol="◎"))
    if any(edge.note and edge.kind == "data" for edge in picture.edges):
        rows.append(LegendRow("redistribution that MindSpore will insert", "#AA3377"))
    if crowded and "tie" in lines:
        rows.append(LegendRow("on one level: an operator and its gradient", symbol="↔"))
    lines -= {"tie", "recompute"} if crowded else set()
    rows += [LegendRow(text, symbol=symbol) for kind, text, symbol in _LINES if kind in lines]
    return rows
