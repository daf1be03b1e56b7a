"""How one tensor of an operator may lie: the layouts that its candidates lead to, each once."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.operators.layout import Shape, TensorLayout
from irtool.planning.cost.layout_bits import (
    LEVELS,
    Bits,
    Bools,
    Floats,
    Ints,
    bit_count,
    bits_from,
    common_shape,
    cuts_of,
    layout_from,
    odd_part,
    places_of,
    without_odd_part,
)
from irtool.planning.cost.structure import Ref
from irtool.planning.search.bounds import Moved, least_between
from irtool.planning.search.candidates import Candidates
from irtool.planning.search.chains import Want
from irtool.planning.search.least import least_anywhere


class NoLayout(Exception):
    """How a tensor lies is not known."""


@dataclass(frozen=True, eq=False)
class Layouts:
    """The layouts of a tensor.

    Attributes:
        ref: which tensor of the operator.
        candidates: that it is looked at under.
        shape: of the whole tensor.
        which: by candidate, which layout.
        first: by layout, the first candidate that leads to it.
        place, cuts: by layout, in the tensor's shape without dimensions of size 1, as
            ``layout_bits.Bits`` has them.
        known: by layout, whether it has such a form.
        odd: what a device's number is divided by before it has the bits of ``place``.
    """

    ref: Ref
    candidates: Candidates
    shape: Shape
    which: Ints
    first: tuple[int, ...]
    place: Ints
    cuts: Ints
    known: Bools
    odd: int = 1
    made: dict[int, TensorLayout] = field(default_factory=dict[int, TensorLayout])

    def __len__(self) -> int:
        return len(self.first)

    def layout(self, number: int) -> TensorLayout:
        """One of them, in standard form."""
        if number not in self.made and self.has_bits and self.known[number]:
            place = self.place[number].tolist()
            self.made[number] = layout_from(place, int(self.cuts[number]), self.shape)
        if number not in self.made:
            layout = self.ref.of(self.candidates.items[self.first[number]].judgement)
            if layout is None:
                raise NoLayout
            self.made[number] = layout.standard()
        return self.made[number]

    @property
    def has_bits(self) -> bool:
        """Whether a layout's bits say all of it: devices are a power of two."""
        return self.odd == 1

    @cached_property
    def keys(self) -> tuple[object, ...]:
        """By layout something that is equal where devices hold the same pieces."""
        if not self.has_bits or not self.known.all():
            layouts = [self.layout(number) for number in range(len(self))]
            return tuple((layout.tensor_shape, layout.strides()) for layout in layouts)
        return tuple((self.shape, tuple(row)) for row in self.place.tolist())

    @cached_property
    def content(self) -> object:
        """Equal where bounds of all layouts are the same, in the same order."""
        if not self.has_bits and not self.known.all():
            return id(self)
        return self.shape, self.place.tobytes(), self.cuts.tobytes(), self.known.tobytes()

    @cached_property
    def kinds(self) -> tuple[Ints, tuple[int, ...]]:
        """By candidate a number that says what a weight costs; by number a layout like that.

        That depends on who holds the same pieces, and on how long the first dimension is on each.
        """
        if not self.has_bits or not self.known.all():
            number: dict[object, int] = {}
            numbers = [number.setdefault(key, len(number)) for key in self.keys]
            first = tuple(numbers.index(kind) for kind in number.values())
            return np.array(numbers, dtype=np.int64)[self.which], first
        bits = 1 << np.arange(self.place.shape[1], dtype=np.int64)
        alone = np.where(self.place < 0, bits[None, :], 0).sum(axis=1)
        leading = np.count_nonzero((self.place >= 0) & (self.place < LEVELS), axis=1)
        _, rows, own = np.unique(
            np.column_stack([alone, leading]), axis=0, return_index=True, return_inverse=True
        )
        return np.ravel(own)[self.which], tuple(int(row) for row in rows)

    def bits(self, shape: Shape) -> tuple[Bits, Bools]:
        """All of them in places of a refinement of the shape; and which have such a form."""
        own = _own(self.shape)
        return bits_from(own, self.place, self.cuts, self.known, shape, self.odd)


