"""Two tensor dumps of the same step: pairs, measures, verdicts, in one result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from irtool.compare.tensors.join import Joined
from irtool.compare.tensors.judging.judge import Judge
from irtool.compare.tensors.judging.left_open import leave_open
from irtool.compare.tensors.judging.lookback import look_back
from irtool.compare.tensors.judging.multiple import note_multiple
from irtool.compare.tensors.judging.otherwise import called_otherwise, given_other_rows
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.picked import left_out, picked_from
from irtool.compare.tensors.judging.regrouped import regrouped
from irtool.compare.tensors.judging.rejoined import rejoined
from irtool.compare.tensors.judging.scaling import gradient_scale
from irtool.compare.tensors.judging.verdict import Judged, first_fault
from irtool.compare.tensors.measuring.alike import likeness
from irtool.compare.tensors.measuring.measure import Measure, Scheduler, Sides, measure_all
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.cause import order_of_cause
from irtool.compare.tensors.pairing.crossing import Crossing, cross
from irtool.compare.tensors.pairing.makers import Makers, taken_calls
from irtool.compare.tensors.pairing.operators import OpPair, pair_operators
from irtool.compare.tensors.pairing.slots import Slots, pair_parameter_gradients, pair_tensors
from irtool.compare.tensors.pairing.transposed import measure_elsewhere, measure_transposed
from irtool.compare.tensors.weights.comparison import Weights, compare_weights
from irtool.compare.tensors.weights.given import computed_weights
from irtool.compare.tensors.whole_numbers import difference_text, is_whole
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

if TYPE_CHECKING:
    from irtool.compare.graph_diff import GraphDiff


@dataclass(slots=True)
class TensorComparison:
    """What came of comparing the tensors of one step of one rank.

    Attributes:
        left, right: the dumps.
        judged: operator pairs in the order of the left dump.
        measures: of every pair of tensors.
        only_left, only_right: operators without a partner.
        joined_left, joined_right: how each dump came together with a graph; None without one.
        first: the first operator that introduces error.
        fingerprints: of two frameworks, how many distinct tensors of the left dump have a partner
            by value: ``{"forward": (found, all), "backward": (found, all)}``.
        crossing: of two frameworks, what could be paired of their calls.
        graphs: the difference of the graphs that both dumps were joined with.
        gradient_scale: the factor of the right run's gradients, 1 where they have none.
        weights: what came of the weights of the first step as sets of numbers; None of runs that
            were put together of slices.
    """

    left: TensorRun
    right: TensorRun
    judged: list[Judged]
    measures: Mapping[tuple[int, int], Measure]
    only_left: list[Op]
    only_right: list[Op]
    joined_left: Joined | None = None
    joined_right: Joined | None = None
    first: Judged | None = None
    fingerprints: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    gradient_scale: float = 1.0
    crossing: Crossing | None = None
    graphs: GraphDiff | None = None
    weights: Weights | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Operator pairs by verdict."""
        return dict(Counter(item.verdict for item in self.judged))

    @property
    def is_equal(self) -> bool:
        """Whether every tensor is the same and nothing is missing on either side."""
        return (
            bool(self.judged)
            and not self.only_left
            and not self.only_right
            and all(measure.equal for measure in self.measures.values())
        )

    @property
    def unequal(self) -> list[Judged]:
        """Operator pairs of which a tensor differs in a bit, or in a stated figure."""
        return [
            item
            for item in self.judged
            if not all(self.measures[p].equal for p in (*item.slots.inputs, *item.slots.outputs))
        ]

    @property
    def faults(self) -> list[Judged]:
        """All operators that introduce error."""
        return [item for item in self.judged if item.verdict == "introduces error"]

    @property
    def origins(self) -> list[Judged]:
        """Where NaN or infinity first appears, whichever side."""
        return [item for item in self.judged if item.broken]


