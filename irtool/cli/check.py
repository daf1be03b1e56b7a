"""``irtool check``: is each strategy legal, and what will be sliced and communicated?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.answering import Answered, FindingsForm, JudgedForm, tell, write_findings
from irtool.cli.configuration import Configuration
from irtool.cli.context import NO_DEVICES, ContextArguments, context_command, parallel_of
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.begin import (
    begin_of,
    context_of,
    context_of_any,
    dumps_for_why,
    is_later,
    later_dump,
)
from irtool.cli.inputs.dumps import read_statements
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.question import Question, RunOptions, question_of
from irtool.cli.report import Failure, note, report_problems
from irtool.cli.where import read_query
from irtool.cluster.context.model import RunContext
from irtool.cluster.context.weigh import weighed
from irtool.cluster.machine import default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Findings
from irtool.ir.graph import Node
from irtool.ir.run import InputFile
from irtool.report.checking.against import against_blocks
from irtool.report.checking.answer import WhyAnswer, check_answer
from irtool.report.checking.report import CheckView, check_report, instead_texts
from irtool.report.checking.why import node_cause, why_report
from irtool.report.model import Report
from irtool.report.run_answer import context_fields
from irtool.sharding.against import Comparison, compare
from irtool.sharding.check import check, of_what_was_read
from irtool.sharding.network.report import CheckResult
from irtool.sharding.suggest import proposals
from irtool.sharding.why import Cause, explain_in
from irtool.sharding.why.walk import surroundings
from irtool.syntax import file_facts

if TYPE_CHECKING:
    from irtool.planning.files.saved_strategies import FileChanges, SavedCheck
    from irtool.report.checking.saved import SavedFile
    from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.plans.edits import CauseEdits


@dataclass(frozen=True, slots=True)
class CheckOptions(RunOptions):
    """What the command line asks of a check, as it is typed."""

    format: shared.JudgedFormat = JudgedForm.table
    operators: Annotated[bool, Option("--operators", help="A line for every operator.")] = False
    redistributions: Annotated[
        bool, Option("--redistributions", help="A line for every edge with operators on it.")
    ] = False
    parameters: Annotated[bool, Option("--parameters", help="A line for every parameter.")] = False
    where: shared.Where = None
    against: Annotated[
        str | None,
        Option(metavar="VALIDATE", help="Is this later dump what the strategies promise?"),
    ] = None
    why: Annotated[
        str | None,
        Option(
            metavar="NODE|QUERY",
            help="Why is %123 in the validate dump?",
            complete=complete.nodes_or_query,
        ),
    ] = None
    strategy: Annotated[
        str | None,
        Option(metavar="FILE", help="Is this saved strategy file legal; what does it change?"),
    ] = None
    strategy_before: Annotated[
        str | None,
        Option(metavar="FILE", help="And what does it change against this one?"),
    ] = None
    limit: shared.Limit = None
    allow_unknown: shared.AllowUnknown = False

    @property
    def lists(self) -> frozenset[str]:
        """Lists that people see: operators, redistributions, parameters."""
        lists = {
            "operators": self.operators or (self.where is not None and not self.redistributions),
            "redistributions": self.redistributions,
            "parameters": self.parameters,
        }
        return frozenset(name for name, is_on in lists.items() if is_on)


CheckQuestion: TypeAlias = "Question[str | Dump, CheckOptions]"


@with_options(CheckOptions)
def _check(
    path: Annotated[
        str,
        Argument(metavar="PATH", help="A begin dump, a run folder, or -.", show_default=False),
    ],
    options: CheckOptions,
    *,
    context: ContextArguments,
) -> int:
    """Is each strategy legal; what will be sliced and communicated?

    Reads a dump taken before MindSpore's parallel pass (step_parallel_begin), and says what that
    pass will say; with --strategy as if it loaded that file.

    Exit status: 0 accepted; 1 there are findings, or a part is unknown.
    """
    _chosen(options)
    question = question_of(path, options, context)
    output = Output(options.output_file)
    listed = options.format.of_findings
    if options.strategy_before is not None and options.strategy is None:
        raise Failure("goes with --strategy", "--strategy-before", hint="--strategy NEW.json")
    if options.why is not None:
        if options.strategy is not None:
            raise Failure("asks of a dump, and goes without --strategy", "--why")
        if listed is not None:
            raise Failure(f"no {listed.value} of --why", "--format", hint="json is for scripts")
        return tell(why_answered(question, options.why), output, options.format)
    answered = check_answered(question)
    if listed is not None:
        _write_findings(output, listed, answered.result)
        return answered.status
    return tell(answered, output, options.format, options.assumptions)


command = context_command("check", _check)


def _chosen(options: CheckOptions) -> Callable[[Node], bool]:
    """Whether people see a node.

    Raises:
        Failure: ``--where`` is no query.
    """
    return (lambda node: True) if options.where is None else read_query("--where", options.where)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A begin dump with the answer of ``check``; ``saved``: and of a strategy file."""

    dump: Dump
    result: CheckResult
    context: RunContext
    saved: tuple[SavedCheck, FileChanges | None] | None = None


