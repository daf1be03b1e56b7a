"""Reports on a terminal, by rich; imported only when there is one.

A table that is wider than the terminal gives up columns, those of the highest rank first: what
stood in them follows each row as a line of its own.  Where not even the columns that always stay
have room, a row is a list of them.  Texts are folded between words, and inside a word only behind
the signs that part a path or a name, so that nothing is cut and what is copied is what stood there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from irtool.report.model import Block, Facts, Heading, Note, Table
from irtool.report.plain import cell_text, cells_of, colours_wanted, hidden_text, text_blocks
from irtool.report.text import escape

_LEAST_WIDTH = 16
"""Columns that folded text keeps, and the longest word that is never folded."""
_TALL = 2
"""Lines of a row, on the average, beyond which a column that folds is better a line below it."""
_GAP = 2
"""Columns between two cells, and before the first."""
_PART = re.compile(r"[^/.,_:-]*[/.,_:-]+|[^/.,_:-]+")
"""A part of a path or name, with the sign that ends it."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGT]?i?B|[mµn]?s)(?!\w))")
_JOINED = "\N{NO-BREAK SPACE}"

Show = Callable[[str, str], None]
"""Writes a line in a style."""


def write_rich(blocks: Sequence[Block], stream: TextIO) -> None:
    """Write blocks to a terminal, folded to its width.

    Args:
        blocks: of a report, in order.
        stream: a terminal, coloured unless NO_COLOR is set.
    """
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="auto" if colours_wanted(stream) else None,
        highlight=False,
        markup=False,
        emoji=False,
    )

    def show(line: str, style: str = "") -> None:
        console.print(Text(line.rstrip(), style=style), soft_wrap=True)

    width = max(1, console.width)
    shown = list(text_blocks(blocks))
    for index, block in enumerate(shown):
        match block:
            case Heading():
                if index:
                    show("")
                _show_text(show, escape(block.text), width, style="bold")
            case Note():
                if block.verbatim:  # to be copied: a folded line would be two
                    for line in block.text.split("\n"):
                        show(escape(line))
                else:
                    _show_text(show, escape(block.text), width)
            case Facts():
                if block.title or (index and isinstance(shown[index - 1], Table)):
                    show("")
                if block.title:
                    _show_text(show, escape(block.title), width, style="bold")
                _show_facts(console, block, width)
            case Table():
                _show_table(show, block, width)


def _show_text(show: Show, text: str, width: int, indent: int = 0, style: str = "") -> None:
    for line in folded(text, width - indent):
        show(" " * indent + line, style)


def _show_facts(console: Console, facts: Facts, width: int) -> None:
    pairs = [(label, cell_text(value)) for label, value in facts.pairs]
    left = max((cell_len(label) for label, _ in pairs), default=0)
    room = width - left - _GAP
    for label, value in pairs:
        first, *rest = folded(value, room) if room >= _LEAST_WIDTH else [""]
        line = Text(_padded(label, left), style="cyan").append(" " * _GAP + first, style="default")
        line.rstrip()
        console.print(line, soft_wrap=True)
        below = rest if room >= _LEAST_WIDTH else folded(value, width - _GAP)
        indent = left + _GAP if room >= _LEAST_WIDTH else _GAP
        for text in below:
            console.print(Text(" " * indent + text), soft_wrap=True)


# -- tables --------------------------------------------------------------------------------------


def _show_table(show: Show, table: Table, width: int) -> None:
    show("", "")
    if table.title:
        _show_text(show, escape(table.title), width, style="bold")
    rows = cells_of(table)
    inside = columns_inside(table, rows, width)
    if _least_width(table, rows, inside) > width:
        _show_as_lists(show, table, rows, width)
    else:
        _show_rows(show, table, rows, inside, width)
    if table.hidden:
        _show_text(show, hidden_text(table), width, _GAP, "dim")
    if table.note:
        _show_text(show, escape(table.note), width, _GAP)


