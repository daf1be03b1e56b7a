"""An accused tensor that is a multiple of the other side's: a mean for a sum, a replica fewer.

A factor shows in every element alike, so what is left behind it is no more than rounding and the
error before.  Where a call that one side alone has multiplies by a number, that is the factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.judging.arguments import factor_of
from irtool.compare.tensors.judging.precision import true_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.alike import likeness
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Places, TensorRun

_LEAST = 0.01
"""Factor, less one, from which it is told."""
_MOST_BEFORE = 0.05
"""Error before, behind which a factor is none that can be told exactly."""
_ROUNDED = 2.0**-9
"""Error of the ratio of two norms that are stated in half precision."""
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
    ops = (first.pair.left, first.pair.right)
    # A loss reads in Float32 what was rounded to half precision before.
    unit = max(true_unit(run, op, p) for run, op, p in zip(runs, ops, places, strict=True))
    alike = likeness(runs[0], places[0], runs[1], places[1], max(unit, 2 * before))
    factor = _multiplied(first, measure)
    if not abs(factor - 1) >= _LEAST and alike is not None and not alike.is_reordered:
        factor = alike.factor
    if not abs(factor - 1) >= _LEAST:
        return
    first.multiple = factor
    if first.pair.left.phase == "backward":
        first.multiple_of = _gradients_of(first, judged, measures)


def _multiplied(first: Judged, measure: Measure) -> float:
    """The factor of calls that one side alone has and that made the accused input; NaN for none.

    It has to be that by which the norms differ.
    """
    factor = 1.0
    for maker, is_right in ((first.maker_left, False), (first.maker_right, True)):
        number = None if maker is None else factor_of(maker)
        if number is not None:
            factor *= number if is_right else 1 / number
    off = abs(measure.right / measure.left - factor)
    return factor if factor > 0 and off <= _NEAR * abs(factor - 1) + _ROUNDED else math.nan


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
