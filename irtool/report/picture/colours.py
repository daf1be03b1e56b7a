"""Colours of a picture, and the legend that says what they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log10

from irtool.ir.dataclass import dataclass
from irtool.ir.units import quantity_text
from irtool.report.picture.classes import BY_KEY, CLASSES
from irtool.report.picture.model import Box, LegendRow, Picture
from irtool.report.picture.overlay import Overlay, OverlaySeverity
from irtool.report.text import shortened

SCOPE = "#F4F4F4"
PLAIN = "#FFFFFF"
UNKNOWN = "#EEEEEE"

QUALITATIVE = (
    "#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00",
)  # fmt: skip
"""Paul Tol's light scheme, for strategies and stages."""
SEQUENTIAL = ("#FFF7BC", "#FEE391", "#FEC44F", "#FB9A29", "#EC7014")
"""The lighter half of Paul Tol's YlOrBr, from little to much; it also reads in grey."""

SEVERITIES: dict[OverlaySeverity, tuple[str, str]] = {
    "error": ("#CC3311", "error"),
    "warning": ("#EE7733", "warning"),
    "info": ("#0077BB", "info"),
    "first": ("#332288", "first difference"),
    "added": ("#009988", "added"),
    "removed": ("#EE3377", "removed"),
    "changed": ("#AA4499", "changed"),
    "good": ("#228833", "better"),
}
"""Border colour and word of each severity: Paul Tol's vibrant and muted schemes."""


@dataclass(frozen=True, slots=True)
class Colouring:
    """Fill colours by box id, and the legend's rows for them."""

    fills: dict[str, str]
    rows: tuple[LegendRow, ...]
    title: str


def colouring(picture: Picture, overlays: Sequence[Overlay] = ()) -> Colouring:
    """The colours that ``picture.colour_by`` asks for.

    Args:
        picture: coloured by ``op``, ``strategy``, ``stage``, ``bytes`` or the topic of an overlay.
        overlays: with the units and titles of the marks in its boxes.

    Raises:
        LookupError: it asks for the colours of an overlay that is not there.
    """
    by = picture.colour_by
    if by == "op":
        return _by_class(picture)
    if by == "strategy":
        return _by_word(picture, [box.strategy for box in picture.boxes], "strategy")
    if by == "stage":
        words = ["" if box.stage is None else f"stage {box.stage}" for box in picture.boxes]
        return _by_word(picture, words, "stage", by_count=False)
    if by == "bytes":
        values = [box.bytes if box.nodes else None for box in picture.boxes]
        return _by_value(picture, values, "bytes of results", "bytes")
    overlay = next((overlay for overlay in overlays if overlay.topic == by), None)
    if overlay is None:
        raise LookupError(by)
    marks = [box.mark(by) for box in picture.boxes]
    values = [mark.value if mark is not None else None for mark in marks]
    return _by_value(picture, values, overlay.title, overlay.unit)


def _by_class(picture: Picture) -> Colouring:
    fills: dict[str, str] = {}
    seen: set[str] = set()
    for box in picture.boxes:
        operator_class = BY_KEY.get(box.operator_class)
        fills[box.id] = (
            operator_class.colour if operator_class else SCOPE if box.kind == "scope" else PLAIN
        )
        if box.kind == "operator":
            seen.add(box.operator_class)
    rows = tuple(LegendRow(item.title, item.colour) for item in CLASSES if item.key in seen)
    return Colouring(fills, rows, "")


def _by_word(
    picture: Picture, words: Sequence[str], title: str, by_count: bool = True
) -> Colouring:
    counts = Counter(word for word in words if word)
    ordered = [word for word, _ in counts.most_common()] if by_count else sorted(counts)
    colour = dict(zip(ordered, QUALITATIVE, strict=False))
    fills = {
        box.id: colour.get(word, UNKNOWN if word else PLAIN)
        for box, word in zip(picture.boxes, words, strict=True)
    }
    rows = [LegendRow(shortened(word, 40), shade) for word, shade in colour.items()]
    if len(ordered) > len(colour):
        rows.append(LegendRow(f"{len(ordered) - len(colour)} others", UNKNOWN))
    rows.append(LegendRow("none of its own", PLAIN))
    return Colouring(fills, tuple(rows), title)


def _by_value(picture: Picture, values: Sequence[float | None], title: str, unit: str) -> Colouring:
    positive = [value for value in values if value is not None and value > 0]
    if not positive:
        return Colouring({}, (LegendRow("no values", UNKNOWN),), title)
    low, high = log10(min(positive)), log10(max(positive))
    step = (high - low) / len(SEQUENTIAL) or 1.0
    fills: dict[str, str] = {}
    for box, value in zip(picture.boxes, values, strict=True):
        if value is None:
            fills[box.id] = PLAIN
        else:
            index = int((log10(value) - low) / step) if value > 0 else 0
            fills[box.id] = SEQUENTIAL[min(index, len(SEQUENTIAL) - 1)]
    if high == low:
        rows = [LegendRow(value_text(positive[0], unit), SEQUENTIAL[0])]
    else:
        rows = [
            LegendRow(
                f"{value_text(10 ** (low + index * step), unit)} to "
                f"{value_text(10 ** (low + (index + 1) * step), unit)}",
                shade,
            )
            for index, shade in enumerate(SEQUENTIAL)
        ]
    rows.append(LegendRow("not known", PLAIN))
    return Colouring(fills, tuple(rows), title)


def value_text(value: float | None, unit: str) -> str:
    """A number with its unit: ``1.5 MiB``, ``12.3 ms``, ``0.031``.

    Args:
        value: in the unit itself; None is written as unknown.
        unit: ``bytes``, ``seconds`` or any word, which is written behind the number.
    """
    if value is None or unit in ("bytes", "seconds"):
        return quantity_text(value, "bytes" if unit == "bytes" else "seconds")
    return f"{value:.3g} {unit}".rstrip()


def severities_in(boxes: Sequence[Box]) -> list[OverlaySeverity]:
    """Severities that occur, the worst first.

    Args:
        boxes: with the marks of all overlays.
    """
    there = {mark.severity for box in boxes for _, mark in box.marks}
    return [severity for severity in SEVERITIES if severity in there]
