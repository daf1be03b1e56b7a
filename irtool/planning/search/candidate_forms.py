"""What all strategies of an operator have in common, learnt from a few of them.

A rule judges one strategy in a fifth of a millisecond; a search looks at thousands.  But nearly all
operators treat each of their axes alike, whatever the others do: it has its place in the device
matrix, splits the same dimensions of the same tensors, and leaves a sum behind or does not.  This
*form* is read off the judgements of a few strategies, compared with more of them, and then says of
all others where the tensors lie and what is communicated.  Operators that differ anywhere (halos,
groups of experts, uneven parts) have no form, and are judged strategy by strategy.

What a search chooses is judged by the rule in the end: a form never makes a strategy legal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from irtool.operators.axes import CallAxes
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.judgement import Collective, Context, Judgement
from irtool.operators.layout import Shape, TensorLayout, replicas
from irtool.planning.cost.layout_bits import LEVELS, layout_from, places_of

Ints = npt.NDArray[np.int64]
Values = tuple[int, ...]
"""A strategy by axes: into how many slices each is cut."""
AxesOf = tuple[tuple[int, ...], ...]
"""Per dimension of a tensor the axes that cut it, the outermost first."""

MORE_PROBES = 3
"""Strategies, beyond those that a form is learnt from, that it is compared with."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A collective over axes, on what is as large as an output or as the local result before it."""

    op: str
    reduce: str
    output: int | None
    axes: tuple[int, ...]
    raw: bool


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """How an operator's tensors lie, by axes.

    Attributes:
        call, context: the operator.
        order: axes as they stand in the device matrix, slowest first.
        right: whether the axis of repeated calculation is the last one.
        inputs, outputs: by tensor the axes of each dimension.
        ends: by tensor (inputs, then outputs) the axes behind which its device axis ends.
        raw_inputs, raw_outputs: the same of what the operator itself takes in and puts out.
        sums: collectives, in order.
        mirrored: by input whether its gradient is summed over replicas if it is a weight.
    """

    call: OperatorCall
    context: Context
    order: tuple[int, ...]
    right: bool
    inputs: tuple[AxesOf, ...]
    outputs: tuple[AxesOf, ...]
    ends: tuple[frozenset[int], ...]
    raw_inputs: tuple[AxesOf, ...]
    raw_outputs: tuple[AxesOf, ...]
    sums: tuple[Sum, ...]
    mirrored: tuple[bool, ...]

    def lowest_bits(self, values: Ints) -> tuple[Ints, Ints]:
        """Per strategy and axis: the lowest bit of its place in a device's number; how many."""
        counts: Ints = np.rint(np.log2(values)).astype(np.int64)
        low = np.zeros(counts.shape, dtype=np.int64)
        stage = self.context.stage_size.bit_length() - 1
        at = np.zeros(len(values), dtype=np.int64)
        if self.right:
            at += stage - np.sum(counts, axis=1)
        for axis in reversed(self.order):
            low[:, axis] = at
            at = at + counts[:, axis]
        return low, counts

    def places(self, values: Ints, side: str, index: int) -> tuple[Ints, Ints]:
        """Per strategy the place of each bit of a device's number in a tensor, and the cuts.

        As ``layout_bits.Bits`` has them, in the tensor's own shape without
        dimensions of size 1.
        """
        low, counts = self.lowest_bits(values)
        width = self.context.stage_size.bit_length() - 1
        place = np.full((len(values), width), -1, dtype=np.int64)
        operands = self.call.tensors if side == "input" else self.call.results
        axes_of = (self.inputs if side == "input" else self.outputs)[index]
        dimension = 0
        steps = np.arange(width, dtype=np.int64)[None, :]
        for size, axes in zip(operands[index].shape or (), axes_of, strict=True):
            level = np.zeros(len(values), dtype=np.int64)
            for axis in axes:
                own = np.nonzero(steps < counts[:, axis, None])
                bit = (low[:, axis, None] + counts[:, axis, None] - 1 - steps)[own]
                place[own[0], bit] = dimension * LEVELS + (level[:, None] + steps)[own]
                level += counts[:, axis]
            dimension += size != 1
        number = index if side == "input" else len(self.inputs) + index
        cuts = np.zeros(len(values), dtype=np.int64)
        for axis in self.ends[number]:
            cuts |= np.where(counts[:, axis] > 0, 1 << low[:, axis], 0)
        if not self.right:
            cuts |= 1 << np.sum(counts, axis=1)  # below the repeated axis
        else:
            cuts |= 1 << (width - np.sum(counts, axis=1))
        return place, cuts & ((1 << width) - 1)

    def sketches(self, values: Ints) -> Iterator[Judgement]:
        """What a rule would say of each strategy, as far as prices go: slices and collectives."""
        low, counts = self.lowest_bits(values)
        own = self.context.own_rank - self.context.devices[0]
        lows, lengths = low.tolist(), counts.tolist()
        groups: dict[tuple[tuple[int, int], ...], tuple[int, ...]] = {}
        for row, numbers in enumerate(values.tolist()):
            slices = [_cut(t.shape or (), a, numbers)
                      for t, a in zip(self.call.tensors, self.inputs, strict=True)]  # fmt: skip
            results = [_cut(t.shape or (), a, numbers)
                       for t, a in zip(self.call.results, self.outputs, strict=True)]  # fmt: skip
            raw_inputs = slices if self.raw_inputs == self.inputs else [
                _cut(t.shape or (), a, numbers)
                for t, a in zip(self.call.tensors, self.raw_inputs, strict=True)
            ]  # fmt: skip
            raw_outputs = results if self.raw_outputs == self.outputs else [
                _cut(t.shape or (), a, numbers)
                for t, a in zip(self.call.results, self.raw_outputs, strict=True)
            ]  # fmt: skip
            collectives: list[Collective] = []
            for item in self.sums:
                key = tuple((lows[row][a], lengths[row][a]) for a in item.axes if lengths[row][a])
                if not key:
                    continue
                if key not in groups:
                    groups[key] = self._ranks(own, key)
                shapes = raw_outputs if item.raw else results
                shape = None if item.output is None else shapes[item.output]
                collectives.append(
                    Collective(item.op, groups[key], item.reduce, "", item.output, shape)
                )
            yield Judgement(
                "legal",
                (),
                input_slices=tuple(slices),
                output_slices=tuple(results),
                raw_inputs=tuple(raw_inputs),
                raw_outputs=tuple(raw_outputs),
                collectives=tuple(collectives),
                repeats=self.context.stage_size // prod(numbers),
            )

    def _ranks(self, own: int, runs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """The ranks that differ from one in some bits: runs of them, from the lowest."""
        mask = sum(((1 << count) - 1) << low for low, count in runs)
        found = [own & ~mask]
        for low, count in runs:
            found = [rank | step << low for rank in found for step in range(1 << count)]
        return tuple(self.context.devices[rank] for rank in sorted(found))

    def scattered(self) -> Form | None:
        """The form with the split sum scattered over the rows of the output."""
        if len(self.sums) != 1 or len(self.outputs) != 1 or len(self.outputs[0]) != 2:
            return None
        (only,) = self.sums
        rows, columns = self.outputs[0]
        joined = ((*rows, *only.axes), columns)
        ends = (*self.ends[:-1], self.ends[-1] - set(rows))
        scatter = replace(only, op="ReduceScatter", raw=True)
        return replace(self, outputs=(joined,), ends=ends, sums=(scatter,))

    def agrees(self, values: Sequence[Values], judgements: Sequence[Judgement]) -> bool:
        """Whether the form says what the rule says of some strategies."""
        numbers: Ints = np.array(values, dtype=np.int64)
        for sketch, judged in zip(self.sketches(numbers), judgements, strict=True):
            if judged.verdict != "legal" or _facts(sketch) != _facts(judged):
                return False
        for side, count in (("input", len(self.inputs)), ("output", len(self.outputs))):
            for index in range(count):
                place, cuts = self.places(numbers, side, index)
                for row, judged in enumerate(judgements):
                    layouts = judged.input_layouts if side == "input" else judged.output_layouts
                    standard = layouts[index].standard()
                    made = layout_from(place[row].tolist(), int(cuts[row]), standard.tensor_shape)
                    if made != standard:
                        return False
                    if side == "input" and judged.mirrors[index] != self.mirror(index, made):
                        return False
        return True

    def mirror(self, index: int, layout: TensorLayout) -> tuple[int, ...]:
        """The ranks that sum the gradient of an input if it is a weight that lies like this."""
        rank = self.context.own_rank
        return replicas(layout, self.context.devices, rank) if self.mirrored[index] else (rank,)


def _inner(cuts: int) -> int:
    return cuts & ~1  # below the lowest bit nothing follows


def _lies(layout: TensorLayout) -> tuple[list[int], int] | None:
    """Where a layout puts each bit, and its cuts; in the tensor's shape without ones."""
    size = prod(layout.device_matrix)
    own = tuple(n for n in layout.tensor_shape if n != 1)
    place = places_of(layout, own, size.bit_length() - 1)
    cuts, stride = 0, size
    for axis in layout.device_matrix:
        stride //= axis
        cuts |= stride
    return None if place is None else (place, _inner(cuts) & (size - 1))


def _facts(judged: Judgement) -> object:
    collectives = [(c.op, c.ranks, c.reduce, c.output, c.shape) for c in judged.collectives]
    return (
        judged.input_slices, judged.output_slices, judged.raw_inputs, judged.raw_outputs,
        judged.repeats, judged.parts, collectives,
    )  # fmt: skip


def _cut(shape: Shape, axes_of: AxesOf, values: Sequence[int]) -> Shape:
    found: list[int] = []
    for size, axes in zip(shape, axes_of, strict=True):
        for axis in axes:
            size //= values[axis]
        found.append(size)
    return tuple(found)


def form_from(call: OperatorCall, context: Context, axes: CallAxes) -> Form | None:
    """The form of a call whose axes are told; None where devices are no power of two."""
    stage = context.stage_size
    if stage & (stage - 1) or stage < 2 or not axes.axes:
        return None
    inputs = tuple(_along(axes, "input", at, tensor) for at, tensor in enumerate(call.tensors))
    outputs = tuple(_along(axes, "output", at, tensor) for at, tensor in enumerate(call.results))
    ends = frozenset(range(len(axes.axes)))
    sums = tuple(Sum(one.op, one.reduce, one.output, one.axes, False) for one in axes.sums)
    return Form(
        call,
        context,
        axes.order,
        axes.right,
        inputs,
        outputs,
        (ends,) * (len(inputs) + len(outputs)),
        inputs,
        outputs,
        sums,
        axes.mirrored,
    )


def _along(axes: CallAxes, side: str, tensor: int, operand: Operand) -> AxesOf:
    """Per dimension of a tensor the axis that cuts it, if there is one."""
    found: dict[int, tuple[int, ...]] = {}
    for number, axis in enumerate(axes.axes):
        for place, dimension in axis.inputs if side == "input" else axis.outputs:
            if place == tensor:
                found[dimension] = (number,)
    return tuple(found.get(at, ()) for at in range(len(operand.shape or ())))


# -- learning ------------------------------------------------------------------------------------


def form_of(
    call: OperatorCall,
    context: Context,
    largest: Sequence[int],
    ask: Callable[[Values], Judgement],
) -> Form | None:
    """The form of an operator; None if it has none.

    Args:
        call: the operator.
        context: where it runs.
        largest: by axis into how many slices it can be cut at most, a power of two.
        ask: the rule's judgement of a strategy by axes.
    """
    stage, count = context.stage_size, len(largest)
    known = all(
        operand.shape is not None and -1 not in operand.shape and 0 not in operand.shape
        for operand in (*call.tensors, *call.results)
    )
    if not known or stage & (stage - 1) or stage < 2 or 2**count > stage or not count:
        return None
    singles = [_single(count, axis, 2) for axis in range(count)]
    judged = [ask(values) for values in singles]
    joint = (2,) * count
    together = ask(joint)
    if any(each.verdict != "legal" for each in (*judged, together)):
        return None
    form = _learnt(call, context, judged, together)
    if form is None:
        return None
    probes = [*singles, joint, *_more(largest, stage)]
    return form if form.agrees(probes, [ask(values) for values in probes]) else None


def _single(count: int, axis: int, value: int) -> Values:
    return tuple(value if at == axis else 1 for at in range(count))


def _more(largest: Sequence[int], stage: int) -> Iterator[Values]:
    """Strategies to compare with: each axis cut as often as it can be, and some at random."""
    for axis, most in enumerate(largest):
        yield _single(len(largest), axis, min(most, stage))
    dice = random.Random(len(largest))  # the same ones each time
    for _ in range(MORE_PROBES):
        left, values = stage, [1] * len(largest)
        for axis in dice.sample(range(len(largest)), len(largest)):
            steps = min(left, largest[axis]).bit_length()
            values[axis] = 1 << dice.randrange(steps)
            left //= values[axis]
        yield tuple(values)


def _learnt(
    call: OperatorCall, context: Context, singles: list[Judgement], together: Judgement
) -> Form | None:
    stage = context.stage_size
    inputs = [_cut_by(t.shape or (), [j.input_slices[i] for j in singles])
              for i, t in enumerate(call.tensors)]  # fmt: skip
    outputs = [_cut_by(t.shape or (), [j.output_slices[i] for j in singles])
               for i, t in enumerate(call.results)]  # fmt: skip
    layouts = [*together.input_layouts, *together.output_layouts]
    places = [_lies(layout) for layout in layouts]
    axis_of = _axes_of_bits([*inputs, *outputs], places, layouts)
    if axis_of is None or len(axis_of) != len(singles):
        return None
    ordered = sorted(axis_of, reverse=True)
    lowest = min(axis_of)
    right = lowest == stage.bit_length() - 1 - len(singles)
    if not right and lowest:
        return None
    if lowest == 0 and right:  # no bit is left over: one axis alone shows where the others stand
        alone = _lies_alone(singles)
        if alone is None:
            return None
        right = alone
    sums: list[Sum] = []
    for item in together.collectives:
        own = context.own_rank
        bits = [b for b in range(stage.bit_length() - 1) if own ^ (1 << b) in item.ranks]
        if 1 << len(bits) != len(item.ranks) or any(bit not in axis_of for bit in bits):
            return None
        raw = item.output is not None and item.shape != together.output_slices[item.output]
        axes = tuple(axis_of[bit] for bit in sorted(bits, reverse=True))
        sums.append(Sum(item.op, item.reduce, item.output, axes, raw))
    ends: list[frozenset[int]] = []
    for lies in places:
        if lies is None:
            return None
        ends.append(frozenset(a for bit, a in axis_of.items() if bit == 0 or lies[1] >> bit & 1))
    return Form(
        call,
        context,
        tuple(axis_of[bit] for bit in ordered),
        right,
        tuple(inputs),
        tuple(outputs),
        tuple(ends),
        tuple(_cut_by(t.shape or (), [j.raw_inputs[i] for j in singles])
              for i, t in enumerate(call.tensors)),
        tuple(_cut_by(t.shape or (), [j.raw_outputs[i] for j in singles])
              for i, t in enumerate(call.results)),
        tuple(sums),
        tuple(any(len(j.mirrors[i]) > 1 for j in (*singles, together))
              for i, _ in enumerate(call.tensors)),
    )  # fmt: skip


def _cut_by(shape: Shape, slices: Sequence[Shape]) -> AxesOf:
    """Per dimension the axes that cut it when they alone are split."""
    return tuple(
        tuple(axis for axis, cut in enumerate(slices) if cut[at] != size)
        for at, size in enumerate(shape)
    )


def _axes_of_bits(
    tensors: Sequence[AxesOf],
    places: Sequence[tuple[list[int], int] | None],
    layouts: Sequence[TensorLayout],
) -> dict[int, int] | None:
    """Which axis each bit of a device's number belongs to, all axes being cut in two."""
    found: dict[int, int] = {}
    for axes_of, lies, layout in zip(tensors, places, layouts, strict=True):
        if lies is None:
            return None
        kept = [axes for axes, n in zip(axes_of, layout.tensor_shape, strict=True) if n != 1]
        for bit, place in enumerate(lies[0]):
            axes = kept[place // LEVELS] if place >= 0 else ()
            if len(axes) == 1 and found.setdefault(bit, axes[0]) != axes[0]:
                return None
            if place >= 0 and not axes:
                return None
    return found


def _lies_alone(singles: Sequence[Judgement]) -> bool | None:
    """Whether an axis that is cut alone stands before the repeated one."""
    for judged in singles:
        for layout in (*judged.input_layouts, *judged.output_layouts):
            lies = _lies(layout)
            if lies is None:
                return None
            bits = [bit for bit, place in enumerate(lies[0]) if place >= 0]
            if bits and len(lies[0]) > 1:
                return bits[0] != 0
    return True
