"""Two runs that are cut otherwise, put together tensor by tensor to one shape."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from irtool.compare.layouts.additions import ADD_UP, Unsummed
from irtool.compare.layouts.alignment import is_collective
from irtool.compare.layouts.chained import Chained, Coordinate, LogicalOp
from irtool.compare.layouts.figures import agree, figures_in, joined_figures
from irtool.compare.layouts.looked_up import (
    Lookup,
    adds_up_to,
    are_local,
    first_rows,
    lookup_of,
    own_positions,
    part_sizes,
    whole_indices,
    whole_rows,
)
from irtool.compare.layouts.parts import Across, Degrees, Partition, partitions
from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.model import NAN, Op, Shape
from irtool.compare.tensors.semantics import family, is_random
from irtool.ir.dataclass import dataclass
from irtool.ir.units import numbered_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDED = 2.0**-18
"""Relative error up to which replicas count as the same: kernels of other ranks may round."""
_UNITS = 8.0
"""The same in units of a coarser type."""
_SURE = 1e-3
"""Relative error from which down a way to put parts together is surely the right one."""
_SAME_FIGURES = 1e-5
"""What figures of one tensor may be off by on other ranks, relative to its norm."""
_HALF = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_STATED_UNITS = 2.05
"""Units of half precision by which stated figures of one tensor may differ."""
_OTHER_TERMS = 0.02
"""The same from which on gradients are surely others."""
_OTHER_FACTOR = 0.01
"""How far from 1 a factor is, at least, that a gradient of one rank surely has."""
_LEAST_MULTIPLE = 8
"""How many numbers, at least, have to be in one ratio."""
_MOST_CHOICES = 64
"""Ways to take one rank of each that hold the same part, that are tried."""
_MOST_PARTITIONS = 12
_NEAR = 16
"""How many calls before or behind a lookup make a rank's indices or zero what is of others."""
_LINEAR = ("view", "cast", "collective")
_MEANS = ("loss", "reduce")

Values = dict[Coordinate, "NDArray[Any]"]
_Both: TypeAlias = "tuple[NDArray[Any], NDArray[Any]]"
_Row: TypeAlias = tuple[float, float, float, float]
"""Largest, smallest, mean, norm."""
_Rows: TypeAlias = dict[Coordinate, _Row]
_Modes: TypeAlias = tuple[Across, Across]
"""What data parallel ranks, and tensor parallel ones, hold that cut no axis."""
_Best: TypeAlias = tuple[float, tuple[Partition, Partition], _Both, tuple[_Modes, ...]]
"""Error of a way to put a tensor together on both sides, that way, what it gives, its sums."""


_WHOLE: list[_Modes] = [("same", "same")]


@dataclass(frozen=True, slots=True)
class Odd:
    """Something wrong between the ranks of one run, which shows without the other run.

    Attributes:
        which: 0 for the left run, 1 for the right one.
        op: index of the operator in the run as a whole.
        ranks: that are at fault.
        error: relative.
        why: in words.
        label: of the tensor; empty of terms that nobody added up.
    """

    which: int
    op: int
    ranks: tuple[int, ...]
    error: float
    why: str
    label: str = ""


@dataclass(slots=True)
class Assembled:
    """What was put together.

    Attributes:
        partitions: by side and place of a tensor, how it is cut.
        odd: what is wrong between ranks, in the order of execution of each run.
        unknown: by place of the left tensor, why two tensors cannot be compared.
        factors: of each side, what its gradients were multiplied by.
        partners: by side and place, the place of the tensor on the other side.
        sums: side and place of tensors of which ranks hold terms.
    """

    partitions: dict[tuple[int, int], Partition] = field(
        default_factory=dict[tuple[int, int], Partition]
    )
    odd: list[Odd] = field(default_factory=list[Odd])
    unknown: dict[int, str] = field(default_factory=dict[int, str])
    factors: list[float] = field(default_factory=lambda: [1.0, 1.0])
    partners: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    sums: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])


