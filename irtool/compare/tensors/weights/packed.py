"""A matrix of weights on one side that is several on the other: queries, keys and values, experts.

Rows are looked up one by one, so the order in which they are packed, and whether the heads are
interleaved, makes no difference.  From figures the largest number, the smallest one and the sum of
squares of the parts have to be those of the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from irtool.compare.tensors.measuring.alike import (
    Likeness,
    Numbers,
    Stated,
    likeness_of_figures,
    of_values,
    stated,
    stated_unit,
    values_of,
)
from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import Shape, TensorRun
from irtool.ir.dataclass import dataclass

_MOST_PARTS = 256
_SHARE = 0.5
"""Share of the rows that have to be found in the whole for the others to be other numbers of it."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Parts of one side that are a whole of the other.

    Attributes:
        parts: their places.
        differing: places of those that are not all in the whole; of figures, which do not say
            which, all of them.
        likeness: how these are like what is left of the whole; None where they are not at all.
        is_by_figures: whether figures alone were looked at.
    """

    parts: tuple[int, ...]
    differing: tuple[int, ...] = ()
    likeness: Likeness | None = None
    is_by_figures: bool = False


def packed_in(
    whole_run: TensorRun,
    whole: int,
    parts_run: TensorRun,
    free: Sequence[int],
    *,
    exactly: bool = False,
) -> Packed | None:
    """The parts that make up a whole, if some do.

    Args:
        whole_run: the dump with the whole.
        whole: its place.
        parts_run: the other dump.
        free: places of its weights that have no counterpart, in the order in which they are read.
        exactly: whether all of it has to be in them, and nothing else.
    """
    for places in _that_add_up(whole_run, whole, parts_run, free):
        array = values_of(whole_run, whole)
        arrays = [values_of(parts_run, place) for place in places]
        if array is None or any(part is None for part in arrays):
            packed = _by_figures(whole_run, whole, parts_run, places)
        else:
            known = [part for part in arrays if part is not None]
            unit = max(
                stated_unit(whole_run.columns, (whole,)), stated_unit(parts_run.columns, places)
            )
            packed = _by_rows(array, places, known, unit)
        if packed is not None and not (exactly and packed.differing):
            return packed
    return None


def _that_add_up(
    whole_run: TensorRun, whole: int, parts_run: TensorRun, free: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Weights that are read one after the other and hold as many numbers as the whole."""
    size = math.prod(whole_run.columns.shapes[whole])
    has_axes = len(whole_run.columns.shapes[whole]) > 1
    shapes = parts_run.columns.shapes
    free = [place for place in free if (len(shapes[place]) > 1) is has_axes]
    for start in range(len(free)):
        total = 0
        for end in range(start, min(len(free), start + _MOST_PARTS)):
            total += math.prod(shapes[free[end]])
            if total >= size:
                if total == size and end > start:
                    yield tuple(free[start : end + 1])
                break


def _by_rows(
    whole: Numbers, places: tuple[int, ...], parts: Sequence[Numbers], unit: float
) -> Packed | None:
    import numpy as np

    if whole.ndim == 1 and (packed := _in_order(whole, places, parts, unit)):
        return packed
    nearest: Packed | None = None
    for rows in _ways(whole):
        width = rows.shape[1]
        ours = Counter(row.tobytes() for row in rows)
        missing: list[Numbers] = []
        odd: list[int] = []
        for place, part in zip(places, parts, strict=True):
            lacking = _lacking(part, width, ours)
            if lacking is None:
                break
            if len(lacking):
                odd.append(place)
                missing.append(lacking)
        else:
            if not odd:
                return Packed(places)
            left = rows[_left_over(rows, ours)]
            rest = np.concatenate(missing)
            likeness = of_values(left, rest, unit) if left.shape == rest.shape else None
            is_found = len(rest) <= _SHARE * len(rows)
            if is_found or (likeness is not None and likeness.error < _SHARE):
                nearest = nearest or Packed(places, tuple(odd), likeness)
    return nearest


