"""All pairs of tensors of two dumps: each measured by the best that both sides have of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

from irtool.compare.tensors.dtypes import is_complex, is_float
from irtool.compare.tensors.measuring.figures import File, figures_of, state
from irtool.compare.tensors.measuring.schedule import Scheduler, here
from irtool.compare.tensors.measuring.sketch import distance
from irtool.compare.tensors.measuring.stated import measure_stated
from irtool.compare.tensors.measuring.values import (
    LEFT,
    OTHER_SIZE,
    RIGHT,
    UNKNOWN,
    Files,
    Measure,
    measure_arrays,
    measure_files,
)
from irtool.compare.tensors.model import Columns
from irtool.ir.dataclass import dataclass

__all__ = ["Measure", "Scheduler", "Sides", "complete", "measure_all", "measure_arrays"]

LOST = "whoever measures it dies of it"
"""The note of a pair that no worker survived."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of both dumps, and which tensors are pairs."""

    left: Columns
    right: Columns
    pairs: Sequence[tuple[int, int]]


def measure_all(sides: Sides, schedule: Scheduler | None = None) -> list[Measure]:
    """Measure all pairs of tensors: by values where both sides hold some, else by figures.

    Args:
        sides: columns of both dumps, and the pairs.
        schedule: where files are measured; here, if it is not given.

    Returns:
        A measure for each pair, in their order.
    """
    left, right, pairs = sides.left, sides.right, sides.pairs
    if any(map(is_complex, {*left.dtypes, *right.dtypes})):
        alike = [is_complex(left.dtypes[a]) == is_complex(right.dtypes[b]) for a, b in pairs]
        if not all(alike):
            rest = [pair for pair, is_alike in zip(pairs, alike, strict=True) if is_alike]
            measured = iter(measure_all(Sides(left, right, rest), schedule))
            return [next(measured) if is_alike else _COMPLEX for is_alike in alike]
    with_files = any(left.files), any(right.files)
    if not any(with_files) and not (left.sketches and right.sketches):
        return measure_stated(left, right, pairs)
    measures: list[Measure] = [UNKNOWN] * len(pairs)
    wanted: list[int] = []
    stated: list[int] = []
    for place, (a, b) in enumerate(pairs):
        if left.files[a] and right.files[b]:
            wanted.append(place)
            continue
        if left.files[a]:
            complete(left, a, b in right.sketches)
        elif right.files[b]:
            complete(right, b, a in left.sketches)
        if a in left.sketches and b in right.sketches:
            measures[place] = _sketched(left, right, a, b)
        else:
            stated.append(place)
    files = [
        Files(left.files[a], right.files[b], left.dtypes[a], right.dtypes[b])
        for a, b in (pairs[place] for place in wanted)
    ]
    for place, one in zip(wanted, _measured(files, schedule or here), strict=True):
        measures[place] = one
        if one.note and not one.exact:
            if not one.note.endswith(OTHER_SIZE):
                _note_unread(left, right, pairs[place], one.note)
            if has_figures(left, pairs[place][0]) and has_figures(right, pairs[place][1]):
                stated.append(place)
    rest = measure_stated(left, right, [pairs[place] for place in stated])
    for place, one in zip(stated, rest, strict=True):
        measures[place] = one
    return measures


_COMPLEX = UNKNOWN._replace(note="complex numbers against real ones")
"""Of a pair of which one side is complex: what makes them of each other does not show in them."""


def _measured(files: Sequence[Files], schedule: Scheduler) -> Iterator[Measure]:
    """Measures from values; what a worker far away could not see is measured here."""
    for pair, measure in zip(files, schedule(measure_files, files), strict=True):
        if measure is None:
            yield UNKNOWN._replace(note=LOST)
        elif measure.note.endswith(_MISSING) and all(map(os.path.exists, pair[:2])):
            yield measure_files([pair])[0]
        else:
            yield measure


_MISSING = os.strerror(2).lower()


def _note_unread(left: Columns, right: Columns, pair: tuple[int, int], note: str) -> None:
    if not note.startswith(RIGHT):
        left.unread[pair[0]] = note.removeprefix(LEFT)
    if not note.startswith(LEFT):
        right.unread[pair[1]] = note.removeprefix(RIGHT)


def has_figures(columns: Columns, place: int) -> bool:
    """Whether a dump states figures of a tensor.

    Args:
        columns: of the dump.
        place: of the tensor among them.
    """
    return not math.isnan(columns.most[place]) and not math.isnan(columns.norm[place])


def complete(columns: Columns, place: int, with_sketch: bool) -> None:
    """State the figures of a tensor whose values are at hand, for one that has nothing else.

    Args:
        columns: that it is in.
        place: where it is.
        with_sketch: whether the other has a sketch to be held against.
    """
    wants_sketch = with_sketch and is_float(columns.dtypes[place])
    is_enough = place in columns.sketches or not wants_sketch
    if not columns.files[place] or (has_figures(columns, place) and is_enough):
        return
    state(columns, place, figures_of(File(columns.files[place], columns.dtypes[place])))


def _sketched(left: Columns, right: Columns, a: int, b: int) -> Measure:
    if math.prod(left.shapes[a]) != math.prod(right.shapes[b]):
        return UNKNOWN._replace(note="shapes differ")
    ours, theirs = left.norm[a], right.norm[b]
    largest = max(ours, theirs)
    equal = bool(left.hashes[a]) and left.hashes[a] == right.hashes[b]
    apart = 0.0 if equal else distance(left.sketches[a], right.sketches[b])
    error = apart / largest if largest else 0.0
    return Measure(error, ours, theirs, equal, left.broken[a], right.broken[b])
