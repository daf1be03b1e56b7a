"""At least what redistributions between many layouts cost, all pairs at once.

Where devices are a power of two, a layout says for each bit of a device's number which halving of
which dimension it decides (or none); where an odd rest of their number repeats, that holds of the
others (:mod:`irtool.planning.cost.layout_bits`).  Two layouts then need: a gather of the bits that
the target does not have at the same place (or an exchange, of those that it has elsewhere, if
all-to-all is enabled), and a slice of the target's new bits.  Bits that both layouts handle as one
axis of devices are moved together, the last dimension first, each gather on what the one before it
left.  That is how MindSpore does it (:mod:`irtool.sharding.redistribution`), but for details that
can only make it dearer: what is here is a lower bound, and mostly the price itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from irtool.cluster.flops_seconds import LAUNCH_SECONDS
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.group_rates import Rates, rates
from irtool.planning.cost.layout_bits import LEVELS, Bits, Bools, Floats, Ints
from irtool.planning.search.pair_kinds import kinds_of, row_kinds, runs

PAIRS = 1 << 16
"""Pairs that are looked at together: of those alike only one is priced, so many bring less."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What is moved: ``element`` bytes of one element; ``gradient``: a gradient comes back."""

    element: int
    gradient: bool


def least_between(
    first: Bits, second: Bits, moved: Moved, machine: Machine, enable_alltoall: bool
) -> Floats:
    """At least the seconds of every redistribution from a layout of ``first`` to one of ``second``.

    Both are of one shape and of as many devices.

    Args:
        first: layouts as bits.
        second: layouts as bits.
        moved: bytes of an element, and whether a gradient comes back.
        machine: whose links are used.
        enable_alltoall: whether an AlltoAll may be used.

    Returns:
        a row for each layout of ``first``, a column for each of ``second``.
    """
    least = np.empty((len(first.place), len(second.place)))
    rows = max(1, PAIRS // max(1, len(second.place)))
    alike, count = row_kinds(first.order, first.lead <= 1, (first.place >= 0).sum(axis=1))
    columns = row_kinds(second.order, second.lead <= 1)
    for start in range(0, len(first.place), rows):
        part = slice(start, start + rows)
        state = _Pairs(first.rows(start, start + rows), second, (alike[part], count), columns)
        seconds = _least_gathered(state, moved, machine)
        if enable_alltoall:
            exchanged = state.gone & state.wanted[None, :]
            dearer = _least_exchanged(state, exchanged, moved, machine)
            seconds = np.where(exchanged != 0, dearer, seconds)
        least[start : start + rows] = seconds
    return least


def _least_gathered(state: _Pairs, moved: Moved, machine: Machine) -> Floats:
    """Everything that moves is gathered and sliced."""
    full, directions = prod(state.first.shape) * moved.element, 2 if moved.gradient else 1
    held = np.broadcast_to(_ones(state.held)[:, None], state.gone.shape)
    both = _rates(state, machine, ("AllGather", "ReduceScatter")[:directions])
    seconds, copies = _runs(state, state.gone, (full, held), both, "gather", machine)
    copies += _sliced(state, (full, held - _ones(state.gone)), machine)
    return seconds + copies * directions


def _least_exchanged(state: _Pairs, exchanged: Ints, moved: Moved, machine: Machine) -> Floats:
    """What is wanted elsewhere is exchanged, the rest gathered; on what slices leave."""
    full, directions = prod(state.first.shape) * moved.element, 2 if moved.gradient else 1
    smallest = _ones(state.held)[:, None] + _ones(state.new)
    both = _rates(state, machine, ("AlltoAll",) * directions)
    seconds, _ = _runs(
        state, exchanged, (full, smallest), both, "exchange", machine, state.crossed()
    )
    gathered = state.gone & ~exchanged
    before = smallest - _ones(state.blocked(gathered))
    both = _rates(state, machine, ("AllGather", "ReduceScatter")[:directions])
    gathering, copies = _runs(state, gathered, (full, before), both, "any order", machine)
    sliced = _copied(full / 2.0**smallest, machine)
    copies += np.where(state.new != 0, sliced, 0.0)
    return seconds + gathering + copies * directions


def _rates(state: _Pairs, machine: Machine, ops: Sequence[str]) -> Rates:
    return rates(machine, ops, state.first.count, state.first.odd)


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
    rows: tuple[Ints, int]
    columns: tuple[Ints, int]

    def __init__(
        self, first: Bits, second: Bits, rows: tuple[Ints, int], columns: tuple[Ints, int]
    ) -> None:
        self.first, self.second = first, second
        self.rows, self.columns = rows, columns
        self.held, self.wanted = _mask(first.place), _mask(second.place)
        kept = np.zeros((len(first.place), len(second.place)), dtype=np.int64)
        touched = np.zeros(kept.shape, dtype=np.int64)
        for bit in range(first.count):
            a, b = first.place[:, bit], second.place[:, bit]
            same = a[:, None] == b[None, :]
            kept += same * np.where(a >= 0, 1 << bit, 0)[:, None]
            touched |= (_dimension(a)[:, None] | _dimension(b)[None, :]) * ~same
        self.gone = self.held[:, None] & ~kept
        self.new = self.wanted[None, :] & ~self.held[:, None]
        self.sliced = self.wanted[None, :] & ~kept
        self.cuts = first.cuts[:, None] | second.cuts[None, :]
        # Where both split a dimension, and in several steps, one may make the other cut its axes.
        once, more = _split_dimensions(first)
        also, again = _split_dimensions(second)
        both = once[:, None] & also[None, :] & (more[:, None] | again[None, :])
        self.unsure = (touched & both) != 0

    def crossed(self) -> Ints:
        """Bits below which an axis of devices ends, or a dimension of either layout."""
        ends = [_dimension_ends(bits) for bits in (self.first, self.second)]
        return self.cuts | ends[0][:, None] | ends[1][None, :]

    def blocked(self, gathered: Ints) -> Ints:
        """New bits whose place is taken until another bit is gathered."""
        places = len(self.first.shape) * LEVELS + 1
        holder = np.full((len(self.held), places), 63, dtype=np.int64)
        rows = np.arange(len(self.held))
        for bit in range(self.first.count):
            place = self.first.place[:, bit]
            holder[rows[place >= 0], place[place >= 0]] = bit
        blocked = np.zeros_like(gathered)
        for bit in range(self.first.count):
            wanted = self.second.place[:, bit]
            taken = holder[:, np.maximum(wanted, 0)]
            waits = (gathered >> taken) & (self.new >> bit) & 1
            blocked |= np.where((taken < 63) & (wanted >= 0)[None, :], waits, 0) << bit
        return blocked


Size: TypeAlias = tuple[int, Ints]
"""Bytes of the whole tensor, and how often they are halved on a device."""
Method: TypeAlias = Literal["gather", "exchange", "any order"]
"""How bits are moved: gathered as the peephole pass orders them, exchanged, or gathered somehow."""


def _runs(
    state: _Pairs,
    moving: Ints,
    size: Size,
    rates: Rates,
    method: Method,
    machine: Machine,
    cuts: Ints | None = None,
) -> tuple[Floats, Floats]:
    """Seconds of moving the bits of a mask axis by axis, and of copies on each device.

    ``size``: on one device before; gathers multiply it. ``cuts``: bits below which they are moved
    in parts; None: where axes of devices end.
    """
    full, halvings = size
    count = state.first.count
    cuts = state.cuts if cuts is None else cuts
    parts = [runs(moving, cuts, count), (halvings, count + 1)]
    if method != "any order":
        parts.append((state.rows[0][:, None], state.rows[1]))
    if method == "gather":  # what is held is the same in rows alike
        parts[1] = (state.unsure.astype(np.int64), 2)
    elif method == "exchange":
        parts.append((state.unsure.astype(np.int64), 2))
    kinds = kinds_of(moving.shape, parts)
    few = _Moves(
        state.first,
        kinds.place // moving.shape[1],
        np.ravel(moving)[kinds.place],
        np.ravel(cuts)[kinds.place],
        np.ravel(state.unsure)[kinds.place],
    )
    seconds, copies = few.seconds(
        full / 2.0 ** np.ravel(halvings)[kinds.place], rates, method, machine
    )
    return seconds[kinds.which], copies[kinds.which]


@dataclass(frozen=True, eq=False, slots=True)
class _Moves:
    """What is to be moved from some layouts; ``rows``: from which of ``first`` each time."""

    first: Bits
    rows: Ints
    mask: Ints
    cuts: Ints
    unsure: Bools

    def seconds(
        self, size: Floats, rates: Rates, method: Method, machine: Machine
    ) -> tuple[Floats, Floats]:
        """Seconds of moving, and of copies.

        Gathers along what is the first dimension on a device need no Split and Concat, and merge
        where they can.  Where it is not sure that bits are moved together, the cheaper way is
        counted: one start for each part, and slow links first, while there is little to move.
        """
        mask, count = self.mask, self.first.count
        grows = method != "exchange"
        order, lead = self.first.order[self.rows], self.first.lead[self.rows]
        if method == "any order":  # slow links first is the cheapest
            order = np.broadcast_to(np.arange(count - 1, -1, -1), (len(mask), count))
        seconds, copies = np.zeros(mask.shape), np.zeros(mask.shape)
        low, last = np.zeros(mask.shape, dtype=np.int64), np.full(mask.shape, -2)
        length = np.zeros(mask.shape, dtype=np.int64)
        sure, inside = np.zeros(mask.shape, dtype=np.bool_), np.zeros(mask.shape, dtype=np.bool_)
        certain = ~self.unsure & (method != "any order")
        width = count + 1
        starts, least_starts = rates.start.ravel(), rates.least_start.ravel()
        per_byte = rates.per_byte.ravel()
        least_per_byte = (rates.least_grown if grows else rates.least_per_byte).ravel()
        factors = 2.0 ** np.arange(width)
        for turn in range(count + 1):
            if turn < count:
                bit = order[:, turn]
                wanted = ((mask >> bit) & 1).astype(np.bool_)
                leads = lead[:, turn] <= 1
                uncut = ((self.cuts >> bit) & 1) == 0
                joined = wanted & (length > 0)
                if method == "any order":
                    joined &= bit == last - 1
                else:
                    joined &= (bit == last + 1) & (uncut | (leads & ~inside if grows else False))
                ended = wanted & ~joined & (length > 0)
            else:
                ended = length > 0
                wanted = joined = uncut = np.zeros(mask.shape, dtype=np.bool_)
                bit, leads = np.zeros_like(mask), wanted
            if ended.any():
                index = low * width + length
                grown = size * factors[length] if grows else size
                start = np.where(sure, starts.take(index), least_starts.take(index))
                rate = np.where(sure, per_byte.take(index), least_per_byte.take(index))
                seconds += np.where(ended, start + rate * grown, 0.0)
                if grows:
                    size = np.where(ended, grown, size)
                    if method == "gather":
                        copies += np.where(ended & inside, 2 * _copied(grown, machine), 0.0)
                length = np.where(ended, 0, length)
            begins = wanted & ~joined
            low = np.where(begins if method != "any order" else wanted, bit, low)
            sure = np.where(begins, certain, sure & (uncut | ~joined))
            last = np.where(wanted, bit, last)
            if method == "gather":
                inside = np.where(wanted, ~leads, inside)
            length += wanted
        return seconds, copies


def _sliced(state: _Pairs, size: Size, machine: Machine) -> Floats:
    """Seconds of the slices; ``size``: on one device before them."""
    full, halvings = size
    count = state.second.count
    column, columns = state.columns
    parts = [
        runs(state.sliced, state.cuts, count),
        (halvings, count + 1),
        (column[None, :], columns),
    ]
    kinds = kinds_of(halvings.shape, parts)
    rows = kinds.place % halvings.shape[1]
    mask, cuts = np.ravel(state.sliced)[kinds.place], np.ravel(state.cuts)[kinds.place]
    left = full / 2.0 ** np.ravel(halvings)[kinds.place]
    copies, last = np.zeros(len(mask)), np.full(len(mask), -2)
    pending = np.zeros(len(mask), dtype=np.bool_)
    for turn in range(count - 1, -1, -1):
        bit = state.second.order[rows, turn]
        wanted = ((mask >> bit) & 1).astype(np.bool_)
        joined = wanted & (bit == last - 1) & (((cuts >> (bit + 1)) & 1) == 0)
        joined |= wanted & (state.second.lead[rows, turn] <= 1)
        copies += np.where(wanted & ~joined & pending, _copied(left, machine), 0.0)
        left = np.where(wanted, left / 2, left)
        pending |= wanted
        last = np.where(wanted, bit, last)
    copies += np.where(pending, _copied(left, machine), 0.0)
    return copies[kinds.which]


def _copied(size: Floats, machine: Machine) -> Floats:
    """Seconds of an operator that reads and writes so many bytes."""
    if not machine.memory_bandwidth:
        return np.full_like(size, LAUNCH_SECONDS)
    return np.maximum(LAUNCH_SECONDS, size * (2 / machine.memory_bandwidth))


def _dimension(place: Ints) -> Ints:
    """The bit of a place's dimension; 0 for none."""
    return np.where(place >= 0, 1 << (np.maximum(place, 0) // LEVELS), 0)


def _dimension_ends(bits: Bits) -> Ints:
    """Bits that split another dimension than the next lower one."""
    ends = np.zeros(len(bits.place), dtype=np.int64)
    for bit in range(1, bits.count):
        same = _dimension(bits.place[:, bit]) == _dimension(bits.place[:, bit - 1])
        ends |= np.where(same, 0, 1 << bit)
    return ends


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
    count = np.zeros(mask.shape, dtype=np.int64)
    rest = np.array(mask, dtype=np.int64)
    while rest.any():
        count += rest & 1
        rest >>= 1
    return count