class Assembler:
    """Puts the tensors of paired operators together, operator by operator."""

    def __init__(self, sides: tuple[Chained, Chained], folder: str) -> None:
        self.sides, self.folder = sides, folder
        self.found = Assembled()
        self.degrees = _degrees(sides[0]), _degrees(sides[1])
        self.partial: tuple[set[int], set[int]] = (set(), set())
        self.reduced = tuple(_reduced(side) for side in sides)
        self.local: tuple[set[int], set[int]] = (set(), set())
        self.local_figures: tuple[set[tuple[int, float, float]], ...] = (set(), set())
        self._has_factor = False
        self._is_told = False
        self._given: dict[int, set[_Row]] = {}
        self._terms: tuple[list[str], list[str]] = ([], [])
        self._made: dict[tuple[int, int], set[tuple[int, _Row]]] = {}

    def assemble(self, pairs: Mapping[int, int], unsummed: Sequence[Unsummed] = ()) -> Assembled:
        """Put together what both sides have.

        Args:
            pairs: indices of operators that are the same one.
            unsummed: products whose terms are added to before ranks are added up.
        """
        for item in unsummed:
            parts = self.sides[item.which].ops[item.op].parts
            ranks = tuple(sorted({rank for rank, _ in parts.values()}))
            why = self._why_unsummed(item.which, "what it adds to")
            self.found.odd.append(Odd(item.which, item.op, ranks, math.nan, why))
        for which in (0, 1):
            if self.degrees[which].tensor > 1:
                self._find_local(which)
        for a in sorted(pairs):
            self._pair(a, pairs[a])
        return self.found

    def _pair(self, a: int, b: int) -> None:
        ops = self.sides[0].ops[a].op, self.sides[1].ops[b].op
        columns = [side.run.columns for side in self.sides]
        theirs = {columns[1].labels[place]: place for place in ops[1].tensors}
        partials: list[tuple[list[str], list[str]]] = [([], []), ([], [])]
        lookup = lookup_of(ops[0], columns[0])
        if lookup is not None and lookup_of(ops[1], columns[1]) != lookup:
            lookup = None
        tensors = list(ops[0].tensors)
        self._terms = ([], [])
        if lookup is not None:  # how the table is cut says what its indices mean
            tensors.sort(key=lambda place: columns[0].labels[place] != lookup.table)
        for place in tensors:
            label = columns[0].labels[place]
            match = theirs.get(label)
            if match is None:
                continue
            why = None
            if lookup is not None and label in (lookup.indices, lookup.rows):
                why = self._put_looked_up((a, b), (place, match), label, lookup)
            if why is None:
                why = self._put((a, b), (place, match), label, partials)
            if why:
                self.found.unknown[place] = why
                _forget(ops[0], place)
                _forget(ops[1], match)
        for which in (0, 1):
            self._unreduced(which, (a, b)[which], *partials[which])
            self._unreduced_by_figures(which, (a, b)[which])

    # -- one tensor

    def _put(
        self,
        indices: tuple[int, int],
        places: tuple[int, int],
        label: str,
        partials: list[tuple[list[str], list[str]]],
    ) -> str:
        """Put one pair of tensors together; why that cannot be, empty where it can."""
        values = [self._values(which, indices[which], label) for which in (0, 1)]
        shapes = (self._shape(0, places[0]), self._shape(1, places[1]))
        if self._counts_parts(indices[0], label, shapes):
            return "a gradient of the loss itself says how many parts its mean is taken of"
        is_parameter = self._is_parameter(indices, places)
        declared = tuple(self._declared(which, indices[which], label) for which in (0, 1))
        possible = partitions(shapes, self.degrees, declared, is_parameter)  # type: ignore[arg-type]  # two of each
        if not possible:
            return "no axis that ranks could cut makes the shapes agree"
        if values[0] is None or values[1] is None:
            return self._put_figures(indices, places, possible, is_parameter)
        both = values[0], values[1]
        is_told = (False, False)
        if self.sides[0].ops[indices[0]].op.phase == "forward":
            is_told = self._tell_given(indices, label, both, possible, is_parameter)
        phase = self.sides[0].ops[indices[0]].op.phase
        best: _Best | None = None
        for choice in possible[:_MOST_PARTITIONS]:
            for modes in product(*(
                _WHOLE if is_told[which] and choice[which].tensor is None else
                self._modes(which, indices[which], label, choice[which], both[which], is_parameter)
                for which in (0, 1)
            )):  # fmt: skip
                joined = (
                    choice[0].joined(both[0], *modes[0]), choice[1].joined(both[1], *modes[1]),
                )  # fmt: skip
                error = measure_arrays(*joined).error if phase != "backward" else self._scaled(
                    joined, choice)  # fmt: skip
                error = math.inf if math.isnan(error) else error
                if best is None or error < 0.1 * best[0]:
                    best = error, choice, joined, modes
                if error <= _SURE:
                    break
            if best is not None and best[0] <= _SURE:
                break
        if best is None:
            return "ranks hold other numbers, and nothing says what they make together"
        _, choice, joined, modes = best
        for which in (0, 1):
            self._note(which, indices[which], label, choice[which], both[which], is_parameter,
                       partials[which], joined[1 - which])  # fmt: skip
            if phase == "backward" and label.startswith("input") and modes[which][1] == "sum":
                self._unreduced_gradient(which, indices[which], label, both[which])
            if phase == "backward" and modes[which][1] == "same" and choice[which].tensor is None:
                expected = self._with_factor(1 - which, joined[1 - which])
                self._tell_multiple(which, indices[which], label, both[which], choice[which],
                                    expected)  # fmt: skip
            self.found.partitions[which, places[which]] = choice[which]
            self.found.partners[which, places[which]] = places[1 - which]
            if modes[which] != ("same", "same"):
                self.found.sums.add((which, places[which]))
            if self.sides[which].is_cut:
                value = joined[which]
                if phase == "backward":
                    value = self._with_factor(which, value)
                self._write(which, places[which], value)
        return ""

    # -- rows of a table that ranks cut

    def _put_looked_up(
        self, indices: tuple[int, int], places: tuple[int, int], label: str, lookup: Lookup
    ) -> str | None:
        """Put indices or rows together where ranks have other ones, of their own rows.

        Returns why that cannot be, empty where it was done; None where they are as any tensor is.
        """
        sizes = tuple(self._rows_of_part(which, indices[which], lookup) for which in (0, 1))
        if not any(sizes):
            return None
        given = [self._values(which, indices[which], lookup.indices) for which in (0, 1)]
        made = [self._values(which, indices[which], label) for which in (0, 1)]
        if not all(given) or not all(made):
            is_whole = all(
                not sizes[which] or self._exceeds_part(which, indices[which], lookup, sizes[which])
                for which in (0, 1)
            )
            return None if is_whole else "ranks look up rows of their own: figures do not join them"
        ours, theirs = given[0] or {}, given[1] or {}
        local = tuple(
            bool(sizes[which]) and not self._alike(which, values, 2)
            for which, values in enumerate((ours, theirs))
        )
        if not any(local):
            return None
        possible = [
            choice
            for choice in partitions(
                (self._shape(0, places[0]), self._shape(1, places[1])), self.degrees, (None, None),
                False,
            )
            if choice[0].tensor is None and choice[1].tensor is None
        ]  # fmt: skip
        expected = self._expected_indices(indices, (ours, theirs), sizes, local)
        if expected is None or not possible:
            return "each rank looks up rows of its own, and nothing says which"
        for which in (0, 1):
            values = made[which] or {}
            if local[which]:
                own = expected[which], (ours, theirs)[which], sizes[which]
                if label == lookup.indices:
                    values = self._indices_joined(which, indices[which], label, *own)
                else:
                    values = self._rows_joined(which, indices[which], values, own[0], own[2])
                self.found.sums.add((which, places[which]))
            choice = possible[0][which]
            self.found.partitions[which, places[which]] = choice
            self.found.partners[which, places[which]] = places[1 - which]
            if self.sides[which].is_cut:
                self._write(which, places[which], choice.joined(values))
        return ""

    def _rows_of_part(self, which: int, index: int, lookup: Lookup) -> int:
        """How many rows of the table each tensor parallel rank holds; 0 where these hold all."""
        columns = self.sides[which].run.columns
        op = self.sides[which].ops[index].op
        place = next((p for p in op.inputs if columns.labels[p] == lookup.table), None)
        partition = None if place is None else self.found.partitions.get((which, place))
        if partition is None or partition.tensor != 0:
            return 0
        return partition.whole[0] // self.degrees[which].tensor

    def _exceeds_part(self, which: int, index: int, lookup: Lookup, size: int) -> bool:
        """Whether indices, by their figures, are of rows that no rank has so many of."""
        columns = self.sides[which].run.columns
        op = self.sides[which].ops[index].op
        place = next((p for p in op.inputs if columns.labels[p] == lookup.indices), None)
        rows = None if place is None else self._figures(which, index, place)
        return rows is not None and all(row[0] >= size for row in rows.values())

    def _expected_indices(
        self,
        indices: tuple[int, int],
        given: tuple[Values, Values],
        sizes: Sequence[int],
        local: Sequence[bool],
    ) -> tuple[Values, Values] | None:
        """Indices into the whole table, of every coordinate of both sides.

        Those of a side that has them whole, else those that local ones were made of.
        """
        found: list[Values | None] = [
            self._made_of(which, indices[which], given[which], sizes[which])
            if local[which] else given[which]
            for which in (0, 1)
        ]  # fmt: skip
        choices = [
            choice for choice in partitions(
                (_shape_of(given[0]), _shape_of(given[1])), self.degrees, (None, None), False
            )
            if choice[0].tensor is None and choice[1].tensor is None
        ]  # fmt: skip
        for which in (0, 1):
            source = found[1 - which]
            if not local[which] or not (source and choices):
                continue
            if found[which] is not None and local[1 - which]:
                continue
            full = choices[0][1 - which].joined(source)
            found[which] = {
                coordinate: choices[0][which].part(full, coordinate, sorted(given[which]))
                for coordinate in given[which]
            }
        ours, theirs = found
        return None if ours is None or theirs is None else (ours, theirs)

    def _made_of(self, which: int, index: int, local: Values, size: int) -> Values | None:
        """Whole numbers that calls before read on all ranks alike, and local indices come from."""
        side = self.sides[which]
        calls = [item for item in side.ops[:index] if item.op.phase == "forward"]
        for item in reversed(calls[-_NEAR:]):
            for place in item.op.inputs:
                if is_float(side.run.columns.dtypes[place]):
                    continue
                values = self._values(which, item.op.index, side.run.columns.labels[place])
                if not values or not self._alike(which, values, 2):
                    continue
                if all(are_local({c[2]: local[c] for c in row}, values[row[0]], size)
                       for row in _groups(local, 2)):  # fmt: skip
                    return values
        return None

    def _indices_joined(
        self, which: int, index: int, label: str, expected: Values, local: Values, size: int
    ) -> Values:
        """Indices of all ranks into the whole table; remembers ranks that look up other rows."""
        parts = self.sides[which].ops[index].parts
        joined: Values = {}
        odd: dict[int, float] = {}
        for row in _groups(local, 2):
            whole = whole_indices({c[2]: local[c] for c in row}, expected[row[0]], size)
            for coordinate in row:
                joined[coordinate] = whole
                own = own_positions(expected[coordinate], coordinate[2], size)
                count = int((whole[own] != expected[coordinate][own]).sum())
                if count:
                    odd[parts[coordinate][0]] = count / max(1, int(own.sum()))
        if odd and len(odd) < len(local):
            why = (
                f"{label}, which rows of the table it looks up, is not what the other run looks up "
                f"of the rows that {numbered_text('rank', odd)} "
                f"{'hold' if len(odd) > 1 else 'holds'}"
            )
            self._tell_odd(which, index, odd, why, label)
        return joined

    def _tell_odd(
        self, which: int, index: int, odd: Mapping[int, float], why: str, label: str
    ) -> None:
        """Ranks that hold something else than they should, each with how far it is off."""
        self.found.odd.append(Odd(which, index, tuple(sorted(odd)), max(odd.values()), why, label))

    def _rows_joined(
        self, which: int, index: int, local: Values, expected: Values, size: int
    ) -> Values:
        """Rows from the ranks that hold them; what each rank makes of its own is a partial sum."""
        joined: Values = {}
        for row in _groups(local, 2):
            whole = whole_rows({c[2]: local[c] for c in row}, expected[row[0]], size)
            joined.update(dict.fromkeys(row, whole))
        side = self.sides[which]
        for item in side.ops[index + 1 : index + 1 + _NEAR]:
            for place in item.op.outputs:
                label = side.run.columns.labels[place]
                values = self._values(which, item.op.index, label)
                if values and all(
                    adds_up_to([values[c] for c in row], joined[row[0]])
                    for row in _groups(values, 2)
                ):
                    self.partial[which].update(_sums(values))
                    return joined
        return joined

    def _find_local(self, which: int) -> None:
        """Remember what ranks make of where their own rows begin: they rightly differ by rank.

        Begins with calls on whole numbers that are given that row, one part further on each rank,
        and ends where ranks are added up.
        """
        side = self.sides[which]
        sizes = part_sizes((item.op for item in side.ops), side.run.columns)
        last = -1
        for number, item in enumerate(side.ops if sizes else ()):
            op = item.op
            if op.phase != "forward" or op.is_module or is_collective(op) or not op.outputs:
                continue
            is_first = not any(is_float(side.run.columns.dtypes[p]) for p in op.tensors)
            is_first = is_first and self._begins_own_rows(which, item, sizes)
            is_near = last >= 0 and number - last <= _NEAR
            if is_first:
                self._tell_other_numbers(which, item)
            elif not is_near or not any(self._is_local(which, number, p) for p in op.inputs):
                continue
            last = number
            for place in op.outputs if is_first else op.tensors:
                self._add_local(which, number, place)

    def _is_local(self, which: int, index: int, place: int) -> bool:
        """Whether a tensor is what ranks made of where their own rows begin."""
        values = self._values(which, index, self.sides[which].run.columns.labels[place])
        if values:
            return bool(self.local[which] & _sums(values))
        return not self.local_figures[which].isdisjoint(self._whole_numbers(which, index, place))

    def _add_local(self, which: int, index: int, place: int) -> None:
        values = self._values(which, index, self.sides[which].run.columns.labels[place])
        if not values:
            self.local_figures[which].update(self._whole_numbers(which, index, place))
        elif not self._alike(which, values, 2):
            self.local[which].update(_sums(values))

    def _whole_numbers(self, which: int, index: int, place: int) -> set[tuple[int, float, float]]:
        """Size and extremes of whole numbers on all ranks; nothing of other numbers."""
        columns = self.sides[which].run.columns
        if is_float(columns.dtypes[place]):
            return set()
        size, rows = math.prod(columns.shapes[place]), self._figures(which, index, place)
        return {(size, row[0], row[1]) for row in (rows or {}).values()}

    def _tell_other_numbers(self, which: int, item: LogicalOp) -> None:
        """Tell ranks that take their own rows of other whole numbers than tensor parallel ones do.

        Of two that differ, the one is right whose numbers the other run has.
        """
        labels = self.sides[which].run.columns.labels
        if any(odd.which == which and odd.label.startswith("input") for odd in self.found.odd):
            return
        for place in item.op.inputs:
            values = self._values(which, item.op.index, labels[place])
            if not values or self._alike(which, values, 2) or _sums(values) & self.local[which]:
                continue
            odd = self._not_of_other_run(which, values) or {
                coordinate for group in _groups(values, 2) for coordinate in _apart(values, group)
                if (values[coordinate] != values[group[0]]).any()
            }  # fmt: skip
            ranks = tuple(sorted({item.parts[coordinate][0] for coordinate in odd}))
            why = (
                f"{labels[place]}, a tensor that all of them hold whole, is not the same on "
                f"{numbered_text('rank', ranks)} as on the others"
            )
            error = max(float((values[c] != values[d]).mean())
                        for group in _groups(values, 2) for c in group for d in group)  # fmt: skip
            self.found.odd.append(Odd(which, item.op.index, ranks, error, why, labels[place]))

    def _not_of_other_run(self, which: int, values: Values) -> set[Coordinate]:
        """Coordinates that hold other numbers than the other run; none where no tensor tells it."""
        other = self.sides[1 - which]
        best: set[Coordinate] = set(values)
        for item in other.ops:
            op = item.op
            if op.phase != "forward" or op.is_module:
                continue
            for place in op.inputs:
                if is_float(other.run.columns.dtypes[place]):
                    continue
                theirs = self._values(1 - which, op.index, other.run.columns.labels[place])
                if not theirs or len(_shape_of(theirs)) != len(_shape_of(values)):
                    continue
                shapes = _shape_of(theirs), _shape_of(values)
                degrees = self.degrees[1 - which], self.degrees[which]
                for theirs_cut, ours_cut in partitions(shapes, degrees, (None, None), False):
                    if theirs_cut.tensor is not None or ours_cut.tensor is not None:
                        continue
                    full = theirs_cut.joined(theirs)
                    odd = {
                        c for c, value in values.items()
                        if (ours_cut.part(full, c, sorted(values)) != value).any()
                    }  # fmt: skip
                    best = odd if len(odd) < len(best) else best
        return best if 0 < len(best) < len(values) else set()

    def _begins_own_rows(self, which: int, item: LogicalOp, sizes: frozenset[int]) -> bool:
        """Whether a call is given where each rank's rows begin; tells who is given another row."""
        parts = item.parts
        wanted = _coordinates(self.sides[which])
        if any(coordinate not in parts for coordinate in wanted):
            return False
        for label, value in item.op.attributes.items():
            numbers = {c: parts[c][1].attributes.get(label) for c in wanted}
            whole = {c: n for c, n in numbers.items() if type(n) is int}
            if type(value) is not int or len(whole) != len(numbers) or len(set(whole.values())) < 2:
                continue
            rows = [{c[2]: whole[c] for c in row} for row in _groups(whole, 2)]
            told = [first_rows(row, sizes) for row in rows]
            if any(one is None or one[0] != (told[0] or (0,))[0] for one in told):
                continue
            odd = {
                parts[row[part]][0]: whole[row[part]]
                for row, one in zip(_groups(whole, 2), told, strict=True)
                for part in (one[1] if one else ())
            }
            if odd:
                ranks = tuple(sorted(odd))
                why = (
                    f"{label} is {', '.join(str(odd[rank]) for rank in ranks)} on "
                    f"{numbered_text('rank', ranks)}: its part of {(told[0] or (0,))[0]} rows does "
                    "not begin or end there"
                )
                self.found.odd.append(Odd(which, item.op.index, ranks, math.nan, why, label))
            return True
        return False

    def _counts_parts(self, index: int, label: str, shapes: tuple[Shape, Shape]) -> bool:
        """Whether it is the number that the backward pass begins with, of runs cut by the batch."""
        is_number = math.prod(shapes[0]) == math.prod(shapes[1]) == 1
        is_first = self.sides[0].ops[index].op.phase == "backward" and label.startswith("input")
        return is_number and is_first and any(degrees.batch > 1 for degrees in self.degrees)

    def _scaled(
        self, joined: tuple[NDArray[Any], NDArray[Any]], choice: tuple[Partition, Partition]
    ) -> float:
        """The error of gradients; the first ones say what factor the cut run has in all of them."""
        if not self._has_factor and any(degrees.batch > 1 for degrees in self.degrees):
            self._find_factor(joined)
        values = [self._with_factor(which, joined[which]) for which in (0, 1)]
        return measure_arrays(values[0], values[1]).error

    def _find_factor(self, joined: tuple[NDArray[Any], NDArray[Any]]) -> None:
        """Each rank's loss may be the mean over its own part of the batch."""
        if not joined[0].any() or not joined[1].any() or joined[0].size < 2:
            return
        self._has_factor = True
        best = measure_arrays(*joined).error
        for which in (0, 1):
            side = self.sides[which]
            data, micro = side.layout.data_parallel, side.micro
            for factor in dict.fromkeys((data, micro, data * micro)):
                values = [joined[0], joined[1]]
                values[which] = values[which] / factor
                error = measure_arrays(values[0], values[1]).error
                if factor > 1 and error < 0.1 * best:
                    best = error
                    self.found.factors = [1.0, 1.0]
                    self.found.factors[which] = 1 / factor

    def _with_factor(self, which: int, value: NDArray[Any]) -> NDArray[Any]:
        factor = self.found.factors[which]
        return value if factor == 1 else (value * factor).astype(value.dtype)

    def _modes(
        self,
        which: int,
        index: int,
        label: str,
        partition: Partition,
        values: Values,
        is_parameter: bool,
    ) -> list[tuple[Across, Across]]:
        """What ranks that cut no axis may hold: over data parallel ones, over tensor parallel."""
        op = self.sides[which].ops[index].op
        batch: list[Across] = ["same"]
        if partition.batch is None and not is_parameter and not self._alike(which, values, 0):
            if op.phase == "backward":
                batch = ["sum", "mean", "same"]
                if self.sides[which].micro > 1:
                    batch.insert(1, "last")
            elif family(op.type) in _MEANS or math.prod(partition.whole) == 1:
                batch = ["mean", "sum"]
            else:
                return []
        tensor: list[Across] = ["same"]
        if partition.tensor is None and self._is_shared_bias(which, index, label):
            tensor = ["same", "sum"]
        elif partition.tensor is None and not self._alike(which, values, 2):
            if op.phase == "backward":
                tensor = ["same", "sum"]
            elif self._is_partial(which, index, label, partition, values):
                tensor = [self._combination(which, values)]
            elif _sums(values) & self.local[which] or self._counts_in_part(which, op, label):
                return []  # of each rank's own rows
        return list(product(batch, tensor))

    def _is_partial(
        self, which: int, index: int, label: str, partition: Partition, values: Values
    ) -> bool:
        """Whether tensor parallel ranks hold terms of a sum: what is added up, or goes into it."""
        sums = _sums(values)
        if sums & self.partial[which] or not sums.isdisjoint(self.reduced[which]):
            return True
        return label.startswith("output") and self._contracts(which, index)

    def _counts_in_part(self, which: int, op: Op, label: str) -> bool:
        """Whether it is whole numbers made of a part of an axis, as the place of a maximum is."""
        dtypes, labels = self.sides[which].run.columns.dtypes, self.sides[which].run.columns.labels
        cut = self.found.partitions
        return any(
            labels[place] == label and not is_float(dtypes[place]) for place in op.outputs
        ) and any(
            part is not None and part.tensor is not None
            for part in (cut.get((which, place)) for place in op.inputs)
        )

    def _combination(self, which: int, values: Values) -> Across:
        """What a collective makes of it: a sum, or the largest or the smallest of all ranks."""
        for item in _sums(values):
            if item in self.reduced[which]:
                return self.reduced[which][item]
        return "sum"

    def _contracts(self, which: int, index: int) -> bool:
        """Whether a product adds over an axis that ranks cut."""
        op = self.sides[which].ops[index].op
        if family(op.type) != "matmul" or op.phase != "forward":
            return False
        for place in op.inputs:
            partition = self.found.partitions.get((which, place))
            if partition is not None and partition.tensor is not None:
                shape = self.sides[which].run.columns.shapes[place]
                first = place == op.inputs[0]
                is_weight = place in op.parameters or op.type.lower() == "linear"
                contracted = len(shape) - (1 if first or is_weight else 2)
                if partition.tensor == contracted:
                    return True
        return False

    def _is_shared_bias(self, which: int, index: int, label: str) -> bool:
        """Whether it is the bias of a product over a cut axis: each rank may add its share."""
        return label == "input.2" and self.degrees[which].tensor > 1 and self._contracts(
            which, index)  # fmt: skip

    # -- what is wrong between ranks

    def _note(
        self,
        which: int,
        index: int,
        label: str,
        partition: Partition,
        values: Values,
        is_parameter: bool,
        partials: tuple[list[str], list[str]],
        reference: NDArray[Any],
    ) -> None:
        """Remember what is a partial sum, and replicas that differ."""
        op = self.sides[which].ops[index].op
        if op.phase != "forward" or is_random(op.type):
            return
        is_input = label.startswith("input")
        if partition.tensor is None and not self._alike(which, values, 2):
            if not self._is_partial(which, index, label, partition, values):
                self._add_replica(which, index, label, values, 2, partition, reference)
            elif is_input:
                partials[0].append(label)
            else:
                self.partial[which].update(_sums(values))
                partials[1].append(label)
        if partition.batch is None and is_parameter and not self._alike(which, values, 0):
            self._add_replica(which, index, label, values, 0, partition, reference)

    def _unreduced(self, which: int, index: int, given: list[str], made: list[str]) -> None:
        """Partial sums that are read as if they were whole."""
        op = self.sides[which].ops[index].op
        if not given or op.is_module or family(op.type) in _LINEAR:
            return
        if made and len(op.inputs) == len(given):
            return  # all of it is linear: the sum may come later
        labels = self.sides[which].run.columns.labels
        if family(op.type) in ("product", "sum") and len(op.inputs) == len(given):
            for place in op.outputs:  # terms of two sums, or a sum and a number
                values = self._values(which, index, labels[place])
                if values:
                    self.partial[which].update(_sums(values))
            return
        ranks = tuple(sorted({rank for rank, _ in self.sides[which].ops[index].parts.values()}))
        why = self._why_unsummed(which, ", ".join(given))
        others = [item for item in self.found.odd if (item.which, item.op) != (which, index)]
        self.found.odd = [*others, Odd(which, index, ranks, math.nan, why)]  # why they differ

    def _why_unsummed(self, which: int, what: str) -> str:
        return (
            f"{what} is a partial sum on each of {self.degrees[which].tensor} tensor "
            "parallel ranks: it is read before anything added it up"
        )

    def _unreduced_gradient(self, which: int, index: int, label: str, values: Values) -> None:
        """Terms of a gradient that are read as if they were whole."""
        op = self.sides[which].ops[index].op
        if family(op.type) in _LINEAR or op.is_module or self._is_told:
            return
        if not _sums(values).isdisjoint(self.reduced[which]) or not self._hands_gradients_on(
            which, index
        ):
            return
        self._tell_unreduced(which, index, label)

    def _unreduced_gradient_by_figures(
        self, which: int, index: int, label: str, rows: Sequence[_Row]
    ) -> None:
        """Terms of a gradient that are read as if they were whole, by figures.

        Tensor parallel ranks read other gradients then, which no collective is given to add up.
        """
        op = self.sides[which].ops[index].op
        if op.phase != "backward" or not label.startswith("input") or self._is_told:
            return
        if family(op.type) in (*_LINEAR, "matmul", "sum") or op.is_module:
            return
        if not _are_others(rows) or not self._hands_gradients_on(which, index):
            return
        if self._is_reduced_by_figures(which, rows):
            return
        self._tell_unreduced(which, index, label)

    def _tell_replica_by_figures(
        self,
        which: int,
        indices: tuple[int, int],
        places: tuple[int, int],
        rows: _Rows,
        partition: Partition,
    ) -> bool:
        """Tell ranks that hold another tensor where the rest makes up the other run's.

        A term of a sum has not the extremes, mean and norm of the whole, so what has them is it.
        """
        index, place = indices[which], places[which]
        columns = self.sides[which].run.columns
        others = self._figures(1 - which, indices[1 - which], places[1 - which])
        op, label = self.sides[which].ops[index].op, columns.labels[place]
        if (
            op.phase != "forward"
            or is_random(op.type)
            or not others
            or partition.tensor is not None
        ):
            return False
        if len(others) > 1 or math.prod(columns.shapes[place]) < _LEAST_MULTIPLE:
            return False
        unit = roundoff(columns.dtypes[place]) if is_float(columns.dtypes[place]) else 1.0
        if unit == 1.0 or any(math.isnan(row[3]) or row[3] == 0 for row in rows.values()):
            return False
        slack = max(_SAME_FIGURES, _STATED_UNITS * unit if unit > _HALF else 0.0)
        wanted = next(iter(others.values()))
        groups = [sorted(rows)] if partition.batch is None else _groups(rows, 2)
        choices = [list(dict.fromkeys(rows[c] for c in group)) for group in groups]
        if math.prod(map(len, choices)) > _MOST_CHOICES:
            return False
        right = next(
            (
                chosen
                for chosen in product(*choices)
                if (whole := joined_figures(chosen))[:2] == wanted[:2]
                and agree(whole, wanted, slack)
            ),
            None,
        )
        if right is None:
            return False
        parts = self.sides[which].ops[index].parts
        odd = {
            parts[c][0]: max(abs(a - b) for a, b in zip(rows[c], row, strict=True)) / row[3]
            for group, row in zip(groups, right, strict=True)
            for c in group
            if not agree(rows[c], row, 4 * slack)
        }
        if not odd:
            return False
        if not any(item.which == which for item in self.found.odd):
            why = (
                f"{label}, a tensor that all of them hold whole, is not the same on "
                f"{numbered_text('rank', odd)} as on the others"
            )
            self._tell_odd(which, index, odd, why, label)
        return True

    def _tell_multiple_by_figures(
        self,
        which: int,
        indices: tuple[int, int],
        places: tuple[int, int],
        rows: _Rows,
        partition: Partition,
    ) -> None:
        """Tell ranks whose gradient is a multiple of that of ranks that hold the same, by figures.

        All four have to be in one ratio.  That rank is odd without which the norm of the whole is
        the other run's, or as many times that as there are parts of the batch.
        """
        index, place = indices[which], places[which]
        others = self._figures(1 - which, indices[1 - which], places[1 - which])
        op, columns = self.sides[which].ops[index].op, self.sides[which].run.columns
        size = math.prod(columns.shapes[place])
        if op.phase != "backward" or size < _LEAST_MULTIPLE or not others:
            return
        if any(item.which == which for item in self.found.odd) or len(others) > 1:
            return
        unit = roundoff(columns.dtypes[place])
        slack = max(_SAME_FIGURES, _STATED_UNITS * unit if unit > _HALF else 0.0)
        groups = _groups(rows, 2)
        sums = [[rows[c][3] ** 2 for c in group] for group in groups]
        if not all(value > 0 for row in sums for value in row):
            return
        wanted = next(iter(others.values()))[3]
        for number, group in enumerate(groups):
            ratios = {c: rows[c][3] / rows[group[0]][3] for c in group}
            if all(abs(ratio - 1) <= max(4 * slack, _OTHER_FACTOR) for ratio in ratios.values()):
                continue
            if not all(_is_multiple(rows[group[0]], rows[c], ratios[c], slack) for c in group):
                return
            rest = math.fsum(row[0] for n, row in enumerate(sums) if n != number)
            parts = len(groups) if partition.batch is not None else 1
            errors = {
                c: min(
                    abs(math.sqrt(rest + rows[c][3] ** 2) / (wanted * factor) - 1)
                    for factor in (1, parts)
                )
                for c in group
            }
            least = min(errors, key=lambda c: errors[c])
            odd = [c for c in group if abs(rows[c][3] / rows[least][3] - 1) > 4 * slack]
            item = self.sides[which].ops[index]
            ranks = tuple(sorted({item.parts[c][0] for c in odd}))
            label = columns.labels[place]
            many = ", ".join(f"{rows[c][3] / rows[least][3]:.4g}" for c in odd)
            why = (
                f"{label}, a gradient that all of them hold whole, is {many} times on "
                f"{numbered_text('rank', ranks)} what it is on the others"
            )
            error = max(abs(rows[c][3] / rows[least][3] - 1) for c in odd)
            self.found.odd.append(Odd(which, index, ranks, error, why, label))
            return

    def _unreduced_by_figures(self, which: int, index: int) -> None:
        """Terms of a sum that a call adds to what is whole, and nothing adds up behind."""
        item, terms = self.sides[which].ops[index], self._terms[which]
        op, columns = item.op, self.sides[which].run.columns
        labels = [label for label in terms if label.startswith("input")]
        if not labels or op.phase != "forward" or op.is_module or family(op.type) != "sum":
            return
        whole = [p for p in op.inputs if is_float(columns.dtypes[p]) and columns.shapes[p]]
        rows = [
            figures_in(self.sides[which].runs[rank].columns, part.outputs[0])
            for rank, part in item.parts.values()
            if part.outputs
        ]
        if not whole or self._is_reduced_by_figures(which, rows):
            return
        if not any(odd.which == which for odd in self.found.odd):
            ranks = tuple(sorted({rank for rank, _ in item.parts.values()}))
            why = self._why_unsummed(which, ", ".join(labels))
            self.found.odd.append(Odd(which, index, ranks, math.nan, why))

    def _is_reduced_by_figures(self, which: int, rows: Sequence[_Row]) -> bool:
        """Whether a collective is given it, to add it up."""
        if which not in self._given:
            given: set[_Row] = set()
            for item in self.sides[which].ops:
                if is_collective(item.op) and item.op.type in ADD_UP:
                    for rank, part in item.parts.values():
                        columns = self.sides[which].runs[rank].columns
                        given.update(figures_in(columns, place) for place in part.inputs)
            self._given[which] = given
        return bool(self._given[which].intersection(rows))

    def _tell_unreduced(self, which: int, index: int, label: str) -> None:
        self._is_told = True
        ranks = tuple(sorted({rank for rank, _ in self.sides[which].ops[index].parts.values()}))
        why = (
            f"the gradient {label} is a term of a sum on each of {self.degrees[which].tensor} "
            "tensor parallel ranks: it is read before anything added it up"
        )
        self.found.odd.append(Odd(which, index, ranks, math.nan, why))

    def _hands_gradients_on(self, which: int, index: int) -> bool:
        """Whether its call read more than parameters: gradients of these may be summed later."""
        side = self.sides[which]
        call = side.ops[index].op.call
        for item in side.ops:
            op = item.op
            if op.phase == "forward" and op.call == call:
                dtypes = side.run.columns.dtypes
                return any(p not in op.parameters and is_float(dtypes[p]) for p in op.inputs)
        return False

    def _add_replica(
        self,
        which: int,
        index: int,
        label: str,
        values: Values,
        digit: int,
        partition: Partition,
        reference: NDArray[Any],
    ) -> None:
        """Ranks that should hold the same numbers and do not.

        Those are odd that hold others than the other run; without such, others than most.
        """
        if any(item.which == which and not math.isnan(item.error) for item in self.found.odd):
            return
        odd: dict[int, float] = {}
        parts = self.sides[which].ops[index].parts
        limit = self._limit(which, index, label)
        expected = {c: partition.part(reference, c, sorted(values)) for c in values}
        errors = {c: measure_arrays(expected[c], values[c]).error for c in values}
        if min(errors.values()) > limit:
            errors.clear()
            for group in _groups(values, digit):
                errors.update(_apart(values, group))
        for coordinate, error in errors.items():
            if error > limit:
                odd[parts[coordinate][0]] = error
        if odd:
            what = "a parameter" if not label.startswith(("input", "output")) else "a tensor"
            why = (
                f"{label}, {what} that all of them hold whole, is not the same on "
                f"{numbered_text('rank', odd)} as on the others"
            )
            self._tell_odd(which, index, odd, why, label)

    def _tell_given(
        self,
        indices: tuple[int, int],
        label: str,
        values: tuple[Values, Values],
        possible: Sequence[tuple[Partition, Partition]],
        is_parameter: bool,
    ) -> tuple[bool, bool]:
        """Tell ranks that hold another tensor than the rest and the other run.

        What nothing makes and all ranks hold whole they hold for themselves, so an error that came
        before is no reason.

        Returns:
            Of which side some ranks hold what the other run has, and some do not.
        """
        is_whole = any(
            cut.batch is None and cut.tensor is None for choice in possible[:1] for cut in choice
        ) and _shape_of(values[0]) == _shape_of(values[1])
        if not is_whole or math.prod(_shape_of(values[0])) < 2:
            return False, False
        told = [False, False]
        for which in (0, 1):
            odd = self._not_as_other(which, indices[which], label, values)
            if not odd:
                continue
            told[which] = True
            parts = self.sides[which].ops[indices[which]].parts
            is_given = is_parameter or not any(
                self._is_made(which, indices[which], label, c) for c in odd
            )
            is_first = not any(
                item.which == which and not math.isnan(item.error) for item in self.found.odd
            )
            if not (is_given or is_first):
                continue
            ranks = tuple(sorted({parts[c][0] for c in odd}))
            why = (
                f"{label}, a tensor that all of them hold whole, is not the same on "
                f"{numbered_text('rank', ranks)} as on the others"
            )
            self.found.odd.append(Odd(which, indices[which], ranks, max(odd.values()), why, label))
        return told[0], told[1]

    def _not_as_other(
        self, which: int, index: int, label: str, values: tuple[Values, Values]
    ) -> dict[Coordinate, float]:
        """Errors of ranks that hold another tensor than the other run, where some hold that one."""
        theirs, ours = values[1 - which], values[which]
        reference = next(iter(theirs.values()))
        is_one = all(self._alike(1 - which, theirs, digit) for digit in (0, 2))
        sums = _sums(ours)
        is_sum = sums & self.partial[which] or not sums.isdisjoint(self.reduced[which])
        op = self.sides[which].ops[index].op
        if len(ours) < 2 or not is_one or is_sum or is_random(op.type):
            return {}
        errors = {c: measure_arrays(reference, value).error for c, value in ours.items()}
        limit = self._limit(which, index, label)
        odd = {c: error for c, error in errors.items() if not error <= limit}
        if len(odd) == len(errors) or not all(ours[c].any() for c in odd):
            return {}  # all differ, or some have nothing to add
        return odd

    def _is_made(self, which: int, index: int, label: str, coordinate: Coordinate) -> bool:
        """Whether a call of that rank gives a tensor of the same figures, or nobody knows."""
        side = self.sides[which]
        rank, part = side.ops[index].parts[coordinate]
        columns = side.runs[rank].columns
        place = next((p for p in part.inputs if columns.labels[p] == label), None)
        if place is None or math.isnan(columns.norm[place]):
            return True
        if (which, rank) not in self._made:
            self._made[which, rank] = {
                (math.prod(columns.shapes[p]), figures_in(columns, p))
                for op in side.runs[rank].ops
                if op.phase == "forward"
                for p in op.outputs
            }
        key = math.prod(columns.shapes[place]), figures_in(columns, place)
        return key in self._made[which, rank]

    def _tell_multiple(
        self,
        which: int,
        index: int,
        label: str,
        values: Values,
        partition: Partition,
        expected: NDArray[Any],
    ) -> None:
        """Tell ranks whose gradient is a multiple of that of ranks that hold the same.

        Of terms of a sum none is a multiple of another, so it is a replica that differs.
        """
        if any(item.which == which for item in self.found.odd) or expected.shape != partition.whole:
            return
        limit = max(_OTHER_FACTOR, self._limit(which, index, label))
        odd: dict[int, float] = {}
        factors: dict[int, float] = {}
        parts = self.sides[which].ops[index].parts
        for group in _groups(values, 2):
            multiples = {c: multiple_of(values[group[0]], values[c]) for c in group[1:]}
            if not multiples or not all(residue <= limit / 4 for _, residue in multiples.values()):
                return
            if all(abs(factor - 1) <= limit for factor, _ in multiples.values()):
                continue
            for c in group:
                wanted = partition.part(expected, c, sorted(values))
                factor, residue = multiple_of(wanted, self._with_factor(which, values[c]))
                if residue <= 0.5 * abs(factor - 1) and abs(factor - 1) > limit:
                    odd[parts[c][0]] = abs(factor - 1)
                    factors[parts[c][0]] = factor
        if odd and len(odd) < len(values):
            many = ", ".join(f"{factors[rank]:.4g}" for rank in sorted(odd))
            why = (
                f"{label}, a gradient that all of them hold whole, is {many} times on "
                f"{numbered_text('rank', odd)} what it is on the others"
            )
            self._tell_odd(which, index, odd, why, label)

    def _alike(self, which: int, values: Values, digit: int) -> bool:
        """Whether coordinates that differ in nothing but one digit hold the same numbers."""
        del which
        for group in _groups(values, digit):
            first = values[group[0]]
            for other in group[1:]:
                value = values[other]
                if value.shape != first.shape:
                    return False
                if value.dtype.kind in "biu":
                    if not (value == first).all():
                        return False
                elif measure_arrays(first, value).error > _ROUNDED:
                    return False
        return True

    def _limit(self, which: int, index: int, label: str) -> float:
        op = self.sides[which].ops[index].op
        columns = self.sides[which].run.columns
        for place in op.tensors:
            if columns.labels[place] == label and is_float(columns.dtypes[place]):
                return max(_ROUNDED, _UNITS * roundoff(columns.dtypes[place]) / 4)
        return 0.0

    # -- reading and writing

    def _values(self, which: int, index: int, label: str) -> Values | None:
        """The tensor of every coordinate; None where one lacks it."""
        values: Values = {}
        side = self.sides[which]
        wanted = _coordinates(side)
        parts = side.ops[index].parts
        for coordinate in wanted:
            part = parts.get(coordinate)
            if part is None:
                return None
            columns = side.runs[part[0]].columns
            place = next((p for p in part[1].tensors if columns.labels[p] == label), None)
            if place is None or not columns.files[place]:
                return None
            try:
                values[coordinate] = read_array(columns.files[place], columns.dtypes[place])
            except BadPayload:
                return None
        return values

    def _put_figures(
        self,
        indices: tuple[int, int],
        places: tuple[int, int],
        possible: Sequence[tuple[Partition, Partition]],
        is_parameter: bool,
    ) -> str:
        """Put figures of both sides' parts together: slices have those of the whole, sums don't.

        Returns why that can't be done; "" where it was.
        """
        choice = possible[0]
        if any(self._is_local(which, indices[which], places[which]) for which in (0, 1)):
            return "ranks take rows of their own: figures do not join them"
        made: list[_Row] = []
        means: list[float] = []
        for which in (0, 1):
            rows = self._figures(which, indices[which], places[which])
            if rows is None:
                return "a rank lacks it"
            partition = choice[which]
            label = self.sides[which].run.columns.labels[places[which]]
            if self._is_shared_bias(which, indices[which], label):
                rows = self._summed_bias(which, indices, places, rows)
            if partition.tensor is None and partition.batch is None:
                self._add_replica_by_figures(which, indices, places, rows, is_parameter)
            cells: dict[tuple[int, int], list[_Row]] = {}
            for coordinate, row in sorted(rows.items()):
                cells.setdefault(coordinate[:2], []).append(row)
            over: list[_Row] = []
            for row in cells.values():
                if partition.tensor is None and not _same_figures(row):
                    if self._tell_replica_by_figures(which, indices, places, rows, partition):
                        return "its ranks hold other figures, of which one is the other run's"
                    if _are_others(row):
                        self._terms[which].append(label)
                    self._tell_multiple_by_figures(which, indices, places, rows, partition)
                    self._unreduced_gradient_by_figures(which, indices[which], label, row)
                    return "its ranks hold other figures: terms of a sum, which figures do not tell"
                over.append(joined_figures(row) if partition.tensor is not None else row[0])
            if partition.batch is None and not _same_figures(over) and not is_parameter:
                self._tell_replica_by_figures(which, indices, places, rows, partition)
                return "its ranks hold other figures: terms of a sum, which figures do not tell"
            means += [abs(row[2]) for row in rows.values()]
            made.append(joined_figures(over) if partition.batch is not None else over[0])
        if self.sides[0].ops[indices[0]].op.phase == "backward":
            if math.prod(choice[0].whole) > 1:
                self._find_factor_by_norms(made[0][3], made[1][3])
            for which in (0, 1):
                factor = self.found.factors[which]
                most, least, mean, norm = made[which]
                made[which] = most * factor, least * factor, mean * factor, norm * factor
        dtype = self.sides[0].run.columns.dtypes[places[0]]
        which = 1 if self.sides[1].is_cut else 0
        made[which] = _as_stated(made[which], made[1 - which], dtype, max(means))
        for which in (0, 1):
            self.found.partitions[which, places[which]] = choice[which]
            self._state(which, places[which], choice[which].whole, made[which])
        return ""

    def _summed_bias(
        self, which: int, indices: tuple[int, int], places: tuple[int, int], rows: _Rows
    ) -> _Rows:
        """A bias that each rank adds its share of, as the whole that it is on the other side."""
        others = self._figures(1 - which, indices[1 - which], places[1 - which])
        degree = self.degrees[which].tensor
        whole = {
            coordinate: (row[0] * degree, row[1] * degree, row[2] * degree, row[3] * degree)
            for coordinate, row in rows.items()
        }
        expected = list(others.values()) if others else []
        return whole if expected and _same_figures([*whole.values(), *expected]) else rows

    def _find_factor_by_norms(self, ours: float, theirs: float) -> None:
        """How many times too large gradients are, as their norms say it."""
        if self._has_factor or not any(degrees.batch > 1 for degrees in self.degrees):
            return
        if not (ours > 0 and theirs > 0):
            return
        self._has_factor = True
        best = abs(theirs / ours - 1)
        for which in (0, 1):
            data, micro = self.sides[which].layout.data_parallel, self.sides[which].micro
            for factor in dict.fromkeys((data, micro, data * micro)):
                ratio = theirs / ours * (factor if which == 0 else 1 / factor)
                if factor > 1 and abs(ratio - 1) < 0.1 * best:
                    best = abs(ratio - 1)
                    self.found.factors = [1.0, 1.0]
                    self.found.factors[which] = 1 / factor

    def _add_replica_by_figures(
        self,
        which: int,
        indices: tuple[int, int],
        places: tuple[int, int],
        rows: Mapping[Coordinate, _Row],
        is_parameter: bool,
    ) -> None:
        """Ranks that are given other weights or indices than the other run."""
        columns = self.sides[which].run.columns
        place, index = places[which], indices[which]
        is_given = is_parameter or not is_float(columns.dtypes[place])
        op = self.sides[which].ops[index].op
        if op.phase != "forward" or any(o.which == which for o in self.found.odd):
            return
        if not is_given and not self._comes_from_nowhere(which, index, place):
            return
        others = self._figures(1 - which, indices[1 - which], places[1 - which])
        expected = list(others.values()) if others else []
        if not expected or not _same_figures(expected):
            return
        if _same_figures(list(rows.values())):
            return
        parts = self.sides[which].ops[index].parts
        odd: dict[int, float] = {}
        for coordinate, row in rows.items():
            if not _same_figures([expected[0], row]):
                scale = max(abs(expected[0][3]), math.ulp(1.0))
                odd[parts[coordinate][0]] = (
                    max(abs(a - b) for a, b in zip(expected[0], row, strict=True)) / scale
                )
        if odd and len(odd) < len({rank for rank, _ in parts.values()}):
            label, ranks = columns.labels[place], tuple(sorted(odd))
            why = (
                f"{label}, a tensor that all of them hold whole, is not the same on "
                f"{numbered_text('rank', ranks)} as on the others"
            )
            self.found.odd.append(Odd(which, index, ranks, max(odd.values()), why, label))

    def _comes_from_nowhere(self, which: int, index: int, place: int) -> bool:
        """Whether no call before makes an operand: a dump of calls does not mark weights."""
        run = self.sides[which].run
        columns = run.columns
        if not columns.labels[place].startswith("input") or math.prod(columns.shapes[place]) < 2:
            return False
        row, size = figures_in(columns, place), math.prod(columns.shapes[place])
        return not any(
            figures_in(columns, made) == row and math.prod(columns.shapes[made]) == size
            for op in run.ops[:index]
            for made in op.outputs
        )

    def _figures(self, which: int, index: int, place: int) -> _Rows | None:
        side = self.sides[which]
        label = side.run.columns.labels[place]
        rows: _Rows = {}
        for coordinate in _coordinates(side):
            part = side.ops[index].parts.get(coordinate)
            if part is None:
                return None
            columns = side.runs[part[0]].columns
            p = next((p for p in part[1].tensors if columns.labels[p] == label), None)
            if p is None:
                return None
            rows[coordinate] = figures_in(columns, p)
        return rows

    def _state(
        self, which: int, place: int, shape: tuple[int, ...], figures: tuple[float, ...]
    ) -> None:
        if not self.sides[which].is_cut:
            return
        columns = self.sides[which].run.columns
        columns.most[place], columns.least[place], columns.mean[place], columns.norm[place] = (
            figures
        )
        columns.shapes[place], columns.hashes[place] = shape, ""

    def _write(self, which: int, place: int, value: NDArray[Any]) -> None:
        import numpy as np

        columns = self.sides[which].run.columns
        path = os.path.join(self.folder, f"{which}-{place}.npy")
        np.save(path, value, allow_pickle=False)
        columns.files[place] = path
        columns.shapes[place] = tuple(value.shape)
        columns.most[place] = columns.least[place] = NAN
        columns.mean[place] = columns.norm[place] = NAN
        columns.hashes[place] = ""

    def _shape(self, which: int, place: int) -> tuple[int, ...]:
        return self.sides[which].run.columns.shapes[place]

    def _is_parameter(self, indices: tuple[int, int], places: tuple[int, int]) -> bool:
        return any(
            places[which] in self.sides[which].ops[indices[which]].op.parameters for which in (0, 1)
        )

    def _declared(self, which: int, index: int, label: str) -> int | None:
        """The axis that the layout file names for a parameter of a module, or of its call."""
        side = self.sides[which]
        op = side.ops[index].op
        if label.endswith(".grad"):
            label = label.removesuffix(".grad")
        if label.startswith("input.1") and op.owner and family(op.type) == "matmul":
            label = "weight"
        if not op.owner or label.startswith(("input", "output")):
            return None
        return side.layout.axis(f"{op.owner}.{label}")


