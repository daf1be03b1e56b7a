"""An input that comes from nowhere: who made it alike before, and whether it is only permuted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure, complete, measure_arrays
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.compare.tensors.semantics import family

_LESS = 0.1
"""By how much putting numbers in order has to bring them nearer, to count as another order."""
_SAME = 1e-5
"""Relative difference of the figures of one tensor that two operators show."""
_ALIKE = 1e-3
"""Relative error up to which both sides have made a tensor alike."""
_MOST_ELEMENTS = 1 << 24


def look_back(
    left: TensorRun,
    right: TensorRun,
    judged: Judged,
    before: Sequence[Judged],
    measures: Mapping[Places, Measure],
    taken: tuple[set[int], set[int]],
) -> None:
    """Say of an accused input since when it is off; nobody is to blame for what he reads.

    Args:
        left: one dump.
        right: the other.
        judged: the operator that reads it.
        before: what was judged before it.
        measures: of all pairs of tensors.
        taken: places of the calls of either side that have a partner.
    """
    if judged.output is None:
        return
    since: Op | None = None
    places = judged.output
    sides = left.columns, right.columns
    for item in before:
        for pair in item.slots.outputs:
            measure = measures.get(pair)
            if measure is None or not measure.error <= _ALIKE:
                continue
            if any(
                is_same_tensor(columns, a, b)
                for columns, a, b in zip(sides, pair, places, strict=True)
            ):
                judged.since, since = item.pair.left, item.pair.right
    if judged.since is not None and since is not None:
        ends = (judged.since, judged.pair.left), (since, judged.pair.right)
        judged.alone = _between(left, taken[0], *ends[0]), _between(right, taken[1], *ends[1])
    judged.is_permuted = _is_permuted(left.columns, right.columns, places)


def _between(run: TensorRun, taken: set[int], first: Op, last: Op) -> tuple[str, ...]:
    """Names of the calls without a partner that ran between two others, views apart."""
    return tuple(
        op.name
        for op in run.ops[first.index + 1 : last.index]
        if op.index not in taken and op.phase == last.phase and family(op.type) != "view"
    )


def is_same_tensor(columns: Columns, place: int, other: int) -> bool:
    """Whether two tensors of one dump have the same figures.

    Args:
        columns: of the dump.
        place: of one tensor.
        other: of the other.
    """
    if math.prod(columns.shapes[place]) != math.prod(columns.shapes[other]):
        return False
    for tensor in (place, other):
        if math.isnan(columns.norm[tensor]) or math.isnan(columns.most[tensor]):
            complete(columns, tensor, False)
    return (
        columns.most[place] == columns.most[other]
        and columns.least[place] == columns.least[other]
        and math.isclose(columns.norm[place], columns.norm[other], rel_tol=_SAME)
    )


def _is_permuted(left: Columns, right: Columns, places: Places) -> bool:
    """Whether both hold the same numbers in another order."""
    import numpy as np

    a, b = places
    size = math.prod(left.shapes[a])
    if not left.files[a] or not right.files[b] or not 1 < size <= _MOST_ELEMENTS:
        return False
    try:
        ours = read_array(left.files[a], left.dtypes[a])
        theirs = read_array(right.files[b], right.dtypes[b])
    except BadPayload:
        return False
    if ours.size != theirs.size:
        return False
    ordered = measure_arrays(np.sort(ours, axis=None), np.sort(theirs, axis=None)).error
    return ordered <= _SAME and ordered < _LESS * measure_arrays(ours.ravel(), theirs.ravel()).error
