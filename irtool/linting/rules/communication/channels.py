"""What ranks send to each other: the Sends and Receives of each channel."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import TypeAlias

from irtool.cluster.ranks import Program
from irtool.ir.collectives import collectives
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.linting.facts import RunFacts

Channel: TypeAlias = tuple[int, int]
"""Global ranks of sender and receiver."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Both ends of one channel, in printed order; nodes as the dump that was parsed has them."""

    sent: list[Node] = field(default_factory=list[Node])
    received: list[Node] = field(default_factory=list[Node])

    @property
    def is_matched(self) -> bool:
        """Whether each Send has its Receive."""
        return len(self.sent) == len(self.received)


def unmatched_channels(run: RunFacts) -> dict[Channel, Traffic]:
    """Channels between ranks that were both given, with more at one end than at the other.

    Args:
        run: the ranks, of some of which dumps may be missing.
    """
    return run.kept("channels.unmatched", lambda: _unmatched(run))


def _unmatched(run: RunFacts) -> dict[Channel, Traffic]:
    traffic: defaultdict[Channel, Traffic] = defaultdict(Traffic)
    transfers: dict[Program, list[Node]] = {}
    for rank, one in run.cluster.ranks.items():
        if one.program not in transfers:
            transfers[one.program] = _transfers(one.program, run.dumps[rank].device_num)
        peers = {
            step.collective.node: party.peer
            for step, party in zip(one.program.steps, one.parties, strict=True)
        }
        for node in transfers[one.program]:
            peer = peers.get(node)
            if peer is None:
                continue
            if node.op == "Send":
                traffic[rank, peer].sent.append(node)
            else:
                traffic[peer, rank].received.append(node)
    return {
        channel: traffic[channel]
        for channel in sorted(traffic)
        if set(channel) <= run.dumps.keys() and not traffic[channel].is_matched
    }


def _transfers(program: Program, devices: int | None) -> list[Node]:
    """Sends and Receives of a dump, in printed order."""
    return [
        transfer.node
        for transfer in collectives(program.dump, devices)
        if transfer.op in POINT_TO_POINT and not transfer.is_virtual
    ]
