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
from irtool.compare.tensors.judging.picked import picked_from
from irtool.compare.tensors.judging.precision import COARSEST, true_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.masks import is_mask, reads_mask
from irtool.compare.tensors.measuring.alike import values_of
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Places
from irtool.compare.tensors.semantics import family, is_random
from irtool.compare.tensors.weights.comparison import OtherWeight, Weights
from irtool.compare.tensors.whole_numbers import difference_text, is_whole
from irtool.ir.dataclass import dataclass
from irtool.ir.units import error_text

Kind: TypeAlias = Literal[
    "initial weights", "indices", "labels", "input data", "masks", "random numbers",
    "optimizer states",
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "initial weights", "input data", "indices", "masks", "labels", "random numbers",
    "optimizer states",
)  # fmt: skip
"""In the order in which a run takes them in."""
ComparedBy: TypeAlias = Literal["values", "checksums", "figures", "extremes"]
_COMPARED_BY: tuple[ComparedBy, ...] = ("values", "checksums", "figures", "extremes")
"""What two tensors can be compared by, from what tells most to what tells least.

``figures`` are extremes with a mean or a norm: the order of numbers does not show in them.  Of
whole numbers most dumps state extremes alone: what lies between them does not show either.
"""
_ALL = 2
"""How many weights have to have one factor for it to be told as that of all."""
_ONE_FACTOR = 2.0**-8
"""Relative difference of factors of half precision that is rounding."""
_SIGMAS = 4
"""Standard errors by which the mean of such factors has to differ from one."""
_CARRIED = 2.0
"""Times the largest error of a result before, up to which a target may have been computed of it by
operations that no dump shows."""
_FEW = 0.1
"""Share of elements up to which those that differ do not look like error that was carried."""
_Identity: TypeAlias = tuple[int, float | str, float]
_STATES = ("lerp_", "lerp", "mul_", "addcmul_")
"""Calls by which PyTorch's optimizers read a moment that they keep, as the first operand."""


@dataclass(frozen=True, slots=True)
class Differing:
    """One tensor that differs.

    Attributes:
        name: which.
        error: by how much, relative.
        how: in words, where there is more to say than that.
    """

    name: str
    error: float
    how: str = ""

    @property
    def text(self) -> str:
        """Which tensor differs, and how."""
        return f"{self.name}: {self.how or f'{error_text(self.error)} relative'}"


@dataclass(slots=True)
class Fact:
    """What came of one kind of given tensors.

    Attributes:
        kind: of them.
        compared: how many there are.
        differing: those that differ.
        rounded: names of those of which one side is the other rounded to its type.
        compared_by: what was compared of them: of several tensors the least that any has.
        reordered: names of those that hold the same numbers in another order, or another layout.
        lone: names of those of either side without a counterpart.
        unsure: names of those that differ, and may have been computed.
        factor: by which all of the left side become those of the right one; NaN where none does.
    """

    kind: Kind
    compared: int = 0
    differing: list[Differing] = field(default_factory=list[Differing])
    rounded: list[str] = field(default_factory=list[str])
    compared_by: ComparedBy = "values"
    reordered: list[str] = field(default_factory=list[str])
    lone: list[str] = field(default_factory=list[str])
    unsure: list[str] = field(default_factory=list[str])
    factor: float = math.nan

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
    is_first_step = (comparison.left.step or 0) == 0
    weights = comparison.weights
    if weights is not None:
        facts["initial weights"] = _fact_of_weights(comparison, weights)
    for kind, item, places, before in _given(comparison):
        if places in seen:
            continue
        if kind == "initial weights" and (weights is not None or not is_first_step):
            continue
        seen.add(places)
        measure = comparison.measures.get(places)
        if measure is None or math.isnan(measure.error):
            continue
        fact = facts[kind]
        fact.compared += 1
        _note_compared_by(fact, comparison, places)
        name = f"{item.pair.left.name}.{comparison.left.columns.labels[places[0]]}"
        if not _differs(comparison, places, measure):
            continue
        made = _made(comparison, kind, item, places, measure, before)
        if made:
            fact.compared -= 1
            fact.unsure += [name] if made == "perhaps" else []
        elif _is_rounded(comparison, item, places, measure, kind):
            fact.rounded.append(name)
        else:
            how = ""
            if kind == "masks" or is_whole(comparison.left, comparison.right, places):
                how = difference_text(comparison.left, comparison.right, places)
            fact.differing.append(Differing(name, measure.error, how))
    return [fact for fact in facts.values() if fact.compared]