def _degrees(side: Chained) -> Degrees:
    layout = side.layout
    rows: set[int] = set()
    for item in side.ops:
        if item.op.phase == "forward":
            for place in item.op.inputs[:1]:
                shape = side.run.columns.shapes[place]
                if len(shape) > layout.batch:
                    rows.add(shape[layout.batch])
            if rows:
                break
    return Degrees(layout.data_parallel * side.micro, layout.tensor_parallel, layout.batch,
                   frozenset(rows))  # fmt: skip


def _coordinates(side: Chained) -> list[Coordinate]:
    layout = side.layout
    return list(product(range(layout.data_parallel), range(side.micro),
                        range(layout.tensor_parallel)))  # fmt: skip


def _reduced(side: Chained) -> dict[int, Across]:
    """Checksums of what collectives combine over ranks, and how they do."""
    sums: dict[int, Across] = {}
    if side.layout.tensor_parallel < 2:
        return sums
    for item in side.ops:
        op = item.op
        if not is_collective(op) or op.type not in ADD_UP:
            continue
        for rank, part in item.parts.values():
            columns = side.runs[rank].columns
            for place in part.inputs:
                if columns.files[place]:
                    try:
                        value = read_array(columns.files[place], columns.dtypes[place])
                    except BadPayload:
                        continue
                    sums[_checksum(value)] = _combined_by(part)
    return sums


