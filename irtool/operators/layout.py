"""Tensor layouts: how a tensor lies on the devices of one stage.

Devices stand in a *device matrix*, slowest axis first. A *tensor map* has one entry a tensor
dimension: ``-1`` (whole on every device), or ``k``, the device-matrix axis counted **from the
right** along which the dimension is split (``0`` is the last axis). A tuple of such numbers
splits one dimension along several axes, major axis first, as ``mindspore.parallel.Layout`` allows.

The *origin* form is what an operator derives from its strategy, with the axis of repeated
calculation; the *standard* form has no device axes of size 1, and is what comparisons use.
A dimension of size -1 (dynamic) stays -1 in every slice.

Source: device matrices and tensor maps printed in dumps (``MS_DEV_DUMP_IR_PARALLEL_DETAIL=1``),
and the documentation of ``mindspore.parallel.Layout``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from irtool.ir.dataclass import dataclass

DeviceMatrix = tuple[int, ...]
MapEntry = int | tuple[int, ...]
TensorMap = tuple[MapEntry, ...]
Shape = tuple[int, ...]

WHOLE = -1
"""The tensor-map entry of a dimension that is not split."""

DYNAMIC = -1
"""The size of a dimension that is not known when the network is compiled."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a tensor that one device holds: its shape, and where it begins."""

    shape: Shape
    offset: Shape


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """One tensor (``tensor_shape``: the whole, global shape) laid out on a device matrix."""

    device_matrix: DeviceMatrix
    tensor_map: TensorMap
    tensor_shape: Shape

    @property
    def splits(self) -> tuple[int, ...]:
        """Into how many slices each dimension is cut."""
        return tuple(split_of(self.device_matrix, entry) for entry in self.tensor_map)

    @property
    def slice_shape(self) -> Shape:
        """What one device holds. Dimensions that don't divide are cut down (see ``problem``)."""
        return tuple(
            size if size == DYNAMIC else size // split
            for size, split in zip(self.tensor_shape, self.splits, strict=True)
        )

    @property
    def used_axes(self) -> frozenset[int]:
        """Positions in the device matrix (from the left) that split a dimension."""
        return frozenset(
            axis for entry in self.tensor_map for axis in axes_of(self.device_matrix, entry)
        )

    @property
    def repeats(self) -> int:
        """How many devices hold the same slice."""
        return prod(self.device_matrix) // prod(self.splits)

    @property
    def is_whole(self) -> bool:
        """True if every device holds the whole tensor."""
        return all(split == 1 for split in self.splits)

    def problem(self) -> str | None:
        """Why this is no layout at all, or None: axes out of range, used twice, not divisible."""
        if len(self.tensor_map) != len(self.tensor_shape):
            return (
                f"the tensor map {self.tensor_map} and the tensor shape {self.tensor_shape} "
                "differ in length"
            )
        seen: set[int] = set()
        for entry in self.tensor_map:
            for axis in entries_of(entry):
                if not 0 <= axis < len(self.device_matrix):
                    return f"the tensor map {self.tensor_map} has no axis {axis} to point at"
                if axis in seen:
                    return f"the tensor map {self.tensor_map} uses axis {axis} twice"
                seen.add(axis)
        for index, (size, split) in enumerate(zip(self.tensor_shape, self.splits, strict=True)):
            if size != DYNAMIC and size % split:
                return f"dimension {index} of size {size} does not divide into {split} slices"
        return None

    def standard(self) -> TensorLayout:
        """The layout without device axes of size 1, but for one where there is no other."""
        kept = [axis for axis, size in enumerate(self.device_matrix) if size != 1]
        matrix = tuple(self.device_matrix[axis] for axis in kept) or (1,)
        place = {axis: len(matrix) - 1 - new for new, axis in enumerate(kept)}

        def moved(entry: MapEntry) -> MapEntry:
            axes = [place[axis] for axis in axes_of(self.device_matrix, entry) if axis in place]
            return entry_of(axes)

        return TensorLayout(matrix, tuple(moved(e) for e in self.tensor_map), self.tensor_shape)

    def expanded(self) -> TensorLayout:
        """Every split dimension along one axis only.

        A dimension ``D`` along axes ``(a, b)`` becomes two dimensions ``|a|, D/|a|``, each along
        one axis. The whole shape changes, the elements on each device don't.
        """
        shape: list[int] = []
        tensor_map: list[MapEntry] = []
        for size, entry in zip(self.tensor_shape, self.tensor_map, strict=True):
            # A whole part that is written out, as in (1, -1), is a dimension of its own, too.
            axes = entry if isinstance(entry, tuple) else (entry,)
            if len(axes) == 1:
                shape.append(size)
                tensor_map.append(axes[0])
                continue
            outer = [split_of(self.device_matrix, axis) for axis in axes[:-1]]
            shape += [*outer, size if size == DYNAMIC else size // prod(outer)]
            tensor_map += axes
        return TensorLayout(self.device_matrix, tuple(tensor_map), tuple(shape))

    def without_last_axis(self) -> TensorLayout:
        """The layout without the last axis of the matrix: what it split is whole along it."""
        return TensorLayout(
            self.device_matrix[:-1], map_without_last_axis(self.tensor_map), self.tensor_shape
        )

    def piece(self, position: int) -> Piece:
        """The piece of the device at ``position`` (0-based) in the list of the stage's devices."""
        place = coordinates(self.device_matrix, position)
        shape = self.slice_shape
        offset: list[int] = []
        for size, entry in zip(shape, self.tensor_map, strict=True):
            index = 0
            for axis in axes_of(self.device_matrix, entry):
                index = index * self.device_matrix[axis] + place[axis]
            offset.append(0 if size == DYNAMIC else index * size)
        return Piece(shape, tuple(offset))

    def same_as(self, other: TensorLayout) -> bool:
        """True if every device holds the same piece under both layouts.

        Device matrices may differ: per dimension, sizes and strides of the axes are compared.
        """
        if self == other:
            return True
        return self.tensor_shape == other.tensor_shape and self.strides() == other.strides()

    def strides(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per dimension the (size, stride in ranks) of its axes, adjacent ones merged."""
        by_dimension: list[tuple[tuple[int, int], ...]] = []
        for entry in self.tensor_map:
            parts: list[tuple[int, int]] = []
            for axis in axes_of(self.device_matrix, entry):
                size, stride = self.device_matrix[axis], prod(self.device_matrix[axis + 1 :])
                if size == 1:
                    continue
                if parts and parts[-1][1] == size * stride:
                    parts[-1] = (parts[-1][0] * size, stride)
                else:
                    parts.append((size, stride))
            by_dimension.append(tuple(parts))
        return tuple(by_dimension)


@dataclass(frozen=True, slots=True)
class UserLayout:
    """A ``Layout`` as the user gives it: ``in_layout`` and ``out_layout`` in a dump.

    ``interleaved``: the last axis of the matrix interleaves micro-batches on the same devices, so
    the devices are one ``device_matrix[-1]``-th of the matrix.
    """

    device_matrix: DeviceMatrix
    tensor_map: TensorMap
    interleaved: bool = False
    alias_name: tuple[str, ...] = ()

    def full_layout(self, shape: Shape) -> TensorLayout:
        """The layout as it is written: an interleaving axis counts like one of devices."""
        plain = tuple(entry_of(entries_of(entry)) for entry in self.tensor_map)
        return TensorLayout(self.device_matrix, plain, shape)

    def as_written(self, layout: TensorLayout) -> TensorLayout:
        """A layout with the whole parts that the user wrote beside axes, as in (1, -1).

        Rules don't look at them, but a redistribution makes a dimension of each.
        """
        written = tuple(e if len(entries_of(e)) else WHOLE for e in self.tensor_map)
        plain = tuple(entry_of(entries_of(entry)) for entry in written)
        if plain == layout.tensor_map and self.device_matrix == layout.device_matrix:
            return replace(layout, tensor_map=written)
        return layout

    def tensor_layout(self, shape: Shape) -> TensorLayout:
        """The layout of a tensor on real devices: the interleaving axis, if any, left out."""
        full = self.full_layout(shape)
        return full.without_last_axis() if self.interleaved else full

    @property
    def interleaves(self) -> bool:
        """True if a dimension is cut along the interleaving axis: computed in parts, in turn."""
        return self.interleaved and any(0 in entries_of(entry) for entry in self.tensor_map)

    @property
    def scatters(self) -> bool:
        """True if the parts that a device computes in turn don't lie beside each other."""
        return self.interleaved and any(0 in entries_of(e)[:-1] for e in self.tensor_map)

    @property
    def strategy(self) -> tuple[int, ...]:
        """The layout as a strategy: one number a dimension (interleaving not counted)."""
        shape = tuple(DYNAMIC for _ in self.tensor_map)
        return self.tensor_layout(shape).splits


def entries_of(entry: MapEntry) -> tuple[int, ...]:
    """The axes (from the right) that one tensor-map entry names; none for a whole dimension.

    Args:
        entry: of a tensor map; a -1 beside axes, as users write it, does not count.
    """
    if isinstance(entry, tuple):
        return tuple(axis for axis in entry if axis != WHOLE)
    return () if entry == WHOLE else (entry,)


def entry_of(axes: Sequence[int]) -> MapEntry:
    """A tensor-map entry of these axes: -1 for none, a number for one, a tuple for several.

    Args:
        axes: counted from the right, major axis first.
    """
    return tuple(axes) if len(axes) > 1 else (axes[0] if axes else WHOLE)


def axes_of(device_matrix: Sequence[int], entry: MapEntry) -> tuple[int, ...]:
    """The axes of a tensor-map entry as positions in the device matrix, counted from the left.

    Args:
        device_matrix: that the map is about.
        entry: of the map; its axes are counted from the right.
    """
    return tuple(len(device_matrix) - 1 - axis for axis in entries_of(entry))


def split_of(device_matrix: Sequence[int], entry: MapEntry) -> int:
    """Into how many slices a dimension with this tensor-map entry is cut.

    Args:
        device_matrix: that the map is about.
        entry: of the map.
    """
    return prod(device_matrix[axis] for axis in axes_of(device_matrix, entry))


def identity_map(rank: int) -> TensorMap:
    """The map of a tensor whose dimensions lie along the device axes in order.

    Args:
        rank: of the tensor, and of the device matrix.
    """
    return tuple(range(rank - 1, -1, -1))


def shift_map(tensor_map: TensorMap, by: int = 1) -> TensorMap:
    """The map after ``by`` axes were appended at the right end of the device matrix."""

    def moved(entry: MapEntry) -> MapEntry:
        if isinstance(entry, tuple):
            return tuple(axis if axis == WHOLE else axis + by for axis in entry)
        return entry if entry == WHOLE else entry + by

    return tuple(moved(entry) for entry in tensor_map)


def map_without_last_axis(tensor_map: TensorMap) -> TensorMap:
    """The map after the last axis of the device matrix was taken away.

    Args:
        tensor_map: of a layout whose last axis interleaves micro-batches, say; that axis is
            dropped.
    """
    return tuple(
        entry_of(tuple(axis - 1 for axis in entries_of(entry) if axis != 0)) for entry in tensor_map
    )


@dataclass(frozen=True, slots=True)
class Repeated:
    """A device matrix completed to all devices of the stage.

    ``repeats``: how often the calculation is repeated; ``axis``: where that axis stands (None:
    there is none); ``right``: whether maps were, or would have to be, shifted.
    """

    device_matrix: DeviceMatrix
    repeats: int
    axis: int | None
    right: bool

    def shifted(self, tensor_map: TensorMap) -> TensorMap:
        """A tensor map of the operator's own matrix, as a map of the completed one."""
        return shift_map(tensor_map) if self.axis is not None and self.right else tensor_map


def repeated_calculation(
    device_matrix: DeviceMatrix, devices: int, *, right: bool = True
) -> Repeated | None:
    """Complete an operator's matrix to ``devices`` devices; None if that does not divide.

    The axis of repeated calculation goes to the right end (adjacent ranks hold the same slice)
    unless ``right`` is False (primitive attribute ``repeated_num_in_dev_matrix_right_``).

    Args:
        device_matrix: that the strategy comes to.
        devices: of the stage.
        right: whether the axis stands right of the others.
    """
    product = prod(device_matrix)
    if product == 0 or devices % product:
        return None
    repeats = devices // product
    if repeats == 1:
        return Repeated(device_matrix, 1, None, right)
    if right:
        return Repeated((*device_matrix, repeats), repeats, len(device_matrix), True)
    return Repeated((repeats, *device_matrix), repeats, 0, False)


def coordinates(device_matrix: Sequence[int], position: int) -> tuple[int, ...]:
    """Coordinates of the device at ``position`` in the stage's list, slowest axis first.

    Args:
        device_matrix: of the stage, slowest axis first.
        position: in the list of devices, from 0; a rank less the first rank of its stage.
    """
    digits: list[int] = []
    for size in reversed(device_matrix):
        position, digit = divmod(position, size)
        digits.append(digit)
    return tuple(reversed(digits))


def position_of(device_matrix: Sequence[int], place: Sequence[int]) -> int:
    """The position of a device in the stage's list, by its coordinates: undoes :func:`coordinates`.

    Args:
        device_matrix: of the stage, slowest axis first.
        place: its coordinates, one an axis.
    """
    position = 0
    for size, digit in zip(device_matrix, place, strict=True):
        position = position * size + digit
    return position


def ranks_along(
    device_matrix: Sequence[int], axes: Sequence[int], devices: Sequence[int], rank: int
) -> tuple[int, ...]:
    """The ranks that differ from one at most in their coordinates on some axes, in ascending order.

    Args:
        device_matrix: of the stage, slowest axis first.
        axes: positions in it, from the left.
        devices: the sorted ranks of the stage.
        rank: one of these.

    Raises:
        ValueError: it is none of them.
    """
    position = rank - devices[0] if rank in devices else -1
    if position < 0:
        raise ValueError(f"rank {rank} is none of the stage's devices {list(devices)}")
    positions = _positions_along(tuple(device_matrix), tuple(axes), position)
    if devices[0] == 0 and devices[-1] == len(devices) - 1:
        return positions
    return tuple(devices[index] for index in positions)


@lru_cache(maxsize=512)
def _positions_along(
    device_matrix: tuple[int, ...], axes: tuple[int, ...], position: int
) -> tuple[int, ...]:
    """Positions in the stage that differ from one at most in their coordinates on some axes."""
    strides = {axis: prod(device_matrix[axis + 1 :]) for axis in axes}
    place = coordinates(device_matrix, position)
    positions = [position - sum(place[axis] * stride for axis, stride in strides.items())]
    for axis, stride in strides.items():
        positions = [
            base + step * stride for base in positions for step in range(device_matrix[axis])
        ]
    return tuple(sorted(positions))


def replicas(layout: TensorLayout, devices: Sequence[int], rank: int) -> tuple[int, ...]:
    """Ranks that hold the same slice as ``rank`` does (itself included), sorted.

    Args:
        layout: over all devices of the stage.
        devices: the sorted ranks of the stage.
        rank: one of these.

    Raises:
        ValueError: it is none of them.
    """
    used = layout.used_axes
    free = [axis for axis in range(len(layout.device_matrix)) if axis not in used]
    return ranks_along(layout.device_matrix, free, devices, rank)
