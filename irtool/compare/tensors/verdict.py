"""Which operator introduces error: what it puts out against what its inputs explain.

The error of an output that its operator may have is what its inputs bring, magnified as the
operator magnifies, plus the rounding of a sum of ``k`` terms (``sqrt(k)`` roundings, Higham and
Mary 2019; measured constant 0.01 to 0.40, so 1 leaves room), plus that of storing it.  The ratio
``z`` of the error to that budget is around 1 or far below for healthy operators; a fault gives
hundreds and more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from irtool.compare.tensors.attributes import AttributeChange, changed_attributes
from irtool.compare.tensors.dtypes import coarsest, is_float, roundoff
from irtool.compare.tensors.measure import Measure
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.compare.tensors.pairing import OpPair, Slots
from irtool.compare.tensors.precision import true_unit
from irtool.compare.tensors.reexecute import recomputed, state_before
from irtool.compare.tensors.semantics import Family, family, reduction_length
from irtool.ir.node import Node

Verdict: TypeAlias = Literal[
    "equal bits",
    "carries error",
    "lower precision, explained",
    "introduces error",
    "attribute differs",
    "below rounding floor",
    "not comparable",
]

LIMIT_TENSORS = 3.0
"""``z`` from which an operator introduces error, where values or sketches are compared."""
LIMIT_FIGURES = 10.0
"""The same where only stated figures are: they see less of an input's error."""
ENTERS = 8.0
"""How many times further than anything before an input must be apart to have got its error from
operations that the dump does not show; from figures :data:`ENTERS_FIGURES`."""
ENTERS_FIGURES = 40.0
_RECOMPUTED = 3.0
_MEAN = frozenset(("mean", "reducemean", "meanext"))


@dataclass(slots=True)
class Judged:
    """What came of one operator pair.

    Attributes:
        pair: the operators.
        slots: their tensors.
        verdict: in one word.
        z: the largest ratio of error to budget of an output; NaN where there is none.
        error_in: largest relative error of an input (of a gradient, of the forward tensors too).
        error_out: relative error of the output that decided.
        budget: what of it is explained.
        output: places of that output in both dumps.
        entered: the input whose error comes from nowhere, if it is that which is accused.
        attributes: what differs in their arguments.
        why: in words.
        wrong: the side that does not put out what its own inputs give, where that was computed.
        broken: NaN or infinity comes from here.
        parameter: the input that is accused is a parameter of the network.
        maker_left, maker_right: operators that made the input that is accused, where the other
            side has no partner for them: an operator that was added, removed or replaced.
    """

    pair: OpPair
    slots: Slots
    verdict: Verdict = "not comparable"
    z: float = math.nan
    error_in: float = math.nan
    error_out: float = math.nan
    budget: float = math.nan
    output: tuple[int, int] | None = None
    entered: str = ""
    attributes: tuple[AttributeChange, ...] = ()
    why: str = ""
    wrong: str = ""
    broken: str = ""
    parameter: bool = False
    maker_left: Op | None = None
    maker_right: Op | None = None


