"""What all strategies of an operator have in common, by the axes that its entry tells.

A rule judges one strategy in a fifth of a millisecond; a search looks at thousands.  But nearly all
operators treat each of their axes alike, whatever the others do: it has its place in the device
matrix, splits the same dimensions of the same tensors, and leaves a sum behind or does not.  This
*form* is read off the axes of the call, and says of all strategies where the tensors lie and what
is communicated.  Axes that are left to a function (halos, groups of experts, uneven parts) are
whole in it: strategies that cut them are judged one by one.

What a search chooses is judged by the rule in the end: a form never makes a strategy legal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.operators.axes import CallAxes
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.judgement import Collective, Context, Judgement
from irtool.operators.layout import Shape, TensorLayout, replicas
from irtool.planning.cost.layout_bits import LEVELS

Ints = npt.NDArray[np.int64]
AxesOf = tuple[tuple[int, ...], ...]
"""Per dimension of a tensor the axes that cut it, the outermost first."""


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
        raw_outputs: the same of what the operator itself puts out, before it is scattered.
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
    raw_outputs: tuple[AxesOf, ...]
    sums: tuple[Sum, ...]
    mirrored: tuple[bool, ...]

    def lowest_bits(self, values: Ints) -> tuple[Ints, Ints]:
        """Per strategy and axis: the lowest bit of its place in a device's number; how many."""
        counts: Ints = np.rint(np.log2(values)).astype(np.int64)
        low = np.zeros(counts.shape, dtype=np.int64)
        stage = self.context.stage_size.bit_length() - 1
        bit = np.zeros(len(values), dtype=np.int64)
        if self.right:
            bit += stage - np.sum(counts, axis=1)
        for axis in reversed(self.order):
            low[:, axis] = bit
            bit = bit + counts[:, axis]
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
        lows, lengths = low.tolist(), counts.tolist()
        groups: dict[tuple[tuple[int, int], ...], tuple[int, ...]] = {}
        for row, numbers in enumerate(values.tolist()):
            slices = [_cut(t.shape or (), a, numbers)
                      for t, a in zip(self.call.tensors, self.inputs, strict=True)]  # fmt: skip
            results = [_cut(t.shape or (), a, numbers)
                       for t, a in zip(self.call.results, self.outputs, strict=True)]  # fmt: skip
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
                    groups[key] = self.ranks_of(key)
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
                raw_inputs=tuple(slices),
                raw_outputs=tuple(raw_outputs),
                collectives=tuple(collectives),
                repeats=self.context.stage_size // prod(numbers),
            )

    def ranks_of(self, runs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """The ranks that differ from the own one in some bits: runs of them, from the lowest."""
        own = self.context.own_rank - self.context.devices[0]
        mask = sum(((1 << count) - 1) << low for low, count in runs)
        ranks = [own & ~mask]
        for low, count in runs:
            ranks = [rank | step << low for rank in ranks for step in range(1 << count)]
        return tuple(self.context.devices[rank] for rank in sorted(ranks))

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

    def mirror(self, index: int, layout: TensorLayout) -> tuple[int, ...]:
        """The ranks that sum the gradient of an input if it is a weight that lies like this."""
        rank = self.context.own_rank
        return replicas(layout, self.context.devices, rank) if self.mirrored[index] else (rank,)


def _cut(shape: Shape, axes_of: AxesOf, values: Sequence[int]) -> Shape:
    slice_shape: list[int] = []
    for size, axes in zip(shape, axes_of, strict=True):
        for axis in axes:
            size //= values[axis]
        slice_shape.append(size)
    return tuple(slice_shape)


def form_from(call: OperatorCall, context: Context, axes: CallAxes) -> Form | None:
    """The form of a call whose axes are told.

    None where devices are no power of two, sizes are not known, or no axis has a form.

    Args:
        call: the operator's inputs and attributes.
        context: devices and settings.
        axes: of the call, as the operator's entry tells them.
    """
    stage = context.stage_size
    known = all(
        operand.shape is not None and min(operand.shape, default=1) > 0
        for operand in (*call.tensors, *call.results)
    )
    if not known or stage & (stage - 1) or stage < 2 or all(axis.judged for axis in axes.axes):
        return None
    inputs = tuple(
        _along(axes, "input", position, tensor) for position, tensor in enumerate(call.tensors)
    )
    outputs = tuple(
        _along(axes, "output", position, tensor) for position, tensor in enumerate(call.results)
    )
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
        outputs,
        sums,
        axes.mirrored,
    )


def _along(axes: CallAxes, side: str, tensor: int, operand: Operand) -> AxesOf:
    """Per dimension of a tensor the axis that cuts it, if there is one."""
    cutting: dict[int, tuple[int, ...]] = {}
    for number, axis in enumerate(axes.axes):
        for place, dimension in axis.inputs if side == "input" else axis.outputs:
            if place == tensor:
                cutting[dimension] = (number,)
    return tuple(cutting.get(dimension, ()) for dimension in range(len(operand.shape or ())))
