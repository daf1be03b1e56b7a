"""Operators of one name that compute other parts of the same: a bias fused, a mask made first.

Where one side computes *g(f(x))* in two calls and the other in one, or masks zeros and then adds
them to what the first side masks, calls pair by name though their results are not meant to be the
same.  The result that is meant is one that a call without a partner gives, a little later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.judging.past import is_broken_alike
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure, Sides, measure_all
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.semantics import is_random

_ACCUSED = 64
"""How many operators that are accused are looked at: what is behind them does not come first."""
_CALLS = 8
"""How many calls without a partner behind an operator are looked at."""
_UNITS = 8.0
"""Units of the type, or times the error before, that the result that is meant may be off by."""
_CLOSER = 0.5
"""Of the error of the results that were paired, how much of it is left at most."""


def regrouped(
    left: TensorRun,
    right: TensorRun,
    judged: Sequence[Judged],
    taken: tuple[set[int], set[int]],
    measures: Mapping[Places, Measure],
) -> dict[int, str]:
    """Accused operators whose result the other side gives by a later call of its own.

    Args:
        left: one dump.
        right: the other.
        judged: all operator pairs.
        taken: places of the calls of either side that have a partner.
        measures: of the tensors that were paired.

    Returns:
        Why, by the index of the left operator.
    """
    runs = left, right
    free = [
        [op for op in run.ops if op.index not in done and op.phase == "forward"]
        for run, done in zip(runs, taken, strict=True)
    ]
    if not any(free):
        return {}
    reasons: dict[int, str] = {}
    accused = [item for item in judged if item.verdict == "introduces error"]
    for item in accused[:_ACCUSED]:
        if item.parameter or item.broken:
            continue
        why = _meant(runs, item, free, measures)
        if why:
            reasons[item.pair.left.index] = why
    return reasons


def _meant(
    runs: tuple[TensorRun, TensorRun],
    judged: Judged,
    free: Sequence[Sequence[Op]],
    measures: Mapping[Places, Measure],
) -> str:
    """Which later call gives the result that is meant; empty where none does."""
    ops = judged.pair.left, judged.pair.right
    if ops[0].phase != "forward" or ops[0].is_opaque or is_random(ops[0].type):
        return ""
    outputs = [places for places in judged.slots.outputs if places in measures]
    if len(outputs) != 1 or math.isnan(measures[outputs[0]].error):
        return ""
    results = outputs[0]
    error = measures[results].error
    before = judged.error_in if math.isfinite(judged.error_in) else 0.0
    for which in (0, 1):  # the side that has one call more
        columns = runs[which].columns
        shape = runs[1 - which].columns.shapes[results[1 - which]]
        later = [op for op in free[which] if op.index > ops[which].index][:_CALLS]
        for op in later:
            for place in op.outputs:
                if columns.shapes[place] != shape:
                    continue
                pair = (place, results[1]) if which == 0 else (results[0], place)
                unit = max(roundoff(run.columns.dtypes[p])
                           for run, p in zip(runs, pair, strict=True))  # fmt: skip
                (measure,) = measure_all(Sides(runs[0].columns, runs[1].columns, [pair]))
                limit = min(_UNITS * max(before, unit), _CLOSER * error if error else math.inf)
                if measure.error <= limit and is_broken_alike(measure):
                    sides = ("left", "right")
                    return (
                        f"computed in other parts: what {op.name} gives on the {sides[which]} is "
                        f"what {ops[1 - which].name} gives on the {sides[1 - which]}"
                    )
    return ""