def check_answered(asked: CheckQuestion) -> Answered[CheckView]:
    """Whether strategies are legal, and what comes of them.

    Args:
        asked: about a dump or a run folder; its options say what is compared, and what fails.

    Raises:
        Failure: there is no such dump, or nobody says for how many devices it was compiled.
    """
    options = asked.options
    file, dump = begin_of(asked.source, asked.context.rank, options.graph)
    actual = None if options.against is None else later_dump(options.against, dump.path)
    checked = _checked(asked, file, dump, actual)
    view = _view(options, checked)
    later = None if actual is None else (_compare(checked, actual), actual)

    def report(is_page: bool) -> Report:
        limit = 0 if is_page else options.limit
        blocks = [] if later is None else against_blocks(later[0], view.path, later[1], limit)
        if checked.saved is not None:
            from irtool.report.checking.saved import saved_blocks

            blocks = [*saved_blocks(*checked.saved, limit), *blocks]
        return check_report(view, dump if is_page else None, blocks)

    return Answered(
        view,
        lambda: check_answer(view, checked.context, later, _saved_answer(checked)),
        report,
        checked.context,
        status=_status(options, view, checked, later),
    )


def _checked(asked: CheckQuestion, file: InputFile, dump: Dump, later: str | None) -> _Checked:
    context = context_of(file, dump, asked.context, asked.configuration, later=later)
    parallel = parallel_of(context, file.path)
    saved = _saved(dump, parallel, asked.options)
    report = check(dump, parallel) if saved is None else saved[0].report
    context = weighed(context, report)
    report_problems(dump.problems)
    result = _with_contradictions(of_what_was_read(report, dump), context)
    return _Checked(dump, result, context, saved)


def _saved(
    dump: Dump, parallel: ParallelContext, options: CheckOptions
) -> tuple[SavedCheck, FileChanges | None] | None:
    """``--strategy``: what a saved file says of the network, and what otherwise than another."""
    if options.strategy is None:
        return None
    from irtool.cli.inputs.strategies import strategies_at
    from irtool.planning.files.saved_strategies import check_saved, file_changes

    path, old = options.strategy, options.strategy_before
    file = strategies_at(path)
    before = None if old is None else strategies_at(old)
    if before is not None and before.keys != file.keys:
        message = f"is keyed by {before.keys}, {path} by {file.keys}: they can't be compared"
        raise Failure(message, str(old))
    changes = None if before is None else file_changes(before, file)
    return check_saved(dump, parallel, file), changes


def _with_contradictions(result: CheckResult, context: RunContext) -> CheckResult:
    """What two sources say differently of the context is worth a look."""
    findings = [
        Finding("context", "warning", contradiction.message, contradiction.path)
        for contradiction in context.contradictions
    ]
    return replace(result, findings=(*result.findings, *findings))


def _view(options: CheckOptions, checked: _Checked) -> CheckView:
    """What to show of a report: nodes that ``--where`` chose, in the order of the dump."""
    report, chosen = checked.result, _chosen(options)
    operators = [item for item in report.operators if chosen(item.node)]
    edges = [
        edge
        for edge in report.redistributions
        if edge.operators != () and (chosen(edge.producer) or chosen(edge.consumer))
    ]
    origins = _files_of(checked.context)
    return CheckView(
        path=checked.dump.path,
        result=report,
        operators=sorted(operators, key=lambda item: item.node.line),
        redistributions=sorted(edges, key=lambda edge: edge.consumer.line),
        origin=", ".join(sorted(file for file in origins if file_facts.is_file(file))),
        instead=proposals(checked.dump, report),
        lists=options.lists,
        limit=options.limit,
    )


def _files_of(context: RunContext) -> set[str]:
    """The files that give the context; where none does, the dumps that show it."""
    for source in ("file", "dump"):
        entries = context.entries.values()
        files = {entry.origin.path for entry in entries if entry.origin.source == source}
        if files:
            return files
    return set()


