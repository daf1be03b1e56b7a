"""What ranks send to each other: the Sends and Receives of each channel."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from irtool.ir.collectives import Collective
from irtool.ir.operators import POINT_TO_POINT
from irtool.linting.facts import RunFacts

Channel: TypeAlias = tuple[int, int]
"""Global ranks of sender and receiver."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Both ends of one channel, in launch order."""

    sent: list[Collective] = field(default_factory=list[Collective])
    received: list[Collective] = field(default_factory=list[Collective])

    @property
    def is_matched(self) -> bool:
        """Whether each Send has its Receive."""
        return len(self.sent) == len(self.received)


def unmatched_channels(run: RunFacts) -> dict[Channel, Traffic]:
    """Channels between ranks that were both given, with more at one end than at the other."""
    return run.kept("channels.unmatched", lambda: _unmatched(run))


def _unmatched(run: RunFacts) -> dict[Channel, Traffic]:
    traffic: defaultdict[Channel, Traffic] = defaultdict(Traffic)
    for rank, facts in run.dumps.items():
        for transfer in facts.collectives:
            if transfer.op not in POINT_TO_POINT or transfer.peer is None or transfer.is_virtual:
                continue
            if transfer.op == "Send":
                traffic[rank, transfer.peer].sent.append(transfer)
            else:
                traffic[transfer.peer, rank].received.append(transfer)
    return {
        channel: traffic[channel]
        for channel in sorted(traffic)
        if set(channel) <= run.dumps.keys() and not traffic[channel].is_matched
    }
