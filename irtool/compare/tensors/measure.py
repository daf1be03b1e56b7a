"""How far two tensors are apart: from their values, from sketches, or from stated figures.

Values are read one pair at a time and dropped again, so memory does not grow with the dump.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.model import Columns, Shape
from irtool.compare.tensors.payload import BadPayload, read_array, read_raw
from irtool.compare.tensors.sketch import distance, sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 20
"""Elements that are widened to double precision at a time."""


class Measure(NamedTuple):
    """What two tensors have to do with each other.

    Attributes:
        error: L2 norm of the difference over the larger of the two norms; of stated figures the
            largest relative difference of norm, extremes (over the absolute largest) and mean
            (over the root mean square).  NaN where nothing can be said.
        left, right: L2 norms of the finite elements.
        equal: every bit, or every stated figure, is the same.
        broken_left, broken_right: NaN and infinite elements; -1 where nobody counted.
        exact: from values or a sketch, not from figures.
        note: why nothing can be said.
    """

    error: float
    left: float
    right: float
    equal: bool
    broken_left: int = 0
    broken_right: int = 0
    exact: bool = True
    note: str = ""

    @property
    def distance(self) -> float:
        """The L2 norm of the difference."""
        return self.error * max(self.left, self.right)


UNKNOWN = Measure(math.nan, math.nan, math.nan, False, -1, -1, False, "no values")


class Files(NamedTuple):
    """Two files to be measured, with the types that the dumps declare."""

    left: str
    right: str
    left_dtype: str
    right_dtype: str


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of both dumps, and which tensors are pairs."""

    left: Columns
    right: Columns
    pairs: Sequence[tuple[int, int]]


Scheduler: TypeAlias = Callable[[Sequence[Sequence[Files]]], Iterable[list[Measure]]]
"""Measures chunks of files somewhere: here, in processes, on other machines."""

CHUNK = 512
"""Pairs of files that are measured in one go."""


def measure_all(sides: Sides, schedule: Scheduler | None = None) -> list[Measure]:
    """Measures of all pairs, in their order."""
    found: list[Measure] = [UNKNOWN] * len(sides.pairs)
    left, right = sides.left, sides.right
    wanted: list[int] = []
    stated: list[int] = []
    for place, (a, b) in enumerate(sides.pairs):
        if left.files[a] and right.files[b]:
            wanted.append(place)
            continue
        for columns, at, other, match in ((left, a, right, b), (right, b, left, a)):
            if columns.files[at] and not other.files[match]:
                complete(columns, at, match in other.sketches)
        if a in left.sketches and b in right.sketches:
            found[place] = _sketched(left, right, a, b)
        else:
            stated.append(place)
    if wanted:
        chunks = [
            [
                Files(left.files[a], right.files[b], left.dtypes[a], right.dtypes[b])
                for a, b in (sides.pairs[place] for place in wanted[start : start + CHUNK])
            ]
            for start in range(0, len(wanted), CHUNK)
        ]
        run = schedule or (lambda parts: map(measure_files, parts))
        measured = (one for part in run(chunks) for one in part)
        for place, one in zip(wanted, measured, strict=True):
            found[place] = one
    if stated:
        pairs = [sides.pairs[place] for place in stated]
        for place, one in zip(stated, _stated(left, right, pairs), strict=True):
            found[place] = one
    return found


def complete(columns: Columns, place: int, with_sketch: bool) -> None:
    """State the figures of a tensor whose values are at hand, for one that has nothing else."""
    import numpy as np

    has_figures = not math.isnan(columns.most[place]) and not math.isnan(columns.norm[place])
    if (has_figures and (place in columns.sketches or not with_sketch)) or not columns.files[place]:
        return
    try:
        array = read_array(columns.files[place], columns.dtypes[place])
    except BadPayload as error:
        columns.notes.setdefault(place, str(error))
        return
    flat = np.ascontiguousarray(array).ravel()
    wide = flat.astype(np.float64)
    good = wide[np.isfinite(wide)]
    columns.broken[place] = int(wide.size - good.size)
    columns.most[place] = float(good.max()) if good.size else math.nan
    columns.least[place] = float(good.min()) if good.size else math.nan
    columns.mean[place] = float(good.mean()) if good.size else math.nan
    columns.norm[place] = math.sqrt(float(np.dot(good, good)))
    if with_sketch and is_float(columns.dtypes[place]):
        columns.sketches[place] = sketch(np.where(np.isfinite(wide), wide, 0.0))


