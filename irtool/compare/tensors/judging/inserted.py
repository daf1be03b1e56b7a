"""A function that one side alone puts between two calls that both have: a soft cap, say.

What goes into it agrees with what the other side reads directly.  In half precision its effect on
single elements may hide in rounding, its bias does not: rounding to nearest errs up as often as
down, so the factor between what goes in and what comes out, *on that side alone*, is 1 but for a
share of a unit that shrinks with the number of elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.judging.bias import evenly, is_comparable, scale_of
from irtool.compare.tensors.measuring.measure import Measure, Sides, measure_all
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.semantics import family, is_random

_MOST_CALLS = 8
"""Calls of such a function that are followed back."""
_UNITS = 8.0
"""Units of the type, or times the error before, that what goes in may be off by."""
_SHARE = 0.125
"""Units that a call may bring one way only; 4 sigma of rounding few elements are more."""
_MOVED = 4.0
"""Units of the type that a call may move its input by, whichever way."""
_DOUBT = 0.05
"""What rounding may move the share of a function by that is missing, for it to be believed."""
_NEARLY_ALL = 0.25
"""How far that share may be from one."""
_FIGURES_MOVED = 2
"""Figures that a function has to change: one alone may be the order in which it is summed."""
_CAST = 2.0
"""Units of the shorter type that the norm of a tensor and that of its cast may be apart."""
_HAND_ON = frozenset(("view", "cast"))
_LINEAR = frozenset(("product", "sum"))
"""Families whose factor other rules judge: a bare number may be rounded itself."""


def chain_before(
    run: TensorRun, maker: Callable[[Op, int], Op | None], reader: Op, place: int
) -> tuple[list[Op], int]:
    """The calls without a partner that lead to an input one after the other, and what they read.

    Args:
        run: the dump.
        maker: gives the call without a partner that made what an operator reads, or None.
        reader: the operator that reads the input.
        place: of the input.

    Returns:
        The calls in their order, each with one tensor of that size, and the place of what the
        first reads; no call where the input has another history.
    """
    columns = run.columns
    size = math.prod(columns.shapes[place])
    calls: list[Op] = []
    while len(calls) < _MOST_CALLS and (op := maker(reader, place)) is not None:
        given = [
            p
            for p in op.inputs
            if is_float(columns.dtypes[p]) and math.prod(columns.shapes[p]) == size
        ]
        if len(given) != 1:
            return [], place
        calls.insert(0, op)
        reader, place = op, given[0]
    return calls, place


def inserted_function(
    runs: tuple[TensorRun, TensorRun],
    makers: Makers,
    readers: tuple[Op, Op],
    places: Places,
    measure: Measure,
    before: float,
    unit: float,
) -> str:
    """What such a function does to an input, in words; empty where there is none, or no effect.

    Args:
        runs: both dumps.
        makers: operators without a partner.
        readers: the operator of either side that reads the input.
        places: of the input in both.
        measure: of the input.
        before: the largest error before.
        unit: roundoff of the coarsest type that the input has been through.
    """
    for which in (0, 1):
        side, other = runs[which].columns, runs[1 - which].columns

        def maker(reader: Op, place: int, which: int = which) -> Op | None:
            return makers.maker(which, reader, place)

        calls, source = chain_before(runs[which], maker, readers[which], places[which])
        families = {family(op.type) for op in calls} - _HAND_ON
        if not families or any(is_random(op.type) for op in calls):
            continue
        (entry,) = measure_all(Sides(side, other, [(source, places[1 - which])]))
        (effect,) = measure_all(Sides(side, side, [(source, places[which])]))
        if not (entry.exact and effect.exact) or entry.error > _UNITS * max(before, unit):
            continue
        is_made_up = makers.has_call_after(1 - which, readers[1 - which], _MOST_CALLS)
        whose = f"the {('left', 'right')[which]}"
        size = math.prod(side.shapes[source])
        text = effect_text(calls, whose, (entry, effect, measure), unit, size, is_made_up)
        if text:
            return text
    return ""


def effect_text(
    calls: Sequence[Op],
    whose: str,
    measures: tuple[Measure, Measure, Measure],
    unit: float,
    size: int,
    is_made_up: bool = False,
) -> str:
    """What calls of one side alone do to a tensor, in words; empty for what rounding does as well.

    Args:
        calls: one after the other.
        whose: of which side or rank they are.
        measures: of what goes in beside what the other side reads; of that beside what comes out;
            of what comes out beside what the other side reads.
        unit: roundoff of the coarsest type that it has been through.
        size: number of elements.
        is_made_up: the other side has another call behind, which may do the same.
    """
    entry, effect, measure = measures
    families = {family(op.type) for op in calls} - _HAND_ON
    name = calls[0].name if len(calls) == 1 else f"{calls[0].name} to {calls[-1].name}"
    alone = f" goes through {name} on {whose} alone, which "
    if families - _LINEAR and _is_biased(effect, size, unit, len(calls)):
        return f"{alone}makes it {scale_of(effect):+.2%} longer: rounding does not"
    moved = _MOVED * unit * math.sqrt(len(calls))
    if effect.error > max(moved, 2 * entry.error):
        return f"{alone}moves it by {effect.error:.2g}: more than rounding does"
    if not is_made_up and effect.error > unit and is_missing(measure, effect, entry, size):
        return f"{alone}changes it by {effect.error:.2g}: the other side lacks that change"
    return ""


def absent_function(
    runs: tuple[TensorRun, TensorRun],
    makers: Makers,
    readers: tuple[Op, Op],
    places: Places,
) -> str:
    """Which function of one side the other lacks, by figures; in words, empty for none.

    The other side reads a tensor of all the figures of what goes into the function, to the last
    digit: something that did the same there would have changed them as the function does.

    Args:
        runs: both dumps.
        makers: operators without a partner.
        readers: the operator of either side that reads the input.
        places: of the input in both.
    """
    for which in (0, 1):
        other = 1 - which

        def maker(reader: Op, place: int, which: int = which) -> Op | None:
            return makers.maker(which, reader, place)

        calls, source = chain_before(runs[which], maker, readers[which], places[which])
        families = {family(op.type) for op in calls} - _HAND_ON
        if not families or any(is_random(op.type) for op in calls):
            continue
        ours, theirs = runs[which].columns, runs[other].columns
        moved = _figures_moved((ours, source), (ours, places[which]))
        if _figures_moved((ours, source), (theirs, places[other])) != 0:
            continue
        if moved >= _FIGURES_MOVED and not makers.has_call_after(
            other, readers[other], _MOST_CALLS
        ):
            name = calls[0].name if len(calls) == 1 else f"{calls[0].name} to {calls[-1].name}"
            side = ("left", "right")[which]
            return f" goes through {name} on the {side} alone: the other side reads what goes in"
    return ""


def _figures_moved(one: tuple[Columns, int], other: tuple[Columns, int]) -> float:
    """How many of four figures two tensors differ in; NaN where not all are known, or one is flat.

    Of two types one is the other, cast: sums are stated in either, and may differ by its rounding.
    """
    figures = [
        (columns.most[place], columns.least[place], columns.mean[place], columns.norm[place])
        for columns, place in (one, other)
    ]
    if not all(map(math.isfinite, (*figures[0], *figures[1]))) or figures[0][0] == figures[0][1]:
        return math.nan
    dtypes = {columns.dtypes[place] for columns, place in (one, other)}
    loose = _CAST * max(map(roundoff, dtypes)) if len(dtypes) > 1 else 0.0
    tolerances = (0.0, 0.0, loose, loose)
    return sum(
        not math.isclose(a, b, rel_tol=tolerance)
        for a, b, tolerance in zip(*figures, tolerances, strict=True)
    )


def is_missing(measure: Measure, effect: Measure, entry: Measure, size: int) -> bool:
    """Whether one side lacks what a function of the other changes, however much rounding there is.

    With *d* what the function changes and *r* what the other side reads, the share of *d* that is
    missing in *r* is ⟨out − r, d⟩ / ⟨d, d⟩: 1 where the function is missing, 0 where something else
    does the same; rounding, which knows nothing of *d*, moves it by ‖in − r‖ / (‖d‖ √n).

    Args:
        measure: of what comes out of the function and what the other side reads.
        effect: of what goes into the function and what comes out of it.
        entry: of what goes into it and what the other side reads.
        size: number of elements, *n*.
    """
    change = effect.distance
    if not change or entry.distance > _DOUBT * change * math.sqrt(size):
        return False
    share = (measure.distance**2 + change**2 - entry.distance**2) / (2 * change**2)
    return abs(share - 1) < _NEARLY_ALL


def _is_biased(effect: Measure, size: int, unit: float, calls: int) -> bool:
    """Whether the factor between what goes in and what comes out is more than rounding."""
    if not effect.exact or not is_comparable(effect):
        return False
    share = evenly(size, _SHARE)
    return abs(scale_of(effect)) > unit * share * math.sqrt(calls)
