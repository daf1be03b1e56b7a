"""Layouts as bits: which halving of which dimension each bit of a device's number decides.

That is what a layout says where devices are a power of two.  It makes layouts comparable by
arithmetic on many of them at once, whatever their device matrices are.  Where they are not, most
layouts split along powers of two all the same, and the odd rest of the devices stands at the end of
the last axis, which repeats: bits are then those of a device's number divided by that rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import (
    MapEntry,
    Shape,
    TensorLayout,
    axes_of,
    entries_of,
    entry_of,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEVELS = 16
"""Places of one dimension: how often it may be halved; 65,536 devices at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Bits:
    """Layouts of one tensor as bits, one row each.

    Attributes:
        place: per bit (the highest last) ``dimension * LEVELS + halving``, or -1: it splits none.
        cuts: mask of the bits below which an axis of devices ends.
        order: bits from the last place to the first; those without a place come last.
        lead: per entry of ``order`` how many elements lie before its place, on one device.
        odd: what a device's number is divided by before it has these bits.
    """

    shape: Shape
    place: Ints
    cuts: Ints
    order: Ints
    lead: Floats
    odd: int = 1

    def rows(self, start: int, stop: int) -> Bits:
        """Rows from ``start`` to before ``stop``.

        Args:
            start: the first row.
            stop: the one behind the last.
        """
        part = slice(start, stop)
        return Bits(
            self.shape,
            self.place[part],
            self.cuts[part],
            self.order[part],
            self.lead[part],
            self.odd,
        )

    @property
    def count(self) -> int:
        """How many bits a device's number has."""
        return self.place.shape[1]


def bits_of(layouts: Sequence[TensorLayout], shape: Shape) -> tuple[Bits, Bools]:
    """Layouts in places of ``shape``, a refinement of theirs; and which of them have such a form.

    Rows without one are those of layouts that split nothing.

    Args:
        layouts: one or more, of one tensor and on equally many devices.
        shape: whose products of neighbouring dimensions are theirs (:func:`common_shape`).
    """
    odd = odd_part(prod(layouts[0].device_matrix))
    count = bit_count(prod(layouts[0].device_matrix))
    place = np.full((len(layouts), count), -1, dtype=np.int64)
    cuts = np.zeros(len(layouts), dtype=np.int64)
    known = np.ones(len(layouts), dtype=np.bool_)
    for row, layout in enumerate(layouts):
        plain = without_odd_part(layout, odd)
        bit_places = None if plain is None else places_of(plain, shape, count)
        if plain is None or bit_places is None:
            known[row] = False
            continue
        place[row], cuts[row] = bit_places, cuts_of(plain)
    return _bits(place, cuts, shape, odd), known


def odd_part(devices: int) -> int:
    """What is left of a number of devices once it is halved as often as that goes.

    Args:
        devices: one or more.
    """
    return devices // (devices & -devices)


def bit_count(devices: int) -> int:
    """How often a number of devices can be halved.

    Args:
        devices: one or more.
    """
    return (devices & -devices).bit_length() - 1


