"""COM008: ranks that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.hang import HangReport, play
from irtool.cluster.matching import FATAL, Disagreement, Place
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.linting.facts import RunFacts
from irtool.linting.rule import RunRule
from irtool.linting.rules.communication.channels import unmatched_channels


class Deadlock(RunRule):
    """Collectives that the members of a group come to in different orders, or that do not fit."""

    code = "COM008"
    name = "deadlock"
    severity = "error"
    summary = "Ranks wait for each other in a cycle, or disagree on a collective"
    explanation = """
        All members of a group have to come to its collectives in the same order, with the same
        operator, element type and shape. The communications of all ranks that were given are
        played in launch order; what never completes, and where members disagree, is told with both
        places. `irtool comm hang` shows the whole cycle, and which rank left the common order.

        If the cycle breaks as soon as each group runs on a stream of its own, it is a warning.
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
    cases = ("samples/hang_one_strategy",)

    def check(self, run: RunFacts) -> Iterator[Finding]:
        report = run.kept("hang", lambda: _played(run))
        fatal = [
            item for item in report.mismatches if item.kind in FATAL and item.left.rank in run.ranks
        ]
        for item in fatal:
            yield self._disagreement(item, run)
        # Who waits for what members disagree on, or for what nobody sends (COM007), hangs for that
        # reason, and is no finding more.
        explained = fatal or _waits_for_nobody(report, run)
        if report.cycle and (report.closed or not explained):
            yield self._waiting(report, run)

    def _disagreement(self, item: Disagreement, run: RunFacts) -> Finding:
        related: tuple[tuple[str, Node], ...] = ()
        if item.right is not None:
            related = ((f"rank {item.right_rank}", _node(run, item.right)),)
        return self.finding(
            item.message,
            _node(run, item.left),
            related=related,
            rank=item.left.rank,
            key=f"{item.kind} {item.index}",
        )

    def _waiting(self, report: HangReport, run: RunFacts) -> Finding:
        """Who waits for whom, from the first; each other one is a related place."""
        cycle = report.cycle
        first = cycle[0]
        ranks = ", ".join(str(wait.place.rank) for wait in cycle)
        what = "wait for each other in a cycle" if report.closed else "wait for what never comes"
        return self.finding(
            f"ranks {ranks} {what}: {first.place.op} of rank {first.place.rank} waits for rank "
            f"{first.waits_for}",
            _node(run, first.place),
            related=tuple(
                (f"rank {wait.place.rank} waits here", _node(run, wait.place)) for wait in cycle[1:]
            ),
            rank=first.place.rank,
            severity=None if report.certain else "warning",
            key="circle",
        )


def _waits_for_nobody(report: HangReport, run: RunFacts) -> bool:
    """Whether a rank waits for a Send or Receive that COM007 misses."""
    unmatched = {frozenset(channel) for channel in unmatched_channels(run)}
    return any(
        wait.place.op in POINT_TO_POINT
        and frozenset((wait.place.rank, wait.waits_for)) in unmatched
        for wait in report.cycle
    )


def _played(run: RunFacts) -> HangReport:
    return play(run.cluster)


def _node(run: RunFacts, place: Place) -> Node:
    return run.own_node(place.rank, place.collective.node)
