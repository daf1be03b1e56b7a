"""Strategies of one operator that cost alike: of each kind only one needs to be priced.

What an operator costs depends on how large its slices are, and which devices communicate what.
Most strategies of a form differ in neither: it is all the same to an addition which of its axes
are cut, as long as they are cut into as many slices.
"""

from __future__ import annotations

from math import prod

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.cost.costs import operations_of
from irtool.planning.search.candidate_forms import AxesOf, Form, Ints

PROBES = 6
"""Strategies on which it is tried whether operations follow from how often axes are cut."""


@dataclass(frozen=True, eq=False, slots=True)
class Alike:
    """Strategies of which no two cost alike.

    Attributes:
        first: their places among all.
        which: by strategy which of them it costs as much as.
        operations: of these few, by one, on its slices; None: they do not follow from the cuts.
    """

    first: Ints
    which: Ints
    operations: tuple[int, ...] | None


def alike(form: Form, values: Ints) -> Alike:
    """Strategies of which no two cost alike, and for each strategy which of them it costs as much.

    Args:
        form: of the operator.
        values: by strategy into how many slices each axis is cut.
    """
    low, counts = form.lowest_bits(values)
    tensors = dict.fromkeys((*form.inputs, *form.raw_outputs, *form.outputs))
    columns = [counts[:, _axes(tensor)].sum(axis=1) for tensor in tensors]
    for item in form.sums:
        for axis in item.axes:
            columns += [np.where(counts[:, axis] > 0, low[:, axis], -1), counts[:, axis]]
    uncut, exponents = exponents_of(form, values)
    halvings = None if exponents is None else (counts * exponents).sum(axis=1)
    more = counts if halvings is None else halvings[:, None]
    table = np.column_stack([*columns, more])
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    first = np.asarray(first, dtype=np.int64)
    operations = None
    if exponents is not None:
        operations = tuple(
            uncut // prod(value**exponent for value, exponent in zip(row, exponents, strict=True))
            for row in values[first].tolist()
        )
    return Alike(first, np.ravel(np.asarray(which, dtype=np.int64)), operations)


def _axes(tensor: AxesOf) -> list[int]:
    """Axes that cut a tensor, one as often as it does."""
    return [axis for axes in tensor for axis in axes]


def exponents_of(form: Form, values: Ints) -> tuple[int, list[int] | None]:
    """Operations uncut, and by axis how often a cut in two halves them; None: not so simple.

    Args:
        form: how the operator's tensors lie, by axes.
        values: into how many parts each axis is cut: a row for each strategy.
    """
    count = values.shape[1]
    ones = np.ones((1, count), dtype=np.int64)
    halves = ones + np.eye(count, dtype=np.int64)
    step = max(1, len(values) // PROBES)
    probes = np.concatenate([ones, halves, values[::step], values[-1:]])
    measured = [operations_of(form.call, sketch) for sketch in form.sketches(probes)]
    uncut = measured[0]
    exponents: list[int] = []
    for half in measured[1 : count + 1]:
        exponent = (uncut // half).bit_length() - 1 if half else 0
        if half << exponent != uncut:
            return uncut, None
        exponents.append(exponent)
    for row, operations in zip(probes.tolist(), measured, strict=True):
        cut = prod(value**exponent for value, exponent in zip(row, exponents, strict=True))
        if operations * cut != uncut:
            return uncut, None
    return uncut, exponents
