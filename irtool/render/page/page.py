"""What an html page holds: the answer first, then sections.  Every command fills this one form.

A page is data; :mod:`irtool.render.page.write` alone decides how it looks and escapes every text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Tone: TypeAlias = Literal["good", "bad", "unknown", "plain"]
"""How an answer is meant: fine; something must change; a part is not known; neither."""

Kind: TypeAlias = Literal["text", "number", "bytes", "seconds", "share"]
"""Of a column: how its values are shown and sorted.  Bytes and seconds get units, a share of 0.25
becomes ``25 %``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in one line, and what one has to know besides, a line each."""

    text: str
    tone: Tone = "plain"
    details: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A cell or fact that shows a node in the page's graph when it is clicked.

    ``node`` is what :func:`irtool.render.page.keys.node_key` gives; in a page without a graph, or
    with one that lacks the node, the text stands alone.
    """

    text: str
    node: str


@dataclass(frozen=True, slots=True)
class Ordered:
    """A cell whose text sorts by ``key``: ``Ordered("1.5 MiB + 2 unknown", 1572864)``."""

    text: str
    key: float


Cell: TypeAlias = "str | int | float | Link | Ordered | None"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    kind: Kind = "text"


# -- sections ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextSection:
    """Running text; ``verbatim`` keeps line ends and uses a fixed-width font."""

    title: str
    paragraphs: Sequence[str]
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class FactsSection:
    """Pairs of label and value."""

    title: str
    pairs: Sequence[tuple[str, str | Link]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: what, how bad, where, and the facts that a person needs to mend it."""

    severity: Literal["error", "warning", "info"]
    message: str
    code: str = ""
    facts: Sequence[tuple[str, str | Link]] = ()


@dataclass(frozen=True, slots=True)
class FindingsSection:
    """Findings, worst first; ``left_out`` more are not on the page."""

    title: str
    findings: Sequence[Finding]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class TableSection:
    """A table that sorts and filters in the browser; all rows are on the page.

    ``note`` stands below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class PictureSection:
    """A picture: an ``<svg>`` element, of graphviz or of :mod:`irtool.render.page.charts`.

    ``description`` says to those who can't see it what it shows.
    """

    title: str
    svg: str
    description: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class GraphSection:
    """The interactive graph of a dump.

    ``data`` comes from :func:`irtool.render.page.graph_data.graph_data`.
    """

    title: str
    data: dict[str, Any]


Section: TypeAlias = (
    TextSection | FactsSection | FindingsSection | TableSection | PictureSection | GraphSection
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Pictures and the graph stand beside the other sections where the window is wide enough; a page
    with nothing but a graph gives it the whole window.

    Attributes:
        title: the question, as in ``check: net/step_parallel_begin_0018.ir``.
        answer: the answer, first of all.
        sections: what follows, in order; at most one graph.
    """

    title: str
    answer: Answer
    sections: Sequence[Section] = field(default_factory=tuple[Section, ...])

    def __post_init__(self) -> None:
        graphs = sum(isinstance(section, GraphSection) for section in self.sections)
        if graphs > 1:
            raise ValueError(f"a page holds at most one graph, not {graphs}")
