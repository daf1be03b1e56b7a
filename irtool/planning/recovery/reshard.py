"""From one layout of all parameters to another: what stays, what peers send, what is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from irtool.cluster.machine import Level, Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.holdings import Holdings
from irtool.planning.recovery.transfers import Senders, Transfer
from irtool.planning.search.assignment import preferred
from irtool.planning.search.layout_pairs import (
    LayoutPair,
    Numbers,
    bytes_in_order,
    layout_pairs,
    local_bytes,
)

MOST_DEVICES = 1536
"""Devices up to which the best assignment is computed; beyond, ranks keep their order."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one new rank needs, in bytes.

    ``rank`` is the new rank, ``device`` the old rank whose device plays it (None: a new device).
    ``local`` is there already, ``peers`` come from other survivors, ``lost`` has no holder;
    ``levels`` is what comes from peers, by the links it takes.
    """

    rank: int
    device: int | None
    local: int
    lost: int
    levels: Mapping[str, int]

    @property
    def peers(self) -> int:
        """Bytes that other survivors send."""
        return sum(self.levels.values())


@dataclass(frozen=True, eq=False)
class Resharding:
    """The moves of all new ranks.

    ``transfers`` are who sends to whom; ``identity_bytes`` is what peers would send if new ranks
    were given to survivors in order; ``is_best`` whether the assignment is the best one, rather
    than that order.
    """

    moves: tuple[Move, ...]
    transfers: tuple[Transfer, ...]
    machine: Machine
    identity_bytes: int
    is_best: bool

    @property
    def peer_bytes(self) -> int:
        """Bytes that peers send in all."""
        return sum(move.peers for move in self.moves)

    @property
    def lost_bytes(self) -> int:
        """Bytes that no survivor has: from a checkpoint."""
        return sum(move.lost for move in self.moves)

    @property
    def local_bytes(self) -> int:
        """Bytes that are where they are needed."""
        return sum(move.local for move in self.moves)

    @cached_property
    def levels(self) -> tuple[LevelTraffic, ...]:
        """What goes over each kind of links, the innermost first."""
        return tuple(_traffic(level, self.transfers) for level in self.machine.levels)

    @cached_property
    def busiest(self) -> tuple[Transfer, ...]:
        """Pairs of devices, those with most to carry first."""
        return tuple(sorted(self.transfers, key=lambda transfer: (-transfer.bytes, transfer.rank)))

    @property
    def seconds(self) -> float:
        """How long peers need, if all links of all kinds are used at once."""
        return max((level.seconds for level in self.levels), default=0.0)


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """What goes over links of one kind.

    ``link``, ``sender`` and ``receiver`` are the bytes of the busiest pair of devices, of the
    device that sends most and of the one that gets most.  In a mesh each pair has a link of its
    own; in a ring a device's pairs share what it can send and what it can get.
    """

    level: Level
    bytes: int
    pairs: int
    link: int
    sender: int
    receiver: int

    @property
    def seconds(self) -> float:
        """How long the busiest of these links needs."""
        busy = self.link if self.level.topology == "mesh" else max(self.sender, self.receiver)
        return busy / self.level.bandwidth


def _traffic(level: Level, transfers: Sequence[Transfer]) -> LevelTraffic:
    own = [transfer for transfer in transfers if transfer.level == level.name]
    sent: dict[int, int] = {}
    got: dict[int, int] = {}
    for transfer in own:
        sent[transfer.source] = sent.get(transfer.source, 0) + transfer.bytes
        got[transfer.rank] = got.get(transfer.rank, 0) + transfer.bytes
    return LevelTraffic(
        level,
        sum(transfer.bytes for transfer in own),
        len(own),
        max((transfer.bytes for transfer in own), default=0),
        max(sent.values(), default=0),
        max(got.values(), default=0),
    )


def reshard(
    old: Holdings, new: Holdings, survivors: Sequence[int], machine: Machine, fresh: int = 0
) -> Resharding:
    """What has to move so that every new rank has its slices.

    Devices are given to ranks so that peers send least; among the best ways, one where least
    leaves a server, and where ranks keep their devices.

    Args:
        old: who held what.
        new: who needs what; parameters that the old network does not have are not moved.
        survivors: old ranks whose devices are still there.
        machine: its links; old ranks are numbered server by server.
        fresh: how many devices without any data join.

    Raises:
        ValueError: there are fewer devices than new ranks.
    """
    devices: list[int | None] = [*survivors, *[None] * fresh]
    if len(devices) < new.devices:
        raise ValueError(f"{new.devices} ranks need as many devices; there are {len(devices)}")
    pairs = layout_pairs(old, new, survivors)
    kept = in_place = bytes_in_order(pairs, new.devices, devices)
    chosen: Sequence[int] = range(new.devices)
    is_best = len(devices) <= MOST_DEVICES
    if is_best:
        local = local_bytes(pairs, new.devices, devices)
        chosen = preferred(-local, _second(pairs, local, devices, machine.node_devices))
        kept = local[range(new.devices), chosen]
    senders = Senders(pairs, machine)
    moves: list[Move] = []
    transfers: list[Transfer] = []
    for rank in range(new.devices):
        device = devices[chosen[rank]]
        sent, lost = senders.to(rank, device)
        levels: dict[str, int] = {}
        for transfer in sent:
            levels[transfer.level] = levels.get(transfer.level, 0) + transfer.bytes
        moves.append(Move(rank, device, int(kept[rank]), lost, levels))
        transfers += sent
    in_order = sum(move.peers + move.local for move in moves)
    in_order -= int(in_place.sum())
    return Resharding(tuple(moves), tuple(transfers), machine, in_order, is_best)


def _second(
    pairs: Sequence[LayoutPair], local: Numbers, devices: Sequence[int | None], server: int | None
) -> Numbers:
    """What else a good assignment avoids, beside bytes that peers send.

    A device of a server that holds more of what a rank needs is better; then one that keeps its
    rank, or at least its server.
    """
    size = server or len(devices)
    units = [None if device is None else device // size for device in devices]
    penalties = np.zeros_like(local)
    for unit in dict.fromkeys(units):
        if unit is None:
            continue
        inside = [place for place, other in enumerate(units) if other == unit]
        near = np.zeros(len(local))
        for pair in pairs:
            near += _held_in(pair, unit, size, len(local))
        penalties[:, inside] = -near[:, None]
    stays = np.array(
        [
            [0.0 if device == rank else 0.5 if unit == rank // size else 1.0
             for device, unit in zip(devices, units, strict=True)]
            for rank in range(len(local))
        ]
    )  # fmt: skip
    return penalties + stays


def _held_in(pair: LayoutPair, unit: int, size: int, ranks: int) -> Numbers:
    """Bytes of each rank's need that the devices of one server hold together, at most."""
    inside = [
        place
        for place, holders in enumerate(pair.held.values())
        if any(holder // size == unit for holder in holders)
    ]
    held = np.zeros(ranks)
    if not inside:
        return held
    together = pair.overlaps[:, inside].sum(axis=1) * pair.item_bytes
    for rank, box in pair.needs.items():
        if rank < ranks:
            held[rank] = together[pair.needed[box]]
    return held
