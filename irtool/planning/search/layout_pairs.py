"""Parameters before and after a change, those that lie alike taken together.

A network of many layers has few layouts: its parameters are measured once a layout, with the bytes
that one element of all of them takes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.planning.cost.holdings import Box, Holdings

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LayoutPair:
    """Parameters of one shape that lie alike before, and alike after.

    Attributes:
        needs: the box that each new rank needs.
        holds: the box that each survivor has, by its old rank.
        item_bytes: of one element of all these parameters together.
    """

    needs: Mapping[int, Box]
    holds: Mapping[int, Box]
    item_bytes: float

    @cached_property
    def needed(self) -> dict[Box, int]:
        """The different boxes that are needed, numbered."""
        return {box: place for place, box in enumerate(dict.fromkeys(self.needs.values()))}

    @cached_property
    def held(self) -> dict[Box, list[int]]:
        """The different boxes that survivors have, and who has them."""
        holders: dict[Box, list[int]] = {}
        for rank, box in sorted(self.holds.items()):
            holders.setdefault(box, []).append(rank)
        return holders

    @cached_property
    def overlaps(self) -> Numbers:
        """Elements that each needed box shares with each held one."""
        need, have = _array(list(self.needed)), _array(list(self.held))
        shared = np.ones((len(need), len(have)))
        for axis in range(need.shape[1] if len(have) else 0):
            low = np.maximum(need[:, None, axis, 0], have[None, :, axis, 0])
            high = np.minimum(need[:, None, axis, 1], have[None, :, axis, 1])
            shared *= np.maximum(high - low, 0)
        return shared

    def sources(self, need: Box) -> list[Box]:
        """The held boxes that share something with a needed one, those that share most first."""
        row = self.overlaps[self.needed[need]]
        boxes = list(self.held)
        shared = [(float(row[place]), place) for place in np.flatnonzero(row)]
        return [boxes[place] for _, place in sorted(shared, key=lambda pair: (-pair[0], pair[1]))]


def _array(boxes: Sequence[Box]) -> Places:
    """A row a box: begin and end of each dimension."""
    axes = len(boxes[0]) if boxes else 0
    table: Places = np.zeros((len(boxes), axes, 2), dtype=np.int64)
    for place, box in enumerate(boxes):
        for axis, extent in enumerate(box):
            table[place, axis] = extent
    return table


def layout_pairs(old: Holdings, new: Holdings, survivors: Sequence[int]) -> list[LayoutPair]:
    """The parameters that both networks have, in one shape.

    Args:
        old: who held what.
        new: who needs what.
        survivors: old ranks whose devices are still there.
    """
    before = old.by_name()
    sizes: dict[object, float] = {}
    layouts: dict[object, tuple[dict[int, Box], dict[int, Box]]] = {}
    for item in new.items:
        had = before.get(item.name)
        if had is None or had.shape != item.shape:
            continue
        holds = {rank: had.boxes[rank] for rank in survivors if rank in had.boxes}
        key = (item.shape, tuple(item.boxes.items()), tuple(holds.items()))
        sizes[key] = sizes.get(key, 0.0) + item.item_bytes
        layouts[key] = (dict(item.boxes), holds)
    return [LayoutPair(*layouts[key], size) for key, size in sizes.items()]


def local_bytes(pairs: Sequence[LayoutPair], ranks: int, devices: Sequence[int | None]) -> Numbers:
    """Bytes that each device has already of what each new rank needs: a row a rank.

    Args:
        pairs: parameters before and after, those that lie alike together.
        ranks: of the new layout.
        devices: by column the old rank of a device; None: a new device, which has nothing.

    Returns:
        whole bytes, rounded down.
    """
    total = np.zeros((ranks, len(devices)))
    for pair in pairs:
        table, rows, columns = _shared_bytes(pair, ranks, devices)
        total += table[rows][:, columns]
    return np.floor(total)


def bytes_in_order(
    pairs: Sequence[LayoutPair], ranks: int, devices: Sequence[int | None]
) -> Numbers:
    """Bytes that each rank needs and its device has, where devices take ranks in their order.

    Args:
        pairs: parameters before and after, those that lie alike together.
        ranks: of the new layout.
        devices: the old rank of each device; None: a new device, which has nothing.

    Returns:
        whole bytes by rank, rounded down.
    """
    total = np.zeros(ranks)
    for pair in pairs:
        table, rows, columns = _shared_bytes(pair, ranks, devices[:ranks])
        total += table[rows, columns]
    return np.floor(total)


def _shared_bytes(
    pair: LayoutPair, ranks: int, devices: Sequence[int | None]
) -> tuple[Numbers, Places, Places]:
    """Bytes that needed and held boxes share; the row of each rank, the column of each device."""
    held = {box: place for place, box in enumerate(pair.held)}
    table = np.zeros((len(pair.needed) + 1, len(held) + 1))
    table[:-1, :-1] = pair.overlaps * pair.item_bytes
    rows = _numbered(range(ranks), pair.needs, pair.needed)
    return table, rows, _numbered(devices, pair.holds, held)


def _numbered(
    who: Sequence[int | None], boxes: Mapping[int, Box], numbers: Mapping[Box, int]
) -> Places:
    """The number of everybody's box; the one behind the last for those who have none."""
    none = len(numbers)
    known = [
        numbers[boxes[holder]] if holder in boxes else none for holder in who if holder is not None
    ]
    rest = iter(known)
    return np.array([none if holder is None else next(rest) for holder in who], dtype=np.int64)
