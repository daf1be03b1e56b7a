"""A tensor of a run that is cut: which axes its ranks cut, and the tensor put together.

The sizes on both sides say which axes can be cut how often; where that leaves several, the layout
file's axes come first, and of the rest the one under which the sides agree best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from irtool.compare.layouts.chained import Coordinate
from irtool.compare.tensors.model import Shape
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Across: TypeAlias = Literal["same", "sum", "mean", "last", "most", "least"]
"""What ranks that hold a tensor of full size hold: each the tensor, terms of it, or means; of
micro-batches that add theirs to what is there, the last one holds all terms; numbers of which the
largest or the smallest counts."""
_INNER = (2, 3)
"""How many matrices one parameter may hold behind each other, each of them cut by itself."""


@dataclass(frozen=True, slots=True)
class Partition:
    """How the ranks and micro-batches of one run may hold a tensor.

    Attributes:
        batch: the axis that data parallel ranks and micro-batches cut; None where they do not.
        tensor: the axis that tensor parallel ranks cut; None where they do not.
        outer: into how many pieces that axis falls, each of which is cut by itself.
        whole: the shape that the tensor has put together.
    """

    batch: int | None
    tensor: int | None
    outer: int
    whole: Shape

    def joined(
        self,
        values: Mapping[Coordinate, NDArray[Any]],
        over_batch: Across = "same",
        over_tensor: Across = "same",
    ) -> NDArray[Any]:
        """The tensor put together.

        Args:
            values: of all coordinates.
            over_batch: what data parallel ranks and micro-batches hold where they cut no axis.
            over_tensor: what tensor parallel ranks hold where they cut no axis.
        """
        if over_batch == "last":
            last = max(coordinate[1] for coordinate in values)
            values = {c: value for c, value in values.items() if c[1] == last}
            over_batch = "sum"
        rows: dict[tuple[int, int], list[NDArray[Any]]] = {}
        for coordinate in sorted(values):
            rows.setdefault(coordinate[:2], []).append(values[coordinate])
        cells = [self._over_tensor(row, over_tensor) for _, row in sorted(rows.items())]
        if self.batch is None:
            return _combined(cells, over_batch)
        return cells[0] if len(cells) == 1 else _joined(cells, self.batch, 1)

    def _over_tensor(self, row: Sequence[NDArray[Any]], across: Across) -> NDArray[Any]:
        if self.tensor is None:
            return _combined(row, across)
        return _joined(row, self.tensor, self.outer)

    def part(
        self, full: NDArray[Any], coordinate: Coordinate, coordinates: Sequence[Coordinate]
    ) -> NDArray[Any]:
        """What one coordinate holds of the whole, in any case what it should."""
        import numpy as np

        cells = sorted({item[:2] for item in coordinates})
        tensors = sorted({item[2] for item in coordinates})
        if self.batch is not None:
            full = np.split(full, len(cells), self.batch)[cells.index(coordinate[:2])]
        if self.tensor is None:
            return full
        pieces = np.split(full, self.outer, self.tensor)
        number = tensors.index(coordinate[2])
        own = [np.split(piece, len(tensors), self.tensor)[number] for piece in pieces]
        return np.concatenate(own, self.tensor)


def _combined(values: Sequence[NDArray[Any]], across: Across) -> NDArray[Any]:
    import numpy as np

    first = values[0]
    if across == "same" or len(values) == 1:
        return first
    if across in ("most", "least"):
        extreme = np.max if across == "most" else np.min
        return np.asarray(extreme(list(values), axis=0), first.dtype)
    total: NDArray[Any] = np.sum([value.astype(np.float64) for value in values], axis=0)
    return (total if across == "sum" else total / len(values)).astype(first.dtype)


def _joined(values: Sequence[NDArray[Any]], axis: int, outer: int) -> NDArray[Any]:
    import numpy as np

    if outer == 1:
        return np.concatenate(values, axis)
    shape = values[0].shape
    pieces = [np.reshape(v, (*shape[:axis], outer, -1, *shape[axis + 1 :])) for v in values]
    made = np.concatenate(pieces, axis + 1)
    return np.reshape(made, (*shape[:axis], -1, *shape[axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Degrees:
    """Into how many parts the ranks of one run can cut a tensor.

    Attributes:
        batch: data parallel ranks times micro-batches.
        tensor: tensor parallel ranks.
        axis: that data parallel ranks and micro-batches cut, as the layout file says.
        rows: sizes of that axis that occur.
    """

    batch: int
    tensor: int
    axis: int
    rows: frozenset[int] = frozenset()


def partitions(
    shapes: tuple[Shape, Shape],
    degrees: tuple[Degrees, Degrees],
    declared: tuple[int | None, int | None],
    is_parameter: bool,
) -> list[tuple[Partition, Partition]]:
    """Partitions of both sides that give tensors of one shape, the most likely first.

    Args:
        shapes: on one rank of each side.
        degrees: of both sides.
        declared: the axis that a layout file names for this parameter.
        is_parameter: data parallel ranks hold parameters whole.
    """
    if len(shapes[0]) != len(shapes[1]):
        return []
    pairs: list[tuple[int, Partition, Partition]] = []
    sides = [
        list(_partitions(shape, degree, axis, is_parameter))
        for shape, degree, axis in zip(shapes, degrees, declared, strict=True)
    ]
    for cost, ours in sides[0]:
        pairs += [
            (cost + other, ours, partner)
            for other, partner in sides[1]
            if partner.whole == ours.whole
        ]
    pairs.sort(key=lambda row: row[0])
    return [(ours, theirs) for _, ours, theirs in pairs]


def _partitions(
    shape: Shape, degrees: Degrees, declared: int | None, is_parameter: bool
) -> Iterator[tuple[int, Partition]]:
    """Partitions of one side and how unlikely they are."""
    axes = range(len(shape))
    batches: list[tuple[int, int | None]] = [(0 if is_parameter else 1, None)]
    if degrees.batch > 1 and not is_parameter:
        batches += [(0 if axis == degrees.axis else 2, axis) for axis in axes]
    tensors: list[tuple[int, int | None]] = [(0, None)]
    if degrees.tensor > 1:
        tensors = [(0 if declared is None else 4, None)]
        tensors += [(0 if declared in (None, axis) else 4, axis) for axis in axes]
    for cost, batch in batches:
        for more, tensor in tensors:
            full = list(shape)
            if batch is not None:
                full[batch] *= degrees.batch
            outers = [1]
            if tensor is not None:
                outers += sorted(_outers(shape[tensor], degrees.rows))
                full[tensor] *= degrees.tensor
            for outer in outers:
                crowded = batch is not None and batch == tensor
                yield (
                    cost + more + (outer > 1) + crowded,
                    Partition(batch, tensor, outer, tuple(full)),
                )


def _outers(size: int, rows: frozenset[int]) -> set[int]:
    return {n for n in (*rows, *_INNER) if 1 < n <= size and size % n == 0}
