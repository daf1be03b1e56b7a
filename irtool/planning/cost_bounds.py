"""At least what redistributions between many layouts cost, all pairs at once.

Where devices are a power of two, a layout says for each bit of a device's number which halving of
which dimension it decides (or none).  Two layouts then need: a gather of the bits that the target
does not have at the same place (or an exchange, of those that it has elsewhere, if all-to-all is
enabled), and a slice of the target's new bits.  Bits that both layouts handle as one axis of
devices are moved together, the last dimension first, each gather on what the one before it left.
That is how MindSpore does it (:mod:`irtool.sharding.redistribution`), but for details that can only
make it dearer: what is here is a lower bound, and mostly the price itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.sharding.layout import MapEntry, Shape, TensorLayout, axes_of, entry_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEVELS = 16
"""Places of one dimension: how often it may be halved; 65,536 devices at most."""

PAIRS = 1 << 14
"""Pairs that are looked at together: what stands of them must fit into the cache."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What is moved: ``element`` bytes of one element; ``gradient``: a gradient comes back."""

    element: int
    gradient: bool


@dataclass(frozen=True, eq=False, slots=True)
class Bits:
    """Layouts of one tensor as bits, one row each.

    Attributes:
        place: per bit (the highest last) ``dimension * LEVELS + halving``, or -1: it splits none.
        cuts: mask of the bits below which an axis of devices ends.
        order: bits from the last place to the first; those without a place come last.
        lead: per entry of ``order`` how many elements lie before its place, on one device.
    """

    shape: Shape
    place: Ints
    cuts: Ints
    order: Ints
    lead: Floats

    def rows(self, start: int, stop: int) -> Bits:
        """Some of them."""
        part = slice(start, stop)
        return Bits(
            self.shape, self.place[part], self.cuts[part], self.order[part], self.lead[part]
        )

    @property
    def count(self) -> int:
        """How many bits a device's number has."""
        return self.place.shape[1]


def bits_of(layouts: Sequence[TensorLayout], shape: Shape) -> tuple[Bits, Bools]:
    """Layouts in places of ``shape``, a refinement of theirs; and which of them have such a form.

    Rows without one are those of layouts that split nothing.
    """
    size = prod(layouts[0].device_matrix)
    count = size.bit_length() - 1
    place = np.full((len(layouts), count), -1, dtype=np.int64)
    cuts = np.zeros(len(layouts), dtype=np.int64)
    known = np.ones(len(layouts), dtype=np.bool_)
    for row, layout in enumerate(layouts):
        found = places_of(layout, shape, count)
        if found is None:
            known[row] = False
            continue
        place[row] = found
        stride = size
        for axis in layout.device_matrix:
            stride //= axis
            cuts[row] |= stride  # the axis ends below its lowest bit
    return _bits(place, cuts, shape), known


def bits_from(
    own: Shape, place: Ints, cuts: Ints, known: Bools, shape: Shape
) -> tuple[Bits, Bools]:
    """The same of layouts that are given in places of their ``own`` shape, without ones."""
    table = np.full(len(own) * LEVELS + 1, -2, dtype=np.int64)
    table[-1] = -1
    at = 0
    for dimension, size in enumerate(own):
        rest, level = size, dimension * LEVELS
        whole = True
        while rest > 1:
            part = shape[at]
            outer = part & -part
            for halving in range(outer.bit_length() - 1 if whole else 0):
                table[level] = at * LEVELS + halving
                level += 1
            whole &= outer == part  # behind an odd factor no bit has a place
            rest //= part
            at += 1
    moved = table[place]
    found = known & (moved != -2).all(axis=1)
    return _bits(np.where(moved == -2, -1, moved), np.array(cuts), shape), found


def _bits(place: Ints, cuts: Ints, shape: Shape) -> Bits:
    # An axis ends, too, where its bits don't halve one dimension one after the other.
    for bit in range(1, place.shape[1]):
        both = (place[:, bit] >= 0) & (place[:, bit - 1] >= 0)
        apart = both & (place[:, bit - 1] != place[:, bit] + 1)
        cuts |= np.where(apart, 1 << bit, 0)
    order = np.argsort(-place, axis=1, kind="stable")
    return Bits(shape, place, cuts, order, _leads(place, order, shape))


def _leads(place: Ints, order: Ints, shape: Shape) -> Floats:
    """Elements before a place on one device: those of earlier dimensions and halvings."""
    before = np.array([prod(shape[:at]) for at in range(len(shape) + 1)], dtype=np.float64)
    sorted_places = np.take_along_axis(place, order, axis=1)
    dimension, halving = sorted_places // LEVELS, sorted_places % LEVELS
    whole = before[np.maximum(dimension, 0)] * 2.0**halving
    # Every bit at an earlier place halves what lies before.
    used: Ints = np.count_nonzero(sorted_places >= 0, axis=1)
    earlier: Ints = used[:, None] - 1 - np.arange(place.shape[1], dtype=np.int64)[None, :]
    return whole / 2.0 ** np.maximum(earlier, 0)


