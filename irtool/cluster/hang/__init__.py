"""Whether a run hangs: plays the communications of all ranks until all are done or none can go on.

Every rank goes through its communications in launch order.  A collective is done when all members
of its group have come to it.  A Send hands over and goes on (MindSpore launches it without
waiting); a Receive is done when its Send was; both wait only for what they need and for the
transfers with the same peer before them.  A collective waits for what it needs and for the one
before it on the same rank: groups with streams of their own may be lucky where it has to wait, but
two of them share the links, and which comes first must not matter.  That luck is judged too
(``certain``), and so is whether all would be well if a Send had to wait for its Receive
(``needs_buffers``), as it has to for data larger than the buffers.
"""

from __future__ import annotations

from collections.abc import Iterable

from irtool.cluster.hang.blocking import Blocked, blocked, odd_ranks
from irtool.cluster.hang.board import Board, Play, Wait, is_closed
from irtool.cluster.hang.script import Departure, departures
from irtool.cluster.matching import (
    FATAL,
    Disagreement,
    Transfer,
    disagreements,
    shifted_tags,
    transfers,
)
from irtool.cluster.ranks import Cluster
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown


@dataclass(frozen=True, slots=True)
class HangReport(Shown):
    """Whether a run hangs.

    Attributes:
        hangs: some communication never gets done, or members do what does not fit together.
        blocked: the first collective that is never done; None where all are.
        left: who left the common script of its stage, where the run hangs.
        certain: it hangs with every setting of ``multi_stream``; where False, only if collectives
            of different groups wait for each other.
        closed: whether ``cycle`` comes back to its beginning; if not, it ends at what is missing.
        cycle: who waits for whom.
        stuck: how many communications never complete, by rank.
        needs_buffers: what would wait in a cycle if Sends waited for their Receives; empty where
            nothing would. Where the run hangs, it does so only then.
        mismatches: where members of a group, or the ends of a transfer, do not fit together.
        crossed: routes on which tags are sent in another order than they are received in.
        shifted: routes on which all tags differ by one number (sender, receiver, number): dumps
            of different compilations.
        unmatched: Sends and Receives without another end, where both ranks' dumps are there.
        missing_ranks: ranks that take part and left no dump, assumed to do so as the others expect.
        conditional: communications behind control flow, assumed to run once.
        counts: how many communications were played, by rank.
        unfit: transfers whose ends differ in type or shape.
        devices: how many there are, as far as anything tells; at least so many if not
            ``is_exact``.
    """

    hangs: bool
    blocked: Blocked | None
    left: tuple[Departure, ...]
    certain: bool
    closed: bool
    cycle: tuple[Wait, ...]
    stuck: dict[int, int]
    needs_buffers: tuple[Wait, ...]
    mismatches: tuple[Disagreement, ...]
    crossed: tuple[Disagreement, ...]
    shifted: tuple[tuple[int, int, int], ...]
    unfit: tuple[Transfer, ...]
    unmatched: tuple[Transfer, ...]
    missing_ranks: tuple[int, ...]
    conditional: int
    counts: dict[int, int]
    devices: int
    is_exact: bool

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that there are dumps of."""
        return tuple(self.counts)

    @property
    def played(self) -> int:
        """How many communications were played."""
        return sum(self.counts.values())

    @property
    def odd_ranks(self) -> tuple[int, ...]:
        """Ranks that left the common script for certain."""
        return odd_ranks(self.left)

    def completed(self, rank: int) -> int:
        """How many communications of a rank complete."""
        return self.counts[rank] - self.stuck.get(rank, 0)


def play(cluster: Cluster, *, sends_wait: bool = False) -> HangReport:
    """Plays a run; see the module's text.

    Args:
        cluster: the communications of all ranks.
        sends_wait: a Send is done only when its Receive has come, as data larger than the buffers
            has it; what hangs only so is not certain, and ``needs_buffers`` says who waits.
    """
    board = Board(cluster)
    usual = Play(board, "in order", buffered=not sends_wait)
    usual.run()
    chain = usual.chain()
    certain = bool(chain) and not sends_wait
    if certain:
        lucky = Play(board, "stream a group", buffered=True)
        lucky.run()
        certain = bool(lucky.chain())
    strict = chain if sends_wait else ()
    if not chain:
        waiting = Play(board, "in order", buffered=False)
        waiting.run()
        strict = waiting.chain()
    differences = disagreements(cluster)
    pairs = transfers(cluster)
    unmatched = tuple(item for item in pairs if item.known and not item.matched)
    unfit = tuple(item for item in pairs if item.mismatch)
    fatal = any(item.kind in FATAL for item in differences) or bool(unfit)
    hangs = bool(chain) or fatal or bool(unmatched)
    left = departures(cluster) if hangs else ()
    return HangReport(
        hangs,
        blocked(usual, left, differences, unfit, unmatched) if hangs else None,
        left,
        certain or fatal or bool(unmatched),
        is_closed(chain),
        chain,
        usual.stuck(),
        strict,
        tuple(item for item in differences if item.kind != "order"),
        tuple(item for item in differences if item.kind == "order"),
        shifted_tags(unmatched),
        unfit,
        unmatched,
        cluster.missing,
        sum(
            step.conditional
            for alike in cluster.classes
            for step in cluster.ranks[alike[0]].program.steps
        ),
        {rank: len(one.parties) for rank, one in cluster.ranks.items()},
        cluster.devices,
        cluster.exact,
    )


def unknown_parts(report: HangReport) -> Iterable[str]:
    """What was not known, and so limits what the play says, in sentences.

    Args:
        report: of the play.

    Yields:
        Nothing where all ranks left dumps and nothing is conditional.
    """
    if report.missing_ranks:
        yield "ranks without a dump are assumed to take part as the others expect"
    if report.conditional:
        yield "communications behind control flow are assumed to run once"
