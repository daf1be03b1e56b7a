"""An input that is further apart than all that came before could explain.

A dump does not show every operation: views, indexing, arithmetic in place.  What goes wrong there
shows where its result is read next.  Nobody is accused of an input that makes no difference to
what comes out: a weight that one side keeps transposed, terms of a sum that changed places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.accumulation import LINEAR, explained_by_ends
from irtool.compare.tensors.judging.arguments import factor_of
from irtool.compare.tensors.judging.bias import (
    evenly,
    explained_scale,
    explained_shift,
    is_comparable,
    mean_shift,
    scale_of,
)
from irtool.compare.tensors.judging.inserted import absent_function, inserted_function
from irtool.compare.tensors.judging.past import Past, is_broken, is_broken_alike
from irtool.compare.tensors.judging.precision import COARSEST, fits_half, true_unit
from irtool.compare.tensors.judging.verdict import Judged, Measured
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Places, TensorRun
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass
from irtool.ir.units import error_text

ENTERS = 8.0
"""How many times further than anything before an input must be apart to have got its error from
operations that the dump does not show; from figures :data:`ENTERS_FIGURES`."""
ENTERS_FIGURES = 40.0
HALF = 2.0**-8
"""Relative error up to which a module's input may come of half precision between modules, where
the dump shows nothing else: two units of the coarsest type."""
JUMP = 2.0
"""Times the root of the error before, up to which a module's gradient may come of rectifiers
between modules: where their input is off by *e*, theirs is by about √e."""
_FINE = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
FIGURE_UNITS = 2.0
"""Units by which figures of a tensor in half precision may be off, as they are stated in half
precision themselves: a whole step between two numbers, where summing is rounded as well."""
_SUMMED = 4e-6
"""Relative difference of norms and means that another order of summing can make."""
_LEAST_FACTOR = 5e-3
"""Factor, less 1, from which a product that one side alone has is held against its result."""
_HIDDEN_FACTOR = 0.125
"""The same of a function that one side alone has, in units of half precision."""
_MOVED_UNITS = 4.0
"""Units of half precision that such a function has to move an input by, if not by a factor."""
_OTHER_WEIGHTS = 0.3
"""Relative error of a matrix of weights that no few steps of training explain."""
_OTHER_INTEGERS = 0.3
"""Relative error of whole numbers that is no matter of a few that rounding has tipped over."""


@dataclass(slots=True)
class Entering:
    """Looks for such an input of one operator.

    Attributes:
        left: one dump.
        right: the other.
        judged: the operator that reads it; says which input, once one was found.
        past: what came before.
        makers: operators without a partner.
    """

    left: TensorRun
    right: TensorRun
    judged: Judged
    past: Past
    makers: Makers

    @property
    def before(self) -> float:
        """The largest relative error of a result so far that this operator may go on with."""
        return self.past.before(self.judged.pair.left)

    def is_found(self, inputs: Sequence[Measured]) -> bool:
        """Whether one of the inputs brings error from nowhere."""
        for places, measure in inputs:
            what = self._what(places, measure)
            if what:
                self.accuse(places, measure, what)
                return True
        return False

    def _what(self, places: Places, measure: Measure) -> str:
        """What is wrong with an input; empty for nothing."""
        if is_broken(measure) and not is_broken_alike(measure) and not self.past.broken_differ:
            return " has NaN or infinity on one side, nothing before has"
        if math.isnan(measure.error) or measure.error == 0:
            return self.from_factor(places, measure) if is_broken(measure) else ""
        if not is_float(self.left.columns.dtypes[places[0]]):
            is_new = self.is_new_integer(places, measure)
            return " is not the same on both sides" if is_new else ""
        if places[0] in self.judged.pair.left.parameters and not self.is_computed(places):
            if self.is_trained(places, measure) or not self.is_other_parameter(places, measure):
                return ""
            self.judged.parameter = True
            return ", a parameter, differs before it is used"
        return (
            self.from_nowhere(places, measure)
            or self.from_factor(places, measure)
            or self.from_function(places, measure)
            or self.from_absent(places, measure)
            or self.from_between(places, measure)
        )

    def is_computed(self, places: Places) -> bool:
        """Whether calls of either run have made what is read as a weight.

        Args:
            places: of the input on both sides.
        """
        return any(place in made for place, made in zip(places, self.past.computed, strict=True))

    def is_trained(self, places: Places, measure: Measure) -> bool:
        """Whether steps before may have moved a parameter that far apart."""
        if self.past.training == "steps compared":
            return True
        return self.past.training == "steps before" and not self.is_far(places, measure)

    def is_far(self, places: Places, measure: Measure) -> bool:
        """Whether a matrix is further apart than training explains; vectors may begin at zero."""
        is_matrix = len(self.left.columns.shapes[places[0]]) >= 2
        return is_matrix and measure.error > _OTHER_WEIGHTS

    def has_maker(self, places: Places) -> bool:
        """Whether it was made in this step, by an operator that only one side has."""
        sides = (self.judged.pair.left, self.judged.pair.right)
        return any(self.makers.maker(n, sides[n], places[n]) is not None for n in (0, 1))

    def is_new_integer(self, places: Places, measure: Measure) -> bool:
        """Whether integers differ that rounding before them does not explain.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
        """
        past = self.past
        if past.is_residue(places[0]) or self.judged.pair.left.phase != "forward":
            return False
        if past.worst > 0:  # some of them may come of numbers that differ by rounding
            if past.integers_differ:
                return False
            is_label = family(self.judged.pair.left.type) == "loss"  # data, which nothing rounds
            if not is_label and measure.error < max(_OTHER_INTEGERS, 10 * math.sqrt(past.worst)):
                return False
        return not self.has_no_effect(0.0, 1.0)

    def is_other_parameter(self, places: Places, measure: Measure) -> bool:
        """Whether a parameter is another one: nothing but rounding it to a type may differ.

        Parameters come out of a checkpoint, so of one type they are the same to the bit.  Of two
        types one is the other rounded: off by half a unit at most, and up as often as down.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
        """
        if measure.equal or not measure.error > figures_resolution(
            self.left, self.right, places, measure
        ):
            return False
        dtypes = self.left.columns.dtypes[places[0]], self.right.columns.dtypes[places[1]]
        unit = self.unit(places)
        # msprobe states the norm of a tensor in half precision in half precision.
        share = evenly(math.prod(self.left.columns.shapes[places[0]]))
        even = unit * share if measure.exact else FIGURE_UNITS * unit
        most = unit if measure.exact else FIGURE_UNITS * unit
        if dtypes[0] != dtypes[1] and measure.error <= most and abs(scale_of(measure)) <= even:
            return False
        is_small = measure.error <= COARSEST and unit < _FINE
        ours, theirs = self.true_units(places) if is_small else (unit, unit)
        coarse = max(ours, theirs)
        if ours != theirs and measure.error <= coarse and abs(scale_of(measure)) <= coarse * share:
            self.judged.lowered = self.judged.lowered or self.lowered_text(places, coarse)
            return False
        other_operator = self.judged.pair.left.type != self.judged.pair.right.type
        return not (other_operator and self.has_no_effect(unit, 8 if measure.exact else 40))

    def from_nowhere(self, places: Places, measure: Measure) -> str:
        """What is to be said of an input that is further apart than anything before it explains.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.

        Returns:
            The words that follow its label; empty where it is explained, or cannot be told.
        """
        past = self.past
        if past.is_residue(places[0]) or past.is_unwritten(places[0]):
            return ""
        factor = ENTERS if measure.exact else ENTERS_FIGURES
        unit = self.unit(places)
        if measure.error <= factor * max(self.before, 4 * min(unit, _FINE)):
            return ""
        if self.is_left_of_terms(places, measure, factor):
            return ""
        units = self.true_units(places)
        coarse = max(unit, *units)
        if self.is_of_another_function(coarse):
            return ""
        if measure.error <= factor * 4 * coarse:
            if self.is_scaled(places, measure, coarse):
                return " is scaled: its norm is further off than rounding brings"
            if self.is_shifted(places, measure, coarse):
                return " is further off on average than rounding so many elements brings"
            if coarse > unit and units[0] != units[1] and not self.judged.lowered:
                self.judged.lowered = self.lowered_text(places, coarse)
            return self.summed_in_half(places, measure, coarse)
        if self.has_no_effect(unit, factor):
            if not measure.exact and not self.is_exchanged():
                self.judged.unlike_input = self.left.columns.labels[places[0]]
            return ""
        if self.may_have_jumped(measure):
            return ""
        if text := self.half_by_figures(places, measure):
            self.judged.lowered = self.judged.lowered or text
            return ""
        if self.may_be_half(measure):
            label = self.left.columns.labels[places[0]]
            self.judged.untold = f"{label}: half precision between modules, or a fault (level L0)"
            return ""
        may_be_state = past.training != "first step" and not self.is_far(places, measure)
        if may_be_state and not self.has_maker(places):
            return ""
        return " is further apart than anything before it"

    def is_left_of_terms(self, places: Places, measure: Measure, factor: float) -> bool:
        """Whether a gradient is a sum whose terms cancel, and off by no more than they explain.

        What is made of it is residue as well, and says nothing of those that come behind.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
            factor: how many times what its terms may be off by it may be.
        """
        op, past = self.judged.pair.left, self.past
        forward = past.forward.get(op.call) if op.phase == "backward" and op.call else None
        if forward is None or past.terms is None or not measure.distance > 0:
            return False
        explained = past.terms.error(self.judged, places[0], forward.pair.left)
        if measure.distance > factor * explained:
            return False
        past.mark_residue(places)
        return True

    def from_factor(self, places: Places, measure: Measure) -> str:
        """Of an input that a product with a number makes on one side alone: whether that is it.

        The factor shows however much rounding lies before it, as it is known what to look for.
        """
        reader = self.judged.pair.left
        if reader.phase == "optimizer" or reader.is_module:
            return ""
        scale = scale_of(measure) if is_comparable(measure) else self.scale_of_extremes(places)
        if not abs(scale) >= _LEAST_FACTOR:
            return ""
        sides = (self.judged.pair.left, self.judged.pair.right)
        for which in (0, 1):
            maker = self.makers.maker(which, sides[which], places[which])
            factor = None if maker is None else factor_of(maker)
            if factor is None:
                continue
            expected = factor - 1 if which else 1 / factor - 1
            if abs(expected) > _LEAST_FACTOR and abs(scale - expected) < abs(expected) / 4:
                return f" is {factor:g} times what it is on the {('right', 'left')[which]}"
        return ""

    def scale_of_extremes(self, places: Places) -> float:
        """The factor between what is finite of masked scores, less 1: all that figures tell.

        Args:
            places: of the input on both sides.
        """
        a, b = self.left.columns.most[places[0]], self.right.columns.most[places[1]]
        is_masked = self.left.columns.least[places[0]] == -math.inf
        return b / a - 1 if is_masked and a > 0 and 0 < b < math.inf else math.nan

    def from_function(self, places: Places, measure: Measure) -> str:
        """Of an input that a function of one side alone makes: what half precision hides of it.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
        """
        reader, unit = self.judged.pair.left, self.unit(places)
        if not measure.exact or reader.phase != "forward" or reader.is_module:
            return ""
        if unit < _FINE and measure.error > _FINE:  # a loss reads in Float32 what was BFloat16
            unit = max(self.true_units(places))
        is_other = reader.type != self.judged.pair.right.type  # it may do what the call does
        if unit < _FINE or is_other:
            return ""
        is_biased = is_comparable(measure) and abs(scale_of(measure)) > _HIDDEN_FACTOR * unit
        if not is_biased and measure.error <= _MOVED_UNITS * unit:
            return ""
        sides = self.judged.pair.left, self.judged.pair.right
        runs = self.left, self.right
        return inserted_function(runs, self.makers, sides, places, measure, self.before, unit)

    def from_absent(self, places: Places, measure: Measure) -> str:
        """Of an input from figures: whether one side lacks a call, and reads what goes into it.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
        """
        pair = self.judged.pair
        reader = pair.left
        is_same = reader.type == pair.right.type and not self.judged.attributes
        if measure.exact or reader.phase == "optimizer" or reader.is_module or not is_same:
            return ""
        runs, sides = (self.left, self.right), (pair.left, pair.right)
        return absent_function(runs, self.makers, sides, places)

    def from_between(self, places: Places, measure: Measure) -> str:
        """Of an input that is an earlier result on one side, and on the other has been changed.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
        """
        reader = self.judged.pair.left
        if reader.is_module or reader.phase == "optimizer" or self.has_maker(places):
            return ""
        found = self.past.handed.changed(places, measure.error, self.past.measures)
        if found is None:
            return ""
        results = [self.past.measures[p] for p in self.judged.slots.outputs
                   if p in self.past.measures]  # fmt: skip
        if results and all(each.error < measure.error / 2 for each in results):
            return ""
        text, effect = found
        if effect.error <= 4 * max(self.true_units(places)):
            return ""
        return "" if self.half_by_figures(places, measure) else text

    def is_scaled(self, places: Places, measure: Measure, coarse: float) -> bool:
        """Whether a factor stands out of the rounding that explains single elements."""
        reader = self.judged.pair.left
        if places[0] in reader.parameters or reader.is_module or reader.phase == "optimizer":
            return False
        if not is_comparable(measure):
            return False
        past = self.past
        before = explained_scale([past.worst_scale], self.before, coarse, measure.exact)
        # Figures of half precision are rounded themselves, and what lies between is not shown;
        # of gradients sums over all that a tensor is read by are not.
        is_plain = measure.exact and reader.phase == "forward"
        return abs(scale_of(measure)) > (before if is_plain else 2 * before)

    def is_shifted(self, places: Places, measure: Measure, coarse: float) -> bool:
        """Whether the stated mean, of half precision, is off by more than unseen calls explain."""
        reader, columns = self.judged.pair.left, (self.left.columns, self.right.columns)
        if measure.exact or reader.phase != "forward" or reader.is_module:
            return False
        if min(roundoff(columns[n].dtypes[places[n]]) for n in (0, 1)) < _FINE:
            return False  # of Float32 what is seen before is no measure of what was rounded
        if not is_comparable(measure) or self.has_maker(places):
            return False
        return mean_shift(columns, places) > ENTERS * explained_shift(coarse, self.before)

    def lowered_text(self, places: Places, coarse: float) -> str:
        """Which input was rounded to which type, and on which side."""
        units = self.true_units(places)
        sides = [
            name for name, unit in zip(("left", "right"), units, strict=True) if unit >= coarse
        ]
        kind = "Float16" if coarse <= roundoff("Float16") else "BFloat16"
        label = self.left.columns.labels[places[0]]
        return f"{label} was rounded to {kind} on the {' and the '.join(sides) or 'one side'}"

    def may_be_half(self, measure: Measure) -> bool:
        """Whether calls that a dump of modules alone leaves out may have rounded it that far."""
        return self.judged.pair.left.is_module and not self.past.is_mixed and measure.error <= HALF

    def half_by_figures(self, places: Places, measure: Measure) -> str:
        """Of figures that fit half precision in all extremes: that rounding to it may be it.

        Shares of a softmax lie between 0 and 1, which every type has: neither tells a type.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.

        Returns:
            In words; empty where a longer type shows on both sides, or rounding is no explanation.
        """
        if measure.exact or measure.error > HALF or self.unit(places) > _FINE:
            return ""
        ours, theirs = self.left.columns, self.right.columns
        ends = [ours.most[places[0]], ours.least[places[0]],
                theirs.most[places[1]], theirs.least[places[1]]]  # fmt: skip
        if not all(map(fits_half, ends)):
            return ""
        return (
            f"{ours.labels[places[0]]} is {error_text(measure.error)} apart, which rounding to "
            "half precision explains, and figures tell nothing else of it (dump tensors)"
        )

    def may_have_jumped(self, measure: Measure) -> bool:
        """Whether a rectifier that a dump of modules alone leaves out explains a gradient."""
        left = self.judged.pair.left
        is_alone = left.is_module and not self.past.is_mixed
        far = JUMP * math.sqrt(self.past.worst)
        return is_alone and left.phase == "backward" and measure.error <= far

    def summed_in_half(self, places: Places, measure: Measure, coarse: float) -> str:
        """Of a sum that only one side computes as one: whether the parts were added in half."""
        if coarse < _FINE or not measure.exact:
            return ""
        pair = self.judged.pair
        for which, (run, reader) in enumerate(((self.left, pair.left), (self.right, pair.right))):
            maker = self.makers.maker(which, reader, places[which])
            if maker is None or family(maker.type) not in LINEAR:
                continue
            units = measure.error / coarse
            if units > explained_by_ends(run, maker):
                return (
                    f" is {units:.2g} units of half precision apart, more than rounding the ends "
                    "of a sum explains: it is rounded on its way"
                )
        return ""

    def has_no_effect(self, unit: float, factor: float) -> bool:
        """Whether all outputs agree as if the input did."""
        measures = self.past.measures
        results = [measures[p] for p in self.judged.slots.outputs if p in measures]
        limit = max(factor * self.before, 8 * unit)
        return bool(results) and all(m.error <= limit and is_broken_alike(m) for m in results)

    def is_of_another_function(self, unit: float) -> bool:
        """Whether the other side calls another function, which makes the same of other operands.

        Args:
            unit: roundoff of the coarsest type that they went through.
        """
        pair, measures = self.judged.pair, self.past.measures
        if pair.left.type == pair.right.type or pair.left.is_module or pair.left.phase != "forward":
            return False
        results = [measures[p] for p in self.judged.slots.outputs if p in measures]
        even = explained_scale([], self.before, unit, all(m.exact for m in results))
        return bool(results) and all(
            m.error <= max(self.before, 2 * unit) and is_comparable(m) and abs(scale_of(m)) <= even
            for m in results
        )

    def is_exchanged(self) -> bool:
        """Whether operands of a sum or product, whose order is no matter, have changed places."""
        pair = self.judged.pair
        if family(pair.left.type) not in ("sum", "product"):
            return False
        norms = [
            sorted(run.columns.norm[place] for place in op.inputs)
            for run, op in ((self.left, pair.left), (self.right, pair.right))
        ]
        return len(norms[0]) == len(norms[1]) and all(
            math.isclose(a, b, rel_tol=max(self.before, _SUMMED))
            for a, b in zip(*norms, strict=True)
        )

    def unit(self, places: Places) -> float:
        return max(
            roundoff(self.left.columns.dtypes[places[0]]),
            roundoff(self.right.columns.dtypes[places[1]]),
        )

    def true_units(self, places: Places) -> tuple[float, float]:
        """The coarsest precision that a tensor of each side has been through, whatever it is in."""
        return (
            true_unit(self.left, self.judged.pair.left, places[0]),
            true_unit(self.right, self.judged.pair.right, places[1]),
        )

    def accuse(self, places: Places, measure: Measure, what: str) -> None:
        """Say that the operator introduces error, and by which input.

        Args:
            places: of the input on both sides.
            measure: how far it is apart.
            what: the words that follow its label.
        """
        judged = self.judged
        label = self.left.columns.labels[places[0]]
        judged.entered = f"{label}{what}"
        judged.verdict = "introduces error"
        judged.error_out, judged.output = measure.error, places
        judged.error_in = self.before
        judged.budget = max(self.before, 2.0**-24)
        judged.z = measure.error / judged.budget


def figures_resolution(
    left: TensorRun, right: TensorRun, places: Places, measure: Measure
) -> float:
    """What figures of one tensor may differ by: sums in another order, digits printed.

    Args:
        left: one dump.
        right: the other.
        places: of the tensor in both.
        measure: of it; of values nothing may differ, nor where an extreme does.
    """
    if measure.exact:
        return 0.0
    ours, theirs = left.columns, right.columns
    is_printed = bool(ours.resolution or theirs.resolution)
    for a, b in ((ours.most, theirs.most), (ours.least, theirs.least)):
        x, y = a[places[0]], b[places[1]]
        if not (math.isnan(x) or math.isnan(y)) and x != y and not is_printed:
            return 0.0
    return _SUMMED + 4 * max(ours.resolution, theirs.resolution)
