"""``irtool comm groups``: every collective with its group, axis, phase, stream, and link."""

from __future__ import annotations

from typing import Annotated

import typer

from irtool.cli import complete, options
from irtool.cli.answering import DrawnForm, write_answer
from irtool.cli.cluster_inputs import Asked, Rank, Read, machine_for, read_cluster
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.cli.where import read_query
from irtool.cluster.groups import GroupReport, group_report, named_group
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster
from irtool.ir.graph import Node


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="A run folder, a dump, several of different ranks, or -; none with --group.",
            show_default=False,
        ),
    ] = None,
    format: options.DrawnFormat = DrawnForm.table,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What is this group of a log?", autocompletion=complete.groups
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="A line for every communication, in launch order.")
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
    from irtool.report.comm.groups import (
        GroupsView,
        groups_answer,
        groups_report,
        named_group_answer,
        named_group_report,
    )

    if not paths and group is None:
        raise Failure("which dump?", hint="irtool comm groups PATH, or --group NAME --devices N")
    chosen = read_query("--where", where) if where is not None else _every
    asked = Asked(paths or (), rank, graph, devices, context, config)
    read = read_cluster(asked) if paths else Read(_nobody(devices), group or "", ())
    report_problems(read.problems)
    priced: Machine = machine_for(machine, read.cluster)
    report = group_report(read.cluster, priced)
    view = GroupsView(read.path, report, chosen, listed or where is not None, limit)
    output = Output(output_file)
    if group is None:
        write_answer(
            output,
            format,
            answer=lambda: groups_answer(view, read.context),
            report=lambda is_page: groups_report(view, is_page),
            context=read.context,
            all_assumptions=assumptions,
        )
        return _status(report, read, asked, allow_unknown)
    if format is DrawnForm.svg:
        raise Failure("one group has no picture", "--format", hint="--format html")
    named = named_group(report, read.cluster, group, devices)
    write_answer(
        output,
        format,
        answer=lambda: named_group_answer(view, named, read.context),
        report=lambda is_page: named_group_report(view, named),
        context=read.context,
        all_assumptions=assumptions,
    )
    if named.disagreements or read.problems:
        return 1
    return 1 if named.ranks is None and not allow_unknown else 0


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