def _write_findings(output: Output, form: FindingsForm, view: CheckView) -> None:
    """The findings alone, for CI."""
    from irtool.linting.fingerprint import fingerprinted
    from irtool.linting.places import located
    from irtool.report.findings.places import relative

    with_fixes = [
        replace(located(item), fix="; ".join(instead_texts(view, item)) or None)
        for item in view.result.findings
    ]
    findings = Findings(
        tuple(fingerprinted(with_fixes, lambda item: relative(item.file))), files=1, compilations=1
    )
    write_findings(output, form, findings, command="check", files=[view.path])


def _status(
    options: CheckOptions, view: CheckView, checked: _Checked, later: tuple[Comparison, str] | None
) -> int:
    refused = view.result.accepted is False
    disagrees = later is not None and not _agrees(later[0], options.allow_unknown)
    unknown = view.result.accepted is None and not options.allow_unknown
    severe = [finding for finding in view.result.findings if finding.severity != "info"]
    graded = (*checked.dump.problems, *(severe if not options.allow_unknown else ()))
    return fails(
        options.fail_on,
        "error" if refused else None,
        "warning" if disagrees else None,
        "info" if unknown else None,
        those=(finding.severity for finding in graded),
    )


def _saved_answer(checked: _Checked) -> SavedFile | None:
    if checked.saved is None:
        return None
    from irtool.report.checking.saved import saved_answer

    return saved_answer(*checked.saved)


def _compare(checked: _Checked, actual: str) -> Comparison:
    """``--against``: does a later dump hold what the strategies promise?"""
    return compare(checked.result, checked.dump, read_statements(InputFile(actual)))


def _agrees(comparison: Comparison, allow_unknown: bool) -> bool:
    """Whether nothing differs, and there was something to compare."""
    return comparison.agrees or (allow_unknown and not comparison.differences)


# -- why is this node there? -------------------------------------------------------------------


def why_answered(asked: CheckQuestion, why: str) -> Answered[list[Cause]]:
    """The causes of nodes of a later dump.

    Args:
        asked: of a dump or run folder; ``against`` names the later dump.
        why: a node's id, or a query.

    Raises:
        Failure: there is no later dump, or no such node in it.
    """
    if re.fullmatch(r"%\d+", why):
        chosen: Callable[[Node], bool] = lambda node: node.id == why  # noqa: E731 - one type for both branches
    else:
        chosen = read_query("--why", why)
    path, options = str(asked.source), asked.options
    later, begin = dumps_for_why(path, options.against, asked.context.rank, options.graph)
    checked = None
    if begin is not None:
        try:
            checked = _checked(asked, begin, read_statements(begin), later)
        except Failure as failure:
            if not is_later(path) or failure.code != NO_DEVICES:
                raise
            note(f"{failure.message}; goes by names and attributes alone")
    dump = read_statements(InputFile(later))
    nodes = list(dump.nodes(where=chosen))
    if not nodes:
        raise Failure(f"there is no node {why}" if "%" in why else "no node is like this", later)
    causes, found = _causes(nodes, dump, checked)
    before = checked.dump.path if checked is not None else None
    title = f"check --why {why}: {dump.path}"
    unknown = any(cause.kind == "unknown" for cause in causes)

    def answer() -> WhyAnswer:
        context = (
            context_of_any(InputFile(later), Configuration(), dump)
            if checked is None
            else checked.context
        )
        why_there = [node_cause(cause, found) for cause in causes]
        return WhyAnswer(**context_fields(context), path=dump.path, why=why_there)

    return Answered(
        causes,
        answer,
        lambda is_page: why_report(title, causes, before, options.limit, dump, is_page, found),
        RunContext(None),
        status=fails(options.fail_on, "info" if unknown and not options.allow_unknown else None),
    )


def _causes(
    nodes: Sequence[Node], dump: Dump, checked: _Checked | None
) -> tuple[list[Cause], CauseEdits]:
    """The cause of each node, and edits that would make the first ones go away."""
    from irtool.planning.plans.edits import CauseEdits, edits_of_causes

    around = surroundings(dump, None if checked is None else checked.dump)
    if checked is None:
        return [explain_in(around, node, None) for node in nodes], CauseEdits()
    causes = [explain_in(around, node, checked.result) for node in nodes]
    context = checked.context.parallel
    if context is None or checked.result.accepted is False:
        return causes, CauseEdits()
    machine = default_machine(context.target)
    return causes, edits_of_causes(around, causes, checked.dump, context, checked.result, machine)
