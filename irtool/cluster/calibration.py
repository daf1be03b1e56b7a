"""Links of a machine as collectives were measured there: start-up, bandwidth, and the error.

Two fits of the same rows, by least squares of relative errors, no figure below zero:

- of each **collective on groups of one shape** (how many ranks, how many of them in one unit),
  ``start + bytes / bandwidth``: what such groups take from then on;
- of each **kind of links** (a level) the three figures of the model, seconds before a collective's
  first step, seconds a step, bytes a second, for all other groups there.

The error is told on what was held back: each row is predicted by a fit of all others.  What names
links and no collective (``communication_matrix.json``) gives the bandwidth of a level; a table of
bandwidths without sizes (Galvatron) the pace of a group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf
from statistics import median

import numpy as np

from irtool.cluster.machine import Level, Machine, MeasuredGroup
from irtool.ir.dataclass import dataclass

LEAST_SIZES = 2
"""Sizes of one collective on one number of ranks, below which nothing tells start from pace."""
_LEAST_ROWS = 4
"""Rows of a level, below which none can be held back."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured collective.

    Attributes:
        op: the primitive.
        ranks: how many took part.
        bytes: of the whole array, the larger of input and output.
        seconds: that it took.
        place: ``FILE:LINE``.
        members: who took part; empty: the first ranks of a machine.
    """

    op: str
    ranks: int
    bytes: float
    seconds: float
    place: str = ""
    members: tuple[int, ...] = ()

    @property
    def group(self) -> Sequence[int]:
        """The ranks that took part; where nobody named them, the first ones of the machine."""
        return self.members or range(self.ranks)


@dataclass(frozen=True, slots=True)
class GroupPace:
    """The bandwidth of a collective whose size nobody says: bytes of the whole array a second."""

    op: str
    members: tuple[int, ...]
    bandwidth: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class LinkPace:
    """What went over one link: whether it joins ranks of one innermost unit, bytes, seconds."""

    is_inside: bool
    bytes: float
    seconds: float


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


@dataclass(frozen=True, slots=True)
class GroupFit:
    """One collective on groups of one shape as measured.

    Attributes:
        group: what was fitted.
        rows: measured bytes and seconds, by size.
        error: the median of relative errors of rows that were held back; None: too few rows.
        worst: the largest of them.
        modelled: seconds of the largest row by the machine as it was.
    """

    group: MeasuredGroup
    rows: tuple[tuple[float, float], ...]
    error: float | None
    worst: float | None
    modelled: float

    @property
    def sizes(self) -> tuple[tuple[float, float], ...]:
        """Bytes, and the median of the seconds that were measured of them."""
        by_size: dict[float, list[float]] = {}
        for size, seconds in self.rows:
            by_size.setdefault(size, []).append(seconds)
        return tuple((size, median(times)) for size, times in sorted(by_size.items()))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A machine with links as measured.

    Attributes:
        machine: with all that was fitted.
        fits: by kind of links.
        left: rows that were not used, with the reason.
        groups: by collective and shape of group.
    """

    machine: Machine
    fits: tuple[LevelFit, ...]
    left: tuple[str, ...]
    groups: tuple[GroupFit, ...] = ()


def calibrate(
    samples: Sequence[Sample],
    base: Machine,
    paces: Sequence[GroupPace] = (),
    links: Sequence[LinkPace] = (),
) -> Calibration:
    """Fit the links of a machine.

    Args:
        samples: collectives that were measured.
        base: all that is not measured stays as it is there.
        paces: of collectives of no known size.
        links: traffic of single links; used for kinds of links of which there are no samples.
    """
    left: list[str] = []
    by_level: dict[int, list[Sample]] = {}
    groups: list[GroupFit] = []
    for (op, ranks, together), rows in _groups(samples, base).items():
        if ranks < 2:
            left.append(f"{op} of {ranks} rank: nothing is communicated")
            continue
        if len({row.bytes for row in rows}) < LEAST_SIZES:
            left.append(f"{op} of {ranks} ranks: one size tells no start from pace")
            continue
        by_level.setdefault(base.levels.index(base.level_of(rows[0].group)), []).extend(rows)
        groups += _group_fit(op, ranks, together, rows, base)
    fits: dict[int, LevelFit] = {}
    for index, rows in sorted(by_level.items()):
        fitted = _fitted(base.levels[index], rows)
        if fitted is not None:
            fits[index] = fitted
        elif not any(base.level_of(range(fit.group.ranks)) == base.levels[index] for fit in groups):
            left.append(f"{base.levels[index].name}: times that no bandwidth explains")
    for index, traffic in _by_links(links, base).items():
        if index not in fits:
            fits[index] = _link_fit(base.levels[index], traffic)
    groups += _paced(paces, base, {fit.group for fit in groups})
    fits = dict(sorted(fits.items()))
    machine = _machine(base, fits, tuple(fit.group for fit in groups))
    return Calibration(machine, tuple(fits.values()), tuple(left), tuple(groups))


