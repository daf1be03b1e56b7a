"""Calls that have no partner because one side asked them for another result, or gave them less.

Two of the largest instead of one, another axis summed over, an expert that takes so many rows at
most: the results have other sizes, so the calls are not paired, and the fault would show at the
first operator behind that is.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.judging.attributes import AttributeChange, changed_attributes
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.values import Files, measure_files
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.semantics import family
from irtool.ir.units import plural

_ALIKE = 1e-3
"""Relative difference of the norms of what two calls are given, up to which it is the same."""


def called_otherwise(
    left: TensorRun,
    right: TensorRun,
    first: Judged,
    taken: tuple[set[int], set[int]],
    packed: tuple[AbstractSet[int], AbstractSet[int]] = (frozenset(), frozenset()),
) -> Judged | None:
    """The first such call before the operator that is accused; None where there is none.

    Both have one name and one operator, are given the same, and give results of another size.

    Args:
        left: one dump.
        right: the other.
        first: the operator that is accused.
        taken: places of the calls of either side that have a partner.
        packed: places of weights that are a part of one of the other side, or a whole of several:
            the results of their calls are as large as that says.
    """
    theirs = {op.name: op for op in right.ops if op.index not in taken[1]}
    for op in left.ops:
        if op.index >= first.pair.left.index:
            return None
        other = theirs.get(op.name)
        if other is None or op.index in taken[0] or op.type != other.type or op.is_module:
            continue
        if not (packed[0].isdisjoint(op.inputs) and packed[1].isdisjoint(other.inputs)):
            continue
        if family(op.type) == "view" or other.index >= first.pair.right.index:
            continue
        shapes = [[run.columns.shapes[place] for place in call.outputs]
                  for run, call in ((left, op), (right, other))]  # fmt: skip
        if shapes[0] != shapes[1] and _are_given_alike(left, op, right, other):
            pair = OpPair(op, other, "name")
            judged = Judged(pair, Slots((), ()), "introduces error", z=math.inf, error_in=0.0)
            judged.attributes = tuple(changed_attributes(op.attributes, other.attributes))
            judged.why = (
                f"given the same, its result is {list(shapes[0][0])} on the left and "
                f"{list(shapes[1][0])} on the right"
            )
            return judged
    return None


def _are_given_alike(left: TensorRun, op: Op, right: TensorRun, other: Op) -> bool:
    """Whether the first operands have one shape and one norm."""
    if not op.inputs or not other.inputs or not op.outputs or not other.outputs:
        return False
    a, b = op.inputs[0], other.inputs[0]
    ours, theirs = left.columns, right.columns
    if ours.shapes[a] != theirs.shapes[b]:
        return False
    if not is_float(ours.dtypes[a]):
        return _are_same_numbers(left, a, right, b)
    norms = ours.norm[a], theirs.norm[b]
    return any(map(math.isnan, norms)) or math.isclose(*norms, rel_tol=_ALIKE)


def _are_same_numbers(left: TensorRun, a: int, right: TensorRun, b: int) -> bool:
    """Whether whole numbers or truth values are the same; extremes alone tell nothing of them."""
    ours, theirs = left.columns, right.columns
    if not ours.files[a] or not theirs.files[b]:
        return bool(ours.hashes[a]) and ours.hashes[a] == theirs.hashes[b]
    files = Files(ours.files[a], theirs.files[b], ours.dtypes[a], theirs.dtypes[b])
    return measure_files([files])[0].error == 0


def given_other_rows(
    left: TensorRun, right: TensorRun, first: Judged, taken: tuple[set[int], set[int]]
) -> Judged | None:
    """The first call right before the operator that is accused that gets another number of rows.

    Both have one name and one operator; their weights have one shape, and so have their rows.

    Args:
        left: one dump.
        right: the other.
        first: the operator that is accused.
        taken: places of the calls of either side that have a partner.

    Returns:
        None where calls that have a partner lie between, or nothing but rows differs.
    """
    pair = first.pair
    chains = [
        _before(run, op, places)
        for run, op, places in zip((left, right), (pair.left, pair.right), taken, strict=True)
    ]
    theirs = {op.name: op for op in chains[1]}
    odd: list[tuple[OpPair, AttributeChange]] = []
    for op in chains[0]:
        other = theirs.get(op.name)
        rows = None if other is None or op.type != other.type else _rows(left, op, right, other)
        if other is not None and rows is not None:
            odd.append((OpPair(op, other, "name"), rows))
    if not odd or odd[0][0].left is not chains[0][0] or odd[0][0].right is not chains[1][0]:
        return None
    begins, rows = odd[0]
    judged = Judged(begins, Slots((), ()), "introduces error", z=math.inf, error_in=0.0)
    judged.attributes, judged.gets_other_rows = (rows,), True
    also = ""
    if len(odd) > 1:
        also = f", as {'has' if len(odd) == 2 else 'have'} {plural(len(odd) - 1, 'call')} behind it"
    judged.why = f"it has another number of rows{also}; {pair.left.name} reads what they make"
    return judged


def _before(run: TensorRun, reader: Op, taken: AbstractSet[int]) -> list[Op]:
    """Calls without a partner that lie right before a reader, in their order."""
    place = start = run.ops.index(reader)
    while start and run.ops[start - 1].index not in taken and not run.ops[start - 1].is_module:
        start -= 1
    return run.ops[start:place]


def _rows(left: TensorRun, op: Op, right: TensorRun, other: Op) -> AttributeChange | None:
    """The first operand, if it has other rows, as many to a row, and nothing else is unlike."""
    if not op.inputs or len(op.inputs) != len(other.inputs):
        return None
    shapes = [
        (left.columns.shapes[a], right.columns.shapes[b])
        for a, b in zip(op.inputs, other.inputs, strict=True)
    ]
    ours, theirs = shapes[0]
    unlike = [(a, b) for a, b in shapes if a != b]
    is_rows = all(a and b and a[1:] == b[1:] and a[0] == ours[0] for a, b in unlike)
    if ours == theirs or not is_rows or {b[0] for _, b in unlike} != {theirs[0]}:
        return None
    return AttributeChange("input.0 shape", str(ours), str(theirs))
