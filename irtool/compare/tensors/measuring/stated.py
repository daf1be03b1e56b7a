"""How far tensors are apart by the figures that dumps state of them, all pairs at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from irtool.compare.tensors.measuring.values import MASKED, UNKNOWN, Measure
from irtool.compare.tensors.model import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_TINY = 1e-45
"""Below the smallest Float32: no root mean square is less, unless everything is zero."""


class _Figures(NamedTuple):
    """What one side states, by pair."""

    most: Numbers
    least: Numbers
    mean: Numbers
    norm: Numbers
    size: Numbers
    broken: Numbers


def measure_stated(
    left: Columns, right: Columns, pairs: Sequence[tuple[int, int]]
) -> list[Measure]:
    """Measure pairs of tensors by figures; by checksums where there are no figures.

    Args:
        left: columns of one dump.
        right: columns of the other.
        pairs: places in both.

    Returns:
        A measure for each pair, in their order.
    """
    import numpy as np

    a, b = (
        _figures(left, [place for place, _ in pairs]),
        _figures(right, [place for _, place in pairs]),
    )
    a, b = _masked_alike(a, b)
    hidden = max(left.resolution, right.resolution)
    with np.errstate(all="ignore"):
        extreme = np.fmax(_extreme(a), _extreme(b))
        norm = np.fmax(a.norm, b.norm)
        rms = np.where(np.isnan(norm), extreme, norm / np.sqrt(np.maximum(a.size, 1.0)))
        error = np.full(len(pairs), np.nan)
        equal = np.ones(len(pairs), np.bool_)
        for x, y, scale in (
            (a.most, b.most, extreme),
            (a.least, b.least, extreme),
            (a.mean, b.mean, np.maximum(rms, _TINY)),
            (a.norm, b.norm, norm),
        ):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            delta = np.abs(x - y)
            relative = np.where(same, 0.0, delta / np.where(scale > 0, scale, 1.0))
            error = np.fmax(error, np.where(np.isfinite(x) & np.isfinite(y), relative, np.nan))
            if hidden:
                same |= delta <= hidden * np.fmax(np.abs(x), np.abs(y))
            equal &= same
        if hidden:
            error = np.where(error <= hidden, 0.0, error - hidden)
        norms = [
            np.where(np.isnan(side.norm), extreme * np.sqrt(side.size), side.norm)
            for side in (a, b)
        ]
    columns = error.tolist(), norms[0].tolist(), norms[1].tolist(), equal.tolist()
    broken = a.broken.astype(np.int64).tolist(), b.broken.astype(np.int64).tolist()
    rows = zip(*columns, *broken, repeat(False), repeat(""))
    measures = list(map(Measure._make, rows))
    _correct(measures, left, right, pairs, (_is_empty(a) | _is_empty(b)), a.size != b.size)
    return measures


def _masked_alike(left: _Figures, right: _Figures) -> tuple[_Figures, _Figures]:
    """Where one side masks with infinity and the other with a large number, both do with infinity.

    What the mask makes of mean and norm says nothing then.
    """
    import numpy as np

    least = left.least, right.least
    masks = [np.isneginf(side) for side in least]
    both = (masks[0] & (least[1] <= MASKED)) | (masks[1] & (least[0] <= MASKED))
    both &= masks[0] != masks[1]
    if not both.any():
        return left, right
    sides = [
        side._replace(
            least=np.where(both, -np.inf, side.least),
            mean=np.where(both, np.nan, side.mean),
            norm=np.where(both, np.nan, side.norm),
            broken=np.where(both, 1.0, side.broken),
        )
        for side in (left, right)
    ]
    return sides[0], sides[1]


def _figures(columns: Columns, places: Sequence[int]) -> _Figures:
    import numpy as np

    is_all = len(places) == len(columns) and list(places) == list(range(len(columns)))

    def gathered(column: Sequence[float]) -> Numbers:
        values = column if is_all else [column[place] for place in places]
        return np.array(values, np.float64)

    most, least = gathered(columns.most), gathered(columns.least)
    # 1 where an extreme is infinite; that a figure is NaN the readers know better.
    infinite = (np.isinf(most) | np.isinf(least)).astype(np.float64)
    return _Figures(
        most,
        least,
        gathered(columns.mean),
        gathered(columns.norm),
        np.array([math.prod(columns.shapes[place]) for place in places], np.float64),
        np.maximum(infinite, gathered(columns.broken)),
    )


def _extreme(side: _Figures) -> Numbers:
    import numpy as np

    return np.fmax(np.fmax(np.abs(side.most), np.abs(side.least)), 0.0)


def _is_empty(side: _Figures) -> NDArray[np.bool_]:
    import numpy as np

    return np.isnan(side.most) & np.isnan(side.least) & np.isnan(side.mean) & np.isnan(side.norm)


def _correct(
    measures: list[Measure],
    left: Columns,
    right: Columns,
    pairs: Sequence[tuple[int, int]],
    unknown: NDArray[np.bool_],
    other_size: NDArray[np.bool_],
) -> None:
    """Pairs that figures alone say too much or too little of."""
    rows: list[int] = other_size.nonzero()[0].tolist()
    for row in rows:
        measures[row] = measures[row]._replace(error=math.nan, equal=False, note="shapes differ")
    rows = unknown.nonzero()[0].tolist()
    for row in rows:
        measures[row] = _hashed(left, right, *pairs[row])
    if any(left.hashes) and any(right.hashes):
        for row, (a, b) in enumerate(pairs):
            ours, theirs = left.hashes[a], right.hashes[b]
            if (
                measures[row].equal
                and ours
                and theirs
                and ours != theirs
                and _are_alike(ours, theirs)
            ):
                measures[row] = measures[row]._replace(equal=False)


def _hashed(left: Columns, right: Columns, place: int, match: int) -> Measure:
    """What checksums alone tell: equal or not."""
    if not _are_alike(left.hashes[place], right.hashes[match]):
        if 0 in left.shapes[place]:
            return Measure(0.0, 0.0, 0.0, True, 0, 0, False)
        broken = left.broken[place], right.broken[match]
        return UNKNOWN._replace(broken_left=broken[0], broken_right=broken[1])
    equal = left.hashes[place] == right.hashes[match]
    return Measure(0.0 if equal else math.nan, math.nan, math.nan, equal, -1, -1, False,
                   "" if equal else "only checksums")  # fmt: skip


def _are_alike(left: str, right: str) -> bool:
    """Whether two checksums are there, and of one kind: other kinds have other lengths."""
    return bool(left) and len(left) == len(right)
