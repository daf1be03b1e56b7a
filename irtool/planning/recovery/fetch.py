"""What devices have to fetch so that a weight lies as a new strategy wants it.

Boxes of elements, as in ``holdings``: a new rank needs one box of each weight
(and of its optimizer states, which lie like it); its device may hold another one of the old plan.
What the two do not share is fetched, from a peer or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irtool.operators.layout import TensorLayout, replicas
from irtool.planning.cost.holdings import Box, Holding, overlap, volume

Boxes = tuple[Box | None, ...]
"""By rank of a stage; None: that rank's device holds nothing."""


def stored_boxes(layout: TensorLayout, ranks: Sequence[int], shared: int) -> tuple[Box, ...]:
    """The box that each rank of a stage stores.

    Args:
        layout: of the weight, as operators see it.
        ranks: of the stage, sorted.
        shared: ranks that share a slice by optimizer parallel, along its first dimension; 1: none.
    """
    boxes: list[Box] = []
    for position, rank in enumerate(ranks):
        piece = layout.piece(position)
        box = tuple(
            (start, start + size) for start, size in zip(piece.offset, piece.shape, strict=True)
        )
        if shared > 1 and box:
            index = replicas(layout, tuple(ranks), rank).index(rank) % shared
            (start, end), *rest = box
            size = (end - start) // shared
            box = ((start + index * size, start + (index + 1) * size), *rest)
        boxes.append(box)
    return tuple(boxes)


@dataclass(eq=False, slots=True)
class Fetch:
    """What the ranks of a stage fetch.

    Attributes:
        ranks: of the stage, in the new numbering.
        devices: the old rank whose device plays each of them; None: a new device.
    """

    ranks: tuple[int, ...]
    devices: tuple[int | None, ...]
    _boxes: dict[object, tuple[Box, ...]] = field(default_factory=dict[object, tuple[Box, ...]])
    _counts: dict[object, int] = field(default_factory=dict[object, int])

    def held(self, old: Holding | None) -> Boxes:
        """What the devices hold of a weight."""
        if old is None:
            return (None,) * len(self.ranks)
        return tuple(
            old.boxes.get(device) if device is not None else None for device in self.devices
        )

    def elements(self, layout: TensorLayout, shared: int, held: Boxes) -> int:
        """Elements that all ranks together fetch of a weight that lies in some way."""
        layout = layout.standard()
        key = (layout, shared, held)
        count = self._counts.get(key)
        if count is None:
            boxes = self._boxes.get((layout, shared))
            if boxes is None:
                boxes = self._boxes[layout, shared] = stored_boxes(layout, self.ranks, shared)
            count = self._counts[key] = sum(
                _missing(need, have) for need, have in zip(boxes, held, strict=True)
            )
        return count


def _missing(need: Box, have: Box | None) -> int:
    both = overlap(need, have) if have is not None and len(have) == len(need) else None
    if not need:
        return 0 if have is not None else 1
    return volume(need) - (volume(both) if both is not None else 0)
