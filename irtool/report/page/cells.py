"""Cells of a page's tables: what is shown, what it sorts by, and the node it leads to."""

from __future__ import annotations

import re

from irtool.report.model import Cell, Column, Link
from irtool.report.plain import cell_key, cell_text
from irtool.report.text import escape

_UNITS = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "%": 0.01, "": 1,
}  # fmt: skip
_NUMBER = re.compile(r"\s*([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([A-Za-zµ%]*)")


def cell_parts(cell: Cell, column: Column) -> tuple[str, float | None, str | None]:
    """Text, key to sort by (None: by the text), and key of the node that it leads to."""
    node = escape(cell.node) if isinstance(cell, Link) else None
    key = cell_key(cell)
    if isinstance(cell, str) and column.is_numeric:
        key = _value_of(cell)
    return shown_text(cell, column), key, node


def shown_text(cell: Cell, column: Column) -> str:
    """A cell as harmless text, whose lines stay lines."""
    if isinstance(cell, str):
        return "\n".join(map(escape, cell.split("\n")))
    return cell_text(cell, column.unit)


def _value_of(text: str) -> float | None:
    """The value of a text that was written too early, for tables that hold such texts."""
    read = _NUMBER.match(text)
    if read is None or read[2] not in _UNITS:
        return None
    return float(read[1].replace(",", "")) * _UNITS[read[2]]
