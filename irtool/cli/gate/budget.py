"""Budgets of ``irtool gate``: what each rank's build costs, the limits, and the trend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from irtool.cli.configuration import Configuration
from irtool.cli.gate.inputs import Pair, read_pair_side
from irtool.cli.inputs.begin import context_of_any
from irtool.cli.inputs.dumps import read_statements
from irtool.cli.report import Failure, note, report
from irtool.cli.writing import NewFile
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.run import InputFile
from irtool.ir.units import ranks_text
from irtool.syntax.reading import inputs, read_bytes
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.linting.budget import Limit, Measure, Measured, Unjudged
    from irtool.linting.rules.gate.gat011_budget import OverBudget
    from irtool.linting.trend import Build

BAD_BUDGET = "GAT900"
"""Code of failures about budgets."""
_BUILD_NAMES = ("IRTOOL_BUILD", "GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_ID")
"""Environment variables that name a build, the first that is set counts."""


@dataclass(frozen=True, slots=True)
class Budgeted:
    """What came of the budgets: findings, the build as a trend keeps it, limits not judged."""

    findings: tuple[Finding, ...]
    build: Build
    unjudged: tuple[Unjudged, ...] = ()


def limits_of(
    configuration: Configuration, options: Sequence[str], rank: int | None
) -> tuple[Limit, ...]:
    """The limits of ``[gate.budget]`` and of ``--budget``, which go before those of the file.

    Args:
        configuration: the settings.
        options: of ``--budget``.
        rank: the only rank that was asked for: what the file says of others is left out.

    Raises:
        Failure: one makes no sense.
    """
    from irtool.linting.budget import BudgetError, read_budget, read_limit

    table = configuration.gate.get("budget", {})
    if not isinstance(table, Mapping):
        raise Failure("gate.budget must be a table", configuration.path, code=BAD_BUDGET)
    place = f"{configuration.path}: gate.budget"
    try:
        budget = read_budget(cast("Mapping[str, object]", table))
        place = "--budget"
        given = [read_limit(*_parts(text)) for option in options for text in option.split(",")]
    except BudgetError as error:
        hint = "write --budget peak_memory=30GiB, or +5% against the golden dump"
        raise Failure(str(error), place, hint=hint, code=BAD_BUDGET) from None
    if rank is not None:
        others = [limit for limit in budget if limit.rank not in (None, rank)]
        budget = tuple(limit for limit in budget if limit not in others)
        if others:
            left = ranks_text(sorted({limit.rank for limit in others if limit.rank is not None}))
            note(f"left out the budgets of ranks {left}: --rank asks for rank {rank} alone")
    named = {(limit.measure, limit.rank, limit.stage) for limit in given}
    return (
        *given,
        *(limit for limit in budget if (limit.measure, limit.rank, limit.stage) not in named),
    )


_PLACED = re.compile(r"\s*(?:(rank|stage)\.(\d+)\.)?(.*)", re.DOTALL)


def _parts(text: str) -> tuple[str, str, int | None, int | None]:
    """Measure, amount, and the rank or stage that ``rank.0.`` or ``stage.0.`` before it names."""
    name, equals, value = text.partition("=")
    if not equals:
        hint = "write --budget peak_memory=30GiB, or +5% against the golden dump"
        raise Failure(f"{text} is not MEASURE=LIMIT", "--budget", hint=hint, code=BAD_BUDGET)
    placed = _PLACED.fullmatch(name)
    assert placed is not None
    number = int(placed[2]) if placed[2] else None
    rank, stage = (number if placed[1] == which else None for which in ("rank", "stage"))
    return placed[3].strip(), value.strip(), rank, stage


def judge(
    pairs: Sequence[Pair],
    limits: Sequence[Limit],
    rule: OverBudget,
    configuration: Configuration,
    machine: Machine | None,
    name: str,
    wanted: Sequence[Limit],
) -> Budgeted:
    """Hold each rank's build against the limits; what cannot be judged is a finding, too.

    Args:
        pairs: golden and new dump of each rank; the golden one may be missing.
        limits: the budget.
        rule: that tells what is above it.
        configuration: settings, which may say the context.
        machine: what communication is priced on; None: that of the target.
        name: of the build, "" to take it from the environment.
        wanted: measure only what these need; everything where there are none.
    """
    from irtool.linting.budget import exceeded, unjudged
    from irtool.linting.trend import Build

    rows: list[tuple[Measured, Measured | None]] = []
    findings: list[Finding] = []
    for pair in pairs:
        rank = pair.ranks[0] if pair.ranks else pair.new.rank
        measured = _measured(pair.new, rank, wanted, configuration, machine)
        new = replace(measured, alike=pair.ranks)
        golden = None
        if pair.old is not None and any(limit.relative for limit in limits):
            golden = _measured(pair.old, rank, limits, configuration, machine)
        rows.append((new, golden))
        findings += [rule.told(excess, pair.new.path) for excess in exceeded(limits, new, golden)]
    above = tuple(dict.fromkeys(finding.key.partition(" ")[0] for finding in findings))
    missed = tuple(unjudged(limits, rows))
    findings += [rule.missed(item, pairs[0].new.path) for item in missed]
    build = Build(name or _build_name(), tuple(new for new, _ in rows), above)
    return Budgeted(tuple(findings), build, missed)


def _measured(
    file: InputFile,
    rank: int | None,
    limits: Sequence[Limit],
    configuration: Configuration,
    machine: Machine | None,
) -> Measured:
    from irtool.linting.budget import MEASURES, measured

    wanted: Sequence[Measure] = MEASURES if not limits else [
        measure for measure in MEASURES if any(limit.measure == measure for limit in limits)
    ]  # fmt: skip
    dump = read_pair_side(file)
    begin = _begin_beside(file.path)
    parallel = context_of_any(file, configuration).parallel
    target = parallel.target if parallel is not None else "Ascend"
    return measured(dump, begin, parallel, machine or default_machine(target), wanted, rank)


def _begin_beside(path: str) -> Dump | None:
    """``step_parallel_begin`` of the same folder, the last one before the dump."""
    folder = os.path.dirname(path) or "."
    own = parse_name(os.path.basename(path)).number
    begins: list[tuple[int, str]] = []
    try:
        for name in os.listdir(folder):
            parsed = parse_name(name)
            if parsed.name == "step_parallel_begin" and name.endswith((".ir", ".ir.gz", ".ir.xz")):
                number = parsed.number or 0
                if own is None or number <= own:
                    begins.append((number, name))
    except OSError:
        return None
    if not begins:
        return None
    try:
        return read_statements(InputFile(os.path.join(folder, max(begins)[1])))
    except (Failure, DumpError):
        return None


def _build_name() -> str:
    return next((os.environ[name] for name in _BUILD_NAMES if os.environ.get(name)), "")


def write_trend(path: str, page: str | None, judged: Budgeted, limits: Sequence[Limit]) -> None:
    """Write a build behind those of a trend file, and the page of all.

    A build of the same name as the last one takes its place: a job that was run again.  Lines that
    are no build are named and stay as they are.

    Args:
        path: of the trend file; made where there is none.
        page: file of the HTML page; None: no page is written.
        judged: the build, and what it was held against.
        limits: that the page draws beside what was measured.

    Raises:
        Failure: a file cannot be written or holds no build at all, or the page would replace an
            input.
    """
    from irtool.linting.trend import builds_of, trend_lines, with_build

    known = trend_lines(_text_of(path)) if os.path.exists(path) else []
    strange = [line for line in known if line.build is None]
    if known and len(strange) == len(known):
        hint = "name another file, or delete it"
        first = f"line {known[0].number}: {known[0].problem}"
        raise Failure(f"no trend of builds: {first}", path, hint=hint, code=BAD_BUDGET)
    for line in strange:
        message = f"this line is no build: {line.problem}"
        hint = "it stays as it stands; mend or delete it"
        report(f"{path}:{line.number}:1", "warning", BAD_BUDGET, message, line.text, hint=hint)
    lines = with_build(known, judged.build)
    inputs().add(path)  # the page must not take its place
    drawn = None if page is None else NewFile(page)
    file = NewFile(path, over_input=True)
    text = "".join(f"{line.text}\n" for line in lines)
    file.sink.write(text.encode("utf-8", "surrogateescape"))
    file.keep()
    if drawn is not None:
        from irtool.report.page.write import render_page
        from irtool.report.trend import trend_report

        missed = list(dict.fromkeys(item.limit.measure for item in judged.unjudged))
        page_text = render_page(trend_report(builds_of(lines), limits, missed))
        drawn.sink.write(page_text.encode("utf-8", "backslashreplace"))
        drawn.keep()


def _text_of(path: str) -> str:
    try:
        return read_bytes(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise Failure(f"cannot be read: {error.strerror or error}", path) from None
