"""Calls that have no partner because one side asked them for another result.

Two of the largest instead of one, another axis summed over: the results have other sizes, so the
calls are not paired, and the fault would show at the first operator behind that is.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

from irtool.compare.tensors.judging.attributes import changed_attributes
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots
from irtool.compare.tensors.semantics import family

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
    norms = ours.norm[a], theirs.norm[b]
    return any(map(math.isnan, norms)) or math.isclose(*norms, rel_tol=_ALIKE)
