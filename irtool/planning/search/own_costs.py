"""What all strategies of a form cost an operator by itself, as arrays.

The axes of a form are cut in powers of two, so what a slice holds and what is computed on it are
those of the whole, halved so many times; which devices communicate follows from few of the axes.
An operator that is not so simple (:func:`seconds_of_form` says None) is priced strategy by strategy
(:mod:`irtool.planning.search.alike`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from math import prod
from typing import TypeAlias

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Operand
from irtool.operators.judgement import Judgement
from irtool.operators.table import operator_of
from irtool.planning.cost.costs import (
    compute_seconds,
    forward_and_backward,
    item_bytes,
    operator_communications,
    seconds_of,
    work_seconds,
)
from irtool.planning.cost.layout_bits import Floats
from irtool.planning.cost.structure import Structure
from irtool.planning.search.alike import alike, exponents_of
from irtool.planning.search.candidate_forms import AxesOf, Form, Ints, Sum
from irtool.planning.search.candidates import Candidates

Rows: TypeAlias = tuple[Floats, ...]
"""Columns of numbers, each by strategy."""


@dataclass(frozen=True, eq=False)
class Slices:
    """How large the slices of a call are under each of some strategies.

    ``values``: by strategy into how many slices each axis is cut.
    """

    form: Form
    values: Ints

    @cached_property
    def bits(self) -> tuple[Ints, Ints]:
        """By strategy and axis: the lowest bit of its place in a device's number; how many."""
        return self.form.lowest_bits(self.values)

    def input_bytes(self, index: int) -> Floats:
        """Bytes of the slices of an operand."""
        return self._bytes(self.form.call.tensors[index], self.form.inputs[index])

    def output_bytes(self, index: int) -> Floats:
        """Bytes of the slices of a result, as it is handed on."""
        return self._bytes(self.form.call.results[index], self.form.outputs[index])

    def raw_output_bytes(self, index: int) -> Floats:
        """Bytes of a result as the operator itself puts it out."""
        return self._bytes(self.form.call.results[index], self.form.raw_outputs[index])

    def _bytes(self, operand: Operand, axes_of: AxesOf) -> Floats:
        _, counts = self.bits
        axes = [axis for axes in axes_of for axis in axes]
        whole = float(prod(operand.shape or ()) * item_bytes(operand.dtype))
        return np.ldexp(whole, -counts[:, axes].sum(axis=1))


def seconds_of_form(
    slices: Slices, machine: Machine, *, gradient: bool, back: bool
) -> tuple[Floats, Floats] | None:
    """Seconds of what an operator computes, and of what it communicates, by strategy.

    Args:
        slices: its call, under the strategies.
        machine: what things cost.
        gradient: whether one is taken of it.
        back: whether that communicates what the operator does.

    Returns:
        None where they do not follow from how often axes are cut.
    """
    form, (_, counts) = slices.form, slices.bits
    call = form.call
    own = operator_of(call.op)
    if machine.measured or own.is_("picks") or own.is_("masks"):
        return None
    uncut, exponents = exponents_of(form, slices.values)
    if exponents is None:
        return None
    operations: Floats = np.ldexp(float(uncut), -(counts * exponents).sum(axis=1))
    read = [slices.input_bytes(index) for index in range(len(call.tensors))]
    written = [slices.raw_output_bytes(index) for index in range(len(call.results))]
    size = np.zeros(len(counts))
    for part in (*read, *written):  # what picks nothing touches all
        size += part
    computing = work_seconds(call, (operations, size), machine, gradient=gradient)
    communicating = np.zeros(len(counts))
    for item in form.sums:
        if item.output is not None:
            communicating += _communicated(slices, item, machine, back=back)
    return computing, communicating


def _communicated(slices: Slices, item: Sum, machine: Machine, *, back: bool) -> Floats:
    """Seconds of a collective by strategy; each group and size is priced once."""
    form, (low, counts) = slices.form, slices.bits
    assert item.output is not None
    size_of = slices.raw_output_bytes if item.raw else slices.output_bytes
    sizes, axes = size_of(item.output), list(item.axes)
    lows = np.where(counts[:, axes] > 0, low[:, axes], 0)
    table = np.column_stack([lows, counts[:, axes], sizes.astype(np.int64)])
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    seconds = np.zeros(len(first))
    for place, row in enumerate(first.tolist()):
        bits = tuple(
            (int(low[row, axis]), int(counts[row, axis])) for axis in axes if counts[row, axis]
        )
        if bits:
            ranks = form.ranks_of(bits)
            size = int(sizes[row]) * (len(ranks) if item.op == "AllGather" else 1)
            both = forward_and_backward(item.op, ranks, size, machine, gradient=back)
            seconds[place] = seconds_of(both)
    return seconds[np.ravel(which)]


