"""Documents on a terminal, by rich; imported only when there is one."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from irtool.render.tables import (
    Document,
    Facts,
    Heading,
    Note,
    Table,
    cell_text,
    colours_wanted,
    left_out_text,
)
from irtool.render.text import escape

_LEAST_WIDTH = 16
"""Columns that folded text keeps, so that no word is cut into single letters."""


def write_rich(document: Document, stream: TextIO) -> None:
    """Write a document to a terminal, folded to its width."""
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="auto" if colours_wanted(stream) else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for index, block in enumerate(document.blocks):
        match block:
            case Heading():
                if index:
                    console.print()
                console.print(Text(escape(block.text), style="bold", overflow="fold"))
            case Note():
                console.print(Text(escape(block.text), overflow="fold"))
            case Facts():
                if index and isinstance(document.blocks[index - 1], Table):
                    console.print()
                console.print(_facts(block))
            case Table():
                _print_table(console, block)


def _widest(table: Table, place: int) -> int:
    lengths = [len(cell_text(row[place])) for row in table.rows]
    return max([len(table.columns[place].title), *lengths])


def _facts(facts: Facts) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in facts.pairs:
        grid.add_row(Text(label), Text(escape(value), overflow="fold"))
    return grid


def _print_table(console: Console, table: Table) -> None:
    console.print()
    if table.title:
        console.print(Text(escape(table.title), style="bold"))
    made = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="cyan")
    for place, column in enumerate(table.columns):
        made.add_column(
            Text(column.title),
            justify="right" if column.align == "right" else "left",
            no_wrap=not column.wrap,
            min_width=min(_LEAST_WIDTH, _widest(table, place)) if column.wrap else None,
            overflow="fold",
        )
    for row in table.rows:
        made.add_row(*(Text(cell_text(cell), overflow="fold") for cell in row))
    console.print(Padding(made, (0, 0, 0, 2)))
    if table.left_out:
        console.print(Text(f"  {left_out_text(table)}", style="dim"))
