"""The weights of two runs held against each other: call by call, then as sets of numbers.

A weight that a pair of calls reads is compared there.  Where calls have no partner, or experts are
given other rows so that calls of other weights come together, the same numbers are looked for
among all that the other run reads from outside, in other layouts too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.compare.tensors.dtypes import FLOATS, roundoff
from irtool.compare.tensors.judging.entering import FIGURE_UNITS, figures_resolution
from irtool.compare.tensors.judging.precision import COARSEST, true_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.alike import RELATED, Likeness, likeness
from irtool.compare.tensors.measuring.measure import Measure, complete
from irtool.compare.tensors.measuring.values import Files, measure_files
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.semantics import family
from irtool.compare.tensors.weights.given import Figures, Given, figures_of, given_to, halved
from irtool.compare.tensors.weights.packed import Packed, packed_in
from irtool.ir.dataclass import dataclass

_ROUNDING = 2.0**-20
"""Relative error up to which a table may have been computed, and is no other one."""
_SAME_FIGURES = 1e-3
"""Relative difference of figures of data that are the same ones: those of a few other rows are
mostly further apart."""
_SHARE = 2 / 3
"""Of all tensors of a kind, how many have to be equal for the others to be other weights."""
_LEAST = 2
"""How many of them that have to be at least."""

_Kind: TypeAlias = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class OtherWeight:
    """A weight that differs.

    Attributes:
        places: of it in both dumps.
        readers: the calls of both dumps that read it.
        likeness: how both are alike.
        name: a call that reads it, and which of its tensors it is.
        holds: names of the weights of the other run whose numbers each side holds, if any.
    """

    places: Places
    readers: tuple[Op, Op]
    likeness: Likeness
    name: str
    holds: tuple[str, str] = ("", "")


@dataclass(slots=True)
class Weights:
    """What came of the weights of two runs.

    Attributes:
        compared: how many have a counterpart.
        pairs: places of those that pairs of calls read.
        differing: those that differ.
        rounded: names of those of which one side is the other rounded to its type.
        reordered: names of those that hold the same numbers in another order.
        unsure: names of tables and the like that differ, and may have been computed.
        lone: names of those of either side that have no counterpart.
        packed: places of those of either side that are part of one, or a whole of several.
    """

    compared: int = 0
    pairs: list[Places] = field(default_factory=list[Places])
    differing: list[OtherWeight] = field(default_factory=list[OtherWeight])
    rounded: list[str] = field(default_factory=list[str])
    reordered: list[str] = field(default_factory=list[str])
    unsure: list[str] = field(default_factory=list[str])
    lone: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    packed: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))


@dataclass(slots=True)
class _Odd:
    """A pair of weights of one pair of calls that are not the same."""

    item: Judged
    places: Places
    measure: Measure
    is_known: bool


def compare_weights(
    left: TensorRun,
    right: TensorRun,
    judged: Sequence[Judged],
    measures: Mapping[Places, Measure],
) -> Weights:
    """Compare what two runs start from.

    Args:
        left: one dump, of the first step.
        right: the other.
        judged: all pairs of operators.
        measures: of their tensors.
    """
    return _Sets(left, right, judged, measures).compared()


class _Sets:
    def __init__(
        self,
        left: TensorRun,
        right: TensorRun,
        judged: Sequence[Judged],
        measures: Mapping[Places, Measure],
    ) -> None:
        self.runs = left, right
        self.judged = judged
        self.measures = measures
        self.given: tuple[Given, Given] = given_to(left), given_to(right)
        self.found = Weights()
        self.met: tuple[set[int], set[int]] = (set(), set())
        """Places of weights that have a counterpart, or are told to differ."""
        self._index: list[dict[tuple[int, float, float], list[int]] | None] = [None, None]

    def compared(self) -> Weights:
        odd, kinds = self._by_calls()
        others: list[tuple[_Odd, Places]] = []
        for item in odd:
            self._odd_pair(item, kinds, others)
        self._exchanged(others)
        rest = self._without_calls()
        if any(rest):
            self._leftover(*rest)
        return self.found

    def name(self, side: int, place: int) -> str:
        """The call that reads a tensor first, and which of its tensors it is."""
        op = self.reader(side, place)
        return f"{op.name}.{self.runs[side].columns.labels[place]}"

    def reader(self, side: int, place: int) -> Op:
        """The call that reads a tensor first."""
        given = self.given[side]
        return given.weights.get(place) or given.readers[place]

    # -- pairs of calls ---------------------------------------------------------------------------

    def _by_calls(self) -> tuple[list[_Odd], dict[_Kind, list[int]]]:
        """Weights of pairs of calls: those that differ, and how many of a kind are equal of all."""
        left, right = self.runs
        weights = [{**given.sources, **given.weights} for given in self.given]
        computed = [given.computed for given in self.given]
        odd: list[_Odd] = []
        kinds: dict[_Kind, list[int]] = {}
        seen: set[Places] = set()
        read: set[tuple[Figures, Figures]] = set()
        for item in self.judged:
            if item.pair.left.phase != "forward":
                continue
            for places in item.slots.inputs:
                a, b = places
                if places in seen or not (a in weights[0] or b in weights[1]):
                    continue
                if left.columns.dtypes[a] not in FLOATS:
                    continue
                if a in computed[0] or b in computed[1] or _is_other_operand(item, places):
                    continue
                seen.add(places)
                measure = self.measures.get(places)
                if measure is None or math.isnan(measure.error):
                    continue
                is_known = a in item.pair.left.parameters or b in item.pair.right.parameters
                weight = figures_of(left.columns, a), figures_of(right.columns, b)
                if weight in read:  # once more: a tied weight, a step of a loop, recomputation
                    self._skip(places)
                    continue
                if _tells(weight[0]) and _tells(weight[1]):
                    read.add(weight)
                counts = kinds.setdefault((item.pair.left.type, left.columns.shapes[a]), [0, 0])
                counts[1] += 1
                is_equal = measure.equal or measure.error == 0
                if is_equal or measure.error <= figures_resolution(left, right, places, measure):
                    counts[0] += 1
                    self._meet(places)
                else:
                    odd.append(_Odd(item, places, measure, is_known))
        return odd, kinds

    def _meet(self, places: Places) -> None:
        self.found.compared += 1
        self.found.pairs.append(places)
        self._skip(places)

    def _skip(self, places: Places) -> None:
        """Note that of a pair of tensors all is said, or was before."""
        for side in (0, 1):
            self.met[side].add(places[side])

    def _exchanged(self, others: Sequence[tuple[_Odd, Places]]) -> None:
        """Tell of calls of other data that hold a weight of one that was told to hold another's.

        Args:
            others: weights of pairs of calls of other data that are not the same, and which ones
                of the other run each of them is: the left one's of the right run, and conversely.
        """
        held = {self.equal_elsewhere(1, item.places[1]) for item in self.found.differing}
        rest = list(others)
        while True:
            drawn = [row for row in rest if row[0].places[0] in held]
            if not drawn:
                return
            for odd, pair in drawn:
                self._differing(odd, pair)
                held.add(pair[1])
            rest = [row for row in rest if row not in drawn]

    def _odd_pair(
        self,
        odd: _Odd,
        kinds: Mapping[_Kind, Sequence[int]],
        exchanged: list[tuple[_Odd, Places]],
    ) -> None:
        """What is to be said of two weights of one pair of calls that are not the same.

        Where each is another weight of the other run, and the calls read other data, nothing is
        said yet: they stand in ``exchanged`` then.
        """
        a, _ = odd.places
        item, left = odd.item, self.runs[0]
        name = f"{item.pair.left.name}.{left.columns.labels[a]}"
        ours, theirs = (
            None if other == odd.places[1 - side] else other
            for side in (0, 1)
            for other in (self.equal_elsewhere(side, odd.places[side]),)
        )
        others = ours, theirs
        is_other = ours is not None and theirs is not None and not self._is_same_call(odd)
        if ours is not None and theirs is not None and is_other and not self._is_kept(odd, ours):
            self._meet(odd.places)  # other weights came together, of which each has its like
            exchanged.append((odd, (ours, theirs)))
            return
        if self._is_rounded(odd):
            self._meet(odd.places)
            self.found.rounded.append(name)
            return
        alike = self._likeness(odd)
        if not odd.is_known and not self._is_proved(odd, alike, kinds):
            self.found.unsure.append(name)
            self._skip(odd.places)
            return
        if alike.is_same_numbers and item.verdict != "introduces error":
            self._meet(odd.places)  # the results agree: it is the layout that the other call reads
            self.found.reordered.append(name)
            return
        self._meet(odd.places)
        self._differing(odd, others, alike)

    def _differing(
        self, odd: _Odd, others: tuple[int | None, int | None], alike: Likeness | None = None
    ) -> None:
        """Tell of two weights that are not the same, and of which others they are."""
        ours, theirs = (
            "" if other is None else self.name(1 - side, other) for side, other in enumerate(others)
        )
        a, _ = odd.places
        pair = odd.item.pair
        name = f"{pair.left.name}.{self.runs[0].columns.labels[a]}"
        alike = alike or self._likeness(odd)
        self.found.differing.append(
            OtherWeight(odd.places, (pair.left, pair.right), alike, name, (ours, theirs))
        )

    def _is_kept(self, odd: _Odd, other: int) -> bool:
        """Whether calls were paired by their order though values would have told another pair.

        Args:
            odd: weights of that pair of calls.
            other: the tensor of the right run that holds the left one's numbers.
        """
        pair, reader = odd.item.pair, self.reader(1, other)
        if pair.how != "order" or not odd.is_known or reader.type != pair.left.type:
            return False
        shapes = [
            [run.columns.shapes[place] for place in op.tensors]
            for run, op in zip(self.runs, (pair.left, reader), strict=True)
        ]
        return shapes[0] == shapes[1]

    def _likeness(self, odd: _Odd) -> Likeness:
        """How two weights are alike; the error of their measure where there is nothing in it."""
        left, right = self.runs
        alike = likeness(left, odd.places[0], right, odd.places[1])
        return alike if alike is not None else Likeness(odd.measure.error)

    def _is_same_call(self, odd: _Odd) -> bool:
        """Whether a pair of calls reads the same data beside its weights.

        Experts are given other rows where a router decides otherwise: calls are the same function
        then, of other weights and of numbers that have nothing in common.
        """
        for places in odd.item.slots.inputs:
            if places == odd.places or places[0] in self.given[0].weights:
                continue
            measure = self.measures.get(places)
            if measure is None or self.runs[0].columns.dtypes[places[0]] not in FLOATS:
                continue
            unit = roundoff(self.runs[0].columns.dtypes[places[0]])
            if not measure.error < (RELATED if measure.exact else max(_SAME_FIGURES, 2 * unit)):
                return False
        return True

    def _is_rounded(self, odd: _Odd) -> bool:
        """Whether one side is the other, rounded to its type or to one that its values fit."""
        left, right = self.runs
        a, b = odd.places
        units = roundoff(left.columns.dtypes[a]), roundoff(right.columns.dtypes[b])
        error = odd.measure.error
        if units[0] != units[1]:
            return error <= max(units) * (1.0 if odd.measure.exact else FIGURE_UNITS)
        if error > COARSEST or units[0] >= _ROUNDING:
            return False
        true = (true_unit(left, odd.item.pair.left, a), true_unit(right, odd.item.pair.right, b))
        return true[0] != true[1] and error <= max(true)

    def _is_proved(self, odd: _Odd, alike: Likeness, kinds: Mapping[_Kind, Sequence[int]]) -> bool:
        """Whether a tensor that its shape alone tells to be a weight is another one.

        It may be a table that was computed before the dump began, and differs by rounding, or in
        how it is laid out.  Most tensors of its kind are the same, or it is a multiple, or the
        call goes wrong of it.
        """
        left, right = self.runs
        a, b = odd.places
        unit = max(roundoff(left.columns.dtypes[a]), roundoff(right.columns.dtypes[b]))
        if odd.measure.error <= max(unit, _ROUNDING):
            return False
        item = odd.item
        if item.verdict == "introduces error" and item.output == odd.places:
            return True
        if not math.isnan(alike.factor):
            return True
        equal, count = kinds[item.pair.left.type, left.columns.shapes[a]]
        return equal >= _LEAST and equal >= _SHARE * count

    # -- sets of numbers --------------------------------------------------------------------------

    def equal_elsewhere(self, side: int, place: int) -> int | None:
        """A tensor that the other run reads from outside, of the same numbers in one order.

        Args:
            side: 0 for a tensor of the left run, 1 for one of the right.
            place: of the tensor.
        """
        ours = self.runs[side].columns
        if not ours.files[place] and math.isnan(ours.most[place]):
            return None
        complete(ours, place, False)
        key = math.prod(ours.shapes[place]), ours.most[place], ours.least[place]
        for other in self._known(1 - side).get(key, ()):
            pair = (place, other) if side == 0 else (other, place)
            if self._are_equal(pair):
                return other
        return None

    def _known(self, side: int) -> dict[tuple[int, float, float], list[int]]:
        index = self._index[side]
        if index is None:
            columns = self.runs[side].columns
            index = self._index[side] = {}
            weights = self.given[side].weights
            for place in sorted(self.given[side].readers, key=lambda p: p not in weights):
                if place in weights:
                    complete(columns, place, False)
                key = math.prod(columns.shapes[place]), columns.most[place], columns.least[place]
                index.setdefault(key, []).append(place)
        return index

    def _are_equal(self, places: Places) -> bool:
        left, right = (run.columns for run in self.runs)
        a, b = places
        if left.files[a] and right.files[b]:
            files = Files(left.files[a], right.files[b], left.dtypes[a], right.dtypes[b])
            if measure_files([files])[0].error == 0:
                return True
            if not self._may_be_turned(places):
                return False
        alike = likeness(self.runs[0], a, self.runs[1], b)
        return alike is not None and alike.is_same_numbers and not alike.is_reordered

    def _may_be_turned(self, places: Places) -> bool:
        """Whether both are matrices, of which one may hold the other's rows as columns."""
        shapes = [run.columns.shapes[p] for run, p in zip(self.runs, places, strict=True)]
        return len(shapes[0]) == 2 and shapes[0] == shapes[1][::-1]

    def _without_calls(self) -> tuple[list[int], list[int]]:
        """Weights of each side of which nothing was said, and whose numbers the other has not."""
        rest: tuple[list[int], list[int]] = ([], [])
        for side in (0, 1):
            columns, met = self.runs[side].columns, self.met[side]
            unmet = [place for place in self.given[side].weights if place not in met]
            known = {figures_of(columns, place) for place in met} if unmet else set[Figures]()
            for place in unmet:
                figures = figures_of(columns, place)
                if figures in known:
                    continue
                known.add(figures)
                if not any(map(math.isfinite, figures[1:])) and not columns.files[place]:
                    continue
                if self.equal_elsewhere(side, place) is not None:
                    self.found.compared += side == 0  # once, of both that are one
                elif self._is_rounded_copy(side, place):
                    self.found.rounded.append(self.name(side, place))
                else:
                    rest[side].append(place)
        return rest

    def _is_rounded_copy(self, side: int, place: int) -> bool:
        """Whether a weight is one of either run, rounded to a shorter type."""
        columns = self.runs[side].columns
        size = math.prod(columns.shapes[place])
        ends = halved(columns.most[place]), halved(columns.least[place])
        if ends[0] == ends[1]:
            return False
        for run, given in zip(self.runs, self.given, strict=True):
            theirs = run.columns
            for other in given.weights:
                if (
                    math.prod(theirs.shapes[other]) == size
                    and theirs.dtypes[other] != columns.dtypes[place]
                    and (halved(theirs.most[other]), halved(theirs.least[other])) == ends
                ):
                    return True
        return False

    def _leftover(self, left: list[int], right: list[int]) -> None:
        """Say of weights without a counterpart what they are like in another layout."""
        self._one_to_one(left, right)
        for side, rest in ((0, right), (1, left)):
            maybes = [p for p in self.given[side].maybes if p not in self.met[side]]
            if side == 0:
                self._one_to_one(maybes, rest)
            else:
                self._one_to_one(rest, maybes)
        for exactly in (True, False):
            for side, wholes, parts in ((0, left, right), (1, right, left)):
                self._unpack(side, wholes, parts, exactly=exactly)
        self._by_size(left, right)
        for side, places in ((0, left), (1, right)):
            self.found.lone[side].extend(self.name(side, place) for place in places)

    def _unpack(self, side: int, wholes: list[int], parts: list[int], *, exactly: bool) -> None:
        """Take out of both lists the wholes of one side of which the other has the parts."""
        for whole in list(wholes):
            packed = packed_in(self.runs[side], whole, self.runs[1 - side], parts, exactly=exactly)
            if packed is not None:
                self._unpacked(side, whole, packed)
                wholes.remove(whole)
                parts[:] = [place for place in parts if place not in packed.parts]

    def _one_to_one(self, left: list[int], right: list[int]) -> None:
        """Weights that are one of the other run in another layout, or nearly."""
        sizes = [
            [math.prod(run.columns.shapes[place]) for place in places]
            for run, places in zip(self.runs, (left, right), strict=True)
        ]
        rows: list[tuple[float, int, int, Likeness]] = []
        for a, size in zip(left, sizes[0], strict=True):
            for b, other in zip(right, sizes[1], strict=True):
                if size == other and self._may_be_one(a, b):
                    alike = likeness(self.runs[0], a, self.runs[1], b)
                    if alike is not None:
                        rows.append((alike.error, a, b, alike))
        for _, a, b, alike in sorted(rows, key=lambda row: row[:3]):
            if a not in left or b not in right:
                continue
            left.remove(a)
            right.remove(b)
            unit = max(
                roundoff(run.columns.dtypes[place])
                for run, place in zip(self.runs, (a, b), strict=True)
            )
            other_type = self.runs[0].columns.dtypes[a] != self.runs[1].columns.dtypes[b]
            self.found.compared += 1
            if alike.is_same_numbers:
                if alike.is_reordered:
                    self.found.reordered.append(self.name(0, a))
            elif other_type and alike.error <= unit:
                self.found.rounded.append(self.name(0, a))
            else:
                self._differ(0, a, b, alike)

    def _may_be_one(self, a: int, b: int) -> bool:
        """Whether values show if two weights of one size are one, or their shapes allow it.

        Figures of any weights of one kind are near each other.
        """
        columns = self.runs[0].columns, self.runs[1].columns
        if columns[0].files[a] and columns[1].files[b]:
            return True
        shapes = [
            sorted(size for size in side.shapes[place] if size > 1)
            for side, place in zip(columns, (a, b), strict=True)
        ]
        return shapes[0] == shapes[1]

    def _by_size(self, left: list[int], right: list[int]) -> None:
        """Known weights of a size that each side has one of, and that have nothing in common."""
        for a in list(left):
            size = math.prod(self.runs[0].columns.shapes[a])
            rows = [
                [p for p in places if math.prod(run.columns.shapes[p]) == size]
                for run, places in zip(self.runs, (left, right), strict=True)
            ]
            if [len(row) for row in rows] != [1, 1] or not self._are_known(a, rows[1][0]):
                continue
            self.found.compared += 1
            self._differ(0, a, rows[1][0], Likeness(math.sqrt(2)))
            left.remove(a)
            right.remove(rows[1][0])

    def _are_known(self, a: int, b: int) -> bool:
        """Whether a function reads one where it reads weights, and the other has its shape."""
        shapes = [sorted(run.columns.shapes[p]) for run, p in zip(self.runs, (a, b), strict=True)]
        return shapes[0] == shapes[1] and any(
            place in given.weights[place].parameters
            for place, given in zip((a, b), self.given, strict=True)
        )

    def _differ(self, side: int, place: int, other: int, alike: Likeness) -> None:
        places = (place, other) if side == 0 else (other, place)
        readers = (self.reader(0, places[0]), self.reader(1, places[1]))
        self.found.differing.append(OtherWeight(places, readers, alike, self.name(side, place)))

    def _unpacked(self, side: int, whole: int, packed: Packed) -> None:
        """Say what came of a whole of one side and its parts of the other."""
        self.found.compared += len(packed.parts)
        self.found.packed[side].add(whole)
        self.found.packed[1 - side].update(packed.parts)
        self.found.reordered.append(self.name(side, whole))
        alike = packed.likeness or Likeness(math.sqrt(2))
        if side == 1:
            alike = alike.turned_round
        if packed.is_by_figures and packed.differing:  # which of them it is does not show
            self._differ(side, whole, packed.parts[0], alike)
            return
        for place in packed.differing:
            self._differ(1 - side, place, whole, alike)


def _is_other_operand(item: Judged, places: Places) -> bool:
    """Whether two functions read tensors whose places say nothing of each other.

    Functions of one family take the same arguments, whatever they are called.
    """
    ours, theirs = item.pair.left, item.pair.right
    if ours.type == theirs.type or ours.is_module or theirs.is_module:
        return False
    if places[0] in ours.parameters and places[1] in theirs.parameters:
        return False
    kinds = family(ours.type), family(theirs.type)
    return kinds[0] != kinds[1] or kinds[0] in ("elementwise", "unknown")


def _tells(figures: Figures) -> bool:
    """Whether figures tell a tensor from others: ones and zeros are alike everywhere."""
    return all(map(math.isfinite, figures)) and figures[2] != figures[3]
