"""``irtool gate``: structural regressions against a golden dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.answering import FindingsForm, write_findings
from irtool.cli.configuration import read_configuration
from irtool.cli.declared import with_options
from irtool.cli.gate.budget import BAD_BUDGET, Budgeted, judge, limits_of, write_trend
from irtool.cli.gate.inputs import (
    Pair,
    alone_for,
    contexts_of,
    of_ranks,
    pairs_for,
    read_pair,
    without_golden,
)
from irtool.cli.lint.report import status_of
from irtool.cli.lint.settings import Asked, settings_for
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Findings
from irtool.ir.units import plural
from irtool.linting.fingerprint import fingerprinted
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.run import run_gate
from irtool.linting.rule import Rule
from irtool.linting.rules.engine.eng001_rule_failed import RuleFailed
from irtool.linting.rules.gate.gat011_budget import OverBudget
from irtool.linting.settings import Overrides
from irtool.report.findings.answer import gate_answer
from irtool.report.findings.places import relative

if TYPE_CHECKING:
    from irtool.linting.budget import Limit

FAMILY = "GAT"


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What the command line asks of two dumps, as it is typed."""

    format: shared.FindingsFormat = FindingsForm.text
    select: Annotated[
        list[str] | None,
        Option(metavar="CODE[,CODE]", help="Only these regressions.", complete=complete.codes),
    ] = None
    ignore: Annotated[
        list[str] | None,
        Option(metavar="CODE[,CODE]", help="Not these regressions.", complete=complete.codes),
    ] = None
    threshold: Annotated[
        list[str] | None,
        Option(metavar="CODE.NAME=NUMBER", help="GAT001.most_more=3 lets three pass."),
    ] = None
    fail_on: shared.FailSeverity = None
    budget: Annotated[
        list[str] | None,
        Option(
            metavar="MEASURE=LIMIT",
            help="peak_memory=30GiB, or +5% against OLD; rank.0.peak_memory; also [gate.budget].",
        ),
    ] = None
    trend: Annotated[
        str | None,
        Option(metavar="FILE", help="Keep what this build costs as a line of JSON there."),
    ] = None
    trend_page: Annotated[str | None, Option(metavar="FILE", help="Write a page of the trend.")] = (
        None
    )
    build: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="What the trend calls this build.",
            show_default="the commit that CI names, else a number",
        ),
    ] = None
    machine: shared.MachineName = None
    rank: shared.Rank = None
    graph: shared.GraphNumber = None
    config: shared.Config = None
    output_file: shared.OutputFile = None

    @property
    def overrides(self) -> Overrides:
        """What goes before the settings of a file; without a choice all of the gate's rules."""
        return Overrides(
            self.select or [FAMILY],
            ignore=self.ignore or (),
            machine=self.machine,
            fail_on=self.fail_on,
        )


@with_options(GateOptions)
def command(
    options: GateOptions,
    old: Annotated[
        str,
        Argument(
            metavar="OLD",
            help="The golden dump, or a run folder. Budgets need none.",
            show_default=False,
        ),
    ],
    new: Annotated[
        str | None,
        Argument(metavar="NEW", help="The dump or run that is judged.", show_default=False),
    ] = None,
) -> int:
    """What became worse than in a golden dump, and what is above its budget?

    Changed strategies, types, layers, rates, lost recompute; below each what comes of it:
    collectives, bytes, memory. With budgets alone NEW is enough. Exit status: 0 nothing; 1
    regressions; 2 could not do it. irtool rules GAT lists what is looked for.
    """
    configuration = read_configuration(options.config)
    settings = dict(configuration.lint)
    settings["thresholds"] = _thresholds(settings.get("thresholds"), options.threshold or ())
    asked = settings_for(replace(configuration, lint=settings), options.overrides)
    rules = [rule for rule in asked.rules if isinstance(rule, GateRule)]
    if not rules:
        raise Failure("no rule of the gate is selected", hint="irtool rules lists GAT001, …")
    limits = limits_of(configuration, options.budget or (), options.rank)
    _check_question(old, new, limits, options)
    place = options.rank, options.graph
    pairs = alone_for(old, *place) if new is None else pairs_for(old, new, *place)
    findings, damaged = _regressions(pairs if new is not None else (), rules)
    over = _budget_rule(rules, bool(options.budget))
    limits = limits if over is not None else ()
    judged = None
    if limits or options.trend is not None:
        alone = [] if new is None else without_golden(pairs, new, *place)
        wanted = limits if options.trend is None else ()
        judged = judge(
            [*pairs, *alone], limits, over or OverBudget(), configuration, asked.machine,
            options.build or "", wanted,
        )  # fmt: skip
        findings += judged.findings
    made = fingerprinted(findings, lambda finding: relative(finding.file))
    report = _report(made, rules, asked, (2 if new is not None else 1) * len(pairs))
    write_findings(
        Output(options.output_file),
        options.format,
        report,
        command="gate",
        answer=lambda: gate_answer(report, contexts_of(pairs, configuration)),
        files=[pair.new.path for pair in pairs],
    )
    if judged is not None:
        if options.trend is not None:
            write_trend(options.trend, options.trend_page, judged, limits)
        _check_judged(judged)
    return status_of(asked, report) or int(damaged)


