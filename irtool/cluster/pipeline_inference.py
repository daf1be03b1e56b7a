"""How many stages a run has, where no context says it: read off Send and Receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from irtool.ir.collectives import collectives
from irtool.ir.dump import Dump
from irtool.ir.group_names import WORLD_GROUPS
from irtool.ir.node import Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.ir.values import Attributes


@dataclass(frozen=True, slots=True)
class SeenStages:
    """What one dump shows: all devices (where a group lists them), and those of one stage.

    ``devices_per_stage`` is the distance of the ranks that it sends to, None where that is not
    known; ``least_devices`` how many there are at least, for the ranks seen to be in whole stages.
    """

    devices: int | None
    devices_per_stage: int | None
    least_devices: int
    has_pipeline: bool = False


def seen_stages(dump: Dump, rank: int | None) -> SeenStages:
    """Devices and devices of a stage, as one dump shows them.

    Args:
        dump: a validate dump.
        rank: whose it is; without it a peer's distance is known only between two peers.
    """
    shown = dump.groups.devices
    devices = shown.world if shown.is_exact else None
    peers: set[int] = set()
    for item in collectives(dump):
        if item.op in POINT_TO_POINT and item.origin == "pipeline" and item.peer is not None:
            peers.add(item.peer)
            devices = devices or _world(item.node)
    if rank is not None:
        stage = min((abs(peer - rank) for peer in peers if peer != rank), default=None)
        highest = max(rank, *peers) if peers else rank
    else:
        # The stages before and after this one are two stages apart.
        stage = (max(peers) - min(peers)) // 2 or None if peers else None
        highest = max(peers, default=0)
    least = (highest // stage + 1) * stage if stage else highest + 1
    return SeenStages(devices, stage, least, bool(peers))


def _world(node: Node) -> int | None:
    """How many ranks the world has, where a Send or Receive lists them all."""
    attributes = node.primitive_attributes or Attributes(())
    group, found = attributes.get("group"), attributes.get("group_rank_ids")
    if not isinstance(group, str) or not group.startswith(WORLD_GROUPS):
        return None
    if not isinstance(found, tuple | list):
        return None
    ranks = cast("tuple[object, ...]", found)
    return len(ranks) if len(ranks) > 2 and list(ranks) == list(range(len(ranks))) else None
