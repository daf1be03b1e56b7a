"""Which operator introduces error: what it puts out against what its inputs explain.

The ratio ``z`` of an output's error to its budget is around 1 or far below for healthy operators;
a fault gives hundreds and more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irtool.compare.tensors.dtypes import coarsest, is_float, roundoff
from irtool.compare.tensors.judging.accumulation import adds_up_in_half
from irtool.compare.tensors.judging.arguments import (
    changed_arguments,
    computed_scalars,
    is_spelled_otherwise,
)
from irtool.compare.tensors.judging.attributes import ABSENT
from irtool.compare.tensors.judging.bias import (
    LEAST_EXACT,
    LEAST_FIGURES,
    explained_scale,
    explained_shift,
    is_comparable,
    mean_shift,
    scale_of,
)
from irtool.compare.tensors.judging.budget import LEAST_UNITS, Account, budget, part_dtypes
from irtool.compare.tensors.judging.cancelled import Terms
from irtool.compare.tensors.judging.cleared import only_propagates
from irtool.compare.tensors.judging.entering import HALF, Entering
from irtool.compare.tensors.judging.handed import Handed
from irtool.compare.tensors.judging.other_function import difference_of_functions
from irtool.compare.tensors.judging.past import (
    Past,
    Training,
    composites,
    is_broken,
    is_broken_alike,
    is_mixed,
)
from irtool.compare.tensors.judging.rejoined import has_other_operands, reads_otherwise
from irtool.compare.tensors.judging.verdict import Judged, Measured, Verdict
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots, is_fused_sum
from irtool.compare.tensors.semantics import family, is_random, is_unwritten, jumps
from irtool.ir.graph import Node
from irtool.ir.units import error_text
from irtool.operators.table import is_framework_module

_OTHER_EPSILON = 1000.0
"""How many times the error of its inputs a norm of two frameworks, whose arguments cannot be set
side by side, may put out if both are computed rightly."""
_OTHER_ARGUMENTS = 30.0
"""The same of other operators."""
LIMIT_TENSORS = 3.0
"""``z`` from which an operator introduces error, where values or sketches are compared."""
LIMIT_FIGURES = 10.0
"""The same where only stated figures are: they see less of an input's error."""
LIMIT_ATTRIBUTES = 1.0
"""The same where both sides were given other arguments, which is reason enough."""
_MOST_STEPS = 16.0
"""The root of how many roundings at most: kernels that add up more terms do so in blocks."""
_CANCELLED = 1e-6
"""Norm of a parameter's gradient, against those of the module's others, from which down its terms
cancel: of a key's bias, which softmax does not see, only rounding is left.  A unit of coarser
types."""
_HANDED_ON = 1.02
"""How much of its inputs' error an operator hands on that adds none of its own."""
_HALF_ROUNDED = 0.05
"""Relative error up to which inputs may be off by rounding in half precision."""
_FINE = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_SINGLE = 2.0**-24
"""Unit roundoff of single precision."""
_BELOW_ALL = 2.0**-16
"""Relative error, if those before are as large, that no two functions of other names are within."""
_MORE = 1.25
"""How many times the error before a call of another name may be off by, and gives the same."""
_TOLD_UNITS = 0.125
"""Units of half precision that a result may differ by if arguments do and inputs do not."""
_UNSEEN_UNITS = 1 / 16
"""Units of the coarsest type before that figures of gradients hide, and sums of them show."""
_HALF_UNIT = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_ROW_UNITS = 1.0
"""Units, over the root of the number of terms, that sums over rows differ by; of squares too."""
_ONE_FUNCTION = 2.0**-48
"""Relative distance, in double precision, of what two names of one function make of the same."""
_THE_SAME = ("equal bits", "equal figures", "carries error")
_SIGNS = 0.02
"""Relative error from which a first step is more than the gradient's error."""
_MAGNIFIED = 3.0
"""How many times the shift of a mean that goes in may come out of an operator."""
_FEW_ROWS = 2
"""Rows that an expert is given more or fewer where rounding tips a router over."""
_TIPPED = 0.25
"""The same as a share of its rows."""
_SHRINK = frozenset(("reduce", "norm", "softmax", "loss", "convolution"))
"""Families that give results of another size only where they are told to compute another thing."""