def _machine(
    base: Machine, fits: Mapping[int, LevelFit], groups: tuple[MeasuredGroup, ...]
) -> Machine:
    if not fits and not groups:
        return base
    levels = tuple(
        fits[index].level if index in fits else level for index, level in enumerate(base.levels)
    )
    sources = [f"{fit.level.name}: fitted to {fit.samples} measured rows" for fit in fits.values()]
    sources += [f"{one.op} of {one.ranks} ranks: as measured" for one in groups]
    # What was fitted is the pace of the whole, whatever a library does inside the units first.
    return replace(
        base,
        name=f"{base.name}, as measured",
        levels=levels,
        sources=(*sources, *base.sources),
        hierarchical=base.hierarchical and not fits,
        groups=(*groups, *(one for one in base.groups if _shape(one) not in map(_shape, groups))),
    )


def _shape(group: MeasuredGroup) -> tuple[str, int, tuple[int, ...]]:
    return group.op, group.ranks, group.together


def _groups(
    samples: Sequence[Sample], base: Machine
) -> dict[tuple[str, int, tuple[int, ...]], list[Sample]]:
    """Samples by collective and shape of group."""
    by_group: dict[tuple[str, int, tuple[int, ...]], list[Sample]] = {}
    for sample in samples:
        if sample.seconds > 0 and sample.bytes >= 0:
            key = sample.op, len(sample.group), base.together(sample.group)
            by_group.setdefault(key, []).append(sample)
    return by_group


def _group_fit(
    op: str, ranks: int, together: tuple[int, ...], rows: Sequence[Sample], base: Machine
) -> list[GroupFit]:
    """The line of one collective on groups of one shape; empty where times fall with sizes."""
    table = np.array([(1.0, 0.0, row.bytes) for row in rows])
    seconds = np.array([row.seconds for row in rows])
    figures = _least(table, seconds, (0, 2))
    if figures is None:
        return []
    errors = list(_held_back(table, seconds, (0, 2)))
    sizes = tuple(sorted((row.bytes, row.seconds) for row in rows))
    return [
        GroupFit(
            MeasuredGroup(op, ranks, together, figures[0], 1 / figures[2]),
            sizes,
            median(errors) if errors else None,
            max(errors, default=None),
            base.seconds(op, int(sizes[-1][0]), rows[0].group),
        )
    ]


def _paced(
    paces: Sequence[GroupPace], base: Machine, known: Collection[MeasuredGroup]
) -> list[GroupFit]:
    """Groups of which only a bandwidth is known, where no sizes were measured."""
    shapes = {_shape(one) for one in known}
    bandwidths: dict[MeasuredGroup, list[float]] = {}
    for pace in paces:
        group = MeasuredGroup(
            pace.op, len(pace.members), base.together(pace.members), 0.0, math.inf
        )
        if len(pace.members) > 1 and _shape(group) not in shapes:
            bandwidths.setdefault(group, []).append(pace.bandwidth)
    return [
        GroupFit(replace(group, bandwidth=median(those)), (), None, None, 0.0)
        for group, those in bandwidths.items()
    ]


def _by_links(links: Sequence[LinkPace], base: Machine) -> dict[int, list[LinkPace]]:
    by_level: dict[int, list[LinkPace]] = {}
    for link in links:
        if link.bytes > 0 and link.seconds > 0:
            by_level.setdefault(0 if link.is_inside else len(base.levels) - 1, []).append(link)
    return by_level


def _link_fit(level: Level, links: Sequence[LinkPace]) -> LevelFit:
    """A level's bandwidth as all its links had it together; its start and steps stay."""
    size, seconds = sum(one.bytes for one in links), sum(one.seconds for one in links)
    errors = [
        abs((seconds - one.seconds) / (size - one.bytes) * one.bytes / one.seconds - 1)
        for one in links
        if size > one.bytes and len(links) >= _LEAST_ROWS
    ]
    return LevelFit(
        replace(level, bandwidth=size / seconds),
        level,
        len(links),
        median(errors) if errors else None,
        max(errors, default=None),
        True,
    )


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
        return Machine("", "", (one,), 0).seconds(row.op, int(row.bytes), row.group)

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
