"""Series of graphs: what each pass changed, and how the graphs of ranks differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from irtool.compare.edits import Pattern
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump

_OF_RANKS = frozenset(("group changed",))
"""Differences that every rank has by being another one."""


@dataclass(frozen=True, slots=True)
class Step:
    """From one dump to the next; ``diff`` is None where the texts alone show no difference."""

    before: str
    after: str
    diff: GraphDiff | None

    @property
    def is_identical(self) -> bool:
        """Whether the pass changed nothing."""
        return self.diff is None or self.diff.is_identical

    @property
    def counts(self) -> dict[str, int]:
        """How many edits of each kind."""
        if self.diff is None:
            return {}
        return dict(Counter(edit.kind for edit in self.diff.edits if not edit.follows))

    @property
    def nodes(self) -> tuple[int, int]:
        """Nodes before and after; zeros where nothing had to be compared."""
        if self.diff is None:
            return 0, 0
        before, after = (
            sum(len(graph.nodes) for graph in dump.graphs)
            for dump in (self.diff.left, self.diff.right)
        )
        return before, after


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A dump of a series: its name, a fingerprint of its text, and how to read it."""

    name: str
    fingerprint: str
    dump: Dump


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks with equal graphs, and what differs from the first class.

    Attributes:
        ranks: that have them.
        is_readable: whether the dump that stands for them could be read.
        diff: the difference; None for the first class itself, and where nothing could be read.
    """

    ranks: tuple[int, ...]
    is_readable: bool
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


def timeline(snapshots: Iterable[Snapshot]) -> Iterator[Step]:
    """What happened between consecutive dumps of one compilation.

    Args:
        snapshots: dumps in the order of time; each is kept only until the next one came.

    Returns:
        A step for each dump but the first.
    """
    before: Snapshot | None = None
    for snapshot in snapshots:
        if before is not None:
            same = before.fingerprint == snapshot.fingerprint
            diff = None if same else diff_graphs(before.dump, snapshot.dump)
            yield Step(before.name, snapshot.name, diff)
        before = snapshot