def _made(
    comparison: TensorComparison,
    kind: Kind,
    item: Judged,
    places: Places,
    measure: Measure,
    before: float,
) -> Literal["", "surely", "perhaps"]:
    """Whether what differs was made in the step, unseen, and is nothing that a run is given.

    A target may be an activation: of a teacher, of codes, of patches that are normalised.  A mask
    may be written in another way that does the same, or be of what rounding has tipped over.
    """
    is_accused = item.verdict == "introduces error" and item.output == places
    if kind == "masks":
        return "" if is_accused else "perhaps"
    if kind != "labels" or not is_float(comparison.left.columns.dtypes[places[0]]):
        return ""
    has_maker = item.maker_left is not None or item.maker_right is not None
    if (is_accused and has_maker) or _is_picked(comparison, item, places):
        return "surely"
    is_carried = measure.error <= _CARRIED * before and not _are_few(comparison, places)
    return "perhaps" if is_carried else ""


def _note_compared_by(fact: Fact, comparison: TensorComparison, places: Places) -> None:
    """Note by what one more pair of tensors was compared, where it tells less than the others."""
    measure = comparison.measures.get(places)
    if measure is not None and fact.compared_by != "extremes":
        by = _compared_by(comparison, places, measure)
        if by != fact.compared_by:
            fact.compared_by = least_telling((fact.compared_by, by))


def _fact_of_weights(comparison: TensorComparison, weights: Weights) -> Fact:
    """The fact of weights that were compared as sets of numbers."""
    fact = Fact("initial weights", weights.compared)
    for places in weights.pairs:
        _note_compared_by(fact, comparison, places)
    if not weights.pairs and not any(comparison.left.columns.files):
        fact.compared_by = "figures"
    fact.rounded = weights.rounded
    fact.reordered = weights.reordered
    fact.unsure = weights.unsure
    fact.lone = [*weights.lone[0], *weights.lone[1]]
    fact.differing = [
        Differing(item.name, item.likeness.error, _how_text(item)) for item in weights.differing
    ]
    fact.factor = _common_factor(weights)
    return fact


def _common_factor(weights: Weights) -> float:
    """The one factor of all weights that differ; NaN where there are several.

    Of half precision a few numbers, or figures that are rounded themselves, do not show a factor;
    those of many weights do, together.
    """
    likes = [item.likeness for item in weights.differing]
    if len(likes) < _ALL:
        return math.nan
    factors = [like.factor for like in likes]
    if any(map(math.isnan, factors)):
        factors = [like.ratio for like in likes]
        spread = _ONE_FACTOR * (1 + _SIGMAS / math.sqrt(len(factors)))
    else:
        spread = 0.0
    most = 1.0 if spread == 0 else 2.0
    if not all(factor > 0 for factor in factors):
        return math.nan
    mean = math.exp(math.fsum(map(math.log, factors)) / len(factors))
    near = all(abs(factor / mean - 1) <= most * _ONE_FACTOR for factor in factors)
    return mean if near and abs(mean - 1) > spread - _ONE_FACTOR * (spread > 0) else math.nan


def _how_text(item: OtherWeight) -> str:
    """How a weight differs, in words; empty where its relative error is all there is to say."""
    alike = item.likeness
    ours, theirs = item.holds
    if theirs and ours == theirs:
        return f"exchanged with {theirs}"
    if theirs:
        return f"the right one holds what {theirs} holds on the left"
    if alike.is_same_numbers:
        return "transposed" if alike.is_turned else "the same numbers in another order"
    order = ", in another order" if alike.is_reordered else ""
    if not math.isnan(alike.factor):
        return f"{factor_text(alike.factor)} times the left one{order}"
    return f"{error_text(alike.error)} relative{order}" if order else ""


