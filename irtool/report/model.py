"""The one form of an answer: what every command fills, and every format writes.

A report holds values and their units; how they look is for those who write it: plain lines for a
pipe (:mod:`irtool.report.plain`), a terminal (:mod:`irtool.report.terminal`), an html page
(:mod:`irtool.report.page.write`), a notebook (:mod:`irtool.report.notebook`).  Texts are given as
they are; each of these makes them harmless itself, so that no caller can forget to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Severity
from irtool.ir.units import Unit

Tone: TypeAlias = Literal["good", "bad", "unknown", "plain"]
"""How an answer is meant: fine; something must change; a part is not known; neither."""

USUAL_ROWS = 20
"""Rows of a table that people see where nobody asked for another number."""


# -- values --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amount:
    """A value in a unit of its own, where it is not that of its column.

    ``text`` stands for it where a number alone doesn't tell all: ``Amount(1572864, "bytes",
    "1.5 MiB + 2 unknown")`` is shown as its text and sorted as its value.
    """

    value: float | None
    unit: Unit = "number"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A text that shows a node in the page's graph when it is clicked.

    ``node`` is what :func:`irtool.report.page.keys.node_key` gives; where there is no graph, or one
    that lacks the node, the text stands alone.
    """

    text: str
    node: str


Cell: TypeAlias = "str | int | float | Amount | Link | None"
"""A value of a table or fact: a number is in the unit of its column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: its head.
        unit: of the numbers in it.
        wraps: whether its texts may be folded over several lines.
        rank: where a terminal is too narrow, columns of the highest rank leave the table first and
            become a line below their row; those of rank 0 always stay.
    """

    title: str
    unit: Unit = "text"
    wraps: bool = False
    rank: int = 0

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers, which stand on the right."""
        return self.unit != "text"


# -- elements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """A title line above the blocks that follow."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line of running text; ``verbatim`` keeps line ends, and a page uses a fixed width.

    ``page``: the file of another page beside this one, which the text leads to.
    """

    text: str
    verbatim: bool = False
    page: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of label and value, one a line."""

    pairs: Sequence[tuple[str, Cell]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under columns with their units.

    Attributes:
        title: what it lists.
        columns: of its rows.
        rows: all of them: a page shows all, text the first ones.
        most: rows that text shows; None shows all.
        left_out: rows that were not even made.
        noun: what a row is.
        note: a line below it.
        option: the option that shows more rows.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    noun: str = "row"
    most: int | None = None
    note: str = ""
    option: str = "--limit"

    @property
    def first_rows(self) -> Sequence[Sequence[Cell]]:
        """The rows that text shows."""
        return self.rows if self.most is None else self.rows[: self.most]

    @property
    def hidden(self) -> int:
        """How many rows text doesn't show."""
        return self.left_out + len(self.rows) - len(self.first_rows)


@dataclass(frozen=True, slots=True)
class FindingCard:
    """One finding: what, how bad, where, and the facts that a person needs to mend it.

    ``label`` is what it goes by where the severity would not do.
    """

    severity: Severity
    message: str
    code: str = ""
    facts: Sequence[tuple[str, Cell]] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class FindingCards:
    """Findings, the worst first.

    ``left_out`` more are not told at all; text shows ``most`` of those that are, None shows all.
    """

    title: str
    findings: Sequence[FindingCard]
    left_out: int = 0
    most: int | None = None

    @property
    def hidden(self) -> int:
        """How many findings text doesn't show."""
        shown = len(self.findings) if self.most is None else min(self.most, len(self.findings))
        return self.left_out + len(self.findings) - shown


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: an ``<svg>`` element, of graphviz or of :mod:`irtool.report.page.charts`.

    ``description`` says to those who can't see it what it shows.
    """

    title: str
    svg: str
    description: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explorer:
    """The graph of a dump, in which a page lets people look around.

    ``data`` comes from :func:`irtool.report.page.graph.data.graph_data`.
    """

    title: str
    data: dict[str, Any]


Block: TypeAlias = Heading | Note | Facts | Table | FindingCards
"""What text shows of a report."""

Element: TypeAlias = Block | Picture | Explorer
"""What a page shows."""


# -- whole answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one line, and what one has to know besides, a line each."""

    text: str
    tone: Tone = "plain"
    details: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """An answer for people, in the form that all formats are written from.

    On a page, pictures and the graph stand beside the other elements where the window is wide
    enough; a page with nothing but a graph gives it the whole window.

    Attributes:
        title: the question, as in ``check: net/step_parallel_begin_0018.ir``.
        answer: the answer, first of all.
        elements: what follows, in order; at most one graph to explore.
        subject: what was asked of, as text shows it before the answer.
    """

    title: str
    answer: Answer
    elements: Sequence[Element] = field(default_factory=tuple[Element, ...])
    subject: str = ""

    def __post_init__(self) -> None:
        graphs = sum(isinstance(element, Explorer) for element in self.elements)
        if graphs > 1:
            raise ValueError(f"a report holds at most one graph to explore, not {graphs}")

    @property
    def blocks(self) -> list[Block]:
        """What text shows: the answer as the title line, and every element that text can show."""
        answer = f"{self.subject}: {self.answer.text}" if self.subject else self.answer.text
        shown: list[Block] = [Heading(answer), *map(Note, self.answer.details)]
        shown += [
            element for element in self.elements if not isinstance(element, Picture | Explorer)
        ]
        return shown


@dataclass(slots=True)
class Document:
    """Blocks that are put together one after the other, before they are shown or join a report."""

    blocks: list[Block] = field(default_factory=list[Block])

    def add(self, *blocks: Block) -> None:
        """Put blocks at the end."""
        self.blocks += blocks


def number_column(title: str, unit: Unit = "number", rank: int = 0) -> Column:
    """A column of numbers.

    Args:
        title: its head.
        unit: of its numbers; a cell holds them in this unit itself: bytes, seconds, a part of one.
        rank: how early it leaves a narrow table; 0: never.
    """
    return Column(title, unit, rank=rank)


def text_column(title: str, rank: int = 0) -> Column:
    """A column of text that may be folded.

    Args:
        title: its head.
        rank: how early it leaves a narrow table; 0: never.
    """
    return Column(title, wraps=True, rank=rank)


def rows_shown(limit: int | None, usual: int = USUAL_ROWS) -> int | None:
    """How many rows text shows: ``--limit``, where 0 means all, else the usual number.

    Args:
        limit: what was asked for; None: nobody asked.
        usual: the number where nobody asked.

    Returns:
        None for all, as :attr:`Table.most` has it.
    """
    return usual if limit is None else limit or None


def first_rows(table: Table, limit: int | None, usual: int = USUAL_ROWS) -> Table:
    """A table of which text shows ``--rows`` rows: None is the usual number, 0 is all.

    Args:
        table: with all its rows, which a page shows.
        limit: what ``--rows`` says.
        usual: the number where nobody asked.
    """
    return replace(table, most=rows_shown(limit, usual), option="--rows")