@dataclass(slots=True)
class Judge:
    """Judges operator pairs in the order of the left dump; remembers what came before."""

    left: TensorRun
    right: TensorRun
    measures: Mapping[tuple[int, int], Measure]
    same_framework: bool = True
    parameters_known: bool = False
    forward: dict[str, Judged] = field(default_factory=dict[str, Judged])
    worst: float = 0.0
    residue: set[tuple[int, float]] = field(default_factory=set[tuple[int, float]])
    zero_state: bool = False
    changed: Mapping[Node, Sequence[str]] = field(default_factory=dict[Node, Sequence[str]])
    composite: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        for op in self.left.ops:
            parent = op.owner.rpartition(".")[0] if op.is_module else ""
            while parent and parent not in self.composite:
                self.composite.add(parent)
                parent = parent.rpartition(".")[0]

    def judge(self, pair: OpPair, slots: Slots) -> Judged:
        """The verdict on one pair."""
        found = Judged(pair, slots)
        op = pair.left
        if self.same_framework:
            found.attributes = tuple(self._attributes(pair, slots))
        self._classify(found)
        self._remember(found)
        if op.phase == "forward" and op.call:
            self.forward[op.call] = found
        return found

    # -- one operator

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
        if self._is_broken(found, inputs, outputs):
            return
        if outputs and all(m.equal for _, m in (*inputs, *outputs)):
            found.verdict = "attribute differs" if found.attributes else "equal bits"
            found.error_in = found.error_out = 0.0
            return
        if not found.attributes and self._is_rounding(inputs, outputs):
            found.verdict = "carries error"
            found.error_in = max((m.error for _, m in inputs), default=0.0)
            worst = max(outputs, key=lambda item: item[1].error)
            found.output, found.error_out = worst[0], worst[1].error
            found.budget = 2 * roundoff(columns.dtypes[worst[0][0]])
            found.z = found.error_out / found.budget
            return
        hidden = self._hidden(pair.left)
        known = [m.error for _, m in (*inputs, *hidden) if not math.isnan(m.error)]
        found.error_in = max(known, default=0.0 if pair.left.inputs else math.nan)
        if self._enters(found, inputs):
            return
        self._outputs(found, inputs, hidden, outputs)

    def _is_rounding(
        self,
        inputs: Sequence[tuple[tuple[int, int], Measure]],
        outputs: Sequence[tuple[tuple[int, int], Measure]],
    ) -> bool:
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

    def _outputs(
        self,
        found: Judged,
        inputs: Sequence[tuple[tuple[int, int], Measure]],
        hidden: Sequence[tuple[tuple[int, int], Measure]],
        outputs: Sequence[tuple[tuple[int, int], Measure]],
    ) -> None:
        """Every output against its budget; the worst one decides."""
        left = self.left.columns
        best: tuple[float, float, tuple[int, int], Measure] | None = None
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
            budget, floor = self._budget(found.pair, places, measure, inputs, hidden)
            least = min(measure.left, measure.right)
            if max(measure.left, measure.right) < floor or 0 < least < floor:
                floors += 1
                self._mark_residue(places)
                continue
            z = measure.error / budget if budget else (math.inf if measure.error else 0.0)
            if best is None or z > best[0]:
                best = (z, budget, places, measure)
        if best is None:
            if floors:
                found.verdict = "below rounding floor"
                found.why = "the result is rounding residue: its terms cancel"
            else:
                found.why = notes[0] if notes else "no float output on both sides"
                if found.attributes:
                    found.verdict = "attribute differs"
            return
        found.z, found.budget, found.output, measure = best
        found.error_out = measure.error
        self._decide(found, measure)

    def _are_equal(self, inputs: Sequence[tuple[tuple[int, int], Measure]]) -> bool:
        return all(m.equal for _, m in inputs) and (bool(inputs) or self.worst == 0.0)

    def _decide(self, found: Judged, measure: Measure) -> None:
        limit = LIMIT_TENSORS if measure.exact else LIMIT_FIGURES
        op = found.pair.left
        if found.z > limit:
            if self._is_random(found):
                found.why = "random by intention"
            elif self._is_first_step(found, measure):
                found.why = "a first optimizer step from zero state: only signs of gradients count"
            elif self._only_propagates(found):
                found.verdict = "carries error"
                found.why = "computed again in double precision, both sides are what they should be"
            else:
                found.verdict = "introduces error"
            return
        if found.attributes:
            found.verdict = "attribute differs"
        elif self._is_lower_precision(found):
            found.verdict = "lower precision, explained"
        elif measure.equal:
            found.verdict = "equal bits" if not found.error_in else "carries error"
        else:
            found.verdict = "carries error"
        del op

    # -- budget

    def _budget(
        self,
        pair: OpPair,
        places: tuple[int, int],
        out: Measure,
        inputs: Sequence[tuple[tuple[int, int], Measure]],
        hidden: Sequence[tuple[tuple[int, int], Measure]],
    ) -> tuple[float, float]:
        """The relative error that is explained, and the norm below which a result is residue."""
        op, left, right = pair.left, self.left.columns, self.right.columns
        kind = family(op.type)
        float_inputs = [
            (p, m) for p, m in inputs if is_float(left.dtypes[p[0]]) and not math.isnan(m.error)
        ]
        extra = [(p, m) for p, m in hidden if not math.isnan(m.error)]
        places_used = [*(p for p, _ in float_inputs), *(p for p, _ in extra), places]
        unit = max(
            coarsest([left.dtypes[a] for a, _ in places_used]),
            coarsest([right.dtypes[b] for _, b in places_used]),
            2.0**-53,
        )
        shapes = [left.shapes[p[0]] for p, _ in (*float_inputs, *extra)]
        output = left.shapes[places[0]]
        opaque = op.is_module or kind == "unknown"
        length = reduction_length(kind, op.phase, shapes, output, opaque)
        accumulate = 2.0**-53 if unit < 2.0**-40 else 2.0**-24
        norm = max(out.left, out.right)
        chi, terms = self._magnification(kind, op, float_inputs, extra, length, norm, output)
        errors = [m.error for _, m in float_inputs]
        if kind == "sum" and op.phase != "backward" and norm:
            carried = sum(m.distance for _, m in float_inputs) / norm * _factor(op)
        elif op.phase == "backward" or op.is_module:
            carried = math.sqrt(sum(e * e for e in [*errors, *(m.error for _, m in extra)])) * chi
        else:
            carried = max(errors, default=0.0) * chi
        stored = chi if kind in ("sum", "reduce", "matmul", "softmax", "norm") else 1.0
        lossy = 4.0 if opaque and op.is_module else 1.0
        if (
            opaque
            and op.is_module
            and (op.phase == "backward" or pair.left.owner in self.composite)
        ):
            carried = max(carried, 4.0 * self.worst)  # parts of it have run, and are judged
        budget = 1.42 * carried + lossy * (
            chi * math.sqrt(length) * accumulate + 2 * unit * min(stored, 1e3)
        )
        budget += max(left.resolution, right.resolution)
        floor = 3.0 * math.sqrt(length) * accumulate * terms if terms else 0.0
        return budget, floor

    def _magnification(
        self,
        kind: Family,
        op: Op,
        inputs: Sequence[tuple[tuple[int, int], Measure]],
        hidden: Sequence[tuple[tuple[int, int], Measure]],
        length: float,
        norm: float,
        output: tuple[int, ...],
    ) -> tuple[float, float]:
        """How much larger relative errors leave than they came, and the norm of all terms.

        Both from the norms alone, which every dump has.
        """
        norms = [max(m.left, m.right) for _, m in (*inputs, *hidden)]
        norms = [each for each in norms if not math.isnan(each)]
        if not norm or not norms or math.isnan(norm):
            return 1.0, 0.0
        if op.type.lower() in _MEAN:
            norm *= length
        count = max(1, math.prod(output))
        if kind == "matmul" and op.phase != "backward" and len(norms) >= 2:
            random = norms[0] * norms[1] / math.sqrt(length)
            return max(1.0, random / norm), norms[0] * norms[1] * 0.8
        if kind == "matmul" and op.phase == "backward":
            if len(output) == 1 and inputs:  # the gradient of a bias adds rows up
                return max(1.0, norms[0] / norm), norms[0] * math.sqrt(length)
            return 2.0, 0.0
        if kind in ("reduce", "bias gradient", "scatter"):
            return max(1.0, norms[0] / norm), norms[0] * math.sqrt(length)
        if kind == "sum" and op.phase != "backward":
            return max(1.0, sum(norms) / norm), 0.0
        if kind == "norm":
            if op.phase == "backward" and len(output) == 1:
                return max(2.0, norms[0] / norm), norms[0] * math.sqrt(length)
            return (4.0 if op.phase == "backward" else self._centred(inputs)), 0.0
        if kind in ("softmax", "attention", "loss"):
            rms = norms[0] / math.sqrt(max(1, self._elements(inputs)))
            if kind == "loss":
                return max(2.0, 2 * rms * math.sqrt(count) / norm), 0.0
            return max(2.0, 2.0 * rms), 0.0
        if op.is_module or kind == "unknown":
            return 3.0, 0.0
        return (2.0 if kind in ("elementwise", "optimizer") else 1.0), 0.0

    def _elements(self, inputs: Sequence[tuple[tuple[int, int], Measure]]) -> int:
        return math.prod(self.left.columns.shapes[inputs[0][0][0]]) if inputs else 1

    def _centred(self, inputs: Sequence[tuple[tuple[int, int], Measure]]) -> float:
        """A norm takes the mean away: what is left over may be small."""
        (a, _), measure = inputs[0]
        mean = self.left.columns.mean[a]
        size = self._elements(inputs)
        square = (measure.left**2) / size if size else 0.0
        if math.isnan(mean) or square <= mean * mean or not square:
            return 1.5
        return max(1.5, math.sqrt(square / (square - mean * mean)))

    # -- what is not for the operator to answer for

    def _hidden(self, op: Op) -> list[tuple[tuple[int, int], Measure]]:
        """Tensors of the forward call that a gradient computes with."""
        if op.phase != "backward" or not op.call:
            return []
        forward = self.forward.get(op.call)
        if forward is None:
            return []
        places = (*forward.slots.inputs, *forward.slots.outputs)
        dtypes = self.left.columns.dtypes
        return [
            (p, self.measures[p]) for p in places if p in self.measures and is_float(dtypes[p[0]])
        ]

    def _enters(self, found: Judged, inputs: Sequence[tuple[tuple[int, int], Measure]]) -> bool:
        """Whether an input is further apart than all that came before could explain."""
        left, right = self.left.columns, self.right.columns
        op = found.pair.left
        for places, measure in inputs:
            if math.isnan(measure.error) or measure.error == 0:
                continue
            if not is_float(left.dtypes[places[0]]):
                if self._is_residue(places[0]) or self.worst > 0 or op.phase != "forward":
                    continue
                found.entered = f"{left.labels[places[0]]} is not the same on both sides"
                self._accuse(found, places, measure)
                return True
            unit = max(roundoff(left.dtypes[places[0]]), roundoff(right.dtypes[places[1]]))
            if places[0] in op.parameters:
                units = 8 if measure.exact else 40  # an extreme alone may be unlucky
                if self.parameters_known or measure.error <= units * unit:
                    continue
                if measure.error <= units * self._true_unit(found, places):
                    continue
                found.entered = f"{left.labels[places[0]]}, a parameter, differs before it is used"
                found.parameter = True
                self._accuse(found, places, measure)
                return True
            if self._is_residue(places[0]):
                continue
            factor = ENTERS if measure.exact else ENTERS_FIGURES
            if measure.error > factor * max(self.worst, 4 * unit):
                if measure.error <= factor * 4 * self._true_unit(found, places):
                    continue
                if self._has_no_effect(found, unit, factor):
                    continue  # a sum does not care which of its terms comes first
                found.entered = f"{left.labels[places[0]]} is further apart than anything before it"
                self._accuse(found, places, measure)
                return True
        return False

    def _has_no_effect(self, found: Judged, unit: float, factor: float) -> bool:
        errors = [self.measures[p].error for p in found.slots.outputs if p in self.measures]
        limit = max(factor * self.worst, 8 * unit)
        return bool(errors) and all(error <= limit for error in errors)

    def _true_unit(self, found: Judged, places: tuple[int, int]) -> float:
        """The coarsest precision that a tensor has been through, whatever it is kept in now."""
        return max(
            true_unit(self.left, found.pair.left, places[0]),
            true_unit(self.right, found.pair.right, places[1]),
        )

    def _accuse(self, found: Judged, places: tuple[int, int], measure: Measure) -> None:
        found.verdict = "introduces error"
        found.error_out, found.output = measure.error, places
        found.error_in = self.worst
        found.budget = max(self.worst, 2.0**-24)
        found.z = measure.error / found.budget

    def _is_broken(
        self,
        found: Judged,
        inputs: Sequence[tuple[tuple[int, int], Measure]],
        outputs: Sequence[tuple[tuple[int, int], Measure]],
    ) -> bool:
        """NaN and infinity: where they come out and did not go in."""
        for side in ("left", "right"):
            went = any(getattr(m, f"broken_{side}") > 0 for _, m in inputs)
            came = any(getattr(m, f"broken_{side}") > 0 for _, m in outputs)
            other = "broken_right" if side == "left" else "broken_left"
            if came and not went:
                found.broken = "both" if found.broken else side
                if all(getattr(m, other) <= 0 for _, m in outputs):
                    found.verdict = "introduces error"
                    found.z = math.inf
                    found.output = outputs[0][0]
                    found.error_in = max(
                        (m.error for _, m in inputs if not math.isnan(m.error)), default=0.0
                    )
                    found.error_out = math.inf
                    found.wrong = side
                    found.why = f"NaN or infinity on the {side} side, from finite inputs"
        if found.verdict == "introduces error":
            return True
        if any(m.broken_left > 0 or m.broken_right > 0 for _, m in (*inputs, *outputs)):
            found.why = "NaN or infinity"
            return True
        return False

    def _is_random(self, found: Judged) -> bool:
        return "dropout" in found.pair.left.type.lower()

    def _is_first_step(self, found: Judged, measure: Measure) -> bool:
        """A quotient of moments that began at zero turns gradients into signs."""
        op = found.pair.left
        divides = op.type.lower() in ("addcdiv_", "addcdiv") or family(op.type) == "optimizer"
        return not measure.exact and divides and self.zero_state and not found.attributes

    def _only_propagates(self, found: Judged) -> bool:
        """Whether each side's output is what its own inputs give."""
        if found.attributes or found.output is None:
            return False
        if found.pair.left.type != found.pair.right.type and self.same_framework:
            return False
        state = self._same_state(found)
        if state is not None:
            return state
        errors: list[float] = []
        sides = ((self.left, found.pair.left, 0), (self.right, found.pair.right, 1))
        for run, op, which in sides:
            forward = self.forward.get(found.pair.left.call)
            call = None
            if forward is not None and op.phase == "backward":
                call = (forward.pair.left, forward.pair.right)[which]
            results = recomputed(run, op, call)
            ratio = _ratio(run, op, results, found.output[which])
            if ratio is None:
                return False
            errors.append(ratio)
        wrong = [name for name, ratio in zip(("left", "right"), errors, strict=True)
                 if ratio > _RECOMPUTED]  # fmt: skip
        if wrong:
            found.wrong = " and ".join(wrong)
            found.why = (
                f"computed again in double precision, the {found.wrong} output is not what its "
                f"inputs give ({max(errors):.3g} times the rounding that is allowed)"
            )
        return not wrong

    def _same_state(self, found: Judged) -> bool | None:
        """Of an optimizer: whether both sides found the same state; None where nobody knows."""
        from irtool.compare.tensors.measure import measure_arrays

        ours = state_before(self.left, found.pair.left)
        theirs = state_before(self.right, found.pair.right) if ours else None
        if ours is None or theirs is None:
            return None
        for places in found.slots.outputs:
            label = self.left.columns.labels[places[0]]
            after = self.measures.get(places)
            if label not in ours or label not in theirs or after is None:
                continue
            before = measure_arrays(ours[label], theirs[label])
            if before.distance > 64 * 2.0**-24 * max(after.left, after.right):
                return False
        return True

    def _is_lower_precision(self, found: Judged) -> bool:
        left, right = self.left.columns, self.right.columns
        pairs = (*found.slots.inputs, *found.slots.outputs)
        ours = coarsest([left.dtypes[a] for a, _ in pairs])
        theirs = coarsest([right.dtypes[b] for _, b in pairs])
        return ours != theirs and found.error_out > found.error_in

    # -- memory

    def _attributes(self, pair: OpPair, slots: Slots) -> Iterator[AttributeChange]:
        left, right = self.left.columns, self.right.columns
        if pair.left.type.lower() != pair.right.type.lower():
            yield AttributeChange("operator", pair.left.type, pair.right.type)
        computed = _computed(pair.left)
        for change in changed_attributes(pair.left.attributes, pair.right.attributes):
            if change.name not in computed:
                yield change
        for a, b in (*slots.inputs, *slots.outputs):
            ours, theirs = left.shapes[a], right.shapes[b]
            if ours != theirs and len(ours) == len(theirs):
                yield AttributeChange(f"{left.labels[a]} shape", str(ours), str(theirs))
        if len(slots.only_left) != len(slots.only_right) and pair.how != "graph":
            for at in slots.only_left:
                yield AttributeChange(left.labels[at], _tensor_text(left, at), "(none)")
            for at in slots.only_right:
                yield AttributeChange(right.labels[at], "(none)", _tensor_text(right, at))
        if pair.left.node is not None:
            for text in self.changed.get(pair.left.node, ()):
                name, _, rest = text.partition(": ")
                before, _, after = rest.partition(" → ")
                yield AttributeChange(name, before, after)

    def _remember(self, found: Judged) -> None:
        op, columns = found.pair.left, self.left.columns
        if op.type.lower() in ("lerp_", "lerp") and op.inputs:
            self.zero_state = columns.norm[op.inputs[0]] == 0.0
        tainted = any(self._is_residue(a) for a, _ in found.slots.inputs)
        if tainted or found.verdict == "below rounding floor":
            for places in found.slots.outputs:
                measure = self.measures.get(places)
                if measure is None:
                    continue
                small = measure.error > 0.02 or math.isnan(measure.error)
                if found.verdict == "below rounding floor" or small:
                    self._mark_residue(places)
            return
        if found.verdict in ("not comparable", "equal bits") or op.phase == "optimizer":
            return
        for places in found.slots.outputs:
            measure = self.measures.get(places)
            if measure is not None and measure.error > self.worst:
                self.worst = measure.error

    def _mark_residue(self, places: tuple[int, int]) -> None:
        key = self._value(places[0])
        if key is not None:
            self.residue.add(key)

    def _is_residue(self, place: int) -> bool:
        key = self._value(place)
        return key is not None and key in self.residue

    def _value(self, place: int) -> tuple[int, float] | None:
        """What tells a tensor of the left dump from others: size and norm."""
        columns = self.left.columns
        norm = columns.norm[place]
        if math.isnan(norm) or norm == 0.0:
            return None
        return math.prod(columns.shapes[place]), norm