# -- values --------------------------------------------------------------------------------------


def measure_files(pairs: Sequence[Files]) -> list[Measure]:
    """Measures of pairs of files."""
    return [_measure_pair(pair) for pair in pairs]


def _measure_pair(pair: Files) -> Measure:
    try:
        if pair.left_dtype == pair.right_dtype:
            ours, theirs = read_raw(pair.left), read_raw(pair.right)
            if ours[:3] == theirs[:3] and ours[3] == theirs[3]:
                norm, broken = _norm(read_array(pair.left, pair.left_dtype))
                return Measure(0.0, norm, norm, True, broken, broken)
        left = read_array(pair.left, pair.left_dtype)
        right = read_array(pair.right, pair.right_dtype)
    except BadPayload as error:
        return UNKNOWN._replace(note=str(error))
    return measure_arrays(left, right)


def _norm(array: NDArray[Any]) -> tuple[float, int]:
    import numpy as np

    flat = array.ravel()
    if flat.dtype.kind not in "fc":
        wide = flat.astype(np.float64)
        return math.sqrt(float(np.dot(wide, wide))), 0
    total, broken = 0.0, 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float64)
        square = float(np.dot(block, block))
        if not math.isfinite(square):
            good = np.isfinite(block)
            broken += int(block.size - good.sum())
            block = block[good]
            square = float(np.dot(block, block))
        total += square
    return math.sqrt(total), broken


def measure_arrays(left: NDArray[Any], right: NDArray[Any]) -> Measure:
    """How far two arrays of equally many elements are apart."""
    import numpy as np

    if left.size != right.size:
        return UNKNOWN._replace(note=f"{left.size} against {right.size} elements")
    a, b = left.ravel(), right.ravel()
    ours = theirs = apart = 0.0
    broken = [0, 0]
    equal = a.dtype == b.dtype
    for start in range(0, a.size, _BLOCK):
        x = a[start : start + _BLOCK].astype(np.float64)
        y = b[start : start + _BLOCK].astype(np.float64)
        delta = x - y
        square = float(np.dot(delta, delta))
        if not math.isfinite(square):
            good_x, good_y = np.isfinite(x), np.isfinite(y)
            broken[0] += int(x.size - good_x.sum())
            broken[1] += int(y.size - good_y.sum())
            good = good_x & good_y
            x, y = x[good], y[good]
            delta = x - y
            square = float(np.dot(delta, delta))
        ours += float(np.dot(x, x))
        theirs += float(np.dot(y, y))
        apart += square
        equal = equal and not square
    norms = math.sqrt(ours), math.sqrt(theirs)
    largest = max(norms)
    error = math.sqrt(apart) / largest if largest else 0.0
    return Measure(error, *norms, equal and broken[0] == broken[1], broken[0], broken[1])


def _sketched(left: Columns, right: Columns, a: int, b: int) -> Measure:
    ours, theirs = left.norm[a], right.norm[b]
    apart = distance(left.sketches[a], right.sketches[b])
    largest = max(ours, theirs)
    error = apart / largest if largest else 0.0
    equal = bool(left.hashes[a]) and left.hashes[a] == right.hashes[b]
    if left.shapes[a] != right.shapes[b] and math.prod(left.shapes[a]) != math.prod(
        right.shapes[b]
    ):
        return UNKNOWN._replace(note="shapes differ")
    return Measure(0.0 if equal else error, ours, theirs, equal, left.broken[a], right.broken[b])


# -- figures -------------------------------------------------------------------------------------


