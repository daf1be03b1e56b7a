"""``irtool comm groups``: every collective with its group, axis, phase, stream, and link."""

from __future__ import annotations

from typing import Annotated

import typer

from irtool.cli import options
from irtool.cli.comm_inputs import Asked, Read, machine_for, read_cluster
from irtool.cli.comm_options import Format, FormatOption, Rank, write
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.cluster.groups import GroupReport, group_report, named_group
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster
from irtool.ir.node import Node
from irtool.report.comm_groups import GroupsView, groups_document, groups_pieces
from irtool.report.comm_groups_page import groups_page, groups_svg
from irtool.report.comm_named import named_document, named_pieces
from irtool.report.context import context_pieces
from irtool.syntax.query import QueryError, query


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="A run folder, a dump, several of different ranks, or -; none with --group.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = Format.table,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="What is this group of a log?")
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
    output_file: options.OutputFile = None,
) -> int:
    """Every collective and transfer: group, axis of parallelism, phase, stream, link.

    Exit status: 0 all ranks agree; 1 some do not, dumps of ranks are missing, or they are of a
    pass that does not hold all communications yet.
    """
    if not paths and group is None:
        raise Failure("which dump?", hint="irtool comm groups PATH, or --group NAME --devices N")
    try:
        chosen = query(where) if where is not None else _every
    except QueryError as error:
        place = f"--where:1:{error.column}"
        raise Failure(
            error.message, place, error.column, error.text, error.hint, "QRY001"
        ) from None
    asked = Asked(paths or (), rank, graph, devices, context, config)
    read = read_cluster(asked) if paths else Read(_nobody(devices), group or "", ())
    report_problems(read.problems)
    priced: Machine = machine_for(machine, read.cluster)
    report = group_report(read.cluster, priced)
    view = GroupsView(read.path, report, chosen, listed or where is not None, limit)
    output = Output(output_file)
    if group is not None:
        return _tell_group(output, format, view, read, group, devices, allow_unknown)
    write(
        output,
        format,
        lambda: groups_document(view),
        lambda: groups_pieces(view),
        lambda: groups_svg(report),
        lambda: groups_page(view),
        read.context,
    )
    return _status(report, read, asked, allow_unknown)


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


def _tell_group(
    output: Output,
    format: Format,
    view: GroupsView,
    read: Read,
    name: str,
    devices: int | None,
    allow_unknown: bool,
) -> int:
    if format not in (Format.table, Format.json):
        raise Failure("one group is shown as table or json", "--format")
    found = named_group(view.report, read.cluster, name, devices)
    if format is Format.json:
        for piece in context_pieces(named_pieces(view, found), read.context):
            output.write(piece)
    else:
        output.show(named_document(view, found))
    output.close()
    if found.disagreements or read.problems:
        return 1
    return 1 if found.ranks is None and not allow_unknown else 0
