"""Reports on a terminal, by rich; imported only when there is one.

A table that is wider than the terminal gives up columns, those of the highest rank first: what
stood in them follows each row as a line of its own, so that nothing is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from irtool.report.model import Block, Facts, Heading, Note, Table
from irtool.report.plain import cell_text, cells_of, colours_wanted, hidden_text, text_blocks
from irtool.report.text import escape

_LEAST_WIDTH = 16
"""Columns that folded text keeps, however short its words are."""
_GAP = 2
"""Columns between two cells, and before the first."""


def write_rich(blocks: Sequence[Block], stream: TextIO) -> None:
    """Write blocks to a terminal, folded to its width."""
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="auto" if colours_wanted(stream) else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    shown = list(text_blocks(blocks))
    for index, block in enumerate(shown):
        match block:
            case Heading():
                if index:
                    console.print()
                console.print(Text(escape(block.text), style="bold", overflow="fold"))
            case Note():
                for line in block.text.split("\n") if block.verbatim else [block.text]:
                    console.print(Text(escape(line), overflow="fold"))
            case Facts():
                if block.title or (index and isinstance(shown[index - 1], Table)):
                    console.print()
                if block.title:
                    console.print(Text(escape(block.title), style="bold"))
                console.print(_facts(block))
            case Table():
                _print_table(console, block)


def _facts(facts: Facts) -> Grid:
    grid = Grid.grid(padding=(0, _GAP))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in facts.pairs:
        grid.add_row(Text(label), Text(cell_text(value), overflow="fold"))
    return grid


def _print_table(console: Console, table: Table) -> None:
    console.print()
    if table.title:
        console.print(Text(escape(table.title), style="bold"))
    rows = cells_of(table)
    inside = columns_inside(table, rows, console.width)
    fits = _least_width(table, rows, inside) <= console.width
    least = _least if fits else _fewest
    grid = Grid(
        box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="cyan", expand=False
    )
    for place in inside:
        column = table.columns[place]
        grid.add_column(
            Text(column.title),
            justify="right" if column.is_numeric else "left",
            no_wrap=not column.wraps,
            min_width=least(table, rows, place) if column.wraps else None,
            overflow="fold",
        )
    outside = [place for place in range(len(table.columns)) if place not in inside]
    if not outside:
        for row in rows:
            grid.add_row(*(Text(row[place], overflow="fold") for place in inside))
        console.print(Padding(grid, (0, 0, 0, _GAP)))
    else:
        _print_folded(console, table, rows, inside, outside)
    if table.hidden:
        console.print(Text(f"  {hidden_text(table)}", style="dim"))
    if table.note:
        console.print(Padding(Text(escape(table.note), overflow="fold"), (0, 0, 0, _GAP)))


def columns_inside(table: Table, rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Places of the columns that stay in a table on a terminal of so many columns.

    Those of the highest rank leave first, of equal rank the last; rank 0 always stays.
    """
    inside = list(range(len(table.columns)))
    while _least_width(table, rows, inside) > width:
        leaving = max(inside, key=lambda place: (table.columns[place].rank, place))
        if not table.columns[leaving].rank:
            break
        inside.remove(leaving)
    return inside


def _least_width(table: Table, rows: Sequence[Sequence[str]], inside: Iterable[int]) -> int:
    widths = [_least(table, rows, place) for place in inside]
    return sum(widths) + _GAP * len(widths)


def _least(table: Table, rows: Sequence[Sequence[str]], place: int) -> int:
    """The least width of a column in which no word of it is cut."""
    full = _width(table, rows, place)
    if not table.columns[place].wraps or full <= _LEAST_WIDTH:
        return full
    words = (word for row in rows for word in row[place].split())
    return max(_LEAST_WIDTH, max(map(len, words), default=0))


def _fewest(table: Table, rows: Sequence[Sequence[str]], place: int) -> int:
    """The width that a column keeps where not even its words fit."""
    return min(_LEAST_WIDTH, _width(table, rows, place))


def _width(table: Table, rows: Sequence[Sequence[str]], place: int) -> int:
    return max([len(table.columns[place].title), *(len(row[place]) for row in rows)])


def _print_folded(
    console: Console,
    table: Table,
    rows: Sequence[Sequence[str]],
    inside: Sequence[int],
    outside: Sequence[int],
) -> None:
    """Rows of which a part stands below: lines of fixed columns, each with its line of the rest."""
    room = console.width - _GAP * (len(inside) + 1)
    widths = _shared(table, rows, inside, room)
    heads = [table.columns[place].title for place in inside]
    console.print(_line(table, heads, inside, widths), style="cyan")
    for row in rows:
        console.print(_line(table, [row[place] for place in inside], inside, widths))
        rest = [f"{table.columns[place].title}: {row[place]}" for place in outside if row[place]]
        fits = len("; ".join(rest)) <= console.width - 3 * _GAP
        for text in ["; ".join(rest)] if fits else rest:
            if text:
                below = Text(text, style="dim", overflow="fold")
                console.print(Padding(below, (0, 0, 0, 3 * _GAP)))


def _shared(
    table: Table, rows: Sequence[Sequence[str]], inside: Sequence[int], room: int
) -> list[int]:
    """Widths of the columns: what they need, those that wrap share out what is left."""
    needed = [_width(table, rows, place) for place in inside]
    wrapping = [index for index, place in enumerate(inside) if table.columns[place].wraps]
    for least in (_least, _fewest):
        over = sum(needed) - room
        for index in sorted(wrapping, key=lambda index: -needed[index]):
            if over <= 0:
                break
            cut = min(over, needed[index] - least(table, rows, inside[index]))
            needed[index] -= cut
            over -= cut
    return needed


def _line(
    table: Table, texts: Sequence[str], inside: Sequence[int], widths: Sequence[int]
) -> Padding:
    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    for place, width in zip(inside, widths, strict=True):
        numeric = table.columns[place].is_numeric
        grid.add_column(width=width, justify="right" if numeric else "left", overflow="fold")
    grid.add_row(*(Text(text, overflow="fold") for text in texts))
    return Padding(grid, (0, 0, 0, _GAP))
