"""Reports as plain lines, for pipes and files; and what all formats write for a cell."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO, TypeAlias

from irtool.ir.units import Unit, plural, quantity_text
from irtool.report.model import (
    Amount,
    Block,
    Cell,
    Column,
    Facts,
    FindingCards,
    Heading,
    Link,
    Note,
    Table,
)
from irtool.report.text import escape


def plain_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks as aligned text; no cell is cut or folded.

    Args:
        blocks: of a report, in order.

    Yields:
        lines without their ends; nothing in them can steer a terminal.
    """
    for index, block in enumerate(text_blocks(blocks)):
        if index and not isinstance(block, Note):
            yield ""
        match block:
            case Heading():
                yield escape(block.text)
            case Note():
                yield from map(escape, block.text.split("\n") if block.verbatim else [block.text])
            case Facts():
                yield from _facts(block)
            case Table():
                yield from _table(block)


TextBlock: TypeAlias = Heading | Note | Facts | Table


def text_blocks(blocks: Iterable[Block]) -> Iterator[TextBlock]:
    """Blocks as text shows them: of each finding its facts, and how many are not shown.

    Args:
        blocks: of a report, in order.
    """
    for block in blocks:
        if not isinstance(block, FindingCards):
            yield block
            continue
        for card in block.findings if block.most is None else block.findings[: block.most]:
            code = [("code", card.code)] if card.code else []
            yield Facts([(card.label or card.severity, card.message), *code, *card.facts])
        if block.hidden:
            yield Note(f"… {plural(block.hidden, 'more finding')} (--limit 0 shows all)")


def cell_text(cell: Cell, unit: Unit = "number") -> str:
    """A cell as harmless text: a number in its unit, nothing for None.

    Args:
        cell: the cell.
        unit: of numbers in its column.
    """
    match cell:
        case None:
            return ""
        case str():
            return escape(cell)
        case Link():
            return escape(cell.text)
        case Amount():
            return escape(cell.text) if cell.text else quantity_text(cell.value, cell.unit)
        case _:
            return quantity_text(cell, unit)


def cell_key(cell: Cell) -> float | None:
    """What a cell sorts by; None: by its text.

    Args:
        cell: a link sorts by the number of its node.
    """
    match cell:
        case None | str():
            return None
        case Link():
            return _node_order(cell.text)
        case Amount():
            return None if cell.value is None else _finite(float(cell.value))
        case _:
            return _finite(float(cell))


def cells_of(table: Table) -> list[list[str]]:
    """The texts of the rows that text shows.

    Args:
        table: its first rows are written, each number in the unit of its column.
    """
    units: list[Unit] = [column.unit for column in table.columns]
    return [
        [cell_text(cell, unit) for cell, unit in zip(row, units, strict=True)]
        for row in table.first_rows
    ]


def hidden_text(table: Table) -> str:
    """What stands below a table of which text does not show all rows.

    Args:
        table: one that hides at least one row.
    """
    return f"… {plural(table.hidden, f'more {table.noun}')} ({table.option} 0 shows all)"


def colours_wanted(stream: TextIO) -> bool:
    """Whether to colour what goes to ``stream``: terminals that do not say NO_COLOR.

    FORCE_COLOR colours elsewhere, too: pages of builds show colours and are no terminals.

    Args:
        stream: that is written to.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is looking at ``stream``.

    Args:
        stream: that is written to or read from; nobody looks at a closed one.
    """
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _facts(facts: Facts) -> Iterable[str]:
    if facts.title:
        yield escape(facts.title)
    width = max((len(label) for label, _ in facts.pairs), default=0)
    for label, value in facts.pairs:
        yield f"{label:<{width}}  {cell_text(value)}".rstrip()


def _table(table: Table) -> Iterable[str]:
    if table.title:
        yield escape(table.title)
    rows = cells_of(table)
    titles = [column.title for column in table.columns]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        yield f"  {'  '.join(_aligned(row, widths, table.columns))}".rstrip()
    if table.hidden:
        yield f"  {hidden_text(table)}"
    if table.note:
        yield f"  {escape(table.note)}"


def _aligned(row: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> Iterator[str]:
    for text, width, column in zip(row, widths, columns, strict=True):
        yield text.rjust(width) if column.is_numeric else text.ljust(width)


def _finite(key: float) -> float | None:
    return key if math.isfinite(key) else math.copysign(1e308, key) if key == key else None


def _node_order(text: str) -> float | None:
    digits = text.removeprefix("%").split(maxsplit=1)[0] if text.startswith("%") else ""
    return float(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
