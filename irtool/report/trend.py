"""The page of a trend: what each build cost, measure by measure, with its limit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irtool.ir.units import plural, quantity_text, share_text
from irtool.linting.budget import MEANINGS, MEASURES, UNITS, Limit, Measure
from irtool.linting.trend import Build, growth, largest_rise
from irtool.report.model import Amount, Answer, Column, Element, Picture, Report, Table
from irtool.report.page.charts import Series, line_chart
from irtool.report.text import shortened

_LEAST_CHANGE = 0.0005
"""Part of a value from which on a change is shown: less is 0.0 %."""
_HASH = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_HASH = 10
"""Characters that are shown of a commit's hash."""


def trend_report(
    builds: Sequence[Build], limits: Sequence[Limit], unjudged: Sequence[str] = ()
) -> Report:
    """All builds of a trend file.

    Args:
        builds: in their order.
        limits: the budget of now; absolute limits for all ranks are drawn.
        unjudged: measures with a limit that the last build was not held against.
    """
    measures: list[Measure] = [
        measure for measure in MEASURES if any(build.most(measure) is not None for build in builds)
    ]
    elements: list[Element] = []
    elements += [_chart(builds, limits, measure) for measure in measures]
    elements.append(_table(builds, measures))
    return Report("gate: what builds cost", _answer(builds, limits, unjudged), elements)


def _answer(builds: Sequence[Build], limits: Sequence[Limit], unjudged: Sequence[str]) -> Answer:
    last = builds[-1] if builds else None
    if last is not None and last.exceeded:
        above = ", ".join(last.exceeded)
        return Answer(
            f"the last of {plural(len(builds), 'build')} is above its budget: {above}", "bad"
        )
    text = plural(len(builds), "build")
    if not limits:
        return Answer(f"{text}, without a budget")
    if unjudged:
        told = f"{text}, the last one within its budget; not judged: {', '.join(unjudged)}"
        return Answer(told, "unknown")
    return Answer(f"{text}, the last one within its budget", "good")


def _name(build: Build) -> str:
    """What a build is called: of a commit's hash the beginning, by which people know it."""
    return build.build[:_MOST_HASH] if _HASH.fullmatch(build.build) else build.build


def _chart(builds: Sequence[Build], limits: Sequence[Limit], measure: Measure) -> Picture:
    ranks = list(dict.fromkeys(rank.rank for build in builds for rank in build.ranks))[:8]
    series: list[Series] = []
    for rank in ranks:
        points = [
            (float(place), measured.values[measure])
            for place, build in enumerate(builds, 1)
            for measured in build.ranks
            if measured.rank == rank and measure in measured.values
        ]
        if points:
            series.append(Series("all ranks" if rank is None else f"rank {rank}", points))
    absolute = [
        entry.value
        for entry in limits
        if entry.measure == measure and not entry.relative and not entry.place
    ]
    limit = min(absolute, default=None)
    names = [_name(build) for build in builds]
    chart = line_chart(
        series, x_title="build", kind=UNITS[measure], limit=limit, height=200, names=names
    )
    return Picture(measure, chart, f"{measure} of each build", _note(builds, measure, limit))


def _note(builds: Sequence[Build], measure: Measure, limit: float | None) -> str:
    """What the last build needs, how that differs from the one before it, and what is allowed."""
    unit = UNITS[measure]
    last = builds[-1].most(measure)
    parts = [
        "not measured in the last build" if last is None else f"now {quantity_text(last, unit)}"
    ]
    before = builds[-2].most(measure) if len(builds) > 1 else None
    if last is not None and before:
        more = growth(before, last)
        change = f"{share_text(more, signed=True)} since" if abs(more) >= _LEAST_CHANGE else "as"
        parts.append(f"{change} {shortened(_name(builds[-2]), 12)}")
    rise = largest_rise(builds[:-1], measure)  # the last one is told anyway
    if rise is not None:
        build, more = rise
        parts.append(
            f"rose most in {shortened(_name(build), 12)} ({share_text(more, signed=True)})"
        )
    if limit is not None:
        parts.append(f"at most {quantity_text(limit, unit)}")
    return f"{', '.join(parts)}: {MEANINGS[measure]}"


def _table(builds: Sequence[Build], measures: Sequence[Measure]) -> Table:
    columns = [
        Column("build"),
        Column("above its budget"),
        *(Column(measure, UNITS[measure]) for measure in measures),
    ]
    rows = [
        [
            _name(build),
            ", ".join(build.exceeded),
            *(Amount(build.most(measure), UNITS[measure]) for measure in measures),
        ]
        for build in reversed(builds)
    ]
    return Table(
        "Builds, the last one first; of the rank that needs most", columns, rows, noun="build"
    )
