"""Timelines: what each pass changed, and how the graphs of ranks differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dump import Dump


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A dump of a series: its name, a fingerprint of its text, and how to read it."""

    name: str
    fingerprint: str
    dump: Dump


def timeline(snapshots: Iterable[Snapshot]) -> Iterator[Step]:
    """What happened between consecutive dumps of one compilation.

    Args:
        snapshots: dumps in the order of time; each is kept only until the next one came.
    """
    before: Snapshot | None = None
    for snapshot in snapshots:
        if before is not None:
            same = before.fingerprint == snapshot.fingerprint
            diff = None if same else diff_graphs(before.dump, snapshot.dump)
            yield Step(before.name, snapshot.name, diff)
        before = snapshot
