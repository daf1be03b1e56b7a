"""What devices have to fetch so that a weight lies as a new strategy wants it.

Boxes of elements, as in ``holdings``: a new rank needs one box of each weight
(and of its optimizer states, which lie like it); its device may hold another one of the old plan.
What the two do not share is fetched, from a peer or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import TensorLayout, replicas
from irtool.planning.cost.holdings import Box, Holding, overlap, volume

Boxes = tuple[tuple[int, Box], ...]
"""Positions in a stage whose devices hold something, with what; the devices of others are empty."""


def stored_box(layout: TensorLayout, ranks: Sequence[int], shared: int, position: int) -> Box:
    """The box that a rank of a stage stores; those of all ranks have one shape.

    Args:
        layout: of the weight, as operators see it.
        ranks: of the stage, sorted.
        shared: ranks that share a slice by optimizer parallel, along its first dimension; 1: none.
        position: of the rank in ``ranks``.
    """
    piece = layout.piece(position)
    box = tuple(
        (start, start + size) for start, size in zip(piece.offset, piece.shape, strict=True)
    )
    if shared > 1 and box:
        index = replicas(layout, ranks, ranks[position]).index(ranks[position]) % shared
        (start, end), *rest = box
        size = (end - start) // shared
        box = ((start + index * size, start + (index + 1) * size), *rest)
    return box


@dataclass(eq=False, slots=True)
class Fetch:
    """What the ranks of a stage fetch.

    Attributes:
        ranks: of the stage, in the new numbering.
        devices: the old rank whose device plays each of them; None: a new device.
    """

    ranks: Sequence[int]
    devices: Sequence[int | None]
    _boxes: dict[object, Box] = field(default_factory=dict[object, Box])
    _counts: dict[object, int] = field(default_factory=dict[object, int])
    _known: tuple[tuple[int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        # Of many ranks few are played by devices that held anything.
        self._known = tuple((p, d) for p, d in enumerate(self.devices) if d is not None)

    def held(self, old: Holding | None) -> Boxes:
        """What the devices hold of a weight."""
        if old is None:
            return ()
        boxes = old.boxes
        return tuple((p, boxes[device]) for p, device in self._known if device in boxes)

    def elements(self, layout: TensorLayout, shared: int, held: Boxes) -> int:
        """Elements that all ranks together fetch of a weight that lies in some way."""
        layout = layout.standard()
        key = (layout, shared, held)
        count = self._counts.get(key)
        if count is None:
            fresh = len(self.ranks) - len(held)
            count = fresh * _missing(self._box(layout, shared, 0), None) if fresh else 0
            for position, box in held:
                count += _missing(self._box(layout, shared, position), box)
            self._counts[key] = count
        return count

    def _box(self, layout: TensorLayout, shared: int, position: int) -> Box:
        key = (layout, shared, position)
        box = self._boxes.get(key)
        if box is None:
            box = self._boxes[key] = stored_box(layout, self.ranks, shared, position)
        return box


def _missing(need: Box, have: Box | None) -> int:
    both = overlap(need, have) if have is not None and len(have) == len(need) else None
    if not need:
        return 0 if have is not None else 1
    return volume(need) - (volume(both) if both is not None else 0)
