"""An input that is further apart than all that came before could explain.

A dump does not show every operation: views, indexing, arithmetic in place.  What goes wrong there
shows where its result is read next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.measure import Measure
from irtool.compare.tensors.model import TensorRun
from irtool.compare.tensors.past import Past
from irtool.compare.tensors.precision import true_unit
from irtool.compare.tensors.verdict import Judged, Measured, Places

ENTERS = 8.0
"""How many times further than anything before an input must be apart to have got its error from
operations that the dump does not show; from figures :data:`ENTERS_FIGURES`."""
ENTERS_FIGURES = 40.0


def error_enters(
    left: TensorRun,
    right: TensorRun,
    found: Judged,
    inputs: Sequence[Measured],
    past: Past,
    parameters_known: bool,
) -> bool:
    """Whether an input brings error from nowhere; ``found`` then says which.

    Args:
        left: one dump.
        right: the other.
        found: the operator that reads it.
        inputs: what it reads.
        past: what came before.
        parameters_known: an earlier step was compared, so parameters may differ by now.
    """
    entering = _Entering(left, right, found, past)
    for places, measure in inputs:
        if math.isnan(measure.error) or measure.error == 0:
            continue
        if not is_float(left.columns.dtypes[places[0]]):
            if entering.is_new_integer(places):
                entering.accuse(places, measure, "is not the same on both sides")
                return True
        elif places[0] in found.pair.left.parameters:
            if not parameters_known and entering.is_other_parameter(places, measure):
                found.parameter = True
                entering.accuse(places, measure, ", a parameter, differs before it is used")
                return True
        elif entering.is_from_nowhere(places, measure):
            entering.accuse(places, measure, "is further apart than anything before it")
            return True
    return False


class _Entering:
    def __init__(self, left: TensorRun, right: TensorRun, found: Judged, past: Past) -> None:
        self.left, self.right, self.found, self.past = left, right, found, past

    def is_new_integer(self, places: Places) -> bool:
        past = self.past
        if past.is_residue(places[0]) or past.worst > 0:
            return False
        return self.found.pair.left.phase == "forward"

    def is_other_parameter(self, places: Places, measure: Measure) -> bool:
        units = 8 if measure.exact else 40  # an extreme alone may be unlucky
        if measure.error <= units * self.unit(places):
            return False
        return measure.error > units * self.true_unit(places)

    def is_from_nowhere(self, places: Places, measure: Measure) -> bool:
        past = self.past
        if past.is_residue(places[0]):
            return False
        factor = ENTERS if measure.exact else ENTERS_FIGURES
        if measure.error <= factor * max(past.worst, 4 * self.unit(places)):
            return False
        if measure.error <= factor * 4 * self.true_unit(places):
            return False
        return not self.has_no_effect(self.unit(places), factor)

    def has_no_effect(self, unit: float, factor: float) -> bool:
        """A sum does not care which of its terms comes first."""
        measures = self.past.measures
        errors = [measures[p].error for p in self.found.slots.outputs if p in measures]
        limit = max(factor * self.past.worst, 8 * unit)
        return bool(errors) and all(error <= limit for error in errors)

    def unit(self, places: Places) -> float:
        return max(
            roundoff(self.left.columns.dtypes[places[0]]),
            roundoff(self.right.columns.dtypes[places[1]]),
        )

    def true_unit(self, places: Places) -> float:
        """The coarsest precision that a tensor has been through, whatever it is kept in now."""
        return max(
            true_unit(self.left, self.found.pair.left, places[0]),
            true_unit(self.right, self.found.pair.right, places[1]),
        )

    def accuse(self, places: Places, measure: Measure, what: str) -> None:
        found, past = self.found, self.past
        label = self.left.columns.labels[places[0]]
        found.entered = f"{label}{what}" if what.startswith(",") else f"{label} {what}"
        found.verdict = "introduces error"
        found.error_out, found.output = measure.error, places
        found.error_in = past.worst
        found.budget = max(past.worst, 2.0**-24)
        found.z = measure.error / found.budget