def layouts_of(ref: Ref, candidates: Candidates, devices: int) -> Layouts:
    """The layouts that candidates lead to.

    Args:
        ref: which tensor of the operator.
        candidates: what may be tried for the operator.
        devices: of the stage.

    Raises:
        NoLayout: that of some candidate is not known.
    """
    power = devices & (devices - 1) == 0
    if not candidates.families or ref.node is None or not power:
        return _looked_up(ref, candidates, devices)
    form = candidates.families[0].form
    operands = form.call.tensors if ref.side == "input" else form.call.results
    shape = operands[ref.index].shape or ()
    rows: list[Ints] = []
    for family in candidates.families:
        place, cuts = family.form.places(family.values, ref.side, ref.index)
        rows.append(np.hstack([place, cuts[:, None]]))
    width = devices.bit_length() - 1
    for item in candidates.items[sum(len(row) for row in rows) :]:
        layout = ref.of(item.judgement)
        own = None if layout is None else _row(layout.standard(), width)
        if own is None:
            return _looked_up(ref, candidates, devices)
        rows.append(own[None, :])
    table = np.vstack(rows)
    distinct, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return Layouts(
        ref,
        candidates,
        shape,
        np.ravel(np.asarray(which, dtype=np.int64)),
        tuple(int(index) for index in first),
        distinct[:, :-1],
        distinct[:, -1],
        np.ones(len(distinct), dtype=np.bool_),
    )


def _looked_up(ref: Ref, candidates: Candidates, devices: int) -> Layouts:
    seen: dict[TensorLayout, int] = {}
    which: list[int] = []
    first: list[int] = []
    for index, item in enumerate(candidates.items):
        layout = ref.of(item.judgement)
        if layout is None:
            raise NoLayout
        number = seen.setdefault(layout.standard(), len(seen))
        if number == len(first):
            first.append(index)
        which.append(number)
    made = dict(enumerate(seen))
    shape = made[0].tensor_shape
    width, odd = bit_count(devices), odd_part(devices)
    place = np.full((len(made), width), -1, dtype=np.int64)
    cuts, known = np.zeros(len(made), dtype=np.int64), np.zeros(len(made), dtype=np.bool_)
    for index, layout in made.items():
        plain = without_odd_part(layout, odd)
        row = None if plain is None else _row(plain, width)
        if row is not None:
            place[index], cuts[index], known[index] = row[:-1], row[-1], True
    numbers = np.array(which, dtype=np.int64)
    return Layouts(ref, candidates, shape, numbers, tuple(first), place, cuts, known, odd, made)


def _own(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _row(layout: TensorLayout, width: int) -> Ints | None:
    """Places and cuts of a layout in its own shape."""
    if any(size <= 0 for size in layout.tensor_shape):
        return None
    place = places_of(layout, _own(layout.tensor_shape), width)
    if place is None:
        return None
    return np.array([*place, cuts_of(layout) & ((1 << width) - 1)], dtype=np.int64)


def least_prices(
    first: Layouts, second: Layouts, want: Want, machine: Machine, enable_alltoall: bool
) -> Floats:
    """At least what each redistribution costs; 0 where nothing is known.

    Args:
        first: layouts that the producer may leave.
        second: layouts that the user may take.
        want: what is moved, and how often a step.
        machine: whose links are used.
        enable_alltoall: whether an AlltoAll may be used.

    Returns:
        seconds: a row for each layout of ``first``, a column for each of ``second``.
    """
    least = np.zeros((len(first), len(second)))
    moved = Moved(want.element, want.gradient)
    if not first.has_bits:
        sources = [first.layout(number) for number in range(len(first))]
        targets = [second.layout(number) for number in range(len(second))]
        least = want.runs * least_anywhere(sources, targets, moved, machine)
    shape = common_shape(first.shape, second.shape)
    if shape is None:
        return least
    left, known_left = first.bits(shape)
    right, known_right = second.bits(shape)
    prices = want.runs * least_between(left, right, moved, machine, enable_alltoall)
    return np.where(known_left[:, None] & known_right[None, :], np.maximum(prices, least), least)
