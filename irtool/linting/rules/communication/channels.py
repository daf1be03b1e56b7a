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
    found: defaultdict[Channel, Traffic] = defaultdict(Traffic)
    for rank, facts in run.dumps.items():
        for each in facts.collectives:
            if each.op not in POINT_TO_POINT or each.peer is None or each.is_virtual:
                continue
            if each.op == "Send":
                found[rank, each.peer].sent.append(each)
            else:
                found[each.peer, rank].received.append(each)
    return {
        channel: found[channel]
        for channel in sorted(found)
        if set(channel) <= run.dumps.keys() and not found[channel].is_matched
    }
