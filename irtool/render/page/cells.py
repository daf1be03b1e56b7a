"""Cells of tables: what is shown, what it sorts by, and the node it leads to."""

from __future__ import annotations

import math

from irtool.render.page.page import Cell, Kind, Link, Ordered
from irtool.render.text import bytes_text, escape

_SECONDS = ((60.0, "min", 60.0), (1.0, "s", 1.0), (1e-3, "ms", 1e-3), (1e-6, "µs", 1e-6))


def cell_parts(cell: Cell, kind: Kind) -> tuple[str, float | None, str | None]:
    """Text, key to sort by (None: by the text), and key of the node that it leads to."""
    match cell:
        case None:
            return "", None, None
        case Link():
            return escape(cell.text), _node_order(cell.text), escape(cell.node)
        case Ordered():
            return escape(cell.text), _finite(cell.key), None
        case str():
            return escape(cell), None, None
        case _:
            return number_text(cell, kind), _finite(float(cell)), None


def number_text(number: float, kind: Kind) -> str:
    """A number as people read it: ``12,345``, ``1.5 MiB``, ``3.2 ms``, ``25 %``."""
    if isinstance(number, float) and not math.isfinite(number):
        return "∞" if number == math.inf else "-∞" if number == -math.inf else "not a number"
    if kind == "bytes":
        return bytes_text(round(number))
    if kind == "seconds":
        return seconds_text(number)
    if kind == "share":
        return f"{100 * number:.3g} %"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def seconds_text(seconds: float) -> str:
    """``3.2 ms``, ``1.5 s``, ``12 min``."""
    for least, unit, size in _SECONDS:
        if abs(seconds) >= least:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0"


def _finite(key: float) -> float | None:
    return key if math.isfinite(key) else math.copysign(1e308, key) if key == key else None


def _node_order(text: str) -> float | None:
    digits = text.removeprefix("%").split(maxsplit=1)[0] if text.startswith("%") else ""
    return float(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
