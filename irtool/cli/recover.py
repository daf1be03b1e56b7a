"""``irtool recover``: devices or layers came or went: what changes, and what has to move?"""

from __future__ import annotations

import os
import re
from dataclasses import fields, replace
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from irtool.cli import options
from irtool.cli.begin import BEGIN, context_of, find_begin
from irtool.cli.comm_inputs import Asked, read_cluster
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.inputs import read_input
from irtool.cli.memory_inputs import machine_of
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.planning.recovery_time import Assumptions
from irtool.render.json import json_text
from irtool.render.page.page import render_page
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.printer import dumps
from irtool.syntax.run import load_run
from irtool.syntax.run_classes import Fingerprints
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.planning.holdings import StageDumps
    from irtool.planning.recovery import Recovery
    from irtool.render.recovery_view import RecoveryView

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    html = "html"


def _recover(
    path: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or its begin dump.",
                            show_default=False),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people.")
    ] = Format.table,
    lost: Annotated[
        str | None, typer.Option(metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.")
    ] = None,
    to: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Devices to go on with.")
    ] = None,
    add_devices: Annotated[
        int, typer.Option("--add-devices", min=0, metavar="N", help="Devices that joined.")
    ] = 0,
    plan: Annotated[
        str | None,
        typer.Option(metavar="BEGIN", help="A begin dump with a plan for the new devices."),
    ] = None,
    grown: Annotated[
        str | None, typer.Option(metavar="BEGIN", help="The begin dump with layers added.")
    ] = None,
    scaled: Annotated[
        bool, typer.Option("--scaled", help="Scale strategies, don't search for better ones.")
    ] = False,
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="A built-in machine, or a TOML file.")
    ] = None,
    server: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Devices of a server, which fail together; "
                     "else the machine's."),
    ] = None,
    data_bytes: Annotated[
        str | None,
        typer.Option("--data-bytes", metavar="SIZE", help="State beside parameters: 20GiB."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="For the time: step_seconds=2.5."),
    ] = None,
    limit: options.Limit = None,
    allow_unknown: options.AllowUnknown = False,
    graph: options.GraphNumber = None,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:  # fmt: skip
    """Devices or layers came or went: what changes, and what has to move?

    Without an option: the smallest losses that peers cannot repair. Exit status: 0 all survives;
    1 slices are lost, MindSpore would refuse the new plan, or a part is unknown; 2 there is no way
    on.
    """
    _need_numpy()
    from irtool.planning.recovery import CannotRecover, Request, recover
    from irtool.planning.recovery_groups import group_table
    from irtool.render.recovery_view import RecoveryView

    assumptions = _assumptions(assume or (), data_bytes)
    configuration = read_configuration(config)
    load_custom_rules(configuration)
    file = find_begin(path, context.rank, graph)
    resolved = context_of(file, context, configuration)
    begins = _stages(path, file, resolved.context, graph)
    cluster, classes, notes = _groups(path, file.path, resolved.context, graph)
    groups = None
    if cluster is not None:
        groups = group_table(cluster, resolved.context.devices, resolved.context.stages)
    links = _with_servers(machine_of(machine, context), server)
    request = Request(_ranks(lost), to, add_devices, links.node_devices or 8, not scaled)
    later = {
        "new_begin": _begin(plan, resolved.context, graph) if plan else None,
        "grown_begin": _begin(grown, resolved.context, graph) if grown else None,
    }
    try:
        found = recover(
            begins,
            resolved.context,
            request,
            groups,
            **later,
            statements=_statements(cluster, begins),
            assumptions=assumptions,
            machine=links,
        )
    except CannotRecover as error:
        raise Failure(str(error), path) from None
    cache = _cache_text(found, begins, later["new_begin"] or later["grown_begin"])
    view = RecoveryView(found, path, assumptions, classes, cache, limit, notes)
    _write(view, format, Output(output_file))
    refused = found.replanned and found.new.accepted is False
    unknown = bool(found.old.unknown or found.old.missing or found.new.accepted is None)
    return 1 if found.lost or refused or (unknown and not allow_unknown) else 0


command = context_command("recover", _recover)


def _need_numpy() -> None:
    if find_spec("numpy") is None:
        raise Failure("recovery needs numpy", hint="pip install 'irtool[plan]'")


def _with_servers(machine: Machine, size: int | None) -> Machine:
    """The machine with servers of another size, if one was given."""
    if size is None:
        return machine
    inner, *outer = machine.levels
    return replace(machine, levels=(replace(inner, devices=size), *outer))