def without_odd_part(layout: TensorLayout, odd: int) -> TensorLayout | None:
    """The layout of every ``odd``-th device, where those between hold what it holds.

    Args:
        layout: on a number of devices that ``odd`` divides.
        odd: :func:`odd_part` of that number.

    Returns:
        None where the odd part is not at the end of the device matrix, or splits something.
    """
    if odd == 1:
        return layout
    *outer, last = layout.device_matrix
    repeats = all(0 not in entries_of(entry) for entry in layout.tensor_map)
    if last % odd or not repeats:
        return None
    return TensorLayout((*outer, last // odd), layout.tensor_map, layout.tensor_shape)


def cuts_of(layout: TensorLayout) -> int:
    """Mask of the bits below which an axis of devices ends.

    Args:
        layout: on a power of two of devices.
    """
    cuts, stride = 0, prod(layout.device_matrix)
    for axis in layout.device_matrix:
        stride //= axis
        cuts |= stride  # the axis ends below its lowest bit
    return cuts


def bits_from(
    own: Shape, place: Ints, cuts: Ints, known: Bools, shape: Shape, odd: int = 1
) -> tuple[Bits, Bools]:
    """Layouts that are given in places of a shape of their own, in places of a refinement of it.

    Args:
        own: their shape, dimensions of size 1 left out.
        place: a row a layout: per bit its place in ``own``, -1 where it splits nothing.
        cuts: by layout the mask of the bits below which an axis of devices ends.
        known: whether a layout has such a form at all.
        shape: the refinement.
        odd: what a device's number is divided by before it has these bits.

    Returns:
        the layouts, and which of them have places in ``shape``: the others split across a border of
        it.
    """
    table = np.full(len(own) * LEVELS + 1, -2, dtype=np.int64)
    table[-1] = -1
    position = 0
    for dimension, size in enumerate(own):
        rest, level = size, dimension * LEVELS
        is_power_of_two = True
        while rest > 1:
            part = shape[position]
            outer = part & -part
            room = (dimension + 1) * LEVELS - level  # devices are too few to need more
            for halving in range(min(outer.bit_length() - 1, room) if is_power_of_two else 0):
                table[level] = position * LEVELS + halving
                level += 1
            is_power_of_two &= outer == part  # behind an odd factor no bit has a place
            rest //= part
            position += 1
    moved = table[place]
    fits = known & (moved != -2).all(axis=1)
    return _bits(np.where(moved == -2, -1, moved), np.array(cuts), shape, odd), fits


def _bits(place: Ints, cuts: Ints, shape: Shape, odd: int) -> Bits:
    # An axis ends, too, where its bits don't halve one dimension one after the other.
    for bit in range(1, place.shape[1]):
        both = (place[:, bit] >= 0) & (place[:, bit - 1] >= 0)
        apart = both & (place[:, bit - 1] != place[:, bit] + 1)
        cuts |= np.where(apart, 1 << bit, 0)
    order = np.argsort(-place, axis=1, kind="stable")
    return Bits(shape, place, cuts, order, _leads(place, order, shape), odd)


def _leads(place: Ints, order: Ints, shape: Shape) -> Floats:
    """Elements before a place on one device: those of earlier dimensions and halvings."""
    before = np.array([prod(shape[:end]) for end in range(len(shape) + 1)], dtype=np.float64)
    sorted_places = np.take_along_axis(place, order, axis=1)
    dimension, halving = sorted_places // LEVELS, sorted_places % LEVELS
    elements = before[np.maximum(dimension, 0)] * 2.0**halving
    # Every bit at an earlier place halves what lies before.
    used: Ints = np.count_nonzero(sorted_places >= 0, axis=1)
    earlier: Ints = used[:, None] - 1 - np.arange(place.shape[1], dtype=np.int64)[None, :]
    return elements / 2.0 ** np.maximum(earlier, 0)


def common_shape(first: Shape, second: Shape) -> Shape | None:
    """The shape of which both are groups of neighbouring dimensions; None if there is none.

    Args:
        first: a shape.
        second: one of as many elements, before or behind a Reshape.
    """
    if any(size <= 0 for size in (*first, *second)) or prod(first) != prod(second):
        return None
    a, b = [n for n in first if n > 1], [n for n in second if n > 1]
    common: list[int] = []
    while a and b:
        part = min(a[0], b[0])
        if max(a[0], b[0]) % part:
            return None
        common.append(part)
        for side in (a, b):
            side[0] //= part
            if side[0] == 1:
                side.pop(0)
    return tuple(common)


def places_of(layout: TensorLayout, shape: Shape, count: int) -> list[int] | None:
    """Per bit its place in ``shape``; None where a split lies across a border of it.

    Args:
        layout: on a power of two of devices.
        shape: a refinement of the layout's own.
        count: bits of a device's number.

    Returns:
        ``dimension * LEVELS + halving`` from the lowest bit on; -1: it splits nothing.
    """
    places = [-1] * count
    position = 0
    for size, entry in zip(layout.tensor_shape, layout.tensor_map, strict=True):
        bits: list[int] = []
        for axis in axes_of(layout.device_matrix, entry):
            stride = prod(layout.device_matrix[axis + 1 :])
            high = (stride * layout.device_matrix[axis]).bit_length() - 1
            bits += range(high - 1, stride.bit_length() - 2, -1)
        rest = size
        while rest > 1:
            part = shape[position]
            outer = part & -part  # the part's power of two
            room = outer.bit_length() - 1
            if len(bits) > room and (rest == part or outer != part):
                return None
            for level, bit in enumerate(bits[:room]):
                places[bit] = position * LEVELS + level
            bits = bits[room:]
            rest //= part
            position += 1
        if bits:
            return None
    return places


def layout_from(place: Sequence[int], cuts: int, shape: Shape) -> TensorLayout:
    """The layout, in standard form, that lies like this.

    Args:
        place: per bit its place, from the lowest bit on; places count in the shape without ones.
        cuts: mask of the bits below which an axis of devices ends.
        shape: of the whole tensor.
    """
    axes: list[list[int]] = []
    for bit in range(len(place) - 1, -1, -1):
        last = axes[-1][-1] if axes else -1
        together = axes and not cuts >> last & 1
        if together and place[last] >= 0:
            together = place[bit] == place[last] + 1
        if together and (place[last] >= 0) == (place[bit] >= 0):
            axes[-1].append(bit)
        else:
            axes.append([bit])
    entries: dict[int, list[tuple[int, int]]] = {}
    for number, bits in enumerate(axes):
        first = place[bits[0]]
        if first >= 0:
            entries.setdefault(first // LEVELS, []).append((first, len(axes) - 1 - number))
    tensor_map: list[MapEntry] = []
    dimension = 0
    for size in shape:
        own = sorted(entries.get(dimension, ())) if size != 1 else []
        tensor_map.append(entry_of([axis for _, axis in own]))
        dimension += size != 1
    matrix = tuple(1 << len(bits) for bits in axes)
    return TensorLayout(matrix or (1,), tuple(tensor_map), shape)
