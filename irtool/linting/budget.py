"""Budgets: limits for what a build may cost, absolute or against a golden one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, cast

from irtool.cluster.fuse import launch_of
from irtool.cluster.machine import Machine
from irtool.cluster.memory import memory
from irtool.cluster.pricing import step_seconds
from irtool.ir.collectives import collectives
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.units import Unit, numbered_text, quantity_text, ranks_text, told_apart
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

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
    """The most that a build may cost by one measure, absolute or against a golden build.

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
    def name(self) -> str:
        """``peak_memory``, ``rank.3.peak_memory``: as settings and options call it."""
        return ".".join((*self.place.split(), self.measure))

    @property
    def text(self) -> str:
        """The limit as people read it: ``30.0 GiB``, ``+5.0 %``."""
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
        now, most = told_apart(self.value, self.most, unit)
        against = (
            f" ({self.limit.text} of {quantity_text(self.golden, unit)})"
            if self.limit.relative
            else ""
        )
        ranks = self.ranks
        who = f" of {numbered_text('rank', ranks)}" if ranks else ""
        return f"{self.limit.measure}{who} is {now}, the budget is {most}{against}"


# -- reading ---------------------------------------------------------------------------------------


def read_budget(table: Mapping[str, object]) -> tuple[Limit, ...]:
    """The limits of a table ``[gate.budget]``, with those of its ``rank`` and ``stage`` tables.

    Args:
        table: as ``irtool.toml`` has it: measures, and ``rank`` and ``stage`` tables of such by
            number.

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

    Args:
        measure: a key of :data:`MEASURES`, with ``-`` or ``_``.
        value: an amount with or without a unit; with ``+`` before it, what the golden build costs
            is added.
        rank: that it is for; None: all.
        stage: that it is for; None: all.

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
            raise _Missing("there is no begin dump, or the number of devices is not known")
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
    """Limits that a build is above, in their order.

    Args:
        limits: those of other ranks and stages are passed over.
        new: what the build costs; a measure that is missing exceeds nothing.
        golden: what the golden build costs; None: there is none, and relative limits say nothing.
    """
    for limit in limits:
        if not applies(limit, new):
            continue
        value = new.values.get(limit.measure)
        base = golden.values.get(limit.measure) if golden is not None else None
        most = limit.most(base)
        if value is not None and most is not None and value > most:
            yield Exceeded(limit, new, value, most, base)


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A limit that a build could not be held against: why, and what would make it judged."""

    limit: Limit
    reason: str
    hint: str

    @property
    def message(self) -> str:
        """``rank.7.peak_memory = 30.0 GiB was not judged: no dump of rank 7 is there``."""
        return f"{self.limit.name} = {self.limit.text} was not judged: {self.reason}"


def unjudged(
    limits: Sequence[Limit], builds: Sequence[tuple[Measured, Measured | None]]
) -> Iterator[Unjudged]:
    """Limits that could not be judged, for some rank at least, in their order.

    Args:
        limits: the budget.
        builds: of each rank what its build costs, and its golden one if there is one.
    """
    for limit in limits:
        own = [pair for pair in builds if applies(limit, pair[0])]
        if not own:
            yield Unjudged(limit, *_absent(limit, [new for new, _ in builds]))
            continue
        reasons: dict[tuple[str, str], list[Measured]] = {}
        for new, golden in own:
            why = _why_unjudged(limit, new, golden)
            if why is not None:
                reasons.setdefault(why, []).append(new)
        if reasons:
            texts = [_of_ranks(rows, len(own)) + text for (text, _), rows in reasons.items()]
            hints = dict.fromkeys(hint for _, hint in reasons)
            yield Unjudged(limit, "; ".join(texts), "; ".join(hints))


def _of_ranks(builds: Sequence[Measured], among: int) -> str:
    """Whose builds they are, where it is not all of them."""
    ranks = sorted(rank for row in builds for rank in row.alike or (row.rank,) if rank is not None)
    if len(builds) == among or not ranks:
        return ""
    return f"{numbered_text('rank', ranks)}: "


def _absent(limit: Limit, builds: Sequence[Measured]) -> tuple[str, str]:
    """Why no build is of the rank or stage that a limit names, and what to do."""
    reason = f"no dump of {limit.place} is there"
    if limit.rank is not None:
        ranks = {rank for row in builds for rank in (row.rank, *row.alike) if rank is not None}
        if ranks:
            return f"{reason}, only of ranks {ranks_text(sorted(ranks))}", _ALL_RANKS
        return f"{reason}: the rank of the dump is not known", f"pass it: --rank {limit.rank}"
    stages = {row.stage for row in builds if row.stage is not None}
    if stages:
        return f"{reason}, only of stages {ranks_text(sorted(stages))}", _ALL_RANKS
    return f"{reason}: the stage of the dumps is not known", _STAGES


def _why_unjudged(limit: Limit, new: Measured, golden: Measured | None) -> tuple[str, str] | None:
    """Why a build could not be held against a limit that is for it, and what to do."""
    if limit.measure not in new.values:
        return new.missing.get(limit.measure, "it is not told"), _HINTS[limit.measure]
    if not limit.relative or (golden is not None and limit.measure in golden.values):
        return None
    if golden is None:
        return "it is against a golden dump, and none is given", "irtool gate OLD NEW"
    why = golden.missing.get(limit.measure, "it is not told")
    return f"of the golden dump, {why}", _HINTS[limit.measure]


_ALL_RANKS = "give a run folder with dumps of it, or take it out of the budget"
_STAGES = "say pipeline_stages and the rank ([context] of irtool.toml, or case.json)"
_WHOLE = "irtool memory and irtool comm groups show which size or group is not known"
_HINTS: Mapping[Measure, str] = {
    "statements": _WHOLE,
    "communication_bytes": _WHOLE,
    "communication_seconds": _WHOLE,
    "redistribution_share": _WHOLE,
    "peak_memory": _WHOLE,
    "step_seconds": "put step_parallel_begin beside it and say the devices; irtool cost shows more",
}
"""What makes a measure known that the dumps do not tell."""


def applies(limit: Limit, to: Measured) -> bool:
    """Whether a limit is for a rank; one for a rank or stage is not for those nobody names.

    Args:
        limit: for a rank or a stage, or for all.
        to: what was measured, of a rank and those alike.
    """
    ranks = (None, to.rank, *to.alike)
    return limit.rank in ranks and limit.stage in (None, to.stage)
