"""Budgets: limits for what a build may cost, absolute or against a golden one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from irtool.cluster.fuse import launch_of
from irtool.cluster.machine import Machine
from irtool.cluster.memory import memory
from irtool.cluster.pricing import step_seconds
from irtool.ir.collectives import collectives
from irtool.ir.dump import Dump
from irtool.ir.units import Unit, quantity_text, ranks_text
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.cost_report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.reading import parse_json

Measure: TypeAlias = Literal[
    "statements",
    "communication_bytes",
    "communication_seconds",
    "redistribution_share",
    "peak_memory",
    "step_seconds",
]
MEASURES: tuple[Measure, ...] = (
    "statements", "communication_bytes", "communication_seconds", "redistribution_share",
    "peak_memory", "step_seconds",
)  # fmt: skip

TREND_SCHEMA = "irtool.gate.trend/1"

UNITS: Mapping[Measure, Unit] = {
    "statements": "number",
    "communication_bytes": "bytes",
    "communication_seconds": "seconds",
    "redistribution_share": "share",
    "peak_memory": "bytes",
    "step_seconds": "seconds",
}

MEANINGS: Mapping[Measure, str] = {
    "statements": "statements of the last graph: compilation takes time in proportion",
    "communication_bytes": "bytes of all collectives of a step, of the larger of input and output",
    "communication_seconds": "their seconds on the machine, one after another, fused as they say",
    "redistribution_share": "part of these bytes that redistributions move",
    "peak_memory": "what stays and the peak of a step's tensors, as irtool memory counts them",
    "step_seconds": "a step as irtool cost predicts it, nothing hidden; needs the begin dump",
}

_AMOUNT = re.compile(r"\s*([+-]?)\s*(\d+(?:[._]\d+)*(?:[eE][+-]?\d+)?)\s*([A-Za-z%]*)\s*")
_FACTORS: Mapping[Unit, Mapping[str, float]] = {
    "bytes": {
        "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
        "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
    },
    "seconds": {"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "min": 60},
    "number": {"": 1, "k": 1e3, "m": 1e6},
    "share": {"": 1, "%": 0.01},
}  # fmt: skip


class BudgetError(ValueError):
    """A budget that makes no sense; the message says why."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of one measure.

    Attributes:
        measure: of what.
        value: the most, in the measure's unit; of a relative one, by how much it may grow: a part
            of the golden value (``share``) or an amount.
        relative: ``""`` for an absolute one, ``share`` or ``amount`` for one against a golden dump.
        rank: of which rank alone; None for all.
        stage: of which stage alone; None for all.
    """

    measure: Measure
    value: float
    relative: Literal["", "share", "amount"] = ""
    rank: int | None = None
    stage: int | None = None

    @property
    def place(self) -> str:
        """``rank 3``, ``stage 0``; "" where it is for all."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return "" if self.stage is None else f"stage {self.stage}"

    @property
    def text(self) -> str:
        """``30.0 GiB``, ``+5.0 %``."""
        unit: Unit = "share" if self.relative == "share" else UNITS[self.measure]
        return ("+" if self.relative else "") + quantity_text(self.value, unit)

    def most(self, golden: float | None) -> float | None:
        """The most that is let through; None where it needs a golden value and there is none."""
        if not self.relative:
            return self.value
        if golden is None:
            return None
        return golden * (1 + self.value) if self.relative == "share" else golden + self.value


@dataclass(frozen=True, slots=True)
class Measured:
    """What one rank's build costs; ``missing`` says why a measure is not there.

    ``alike`` are all ranks that it speaks for, as their dumps are equal.
    """

    rank: int | None
    stage: int | None
    values: Mapping[Measure, float]
    missing: Mapping[Measure, str]
    alike: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a build is above."""

    limit: Limit
    measured: Measured
    value: float
    most: float
    golden: float | None

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that are above it; none where nobody says whose dump it is."""
        if self.limit.rank is not None:
            return (self.limit.rank,)
        rank = self.measured.rank
        return self.measured.alike or (() if rank is None else (rank,))

    @property
    def message(self) -> str:
        """``peak_memory is 41.2 GiB, the budget is 40.0 GiB``."""
        unit = UNITS[self.limit.measure]
        against = (
            f" ({self.limit.text} of {quantity_text(self.golden, unit)})"
            if self.limit.relative
            else ""
        )
        ranks = self.ranks
        who = f" of rank{'s' * (len(ranks) > 1)} {ranks_text(ranks)}" if ranks else ""
        return (
            f"{self.limit.measure}{who} is {quantity_text(self.value, unit)}, the budget is "
            f"{quantity_text(self.most, unit)}{against}"
        )


