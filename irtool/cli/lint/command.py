"""``irtool lint``: findings for a pull request."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.answering import Answered, FindingsForm, write_findings
from irtool.cli.configuration import Configuration, load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command, find, given_by
from irtool.cli.declared import with_options
from irtool.cli.lint.linting import Linting
from irtool.cli.lint.report import (
    Gathered,
    against_baseline,
    report_of,
    save_baseline,
    settled,
    status_of,
)
from irtool.cli.lint.settings import BAD_SETTING, Asked, settings_for
from irtool.cli.lint.work import Plan, PlannedRule
from irtool.cli.output import Output
from irtool.cli.parameters import Option
from irtool.cli.report import Failure, note, report, report_problems
from irtool.cli.where import read_query
from irtool.cluster.context.evidence import Evidence
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Findings
from irtool.ir.units import plural
from irtool.linting.cache import Cache
from irtool.linting.registry import OFF_FAMILIES
from irtool.linting.rule import family_of
from irtool.linting.settings import Overrides, expanded
from irtool.report.findings.answer import lint_answer
from irtool.report.findings.html import findings_page
from irtool.report.findings.text import TextStyle, summary_text, text_pieces
from irtool.syntax import file_facts
from irtool.syntax.cache_files import cache_folder
from irtool.syntax.kept import remembers
from irtool.syntax.load import load
from irtool.syntax.source import DumpError

_CODES = "CODE[,CODE]"


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What the command line asks of rules, as it is typed."""

    format: shared.FindingsFormat = FindingsForm.text
    select: Annotated[
        list[str] | None,
        Option(
            metavar=_CODES,
            help="Only these rules: codes, prefixes (COM), names.",
            complete=complete.codes,
        ),
    ] = None
    extend_select: Annotated[
        list[str] | None,
        Option(metavar=_CODES, help="These rules too.", complete=complete.codes),
    ] = None
    ignore: Annotated[
        list[str] | None,
        Option(metavar=_CODES, help="Not these rules.", complete=complete.codes),
    ] = None
    where: shared.Where = None
    baseline: Annotated[
        str | None, Option(metavar="FILE", help="Known findings, which are not reported.")
    ] = None
    update_baseline: Annotated[
        bool, Option("--update-baseline", help="Write all findings there, and report none.")
    ] = False
    source_map: Annotated[
        list[str] | None,
        Option(metavar="FROM=TO", help="Where paths of Python files in dumps lead to here."),
    ] = None
    machine: shared.MachineName = None
    fail_on: shared.FailSeverity = None
    exit_zero: Annotated[bool, Option("--exit-zero", help="Exit 0 even if there are findings.")] = (
        False
    )
    statistics: Annotated[bool, Option("--statistics", help="How often each rule spoke.")] = False
    all_passes: Annotated[
        bool, Option("--all-passes", help="Every dump of a run folder, not the telling ones.")
    ] = False
    limit: shared.Limit = None
    graph: shared.GraphNumber = None
    jobs: shared.Jobs = None
    config: shared.Config = None
    output_file: shared.OutputFile = None

    @property
    def overrides(self) -> Overrides:
        """What goes before the settings of a file."""
        return Overrides(
            self.select or (),
            self.extend_select or (),
            self.ignore or (),
            self.baseline,
            self.machine,
            self.fail_on,
            self.source_map or (),
        )


@with_options(LintOptions)
def _lint(paths: shared.Paths, options: LintOptions, *, context: ContextArguments) -> int:
    """What is wrong, or worth a look, in these dumps?

    Exit status: 0 nothing found; 1 findings; 2 could not do it. irtool rules lists what is looked
    for, irtool explain CODE says more of it.
    """
    configuration = read_configuration(options.config)
    load_custom_rules(configuration)
    asked = settings_for(configuration, options.overrides)
    asked = _of_one_dump(asked, [*(options.select or ()), *(options.extend_select or ())])
    if options.update_baseline and asked.settings.baseline is None:
        raise Failure("--update-baseline needs a file", hint="--baseline irtool-baseline.json")
    question = LintQuestion(paths, context, configuration, asked, options, remembers())
    linting = linted(question, bar=True)
    report_problems(linting.problems)
    if not linting.read_files:
        return _nothing_read(linting)
    gathered = gathered_by(linting)
    findings = settled(asked, gathered)
    if options.update_baseline:
        count = plural(save_baseline(asked, findings), "finding")
        note(f"{count} written to {asked.settings.baseline}")
        return int(linting.unread)
    answered = _answered(linting, gathered, findings)
    made = answered.result
    write_findings(
        Output(options.output_file),
        options.format,
        made,
        command="lint",
        answer=answered.answer,
        dump=lambda: _shown_dump(made),
        files=[path for unit in linting.units for path in unit.paths],
        limit=options.limit,
        statistics=options.statistics,
    )
    if options.format is not FindingsForm.text or options.output_file:
        _tell_summary(made)
    return int(linting.unread) or (0 if options.exit_zero else status_of(asked, made))