def _stated(left: Columns, right: Columns, pairs: Sequence[tuple[int, int]]) -> Iterable[Measure]:
    """Measures from figures that the dumps state, all pairs at once."""
    import numpy as np

    ours = [a for a, _ in pairs]
    theirs = [b for _, b in pairs]

    def figures(columns: Columns, places: list[int]) -> NDArray[Any]:
        rows = (columns.most, columns.least, columns.mean, columns.norm)
        return np.array([[row[place] for place in places] for row in rows], dtype=np.float64)

    def counts(columns: Columns, places: list[int]) -> NDArray[Any]:
        return np.array([math.prod(columns.shapes[place]) for place in places], dtype=np.float64)

    a, b = figures(left, ours), figures(right, theirs)
    size_a, size_b = counts(left, ours), counts(right, theirs)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        delta = np.abs(a - b)
        extreme = np.nanmax(np.abs(np.stack([a[0], a[1], b[0], b[1]])), axis=0, initial=0.0)
        norm = np.fmax(a[3], b[3])
        rms = np.where(np.isnan(norm), extreme, norm / np.sqrt(np.maximum(size_a, 1.0)))
        scale = np.stack([extreme, extreme, np.maximum(rms, 1e-45), norm])
        relative = np.where(same, 0.0, delta / np.where(scale > 0, scale, 1.0))
        relative = np.where(np.isfinite(a) & np.isfinite(b), relative, np.nan)
        error = np.fmax.reduce(relative, axis=0)
        hidden = max(left.resolution, right.resolution)
        if hidden:
            same |= delta <= hidden * np.fmax(np.abs(a), np.abs(b))
            error = np.where(error <= hidden, 0.0, error - hidden)
    unknown = np.isnan(a).all(axis=0) | np.isnan(b).all(axis=0)
    broken_a, broken_b = _broken(a), _broken(b)
    equal = same.all(axis=0) & ~unknown
    norms_a = np.where(np.isnan(a[3]), extreme * np.sqrt(size_a), a[3]).tolist()
    norms_b = np.where(np.isnan(b[3]), extreme * np.sqrt(size_b), b[3]).tolist()
    rows = zip(
        error.tolist(), norms_a, norms_b, equal.tolist(), broken_a, broken_b, unknown.tolist(),
        (size_a != size_b).tolist(), ours, theirs, strict=True,
    )  # fmt: skip
    for one, norm_a, norm_b, same_all, bad_a, bad_b, none, other_size, place, match in rows:
        if none:
            yield _hashed(left, right, place, match)
            continue
        bad_a = max(bad_a, left.broken[place])
        bad_b = max(bad_b, right.broken[match])
        if other_size:
            yield Measure(math.nan, norm_a, norm_b, False, bad_a, bad_b, False, "shapes differ")
        else:
            if same_all and left.hashes[place] and right.hashes[match]:
                same_all = left.hashes[place] == right.hashes[match]
            yield Measure(one, norm_a, norm_b, same_all, bad_a, bad_b, False)


def _broken(figures: NDArray[Any]) -> list[int]:
    """1 where an extreme is infinite; that a figure is NaN the readers know better."""
    import numpy as np

    return np.isinf(figures[:2]).any(axis=0).astype(int).tolist()


def _hashed(left: Columns, right: Columns, place: int, match: int) -> Measure:
    """What checksums alone tell: equal or not."""
    if not left.hashes[place] or not right.hashes[match]:
        if 0 in left.shapes[place]:
            return Measure(0.0, 0.0, 0.0, True, 0, 0, False)
        broken = left.broken[place], right.broken[match]
        return UNKNOWN._replace(broken_left=broken[0], broken_right=broken[1])
    equal = left.hashes[place] == right.hashes[match]
    return Measure(0.0 if equal else math.nan, math.nan, math.nan, equal, -1, -1, False,
                   "" if equal else "only checksums")  # fmt: skip


def is_judged(dtype: str) -> bool:
    """Whether differences of such a tensor can be rounding."""
    return is_float(dtype)


def flat_size(shape: Shape) -> int:
    """Number of elements."""
    return math.prod(shape)