def _combined_by(collective: Op) -> Across:
    """How a collective combines what ranks hold, by its ``op`` argument; a sum without one."""
    said = {str(value).rpartition(".")[2].upper() for value in collective.attributes.values()}
    if "MAX" in said:
        return "most"
    return "least" if "MIN" in said else "sum"


def _shape_of(values: Values) -> Shape:
    return tuple(next(iter(values.values())).shape)


def _sums(values: Values) -> set[int]:
    return {_checksum(value) for value in values.values()}


def _checksum(value: NDArray[Any]) -> int:
    import numpy as np

    return zlib.crc32(np.ascontiguousarray(value).tobytes(), value.size)


def _is_multiple(base: _Row, row: _Row, ratio: float, slack: float) -> bool:
    """Whether extremes and mean of a tensor are as many times another's as its norm is."""
    ends = max(abs(row[0]), abs(row[1]))
    return all(abs(row[n] - ratio * base[n]) <= slack * ends for n in (0, 1, 2))


def multiple_of(ours: NDArray[Any], theirs: NDArray[Any]) -> tuple[float, float]:
    """By which factor the second is the first, and what is left over, relative to the second.

    Args:
        ours: any numbers.
        theirs: as many.

    Returns:
        Infinity as the rest where there is no such factor: of one number any other is a multiple.
    """
    import numpy as np

    a, b = np.ravel(ours).astype(np.float64), np.ravel(theirs).astype(np.float64)
    if a.size != b.size or a.size < _LEAST_MULTIPLE or not (a.any() and b.any()):
        return math.nan, math.inf
    factor = float(np.dot(a, b) / np.dot(a, a))
    rest = math.sqrt(float(np.dot(b - factor * a, b - factor * a) / np.dot(b, b)))
    return factor, rest if math.isfinite(rest) else math.inf


