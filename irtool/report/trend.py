"""The page of a trend: what each build cost, measure by measure, with its limit."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import quantity_text
from irtool.linting.budget import MEANINGS, MEASURES, UNITS, Build, Limit, Measure
from irtool.report.model import Amount, Answer, Column, Element, Picture, Report, Table
from irtool.report.page.charts import Series, line_chart
from irtool.report.text import shortened

_LEAST_CHANGE = 0.0005
"""Part of a value from which on a change is shown: less is 0.0 %."""


def trend_report(builds: Sequence[Build], limits: Sequence[Limit]) -> Report:
    """All builds of a trend file.

    Args:
        builds: in their order.
        limits: the budget of now; absolute limits for all ranks are drawn.
    """
    measures: list[Measure] = [
        measure
        for measure in MEASURES
        if any(_most(build, measure) is not None for build in builds)
    ]
    elements: list[Element] = []
    elements += [_chart(builds, limits, measure) for measure in measures]
    elements.append(_table(builds, measures))
    last = builds[-1] if builds else None
    above = ", ".join(last.exceeded) if last is not None else ""
    text = f"the last of {len(builds)} builds is above its budget: {above}" if above else (
        f"{len(builds)} builds, the last one within its budget"
    )  # fmt: skip
    return Report("gate: what builds cost", Answer(text, "bad" if above else "good"), elements)


def _most(build: Build, measure: Measure) -> float | None:
    """What the rank that needs most of it needs."""
    values = [rank.values[measure] for rank in build.ranks if measure in rank.values]
    return max(values, default=None)


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
    names = [build.build for build in builds]
    chart = line_chart(
        series, x_title="build", kind=UNITS[measure], limit=limit, height=200, names=names
    )
    return Picture(measure, chart, f"{measure} of each build", _note(builds, measure, limit))


def _note(builds: Sequence[Build], measure: Measure, limit: float | None) -> str:
    """What the last build needs, how that differs from the one before it, and what is allowed."""
    unit = UNITS[measure]
    last = _most(builds[-1], measure)
    parts = [
        "not measured in the last build" if last is None else f"now {quantity_text(last, unit)}"
    ]
    before = _most(builds[-2], measure) if len(builds) > 1 else None
    if last is not None and before:
        more = (last - before) / before
        change = f"{more:+.1%} since" if abs(more) >= _LEAST_CHANGE else "as"
        parts.append(f"{change} {shortened(builds[-2].build, 12)}")
    if limit is not None:
        parts.append(f"at most {quantity_text(limit, unit)}")
    return f"{', '.join(parts)}: {MEANINGS[measure]}"


def _table(builds: Sequence[Build], measures: Sequence[Measure]) -> Table:
    columns = [
        Column("build"),
        *(Column(measure, UNITS[measure]) for measure in measures),
        Column("above its budget"),
    ]
    rows = [
        [
            build.build,
            *(Amount(_most(build, measure), UNITS[measure]) for measure in measures),
            ", ".join(build.exceeded),
        ]
        for build in reversed(builds)
    ]
    return Table(
        "Builds, the last one first; of the rank that needs most", columns, rows, noun="build"
    )