def held_of_form(structure: Structure, node: Node, slices: Slices) -> Floats | None:
    """Bytes that count as kept with an operator, by strategy; None: strategy by strategy.

    What :func:`kept_bytes` and :func:`carried_bytes` say of one.
    """
    call, total = slices.form.call, np.zeros(len(slices.values))
    if structure.counts_all:
        for index in structure.kept.get(node, ()):
            if index < len(call.results):
                total += slices.output_bytes(index)
        return structure.held(node) * total
    for carried in structure.carried.get(node, ()):
        if carried.is_batch:
            return None
        is_input = carried.side == "input"
        if carried.index < len(call.tensors if is_input else call.results):
            bytes_of = slices.input_bytes if is_input else slices.output_bytes
            total += carried.share * bytes_of(carried.index)
    return structure.held(node) * total


def own_seconds(
    structure: Structure, node: Node, candidates: Candidates, machine: Machine
) -> tuple[Floats, Floats]:
    """Seconds of what an operator computes, and of what it communicates, by candidate.

    Args:
        structure: the network.
        node: the operator.
        candidates: its strategies.
        machine: prices them.
    """
    call = structure.calls[node].call.call
    gradient, back = node in structure.with_gradient, structure.communicates_back(node)

    def of_form(slices: Slices) -> Rows | None:
        return seconds_of_form(slices, machine, gradient=gradient, back=back)

    def of_one(judgement: Judgement, operations: int | None) -> tuple[float, float]:
        computing = compute_seconds(
            call, judgement, machine, gradient=gradient, operations=operations
        )
        moved = operator_communications(call, judgement, machine, gradient=back)
        return computing, seconds_of(moved)

    computing, communicating = _by_candidate(candidates, of_form, of_one)
    return computing, communicating


def own_bytes(structure: Structure, node: Node, candidates: Candidates) -> Floats:
    """Bytes that count as kept with an operator, by candidate.

    Args:
        structure: the network.
        node: the operator.
        candidates: its strategies.
    """
    held = kept_bytes if structure.counts_all else carried_bytes

    def of_form(slices: Slices) -> Rows | None:
        own = held_of_form(structure, node, slices)
        return None if own is None else (own,)

    (column,) = _by_candidate(
        candidates, of_form, lambda judgement, _: (held(structure, node, judgement),)
    )
    return column


def _by_candidate(
    candidates: Candidates,
    of_form: Callable[[Slices], Rows | None],
    of_one: Callable[[Judgement, int | None], Sequence[float]],
) -> Rows:
    """Numbers of all candidates: of a form at once, where that can be; else kind by kind.

    Args:
        candidates: all of an operator.
        of_form: arrays of numbers of strategies of one form; None: these have to be asked for.
        of_one: the numbers of a judgement, on whose slices so many operations are done.
    """
    parts: list[Rows] = []
    for family in candidates.families:
        own = of_form(Slices(family.form, family.values))
        if own is None:
            same = alike(family.form, family.values)
            sketches = family.form.sketches(family.values[same.first])
            operations = same.operations or repeat(None)
            few = [of_one(*pair) for pair in zip(sketches, operations, strict=False)]
            own = tuple(column[same.which] for column in _columns(few))
        parts.append(own)
    others = [of_one(item.judgement, None) for item in candidates.others]
    if others:
        parts.append(_columns(others))
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _columns(rows: Sequence[Sequence[float]]) -> Rows:
    return tuple(np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))


def carried_bytes(structure: Structure, node: Node, judgement: Judgement) -> float:
    """Bytes on one device of what counts as kept with an operator.

    Whatever the whole plan is, it keeps no less than all of these together.
    """
    call = structure.calls[node].call.call
    sides = {
        "input": (judgement.input_slices, call.tensors),
        "output": (judgement.output_slices, call.results),
    }
    total = 0.0
    for carried in structure.carried.get(node, ()):
        slices, tensors = sides[carried.side]
        index = carried.index
        if index >= len(tensors) or index >= len(slices) or min(slices[index], default=0) < 0:
            continue
        if carried.is_batch and not structure.cuts_batch(slices[index], tensors[index]):
            continue
        total += carried.share * prod(slices[index]) * item_bytes(tensors[index].dtype)
    return structure.held(node) * total


def kept_bytes(structure: Structure, node: Node, judgement: Judgement) -> float:
    """Bytes of an operator's results that count as kept on one device, as the operator makes them.

    Where a reader wants another layout it is the redistributed copy that stays, which only a plan
    of the whole network tells (:func:`irtool.planning.plans.step.kept.kept_in`).

    Args:
        structure: of the network.
        node: the operator.
        judgement: its slices under a strategy; those of unknown size are left out.
    """
    judged = structure.calls[node]
    results = judged.call.call.results
    slices = judgement.output_slices
    total = 0
    for index in structure.kept.get(node, ()):
        if index >= len(results) or index >= len(slices) or min(slices[index], default=0) < 0:
            continue
        total += prod(slices[index]) * item_bytes(results[index].dtype)
    return structure.held(node) * total
