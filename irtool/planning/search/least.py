"""At least what redistributions cost, on any number of devices.

Where devices are a power of two, :mod:`irtool.planning.search.bounds` knows nearly the price.  Here
it is only counted what a device wants and does not have: that has to come from others, and no
collective brings a byte faster than the fastest of them.  All devices of a unit together have so
much at most; the rest comes over slower links, and may be divided among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from irtool.cluster.machine import Machine
from irtool.operators.layout import TensorLayout, axes_of
from irtool.planning.cost.costs import received_bytes
from irtool.planning.cost.layout_bits import Floats, Ints
from irtool.planning.search.bounds import Moved

MUCH = 1 << 40
"""Bytes that show what share of them a device receives."""


def least_anywhere(
    sources: Sequence[TensorLayout],
    targets: Sequence[TensorLayout],
    moved: Moved,
    machine: Machine,
) -> Floats:
    """At least the seconds of each redistribution; 0 where nothing is known.

    Args:
        sources: layouts of one tensor.
        targets: layouts of one tensor, of as many elements.
        moved: bytes of an element, and whether a gradient comes back: then both ways count.
        machine: whose links are used.

    Returns:
        a row for each source, a column for each target.
    """
    least = np.zeros((len(sources), len(targets)))
    if any(size <= 0 for layout in (*sources, *targets) for size in layout.tensor_shape):
        return least
    devices = prod(sources[0].device_matrix)
    have = np.array([prod(layout.slice_shape) for layout in sources], dtype=np.float64)[:, None]
    want = np.array([prod(layout.slice_shape) for layout in targets], dtype=np.float64)[None, :]
    missing = np.maximum(0.0, want - have)
    if sources[0].tensor_shape == targets[0].tensor_shape:
        missing = np.maximum(missing, want - _least_overlap(sources, targets, devices))
    start, fast, slow, unit = _rates(_Same(machine), devices)
    far = np.minimum(np.maximum(0.0, want / unit - have), missing)
    seconds = start + (fast * (missing - far) + slow * far) * moved.element
    least = np.where(missing > 0, seconds, 0.0)
    return least * (2 if moved.gradient else 1)


def _least_overlap(
    sources: Sequence[TensorLayout], targets: Sequence[TensorLayout], devices: int
) -> Floats:
    """Elements that a device has of those that it wants: the fewest of some devices."""
    least = np.full((len(sources), len(targets)), np.inf)
    for rank in {1 % devices, devices // 3, 2 * devices // 3, devices - 2}:
        first, second = _boxes(sources, rank), _boxes(targets, rank)
        shared = np.ones(least.shape)
        for axis in range(first.shape[1]):
            low = np.maximum(first[:, None, axis, 0], second[None, :, axis, 0])
            high = np.minimum(first[:, None, axis, 1], second[None, :, axis, 1])
            shared *= np.maximum(0, high - low)
        least = np.minimum(least, shared)
    return least


def _boxes(layouts: Sequence[TensorLayout], rank: int) -> Ints:
    """By layout and dimension where the slice of a device begins and ends."""
    boxes = np.zeros((len(layouts), len(layouts[0].tensor_shape), 2), dtype=np.int64)
    for index, layout in enumerate(layouts):
        matrix = layout.device_matrix
        for axis, (entry, size) in enumerate(
            zip(layout.tensor_map, layout.slice_shape, strict=True)
        ):
            place = 0
            for device_axis in axes_of(matrix, entry):
                place = (
                    place * matrix[device_axis]
                    + rank // prod(matrix[device_axis + 1 :]) % matrix[device_axis]
                )
            boxes[index, axis] = place * size, (place + 1) * size
    return boxes


_MOVED = ("AllGather", "ReduceScatter", "AlltoAll")


class _Same:
    """A machine as a key: by identity, since machines hold mappings."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __hash__(self) -> int:
        return id(self.machine)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.machine is self.machine


@lru_cache(maxsize=64)
def _rates(same: _Same, devices: int) -> tuple[float, float, float, int]:
    """The least start; the least seconds of a received byte, inside of units and across; a unit."""
    machine = same.machine
    unit = min(machine.node_devices or devices, devices)
    starts: list[float] = []
    rates: dict[bool, list[float]] = {False: [], True: []}
    for count in (n for n in range(2, devices + 1) if devices % n == 0):
        strides = {1, min(unit, devices // count), devices // count}
        for stride in strides:
            ranks = range(0, count * stride, stride)
            across = len({rank // unit for rank in ranks}) > 1
            for op in _MOVED:
                once, per_byte = machine.line(op, ranks)
                starts.append(once)
                rates[across].append(per_byte * MUCH / received_bytes(op, MUCH, count))
    for one in machine.groups:  # measured ones may be faster, and of a shape that no stride has
        if one.op in _MOVED and 1 < one.ranks <= devices:
            starts.append(one.start)
            received = received_bytes(one.op, MUCH, one.ranks)
            rates[one.ranks > max(one.together, default=one.ranks)].append(
                MUCH / one.bandwidth / received
            )
    everywhere = [*rates[False], *rates[True]]
    if not everywhere:
        return 0.0, 0.0, 0.0, unit
    fast = min(everywhere)
    return min(starts), fast, max(fast, min(rates[True], default=fast)), unit