def common_shape(first: Shape, second: Shape) -> Shape | None:
    """The shape of which both are groups of neighbouring dimensions; None if there is none."""
    if any(size <= 0 for size in (*first, *second)) or prod(first) != prod(second):
        return None
    a, b = [n for n in first if n > 1], [n for n in second if n > 1]
    found: list[int] = []
    while a and b:
        part = min(a[0], b[0])
        if max(a[0], b[0]) % part:
            return None
        found.append(part)
        for side in (a, b):
            side[0] //= part
            if side[0] == 1:
                side.pop(0)
    return tuple(found)


def places_of(layout: TensorLayout, shape: Shape, count: int) -> list[int] | None:
    """Per bit its place in ``shape``; None where a split lies across a border of it."""
    found = [-1] * count
    at = 0
    for size, entry in zip(layout.tensor_shape, layout.tensor_map, strict=True):
        bits: list[int] = []
        for axis in axes_of(layout.device_matrix, entry):
            stride = prod(layout.device_matrix[axis + 1 :])
            high = (stride * layout.device_matrix[axis]).bit_length() - 1
            bits += range(high - 1, stride.bit_length() - 2, -1)
        rest = size
        while rest > 1:
            part = shape[at]
            outer = part & -part  # the part's power of two
            room = outer.bit_length() - 1
            if len(bits) > room and (rest == part or outer != part):
                return None
            for level, bit in enumerate(bits[:room]):
                found[bit] = at * LEVELS + level
            bits = bits[room:]
            rest //= part
            at += 1
        if bits:
            return None
    return found


