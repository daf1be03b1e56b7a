"""Asks the analyses of a document, the quick ones first; slow, so never on the main loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.cluster.context.evidence import pass_of, sibling
from irtool.cluster.context.library import find_context
from irtool.cluster.context.model import RunContext
from irtool.editor.answers import NO_ANSWERS, Answers
from irtool.editor.document import Document
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.ties import ties
from irtool.linting.engine import lint_compilation
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.kinds import kind_of_dump
from irtool.linting.registry import all_rules
from irtool.linting.rule import DumpKind
from irtool.linting.settings import SettingsError, chosen_rules
from irtool.linting.suppression import Suppressions, apply_ignores
from irtool.sharding.check import check
from irtool.sharding.network.report import CheckResult
from irtool.sharding.suggest import proposals
from irtool.sharding.why import explain_all
from irtool.syntax.load import load
from irtool.syntax.source import DumpError

LATER: tuple[DumpKind, ...] = ("end", "validate")
"""Dumps that the parallel pass went over."""


def kind_of(document: Document) -> DumpKind:
    """Which dump it is: by its name, else by what is in it.

    Args:
        document: the open dump; its path may be empty.
    """
    by_name = pass_of(document.path, "begin")
    if by_name == pass_of(document.path, "validate"):
        return by_name
    return kind_of_dump(document.dump)


def analyses(document: Document) -> Iterator[Answers]:
    """Answers of the analyses, each time with one more; the last one is complete.

    Between two of them whoever asks may stop asking: the text has changed, say.

    Args:
        document: the dump; a begin dump that stands beside a later one is read with it.
    """
    answers = replace(NO_ANSWERS, ties=ties(document.dump))
    yield answers
    kind = kind_of(document)
    answers = _with_context(answers, document)
    context = answers.context
    begin = document.dump if kind == "begin" else None
    report = None
    if context is not None and context.parallel is not None:
        if kind in LATER:
            answers, begin = _with_begin(answers, document)
        if begin is not None:
            report = check(begin, context.parallel)
        if kind == "begin" and report is not None:
            answers = replace(answers, report=report)
            yield answers
            answers = replace(answers, proposals=proposals(document.dump, report))
            yield answers
    elif context is not None and kind == "begin":
        answers = _trouble(answers, "nothing tells how many devices there are: check did not run")
    if kind in LATER:
        causes = {cause.node: cause for cause in explain_all(document.dump, report, begin)}
        answers = replace(answers, causes=causes)
        yield answers
    yield _with_findings(answers, document, kind, begin)


def _trouble(answers: Answers, text: str) -> Answers:
    return replace(answers, troubles=(*answers.troubles, text))


def _with_context(answers: Answers, document: Document) -> Answers:
    try:
        context = find_context(document.dump, document.project.context)
    except (ValueError, DumpError, LookupError) as error:
        return _trouble(answers, f"the context: {error}")
    return replace(answers, context=context)


def _with_begin(answers: Answers, document: Document) -> tuple[Answers, Dump | None]:
    """The dump before the parallel pass that stands beside a later one."""
    path = sibling(document.path, "begin") if document.path else None
    if path is None:
        return answers, None
    try:
        return answers, load(path)
    except DumpError as error:
        return _trouble(answers, f"{error.path}: {error.message}"), None


def _with_findings(
    answers: Answers, document: Document, kind: DumpKind, begin: Dump | None
) -> Answers:
    try:
        findings = lint(document, kind, begin, answers.context, answers.report)
    except SettingsError as error:
        answers = _trouble(answers, f"[lint] {error.place}: {error.message}")
        findings = ()
    return replace(answers, findings=findings, is_complete=True)


def lint(
    document: Document,
    kind: DumpKind,
    begin: Dump | None,
    context: RunContext | None,
    report: CheckResult | None = None,
) -> tuple[Finding, ...]:
    """Findings of the linter about a document, in the company of its compilation's begin dump.

    Args:
        document: the dump that is shown; its project has the settings and the Python files.
        kind: which dump of the compilation it is.
        begin: the begin dump, the document's own or another; None where there is none.
        context: of the run; None where nothing could be found out.
        report: what ``check`` says of the document, so that it is not asked again; None: not asked
            yet.

    Returns:
        those in the document's file that nothing suppresses or ignores.

    Raises:
        SettingsError: a setting of the project makes no sense.
    """
    project = document.project
    settings, rules = project.settings, all_rules()
    own = DumpFacts(lambda: document.dump, kind, document.path)
    dumps = [own]
    if begin is not None and begin is not document.dump:
        dumps.insert(0, DumpFacts(lambda: begin, "begin", begin.path))
    surroundings = Surroundings(
        parallel=context.parallel if context is not None else None,
        context=context.given if context is not None else None,
        contradictions=context.contradictions if context is not None else (),
    )
    facts = CompilationFacts(dumps, surroundings)
    if report is not None:
        facts.kept("report", lambda: report)
    chosen = chosen_rules(settings, rules)
    findings = lint_compilation(facts, chosen).findings
    findings = Suppressions(project.sources, rules).apply(findings)
    findings = apply_ignores(findings, settings, rules, lambda finding: finding.file)
    return tuple(
        finding for finding in findings if finding.file == document.path and not finding.suppressed
    )
