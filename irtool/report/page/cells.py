"""Cells of tables: what is shown, what it sorts by, and the node it leads to."""

from __future__ import annotations

import math

from irtool.ir.units import quantity_text
from irtool.report.page.page import Cell, Kind, Link, Ordered
from irtool.report.text import escape


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
            return quantity_text(cell, kind), _finite(float(cell)), None


def _finite(key: float) -> float | None:
    return key if math.isfinite(key) else math.copysign(1e308, key) if key == key else None


def _node_order(text: str) -> float | None:
    digits = text.removeprefix("%").split(maxsplit=1)[0] if text.startswith("%") else ""
    return float(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