def _write(view: RecoveryView, format: Format, output: Output) -> None:
    from irtool.render.recovery import recovery_document, recovery_page
    from irtool.render.recovery_json import recovery_object

    if format is Format.json:
        output.write(json_text(recovery_object(view)) + "\n")
    elif format is Format.html:
        output.write(render_page(recovery_page(view)))
    else:
        output.show(recovery_document(view))
    output.close()


# -- reading -------------------------------------------------------------------------------------


def _read(path: str) -> Dump:
    try:
        dump = read_input(InputFile(path))
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    report_problems(dump.problems)
    return dump


def _begin(path: str, context: ParallelContext, graph: int | None) -> StageDumps:
    """A begin dump that an option names; of a run folder those of all stages."""
    return _stages(path, find_begin(path, None, graph), context, graph)


def _stages(path: str, file: InputFile, context: ParallelContext, graph: int | None) -> StageDumps:
    """The begin dumps by pipeline stage: each stage's first rank that left one."""
    found = {context.stage: file.path}
    if os.path.isdir(path) and context.stages > 1:
        found.clear()
        for rank, compilation in sorted(load_run(path).across_ranks(graph).items()):
            begin = compilation.file(BEGIN)
            if begin is not None and rank < context.devices:
                found.setdefault(rank // context.stage_size, begin.path)
    return {stage: _read(each) for stage, each in found.items()}


def _groups(
    path: str, begin: str, context: ParallelContext, graph: int | None
) -> tuple[Cluster | None, list[tuple[int, ...]], list[str]]:
    """What the ranks communicate, ranks with equal graphs, and what is not known of them."""
    folder = path if os.path.isdir(path) else os.path.dirname(begin) or "."
    try:
        cluster = read_cluster(Asked([folder], None, graph, context.devices)).cluster
    except Failure:
        cluster = None
    if cluster is None or cluster.partial:
        return None, [], ["no validate dump is there: groups are those that check predicts"]
    missing = context.devices - len(cluster.ranks)
    notes: list[str] = []
    if missing > 0:
        notes.append(f"{missing} ranks left no dump: their groups are those of others, shifted")
    return cluster, [tuple(ranks) for ranks in cluster.classes], notes


def _statements(cluster: Cluster | None, begins: StageDumps) -> int:
    """Of the largest graph that one process compiles."""
    all_dumps = list(begins.values())
    if cluster is not None:
        all_dumps = [one.program.dump for one in cluster.ranks.values()]
    counted = {id(dump): sum(len(graph.nodes) for graph in dump.graphs) for dump in all_dumps}
    return max(counted.values(), default=0)


def _cache_text(found: Recovery, begins: StageDumps, given: StageDumps | None) -> str:
    """Whether MindSpore may load a compiled graph: it hashes Python files only."""
    if given is not None and found.target == found.context.devices:
        prints = Fingerprints()
        same = begins.keys() == given.keys() and all(
            prints.of(dumps(begin), 0) == prints.of(dumps(given[stage]), 0)
            for stage, begin in begins.items()
        )
    else:
        same = not found.replanned
    if same:
        valid = "still valid: the graph is the same"
        if found.request.lost:
            valid += "; a new device that plays a lost rank has none"
        return valid
    return "stale, though MindSpore would load it (it hashes Python files only): remove it"


# -- options -------------------------------------------------------------------------------------


def _ranks(text: str | None) -> tuple[int, ...]:
    found: set[int] = set()
    for part in (text or "").split(","):
        if not part.strip():
            continue
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise Failure(f"{part.strip()} is no rank", "--lost", hint="--lost 3,5,8-15")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > 1_000_000:
            raise Failure(f"{part.strip()} are too many ranks", "--lost")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _assumptions(given: list[str] | tuple[str, ...], data: str | None) -> Assumptions:
    known = {field.name: field.default for field in fields(Assumptions)}
    values: dict[str, float] = {}
    for text in given:
        name, equals, number = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known or not equals:
            raise Failure(
                f"{text} is no assumption", "--assume", hint=f"there are: {', '.join(known)}"
            )
        try:
            values[name] = float(number)
        except ValueError:
            raise Failure(
                f"{number} is no number", "--assume", hint="--assume step_seconds=2.5"
            ) from None
        if values[name] < 0 or (name == "storage_bandwidth" and values[name] == 0):
            raise Failure(f"{name} must be more than 0", "--assume")
    if data is not None:
        match = _SIZE.fullmatch(data.strip())
        if match is None:
            raise Failure(f"{data} is no size", "--data-bytes", hint="--data-bytes 20GiB")
        values["data_bytes"] = float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")
    whole = {
        name: int(value) if name in ("checkpoint_steps", "data_bytes") else value
        for name, value in values.items()
    }
    return replace(Assumptions(), **whole)  # pyright: ignore[reportArgumentType]  # names were checked
