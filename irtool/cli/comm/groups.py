"""``irtool comm groups``: every collective with its group, axis, phase, stream, and link."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from irtool.cli import complete
from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.comm.options import CommOptions
from irtool.cli.declared import with_options
from irtool.cli.inputs.cluster import Asked, Rank, Read, machine_for, read_cluster
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, report_problems
from irtool.cli.where import read_query
from irtool.cluster.groups import GroupReport, group_report, named_group
from irtool.cluster.ranks import Cluster
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

if TYPE_CHECKING:
    from irtool.report.comm.groups import GroupsView


@dataclass(frozen=True, slots=True)
class GroupsOptions(CommOptions):
    """What the command line asks of groups, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    group: Annotated[
        str | None,
        Option(metavar="NAME", help="What is this group of a log?", complete=complete.groups),
    ] = None
    listed: Annotated[
        bool, Option("--list", help="A line for every communication, in launch order.")
    ] = False
    where: shared.Where = None
    machine: shared.MachineName = None
    rank: Rank = None
    limit: shared.Limit = None
    allow_unknown: shared.AllowUnknown = False


@with_options(GroupsOptions)
def command(
    options: GroupsOptions,
    paths: Annotated[
        list[str] | None,
        Argument(
            metavar="PATH",
            help="A run folder, a dump, several of different ranks, or -; none with --group.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Every collective and transfer: group, axis of parallelism, phase, stream, link.

    Exit status: 0 all ranks agree; 1 some do not, dumps of ranks are missing, or they are of a
    pass that does not hold all communications yet.
    """
    if not paths and options.group is None:
        raise Failure("which dump?", hint="irtool comm groups PATH, or --group NAME --devices N")
    asked = options.asked(paths or (), options.rank)
    if options.group is None:
        answered = groups_answered(asked, options)
    elif options.format is DrawnForm.svg:
        raise Failure("one group has no picture", "--format", hint="--format html")
    else:
        answered = named_group_answered(asked, options, options.group)
    return tell(answered, Output(options.output_file), options.format, options.assumptions)


def groups_answered(asked: Asked, options: GroupsOptions) -> Answered[GroupsView]:
    """Every collective of a run with its group, and whether all ranks agree.

    Args:
        asked: what to read.
        options: how much is shown, and what it is priced on.

    Raises:
        Failure: nothing can be read, or nobody can say whose dumps these are.
    """
    from irtool.report.comm.groups import groups_answer, groups_report

    chosen = _chosen(options)
    read = read_cluster(asked)
    view = _viewed(read, options, chosen)
    return Answered(
        view,
        lambda: groups_answer(view, read.context),
        lambda is_page: groups_report(view, is_page),
        read.context,
        status=_status(view.report, read, options.allow_unknown),
    )


def named_group_answered(asked: Asked, options: GroupsOptions, name: str) -> Answered[GroupsView]:
    """What one group is, by its name; without dumps, as far as the name tells.

    Args:
        asked: what to read.
        options: how much is shown, and what it is priced on.
        name: of the group, as logs have it.

    Raises:
        Failure: nothing can be read, or the name means nothing.
    """
    from irtool.report.comm.groups import named_group_answer, named_group_report

    chosen = _chosen(options)
    read = read_cluster(asked) if asked.paths else Read(_nobody(asked.devices), name, ())
    view = _viewed(read, options, chosen)
    named = named_group(view.report, read.cluster, name, asked.devices)
    unknown = named.ranks is None and not options.allow_unknown
    return Answered(
        view,
        lambda: named_group_answer(view, named, read.context),
        lambda is_page: named_group_report(view, named),
        read.context,
        status=1 if named.disagreements or read.problems or unknown else 0,
    )


def _chosen(options: GroupsOptions) -> Callable[[Node], bool]:
    """Which communications people see.

    Raises:
        Failure: the query of ``--where`` can't be read.
    """
    return _every if options.where is None else read_query("--where", options.where)


def _viewed(read: Read, options: GroupsOptions, chosen: Callable[[Node], bool]) -> GroupsView:
    from irtool.report.comm.groups import GroupsView

    report_problems(read.problems)
    report = group_report(read.cluster, machine_for(options.machine, read.cluster))
    listed = options.listed or options.where is not None
    return GroupsView(read.path, report, chosen, listed, options.limit)


def _every(node: Node) -> bool:
    return True


def _nobody(devices: int | None) -> Cluster:
    return Cluster({}, (), devices or 0, devices is not None)


def _status(report: GroupReport, read: Read, allow_unknown: bool) -> int:
    wrong = any(item.mismatch or (item.known and not item.matched) for item in report.transfers)
    if report.disagreements or wrong or read.problems:
        return 1
    # Of a single dump the others were never asked for.
    run = len(read.cluster.ranks) > 1
    unknown = any(row.party.ranks is None for row in report.rows) or (run and report.missing)
    return 1 if (unknown or report.partial) and not allow_unknown else 0
