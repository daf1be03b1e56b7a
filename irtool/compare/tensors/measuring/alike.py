"""How two tensors are alike in whatever layout, by values, else by figures.

Layouts are the free choice of who writes a network: a matrix is kept the other way round, its rows
in another order, three of them as one.  The numbers are the same ones whatever the layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.model import Columns, TensorRun
from irtool.ir.dataclass import dataclass

Numbers: TypeAlias = Any
"""An array of numbers in double precision; typing it further brings nothing but casts."""
MOST_ELEMENTS = 1 << 24
"""Elements up to which values are looked at in other layouts."""
SUMMED = 4e-6
"""Relative difference of norms and means that another order of summing can make."""
RELATED = 1.0
"""Relative error below which two tensors have more in common than not: of two of one norm that
have nothing in common it is √2, and it is 1 where they correlate by a half."""
NEAR_FIGURES = 0.1
"""The same of figures, of which those of unlike matrices are often as far apart."""
_NEAR_ONE = 8
"""Standard errors up to which a factor may be one: rounding moves it by a unit over √n."""
_REST = 4
"""Units of Float32 that may be left behind a factor, which is rounded itself."""
_EXPLAINS = 0.5
"""What a factor has to leave of the error at most, to explain it."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What two tensors have to do with each other.

    Attributes:
        error: relative; 0 where both hold the same numbers, whatever their order.
        factor: by which the left one becomes the right one, up to rounding; NaN where none does.
        is_reordered: the numbers stand in another order.
        is_turned: the rows of one are the columns of the other.
        ratio: of the norms, right over left.
    """

    error: float
    factor: float = math.nan
    is_reordered: bool = False
    is_turned: bool = False
    ratio: float = math.nan

    @property
    def is_same_numbers(self) -> bool:
        """Whether both hold the same numbers, in whatever order."""
        return self.error == 0

    @property
    def turned_round(self) -> Likeness:
        """The same with both sides exchanged."""
        return replace(self, factor=1 / self.factor, ratio=1 / self.ratio)


def values_of(run: TensorRun, place: int) -> Numbers | None:
    """The values of a tensor in double precision; None where they are not at hand, or too many.

    Args:
        run: the dump.
        place: of the tensor.
    """
    import numpy as np

    columns = run.columns
    if not columns.files[place] or math.prod(columns.shapes[place]) > MOST_ELEMENTS:
        return None
    try:
        array = read_array(columns.files[place], columns.dtypes[place])
    except BadPayload:
        return None
    if array.size != math.prod(columns.shapes[place]) or array.dtype.kind not in "fiu":
        return None
    wide: Numbers = array.astype(np.float64)
    return wide.reshape(columns.shapes[place])


def likeness(
    left: TensorRun, a: int, right: TensorRun, b: int, unit: float = 0.0
) -> Likeness | None:
    """How two tensors of as many elements are alike; None where they have nothing in common.

    Args:
        left: one dump.
        a: the tensor in it.
        right: the other dump.
        b: the tensor in it.
        unit: relative error that elements may have, where that is more than rounding.
    """
    unit = max(unit, roundoff(left.columns.dtypes[a]), roundoff(right.columns.dtypes[b]))
    ours, theirs = values_of(left, a), values_of(right, b)
    if ours is None or theirs is None:
        return _by_figures(left.columns, a, right.columns, b, unit)
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):  # squares of the largest numbers
        return of_values(ours, theirs, unit)


def of_values(ours: Numbers, theirs: Numbers, unit: float) -> Likeness | None:
    """The same of values.

    Args:
        ours: of the left side.
        theirs: of the right side, as many.
        unit: roundoff of the coarser type.
    """
    import numpy as np

    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return None
    straight, turned = ours.reshape(-1), theirs.reshape(-1)
    norms = [float(np.linalg.norm(side)) for side in (straight, turned)]
    ratio = norms[1] / norms[0] if norms[0] else math.nan
    errors = [_error(straight, turned)]
    is_turned = False
    if ours.ndim == theirs.ndim == 2 and ours.shape == theirs.shape[::-1]:
        columns: Numbers = np.ascontiguousarray(theirs.T)
        other = columns.reshape(-1)
        errors.append(_error(straight, other))
        if errors[1] < errors[0]:
            is_turned, turned = True, other
    error = min(errors)
    if error == 0:
        return Likeness(0.0, is_turned=is_turned)
    factor = factor_between(straight, turned, unit)
    if not math.isnan(factor):
        return Likeness(error, factor, is_turned=is_turned, ratio=ratio)
    sorted_ours, sorted_theirs = np.sort(straight), np.sort(turned)
    if np.array_equal(sorted_ours, sorted_theirs):  # of large ones two rows may be exchanged
        return Likeness(0.0, is_reordered=True)
    if error < RELATED / 4:
        return Likeness(error, factor, is_turned=is_turned, ratio=ratio)
    factor = _plain_factor(sorted_ours, sorted_theirs, unit)
    if not math.isnan(factor):
        return Likeness(abs(factor - 1) / max(factor, 1.0), factor, is_reordered=True, ratio=ratio)
    rows = _by_rows(ours, theirs)
    if rows < error and rows < RELATED / 4:
        return Likeness(rows, is_reordered=True, ratio=ratio)
    return Likeness(error, ratio=ratio) if error < RELATED else None


def _error(ours: Numbers, theirs: Numbers) -> float:
    """The norm of the difference over the larger norm."""
    import numpy as np

    norms = [math.sqrt(float(np.dot(side, side))) for side in (ours, theirs)]
    delta = ours - theirs
    return math.sqrt(float(np.dot(delta, delta))) / max(*norms, 1e-300)


def factor_between(ours: Numbers, theirs: Numbers, unit: float) -> float:
    """The positive factor by which one tensor becomes the other up to rounding; NaN for none.

    Args:
        ours: of the left side, flat.
        theirs: of the right side, flat.
        unit: roundoff of the coarser type.
    """
    import numpy as np

    square = float(np.dot(ours, ours))
    factor = float(np.dot(ours, theirs)) / square if square else 0.0
    if not factor > 0 or abs(factor - 1) <= _NEAR_ONE * unit / math.sqrt(ours.size):
        return math.nan
    rest = _error(factor * ours, theirs)
    is_rounding = rest <= max(unit, _REST * 2.0**-24)
    return factor if is_rounding and rest <= _EXPLAINS * _error(ours, theirs) else math.nan


def _plain_factor(ours: Numbers, theirs: Numbers, unit: float) -> float:
    """The same of numbers that were sorted; NaN of half precision.

    Any two sets of one kind are nearly multiples then, and rounding hides what tells them apart.
    """
    return factor_between(ours, theirs, unit) if unit <= 2.0**-20 else math.nan


def _by_rows(ours: Numbers, theirs: Numbers) -> float:
    """Of two matrices the error behind the order of rows in which each has the one most like it."""
    import numpy as np

    best = math.inf
    if ours.ndim != 2 or theirs.ndim != 2:
        return best
    for left, right in ((ours, theirs), (ours.T, theirs.T), (ours, theirs.T)):
        if left.shape != right.shape or left.shape[0] ** 2 > MOST_ELEMENTS:
            continue
        norms = [np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right)]
        if not (norms[0].all() and norms[1].all()):
            continue
        alike = (left / norms[0]) @ (right / norms[1]).T
        order: Numbers = alike.argmax(1)
        if len(set(order.tolist())) == len(order):
            best = min(best, _error(left.reshape(-1), right[order].reshape(-1)))
    return best


def _by_figures(left: Columns, a: int, right: Columns, b: int, unit: float) -> Likeness | None:
    """How two tensors are alike as far as stated figures tell."""
    return likeness_of_figures(stated(left, a), stated(right, b), math.prod(left.shapes[a]), unit)


def stated(columns: Columns, place: int) -> Stated:
    """The figures of a tensor.

    Args:
        columns: of its dump.
        place: where it is in them.
    """
    return Stated(
        columns.most[place], columns.least[place], columns.norm[place], columns.mean[place]
    )


class Stated(NamedTuple):
    """Figures of a tensor, of which the mean may be missing (NaN)."""

    most: float
    least: float
    norm: float
    mean: float


def likeness_of_figures(ours: Stated, theirs: Stated, size: int, unit: float) -> Likeness | None:
    """How two tensors are alike as far as their stated figures tell.

    Args:
        ours: of the left side.
        theirs: of the right side.
        size: elements of each.
        unit: roundoff of the coarser type, in which figures may be stated.
    """
    if not all(map(math.isfinite, (*ours[:3], *theirs[:3]))):
        return None
    largest = max(abs(ours.most), abs(ours.least), abs(theirs.most), abs(theirs.least)) or 1.0
    norm = max(ours.norm, theirs.norm) or 1.0
    rms = norm / math.sqrt(size or 1)
    means = (0.0, 0.0) if math.isnan(ours.mean + theirs.mean) else (ours.mean, theirs.mean)
    left, right = (ours.most, ours.least, ours.norm, means[0]), (*theirs[:3], means[1])
    scale = (largest, largest, norm, rms)
    deltas = [abs(x - y) / s for x, y, s in zip(left, right, scale, strict=True)]
    ratio = theirs.norm / ours.norm if ours.norm > 0 else math.nan
    loose = max(abs(means[0]), abs(means[1])) / rms * half_unit(*means)
    is_same = deltas[:2] == [0.0, 0.0] and deltas[3] <= SUMMED + loose
    if is_same and deltas[2] <= SUMMED + half_unit(ours.norm, theirs.norm):
        return Likeness(0.0)
    if ratio > 0 and abs(ratio - 1) > 2 * max(unit, SUMMED):
        rests = [
            abs(ratio * x - y) / (max(ratio, 1.0) * s)
            for x, y, s in zip(left, right, scale, strict=True)
        ]
        if max(rests) <= max(2 * unit, _REST * SUMMED):
            return Likeness(max(deltas), ratio, ratio=ratio)
    return Likeness(max(deltas), ratio=ratio) if max(deltas) < NEAR_FIGURES else None


def half_unit(ours: float, theirs: float) -> float:
    """How far two sums may be apart that are both stated in half precision; 0 where they are not.

    That is one unit in the last place, which another order of summing tips over.

    Args:
        ours: of the left side.
        theirs: of the right side.
    """
    for bits in (8, 11):  # BFloat16, Float16
        if all(math.frexp(stated)[0] * 2**bits % 1 == 0 for stated in (ours, theirs)):
            return 2.0 ** (1 - bits)
    return 0.0


def stated_unit(columns: Columns, places: Sequence[int]) -> float:
    """The coarsest roundoff of some tensors.

    Args:
        columns: of their dump.
        places: of the tensors.
    """
    return max((roundoff(columns.dtypes[place]) for place in places), default=0.0)
