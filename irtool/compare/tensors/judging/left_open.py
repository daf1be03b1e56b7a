"""What figures leave open of an operator that is accused by them: an input of it may be at fault.

Extremes, means and norms do not tell the order of numbers, nor which elements a mask hides.  So
where an operator goes wrong of inputs whose figures agree, the fault may as well lie in what made
one of these inputs: a call that one side alone has, a mask, a product whose operands are not those
of the other side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irtool.compare.tensors.judging.lookback import is_same_tensor
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Places, TensorRun
from irtool.compare.tensors.pairing.makers import Makers

_NEAR = 8
"""Operators before the one that is accused among which its inputs are traced back."""


def leave_open(
    runs: tuple[TensorRun, TensorRun],
    first: Judged,
    before: Sequence[Judged],
    makers: Makers,
    measures: Mapping[Places, Measure],
) -> None:
    """Say of an operator that is accused by figures where else the fault may be.

    Args:
        runs: both dumps.
        first: the operator; its ``may_be_order`` says that figures of its inputs agree.
        before: what was judged before it.
        makers: operators without a partner.
        measures: of all pairs of tensors.
    """
    if not first.may_be_order:
        return
    readers = first.pair.left, first.pair.right
    for places in first.slots.inputs:
        if first.maker_left is None:
            first.maker_left = makers.maker(0, readers[0], places[0])
        if first.maker_right is None:
            first.maker_right = makers.maker(1, readers[1], places[1])
    near = before[-_NEAR:]
    for item in near:
        if item.unlike_input:
            first.since = item.pair.left
    masked = [p for p in first.slots.inputs if p in measures and _is_masked(runs, p)]
    first.may_be_mask = bool(masked)
    for item in near:
        if first.since is None and any(_hands_on(runs, item, places) for places in masked):
            first.since = item.pair.left


def _is_masked(runs: tuple[TensorRun, TensorRun], places: Places) -> bool:
    return all(
        run.columns.least[place] == -math.inf for run, place in zip(runs, places, strict=True)
    )


def _hands_on(runs: tuple[TensorRun, TensorRun], item: Judged, places: Places) -> bool:
    """Whether an input is a result of an operator, by all that figures tell."""
    return any(
        all(
            is_same_tensor(run.columns, a, b)
            for run, a, b in zip(runs, result, places, strict=True)
        )
        for result in item.slots.outputs
    )