# -- reading ---------------------------------------------------------------------------------------


def read_budget(table: Mapping[str, object]) -> tuple[Limit, ...]:
    """The limits of a table ``[gate.budget]``, with those of its ``rank`` and ``stage`` tables.

    Raises:
        BudgetError: a key is none, or a value makes no sense.
    """
    limits: list[Limit] = []
    for key, value in table.items():
        if key in ("rank", "stage"):
            if not isinstance(value, Mapping):
                raise BudgetError(f"{key} must be a table, as in [gate.budget.{key}.0]")
            for name, inner in cast("Mapping[str, object]", value).items():
                if not name.isdigit() or not isinstance(inner, Mapping):
                    raise BudgetError(f"{key}.{name} must be a table of a number")
                for measure, amount in cast("Mapping[str, object]", inner).items():
                    place = {key: int(name)}
                    limits.append(read_limit(measure, amount, **place))
        else:
            limits.append(read_limit(key, value))
    return tuple(limits)


def read_limit(
    measure: str, value: object, rank: int | None = None, stage: int | None = None
) -> Limit:
    """One limit: ``30 GiB``, ``0.2``, ``+5%``.

    Raises:
        BudgetError: the measure does not exist, or the value makes no sense.
    """
    name = measure.strip().replace("-", "_")
    key: Measure | None = next((known for known in MEASURES if known == name), None)
    if key is None:
        raise BudgetError(f"there is no measure {measure}: {', '.join(MEASURES)}")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BudgetError(f"{measure}: {value!r} is no amount")
    match = _AMOUNT.fullmatch(str(value))
    unit = UNITS[key]
    if match is None or match[1] == "-":
        raise BudgetError(f"{measure}: {value} is no amount")
    sign, number, word = match.groups()
    amount = float(number.replace("_", ""))
    if sign and word == "%":
        return Limit(key, amount / 100, "share", rank, stage)
    factor = _FACTORS[unit].get(word.lower())
    if factor is None:
        units = ", ".join(filter(None, _FACTORS[unit])) or "none"
        raise BudgetError(f"{measure}: there is no unit {word} here: {units}")
    return Limit(key, amount * factor, "amount" if sign else "", rank, stage)


# -- measuring -------------------------------------------------------------------------------------


def measured(
    validate: Dump,
    begin: Dump | None,
    parallel: ParallelContext | None,
    machine: Machine,
    wanted: Iterable[Measure] = MEASURES,
    rank: int | None = None,
) -> Measured:
    """What a build costs, as far as its dumps tell.

    Args:
        validate: the last dump.
        begin: the one before the parallel pass, for the predicted step.
        parallel: devices and options; None where nobody says them.
        machine: what communication is priced on.
        wanted: which measures.
        rank: whose dumps they are.
    """
    values: dict[Measure, float] = {}
    missing: dict[Measure, str] = {}
    for name in wanted:
        try:
            values[name] = _value(name, validate, begin, parallel, machine)
        except _Missing as error:
            missing[name] = str(error)
    stage = parallel.stage if parallel is not None else None
    return Measured(rank, stage, values, missing)


class _Missing(Exception):
    """A measure that the dumps do not tell."""