def _factor(op: Op) -> float:
    """Of additions with a factor (addcmul, lerp) the terms are smaller than they look."""
    return 1.0 if op.type.lower() not in ("lerp_", "lerp") else 2.0


def _computed(op: Op) -> frozenset[str]:
    """Scalar inputs that other operators compute: they carry error like any tensor."""
    if op.node is None:
        return frozenset()
    found: set[str] = set()
    for place, source in enumerate(op.node.inputs):
        steps = 0
        while isinstance(source, Node) and source.op in ("Load", "Depend") and steps < 20:
            source = source.inputs[0] if source.inputs else None
            steps += 1
        if isinstance(source, Node):
            found.add(f"input.{place}")
    return frozenset(found)


def _ratio(
    run: TensorRun, op: Op, results: Mapping[str, object] | None, place: int
) -> float | None:
    """Error of a stored output against the computed one, over what rounding allows."""
    from irtool.compare.tensors.measure import measure_arrays
    from irtool.compare.tensors.payload import BadPayload, read_array

    columns = run.columns
    expected = results.get(columns.labels[place]) if results else None
    if expected is None or not columns.files[place]:
        return None
    try:
        stored = read_array(columns.files[place], columns.dtypes[place])
    except BadPayload:
        return None
    measure = measure_arrays(stored, expected)  # type: ignore[arg-type]  # kernels give arrays
    if math.isnan(measure.error):
        return None
    kind = family(op.type)
    shapes = [columns.shapes[at] for at in op.inputs]
    length = reduction_length(kind, op.phase, shapes, columns.shapes[place], False)
    unit = coarsest([columns.dtypes[at] for at in op.tensors])
    return measure.error / (math.sqrt(length) * 2.0**-24 + 2 * unit)


def _tensor_text(columns: Columns, place: int) -> str:
    shape = ", ".join(map(str, columns.shapes[place]))
    return f"{columns.dtypes[place]}[{shape}]"


def first_fault(judged: Sequence[Judged]) -> Judged | None:
    """The first operator that introduces error, in the order of execution."""
    return next((item for item in judged if item.verdict == "introduces error"), None)
