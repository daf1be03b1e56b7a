"""Sums that were added up in half precision: more error than rounding their ends explains.

A product of matrices in Float16 or BFloat16 rounds its inputs and its result, and adds up in
Float32.  Rounding once gives a root mean square error of 0.41 units, rounding two inputs and the
result 0.72.  A kernel that rounds after every term gives as many times that as the square root of
the number of terms.  Of products forward it is known better what rounding once gives
(:mod:`irtool.compare.tensors.judging.rounded_once`).
"""

from __future__ import annotations

import math

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.cleared import recomputed_error
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family, reduction_length

ENDS = 1.2
"""Units of the coarser type that rounding inputs and result may bring."""
LINEAR = frozenset(("matmul", "convolution", "reduce", "bias gradient"))
"""Families that add up many terms."""
_CLEAN = 0.1
"""Share of the error that is seen, up to which errors before count for nothing."""
_SEEN = 0.2
"""Units that results are apart at least of which one is 15 % further off than rounding once: the
root of 1.15² - 1, times what rounding once is off by."""
_SMALL = 1 << 26
"""Products of numbers up to which a call is computed again whatever came in: some ten
milliseconds."""


def explained_by_ends(run: TensorRun, op: Op) -> float:
    """Units in the last place that rounding the ends of a sum may bring, cancellation included.

    Args:
        run: the dump of one side.
        op: a sum of that dump.

    Returns:
        Units of the coarser type, root mean square; without norms as if nothing were cancelled.
    """
    columns = run.columns
    inputs = [place for place in op.inputs if is_float(columns.dtypes[place])]
    norms = [columns.norm[place] for place in inputs[:2]]
    if not op.outputs or not norms or any(math.isnan(n) for n in norms):
        return ENDS
    norm = columns.norm[op.outputs[0]]
    if not norm or math.isnan(norm):
        return ENDS
    shapes = [columns.shapes[place] for place in inputs]
    length = reduction_length(
        family(op.type), op.phase, shapes, columns.shapes[op.outputs[0]], opaque=False
    )
    expected = math.prod(norms) / math.sqrt(length) if len(norms) == 2 else norms[0]
    return ENDS * max(1.0, expected / norm)


def adds_up_in_half(
    left: TensorRun, right: TensorRun, judged: Judged, measure: Measure, forward: Judged | None
) -> str:
    """Which side of a paired sum rounds on its way; empty if none does, or nobody knows.

    Args:
        left: one dump.
        right: the other.
        judged: the operator, with the output that decided.
        measure: of that output.
        forward: of a gradient, the forward call.
    """
    if judged.output is None or not measure.exact or family(judged.pair.left.type) not in LINEAR:
        return ""
    units = [
        roundoff(run.columns.dtypes[place])
        for run, place in zip((left, right), judged.output, strict=True)
    ]
    if max(units) < 2.0**-20:
        return ""
    is_clean = judged.error_in <= _CLEAN * measure.error
    is_seen = measure.error > _SEEN * max(units) and (is_clean or _is_small(left, judged))
    if is_seen and (name := _further_off(left, right, judged)):
        return name
    if not is_clean or measure.error <= ENDS * max(units):
        return ""
    for which, (name, run, op) in enumerate(
        (("left", left, judged.pair.left), ("right", right, judged.pair.right))
    ):
        if units[which] < 2.0**-20:
            continue
        call = (forward.pair.left, forward.pair.right)[which] if forward is not None else None
        error = recomputed_error(run, op, call, judged.output[which])
        if error is not None and error > explained_by_ends(run, op) * units[which]:
            return name
    return ""


def _further_off(left: TensorRun, right: TensorRun, judged: Judged) -> str:
    """The side whose product is more than rounded once, by more than that of the other is."""
    from irtool.compare.tensors.judging.rounded_once import LEAST, times_rounded_once

    assert judged.output is not None
    ours = times_rounded_once(left, judged.pair.left, judged.output[0])
    theirs = times_rounded_once(right, judged.pair.right, judged.output[1])
    if max(ours, theirs) <= LEAST * max(1.0, min(ours, theirs)):
        return ""
    return "left" if ours > theirs else "right"


def _is_small(run: TensorRun, judged: Judged) -> bool:
    """Whether a product costs next to nothing to compute again."""
    op, columns = judged.pair.left, run.columns
    if judged.output is None or family(op.type) != "matmul":
        return False
    shapes = [columns.shapes[place] for place in op.inputs]
    output = columns.shapes[judged.output[0]]
    length = reduction_length("matmul", op.phase, shapes, output, opaque=False)
    return length * math.prod(output) <= _SMALL