command = context_command("lint", _lint)


@dataclass(frozen=True, slots=True)
class LintQuestion:
    """What ``irtool lint`` is asked.

    Attributes:
        paths: of dumps, folders and run folders.
        context: what is said of the runs.
        configuration: ``irtool.toml``.
        asked: the rules, with their settings.
        options: as they are typed, with defaults for all others.
        is_cached: whether what was looked at before is remembered.
    """

    paths: Sequence[str]
    context: ContextArguments
    configuration: Configuration
    asked: Asked
    options: LintOptions
    is_cached: bool = True


def lint_answered(asked: LintQuestion) -> Answered[Findings]:
    """What is wrong, or worth a look, in dumps.

    Args:
        asked: the dumps, with options and settings.

    Raises:
        Failure: no dump can be read, or a setting makes no sense.
    """
    linting = linted(asked, bar=False)
    report_problems(linting.problems)
    if not linting.read_files:
        problem = next(iter((*linting.findings, *linting.problems)), None)
        if problem is None:
            raise Failure("there is no dump to lint", hint="irtool lint samples/")
        raise Failure(problem.message, problem.file, hint=problem.hint, code=problem.code)
    gathered = gathered_by(linting)
    return _answered(linting, gathered, settled(asked.asked, gathered))


def linted(asked: LintQuestion, bar: bool) -> Linting:
    """What the rules say of all dumps, before anything is left out.

    Args:
        asked: which, for what.
        bar: whether a terminal shows how far it is.

    Raises:
        Failure: a value of the context, or the query, makes no sense.
    """
    _check_context(asked.context, asked.configuration)
    options = asked.options
    plan = Plan(
        tuple(PlannedRule.of(rule) for rule in asked.asked.rules),
        asked.context,
        asked.configuration,
        _checked_query(options.where),
        asked.asked.machine,
        os.getpid(),
    )
    linting = Linting(asked.asked, plan, Cache(cache_folder() if asked.is_cached else None))
    linting.find(asked.paths, asked.context.rank, options.graph, options.all_passes)
    linting.work(options.jobs, bar=bar)
    linting.cache.close()
    return linting


def gathered_by(linting: Linting) -> Gathered:
    """All that was found, with what was looked at."""
    return Gathered(linting.findings, linting.units, linting.silenced(), linting.read_files)


def _answered(
    linting: Linting, gathered: Gathered, findings: Sequence[Finding]
) -> Answered[Findings]:
    asked = linting.asked
    marked, stale = against_baseline(asked, findings)
    made = report_of(asked, gathered, marked, stale)
    return Answered(
        made,
        lambda: lint_answer(made, linting.contexts()),
        lambda is_page: findings_page(made, _shown_dump(made) if is_page else None, "lint"),
        status=int(linting.unread) or status_of(asked, made),
        text=lambda: "".join(text_pieces(made, TextStyle(100))),
    )


def _shown_dump(findings: Findings) -> Dump | None:
    """The dump that a page shows the graph of: the one with the most findings about nodes."""
    counts = Counter(finding.file for finding in findings.items if finding.node is not None)
    for path, _ in counts.most_common(1):
        if file_facts.exists(path):
            try:
                return load(path)
            except DumpError as error:
                note(f"{path}: {error.message}; its graph is not shown")
    return None


def _of_one_dump(asked: Asked, given: Sequence[str]) -> Asked:
    """Without the rules that compare two dumps, which settings may name for ``irtool gate``.

    Raises:
        Failure: the command line names one of them.
    """
    for part in filter(None, (code.strip() for text in given for code in text.split(","))):
        if all(_compares(code) for code in expanded([part], asked.known, "select")):
            hint = "irtool gate OLD NEW looks for it"
            raise Failure(f"{part} compares two dumps", "--select", hint=hint, code=BAD_SETTING)
    return replace(asked, rules=tuple(rule for rule in asked.rules if not _compares(rule.code)))


def _compares(code: str) -> bool:
    return family_of(code) in OFF_FAMILIES


def _checked_query(where: str | None) -> str | None:
    if where is not None:
        read_query("--where", where)
    return where


def _check_context(arguments: ContextArguments, configuration: Configuration) -> None:
    """Find values that make no sense before anything is read."""
    find(given_by(arguments, configuration, None), Evidence())


def _nothing_read(linting: Linting) -> int:
    """No dump at all could be read: say why, and end with status 2."""
    for finding in linting.findings:
        report(finding.place, "error", finding.code, finding.message, hint=finding.hint)
    if not linting.findings and not linting.problems:
        raise Failure("there is no dump to lint", hint="irtool lint samples/")
    return 2


def _tell_summary(findings: Findings) -> None:
    """The last lines of the text report on standard error, where a person may read along."""
    for line in summary_text(findings).splitlines():
        note(line)
