"""What a run is given, compared exactly: weights, indices, labels, data, random numbers, states.

These are facts, no verdicts: of one type they are the same to the bit or they differ.  From stated
figures extremes are compared exactly, norms and means within what another order of summing makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.entering import figures_resolution
from irtool.compare.tensors.judging.precision import COARSEST, true_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.compare.tensors.semantics import family, is_random
from irtool.ir.dataclass import dataclass

Kind: TypeAlias = Literal[
    "initial weights", "indices", "labels", "input data", "random numbers", "optimizer states"
]
KINDS: tuple[Kind, ...] = (
    "initial weights", "input data", "indices", "labels", "random numbers", "optimizer states",
)  # fmt: skip
"""In the order in which a run takes them in."""
ComparedBy: TypeAlias = Literal["values", "checksums", "figures", "extremes"]
_COMPARED_BY: tuple[ComparedBy, ...] = ("values", "checksums", "figures", "extremes")
"""What two tensors can be compared by, from what tells most to what tells least.

``figures`` are extremes with a mean or a norm: the order of numbers does not show in them.  Of
whole numbers most dumps state extremes alone: what lies between them does not show either.
"""
_STATES = ("lerp_", "lerp", "mul_", "addcmul_")
"""Calls by which PyTorch's optimizers read a moment that they keep, as the first operand."""


@dataclass(frozen=True, slots=True)
class Differing:
    """One tensor that differs: which, and by how much (relative)."""

    name: str
    error: float


@dataclass(slots=True)
class Fact:
    """What came of one kind of given tensors.

    Attributes:
        kind: of them.
        compared: how many there are.
        differing: those that differ.
        rounded: names of those of which one side is the other rounded to its type.
        compared_by: what was compared of them: of several tensors the least that any has.
        is_partial: whether there are others, which calls without a partner read.
    """

    kind: Kind
    compared: int = 0
    differing: list[Differing] = field(default_factory=list[Differing])
    rounded: list[str] = field(default_factory=list[str])
    compared_by: ComparedBy = "values"
    is_partial: bool = False

    @property
    def worst(self) -> Differing:
        """The one that differs most."""
        return max(self.differing, key=lambda item: item.error)


def facts_of(comparison: TensorComparison) -> list[Fact]:
    """What both runs were given in one step, kind by kind; kinds that do not occur are left out.

    Args:
        comparison: of that step.
    """
    facts = {kind: Fact(kind) for kind in KINDS}
    seen: set[Places] = set()
    weights: list[Places] = []
    is_first_step = (comparison.left.step or 0) == 0
    for kind, item, places in _given(comparison):
        if places in seen or (kind == "initial weights" and not is_first_step):
            continue
        seen.add(places)
        measure = comparison.measures.get(places)
        if measure is None or math.isnan(measure.error):
            continue
        fact = facts[kind]
        fact.compared += 1
        if kind == "initial weights":
            weights.append(places)
        if fact.compared_by != "extremes":
            by = _compared_by(comparison, places, measure)
            if by != fact.compared_by:
                fact.compared_by = least_telling((fact.compared_by, by))
        name = f"{item.pair.left.name}.{comparison.left.columns.labels[places[0]]}"
        if not _differs(comparison, places, measure):
            continue
        if _is_rounded(comparison, item, places, measure, kind):
            fact.rounded.append(name)
        else:
            fact.differing.append(Differing(name, measure.error))
    if weights:
        facts["initial weights"].is_partial = any(
            _reads_others(run, [places[side] for places in weights])
            for side, run in enumerate((comparison.left, comparison.right))
        )
    return [fact for fact in facts.values() if fact.compared]


def _reads_others(run: TensorRun, compared: Iterable[int]) -> bool:
    """Whether calls of a run read weights that were not compared, as those without a partner do.

    Which weights are the same is told by their figures, so nothing is said of those without any.

    Args:
        run: with all its calls.
        compared: places of the weights that were.
    """
    columns = run.columns

    def figures(place: int) -> tuple[float | None, ...]:
        stated = columns.most[place], columns.least[place], columns.norm[place]
        return math.prod(columns.shapes[place]), *(None if math.isnan(x) else x for x in stated)

    known = set(map(figures, compared))
    weights = (place for op in run.ops if op.phase == "forward" for place in op.parameters)
    return any(any(item[1:]) and item not in known for item in map(figures, weights))


def least_telling(kinds: Iterable[ComparedBy]) -> ComparedBy:
    """What tells least of all that tensors were compared by.

    Args:
        kinds: of one tensor or more.
    """
    return _COMPARED_BY[max(map(_COMPARED_BY.index, kinds))]