@dataclass(slots=True)
class Judge:
    """Judges operator pairs in the order of the left dump.

    ``noise``: by index of a left operator, how far its results were off in other healthy runs;
    ``otherwise``: why the results of a pair are not meant to be the same;
    ``computed``: places of each run where functions read weights that calls have made.
    """

    left: TensorRun
    right: TensorRun
    measures: Mapping[Places, Measure]
    makers: Makers
    same_framework: bool = True
    training: Training = "first step"
    changed: Mapping[Node, Sequence[str]] = field(default_factory=dict[Node, Sequence[str]])
    sharded: bool = False
    noise: Mapping[int, float] = field(default_factory=dict[int, float])
    otherwise: Mapping[int, str] = field(default_factory=dict[int, str])
    computed: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    past: Past = field(init=False)
    _calls_otherwise: set[str] = field(init=False, default_factory=set[str])

    def __post_init__(self) -> None:
        parts, mixed = composites(self.left), is_mixed(self.left)
        columns, training = self.left.columns, self.training
        self.past = Past(
            columns, self.measures, Handed((self.left, self.right)),
            composite=parts, is_mixed=mixed, training=training, computed=self.computed,
            terms=Terms(self.left, self.measures),
        )  # fmt: skip

    def judge(self, pair: OpPair, slots: Slots) -> Judged:
        """Judge one pair of operators, in the order in which they ran.

        Args:
            pair: the operators.
            slots: their tensors.
        """
        judged = Judged(pair, slots)
        if why := self._is_meant_otherwise(pair):
            judged.why = why
            return judged
        if self.same_framework:
            columns, worst = (self.left.columns, self.right.columns), self.past.worst
            judged.attributes = tuple(changed_arguments(pair, slots, *columns, self.changed, worst))
        self._classify(judged)
        is_named = any(change.is_word for change in judged.attributes)
        if self.sharded and judged.verdict == "attribute differs" and not is_named:
            judged.verdict = "carries error"  # numbers and sizes follow the slices
        judged.may_be_order = self._may_be_order(judged)
        self.past.remember(judged)
        if judged.untold:
            known = (e for e in (judged.error_in, judged.error_out) if math.isfinite(e))
            self.past.worst = max(self.past.worst, *known)
            if judged.verdict != "introduces error":
                judged.verdict, judged.why = "not comparable", judged.untold
        return judged

    def _is_meant_otherwise(self, pair: OpPair) -> str:
        """Why the results of a pair are not meant to be the same: its own, or of its call."""
        op = pair.left
        why = self.otherwise.get(op.index, "")
        if why and op.phase == "forward" and op.call:
            self._calls_otherwise.add(op.call)
        if not why and op.phase == "backward" and self._is_computed_otherwise(op.call):
            why = "the gradient of a call that is computed in other parts"
        return why

    def _is_computed_otherwise(self, call: str) -> bool:
        """Whether a call has other operands on the other side, of which it makes the same."""
        if call in self._calls_otherwise:
            return True
        forward = self.past.forward.get(call) if call and self.same_framework else None
        return forward is not None and reads_otherwise(forward, self.measures)

    def _classify(self, judged: Judged) -> None:
        pair, slots, measures = judged.pair, judged.slots, self.measures
        inputs = [(p, m) for p in slots.inputs if (m := measures.get(p)) is not None]
        outputs = [
            (p, m)
            for p in slots.outputs
            if (m := measures.get(p)) is not None and not self._is_dead(pair, p)
        ]
        _note_origin(judged, inputs, outputs)
        if self._lacks_gradient(judged):
            return
        if outputs and outputs[0][1].equal and all(m.equal for _, m in (*inputs, *outputs)):
            alike = _alike([measure for _, measure in outputs])
            is_same = _is_renamed(judged) or _is_another_function(judged)
            is_same = is_same or self._has_other_axes(judged)
            judged.verdict = alike if is_same else "attribute differs"
            judged.error_in = judged.error_out = 0.0
            return
        if pair.left.type == "Parameter":
            judged.why = "the state at the end of the step"
            return
        if not judged.attributes and self._is_rounding(
            pair.left.parameters - self.computed[0], inputs, outputs
        ):
            self._carries_rounding(judged, inputs, outputs)
            return
        hidden = self.past.hidden(pair.left)
        known = [m.error for _, m in (*inputs, *hidden) if not math.isnan(m.error)]
        judged.error_in = max(known, default=0.0 if pair.left.inputs else math.nan)
        if self._enters(judged, inputs):
            return
        if not _breaks(judged, inputs, outputs):
            self._outputs(judged, inputs, hidden, outputs)

    def _lacks_gradient(self, judged: Judged) -> bool:
        """Whether one side alone gives a gradient for an input: the other one cut it off."""
        op = judged.pair.left
        if op.phase != "backward" or op.is_opaque or not self.same_framework or self.sharded:
            return False
        if op.type != judged.pair.right.type:
            return False
        if self._has_other_gradients(judged):
            judged.attributes = tuple(
                change for change in judged.attributes if not change.name.startswith("output.")
            )
            return False
        for change in judged.attributes:
            place = change.name.removeprefix("output.")
            if place == change.name or ABSENT not in (change.left, change.right):
                continue
            judged.wrong = "left" if change.left == ABSENT else "right"
            judged.verdict, judged.z = "introduces error", math.inf
            judged.error_in = judged.error_out = 0.0
            judged.why = f"it gives no gradient for its input {place} on the {judged.wrong}"
            return True
        return False

    def _has_other_gradients(self, judged: Judged) -> bool:
        """Whether what is dumped of one call's gradients is that of two kinds of functions.

        A hook sees the last function that a call is made of: of ``linear`` a view of its product,
        or, where its input is not contiguous, the addition of its bias.  Their lists have nothing
        to do with each other, which shapes show; gradients that one lacks are made elsewhere.
        """
        left, right = self.left.columns.shapes, self.right.columns.shapes
        return any(left[a] != right[b] for a, b in judged.slots.outputs)

    def _is_dead(self, pair: OpPair, places: Places) -> bool:
        """Whether a result is memory that nobody wrote: it says nothing, whoever reads it."""
        columns = self.left.columns
        label = columns.labels[places[0]]
        is_dead = columns.notes.get(places[0]) == "dead output" or (
            self.left.framework == "mindspore" and is_unwritten(pair.left.type, label)
        )
        if is_dead:
            self.past.mark_unwritten(places)
        return is_dead

    def _enters(self, judged: Judged, inputs: Sequence[Measured]) -> bool:
        sides = self.left, self.right
        entering = Entering(*sides, judged, self.past, self.makers)
        return entering.is_found(inputs)

    def _is_rounding(
        self,
        parameters: frozenset[int],
        inputs: Sequence[Measured],
        outputs: Sequence[Measured],
    ) -> bool:
        """Whether all is within what every operator may round, so that no budget is needed.

        Of parameters nothing is: nobody has computed them.
        """
        dtypes = self.left.columns.dtypes
        if not outputs:
            return False
        for places, measure in (*inputs, *outputs):
            if measure.equal:
                continue
            unit = roundoff(dtypes[places[0]])
            is_small = unit < 2.0**-20 and measure.error <= LEAST_UNITS * unit
            if not is_small or places[0] in parameters or not is_broken_alike(measure):
                return False
        return all(roundoff(dtypes[places[0]]) for places, _ in outputs)

    def _carries_rounding(
        self, judged: Judged, inputs: Sequence[Measured], outputs: Sequence[Measured]
    ) -> None:
        judged.verdict = "carries error"
        judged.error_in = max((m.error for _, m in inputs), default=0.0)
        places, measure = max(outputs, key=lambda item: item[1].error)
        judged.output, judged.error_out = places, measure.error
        judged.budget = LEAST_UNITS * roundoff(self.left.columns.dtypes[places[0]])
        judged.z = judged.error_out / judged.budget

    def _outputs(
        self,
        judged: Judged,
        inputs: Sequence[Measured],
        hidden: Sequence[Measured],
        outputs: Sequence[Measured],
    ) -> None:
        """Every output against its budget; the worst one decides."""
        left = self.left.columns
        if any(m.error > 0 and not is_float(left.dtypes[p[0]]) for p, m in inputs):
            judged.verdict = "carries error"
            judged.why = "works on other whole numbers than the other side"
            return
        if self._reads_other_rows(judged):
            judged.verdict = "carries error"
            judged.why = "reads other rows: whole numbers before it are not the same"
            return
        best: tuple[float, float, Measured] | None = None
        floors = 0
        notes: list[str] = []
        cancelled = 0.0
        is_of_parameters = judged.pair.left.is_module and not judged.pair.left.inputs
        if is_of_parameters or (judged.pair.left.phase == "backward" and len(outputs) > 1):
            unit = coarsest([left.dtypes[places[0]] for places, _ in outputs])
            largest = max((m.left for _, m in outputs if m.left >= 0), default=0.0)
            cancelled = max(_CANCELLED, unit if is_of_parameters else 0.0) * largest
        for places, measure in outputs:
            if math.isnan(measure.error):
                notes.append(measure.note or "no figures")
                continue
            if not is_float(left.dtypes[places[0]]):
                if not measure.equal and measure.error and self._are_equal(inputs):
                    judged.verdict = "introduces error"
                    judged.why = "from equal inputs it gives other whole numbers"
                    judged.z, judged.error_out, judged.output = math.inf, measure.error, places
                    return
                continue
            explained, floor = self._budget(judged.pair, (places, measure), inputs, hidden)
            if is_of_parameters or len(left.shapes[places[0]]) == 1:  # a bias, a scale
                floor = max(floor, cancelled)
                if judged.pair.left.phase == "backward" and len(outputs) > 1:
                    floor = max(floor, self._left_of_a_sum(places, inputs))
            least = min(measure.left, measure.right)
            if max(measure.left, measure.right) < floor or 0 < least < floor:
                floors += 1
                self.past.mark_residue(places)
                continue
            z = measure.error / explained if explained else (math.inf if measure.error else 0.0)
            if best is None or z > best[0]:
                best = (z, explained, (places, measure))
        if best is None:
            if self._is_other_result(judged, outputs):
                return
            if self._has_other_kind(judged):
                judged.why = (
                    "one of two functions gives complex numbers: what is made of them tells"
                )
                return
            _no_output(judged, floors, notes)
            return
        judged.z, judged.budget, (judged.output, measure) = best
        judged.error_out = measure.error
        if self._may_have_tipped(judged, measure):
            judged.verdict, self.past.integers_differ = "carries error", True
            judged.why = "a few other indices explain it, and figures do not show indices"
            return
        self._decide(judged, measure)

    def _reads_other_rows(self, judged: Judged) -> bool:
        """Whether indices are more or fewer than the other side's as those before were others.

        A router that rounding tips over gives one expert a row more, and another one a row less.
        """
        left, right = self.left.columns, self.right.columns
        counts = [
            (math.prod(left.shapes[a]), math.prod(right.shapes[b]))
            for a, b in judged.slots.inputs
            if not is_float(left.dtypes[a])
        ]
        are_near = any(
            0 < abs(ours - theirs) <= max(_FEW_ROWS, _TIPPED * max(ours, theirs))
            for ours, theirs in counts
        )
        return are_near and self.past.integers_differ

    def _may_have_tipped(self, judged: Judged, measure: Measure) -> bool:
        """Whether a few other indices explain what figures show of rows that are picked.

        Half precision tips over which of two nearly equal numbers is the larger one; figures of
        indices do not show that.  An element more or less of them is at most the square of the
        largest number there is.
        """
        op, columns = judged.pair.left, self.left.columns
        if measure.exact or op.phase != "forward" or family(op.type) != "lookup":
            return False
        if self.past.unit < _FINE or judged.output is None or judged.attributes:
            return False
        if all(is_float(columns.dtypes[p]) for p in op.inputs) or not is_comparable(measure):
            return False
        if not self.past.has_chosen:
            return False
        places, theirs = judged.output, self.right.columns
        ends = (columns.most[places[0]], columns.least[places[0]],
                theirs.most[places[1]], theirs.least[places[1]])  # fmt: skip
        count = max(1.0, math.prod(columns.shapes[places[0]]) * self.past.unit)
        return abs(measure.left**2 - measure.right**2) <= count * max(map(abs, ends)) ** 2

    def _left_of_a_sum(self, places: Places, inputs: Sequence[Measured]) -> float:
        """The norm that rounding leaves of a bias's gradient whose terms cancel.

        It adds up the gradient that comes in over all axes but one, N terms an element, in that
        one's type: a walk by chance, each step of which is rounded, leaves u √(N / 2) of the norm.
        """
        columns = self.left.columns
        size = max(1, math.prod(columns.shapes[places[0]]))
        floors = [0.0]
        for (given, _), measure in inputs:
            terms = math.prod(columns.shapes[given]) / size
            if is_float(columns.dtypes[given]) and terms > 1 and measure.left >= 0:
                steps = min(math.sqrt(terms / 2), _MOST_STEPS)
                floors.append(roundoff(columns.dtypes[given]) * steps * measure.left)
        return max(floors)

    def _is_other_result(self, judged: Judged, outputs: Sequence[Measured]) -> bool:
        """Whether other arguments give a result of another size, from inputs that agree."""
        left, right = self.left.columns, self.right.columns
        if all(change.is_shape for change in judged.attributes) or judged.pair.left.is_module:
            return False
        if family(judged.pair.left.type) not in _SHRINK:
            return False
        if judged.error_in > LIMIT_FIGURES * max(self.past.worst, 2.0**-20):
            return False
        for places, measure in outputs:
            a, b = left.shapes[places[0]], right.shapes[places[1]]
            if math.isnan(measure.error) and math.prod(a) != math.prod(b):
                judged.verdict = "introduces error"
                judged.why = f"its result is {list(a)} on the left and {list(b)} on the right"
                judged.output, judged.z = places, math.inf
                return True
        return False

    def _has_other_kind(self, judged: Judged) -> bool:
        """Whether two functions give real numbers and complex ones, which no error is between."""
        left, right = self.left.columns.dtypes, self.right.columns.dtypes
        kinds = [
            (left[a].startswith("Complex"), right[b].startswith("Complex"))
            for a, b in judged.slots.outputs
        ]
        return _is_another_function(judged) and any(ours != theirs for ours, theirs in kinds)

    def _budget(
        self,
        pair: OpPair,
        output: Measured,
        inputs: Sequence[Measured],
        hidden: Sequence[Measured],
    ) -> tuple[float, float]:
        past, before = self.past, self.past.before(pair.left)
        if not output[1].exact and pair.left.phase == "backward":
            before = max(before, _UNSEEN_UNITS * past.unit)
        before = max(before, self._hidden_in_rows(pair.left, output, inputs))
        has_parts = (
            past.is_mixed or pair.left.phase == "backward" or pair.left.owner in past.composite
        )
        columns = self.left.columns, self.right.columns
        parts = before if has_parts else 0.0
        scalars = before if is_fused_sum(pair) else computed_scalars(pair, before)
        account = Account(pair, *columns, *output, inputs, hidden, parts, scalars, before)
        explained, floor = budget(account)
        return max(explained, self.noise.get(pair.left.index, 0.0)), floor

    def _hidden_in_rows(self, op: Op, output: Measured, inputs: Sequence[Measured]) -> float:
        """What a sum over few shows of elements that were rounded in half precision before.

        Rounded otherwise, elements differ by a unit each and at random, so extremes of sums over
        ``n`` of them do by about a unit over ``sqrt(n)``; norm and mean of all of them hide it.
        """
        is_stated = not output[1].exact and op.phase == "forward" and family(op.type) == "reduce"
        if not is_stated or self.past.unit < _HALF_UNIT or all(m.equal for _, m in inputs):
            return 0.0
        shapes = self.left.columns.shapes
        terms = max((math.prod(shapes[a]) for (a, _), _ in inputs), default=1) / max(
            1, math.prod(shapes[output[0][0]])
        )
        return _ROW_UNITS * self.past.unit / math.sqrt(terms) if terms > 1 else 0.0

    def _may_be_order(self, judged: Judged) -> bool:
        """Whether figures leave open that not the operator is at fault but an input's order.

        What joins several tensors, or reduces one, gives another result where the numbers of one
        come in another order; extremes, means and norms of that input are the same.
        """
        op = judged.pair.left
        if judged.verdict != "introduces error" or judged.entered or judged.output is None:
            return False
        measure = self.measures[judged.output]
        is_told = any(not change.is_shape for change in judged.attributes)
        if measure.exact or is_told or judged.broken or op.phase != "forward":
            return False
        if not judged.error_in < measure.error / LIMIT_FIGURES:
            return False
        gives_numbers = is_float(self.left.columns.dtypes[judged.output[0]])
        return len(op.inputs) > 1 or family(op.type) in _SHRINK or not gives_numbers

    def _are_equal(self, inputs: Sequence[Measured]) -> bool:
        return all(m.equal for _, m in inputs) and (bool(inputs) or self.past.worst == 0.0)

    def _decide(self, judged: Judged, measure: Measure) -> None:
        limit = self._limit(measure)
        changes = judged.attributes
        is_told = bool(changes) and any(not change.is_shape for change in changes)
        if self._is_first_step(judged, measure):
            judged.why = "a first optimizer step from zero state: only signs of gradients count"
        elif judged.z > limit or (
            is_told and (self._stands_out(judged, measure) or self._is_told_alone(judged, measure))
        ):
            if is_random(judged.pair.left.type) and not judged.attributes:
                judged.why = "random by intention"
            elif self._may_be_half_within(judged, measure):
                judged.untold = "half precision within the module, or a fault (level L0)"
            elif self._is_cleared(judged):
                judged.verdict = "carries error"
                judged.why = (
                    "computed again in double precision, both sides are what they should be"
                )
            else:
                judged.verdict = "introduces error"
        elif self._is_scaled(judged, measure):
            judged.verdict = "introduces error"
            judged.why = (
                f"its result is {scale_of(measure):+.2%} longer than its inputs explain: single "
                "elements hide that in their rounding, all of them together do not"
            )
        elif shift := self._shifted(judged, measure):
            judged.verdict = "introduces error"
            judged.why = (
                f"the mean of its result is off by {shift:.2g} times what rounding that many "
                "elements may change it by: some of them are further off than rounding brings"
            )
        elif changes and self._computes_otherwise(judged, measure):
            judged.verdict = "introduces error"
        elif judged.attributes and not self._gives_the_same(judged, measure):
            judged.verdict = "attribute differs"
        elif self._adds_up_in_half(judged, measure):
            judged.verdict = "introduces error"
        elif self._is_lower_precision(judged, measure):
            judged.verdict = "lower precision, explained"
        elif measure.equal and not judged.error_in:
            judged.verdict = _alike([measure])
        else:
            judged.verdict = "carries error"

    @staticmethod
    def _limit(measure: Measure) -> float:
        return LIMIT_TENSORS if measure.exact else LIMIT_FIGURES

    def _is_scaled(self, judged: Judged, measure: Measure) -> bool:
        """Whether a factor comes in here that rounding of half precision or figures would hide."""
        if not abs(scale_of(measure)) > (LEAST_EXACT if measure.exact else LEAST_FIGURES):
            return False  # most tensors: nothing below can make that too much
        op = judged.pair.left
        if op.phase != "forward" or op.parts or judged.pair.right.parts:
            return False
        if op.is_module and not is_framework_module(op.type):
            return False
        if is_random(op.type) or jumps(op.type, op.phase) or not is_comparable(measure):
            return False
        left, right = self.left.columns.dtypes, self.right.columns.dtypes
        pairs = (*judged.slots.inputs, *judged.slots.outputs)
        unit = max(coarsest([left[a] for a, _ in pairs]), coarsest([right[b] for _, b in pairs]))
        if measure.exact and unit < 2.0**-20:
            return False
        if measure.error <= self._limit(measure) * self.noise.get(op.index, 0.0):
            return False
        given = [self.measures[p] for p in judged.slots.inputs if p in self.measures]
        if any(not is_comparable(m) for m in given if m.error):
            return False
        error = max((m.error for m in given if m.error == m.error), default=0.0)
        scales = [scale_of(m) for m in given]
        assert judged.output is not None
        size = math.prod(self.left.columns.shapes[judged.output[0]])
        explained = explained_scale(scales, error, unit, measure.exact, size)
        if family(op.type) in ("sum", "matmul", "reduce"):
            explained *= max(1.0, judged.budget / max(unit, 2.0**-20) / 8)
        return abs(scale_of(measure)) > explained

    def _shifted(self, judged: Judged, measure: Measure) -> float:
        """How many times more than by chance the stated mean of a result is off; 0 if it is not.

        A few elements that are wrong show neither in extremes nor in a norm stated in half
        precision; the mean of *n* elements that are rounded is off by 1/√n of their error.
        """
        op = judged.pair.left
        assert judged.output is not None
        columns = self.left.columns, self.right.columns
        unit = coarsest([columns[0].dtypes[judged.output[0]]])
        if measure.exact or unit < _FINE or op.phase != "forward" or op.is_opaque:
            return 0.0
        if judged.pair.right.is_opaque or is_random(op.type) or jumps(op.type, op.phase):
            return 0.0
        if len(op.inputs) == 1 and family(op.type) not in _SHRINK:
            return 0.0  # element by element: other elements, which figures hide, came in
        if roundoff(columns[1].dtypes[judged.output[1]]) != unit or not is_comparable(measure):
            return 0.0
        inputs = [p for p in judged.slots.inputs if is_float(columns[0].dtypes[p[0]])]
        if any(not is_comparable(self.measures[p]) for p in inputs if p in self.measures):
            return 0.0
        given = [mean_shift(columns, places) for places in inputs]
        before = max(self.past.before(op), judged.error_in)
        explained = max(_MAGNIFIED * max(given, default=0.0), explained_shift(unit, before))
        shift = mean_shift(columns, judged.output)
        return shift / explained if shift > explained else 0.0

    def _may_be_half_within(self, judged: Judged, measure: Measure) -> bool:
        """Whether a module of the network's own may compute in half precision what it gives."""
        op = judged.pair.left
        is_hidden = op.is_module and not self.past.is_mixed and not is_framework_module(op.type)
        return is_hidden and measure.error <= HALF and not judged.attributes

    def _stands_out(self, judged: Judged, measure: Measure) -> bool:
        """Of operators with other arguments: whether that shows, against all that came before."""
        if judged.z > LIMIT_ATTRIBUTES:
            return True
        left, right = self.left.columns.dtypes, self.right.columns.dtypes
        slots = (*judged.slots.inputs, *judged.slots.outputs)
        unit = max(coarsest([left[a] for a, _ in slots]), coarsest([right[b] for _, b in slots]))
        before = max(self.past.worst, judged.error_in, 8 * unit)
        return not math.isnan(before) and measure.error > LIMIT_FIGURES * before

    def _is_told_alone(self, judged: Judged, measure: Measure) -> bool:
        """Of half precision with other arguments: whether nothing else explains what differs.

        From inputs that are equal to the bit, two kernels that round the same result once differ
        in few elements.
        """
        inputs = [self.measures[p] for p in judged.slots.inputs if p in self.measures]
        if not measure.exact or not inputs or not all(m.equal for m in inputs):
            return False
        slots = (*judged.slots.inputs, *judged.slots.outputs)
        unit = max(
            coarsest([self.left.columns.dtypes[a] for a, _ in slots]),
            coarsest([self.right.columns.dtypes[b] for _, b in slots]),
        )
        return unit > _FINE and measure.error > _TOLD_UNITS * unit

    def _computes_otherwise(self, judged: Judged, measure: Measure) -> bool:
        """Whether half precision hides what other arguments do to one and the same input."""
        left, right = judged.pair.left, judged.pair.right
        if left.phase != "forward" or judged.output is None or not measure.exact:
            return False
        if has_other_operands(judged, self.measures):
            return False  # what they make of the same is no matter
        if left.type != right.type and family(left.type) == family(right.type) == "matmul":
            return False  # one product, of a matrix that each reads the other way round
        columns = self.left.columns
        unit = coarsest([columns.dtypes[place] for place in left.tensors])
        if unit < _FINE or left.is_opaque or right.is_opaque:
            return False
        label = columns.labels[judged.output[0]]
        apart = difference_of_functions(self.left, left, right, label)
        if not apart > _TOLD_UNITS * unit:
            return False
        judged.why = (
            f"of the left inputs both, computed in double precision, make results that are "
            f"{error_text(apart)} apart: rounding to half precision hides that"
        )
        return True

    def _adds_up_in_half(self, judged: Judged, measure: Measure) -> bool:
        if not measure.exact or self.sharded:  # ranks round their terms before they add them up
            return False
        forward = self.past.forward.get(judged.pair.left.call)
        if judged.pair.left.phase != "backward":
            forward = None
        side = adds_up_in_half(self.left, self.right, judged, measure, forward)
        if side:
            judged.wrong = side
            judged.why = (
                f"the {side} output is further from what its inputs give than rounding them and "
                "it explains: the sum is rounded on its way"
            )
        return bool(side)

    def _is_first_step(self, judged: Judged, measure: Measure) -> bool:
        """A quotient of moments that began at zero turns gradients into signs."""
        if measure.exact or not self.past.zero_state or judged.attributes:
            return False
        op = judged.pair.left
        divides = op.type.lower() in ("addcdiv_", "addcdiv") or family(op.type) == "optimizer"
        return divides and measure.error > max(_SIGNS, 2 * judged.error_in)

    def _is_cleared(self, judged: Judged) -> bool:
        if judged.attributes or judged.pair.left.parts or judged.pair.right.parts:
            return False
        if judged.pair.left.type != judged.pair.right.type and self.same_framework:
            return False
        forward = self.past.forward.get(judged.pair.left.call)
        if not only_propagates(self.left, self.right, judged, forward, self.measures):
            return False
        if self.same_framework:
            return True
        is_norm = family(judged.pair.left.type) == "norm"
        most = _OTHER_EPSILON if is_norm else _OTHER_ARGUMENTS
        if judged.error_out <= most * max(judged.error_in, 2.0**-24):
            return True
        difference = "another epsilon" if is_norm else "other arguments"
        judged.why = f"from equal inputs both sides are what they should be: with {difference}"
        return False

    def _is_lower_precision(self, judged: Judged, measure: Measure) -> bool:
        if not judged.error_out > judged.error_in and not self._is_declared_lower(judged, measure):
            return False
        left, right = self.left.columns, self.right.columns
        pairs = (*judged.slots.inputs, *judged.slots.outputs)
        ours, theirs = [left.dtypes[a] for a, _ in pairs], [right.dtypes[b] for _, b in pairs]
        ours += part_dtypes(judged.pair.left, left)
        theirs += part_dtypes(judged.pair.right, right)
        return coarsest(ours) != coarsest(theirs) and coarsest([*ours, *theirs]) > _FINE

    def _gives_the_same(self, judged: Judged, measure: Measure) -> bool:
        """Whether a call of another name gives the same, or one whose axes have another order."""
        has_other_axes = self._has_other_axes(judged)
        is_other = _is_another_function(judged) or has_other_operands(judged, self.measures)
        if not is_other and not has_other_axes:
            return False
        is_view = family(judged.pair.left.type) == "view" and not has_other_axes
        if measure.equal:
            return True
        if is_spelled_otherwise(judged.pair) and (measure.exact or not is_view):
            return True  # explained as rounding, and figures of views do not tell their order
        carried = max(self.past.before(judged.pair.left), judged.error_in)
        rounding = max(LEAST_UNITS * _SINGLE, min(_MORE * carried, _BELOW_ALL))
        if measure.error <= rounding and (measure.exact or not is_view):
            return True
        if has_other_operands(judged, self.measures):
            unit = coarsest([self.left.columns.dtypes[p] for p in judged.pair.left.outputs])
            before = self.past.before(judged.pair.left)
            even = explained_scale([], before, unit, measure.exact)
            return measure.error <= math.hypot(before, 2 * unit) and abs(scale_of(measure)) <= even
        if self._is_one_function(judged, measure):
            return True
        carried = _HANDED_ON * judged.error_in
        return _is_renamed(judged) and measure.error <= carried <= _HALF_ROUNDED

    def _is_one_function(self, judged: Judged, measure: Measure) -> bool:
        """Whether two names are of one function, as ``pow(x, 2)`` and ``square(x)`` are.

        Computed in double precision of the left inputs they make the same; gradients are those of
        calls of which that was said.
        """
        op, other = judged.pair.left, judged.pair.right
        if op.phase == "backward":
            forward = self.past.forward.get(op.call)
            return forward is not None and forward.verdict in _THE_SAME
        if not measure.exact or judged.output is None or op.is_opaque or other.is_opaque:
            return False
        label = self.left.columns.labels[judged.output[0]]
        return difference_of_functions(self.left, op, other, label) <= _ONE_FUNCTION

    def _has_other_axes(self, judged: Judged) -> bool:
        """Whether the axes of a result come in another order on the other side."""
        shapes = [
            (self.left.columns.shapes[a], self.right.columns.shapes[b])
            for a, b in judged.slots.outputs
        ]
        return any(ours != theirs and sorted(ours) == sorted(theirs) for ours, theirs in shapes)

    def _is_declared_lower(self, judged: Judged, measure: Measure) -> bool:
        """Whether types say it though the error came in with a cast, the first that rounds so."""
        if judged.output is None or self.past.worst > HALF / 4:
            return False
        a, b = judged.output
        ours, theirs = self.left.columns.dtypes[a], self.right.columns.dtypes[b]
        return roundoff(ours) != roundoff(theirs)


