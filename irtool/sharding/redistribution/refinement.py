"""Bring two layouts of one tensor to the same device matrix and the same tensor shape.

A redistribution can only move whole device axes between whole tensor dimensions. Where two layouts
cut devices or dimensions differently, both are *refined* first: device matrix ``[4, 2]`` against
``[2, 4]`` becomes ``[2, 2, 2]`` on both sides, and a dimension of 16 split along the 4 becomes the
two dimensions ``2, 8`` split along one new axis each. Different tensor shapes (the tensor is
reshaped on the way) are cut at the union of their boundaries in the same manner.

Refinement can fail (``[2, 3]`` against ``[3, 2]``); ``refine`` then gives None, and MindSpore
gathers the whole tensor before it slices again.

Source: the behaviour of MindSpore 2.7, seen in its dumps for some ten thousand pairs of layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import Shape, TensorLayout, axes_of

# Refining is a fixed-point iteration; every round cuts a dimension, and there are few to cut.
_MOST_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Placement:
    """A tensor whose dimensions are each split along at most one device axis.

    ``devices``: the device matrix. ``axes``: per dimension the position of its device axis counted
    from the left, or None. ``shape``: the whole tensor's shape.
    """

    devices: tuple[int, ...]
    axes: tuple[int | None, ...]
    shape: Shape

    @property
    def slice_shape(self) -> Shape:
        """The shape of the slice that one device holds."""
        return tuple(
            size if axis is None else size // self.devices[axis]
            for size, axis in zip(self.shape, self.axes, strict=True)
        )

    @property
    def is_valid(self) -> bool:
        """True if every split dimension divides evenly."""
        return all(
            axis is None or size % self.devices[axis] == 0
            for size, axis in zip(self.shape, self.axes, strict=True)
        )

    def squeezed(self) -> Placement:
        """Without dimensions of size 1 (they can't be split); at least one dimension stays."""
        kept = [index for index, size in enumerate(self.shape) if size != 1]
        if not kept:
            return Placement(self.devices, (None,), (1,))
        axes = tuple(self.axes[index] for index in kept)
        return Placement(self.devices, axes, tuple(self.shape[index] for index in kept))


def placement(layout: TensorLayout) -> Placement:
    """The layout in standard form, each split dimension along one axis only.

    Args:
        layout: in any form; a dimension that lies along several axes becomes several dimensions.
    """
    plain = layout.expanded().standard()
    axes: list[int | None] = []
    for entry in plain.tensor_map:
        device_axes = axes_of(plain.device_matrix, entry)
        axes.append(device_axes[0] if device_axes else None)
    return Placement(plain.device_matrix, tuple(axes), plain.tensor_shape)


def refine(source: Placement, target: Placement) -> tuple[Placement, Placement] | None:
    """Both placements on one device matrix and with one tensor shape.

    Args:
        source: how the producer leaves the tensor.
        target: how the consumer wants it, with as many elements on as many devices.

    Returns:
        None where no common refinement exists.
    """
    devices = _cut_from_left(source.devices, target.devices)
    if devices is None:
        return None
    first, second = _on_devices(source, devices), _on_devices(target, devices)
    if first is None or second is None or _cut_from_right(first.shape, second.shape) is None:
        return None
    for _ in range(_MOST_ROUNDS):
        if first.shape == second.shape:
            return first, second
        pair = _cut_by_shape(first, second)
        if pair is None:
            return None
        first, second = pair
        pair = _cut_by_shape(second, first)
        if pair is None:
            return None
        second, first = pair
    return None


def _cut_by_shape(this: Placement, other: Placement) -> tuple[Placement, Placement] | None:
    """Cut ``this`` at every boundary of ``other``'s shape, and ``other`` at the new device axes."""
    for _ in range(_MOST_ROUNDS):
        shape = _cut_from_right(this.shape, other.shape)
        if shape is None:
            return None
        if shape == this.shape:
            return this, other
        cut = _on_shape(this, shape)
        if cut is None:
            return None
        moved = _on_devices(other, cut.devices)
        if moved is None:
            return None
        this, other = cut, moved
    return None


def _on_devices(given: Placement, devices: tuple[int, ...]) -> Placement | None:
    """The placement on a finer device matrix.

    A dimension ``D`` along an axis that falls into ``(a, b)`` becomes dimensions ``a, D/a``.
    """
    parts = _grouped(devices, given.devices)
    if parts is None:
        return None
    starts = list(accumulate((len(part) for part in parts), initial=0))
    axes: list[int | None] = []
    shape: list[int] = []
    for size, axis in zip(given.shape, given.axes, strict=True):
        if axis is None:
            axes.append(None)
            shape.append(size)
            continue
        axes += range(starts[axis], starts[axis + 1])
        outer = parts[axis][:-1]
        shape += [*outer, size // prod(outer)]
    refined = Placement(devices, tuple(axes), tuple(shape))
    return refined if refined.is_valid else None


def _on_shape(given: Placement, shape: Shape) -> Placement | None:
    """The placement with finer dimensions, device axes cut where a split dimension is cut."""
    parts = _grouped(shape, given.shape)
    if parts is None:
        return None
    dimension = {axis: index for index, axis in enumerate(given.axes) if axis is not None}
    devices: list[int] = []
    for axis, size in enumerate(given.devices):
        front = _front_factors(parts[dimension[axis]], size) if axis in dimension else ()
        devices += front or (size,)
    finer = _on_devices(given, tuple(devices))
    if finer is None:
        return None
    pieces = _grouped(shape, finer.shape)
    if pieces is None:
        return None
    axes: list[int | None] = []
    for axis, piece in zip(finer.axes, pieces, strict=True):
        # Slices are contiguous, so the outermost of the new dimensions carries the split.
        axes += [axis, *[None] * (len(piece) - 1)]
    refined = Placement(finer.devices, tuple(axes), shape)
    return refined if refined.is_valid else None


def _front_factors(sizes: Sequence[int], devices: int) -> tuple[int, ...]:
    """How ``devices`` devices spread over dimensions ``sizes``, outermost first.

    The last factor is rounded down where it doesn't divide, as MindSpore does; the product is then
    wrong, and the layout is refused further on.
    """
    factors: list[int] = []
    reached = 1
    for size in sizes:
        if reached >= devices:
            break
        reached *= size
        factors.append(size if reached <= devices else devices * size // reached)
    return tuple(factors)


def _cut_from_left(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """Cut at all boundaries of both, counted from the left; None where they don't nest."""
    return _quotients({*accumulate(first, mul), *accumulate(second, mul)})


def _cut_from_right(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """Cut at all boundaries of both, counted from the right; None where they don't nest."""
    quotients = _quotients({*accumulate(reversed(first), mul), *accumulate(reversed(second), mul)})
    return None if quotients is None else quotients[::-1]


def _quotients(boundaries: Iterable[int]) -> tuple[int, ...] | None:
    """Sizes between sorted cumulative products; None where one doesn't divide the next."""
    sizes: list[int] = []
    reached = 1
    for boundary in sorted(boundaries):
        if boundary % reached:
            return None
        sizes.append(boundary // reached)
        reached = boundary
    return tuple(sizes)


def _grouped(fine: Sequence[int], coarse: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Consecutive runs of ``fine`` whose products are the sizes in ``coarse``, or None."""
    groups: list[tuple[int, ...]] = []
    rest = iter(fine)
    for size in coarse:
        group: list[int] = []
        while not group or prod(group) < size:
            factor = next(rest, None)
            if factor is None:
                return None
            group.append(factor)
        if prod(group) != size:
            return None
        groups.append(tuple(group))
    return groups if next(rest, None) is None else None
