"""Which peer sends what to whom: the nearest one that has it, and of those the least busy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.cluster.machine import Level, Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.holdings import Box, overlap, volume, without
from irtool.planning.search.layout_pairs import LayoutPair


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one device sends to another.

    ``source`` is the old rank of the device that sends; ``rank`` the new rank that receives and
    ``device`` the old rank of its device (None: a new device); ``level`` the links between them.
    """

    source: int
    rank: int
    device: int | None
    level: str
    bytes: int


class Senders:
    """Survivors, and how much each was asked to send so far."""

    def __init__(self, pairs: Sequence[LayoutPair], machine: Machine) -> None:
        self.pairs = pairs
        self.machine = machine
        self.sent: dict[int, float] = {}
        self._sources: dict[tuple[int, Box], list[Box]] = {}

    def to(self, rank: int, device: int | None) -> tuple[list[Transfer], int]:
        """What a new rank's device has to get from whom, and the bytes that nobody has.

        A piece comes over the innermost links that reach somebody who has it.  New devices stand
        in servers of their own: nobody says where.
        """
        got: dict[tuple[int, str], float] = {}
        lost = 0.0
        for place, pair in enumerate(self.pairs):
            need = pair.needs.get(rank)
            if need is None:
                continue
            own = pair.holds.get(device) if device is not None else None
            left = [need] if own is None else list(without(need, own))
            for level in self._levels(device):
                for source, size in self._taken(place, need, left, level, device):
                    bytes_ = size * pair.item_bytes
                    self.sent[source] = self.sent.get(source, 0.0) + bytes_
                    key = source, level.name
                    got[key] = got.get(key, 0.0) + bytes_
                if not left:
                    break
            lost += sum(map(volume, left)) * pair.item_bytes
        transfers = [
            Transfer(source, rank, device, level, int(size))
            for (source, level), size in got.items()
        ]
        return transfers, int(lost)

    def _levels(self, device: int | None) -> Sequence[Level]:
        return self.machine.levels if device is not None else self.machine.levels[-1:]

    def _taken(
        self, place: int, need: Box, left: list[Box], level: Level, device: int | None
    ) -> Iterator[tuple[int, int]]:
        """Peers at a level with the elements that each gives; these are taken out of ``left``."""
        pair = self.pairs[place]
        key = place, need
        if key not in self._sources:
            self._sources[key] = pair.sources(need)
        for box in self._sources[key]:
            near = _near(pair.held[box], level, device) if left else ()
            if not near:
                continue
            shared = [overlap(piece, box) for piece in left]
            size = sum(volume(part) for part in shared if part is not None)
            if size:
                left[:] = [rest for piece in left for rest in without(piece, box)]
                yield min(near, key=lambda peer: (self.sent.get(peer, 0.0), peer)), size


def _near(holders: Sequence[int], level: Level, device: int | None) -> Sequence[int]:
    size = level.devices
    if size is None or device is None:
        return holders
    return [holder for holder in holders if holder // size == device // size]
