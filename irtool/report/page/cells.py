"""Cells of a page's tables: what is shown, what it sorts by, and the node it leads to."""

from __future__ import annotations

from irtool.report.model import Cell, Column, Link
from irtool.report.plain import cell_key, cell_text
from irtool.report.text import escape


def cell_parts(cell: Cell, column: Column) -> tuple[str, float | None, str | None]:
    """A cell as the script of a page takes it.

    Args:
        cell: the cell.
        column: that it stands in: numbers are in its unit.

    Returns:
        Text, key to sort by (None: by the text), and key of the node that it leads to.
    """
    node = escape(cell.node) if isinstance(cell, Link) else None
    return shown_text(cell, column), cell_key(cell), node


def shown_text(cell: Cell, column: Column) -> str:
    """A cell as harmless text, whose lines stay lines.

    Args:
        cell: the cell.
        column: that it stands in: numbers are in its unit.
    """
    if isinstance(cell, str):
        return "\n".join(map(escape, cell.split("\n")))
    return cell_text(cell, column.unit)