def _compared_by(comparison: TensorComparison, places: Places, measure: Measure) -> ComparedBy:
    """What was compared of one pair of tensors."""
    if measure.exact:
        return "values"
    left, right = comparison.left.columns, comparison.right.columns
    a, b = places
    if left.hashes[a] and len(left.hashes[a]) == len(right.hashes[b]):
        return "checksums"
    is_stated = _states_more_than_extremes(left, a) and _states_more_than_extremes(right, b)
    return "figures" if is_stated else "extremes"


def _states_more_than_extremes(columns: Columns, place: int) -> bool:
    """Whether a dump states a mean or a norm; a norm that was put in its place says nothing."""
    if not math.isnan(columns.mean[place]):
        return True
    most = max(abs(columns.most[place]), abs(columns.least[place]))
    bound = most * math.sqrt(math.prod(columns.shapes[place]))
    norm = columns.norm[place]
    return not math.isnan(norm) and not math.isclose(norm, bound)


def _given(comparison: TensorComparison) -> Iterator[tuple[Kind, Judged, Places]]:
    """Tensors that no operator of the run has made, and what they are."""
    columns, measures = comparison.left.columns, comparison.measures
    made: set[tuple[int, float]] = set()
    is_begun = False
    for item in comparison.judged:
        op = item.pair.left
        if op.phase == "optimizer":
            if op.type.lower() in _STATES and item.slots.inputs:
                yield "optimizer states", item, item.slots.inputs[0]
            continue
        if op.phase != "forward":
            continue
        for places in item.slots.inputs:
            kind = _kind(comparison, op, places, made, is_begun)
            if kind is not None:
                yield kind, item, places
        if is_random(op.type) and not op.is_module and _are_equal(item.slots.inputs, measures):
            for places in item.slots.outputs:
                yield "random numbers", item, places
        for places in item.slots.outputs:
            made.add(_identity(comparison, places[0]))
            is_begun = is_begun or is_float(columns.dtypes[places[0]])


def _kind(
    comparison: TensorComparison,
    op: Op,
    places: Places,
    made: set[tuple[int, float]],
    is_begun: bool,
) -> Kind | None:
    """What an input is; None where an operator made it, or that cannot be told."""
    place = places[0]
    columns = comparison.left.columns
    if place in op.parameters:
        return "initial weights"
    is_real = is_float(columns.dtypes[place])
    if not is_real and op.parameters and family(op.type) != "loss":
        return "indices"
    is_made = _identity(comparison, place) in made
    if family(op.type) == "loss" and not op.is_module and place in op.inputs[1:2]:
        return None if is_real and is_made else "labels"
    # After the first operator an input may be a result that the dump does not show.
    if is_real and not is_begun and math.prod(columns.shapes[place]) > 1:
        return "input data"
    return None


def _identity(comparison: TensorComparison, place: int) -> tuple[int, float]:
    columns = comparison.left.columns
    return math.prod(columns.shapes[place]), columns.norm[place]


def _are_equal(inputs: Sequence[Places], measures: Mapping[Places, Measure]) -> bool:
    return all(measures[places].equal for places in inputs if places in measures)


def _differs(comparison: TensorComparison, places: Places, measure: Measure) -> bool:
    if measure.equal or measure.error == 0:
        return False
    return measure.error > figures_resolution(comparison.left, comparison.right, places, measure)


def _is_rounded(
    comparison: TensorComparison, item: Judged, places: Places, measure: Measure, kind: Kind
) -> bool:
    """Whether one side is the other, rounded to its type or to one that its values fit."""
    ours = comparison.left.columns.dtypes[places[0]]
    theirs = comparison.right.columns.dtypes[places[1]]
    unit = max(roundoff(ours), roundoff(theirs))
    if kind == "initial weights":  # judged as such, operator by operator
        return not (item.parameter and item.output == places) and (
            item.verdict != "introduces error" or not item.parameter or measure.error <= unit
        )
    if ours != theirs:
        return measure.error <= unit
    if measure.error > COARSEST:
        return False
    sides = (comparison.left, item.pair.left), (comparison.right, item.pair.right)
    units = [true_unit(run, op, place) for (run, op), place in zip(sides, places, strict=True)]
    unit = max(units)
    if units[0] == units[1] or measure.error > unit:
        return False
    return measure.exact or _ends_are_rounded(comparison, places, unit)


def _ends_are_rounded(comparison: TensorComparison, places: Places, unit: float) -> bool:
    """Of figures: whether the largest and the smallest value of one side are the other's, rounded.

    Args:
        comparison: of one step.
        places: of the tensor in both dumps.
        unit: roundoff of the type that one side was rounded to.
    """
    ours, theirs = comparison.left.columns, comparison.right.columns
    a, b = places
    return all(
        abs(x - y) <= unit * max(abs(x), abs(y))
        for x, y in ((ours.most[a], theirs.most[b]), (ours.least[a], theirs.least[b]))
    )