def compare_tensors(
    left: TensorRun,
    right: TensorRun,
    *,
    nodes: Mapping[Node, Node] | None = None,
    changed: Mapping[Node, Sequence[str]] | None = None,
    given: Mapping[str, str] | None = None,
    schedule: Scheduler | None = None,
    training: Training = "first step",
    sharded: bool = False,
    noise: Mapping[int, float] | None = None,
    known: Mapping[int, int] | None = None,
) -> TensorComparison:
    """Compare two dumps of one step.

    Args:
        left: the dump that is trusted more.
        right: the other.
        nodes: matched nodes of the graphs that both were joined with.
        changed: what differs in matched nodes of the left graph, in words.
        given: names of the left dump and what they are called in the right one.
        schedule: where files are measured; here, if it is not given.
        training: what parameters have been through before this step.
        sharded: one of them was put together of slices: ``nodes`` are all pairs there are, and
            arguments follow the slices.
        noise: of operators of the left dump, by index, how far their results were off in other
            healthy runs (:func:`noise_of`).
        known: indices of operators that are the same one: all pairs there are.
    """
    same = left.framework == right.framework or not left.framework or not right.framework
    crossing = None if same or not (left.order_known and right.order_known) else cross(left, right)
    if known is not None:
        crossing = None
        pairs = [OpPair(left.ops[a], right.ops[b], "order") for a, b in sorted(known.items())]
    else:
        pairs = pair_operators(left, right, nodes, given, calls=crossing is None and not sharded)
    slots = [pair_tensors(pair, left.columns, right.columns) for pair in pairs]
    if not same:
        slots = pair_parameter_gradients(pairs, slots, left.columns, right.columns)
    if crossing is not None:
        pairs, slots = _with_crossing(pairs, slots, crossing)
    else:
        moved = order_of_cause(left) if left.order_known else {}
        order = [moved.get(pair.left.index, float(pair.left.index)) for pair in pairs]
        pairs, slots = _in_order(pairs, slots, order)
    wanted = list(
        dict.fromkeys(p for tensors in slots for p in (*tensors.inputs, *tensors.outputs))
    )
    measured = measure_all(Sides(left.columns, right.columns, wanted), schedule)
    measures = dict(zip(wanted, measured, strict=True))
    measure_transposed(left, right, zip(pairs, slots, strict=True), measures)
    if crossing is not None:
        measure_elsewhere(left, right, crossing.others, measures)
    _state_norms(left, right, measures)
    scale = gradient_scale(pairs, slots, measures)
    makers = Makers(left, right, pairs)
    computed = (_NONE, _NONE) if sharded else (computed_weights(left), computed_weights(right))
    otherwise: dict[int, str] = {}
    weights: Weights | None = None
    while True:
        judge = Judge(
            left, right, measures, makers, same, training, changed or {}, sharded, noise or {},
            otherwise, computed,
        )  # fmt: skip
        judged = [judge.judge(pair, tensors) for pair, tensors in zip(pairs, slots, strict=True)]
        first = _first(judged, makers)
        if first is not None and crossing is None and not sharded:
            reasons = regrouped(left, right, judged, taken_calls(pairs), measures)
            reordered = _reordered(left, right, judged, measures) if first.parameter else _NONE
            reasons = reasons or rejoined((left, right), judged, measures, reordered)
            if reasons.keys() - otherwise.keys():
                otherwise.update(reasons)
                continue
        if sharded or known is not None or (left.step or 0):
            break
        is_second = weights is not None
        weights = compare_weights(left, right, judged, measures)
        if is_second or crossing is not None or not _mark(weights):
            break
    if first is not None and crossing is None and not sharded:
        packed = weights.packed if weights is not None else (set[int](), set[int]())
        first = (
            called_otherwise(left, right, first, taken_calls(pairs), packed)
            or given_other_rows(left, right, first, taken_calls(pairs))
            or first
        )
    if first is not None and first.entered and crossing is None and not sharded:
        _pick(left, right, first, taken_calls(pairs))
    if first is not None and first.entered and not (first.maker_left or first.maker_right):
        before = judged[: judged.index(first)]
        look_back(left, right, first, before, measures, taken_calls(pairs))
    if first is not None and crossing is None and not sharded and first in judged:
        leave_open((left, right), first, judged[: judged.index(first)], makers, measures)
    _count_whole(left, right, judged)
    if first is not None and not sharded:
        note_multiple((left, right), first, judged, measures)
    taken = taken_calls(pairs)
    return TensorComparison(
        left,
        right,
        judged,
        measures,
        [op for op in left.ops if op.index not in taken[0]],
        [op for op in right.ops if op.index not in taken[1]],
        first=first,
        gradient_scale=scale,
        crossing=crossing,
        weights=weights,
    )


def _count_whole(left: TensorRun, right: TensorRun, judged: Sequence[Judged]) -> None:
    """Say of accused whole numbers how many differ: a share of their norm tells nobody anything."""
    accused = (item for item in judged if item.verdict == "introduces error" and item.output)
    for item in islice(accused, _COUNTED):
        if item.output is not None and is_whole(left, right, item.output):
            item.counted = difference_text(left, right, item.output)


_COUNTED = 16
"""Accused operators of whole numbers that are looked at once more."""
_NONE: frozenset[int] = frozenset()


def _reordered(
    left: TensorRun,
    right: TensorRun,
    judged: Sequence[Judged],
    measures: Mapping[tuple[int, int], Measure],
) -> frozenset[int]:
    """Indices of left operators whose weight holds the same numbers in another order."""
    odd = [
        item
        for item in judged
        if item.verdict == "introduces error" and item.parameter and item.output is not None
    ]
    return frozenset(
        item.pair.left.index
        for item in odd[:_MOST_REORDERED]
        if item.output is not None
        and measures[item.output].exact
        and (alike := likeness(left, item.output[0], right, item.output[1])) is not None
        and alike.is_reordered
        and alike.is_same_numbers
    )