def _alike(outputs: Iterable[Measure]) -> Verdict:
    """What can be said of results that are equal: figures alone do not tell the order of values."""
    is_exact = all(measure.exact or measure.is_checksum for measure in outputs)
    return "equal bits" if is_exact else "equal figures"


def _is_renamed(judged: Judged) -> bool:
    """Whether nothing about a call differs but what the operator is called."""
    return all(change.name == "operator" for change in judged.attributes)


def _is_another_function(judged: Judged) -> bool:
    """Whether the calls are of two functions, whose arguments say nothing of each other."""
    return any(change.name == "operator" for change in judged.attributes)


def _no_output(judged: Judged, floors: int, notes: Sequence[str]) -> None:
    """No output could be judged."""
    if floors:
        judged.verdict = "below rounding floor"
        judged.why = "the result is rounding residue: its terms cancel"
        return
    judged.why = notes[0] if notes else "no float output on both sides"
    if judged.attributes and not (_is_renamed(judged) and is_spelled_otherwise(judged.pair)):
        judged.verdict = "attribute differs"


def _note_origin(judged: Judged, inputs: Sequence[Measured], outputs: Sequence[Measured]) -> None:
    """Say on which sides NaN or infinity comes out where none went in, masks excepted."""
    left = right = False
    for _, measure in outputs:
        left = left or measure.broken_left > 0
        right = right or measure.broken_right > 0
    if not (left or right) or any(is_broken(m) for _, m in inputs) or _masks(judged.pair):
        return
    judged.broken = "both" if left and right else "left" if left else "right" if right else ""


def _masks(pair: OpPair) -> bool:
    """Whether infinity is what an operator was asked for."""
    for op in (pair.left, pair.right):
        if any(isinstance(v, float) and not math.isfinite(v) for v in op.attributes.values()):
            return True
    return pair.left.type.lower() in ("full", "fill", "fill_", "where", "select", "tensor")


def _breaks(judged: Judged, inputs: Sequence[Measured], outputs: Sequence[Measured]) -> bool:
    """NaN and infinity that only one side has; what both have alike, a mask say, is left out."""
    new = next((item for item in outputs if not is_broken_alike(item[1])), None)
    if new is None:
        return False
    if any(is_broken(m) and not is_broken_alike(m) for _, m in inputs):
        judged.why = "NaN or infinity"
        return True
    places, measure = new
    judged.wrong = "left" if measure.broken_left > measure.broken_right else "right"
    judged.verdict = "introduces error"
    judged.z = judged.error_out = math.inf
    judged.output = places
    kind = "finite" if not any(is_broken(m) for _, m in inputs) else "equally finite"
    judged.why = f"NaN or infinity on the {judged.wrong} side, from {kind} inputs"
    return True
