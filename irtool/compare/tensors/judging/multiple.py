"""An accused tensor that is a multiple of the other side's: a mean for a sum, a replica fewer.

A factor shows in every element alike, so what is left behind it is no more than rounding and the
error before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.alike import likeness
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Places, TensorRun

_LEAST = 0.01
"""Factor, less one, from which it is told."""
_MOST_BEFORE = 0.05
"""Error before, behind which a factor is none that can be told exactly."""
_NEAR = 0.02
"""Relative difference from that factor up to which other gradients have it, too."""


def note_multiple(
    runs: tuple[TensorRun, TensorRun],
    first: Judged,
    judged: Sequence[Judged],
    measures: Mapping[Places, Measure],
) -> None:
    """Note by which factor the tensor that is accused first differs, if by one.

    Args:
        runs: both dumps.
        first: the operator that is accused first.
        judged: all pairs of operators, in their order.
        measures: of their tensors.
    """
    places = first.output
    if places is None or not is_float(runs[0].columns.dtypes[places[0]]):
        return
    measure = measures.get(places)
    if measure is None or not measure.error >= _LEAST or not measure.left > 0:
        return
    before = first.error_in if math.isfinite(first.error_in) else 0.0
    if before > _MOST_BEFORE or abs(measure.right / measure.left - 1) < _LEAST:
        return
    unit = max(roundoff(run.columns.dtypes[p]) for run, p in zip(runs, places, strict=True))
    alike = likeness(runs[0], places[0], runs[1], places[1], max(unit, 2 * before))
    if alike is None or alike.is_reordered or not abs(alike.factor - 1) >= _LEAST:
        return
    first.multiple = alike.factor
    if first.pair.left.phase == "backward":
        first.multiple_of = _gradients_of(first, judged, measures)


def _gradients_of(
    first: Judged, judged: Sequence[Judged], measures: Mapping[Places, Measure]
) -> tuple[int, int]:
    """How many gradients have the same factor, and how many there are from the first one on."""
    ratios = [
        measure.right / measure.left
        for item in judged
        if item.pair.left.phase == "backward" and item.pair.left.index >= first.pair.left.index
        for places in item.slots.outputs
        if (measure := measures.get(places)) is not None and measure.left > 0
    ]
    near = sum(abs(ratio / first.multiple - 1) <= _NEAR for ratio in ratios)
    return near, len(ratios)
