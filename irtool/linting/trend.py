"""Trend files of ``irtool gate``: a line of JSON a build, kept by CI from one to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

from irtool.ir.dataclass import dataclass
from irtool.linting.budget import MEASURES, Measure, Measured
from irtool.syntax.reading import parse_json

TREND_SCHEMA = "irtool.gate.trend/1"
_LEAST_RISE = 0.01
"""Part of a value from which on a rise between two builds is told."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build, what each rank costs, and which limits it was above."""

    build: str
    ranks: tuple[Measured, ...]
    exceeded: tuple[str, ...] = ()

    def most(self, measure: Measure) -> float | None:
        """What the rank that needs most of it needs; None: it was not measured."""
        values = [rank.values[measure] for rank in self.ranks if measure in rank.values]
        return max(values, default=None)


@dataclass(frozen=True, slots=True)
class TrendLine:
    """A line of a trend file as it stands; ``problem`` says why it is no build, if it is none."""

    number: int
    text: str
    build: Build | None
    problem: str = ""


def trend_lines(text: str) -> list[TrendLine]:
    """The lines of a trend file, empty ones left out; what is no build stays as it is.

    Args:
        text: of the file.
    """
    lines: list[TrendLine] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            lines.append(TrendLine(number, line, _build(line, number)))
        except _NoBuild as error:
            lines.append(TrendLine(number, line, None, str(error)))
    return lines


def builds_of(lines: Sequence[TrendLine]) -> list[Build]:
    """The builds of a trend file, in its order.

    Args:
        lines: of the file; those that are no build are passed over.
    """
    return [line.build for line in lines if line.build is not None]


def growth(before: float, after: float) -> float:
    """How much more is needed, as a part of ``before``, which is not 0; negative: less.

    Args:
        before: what was needed, in any unit.
        after: what is needed now, in the same.
    """
    return (after - before) / before


def largest_rise(builds: Sequence[Build], measure: Measure) -> tuple[Build, float] | None:
    """The build that needs most more than the one before it.

    Args:
        builds: in their order.
        measure: what is looked at; of each build, the rank that needs most of it.

    Returns:
        the build, and how much more it needs as a part of what the one before it needed; None: no
        build needs as much more as is told (1 %).
    """
    rises: list[tuple[Build, float]] = []
    for before, build in pairwise(builds):
        old, new = before.most(measure), build.most(measure)
        if old and new is not None and new - old >= _LEAST_RISE * old:
            rises.append((build, growth(old, new)))
    return max(rises, key=lambda rise: rise[1], default=None)


def with_build(lines: Sequence[TrendLine], build: Build) -> list[TrendLine]:
    """A trend with one build more: its own line if the last build bears its name, else a new one.

    A build without a name is called by its number.

    Args:
        lines: of the file; all of them are kept but the one that is replaced.
        build: that is added.
    """
    kept = list(lines)
    known = builds_of(lines)
    if not build.build:
        build = replace(build, build=str(len(known) + 1))
    if known and known[-1].build == build.build:
        place = max(place for place, line in enumerate(kept) if line.build is not None)
        del kept[place]
    number = kept[-1].number + 1 if kept else 1
    return [*kept, TrendLine(number, _text(build), build)]


def _text(build: Build) -> str:
    """One line of JSON, the same for the same build."""
    table = {
        "schema": TREND_SCHEMA,
        "build": build.build,
        "ranks": [
            {"rank": row.rank, "stage": row.stage, "values": dict(row.values)}
            for row in build.ranks
        ],
        "exceeded": list(build.exceeded),
    }
    return json.dumps(table, separators=(",", ":"))


class _NoBuild(ValueError):
    """A line is no build; the message says why."""


def _build(line: str, number: int) -> Build:
    try:
        table = parse_json(line)
    except ValueError as error:
        raise _NoBuild(f"no JSON: {error}") from None
    if not isinstance(table, Mapping):
        raise _NoBuild("no table")
    entry = cast("Mapping[str, object]", table)
    ranks = entry.get("ranks")
    if entry.get("schema") != TREND_SCHEMA or not isinstance(ranks, list):
        raise _NoBuild(f'no "schema": "{TREND_SCHEMA}" with ranks')
    above = entry.get("exceeded")
    return Build(
        str(entry.get("build", number)),
        tuple(_rank(row) for row in cast("list[object]", ranks)),
        tuple(map(str, cast("list[object]", above))) if isinstance(above, list) else (),
    )


def _rank(entry: object) -> Measured:
    if not isinstance(entry, Mapping):
        raise _NoBuild("it holds a rank that is no table")
    table = cast("Mapping[str, object]", entry)
    values = table.get("values")
    if not isinstance(values, Mapping):
        raise _NoBuild("it holds a rank without values")
    known: dict[Measure, float] = {}
    for name in MEASURES:
        value = cast("Mapping[str, object]", values).get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            known[name] = value
    rank, stage = (
        value if isinstance(value := table.get(key), int) else None for key in ("rank", "stage")
    )
    return Measured(rank, stage, known, {})
