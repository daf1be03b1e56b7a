"""``irtool memory``: what a device holds, when it holds most, and what would make that less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated

import typer

from irtool.cli import options
from irtool.cli.answering import DrawnForm, write_answer
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.machines import named_machine
from irtool.cli.memory_inputs import (
    Layout,
    RankDump,
    layout_of,
    placed,
    read_ranks,
    size_of,
    sizes_of,
    target_of,
    with_sizes,
)
from irtool.cli.output import Output
from irtool.cluster.machine import Machine, default_machine
from irtool.cluster.memory import MemoryOptions, memory
from irtool.cluster.memory_plan import MemoryPlan, memory_plan
from irtool.cluster.recorded_order import recorded_launches
from irtool.report.memory import (
    LaunchOrder,
    LaunchSourceName,
    MemoryView,
    RankMemory,
    memory_answer,
    memory_report,
)


class Order(str, Enum):
    """Launch orders."""

    bfs = "bfs"
    dfs = "dfs"
    dump = "dump"


class Rounding(str, Enum):
    """How sizes are rounded."""

    pool = "pool"
    somas = "somas"
    none = "none"


COUNTED = "How it is counted"
"""A group of options."""


def _memory(
    paths: options.Paths,
    format: options.DrawnFormat = DrawnForm.table,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Does it fit? 60GiB of a device; exit 1 if not."),
    ] = None,
    bind: options.Bind = None,
    order: Annotated[
        Order | None,
        typer.Option(
            help="bfs is MindSpore's default; dump is the printed order.",
            show_default="as recorded, else bfs",
            rich_help_panel=COUNTED,
        ),
    ] = None,
    rounding: Annotated[
        Rounding,
        typer.Option(
            help="Of tensors: by the memory pool, by Somas, or not at all.", rich_help_panel=COUNTED
        ),
    ] = Rounding.pool,
    views: Annotated[
        bool,
        typer.Option(
            "--views",
            help="Transpose, Split and slices are views, not copies.",
            rich_help_panel=COUNTED,
        ),
    ] = False,
    hccl_buffer: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Of one communicator (HCCL_BUFFSIZE).", rich_help_panel=COUNTED
        ),
    ] = "200MiB",
    input_copies: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            metavar="N",
            help="Batches a device holds: 2 with dataset sink.",
            rich_help_panel=COUNTED,
        ),
    ] = 1,
    machine: options.MachineName = None,
    layers: Annotated[bool, typer.Option("--layers", help="What stays, layer by layer.")] = False,
    servers: Annotated[
        bool, typer.Option("--servers", help="What parameter server mode would move.")
    ] = False,
    rows: options.Rows = None,
    graph: options.GraphNumber = None,
    allow_unknown: options.AllowUnknown = False,
    assumptions: options.Assumptions = False,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:
    """What does a device hold, when most, and what would make that less?

    Reads a validate dump, or a run folder: then one dump of each class of equal ranks, the worst
    rank first. Exit status: 0 fine; 1 it does not fit, or a part is unknown.
    """
    configuration = read_configuration(config)
    load_custom_rules(configuration)
    most = None if limit is None else size_of(limit, "--limit")
    counting = MemoryOptions(
        (order or Order.bfs).value,
        rounding.value,
        views,
        size_of(hccl_buffer, "--hccl-buffer"),
        input_copies,
    )
    sizes = sizes_of(bind or [])
    found = [with_sizes(one, sizes) for one in read_ranks(paths, context.rank, graph)]
    named = named_machine(machine)
    layout = layout_of(found, context, configuration, named)
    found = placed(found, layout)
    model = named or default_machine(target_of(layout.context))
    asked = _Asked(counting, most, model, layout, order is None)
    ranks, plan = _worst_first(asked, found)
    view = MemoryView(ranks, most, layers, servers, rows)
    write_answer(
        Output(output_file),
        format,
        answer=lambda: memory_answer(view, plan, layout.context),
        report=lambda is_page: memory_report(view, is_page),
        context=layout.context,
        all_assumptions=assumptions,
    )
    wrong = any(one.dump.problems for one in found) or layout.context.contradictions
    return 1 if wrong else _status(view, allow_unknown)


command = context_command("memory", _memory)


@dataclass(frozen=True, slots=True)
class _Asked:
    """How to count, and against what."""

    counting: MemoryOptions
    limit: int | None
    machine: Machine
    layout: Layout
    by_record: bool


def _worst_first(
    asked: _Asked, found: Sequence[RankDump]
) -> tuple[tuple[RankMemory, ...], MemoryPlan]:
    """Each class of ranks, the one that needs most first; options are tried on that one only."""
    counted = [_counted(asked, one) for one in found]
    counted.sort(key=lambda one: (-one.memory.device_bytes.low, one.rank or 0))
    worst = counted[0]
    plan = memory_plan(worst.memory, asked.machine, asked.limit, asked.layout.stages or 1)
    return (replace(worst, plan=plan), *counted[1:]), plan


def _counted(asked: _Asked, one: RankDump) -> RankMemory:
    """What a rank holds: of what the backend built where that is there, as it was launched."""
    dump = one.built or one.dump
    order = one.order
    if order is None or not asked.by_record:
        dump = one.dump
        found, shown = memory(dump, asked.counting), None
    else:
        whole = dump.whole()
        launched = recorded_launches(whole, order.names) if order.names else ()
        why = order.why
        if isinstance(launched, str):
            launched, why = (), f"{order.path}: {launched}"
        source: LaunchSourceName = "recorded" if launched else order.source
        if source == "recorded" and not launched:
            source = "validate" if one.built is None else "graph_build"
        path = order.path if launched else dump.path
        found = memory(dump, asked.counting, whole, launched or None)
        shown = LaunchOrder(source, path, why)
    stage = asked.layout.stage_of(one.rank)
    return RankMemory(one.rank, one.ranks, stage, found, None, shown)


def _status(view: MemoryView, allow_unknown: bool) -> int:
    if view.limit is not None:
        fits = [one.memory.fits(view.limit) for one in view.ranks]
        if False in fits:
            return 1
        if None in fits and not allow_unknown:
            return 1
    incomplete = any(not one.memory.is_complete for one in view.ranks)
    return 1 if incomplete and not allow_unknown else 0
