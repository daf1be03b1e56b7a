"""Documents of facts and tables, and how they look as plain text.

Analyses give data, ``render`` modules put it into a :class:`Document`; :func:`plain_lines` decides
how it looks in a pipe or file, :mod:`irtool.render.terminal` on a terminal.  Every cell is escaped
there, so that no caller can forget to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from irtool.render.text import escape

Cell = str | int | None
Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; ``wrap`` columns may be folded over several lines on a terminal."""

    title: str
    align: Align = "left"
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A title line."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of label and value, one a line."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; ``left_out`` rows are announced below it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    noun: str = "row"


@dataclass(frozen=True, slots=True)
class Note:
    """A line of running text."""

    text: str


Block = Heading | Facts | Table | Note


@dataclass(slots=True)
class Document:
    """What a command has to say, in order."""

    blocks: list[Block] = field(default_factory=list[Block])

    def add(self, *blocks: Block) -> None:
        """Put blocks at the end."""
        self.blocks += blocks


def number_column(title: str) -> Column:
    """A column of numbers."""
    return Column(title, "right")


def text_column(title: str) -> Column:
    """A column of text that may be folded."""
    return Column(title, "left", wrap=True)


def plain_lines(document: Document) -> Iterable[str]:
    """The document as aligned text; no cell is cut or folded."""
    for index, block in enumerate(document.blocks):
        if index and not isinstance(block, Note):
            yield ""
        match block:
            case Heading():
                yield escape(block.text)
            case Note():
                yield escape(block.text)
            case Facts():
                yield from _plain_facts(block)
            case Table():
                yield from _plain_table(block)


def cell_text(cell: Cell) -> str:
    """A cell as harmless text; numbers get thousands separators."""
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else escape(cell)


def left_out_text(table: Table) -> str:
    """What stands below a table that does not show all its rows."""
    plural = "" if table.left_out == 1 else "s"
    return f"… {table.left_out:,} more {table.noun}{plural} (--limit 0 shows all)"


def first_rows(table: Table, rows: int | None, usual: int) -> Iterator[Block]:
    """A table cut to ``--rows``: None is the usual number, 0 is all; and how many were left out."""
    most = usual if rows is None else rows or len(table.rows)
    left = len(table.rows) - most
    yield Table(table.title, table.columns, list(table.rows)[:most])
    if left > 0:
        yield Note(f"  … {left:,} more (--rows 0 shows all)")


def colours_wanted(stream: TextIO) -> bool:
    """Whether to colour what goes to ``stream``: terminals that do not say NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is looking at ``stream``."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _plain_facts(facts: Facts) -> Iterable[str]:
    width = max((len(label) for label, _ in facts.pairs), default=0)
    for label, value in facts.pairs:
        yield f"{label:<{width}}  {escape(value)}".rstrip()


def _plain_table(table: Table) -> Iterable[str]:
    if table.title:
        yield escape(table.title)
    rows = [[cell_text(cell) for cell in row] for row in table.rows]
    titles = [column.title for column in table.columns]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (
            cell.rjust(width) if column.align == "right" else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()
    if table.left_out:
        yield f"  {left_out_text(table)}"