def _groups(values: Mapping[Coordinate, object], digit: int) -> list[list[Coordinate]]:
    """Coordinates that differ in one digit alone (0: data parallel number and micro-batch)."""
    groups: dict[tuple[int, ...], list[Coordinate]] = {}
    for coordinate in sorted(values):
        rest = coordinate[:2] if digit == 2 else coordinate[2:]
        groups.setdefault(rest, []).append(coordinate)
    return list(groups.values())


def _apart(values: Values, group: Sequence[Coordinate]) -> dict[Coordinate, float]:
    """How far each is from what most of them hold; of two, the second from the first."""
    sums = {coordinate: _checksum(values[coordinate]) for coordinate in group}
    counts = list(sums.values())
    usual = max(group, key=lambda item: counts.count(sums[item]))
    return {
        coordinate: measure_arrays(values[usual], values[coordinate]).error
        for coordinate in group
        if coordinate != usual
    }


def _as_stated(own: _Row, other: _Row, dtype: str, mean: float) -> _Row:
    """Figures put together of rounded ones: those of the other run, where only rounding differs.

    Norms and means of half precision are stated in it, so those of parts do not make up the
    whole's to the last digit; extremes do.

    Args:
        own: figures put together.
        other: of the other run.
        dtype: of the tensor.
        mean: the largest mean of a part.
    """
    unit = roundoff(dtype)
    if unit < _HALF or own[:2] != other[:2]:
        return own
    if not math.isclose(own[3], other[3], rel_tol=_STATED_UNITS * unit):
        return own
    if abs(own[2] - other[2]) > _STATED_UNITS * unit * mean:
        return own
    return (*own[:2], *other[2:])


def _are_others(rows: Sequence[_Row]) -> bool:
    """Whether figures are surely of other tensors: a norm or an extreme says so."""
    sizes = [max(abs(row[0]), abs(row[1])) for row in rows]
    return any(
        abs(a - b) > _OTHER_TERMS * max(scale)
        for row in rows[1:]
        for a, b, scale in (
            (rows[0][3], row[3], (abs(rows[0][3]), abs(row[3]))),
            (rows[0][0], row[0], sizes),
            (rows[0][1], row[1], sizes),
        )
    )


def _same_figures(rows: Sequence[tuple[float, ...]]) -> bool:
    """Whether figures are those of one tensor: what they are off by is small beside its norm."""
    scale = max((abs(row[3]) for row in rows if math.isfinite(row[3])), default=0.0)
    return all(
        a == b or abs(a - b) <= _SAME_FIGURES * max(scale, abs(a), abs(b))
        for row in rows[1:]
        for a, b in zip(rows[0], row, strict=True)
        if not (math.isnan(a) or math.isnan(b))
    )


def _forget(op: Op, place: int) -> None:
    op.inputs = [other for other in op.inputs if other != place]
    op.outputs = [other for other in op.outputs if other != place]
