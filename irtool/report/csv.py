"""Answers as comma-separated values after RFC 4180: for spreadsheets and data frames.

The facts, findings and tables of a report, with all rows, a line with its title before each that
has one and an empty line between two.  A column's unit stands in its head, and its numbers are in
the unit itself: seconds, bytes.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence

from irtool.ir.units import Unit
from irtool.report.model import (
    Amount,
    Cell,
    Column,
    Facts,
    FindingCard,
    FindingCards,
    Heading,
    Link,
    Note,
    Report,
    Table,
    text_column,
)
from irtool.report.plain import cell_text
from irtool.report.text import escape

_MEASURES: dict[Unit, str] = {"seconds": "s", "bytes": "B", "operations": "FLOP"}
"""What numbers of a column count, where its head alone does not tell."""
_FORMULA = ("=", "+", "-", "@")
"""What formulas begin with; tabs and line ends, behind which they may stand too, are escaped."""


def csv_pieces(report: Report) -> Iterator[str]:
    """The facts, tables and findings of a report, each as one text.

    Args:
        report: made for text: what only a page shows is left out.
    """
    separator = ""
    for block in report.blocks:
        if isinstance(block, Heading | Note):
            continue
        table = _findings(block) if isinstance(block, FindingCards) else block
        title = [] if not table.title else [[harmless(escape(table.title))]]
        rows = _facts(table) if isinstance(table, Facts) else _rows(table)
        yield separator + csv_lines([*title, *rows])
        separator = "\n"


def csv_lines(rows: Iterable[Sequence[str | int | float]]) -> str:
    """Rows as lines; texts are quoted where they have to be.

    Args:
        rows: cells as they are written; nothing guards against formulas here (:func:`harmless`
            does).

    Returns:
        lines that end in a line feed.
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before what begins as one.

    Args:
        text: of a cell.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def _facts(facts: Facts) -> Iterator[list[str | int | float]]:
    for label, value in facts.pairs:
        yield [harmless(escape(label)), harmless(cell_text(value))]


def _rows(table: Table) -> Iterator[list[str | int | float]]:
    yield [_head(column) for column in table.columns]
    for row in table.rows:
        yield [_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]


def _head(column: Column) -> str:
    measure = _MEASURES.get(column.unit)
    return harmless(escape(f"{column.title} ({measure})" if measure else column.title))


def _cell(cell: Cell, column: Column) -> str | int | float:
    """A number where the column's head says what it counts, else the text that people read."""
    match cell:
        case Amount(value=int() | float() as value, unit=column.unit, text=""):
            return _number(value)
        case None | str() | Link() | Amount():
            return harmless(cell_text(cell, column.unit))
        case _:
            return _number(cell)


def _number(value: float) -> int | float | str:
    return value if math.isfinite(value) else str(value)


def _findings(cards: FindingCards) -> Table:
    """Findings as a table, a column for each fact that one of them has."""
    labels = dict.fromkeys(label for card in cards.findings for label, _ in card.facts)
    heads = ("severity", "code", "message", *labels)
    return Table(
        cards.title,
        [text_column(head) for head in heads],
        [_finding(card, labels) for card in cards.findings],
    )


def _finding(card: FindingCard, labels: Iterable[str]) -> list[Cell]:
    facts: dict[str, list[str]] = {}
    for label, value in card.facts:
        facts.setdefault(label, []).append(cell_text(value))
    return [
        card.label or card.severity,
        card.code,
        card.message,
        *("; ".join(facts.get(label, ())) for label in labels),
    ]