def factor_text(factor: float) -> str:
    """A factor with as many digits as tell it from one.

    Args:
        factor: right over left.
    """
    return f"{factor:.4g}"


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


def kind_of_given(comparison: TensorComparison, judged: Judged) -> Kind | None:
    """What the accused tensor of an operator is, if a run is given it; None where it is made.

    Args:
        comparison: of one step.
        judged: the operator.
    """
    return next(
        (kind for kind, _, places, _ in _given(comparison) if places == judged.output), None
    )


def _is_picked(comparison: TensorComparison, item: Judged, places: Places) -> bool:
    """Whether all numbers of a target stand in an earlier result of its run, on either side."""
    runs = (comparison.left, comparison.right)
    readers = (item.pair.left, item.pair.right)
    return any(
        run.columns.files[place]
        and picked_from(run, frozenset(op.index for op in run.ops), reader, place) is not None
        for run, reader, place in zip(runs, readers, places, strict=True)
    )


def _are_few(comparison: TensorComparison, places: Places) -> bool:
    """Whether nearly all elements are equal to the bit, which error that is carried leaves few."""
    values = [
        values_of(run, place)
        for run, place in zip((comparison.left, comparison.right), places, strict=True)
    ]
    if values[0] is None or values[1] is None or values[0].size != values[1].size:
        return False
    unequal = (values[0].reshape(-1) != values[1].reshape(-1)).sum()
    return bool(unequal <= _FEW * values[0].size)


def _given(comparison: TensorComparison) -> Iterator[tuple[Kind, Judged, Places, float]]:
    """Tensors that no operator of the run has made, what they are, and the worst error before."""
    columns, measures = comparison.left.columns, comparison.measures
    made: set[_Identity] = set()
    is_begun = False
    before = 0.0
    for item in comparison.judged:
        op = item.pair.left
        if op.phase == "optimizer":
            if op.type.lower() in _STATES and item.slots.inputs:
                yield "optimizer states", item, item.slots.inputs[0], before
            continue
        if op.phase != "forward":
            continue
        for places in item.slots.inputs:
            kind = _kind(comparison, op, places, made, is_begun)
            if kind is not None:
                yield kind, item, places, before
        if is_random(op.type) and not op.is_module and _are_equal(item.slots.inputs, measures):
            for places in item.slots.outputs:
                yield "random numbers", item, places, before
        for places in item.slots.outputs:
            made.update(_identities(columns, places[0]))
            error = measures[places].error if places in measures else math.nan
            before = max(before, error) if math.isfinite(error) else before
            is_begun = is_begun or is_float(columns.dtypes[places[0]])


def _kind(
    comparison: TensorComparison,
    op: Op,
    places: Places,
    made: set[_Identity],
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
    is_made = not made.isdisjoint(_identities(columns, place))
    if family(op.type) == "loss" and not op.is_module and place in op.inputs[1:2]:
        return None if is_real and is_made else "labels"
    if not is_made and reads_mask(op, columns, place):
        return "masks"
    # After the first operator an input may be a result that the dump does not show.
    if is_real and not is_begun and math.prod(columns.shapes[place]) > 1:
        return "input data"
    return None


def _identities(columns: Columns, place: int) -> Iterator[_Identity]:
    """By what a result is known again: its norm, which a cast may round, or its extremes.

    A result of truth values has neither; of those only the size is known.
    """
    size, most, least = math.prod(columns.shapes[place]), columns.most[place], columns.least[place]
    if columns.dtypes[place] == "Bool":
        yield size, "truth values", 0.0
    else:
        yield size, "norm", columns.norm[place]
        if most != least and not is_mask(columns, place):
            yield size, most, least


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
