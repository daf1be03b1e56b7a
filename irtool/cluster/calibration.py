"""Links of a machine as collectives were measured there: start-up, bandwidth, and the error.

Each kind of links (a level) has three figures in the model: seconds before a collective's first
step, seconds a step, bytes a second.  Times are linear in the first two and in the inverse of the
third, so they are fitted by least squares of relative errors, none below zero.  The error is told
on what was held back: each row is predicted by a fit of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from statistics import median

import numpy as np

from irtool.cluster.machine import Level, Machine

LEAST_SIZES = 2
"""Sizes of one collective on one number of ranks, below which nothing tells start from pace."""
_LEAST_ROWS = 4
"""Rows of a level, below which none can be held back."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured collective among the first ranks of a machine.

    ``bytes``: of the whole array, the larger of input and output; ``place``: ``FILE:LINE``.
    """

    op: str
    ranks: int
    bytes: float
    seconds: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class LevelFit:
    """One kind of links as measured.

    Attributes:
        level: with the fitted figures.
        before: as the machine had it.
        samples: rows that it was fitted to.
        error: the median of relative errors of rows that were held back; None: too few rows.
        worst: the largest of them.
        separates: whether rows tell the seconds of a step from those before the first one: they
            do where numbers of ranks or collectives differ.
    """

    level: Level
    before: Level
    samples: int
    error: float | None
    worst: float | None
    separates: bool


@dataclass(frozen=True, eq=False)
class Calibration:
    """A machine with links as measured; ``left``: rows that were not used, with the reason."""

    machine: Machine
    fits: tuple[LevelFit, ...]
    left: tuple[str, ...]


def calibrate(samples: Sequence[Sample], base: Machine) -> Calibration:
    """Fit the links of a machine.

    Args:
        samples: what was measured, by ranks 0 to n - 1.
        base: all that is not measured stays as it is there.
    """
    left: list[str] = []
    by_level: dict[int, list[Sample]] = {}
    for (op, ranks), rows in _groups(samples).items():
        if ranks < 2:
            left.append(f"{op} of {ranks} rank: nothing is communicated")
        elif len({row.bytes for row in rows}) < LEAST_SIZES:
            left.append(f"{op} of {ranks} ranks: one size tells no start from pace")
        else:
            level = base.level_of(range(ranks))
            by_level.setdefault(base.levels.index(level), []).extend(rows)
    fits: dict[int, LevelFit] = {}
    for index, rows in sorted(by_level.items()):
        found = _fitted(base.levels[index], rows)
        if found is None:
            left.append(f"{base.levels[index].name}: times that no bandwidth explains")
        else:
            fits[index] = found
    levels = tuple(
        fits[index].level if index in fits else level for index, level in enumerate(base.levels)
    )
    told = tuple(
        f"{fit.level.name}: fitted to {fit.samples} measured collectives" for fit in fits.values()
    )
    name = base.name if not fits else f"{base.name}, as measured"
    # What was fitted is the pace of the whole, whatever a library does inside the units first.
    hierarchical = base.hierarchical and not fits
    machine = replace(
        base, name=name, levels=levels, sources=(*told, *base.sources), hierarchical=hierarchical
    )
    return Calibration(machine, tuple(fits.values()), tuple(left))


def _groups(samples: Sequence[Sample]) -> dict[tuple[str, int], list[Sample]]:
    found: dict[tuple[str, int], list[Sample]] = {}
    for each in samples:
        if each.seconds > 0 and each.bytes >= 0:
            found.setdefault((each.op, each.ranks), []).append(each)
    return found


def _fitted(level: Level, rows: Sequence[Sample]) -> LevelFit | None:
    table = np.array([_coefficients(level, row) for row in rows])
    seconds = np.array([row.seconds for row in rows])
    # Start and steps are told apart only where their coefficients are not in proportion.
    separates = np.linalg.matrix_rank(table[:, :2]) == 2
    columns = (0, 1, 2) if separates else (0, 2)
    figures = _least(table, seconds, columns)
    if figures is None:
        return None
    start, latency, inverse = figures
    fitted = replace(level, start=start, latency=latency, bandwidth=1 / inverse)
    errors = list(_held_back(table, seconds, columns))
    return LevelFit(
        fitted,
        level,
        len(rows),
        median(errors) if errors else None,
        max(errors, default=None),
        bool(separates),
    )


def _coefficients(level: Level, row: Sample) -> tuple[float, float, float]:
    """By how much each figure counts: of a start, of a step, of the inverse of a bandwidth."""

    def seconds(start: float, latency: float, bandwidth: float) -> float:
        one = Level(level.name, None, bandwidth, latency, start, level.topology)
        return Machine("", "", (one,), 0).seconds(row.op, int(row.bytes), range(row.ranks))

    return seconds(1, 0, inf), seconds(0, 1, inf), seconds(0, 0, 1)


def _held_back(
    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    seconds: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    columns: tuple[int, ...],
) -> Iterator[float]:
    """The relative error of each row under a fit of all others."""
    if len(seconds) < _LEAST_ROWS:
        return
    for row in range(len(seconds)):
        others = np.arange(len(seconds)) != row
        figures = _least(table[others], seconds[others], columns)
        if figures is not None:
            predicted = float(table[row] @ np.array(figures))
            yield abs(predicted / float(seconds[row]) - 1)


def _least(
    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    seconds: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    columns: tuple[int, ...],
) -> tuple[float, float, float] | None:
    """The figures of least squared relative error, none below zero, the last one above it.

    With three figures all sets of those that are not zero are tried.
    """
    scaled = table / seconds[:, None]
    target = np.ones(len(seconds))
    best: tuple[float, tuple[float, float, float]] | None = None
    for count in range(1, len(columns) + 1):
        for chosen in combinations(columns, count):
            if columns[-1] not in chosen:
                continue
            values, *_ = np.linalg.lstsq(scaled[:, chosen], target, rcond=None)
            if (values < 0).any() or values[-1] <= 0:
                continue
            figures = [0.0, 0.0, 0.0]
            for column, value in zip(chosen, values, strict=True):
                figures[column] = float(value)
            error = float(((scaled @ np.array(figures) - target) ** 2).sum())
            if best is None or error < best[0]:
                best = (error, (figures[0], figures[1], figures[2]))
    return None if best is None else best[1]
