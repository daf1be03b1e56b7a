"""From one layout of all parameters to another: what stays, what peers send, what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from irtool.planning.assignment import best_assignment
from irtool.planning.holdings import Box, Holding, Holdings, overlap, uncovered, volume

_MOST_RANKS = 256
"""Devices up to which the best assignment is computed; beyond, ranks keep their order."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one new rank needs, in bytes.

    ``rank`` is the new rank, ``device`` the old rank whose device plays it (None: a new device).
    ``local`` is there already, ``peers`` come from other survivors (of them ``inside`` may come
    from the same server, the rest crosses servers), ``lost`` has no holder.
    """

    rank: int
    device: int | None
    local: int
    peers: int
    lost: int
    inside: int = 0


@dataclass(frozen=True, slots=True)
class Resharding:
    """The moves of all new ranks.

    ``identity_bytes`` is what peers would send if new ranks were given to survivors in order;
    ``is_best`` whether the assignment is the best one, rather than that order.
    """

    moves: tuple[Move, ...]
    identity_bytes: int
    is_best: bool

    @property
    def peer_bytes(self) -> int:
        """Bytes that peers send in all."""
        return sum(move.peers for move in self.moves)

    @property
    def inside_bytes(self) -> int:
        """Of those, what a peer of the same server has."""
        return sum(move.inside for move in self.moves)

    @property
    def lost_bytes(self) -> int:
        """Bytes that no survivor has: from a checkpoint."""
        return sum(move.lost for move in self.moves)

    @property
    def local_bytes(self) -> int:
        """Bytes that are where they are needed."""
        return sum(move.local for move in self.moves)


def reshard(
    old: Holdings, new: Holdings, survivors: Sequence[int], fresh: int = 0, server: int = 8
) -> Resharding:
    """What has to move so that every new rank has its slices.

    Args:
        old: who held what.
        new: who needs what; parameters that the old network does not have are not moved.
        survivors: old ranks whose devices are still there.
        fresh: how many devices without any data join.
        server: devices of a server; old ranks are numbered server by server.
    """
    devices: list[int | None] = [*survivors, *[None] * fresh]
    shared = [
        (before, after)
        for after in new.items
        if (before := old.by_name().get(after.name)) is not None and before.shape == after.shape
    ]
    ranks = range(new.devices)
    if len(devices) < len(ranks):
        raise ValueError(f"{new.devices} ranks need as many devices; there are {len(devices)}")
    table = _Table(shared, set(survivors), server)
    local = [[table.local(device, rank) for device in devices] for rank in ranks]
    identity = list(range(len(ranks)))
    is_best = len(devices) <= _MOST_RANKS
    chosen = best_assignment([[-float(b) for b in row] for row in local]) if is_best else identity
    moves = tuple(
        table.move(rank, devices[chosen[rank]], local[rank][chosen[rank]]) for rank in ranks
    )
    in_order = sum(table.move(rank, devices[rank], local[rank][rank]).peers for rank in ranks)
    return Resharding(moves, in_order, is_best)


class _Table:
    """Sizes of what ranks need and have; equal boxes are measured once."""

    def __init__(
        self, shared: Sequence[tuple[Holding, Holding]], survivors: set[int], server: int
    ) -> None:
        self.shared = shared
        self.survivors = survivors
        self.server = server
        self._overlaps: dict[tuple[int, Box, Box], int] = {}
        self._missing: dict[tuple[int, Box, int | None], int] = {}

    def local(self, device: int | None, rank: int) -> int:
        """Bytes of a new rank's slices that an old rank's device holds."""
        if device is None:
            return 0
        total = 0.0
        for place, (before, after) in enumerate(self.shared):
            need, have = after.boxes.get(rank), before.boxes.get(device)
            if need is not None and have is not None:
                total += self._overlap(place, need, have) * after.item_bytes
        return int(total)

    def move(self, rank: int, device: int | None, local: int) -> Move:
        """What a new rank needs and where it comes from."""
        needed = lost = far = 0.0
        home = None if device is None else device // self.server
        for place, (_, after) in enumerate(self.shared):
            need = after.boxes.get(rank)
            if need is not None:
                needed += volume(need) * after.item_bytes
                lost += self._uncovered(place, need, None) * after.item_bytes
                if home is not None:
                    far += self._uncovered(place, need, home) * after.item_bytes
        peers = max(0, int(needed) - local - int(lost))
        inside = 0 if home is None else max(0, int(needed) - local - int(far))
        return Move(rank, device, local, peers, int(lost), min(peers, inside))

    def _overlap(self, place: int, need: Box, have: Box) -> int:
        key = (place, need, have)
        if key not in self._overlaps:
            found = overlap(need, have)
            self._overlaps[key] = volume(found) if found is not None else 0
        return self._overlaps[key]

    def _uncovered(self, place: int, need: Box, server: int | None) -> int:
        """Elements that no survivor has, or none of one server."""
        key = (place, need, server)
        if key not in self._missing:
            boxes = self.shared[place][0].boxes
            holders = [
                boxes[rank]
                for rank in self.survivors
                if rank in boxes and (server is None or rank // self.server == server)
            ]
            self._missing[key] = uncovered(need, holders)
        return self._missing[key]


@dataclass(frozen=True, slots=True)
class LostSlice:
    """A slice of a parameter that no survivor holds: ``ranks`` held it."""

    parameter: str
    ranks: tuple[int, ...]
    bytes: int


def lost_slices(old: Holdings, lost: Iterable[int]) -> tuple[LostSlice, ...]:
    """Slices all of whose holders are lost."""
    gone = set(lost)
    found: list[LostSlice] = []
    for item in old.items:
        found += [
            LostSlice(item.name, ranks, item.bytes_of(item.boxes[ranks[0]]))
            for ranks in item.replica_sets
            if gone.issuperset(ranks)
        ]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SurvivingSlice:
    """A slice that lost ranks held and survivors hold too: it comes back without a disk."""

    parameter: str
    lost: tuple[int, ...]
    survivors: tuple[int, ...]
    bytes: int


def surviving_slices(old: Holdings, lost: Iterable[int]) -> tuple[SurvivingSlice, ...]:
    """Slices some but not all of whose holders are lost."""
    gone = set(lost)
    found: list[SurvivingSlice] = []
    for item in old.items:
        for ranks in item.replica_sets:
            left = tuple(rank for rank in ranks if rank not in gone)
            if left and len(left) < len(ranks):
                missing = tuple(rank for rank in ranks if rank in gone)
                size = item.bytes_of(item.boxes[ranks[0]])
                found.append(SurvivingSlice(item.name, missing, left, size))
    return tuple(found)


def common_replicas(old: Holdings) -> tuple[tuple[int, ...], ...]:
    """Ranks that MindSpore itself would restore from each other (TFT), which is coarser.

    It intersects the replicas of all parameters of a rank, and gives up (the rank alone) as soon
    as two of them are not nested, as MindSpore 2.7 does it. Ranks of which nothing is known are
    left out.
    """
    found: dict[tuple[int, ...], None] = {}
    sets: dict[int, list[set[int]]] = {}
    for item in old.items:
        for ranks in item.replica_sets:
            for rank in ranks:
                sets.setdefault(rank, []).append(set(ranks))
    for rank, each in sorted(sets.items()):
        each.sort(key=len)
        nested = all(small <= large for small, large in pairwise(each))
        found[tuple(sorted(each[0])) if nested else (rank,)] = None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class WeakPoint:
    """Ranks (or servers) whose loss no peer can repair, with the parameters that would be lost."""

    units: tuple[int, ...]
    parameters: tuple[str, ...]


def weak_points(old: Holdings, unit: int = 1) -> tuple[WeakPoint, ...]:
    """The smallest sets of ranks, or of servers, whose loss no peer can repair.

    A slice is gone when all its holders are; so the sets are those of the holders themselves.

    Args:
        old: who holds what.
        unit: ranks that fail together (8 for a server); sets are then of servers' numbers.
    """
    killing: dict[tuple[int, ...], dict[str, None]] = {}
    for item in old.items:
        for ranks in item.replica_sets:
            units = tuple(sorted({rank // unit for rank in ranks}))
            killing.setdefault(units, {})[item.name] = None
    least = min(map(len, killing), default=0)
    return tuple(
        WeakPoint(units, tuple(names))
        for units, names in sorted(killing.items())
        if len(units) == least
    )