_MOST_REORDERED = 256
"""Weights that are read again, to see whether they only have another order."""


def _mark(weights: Weights) -> bool:
    """Note which inputs are weights that differ, in the calls that read them.

    Returns:
        Whether there are any of which nobody knew.
    """
    is_new = False
    for item in weights.differing:
        for op, place in zip(item.readers, item.places, strict=True):
            if place in op.inputs and place not in op.parameters:
                op.parameters = op.parameters | {place}
                is_new = True
    return is_new


def noise_of(comparison: TensorComparison) -> dict[int, float]:
    """By index of a left operator, the largest relative error of its results.

    Args:
        comparison: of two runs that are healthy both.
    """
    noise: dict[int, float] = {}
    for item in comparison.judged:
        errors = (comparison.measures[places].error for places in item.slots.outputs)
        worst = max((error for error in errors if math.isfinite(error)), default=0.0)
        noise[item.pair.left.index] = max(noise.get(item.pair.left.index, 0.0), worst)
    return noise


_JUST_BEHIND = 1e-6
"""Less than two places of the order are apart."""


def _in_order(
    pairs: Sequence[OpPair], slots: Sequence[Slots], order: list[float]
) -> tuple[list[OpPair], list[Slots]]:
    """Pairs in the order in which they are judged.

    That is the order of execution, but gradients of a module's parameters come after the gradient
    that they are made of.  msprobe states them before it, where error would seem to begin then.
    """
    backward: dict[str, float] = {}
    for place in reversed(range(len(pairs))):
        op = pairs[place].left
        if op.is_module and op.phase == "backward":
            if not op.inputs and ".parameters_grad" in op.name:
                order[place] = backward.get(op.owner, order[place]) + _JUST_BEHIND
            else:
                backward[op.owner] = order[place]
    places = sorted(range(len(pairs)), key=order.__getitem__)
    return [pairs[place] for place in places], [slots[place] for place in places]


def _with_crossing(
    pairs: Sequence[OpPair], slots: Sequence[Slots], crossing: Crossing
) -> tuple[list[OpPair], list[Slots]]:
    """Pairs of modules and those of calls, in the order of the left dump."""
    taken = taken_calls(pairs)
    rows = [
        (float(pair.left.index), pair, tensors) for pair, tensors in zip(pairs, slots, strict=True)
    ]
    rows += [
        (order, pair, tensors)
        for order, (pair, tensors) in zip(crossing.order, crossing.pairs, strict=True)
        if not any(call.index in taken[0] for call in pair.left.members)
        and not any(call.index in taken[1] for call in pair.right.members)
    ]
    rows.sort(key=lambda row: row[0])
    order = [row[0] for row in rows]
    return _in_order([pair for _, pair, _ in rows], [tensors for _, _, tensors in rows], order)


def _state_norms(
    left: TensorRun, right: TensorRun, measures: Mapping[tuple[int, int], Measure]
) -> None:
    """Norms that were measured stand where the dump stated none."""
    if not any(map(math.isnan, (*left.columns.norm, *right.columns.norm))):
        return
    for (a, b), measure in measures.items():
        if math.isnan(left.columns.norm[a]):
            left.columns.norm[a] = measure.left
        if math.isnan(right.columns.norm[b]):
            right.columns.norm[b] = measure.right


def _first(judged: Sequence[Judged], makers: Makers) -> Judged | None:
    """The first fault, with the operators that made an input that comes from nowhere."""
    first = first_fault(judged)
    if first is None or not first.entered or first.parameter or first.output is None:
        return first
    sides = (first.pair.left, first.pair.right)
    first.maker_left, first.maker_right = (
        maker and makers.origin(which, maker)
        for which in (0, 1)
        for maker in (makers.maker(which, sides[which], first.output[which]),)
    )
    return first


def _pick(
    left: TensorRun, right: TensorRun, first: Judged, taken: tuple[set[int], set[int]]
) -> None:
    """Say of an input from nowhere which call of one side alone made the numbers that it holds."""
    if first.parameter or first.output is None or first.maker_left or first.maker_right:
        return
    found: list[Op | None] = []
    readers = (first.pair.left, first.pair.right)
    for which, run in enumerate((left, right)):
        free = frozenset(op.index for op in run.ops if op.index not in taken[which])
        op = picked_from(run, free, readers[which], first.output[which]) if free else None
        if op is None and free:
            op = left_out((left, right), which, free, readers[which], first.output)
        found.append(op)
    first.maker_left, first.maker_right = found
    first.is_picked = any(found)
