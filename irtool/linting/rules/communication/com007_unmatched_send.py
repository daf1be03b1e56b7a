"""COM007: a Send without its Receive, or the other way round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.operators import POINT_TO_POINT
from irtool.linting.facts import RunFacts
from irtool.linting.rule import RunRule

Channel: TypeAlias = tuple[int, int]
"""Global ranks of sender and receiver."""


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

    def check(self, run: RunFacts) -> Iterator[Finding]:
        sent: dict[Channel, list[Collective]] = defaultdict(list)
        received: dict[Channel, list[Collective]] = defaultdict(list)
        for rank, facts in run.dumps.items():
            for each in facts.collectives:
                if each.op not in POINT_TO_POINT or each.peer is None or each.is_virtual:
                    continue
                if each.op == "Send":
                    sent[rank, each.peer].append(each)
                else:
                    received[each.peer, rank].append(each)
        for channel in sorted({*sent, *received}):
            if channel[0] in run.dumps and channel[1] in run.dumps:
                yield from self._unmatched(channel, sent[channel], received[channel])

    def _unmatched(
        self, channel: Channel, sent: list[Collective], received: list[Collective]
    ) -> Iterator[Finding]:
        """A hit at the first node of the longer list that has no partner."""
        if len(sent) == len(received):
            return
        sender, receiver = channel
        counts = f"rank {sender} sends {len(sent)} times to rank {receiver}, which receives"
        longer, rank = (sent, sender) if len(sent) > len(received) else (received, receiver)
        node = longer[min(len(sent), len(received))].node
        key = f"{sender} to {receiver}"
        yield self.finding(f"{counts} {len(received)} times", node, rank=rank, key=key)
