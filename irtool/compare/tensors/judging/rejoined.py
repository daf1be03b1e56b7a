"""Operators that differ because both sides compute the same in other parts: later results agree.

``x / sqrt(s)`` and ``x * s ** -0.5`` differ in the call before the last, ``x + w * (y - x)`` and
``(1 - w) * x + w * y`` in two of three.  What is wrong there would show in all that is made of it;
where every call that reads such a result, or what is made of it, comes to a result that both sides
have, nothing is wrong.  A value that nobody is seen to read tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.judging.bias import explained_scale, is_comparable, scale_of
from irtool.compare.tensors.judging.past import is_broken_alike
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.pairing.flow import Flow, Value
from irtool.compare.tensors.semantics import family, is_random

_ACCUSED = 64
"""How many operators that are accused are looked at: what is behind them does not come first."""
_CALLS = 16
"""How many calls of either side may lie between an operator and the results that agree."""
_UNITS = 8.0
"""Units of single precision, or times the error before, that a result that agrees is off by."""
_FINE = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_GROSS = 0.02
"""Relative error from which an operator computes something else, and no fault that grows small."""
_GROSS_HALF = 0.25
"""The same where results are in half precision, which hides much more."""
_GROWN = 64.0
"""How many times the error before gradients are off by that come of it after many calls."""
_FEWEST = 3
"""Gradients behind a sum that have to agree."""
_VISIBLE = 2.0
"""How many times what a sum may be off by, one of its terms has to be off by, for the sum to tell
anything by agreeing."""
_VISIBLE_FIGURES = 16.0
"""The same of figures: what is added across a vector hardly changes its norm."""
_REJOINED = 1 / 16
"""Of that error, how much is left at most where results agree again."""


def rejoined(
    runs: tuple[TensorRun, TensorRun],
    judged: Sequence[Judged],
    measures: Mapping[Places, Measure],
    reordered: frozenset[int] = frozenset(),
) -> dict[int, str]:
    """Accused operators behind which both sides agree again.

    Args:
        runs: both dumps.
        judged: all operator pairs, in the order of the left dump.
        measures: of the tensors that were paired.
        reordered: indices of left operators that read a weight whose rows or columns have another
            order on the other side, as hidden units may.

    Returns:
        Why nothing is wrong with them, by the index of the left operator.
    """
    accused = [item for item in judged if item.verdict == "introduces error"]
    if not any(_may_rejoin(item, reordered, measures) for item in accused):
        return {}
    work = _Rejoining(runs, judged, measures)
    reasons: dict[int, str] = {}
    for item in accused[:_ACCUSED]:
        if item.pair.left.index not in reasons and _may_rejoin(item, reordered, measures):
            reasons.update(work.reasons(item))
    return reasons


def _may_rejoin(
    item: Judged, reordered: frozenset[int], measures: Mapping[Places, Measure]
) -> bool:
    ops = item.pair.left, item.pair.right
    is_other_weight = item.parameter and item.pair.left.index not in reordered
    if is_other_weight or item.broken or any(op.is_module or not op.call for op in ops):
        return False
    if ops[0].phase == "backward":
        # From figures numbers in another order look the same: what enters a product is not told.
        given = [measures[p] for p in item.slots.inputs if p in measures]
        is_product = family(ops[0].type) == "matmul"
        return bool(item.entered) or (is_product and any(not one.exact for one in given))
    if ops[0].phase != "forward" or any(is_random(op.type) for op in ops):
        return False
    # One function that makes something else of the same is at fault, wherever that leads.
    is_other = ops[0].type != ops[1].type
    return is_other or bool(item.entered) or item.error_in > _REJOINED * item.error_out


class _Rejoining:
    """Follows what is made of an operator's results."""

    def __init__(
        self,
        runs: tuple[TensorRun, TensorRun],
        judged: Sequence[Judged],
        measures: Mapping[Places, Measure],
    ) -> None:
        self.runs, self.measures, self.judged = runs, measures, list(judged)
        self.flows = Flow(runs[0]), Flow(runs[1])
        self.pairs = (
            {item.pair.left.index: item for item in judged},
            {item.pair.right.index: item for item in judged},
        )
        errors = [0.0 if _is_off(item) else _known(item.error_out) for item in judged]
        worst = accumulate(errors, max, initial=0.0)
        self.before = {
            item.pair.left.index: error for item, error in zip(judged, worst, strict=False)
        }

    def reasons(self, item: Judged) -> dict[int, str]:
        """Why nothing is wrong with an operator, and with those between it and what agrees."""
        if item.pair.left.phase == "backward":
            return self._handed_on_otherwise(item)
        if item.parameter and self._agrees(item, item):
            return {item.pair.left.index: "its weight and what it reads have one other order"}
        region = self._region(item)
        if region is None:
            return {}
        between, agreeing = region
        name = min(agreeing, key=lambda other: other.pair.left.index).pair.left.name
        return {
            other.pair.left.index: f"computed in other parts: both sides agree again at {name}"
            for other in between
        }

    def _handed_on_otherwise(self, item: Judged) -> dict[int, str]:
        """Why nothing is wrong with a gradient that comes to an operator in another form.

        The terms of a sum may be added in another order, a product may be read at the other side of
        its diagonal: such gradients are added up where their value was read, which no dump shows.
        What is wrong there is so in all gradients that are computed of it.
        """
        later = self.judged[self.judged.index(item) + 1 :]
        gradients = [other for other in later if other.pair.left.phase == "backward"]
        sums = [other for other in gradients if family(other.pair.left.type) == "sum"]
        rest = [
            other
            for other in gradients
            if family(other.pair.left.type) != "sum" and math.isfinite(other.error_out)
            and other.verdict != "below rounding floor"
        ]  # fmt: skip
        if len(rest) < _FEWEST or not all(self._is_alike(other, item) for other in rest):
            return {}
        why = "handed on in another form: all gradients that are computed of it agree"
        off = [other for other in sums if not self._is_alike(other, item)]
        return {other.pair.left.index: why for other in (item, *off)}

    def _is_alike(self, item: Judged, accused: Judged) -> bool:
        """Whether results agree, as far as rounding that has gone on for some calls lets them."""
        before = self.before[accused.pair.left.index]
        outputs = [self.measures[p] for p in item.slots.outputs if p in self.measures]
        unit = max(
            (
                roundoff(run.columns.dtypes[place])
                for run, op in zip(self.runs, (item.pair.left, item.pair.right), strict=True)
                for place in op.outputs
            ),
            default=0.0,
        )
        is_half = unit > _FINE
        if not accused.error_out >= (_GROSS_HALF if is_half else _GROSS):
            return False
        limit = (4.0 if is_half else _GROWN) * max(before, unit)
        return all(_known(measure.error) <= limit for measure in outputs)

    def _region(self, item: Judged) -> tuple[list[Judged], list[Judged]] | None:
        """Operators from an accused one to those that agree, and these; None where some do not."""
        between, agreeing = [item], list[Judged]()
        pending = [(0, item.pair.left), (1, item.pair.right)]
        seen: set[tuple[int, int]] = set()
        while pending:
            which, op = pending.pop()
            if (which, op.index) in seen:
                continue
            seen.add((which, op.index))
            if len(seen) > 2 * _CALLS:
                return None
            for value in self.flows[which].outputs(op):
                readers = self._readers(which, value)
                if not readers:
                    return None
                for reader in readers:
                    other = self.pairs[which].get(reader.index)
                    if other is None:
                        pending.append((which, reader))
                    elif self._agrees(other, item):
                        agreeing.append(other)
                    elif other not in between:
                        between.append(other)
                        pending += [(0, other.pair.left), (1, other.pair.right)]
        return (between, agreeing) if agreeing else None

    def _readers(self, which: int, value: Value) -> list[Op]:
        """Calls that make numbers of a value; comparisons with it tell nothing."""
        columns = self.runs[which].columns
        return [
            op
            for op in self.flows[which].forward_readers(value)
            if any(is_float(columns.dtypes[place]) for place in op.outputs)
        ]

    def _agrees(self, item: Judged, accused: Judged) -> bool:
        """Whether both sides have the same results, as far as rounding lets them."""
        outputs = [self.measures[p] for p in item.slots.outputs if p in self.measures]
        before = self.before[accused.pair.left.index]
        unit = max(
            roundoff(run.columns.dtypes[place])
            for run, op in zip(self.runs, (item.pair.left, item.pair.right), strict=True)
            for place in op.outputs
        )
        if not outputs or len(outputs) != len(item.pair.left.outputs):
            return False
        is_half = unit > _FINE
        if not accused.error_out >= (_GROSS_HALF if is_half else _GROSS):
            return False
        limit = (2.0 if is_half else _UNITS) * max(before, unit)
        limit = min(limit, _REJOINED * _known(accused.error_out, math.inf))
        if self._hides(item, limit):
            return False
        return all(
            measure.error <= limit
            and is_broken_alike(measure)
            # Figures of masked scores are infinite but for one extreme, which tells nothing.
            and (measure.exact or math.isfinite(measure.left + measure.right))
            and (not is_comparable(measure) or not is_half or self._is_even(measure, before, unit))
            for measure in outputs
        )

    def _hides(self, item: Judged, limit: float) -> bool:
        """Whether a sum agrees as its other term is so much larger, and tells nothing by that."""
        if family(item.pair.left.type) != "sum":
            return False
        given = [self.measures[p] for p in item.slots.inputs if p in self.measures]
        outputs = [self.measures[p] for p in item.slots.outputs if p in self.measures]
        moved = max((m.distance for m in given if m.error > limit), default=0.0)
        norm = min((min(m.left, m.right) for m in outputs), default=0.0)
        is_exact = all(measure.exact for measure in given)
        visible = _VISIBLE if is_exact else _VISIBLE_FIGURES
        return 0 < moved <= visible * limit * norm

    @staticmethod
    def _is_even(measure: Measure, before: float, unit: float) -> bool:
        return abs(scale_of(measure)) <= explained_scale([], before, unit, measure.exact)


