"""Documents on a terminal, by rich; imported only when there is one."""

from __future__ import annotations

from typing import TextIO

from rich.box import SIMPLE_HEAD
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


def write_rich(document: Document, stream: TextIO) -> None:
    """Write a document to a terminal, folded to its width."""
    console = Console(
        file=stream,
        force_terminal=True,
        no_color=not colours_wanted(stream),
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
                console.print(_facts(block))
            case Table():
                _print_table(console, block)


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
    made = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="cyan", show_edge=False)
    for column in table.columns:
        made.add_column(
            Text(column.title),
            justify="right" if column.align == "right" else "left",
            no_wrap=not column.wrap,
            overflow="fold",
        )
    for row in table.rows:
        made.add_row(*(Text(cell_text(cell), overflow="fold") for cell in row))
    console.print(Padding(made, (0, 0, 0, 2)))
    if table.left_out:
        console.print(Text(f"  {left_out_text(table)}", style="dim"))
