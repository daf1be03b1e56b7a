"""Whether other arguments, or another function, make a difference that rounding hides.

Both are computed in double precision from the inputs of *one* side, so that neither the errors
before nor the rounding of the result are in between.
"""

from __future__ import annotations

import math
from dataclasses import replace

from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.model import Op, TensorRun


def difference_of_functions(run: TensorRun, op: Op, other: Op, label: str) -> float:
    """Relative distance of what two operators make of the inputs of the first.

    Args:
        run: the dump of the first.
        op: that operator.
        other: its partner in the other dump, whose function and arguments are taken.
        label: of the result.

    Returns:
        NaN where one of them is not known, or a value is not in the dump.
    """
    from irtool.compare.tensors.judging.reexecute import recomputed

    ours = recomputed(run, op)
    theirs = recomputed(run, replace(op, type=other.type, attributes=other.attributes))
    if ours is None or theirs is None or label not in ours or label not in theirs:
        return math.nan
    if ours[label].size != theirs[label].size:
        return math.nan
    return measure_arrays(ours[label], theirs[label]).error
