"""What ``irtool diff --ranks`` tells: which ranks have equal graphs, and how the others differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from irtool.compare.edits import Pattern
from irtool.compare.graph_diff import GraphDiff
from irtool.ir.units import plural, ranks_text
from irtool.report.model import Document, Heading, Table, number_column, text_column
from irtool.report.text import shortened

_OF_RANKS = frozenset(("group changed",))
"""Differences that every rank has by being another one."""


@dataclass(frozen=True, slots=True)
class RankDifference:
    """Ranks with equal graphs, and what differs from the first class (None for that itself)."""

    ranks: tuple[int, ...]
    readable: bool
    diff: GraphDiff | None

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """What differs beyond what every rank's own groups make different."""
        if self.diff is None:
            return ()
        return tuple(
            pattern
            for pattern in self.diff.patterns
            if not pattern.first.follows and pattern.first.kind not in _OF_RANKS
        )


def ranks_document(found: Sequence[RankDifference], limit: int | None) -> Document:
    """One line a class, then what differs from the first one."""
    ranks = sum(len(item.ranks) for item in found)
    classes = "1 class" if len(found) == 1 else f"{len(found):,} classes"
    title = f"{plural(ranks, 'rank')} in {classes} of equal graphs"
    document = Document([Heading(title)])
    columns = (text_column("ranks"), number_column("number"), text_column("against the first"))
    rows: list[list[str | int | None]] = [
        [ranks_text(item.ranks), len(item.ranks), _against(item, item is found[0])]
        for item in found
    ]
    document.add(Table("", columns, rows))
    for item in found:
        if item.patterns:
            document.add(_details(item, limit))
    return document


def _against(item: RankDifference, is_first: bool) -> str:
    if not item.readable:
        return "could not be read"
    if is_first or item.diff is None:
        return "-"
    counts = Counter(pattern.first.kind for pattern in item.patterns)
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items()) or "only its groups"


def _details(item: RankDifference, limit: int | None) -> Table:
    shown = len(item.patterns) if limit == 0 else limit or 12
    columns = (
        text_column("what"),
        number_column("times"),
        text_column("operator"),
        text_column("detail"),
        text_column("scope"),
    )
    rows: list[list[str | int | None]] = [
        [
            pattern.first.kind,
            len(pattern.edits),
            pattern.first.node.op,
            shortened(pattern.detail, 90),
            shortened(pattern.scope, 60),
        ]
        for pattern in item.patterns[:shown]
    ]
    left_out = max(0, len(item.patterns) - shown)
    return Table(f"Ranks {ranks_text(item.ranks)}", columns, rows, left_out, "kind")