def _regressions(pairs: Sequence[Pair], rules: Sequence[GateRule]) -> tuple[list[Finding], bool]:
    """What the rules find in each pair, and whether part of a dump could not be read."""
    findings: list[Finding] = []
    damaged = False
    for pair in pairs:
        left, right = read_pair(pair)
        damaged = damaged or bool(left.problems or right.problems)
        findings += of_ranks(run_gate(GateFacts(left, right), rules, _failed), pair.ranks)
    return findings, damaged


def _check_question(
    old: str, new: str | None, limits: Sequence[Limit], options: GateOptions
) -> None:
    """Find what does not go together before anything is read."""
    if new is None and not limits and options.trend is None:
        hint = "irtool gate OLD NEW, or irtool gate NEW --budget peak_memory=30GiB"
        raise Failure("there is nothing to hold it against", old, hint=hint)
    if options.trend_page is not None and options.trend is None:
        raise Failure("needs --trend", "--trend-page", hint="--trend irtool-trend.jsonl")


def _check_judged(judged: Budgeted) -> None:
    """Say which budgets nobody could judge.

    Raises:
        Failure: there are such.
    """
    if judged.unjudged:
        raise Failure(
            f"{plural(len(judged.unjudged), 'budget')} could not be judged: "
            f"{', '.join(item.limit.name for item in judged.unjudged)}",
            hint="; ".join(dict.fromkeys(item.hint for item in judged.unjudged)),
            code=BAD_BUDGET,
        )


def _budget_rule(rules: Sequence[GateRule], is_asked: bool) -> OverBudget | None:
    """The rule that tells of budgets; None where it is not selected.

    Raises:
        Failure: a budget was asked for all the same.
    """
    over = next((rule for rule in rules if isinstance(rule, OverBudget)), None)
    if over is None and is_asked:
        hint = f"select {OverBudget.code} too, or leave the budget out"
        raise Failure(f"{OverBudget.code} is not selected, which judges it", "--budget", hint=hint)
    return over


def _thresholds(given: object, options: Sequence[str]) -> object:
    """The thresholds of the configuration with those of the command line."""
    tables: dict[str, dict[str, object]] = {}
    if isinstance(given, Mapping):
        for code, table in given.items():  # pyright: ignore[reportUnknownVariableType]  # settings are checked later
            if not isinstance(table, Mapping):
                return given  # pyright: ignore[reportUnknownVariableType]  # told by the check
            tables[str(code)] = dict(table)  # pyright: ignore[reportUnknownArgumentType]  # likewise
    elif given is not None:
        return given
    for text in options:
        name, equals, number = text.partition("=")
        code, dot, key = name.strip().partition(".")
        try:
            value = float(number) if "." in number or "e" in number else int(number)
        except ValueError:
            value = None
        if not equals or not dot or value is None:
            hint = "write --threshold GAT001.most_more=3"
            raise Failure(f"{text} is not CODE.NAME=NUMBER", "--threshold", hint=hint)
        tables.setdefault(code.upper(), {})[key] = value
    return tables


def _failed(rule: Rule, error: Exception) -> Finding:
    message = f"{rule.code} failed: {type(error).__name__}: {error}"
    return Finding(RuleFailed.code, "warning", message, "", hint=RuleFailed.hint, key=rule.code)


def _report(
    findings: Sequence[Finding], rules: Sequence[GateRule], asked: Asked, files: int
) -> Findings:
    spoke = {finding.code for finding in findings}
    return Findings(
        items=tuple(findings),
        rules=tuple(asked.known[code].text() for code in sorted(spoke) if code in asked.known),
        files=files,
        compilations=1,
        checked=tuple(sorted(rule.code for rule in rules)),
    )