def _value(
    name: Measure,
    validate: Dump,
    begin: Dump | None,
    parallel: ParallelContext | None,
    machine: Machine,
) -> float:
    if name == "statements":
        return sum(len(graph.nodes) for graph in validate.graphs)
    if name == "peak_memory":
        estimate = memory(validate)
        if not estimate.is_complete:
            raise _Missing("a size or a part of the dump is not known")
        return estimate.peak_bytes
    if name == "step_seconds":
        if begin is None or parallel is None:
            raise _Missing("there is no begin dump, or nobody says how many devices there are")
        report = check(begin, parallel)
        cost = step_cost(structure_of(begin, parallel), report, machine)
        if not report.operators or cost.unknown:
            raise _Missing("a part of the step cannot be priced")
        return cost.seconds
    devices = parallel.devices if parallel is not None else None
    moved = [item for item in collectives(validate, devices) if not item.is_virtual]
    if any(item.bytes is None for item in moved):
        raise _Missing("the size of a collective is not known")
    total = sum(item.bytes or 0 for item in moved)
    if name == "communication_bytes":
        return total
    if name == "redistribution_share":
        again = sum(item.bytes or 0 for item in moved if item.origin == "redistribution")
        return again / total if total else 0.0
    if any(not item.ranks for item in moved if item.peer is None):
        raise _Missing("the ranks of a group are not known")
    launches = [launch_of(item, _members(item.ranks, item.peer)) for item in moved]
    return sum(step_seconds(launches, machine))


def _members(ranks: tuple[int, ...] | None, peer: int | None) -> tuple[int, ...]:
    if ranks:
        return ranks
    return () if peer is None else (0, peer or 1)


def exceeded(limits: Sequence[Limit], new: Measured, golden: Measured | None) -> Iterator[Exceeded]:
    """Limits that a build is above, in their order."""
    for limit in limits:
        if not applies(limit, new):
            continue
        value = new.values.get(limit.measure)
        base = golden.values.get(limit.measure) if golden is not None else None
        most = limit.most(base)
        if value is not None and most is not None and value > most:
            yield Exceeded(limit, new, value, most, base)


def applies(limit: Limit, to: Measured) -> bool:
    """Whether a limit is for a rank; one for a rank or stage is not for those nobody names."""
    ranks = (None, to.rank, *to.alike)
    return limit.rank in ranks and limit.stage in (None, to.stage)


# -- trend -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Build:
    """One line of a trend file: a build, what each rank costs, and which limits it was above."""

    build: str
    ranks: tuple[Measured, ...]
    exceeded: tuple[str, ...] = ()


def trend_line(build: Build) -> str:
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
    return json.dumps(table, separators=(",", ":")) + "\n"


def read_trend(text: str) -> list[Build]:
    """The builds of a trend file, in its order.

    Raises:
        BudgetError: a line is none of a trend file.
    """
    builds: list[Build] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            builds.append(_build(line, number))
    return builds


def _build(line: str, number: int) -> Build:
    try:
        table = parse_json(line)
    except ValueError as error:
        raise BudgetError(f"line {number} is no JSON: {error}") from None
    if not isinstance(table, Mapping):
        raise BudgetError(f"line {number} is no build")
    entry = cast("Mapping[str, object]", table)
    ranks = entry.get("ranks")
    if entry.get("schema") != TREND_SCHEMA or not isinstance(ranks, list):
        raise BudgetError(f'line {number} has no "schema": "{TREND_SCHEMA}" with ranks')
    above = entry.get("exceeded")
    return Build(
        str(entry.get("build", number)),
        tuple(_rank(row, number) for row in cast("list[object]", ranks)),
        tuple(map(str, cast("list[object]", above))) if isinstance(above, list) else (),
    )


def _rank(entry: object, number: int) -> Measured:
    if not isinstance(entry, Mapping):
        raise BudgetError(f"line {number} holds a rank that is no table")
    table = cast("Mapping[str, object]", entry)
    values = table.get("values")
    if not isinstance(values, Mapping):
        raise BudgetError(f"line {number} holds a rank without values")
    known: dict[Measure, float] = {}
    for name in MEASURES:
        value = cast("Mapping[str, object]", values).get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            known[name] = value
    rank, stage = (
        value if isinstance(value := table.get(key), int) else None for key in ("rank", "stage")
    )
    return Measured(rank, stage, known, {})