def _in_order(
    whole: Numbers, places: tuple[int, ...], parts: Sequence[Numbers], unit: float
) -> Packed | None:
    """Parts of a vector that stand in it one after the other, as most of them show."""
    start = 0
    odd: list[int] = []
    pieces: tuple[list[Numbers], list[Numbers]] = ([], [])
    for place, part in zip(places, parts, strict=True):
        piece = whole[start : start + part.size]
        start += part.size
        if not (piece == part).all():
            odd.append(place)
            pieces[0].append(piece)
            pieces[1].append(part)
    if len(odd) > _SHARE * len(places):
        return None
    if not odd:
        return Packed(places)
    import numpy as np

    likeness = of_values(np.concatenate(pieces[0]), np.concatenate(pieces[1]), unit)
    return Packed(places, tuple(odd), likeness)


def _ways(array: Numbers) -> Iterator[Numbers]:
    """The rows of a tensor, and its columns; of a vector its numbers one by one."""
    import numpy as np

    if array.ndim == 1:
        yield np.ascontiguousarray(array.reshape(-1, 1))
        return

    yield np.ascontiguousarray(array.reshape(-1, array.shape[-1]))
    turned = np.swapaxes(array, -1, -2)
    yield np.ascontiguousarray(turned.reshape(-1, turned.shape[-1]))


def _lacking(part: Numbers, width: int, whole: Counter[bytes]) -> Numbers | None:
    """Rows of a part that a whole does not have; those it has are taken out of it.

    Returns:
        None where the part has no rows of that length.
    """
    fewest: tuple[Numbers, list[int]] | None = None
    for rows in _ways(part):
        if rows.shape[1] != width:
            continue
        left = Counter(whole)
        lacking: list[int] = []
        for number, row in enumerate(rows):
            key = row.tobytes()
            if left[key] > 0:
                left[key] -= 1
            else:
                lacking.append(number)
        if fewest is None or len(lacking) < len(fewest[1]):
            fewest = rows, lacking
    if fewest is None:
        return None
    rows, lacking = fewest
    gone = set(lacking)
    whole.subtract(row.tobytes() for number, row in enumerate(rows) if number not in gone)
    return rows[lacking]


def _left_over(rows: Numbers, left: Counter[bytes]) -> list[int]:
    """Which rows of a whole no part has."""
    counts = Counter(left)
    kept: list[int] = []
    for number, row in enumerate(rows):
        key = row.tobytes()
        if counts[key] > 0:
            counts[key] -= 1
            kept.append(number)
    return kept


def _by_figures(
    whole_run: TensorRun, whole: int, parts_run: TensorRun, places: tuple[int, ...]
) -> Packed | None:
    for place in places:
        complete(parts_run.columns, place, False)
    complete(whole_run.columns, whole, False)
    ours, theirs = whole_run.columns, parts_run.columns
    size = math.prod(ours.shapes[whole])
    means = [theirs.mean[place] * math.prod(theirs.shapes[place]) for place in places]
    joined = Stated(
        max(theirs.most[place] for place in places),
        min(theirs.least[place] for place in places),
        math.sqrt(sum(theirs.norm[place] ** 2 for place in places)),
        sum(means) / size,
    )
    unit = max(stated_unit(ours, (whole,)), stated_unit(theirs, places))
    likeness = likeness_of_figures(stated(ours, whole), joined, size, unit)
    if likeness is not None and likeness.error <= (unit if unit > 2.0**-20 else 0.0):
        return Packed(places)  # the sum of squares of norms that are stated in half precision
    # Of any numbers of one kind figures are near each other: shapes have to tell what is a part.
    if likeness is None or not _fit(ours.shapes[whole], [theirs.shapes[p] for p in places]):
        return None
    return Packed(places, places, likeness, is_by_figures=True)


def _fit(whole: Shape, parts: Sequence[Shape]) -> bool:
    """Whether parts make up a whole along one of its axes, as they are or the other way round."""
    for turned in (parts, [shape[::-1] for shape in parts]):
        if any(len(shape) != len(whole) for shape in turned):
            continue
        for axis, size in enumerate(whole):
            others = whole[:axis], whole[axis + 1 :]
            if sum(shape[axis] for shape in turned) == size and all(
                (shape[:axis], shape[axis + 1 :]) == others for shape in turned
            ):
                return True
    return False
