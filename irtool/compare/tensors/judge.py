"""Which operator introduces error: what it puts out against what its inputs explain.

The ratio ``z`` of an output's error to its budget is around 1 or far below for healthy operators;
a fault gives hundreds and more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irtool.compare.tensors.arguments import changed_arguments
from irtool.compare.tensors.budget import Account, budget
from irtool.compare.tensors.cleared import only_propagates
from irtool.compare.tensors.dtypes import coarsest, is_float, roundoff
from irtool.compare.tensors.entering import error_enters
from irtool.compare.tensors.measure import Measure
from irtool.compare.tensors.model import TensorRun
from irtool.compare.tensors.pairing import OpPair, Slots
from irtool.compare.tensors.past import Past, composites
from irtool.compare.tensors.semantics import family
from irtool.compare.tensors.verdict import Judged, Measured, Places
from irtool.ir.node import Node

LIMIT_TENSORS = 3.0
"""``z`` from which an operator introduces error, where values or sketches are compared."""
LIMIT_FIGURES = 10.0
"""The same where only stated figures are: they see less of an input's error."""


@dataclass(slots=True)
class Judge:
    """Judges operator pairs in the order of the left dump."""

    left: TensorRun
    right: TensorRun
    measures: Mapping[Places, Measure]
    same_framework: bool = True
    parameters_known: bool = False
    changed: Mapping[Node, Sequence[str]] = field(default_factory=dict[Node, Sequence[str]])
    past: Past = field(init=False)

    def __post_init__(self) -> None:
        self.past = Past(self.left.columns, self.measures, composite=composites(self.left))

    def judge(self, pair: OpPair, slots: Slots) -> Judged:
        """The verdict on one pair."""
        found = Judged(pair, slots)
        if self.same_framework:
            found.attributes = tuple(
                changed_arguments(pair, slots, self.left.columns, self.right.columns, self.changed)
            )
        self._classify(found)
        self.past.remember(found)
        return found

    def _classify(self, found: Judged) -> None:
        pair, slots, measures = found.pair, found.slots, self.measures
        columns = self.left.columns
        inputs = [(p, measures[p]) for p in slots.inputs if p in measures]
        outputs = [
            (p, measures[p])
            for p in slots.outputs
            if p in measures and columns.notes.get(p[0]) != "dead output"
        ]
        if pair.left.type == "Parameter":
            found.why = "the state at the end of the step"
            return
        if _is_broken(found, inputs, outputs):
            return
        if outputs and all(m.equal for _, m in (*inputs, *outputs)):
            found.verdict = "attribute differs" if found.attributes else "equal bits"
            found.error_in = found.error_out = 0.0
            return
        if not found.attributes and self._is_rounding(inputs, outputs):
            self._carries_rounding(found, inputs, outputs)
            return
        hidden = self.past.hidden(pair.left)
        known = [m.error for _, m in (*inputs, *hidden) if not math.isnan(m.error)]
        found.error_in = max(known, default=0.0 if pair.left.inputs else math.nan)
        known_parameters = self.parameters_known
        if error_enters(self.left, self.right, found, inputs, self.past, known_parameters):
            return
        self._outputs(found, inputs, hidden, outputs)

    def _is_rounding(self, inputs: Sequence[Measured], outputs: Sequence[Measured]) -> bool:
        """Whether everything is within rounding of its type, so that no budget is needed."""
        dtypes = self.left.columns.dtypes
        if not outputs:
            return False
        for places, measure in (*inputs, *outputs):
            unit = roundoff(dtypes[places[0]])
            is_small = bool(unit) and unit < 2.0**-20 and measure.error <= 2 * unit
            if not is_small and not measure.equal:
                return False
        return all(roundoff(dtypes[places[0]]) for places, _ in outputs)

    def _carries_rounding(
        self, found: Judged, inputs: Sequence[Measured], outputs: Sequence[Measured]
    ) -> None:
        found.verdict = "carries error"
        found.error_in = max((m.error for _, m in inputs), default=0.0)
        places, measure = max(outputs, key=lambda item: item[1].error)
        found.output, found.error_out = places, measure.error
        found.budget = 2 * roundoff(self.left.columns.dtypes[places[0]])
        found.z = found.error_out / found.budget

    def _outputs(
        self,
        found: Judged,
        inputs: Sequence[Measured],
        hidden: Sequence[Measured],
        outputs: Sequence[Measured],
    ) -> None:
        """Every output against its budget; the worst one decides."""
        left = self.left.columns
        best: tuple[float, float, Measured] | None = None
        floors = 0
        notes: list[str] = []
        for places, measure in outputs:
            if math.isnan(measure.error):
                notes.append(measure.note or "no figures")
                continue
            if not is_float(left.dtypes[places[0]]):
                if not measure.equal and measure.error and self._are_equal(inputs):
                    found.verdict = "introduces error"
                    found.why = "from equal inputs it gives other whole numbers"
                    found.z, found.error_out, found.output = math.inf, measure.error, places
                    return
                continue
            explained, floor = self._budget(found.pair, (places, measure), inputs, hidden)
            least = min(measure.left, measure.right)
            if max(measure.left, measure.right) < floor or 0 < least < floor:
                floors += 1
                self.past.mark_residue(places)
                continue
            z = measure.error / explained if explained else (math.inf if measure.error else 0.0)
            if best is None or z > best[0]:
                best = (z, explained, (places, measure))
        if best is None:
            _no_output(found, floors, notes)
            return
        found.z, found.budget, (found.output, measure) = best
        found.error_out = measure.error
        self._decide(found, measure)

    def _budget(
        self,
        pair: OpPair,
        output: Measured,
        inputs: Sequence[Measured],
        hidden: Sequence[Measured],
    ) -> tuple[float, float]:
        past = self.past
        has_parts = pair.left.phase == "backward" or pair.left.owner in past.composite
        columns = self.left.columns, self.right.columns
        before = past.worst if has_parts else 0.0
        return budget(Account(pair, *columns, *output, inputs, hidden, before))

    def _are_equal(self, inputs: Sequence[Measured]) -> bool:
        return all(m.equal for _, m in inputs) and (bool(inputs) or self.past.worst == 0.0)

    def _decide(self, found: Judged, measure: Measure) -> None:
        limit = LIMIT_TENSORS if measure.exact else LIMIT_FIGURES
        if found.z > limit:
            if "dropout" in found.pair.left.type.lower():
                found.why = "random by intention"
            elif self._is_first_step(found, measure):
                found.why = "a first optimizer step from zero state: only signs of gradients count"
            elif self._is_cleared(found):
                found.verdict = "carries error"
                found.why = "computed again in double precision, both sides are what they should be"
            else:
                found.verdict = "introduces error"
        elif found.attributes:
            found.verdict = "attribute differs"
        elif self._is_lower_precision(found):
            found.verdict = "lower precision, explained"
        elif measure.equal and not found.error_in:
            found.verdict = "equal bits"
        else:
            found.verdict = "carries error"

    def _is_first_step(self, found: Judged, measure: Measure) -> bool:
        """A quotient of moments that began at zero turns gradients into signs."""
        op = found.pair.left
        divides = op.type.lower() in ("addcdiv_", "addcdiv") or family(op.type) == "optimizer"
        return not measure.exact and divides and self.past.zero_state and not found.attributes

    def _is_cleared(self, found: Judged) -> bool:
        if found.attributes:
            return False
        if found.pair.left.type != found.pair.right.type and self.same_framework:
            return False
        forward = self.past.forward.get(found.pair.left.call)
        return only_propagates(self.left, self.right, found, forward, self.measures)

    def _is_lower_precision(self, found: Judged) -> bool:
        left, right = self.left.columns, self.right.columns
        pairs = (*found.slots.inputs, *found.slots.outputs)
        ours = coarsest([left.dtypes[a] for a, _ in pairs])
        theirs = coarsest([right.dtypes[b] for _, b in pairs])
        return ours != theirs and found.error_out > found.error_in