def layout_from(place: Sequence[int], cuts: int, shape: Shape) -> TensorLayout:
    """The layout, in standard form, that lies like this; places in the shape without ones."""
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
        at = place[bits[0]]
        if at >= 0:
            entries.setdefault(at // LEVELS, []).append((at, len(axes) - 1 - number))
    tensor_map: list[MapEntry] = []
    dimension = 0
    for size in shape:
        own = sorted(entries.get(dimension, ())) if size != 1 else []
        tensor_map.append(entry_of([axis for _, axis in own]))
        dimension += size != 1
    matrix = tuple(1 << len(bits) for bits in axes)
    return TensorLayout(matrix or (1,), tuple(tensor_map), shape)


# -- prices of groups ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Rates:
    """Seconds of a collective among the devices that differ in neighbouring bits.

    ``start`` and ``per_byte`` by lowest bit and number of bits; a byte of the whole tensor.
    ``least_start`` and ``least_per_byte``: if it may be done in parts, one after the other.
    """

    start: Floats
    per_byte: Floats
    least_start: Floats
    least_per_byte: Floats


@lru_cache(maxsize=256)
def _rates(machine_key: _Same, op: str, count: int) -> Rates:
    machine = machine_key.machine
    start = np.zeros((count + 1, count + 1))
    per_byte = np.zeros((count + 1, count + 1))
    for low in range(count):
        for bits in range(1, count - low + 1):
            ranks = range(0, 1 << (low + bits), 1 << low)
            once = machine.seconds(op, 0, ranks)
            start[low, bits] = once
            per_byte[low, bits] = (machine.seconds(op, 1 << 40, ranks) - once) / (1 << 40)
    return Rates(start, per_byte, _in_parts(start), _in_parts(per_byte))


def _in_parts(prices: Floats) -> Floats:
    """The least of each run's price and of the sums of its parts' prices."""
    found = np.array(prices)
    count = len(prices) - 1
    for bits in range(2, count + 1):
        for low in range(count - bits + 1):
            for part in range(1, bits):
                both = found[low, part] + found[low + part, bits - part]
                found[low, bits] = min(found[low, bits], both)
    return found


@dataclass(frozen=True, slots=True)
class _Same:
    """A machine as a key: by identity, since machines hold mappings."""

    machine: Machine

    def __hash__(self) -> int:
        return id(self.machine)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.machine is self.machine


def rates(machine: Machine, ops: Sequence[str], count: int) -> Rates:
    """Seconds of some collectives one after the other."""
    found = [_rates(_Same(machine), op, count) for op in ops]
    return Rates(
        sum((each.start for each in found), np.zeros(())),
        sum((each.per_byte for each in found), np.zeros(())),
        sum((each.least_start for each in found), np.zeros(())),
        sum((each.least_per_byte for each in found), np.zeros(())),
    )


# -- all pairs -----------------------------------------------------------------------------------


def least_between(
    first: Bits, second: Bits, moved: Moved, machine: Machine, enable_alltoall: bool
) -> Floats:
    """At least the seconds of every redistribution from a layout of ``first`` to one of ``second``.

    Both are of one shape and of as many devices.
    """
    found = np.empty((len(first.place), len(second.place)))
    rows = max(1, PAIRS // max(1, len(second.place)))
    for start in range(0, len(first.place), rows):
        state = _Pairs(first.rows(start, start + rows), second)
        seconds = _least_gathered(state, moved, machine)
        if enable_alltoall:
            exchanged = state.gone & state.wanted[None, :]
            dearer = _least_exchanged(state, exchanged, moved, machine)
            seconds = np.where(exchanged != 0, dearer, seconds)
        found[start : start + rows] = seconds
    return found


def _least_gathered(state: _Pairs, moved: Moved, machine: Machine) -> Floats:
    """Everything that moves is gathered and sliced."""
    whole, ways = prod(state.first.shape) * moved.element, 2 if moved.gradient else 1
    size = whole / 2.0 ** _ones(state.held)[:, None]
    before = np.broadcast_to(size, state.gone.shape)
    both = rates(machine, ("AllGather", "ReduceScatter")[:ways], state.first.count)
    seconds, traffic = _runs(state, state.gone, before, both, "gather")
    if machine.memory_bandwidth:
        traffic += _sliced(state, size * 2.0 ** _ones(state.gone))
        seconds += traffic * (2 * ways / machine.memory_bandwidth)
    return seconds


def _least_exchanged(state: _Pairs, exchanged: Ints, moved: Moved, machine: Machine) -> Floats:
    """What is wanted elsewhere is exchanged, the rest gathered; on what slices leave."""
    count = state.first.count
    whole, ways = prod(state.first.shape) * moved.element, 2 if moved.gradient else 1
    size = whole / 2.0 ** _ones(state.held)[:, None]
    new = _ones(state.new)
    both = rates(machine, ("AlltoAll",) * ways, count)
    smallest = size / 2.0**new
    seconds, _ = _runs(state, exchanged, smallest, both, "exchange")
    gathered = state.gone & ~exchanged
    before = size / 2.0 ** (new - _ones(state.blocked(gathered)))
    both = rates(machine, ("AllGather", "ReduceScatter")[:ways], count)
    found, traffic = _runs(state, gathered, before, both, "any order")
    seconds += found
    if machine.memory_bandwidth:
        traffic += np.where(state.new != 0, smallest, 0.0)
        seconds += traffic * (2 * ways / machine.memory_bandwidth)
    return seconds


@dataclass(slots=True)
class _Pairs:
    """Masks of bits for every pair."""

    first: Bits
    second: Bits
    held: Ints
    wanted: Ints
    gone: Ints
    new: Ints
    sliced: Ints
    cuts: Ints
    unsure: Bools

    def __init__(self, first: Bits, second: Bits) -> None:
        self.first, self.second = first, second
        self.held, self.wanted = _mask(first.place), _mask(second.place)
        kept = np.zeros((len(first.place), len(second.place)), dtype=np.int64)
        touched = np.zeros(kept.shape, dtype=np.int64)
        for bit in range(first.count):
            a, b = first.place[:, bit], second.place[:, bit]
            same = a[:, None] == b[None, :]
            kept |= (same & (a >= 0)[:, None]).astype(np.int64) << bit
            touched |= np.where(same, 0, _dimension(a)[:, None] | _dimension(b)[None, :])
        self.gone = self.held[:, None] & ~kept
        self.new = self.wanted[None, :] & ~self.held[:, None]
        self.sliced = self.wanted[None, :] & ~kept
        self.cuts = first.cuts[:, None] | second.cuts[None, :]
        # Where both split a dimension, and in several steps, one may make the other cut its axes.
        once, more = _split_dimensions(first)
        also, again = _split_dimensions(second)
        both = once[:, None] & also[None, :] & (more[:, None] | again[None, :])
        self.unsure = (touched & both) != 0

    def blocked(self, gathered: Ints) -> Ints:
        """New bits whose place is taken until another bit is gathered."""
        places = len(self.first.shape) * LEVELS + 1
        holder = np.full((len(self.held), places), 63, dtype=np.int64)
        rows = np.arange(len(self.held))
        for bit in range(self.first.count):
            place = self.first.place[:, bit]
            holder[rows[place >= 0], place[place >= 0]] = bit
        found = np.zeros_like(gathered)
        for bit in range(self.first.count):
            at = self.second.place[:, bit]
            taken = holder[:, np.maximum(at, 0)]
            hit = (gathered >> taken) & (self.new >> bit) & 1
            found |= np.where((taken < 63) & (at >= 0)[None, :], hit, 0) << bit
        return found


Way: TypeAlias = Literal["gather", "exchange", "any order"]
"""How bits are moved: gathered as the peephole pass orders them, exchanged, or gathered somehow."""


def _runs(state: _Pairs, mask: Ints, size: Floats, rates: Rates, way: Way) -> tuple[Floats, Floats]:
    """Seconds of moving the bits of a mask axis by axis, and bytes written to memory.

    ``size``: bytes on one device before; gathers multiply them.  Gathers along what is the first
    dimension on a device need no Split and Concat, and merge where they can.  Where it is not sure
    that bits are moved together, the start of the cheaper way is counted.
    """
    first = state.first
    count, rows = first.count, len(mask)
    grows = way != "exchange"
    order, lead = first.order, first.lead
    if way == "any order":  # slow links first is the cheapest
        order = np.broadcast_to(np.arange(count - 1, -1, -1), (rows, count))
    seconds, traffic = np.zeros(mask.shape), np.zeros(mask.shape)
    low, last = np.zeros(mask.shape, dtype=np.int64), np.full(mask.shape, -2)
    length = np.zeros(mask.shape, dtype=np.int64)
    sure, inside = np.zeros(mask.shape, dtype=np.bool_), np.zeros(mask.shape, dtype=np.bool_)
    certain = ~state.unsure & (way == "gather")
    width = count + 1
    starts, least_starts = rates.start.ravel(), rates.least_start.ravel()
    per_byte = (rates.per_byte if grows else rates.least_per_byte).ravel()
    factors = 2.0 ** np.arange(width)
    for turn in range(count + 1):
        if turn < count:
            bit = order[:, turn, None]
            wanted = ((mask >> bit) & 1).astype(np.bool_)
            leads = lead[:, turn, None] <= 1
            uncut = ((state.cuts >> bit) & 1) == 0
            joined = wanted & (length > 0)
            if way == "any order":
                joined &= bit == last - 1
            else:
                joined &= (bit == last + 1) & (uncut | (leads & ~inside if grows else False))
            ended = wanted & ~joined & (length > 0)
        else:
            ended = length > 0
            wanted = joined = uncut = np.zeros(mask.shape, dtype=np.bool_)
            bit, leads = np.zeros((rows, 1), dtype=np.int64), np.zeros((rows, 1), dtype=np.bool_)
        if ended.any():
            at = low * width + length
            grown = size * factors[length] if grows else size
            start = np.where(sure, starts.take(at), least_starts.take(at))
            seconds += np.where(ended, start + per_byte.take(at) * grown, 0.0)
            if grows:
                size = np.where(ended, grown, size)
                if way == "gather":
                    traffic += np.where(ended & inside, 2 * grown, 0.0)
            length = np.where(ended, 0, length)
        begins = wanted & ~joined
        low = np.where(begins if way != "any order" else wanted, bit, low)
        sure = np.where(begins, certain, sure & (uncut | ~joined))
        last = np.where(wanted, bit, last)
        if way == "gather":
            inside = np.where(wanted, ~leads, inside)
        length += wanted
    return seconds, traffic


def _sliced(state: _Pairs, size: Floats) -> Floats:
    """Bytes that the slices write; ``size``: bytes on one device before them."""
    traffic = np.zeros(state.sliced.shape)
    last = np.full(state.sliced.shape, -2)
    pending = np.zeros(state.sliced.shape, dtype=np.bool_)
    second = state.second
    for turn in range(second.count - 1, -1, -1):
        bit = second.order[None, :, turn]
        wanted = ((state.sliced >> bit) & 1).astype(np.bool_)
        joined = wanted & (bit == last - 1) & (((state.cuts >> (bit + 1)) & 1) == 0)
        joined |= wanted & (second.lead[None, :, turn] <= 1)
        traffic += np.where(wanted & ~joined & pending, size, 0.0)
        size = np.where(wanted, size / 2, size)
        pending |= wanted
        last = np.where(wanted, bit, last)
    return traffic + np.where(pending, size, 0.0)


def _dimension(place: Ints) -> Ints:
    """The bit of a place's dimension; 0 for none."""
    return np.where(place >= 0, 1 << (np.maximum(place, 0) // LEVELS), 0)


def _split_dimensions(bits: Bits) -> tuple[Ints, Ints]:
    """Masks of the dimensions that are split, and of those that several bits split."""
    once, more = np.zeros((2, len(bits.place)), dtype=np.int64)
    for bit in range(bits.count):
        dimension = _dimension(bits.place[:, bit])
        more |= once & dimension
        once |= dimension
    return once, more


def _mask(place: Ints) -> Ints:
    bits = 1 << np.arange(place.shape[1], dtype=np.int64)
    return np.where(place >= 0, bits[None, :], 0).sum(axis=1)


def _ones(mask: Ints) -> Ints:
    """How many bits of a mask are set."""
    found = np.zeros(mask.shape, dtype=np.int64)
    rest = np.array(mask, dtype=np.int64)
    while rest.any():
        found += rest & 1
        rest >>= 1
    return found
