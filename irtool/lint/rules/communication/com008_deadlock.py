"""COM008: ranks that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.hang import HangReport, Wait, play
from irtool.cluster.matching import FATAL, Disagreement, Place
from irtool.cluster.ranks import cluster_of
from irtool.ir.graph import Node
from irtool.lint.facts import RunFacts
from irtool.lint.rule import Hit, RunRule


class Deadlock(RunRule):
    """Collectives that the members of a group come to in different orders, or that do not fit."""

    code = "COM008"
    name = "deadlock"
    severity = "error"
    summary = "Ranks wait for each other in a circle, or disagree on a collective"
    explanation = """
        All members of a group have to come to its collectives in the same order, with the same
        operator, element type and shape. The communications of all ranks that were given are
        played in launch order; what never gets done, and where members disagree, is told with both
        places. `irtool comm hang` shows the whole circle.

        If the circle breaks as soon as each group runs on a stream of its own, it is a warning.
        """
    hint = "irtool comm hang shows who waits for whom; compile all ranks from the same network"
    bad = """
        rank 0: AllReduce over (0, 1) in group a, then AllReduce over (0, 1) in group b
        rank 1: AllReduce over (0, 1) in group b, then AllReduce over (0, 1) in group a
        """
    good = """
        rank 0: AllReduce over (0, 1) in group a, then AllReduce over (0, 1) in group b
        rank 1: AllReduce over (0, 1) in group a, then AllReduce over (0, 1) in group b
        """

    def check(self, run: RunFacts) -> Iterator[Hit]:
        report = run.kept("hang", lambda: _played(run))
        for item in report.mismatches:
            if item.kind in FATAL and item.left.rank in run.ranks:
                yield _disagreement(item)
        if report.cycle:
            yield _circle(report.cycle, certain=report.certain, closed=report.closed)


def _played(run: RunFacts) -> HangReport:
    devices = max((facts.device_num or 0 for facts in run.dumps.values()), default=0)
    dumps = {rank: facts.dump for rank, facts in run.dumps.items()}
    return play(cluster_of(dumps, devices or None))


def _disagreement(item: Disagreement) -> Hit:
    related = () if item.right is None else ((f"rank {item.right_rank}", _node(item.right)),)
    return Hit(
        item.message,
        item.left.collective.node,
        related=related,
        rank=item.left.rank,
        key=f"{item.kind} {item.index}",
    )


def _circle(cycle: tuple[Wait, ...], certain: bool, closed: bool) -> Hit:
    first = cycle[0]
    ranks = ", ".join(str(wait.place.rank) for wait in cycle)
    what = "wait for each other in a circle" if closed else "wait for what never comes"
    return Hit(
        f"ranks {ranks} {what}: {first.place.op} of rank {first.place.rank} waits for rank "
        f"{first.waits_for}",
        first.place.collective.node,
        related=tuple(
            (f"rank {wait.place.rank} waits here", _node(wait.place)) for wait in cycle[1:]
        ),
        rank=first.place.rank,
        severity=None if certain else "warning",
        key="circle",
    )


def _node(place: Place) -> Node:
    return place.collective.node