def reads_otherwise(item: Judged, measures: Mapping[Places, Measure]) -> bool:
    """Whether two functions of other names, of other operands, give the same result.

    Args:
        item: a pair of forward calls that was judged.
        measures: of the tensors that were paired.
    """
    return not _is_off(item) and has_other_operands(item, measures)


def has_other_operands(item: Judged, measures: Mapping[Places, Measure]) -> bool:
    """Whether two functions of other names read what is much further apart than their results.

    So may products with another number: one side has scaled what goes in, or scales what comes out.

    Args:
        item: a pair of forward calls.
        measures: of the tensors that were paired.
    """
    if item.pair.left.type == item.pair.right.type and not _scales_otherwise(item):
        return False
    given = [measures[p] for p in item.slots.inputs if p in measures]
    results = [measures[p] for p in item.slots.outputs if p in measures]
    worst = max((_known(measure.error) for measure in results), default=math.inf)
    has_others = bool(item.slots.only_left or item.slots.only_right)
    return has_others or any(_REJOINED * measure.error > worst for measure in given)


def _scales_otherwise(item: Judged) -> bool:
    """Whether a product or quotient is one with another number."""
    is_product = family(item.pair.left.type) == "product"
    changes = [change for change in item.attributes if not change.is_shape]
    return is_product and bool(changes) and all(_is_factor(change) for change in changes)


def _is_factor(change: AttributeChange) -> bool:
    """Whether what differs is a number in an operand's place."""
    try:
        return change.name.startswith("input.") and all(
            float(text) for text in (change.left, change.right)
        )
    except ValueError:
        return False


def _is_off(item: Judged) -> bool:
    return item.verdict in ("introduces error", "not comparable")


def _known(error: float, default: float = 0.0) -> float:
    return error if math.isfinite(error) else default
