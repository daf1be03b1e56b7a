"""Results that one side hands on as they are, and the other does not.

Views change no number.  Where an input *is* an earlier result on one side, bit by bit, it has to be
the partner of that result on the other side as well; if it is not, something that the dump does not
show came between: a hook on a gradient, arithmetic in place.  This is told whatever errors came
before, since each side is held against itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.judging.bias import is_comparable
from irtool.compare.tensors.measuring.measure import Measure, Sides, measure_all
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.ir.dataclass import dataclass

_UNITS = 4.0
"""Units of the type that an input has to be apart to be looked at, and off what was handed on."""
_MOST_BEFORE = 0.25
"""Relative error of the earlier result from which nothing is said of what follows it."""
_TIMES_BEFORE = 2.0
"""How many times that error the change in between has to be."""

_Identity: TypeAlias = tuple[int, float, float, float, float]


@dataclass(slots=True)
class Handed:
    """Earlier results of both sides, by all figures of them."""

    runs: tuple[TensorRun, TensorRun]
    _results: tuple[dict[_Identity, tuple[Op, Places]], dict[_Identity, tuple[Op, Places]]] = field(
        init=False, default_factory=lambda: ({}, {})
    )

    def remember(self, op: Op, results: Sequence[Places]) -> None:
        """Results of an operator that both sides have; a later one of the same figures counts.

        Args:
            op: of the left run.
            results: places in both.
        """
        for places in results:
            for which in (0, 1):
                key = _identity(self.runs[which].columns, places[which])
                if key is not None:
                    self._results[which][key] = op, places

    def changed(
        self, places: Places, error: float, measures: Mapping[Places, Measure]
    ) -> tuple[str, Measure] | None:
        """What happened to an input on one side alone: where it came from, and how far it moved.

        Args:
            places: of the input in both dumps.
            error: how far it is apart.
            measures: of all pairs of tensors.

        Returns:
            In words, with the measure of the input against what was handed on; None for nothing.
        """
        columns = self.runs[0].columns, self.runs[1].columns
        unit = max(roundoff(columns[n].dtypes[places[n]]) for n in (0, 1))
        if not error > _UNITS * unit:
            return None
        keys = [_identity(columns[n], places[n]) for n in (0, 1)]
        for which in (0, 1):
            key = keys[which]
            known = None if key is None else self._results[which].get(key)
            if known is None:
                continue
            op, results = known
            other = 1 - which
            if _identity(columns[other], results[other]) == keys[other]:
                return None
            before = measures[results].error
            if not before <= _MOST_BEFORE or not _is_same(columns[which], results, places, which):
                continue
            if not _is_one_type(columns[other], results[other], places[other]):
                continue
            moved = results[other], places[other]
            (effect,) = measure_all(Sides(columns[other], columns[other], [moved]))
            limit = max(_UNITS * unit, _TIMES_BEFORE * before)
            if is_comparable(effect) and effect.error > limit:
                sides = ("left", "right")
                return (
                    f" is what {op.name} gives on the {sides[which]}, and not so on the "
                    f"{sides[other]}"
                ), effect
        return None


def _identity(columns: Columns, place: int) -> _Identity | None:
    """What tells a tensor from others: all that is stated of it."""
    norm = columns.norm[place]
    if not norm > 0 or not math.isfinite(norm) or math.prod(columns.shapes[place]) < 2:
        return None
    ends = columns.most[place], columns.least[place], columns.mean[place]
    most, least, mean = (0.0 if math.isnan(figure) else figure for figure in ends)
    return math.prod(columns.shapes[place]), norm, most, least, mean


def _is_same(columns: Columns, results: Places, places: Places, which: int) -> bool:
    """Whether an input has the numbers of a result, where there are values to see it by."""
    if not _is_one_type(columns, results[which], places[which]):
        return False
    (measure,) = measure_all(Sides(columns, columns, [(results[which], places[which])]))
    return measure.error == 0 or measure.equal


def _is_one_type(columns: Columns, a: int, b: int) -> bool:
    return columns.dtypes[a] == columns.dtypes[b]
