"""``irtool comm groups``: every collective with its group, axis, phase, stream, and link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from irtool.cli import complete, options
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.inputs.cluster import Asked, Rank, Read, machine_for, read_cluster
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, report_problems
from irtool.cli.where import read_query
from irtool.cluster.groups import GroupReport, group_report, named_group
from irtool.cluster.ranks import Cluster
from irtool.ir.graph import Node

if TYPE_CHECKING:
    from irtool.report.comm.groups import GroupsView


def command(
    paths: Annotated[
        list[str] | None,
        Argument(
            metavar="PATH",
            help="A run folder, a dump, several of different ranks, or -; none with --group.",
            show_default=False,
        ),
    ] = None,
    format: options.DrawnFormat = DrawnForm.table,
    group: Annotated[
        str | None,
        Option(metavar="NAME", help="What is this group of a log?", complete=complete.groups),
    ] = None,
    listed: Annotated[
        bool, Option("--list", help="A line for every communication, in launch order.")
    ] = False,
    where: options.Where = None,
    machine: options.MachineName = None,
    devices: options.Devices = None,
    rank: Rank = None,
    graph: options.GraphNumber = None,
    limit: options.Limit = None,
    context: options.Context = None,
    config: options.Config = None,
    allow_unknown: options.AllowUnknown = False,
    assumptions: options.Assumptions = False,
    output_file: options.OutputFile = None,
) -> int:
    """Every collective and transfer: group, axis of parallelism, phase, stream, link.

    Exit status: 0 all ranks agree; 1 some do not, dumps of ranks are missing, or they are of a
    pass that does not hold all communications yet.
    """
    if not paths and group is None:
        raise Failure("which dump?", hint="irtool comm groups PATH, or --group NAME --devices N")
    chosen = read_query("--where", where) if where is not None else _every
    asked = Asked(paths or (), rank, graph, devices, context, config)
    output = Output(output_file)
    question = GroupsQuestion(
        asked, machine, allow_unknown, chosen, listed or where is not None, limit
    )
    if group is None:
        return tell(groups_answered(question), output, format, assumptions)
    if format is DrawnForm.svg:
        raise Failure("one group has no picture", "--format", hint="--format html")
    return tell(named_group_answered(question, group), output, format, assumptions)


@dataclass(frozen=True, slots=True)
class GroupsQuestion:
    """Whose communication is asked about.

    Attributes:
        asked: what to read.
        machine: a built-in machine's name, or a file; None: that of the groups' names.
        allow_unknown: whether parts that are unknown are nothing to see.
        chosen: communications that people see.
        listed: whether people see a line for each.
        limit: rows that text shows.
    """

    asked: Asked
    machine: str | None = None
    allow_unknown: bool = False
    chosen: Callable[[Node], bool] = lambda node: True
    listed: bool = False
    limit: int | None = None


def groups_answered(question: GroupsQuestion) -> Answered[GroupsView]:
    """Every collective of a run.

    Raises:
        Failure: nothing can be read, or nobody can say whose dumps these are.
    """
    from irtool.report.comm.groups import groups_answer, groups_report

    read = read_cluster(question.asked)
    view = _viewed(question, read)
    return Answered(
        view,
        lambda: groups_answer(view, read.context),
        lambda is_page: groups_report(view, is_page),
        read.context,
        status=_status(view.report, read, question.asked, question.allow_unknown),
    )


def named_group_answered(question: GroupsQuestion, group: str) -> Answered[GroupsView]:
    """What one group is, by its name; without dumps, as far as the name tells.

    Raises:
        Failure: nothing can be read, or the name means nothing.
    """
    from irtool.report.comm.groups import named_group_answer, named_group_report

    asked = question.asked
    read = read_cluster(asked) if asked.paths else Read(_nobody(asked.devices), group, ())
    view = _viewed(question, read)
    named = named_group(view.report, read.cluster, group, asked.devices)
    unknown = named.ranks is None and not question.allow_unknown
    return Answered(
        view,
        lambda: named_group_answer(view, named, read.context),
        lambda is_page: named_group_report(view, named),
        read.context,
        status=1 if named.disagreements or read.problems or unknown else 0,
    )


def _viewed(question: GroupsQuestion, read: Read) -> GroupsView:
    from irtool.report.comm.groups import GroupsView

    report_problems(read.problems)
    report = group_report(read.cluster, machine_for(question.machine, read.cluster))
    return GroupsView(read.path, report, question.chosen, question.listed, question.limit)


def _every(node: Node) -> bool:
    return True


def _nobody(devices: int | None) -> Cluster:
    return Cluster({}, (), devices or 0, devices is not None)


def _status(report: GroupReport, read: Read, asked: Asked, allow_unknown: bool) -> int:
    wrong = any(item.mismatch or (item.known and not item.matched) for item in report.transfers)
    if report.disagreements or wrong or read.problems:
        return 1
    # Of a single dump the others were never asked for.
    run = len(read.cluster.ranks) > 1
    unknown = any(row.party.ranks is None for row in report.rows) or (run and report.missing)
    return 1 if (unknown or report.partial) and not allow_unknown else 0
