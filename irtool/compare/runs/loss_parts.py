"""A loss curve that one data parallel rank wrote: it is of its part of the batch.

That is so where its first loss is a number that one rank put out and others did not, and the mean
over all ranks is the first loss of the other curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from irtool.compare.losses.comparison import FIRST_STEP
from irtool.compare.losses.series import LossRun
from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import TensorRun

_PRINTED = 1e-6
"""Relative difference of one number, as it is logged and as it is dumped."""


def ranks_of_part(own: LossRun, other: LossRun, runs: Mapping[int, TensorRun]) -> tuple[int, ...]:
    """The ranks whose part of the batch a curve is of; empty where it is no part's, or untold.

    Args:
        own: the curve.
        other: of the other run.
        runs: the first step of the curve's run, by rank.
    """
    if len(runs) < 2 or not own.loss.steps or not other.loss.steps:
        return ()
    first, wanted = (run.loss.values[run.loss.steps[0]] for run in (own, other))
    for numbers, unit in _numbers(runs):
        limit = max(_PRINTED * abs(first), own.loss.quantum, unit * abs(first))
        ranks = tuple(sorted(r for r, number in numbers.items() if abs(number - first) <= limit))
        mean = math.fsum(numbers.values()) / len(numbers)
        are_parts = 0 < len(ranks) < len(numbers)
        if are_parts and abs(mean - wanted) <= max(FIRST_STEP, unit) * abs(wanted):
            return ranks
    return ()


def _numbers(runs: Mapping[int, TensorRun]) -> Iterator[tuple[dict[int, float], float]]:
    """What all ranks put out as one number, by rank, and the roundoff of its type."""
    lead = runs[min(runs)]
    by_name = {rank: {op.name: op for op in run.ops} for rank, run in runs.items()}
    for op in lead.ops:
        if op.phase != "forward" or (op.node is not None and op.node.is_backward):
            continue
        for place in op.outputs:
            columns = lead.columns
            if math.prod(columns.shapes[place]) != 1 or not is_float(columns.dtypes[place]):
                continue
            numbers: dict[int, float] = {}
            for rank, ops in by_name.items():
                partner, theirs = ops.get(op.name), runs[rank].columns
                label = columns.labels[place]
                match = next((p for p in partner.outputs if theirs.labels[p] == label),
                             None) if partner is not None else None  # fmt: skip
                if match is None or math.prod(theirs.shapes[match]) != 1:
                    break
                if math.isnan(theirs.most[match]):
                    complete(theirs, match, False)
                numbers[rank] = theirs.most[match]
            if len(numbers) == len(runs) and all(map(math.isfinite, numbers.values())):
                yield numbers, roundoff(columns.dtypes[place])