def _no_output(found: Judged, floors: int, notes: Sequence[str]) -> None:
    """No output could be judged."""
    if floors:
        found.verdict = "below rounding floor"
        found.why = "the result is rounding residue: its terms cancel"
        return
    found.why = notes[0] if notes else "no float output on both sides"
    if found.attributes:
        found.verdict = "attribute differs"


def _is_broken(found: Judged, inputs: Sequence[Measured], outputs: Sequence[Measured]) -> bool:
    """NaN and infinity: where they come out and did not go in."""
    for side in ("left", "right"):
        went = any(_broken(m, side) for _, m in inputs)
        came = any(_broken(m, side) for _, m in outputs)
        if not came or went:
            continue
        found.broken = "both" if found.broken else side
        if any(_broken(m, "right" if side == "left" else "left") for _, m in outputs):
            continue
        found.verdict = "introduces error"
        found.z = found.error_out = math.inf
        found.output = outputs[0][0]
        errors = [m.error for _, m in inputs if not math.isnan(m.error)]
        found.error_in = max(errors, default=0.0)
        found.wrong = side
        found.why = f"NaN or infinity on the {side} side, from finite inputs"
    if found.verdict == "introduces error":
        return True
    if any(m.broken_left > 0 or m.broken_right > 0 for _, m in (*inputs, *outputs)):
        found.why = "NaN or infinity"
        return True
    return False


def _broken(measure: Measure, side: str) -> bool:
    return (measure.broken_left if side == "left" else measure.broken_right) > 0