def columns_inside(table: Table, rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Places of the columns that stay in a table on a terminal of so many columns.

    Those of the highest rank leave first, of equal rank the last; rank 0 always stays.  Then those
    leave whose texts would be folded over more lines than two, on the average.
    """
    inside = list(range(len(table.columns)))
    while _least_width(table, rows, inside) > width:
        leaving = max(inside, key=lambda place: (table.columns[place].rank, place))
        if not table.columns[leaving].rank:
            break
        inside.remove(leaving)
    while (tallest := _tallest(table, rows, inside, width)) is not None:
        inside.remove(tallest)
    return inside


def _tallest(
    table: Table, rows: Sequence[Sequence[str]], inside: Sequence[int], width: int
) -> int | None:
    """Of the columns that may leave, that whose texts need the most lines, if too many."""
    widths = _widths(table, rows, inside, width)
    heights = {
        place: sum(len(folded(row[place], room)) for row in rows)
        for place, room in zip(inside, widths, strict=True)
        if table.columns[place].rank and table.columns[place].wraps
    }
    tall = {place: height for place, height in heights.items() if height > _TALL * len(rows)}
    return max(tall, key=lambda place: tall[place], default=None)


def _least_width(table: Table, rows: Sequence[Sequence[str]], inside: Sequence[int]) -> int:
    return sum(_least(table, rows, place) + _GAP for place in inside)


def _least(table: Table, rows: Sequence[Sequence[str]], place: int) -> int:
    """The least width of a column in which no word of it is cut."""
    full = _width(table, rows, place)
    if not table.columns[place].wraps or full <= _LEAST_WIDTH:
        return full
    parts = (
        part
        for text in _texts(table, rows, place)
        for word in _words(text)
        for part in _parts(word)
    )
    return max(_LEAST_WIDTH, *map(cell_len, parts))


def _width(table: Table, rows: Sequence[Sequence[str]], place: int) -> int:
    return max(map(cell_len, _texts(table, rows, place)))


def _texts(table: Table, rows: Sequence[Sequence[str]], place: int) -> Iterator[str]:
    yield table.columns[place].title
    for row in rows:
        yield row[place]


def _widths(
    table: Table, rows: Sequence[Sequence[str]], inside: Sequence[int], width: int
) -> list[int]:
    """Widths of the columns: what they need; the widest that wrap give what is too much."""
    widths = [_width(table, rows, place) for place in inside]
    least = [_least(table, rows, place) for place in inside]
    for _ in range(sum(widths) + _GAP * len(widths) - width):
        widest = max(
            range(len(widths)), key=lambda index: (widths[index] > least[index], widths[index])
        )
        widths[widest] -= 1
    return widths


def _show_rows(
    show: Show, table: Table, rows: Sequence[Sequence[str]], inside: Sequence[int], width: int
) -> None:
    """Lines of fixed columns, each with what has no room in them below it."""
    outside = [place for place in range(len(table.columns)) if place not in inside]
    widths = _widths(table, rows, inside, width)
    for line in _lines(table, [table.columns[place].title for place in inside], inside, widths):
        show(line, "cyan")
    for row in rows:
        for line in _lines(table, [row[place] for place in inside], inside, widths):
            show(line, "")
        rest = [f"{table.columns[place].title}: {row[place]}" for place in outside if row[place]]
        fits = cell_len("; ".join(rest)) <= width - 3 * _GAP
        for text in ["; ".join(rest)] if fits and rest else rest:
            _show_text(show, text, width, 3 * _GAP, "dim")


def _lines(
    table: Table, texts: Sequence[str], inside: Sequence[int], widths: Sequence[int]
) -> Iterator[str]:
    """The lines of one row."""
    cells = [folded(text, width) for text, width in zip(texts, widths, strict=True)]
    for index in range(max(map(len, cells), default=0)):
        line = ""
        for cell, place, width in zip(cells, inside, widths, strict=True):
            text = cell[index] if index < len(cell) else ""
            line += " " * _GAP + _padded(text, width, table.columns[place].is_numeric)
        yield line


def _show_as_lists(show: Show, table: Table, rows: Sequence[Sequence[str]], width: int) -> None:
    """Each row as its first cell, and the others with their titles below."""
    for row in rows:
        _show_text(show, f"{table.columns[0].title}: {row[0]}", width, _GAP)
        for column, text in zip(table.columns[1:], row[1:], strict=True):
            if text:
                _show_text(show, f"{column.title}: {text}", width, 2 * _GAP)


# -- folded text ---------------------------------------------------------------------------------


def folded(text: str, width: int) -> list[str]:
    """A text as lines of at most so many columns; at least one line.

    Args:
        text: one line, its indentation is kept.
        width: columns; a word that is wider is parted behind the signs of a path or name, and
            inside a part only where that is wider, too.  A number stays with its unit.
    """
    width = max(1, width)
    if cell_len(text) <= width:
        return [text]
    indent = min(len(text) - len(text.lstrip(" ")), width // 2)
    room = width - indent
    lines: list[str] = []
    line = ""
    for word in _words(text):
        if line and cell_len(line) + 1 + cell_len(word) <= room:
            line += " " + word
            continue
        if line:
            lines.append(line)
        line = ""
        for part in [word] if cell_len(word) <= room else _pieces(word, room):
            if cell_len(line) + cell_len(part) > room:
                lines.append(line)
                line = ""
            line += part
    return [" " * indent + one.replace(_JOINED, " ") for one in [*lines, line]]


def _words(text: str) -> list[str]:
    return _BEFORE_UNIT.sub(_JOINED, text).split(" ") if " " in text else [text]


def _parts(word: str) -> list[str]:
    """A long word in the parts between which it may be folded; a short one as it is."""
    return [word] if cell_len(word) <= _LEAST_WIDTH else _PART.findall(word)


def _pieces(word: str, width: int) -> Iterator[str]:
    """The parts of a word that is wider than a line, those that are wider, too, cut."""
    for part in _PART.findall(word):
        yield from [part] if cell_len(part) <= width else chop_cells(part, width)


def _padded(text: str, width: int, right: bool = False) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks
