"""COM007: a Send without its Receive, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.units import count_text
from irtool.linting.facts import RunFacts
from irtool.linting.rule import RunRule
from irtool.linting.rules.communication.channels import Channel, Traffic, unmatched_channels


class UnmatchedSend(RunRule):
    """Ranks that send to each other another number of times than they receive."""

    code = "COM007"
    name = "unmatched-send-receive"
    severity = "error"
    summary = "A rank sends what the other one does not receive, or waits for what nobody sends"
    explanation = """
        A `Send` ends when its peer's `Receive` takes the data. Between two ranks whose dumps were
        both given, each `Send` needs one `Receive` at the other end; what is left over waits until
        the run is stopped. Different numbers come from stages that were compiled with different
        numbers of micro-batches, or from dumps of different runs in one folder.
        """
    hint = "compile all ranks with the same network, pipeline_stages and number of micro-batches"
    bad = """
        rank 0: %9 = PrimFunc_Send(%8) {dest_rank: 1}   %12 = PrimFunc_Send(%11) {dest_rank: 1}
        rank 1: %2 = PrimFunc_Receive(%1) {src_rank: 0}
        """
    good = """
        rank 0: %9 = PrimFunc_Send(%8) {dest_rank: 1}
        rank 1: %2 = PrimFunc_Receive(%1) {src_rank: 0}
        """

    cases = ("tests/linting/evidence/twins/pipe_pipes",)

    def check(self, run: RunFacts) -> Iterator[Finding]:
        pairs: dict[frozenset[int], list[tuple[Channel, Traffic]]] = {}
        for channel, traffic in unmatched_channels(run).items():
            pairs.setdefault(frozenset(channel), []).append((channel, traffic))
        for channels in pairs.values():
            yield self._between(channels, run)

    def _between(self, channels: list[tuple[Channel, Traffic]], run: RunFacts) -> Finding:
        """One finding of two ranks, at the first node without a partner."""
        texts: list[str] = []
        places: list[tuple[int, Node]] = []
        for (sender, receiver), traffic in channels:
            sent, received = len(traffic.sent), len(traffic.received)
            longer, rank = (
                (traffic.sent, sender) if sent > received else (traffic.received, receiver)
            )
            places.append((rank, run.own_node(rank, longer[min(sent, received)])))
            texts.append(
                f"rank {sender} sends {times(sent)} to rank {receiver}, which receives "
                f"{times(received)}"
            )
        (rank, node), *others = places
        (sender, receiver), _ = channels[0]
        return self.finding(
            "; ".join(texts),
            node,
            rank=rank,
            related=[
                (f"rank {other}: here the numbers part as well", place) for other, place in others
            ],
            key=f"{sender} to {receiver}",
        )


def times(count: int) -> str:
    """How often something happens, in words: ``once``, ``3 times``, ``never``.

    Args:
        count: from 0.
    """
    return {0: "never", 1: "once"}.get(count, f"{count_text(count)} times")
