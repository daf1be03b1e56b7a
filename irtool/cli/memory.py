"""``irtool memory``: what a device holds, when it holds most, and what would make that less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated

from irtool.cli import options
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.configuration import Configuration, load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.machines import named_machine
from irtool.cli.memory_inputs import (
    Layout,
    RankDump,
    is_built,
    layout_of,
    placed,
    read_ranks,
    size_of,
    sizes_of,
    target_of,
    with_sizes,
)
from irtool.cli.output import Output
from irtool.cli.parameters import Option
from irtool.cluster.machine import Machine, default_machine
from irtool.cluster.memory import VALIDATE_ERROR, MemoryOptions, memory
from irtool.cluster.memory_plan import MemoryPlan, memory_plan
from irtool.cluster.recorded_order import recorded_launches
from irtool.ir.dump import Dump
from irtool.ir.finding import Severity
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
        Option(metavar="SIZE", help="Does it fit? 60GiB of a device; exit 1 if not."),
    ] = None,
    bind: options.Bind = None,
    order: Annotated[
        Order | None,
        Option(
            help="bfs is MindSpore's default; dump is the printed order.",
            show_default="as recorded, else bfs",
            group=COUNTED,
        ),
    ] = None,
    rounding: Annotated[
        Rounding,
        Option(help="Of tensors: by the memory pool, by Somas, or not at all.", group=COUNTED),
    ] = Rounding.pool,
    views: Annotated[
        bool,
        Option(
            "--views",
            help="Transpose, Split and slices are views, not copies.",
            group=COUNTED,
        ),
    ] = False,
    hccl_buffer: Annotated[
        str,
        Option(metavar="SIZE", help="Of one communicator (HCCL_BUFFSIZE).", group=COUNTED),
    ] = "200MiB",
    input_copies: Annotated[
        int,
        Option(
            least=1,
            most=1000,
            metavar="N",
            help="Batches a device holds: 2 with dataset sink.",
            group=COUNTED,
        ),
    ] = 1,
    machine: options.MachineName = None,
    layers: Annotated[bool, Option("--layers", help="What stays, layer by layer.")] = False,
    servers: Annotated[
        bool, Option("--servers", help="What parameter server mode would move.")
    ] = False,
    rows: options.Rows = None,
    graph: options.GraphNumber = None,
    allow_unknown: options.AllowUnknown = False,
    fail_on: FailOn = FailLevel.info,
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
    asked = MemoryQuestion(
        paths, context, configuration, graph, machine, sizes_of(bind or []), most, counting,
        order is None, allow_unknown, MemoryShown(layers, servers, rows), fail_on,
    )  # fmt: skip
    return tell(memory_answered(asked), Output(output_file), format, assumptions)


command = context_command("memory", _memory)


@dataclass(frozen=True, slots=True)
class MemoryShown:
    """What of an answer people see: layers, parameter servers, how many rows."""

    layers: bool = False
    servers: bool = False
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """Whose memory is to be counted, and how.

    Attributes:
        sources: dumps, their paths, or a run folder.
        context: what is said of the run.
        configuration: ``irtool.toml``.
        graph: the number of a run's compilation.
        machine: a built-in machine's name, or a file; None: that of the context's target.
        sizes: of unknown dimensions, by name.
        limit: bytes of a device.
        counting: rounding, order of launches, buffers.
        by_record: whether an order that the run recorded goes before that of ``counting``.
        allow_unknown: whether parts that are unknown are nothing to see.
        shown: what people see of it.
        fail_on: from which severity on the status is 1.
    """

    sources: Sequence[str | Dump]
    context: ContextArguments
    configuration: Configuration
    graph: int | None = None
    machine: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    limit: int | None = None
    counting: MemoryOptions = field(default_factory=MemoryOptions)
    by_record: bool = True
    allow_unknown: bool = False
    shown: MemoryShown = field(default_factory=MemoryShown)
    fail_on: FailLevel = FailLevel.info


def memory_answered(asked: MemoryQuestion) -> Answered[MemoryView]:
    """What devices hold.

    Raises:
        Failure: nothing can be read, or a value makes no sense.
    """
    ranks = read_ranks(asked.sources, asked.context.rank, asked.graph)
    ranks = [with_sizes(one, asked.sizes) for one in ranks]
    named = named_machine(asked.machine)
    layout = layout_of(ranks, asked.context, asked.configuration, named)
    ranks = placed(ranks, layout)
    model = named or default_machine(target_of(layout.context))
    counted, plan = _worst_first(asked, layout, model, ranks)
    shown = asked.shown
    view = MemoryView(counted, asked.limit, shown.layers, shown.servers, shown.rows)
    wrong = any(one.dump.problems for one in ranks) or layout.context.contradictions
    return Answered(
        view,
        lambda: memory_answer(view, plan, layout.context),
        lambda is_page: memory_report(view, is_page),
        layout.context,
        status=fails(
            asked.fail_on,
            "warning" if wrong else None,
            those=_severities(view, asked.allow_unknown),
        ),
    )


def _worst_first(
    asked: MemoryQuestion, layout: Layout, machine: Machine, dumps: Sequence[RankDump]
) -> tuple[tuple[RankMemory, ...], MemoryPlan]:
    """Each class of ranks, the one that needs most first; options are tried on that one only."""
    counted = [_counted(asked, layout, one) for one in dumps]
    counted.sort(key=lambda one: (-one.memory.device_bytes.low, one.rank or 0))
    worst = counted[0]
    plan = memory_plan(worst.memory, machine, asked.limit, layout.stages or 1)
    return (replace(worst, plan=plan), *counted[1:]), plan


def _counted(asked: MemoryQuestion, layout: Layout, one: RankDump) -> RankMemory:
    """What a rank holds: of what the backend built where that is there, as it was launched."""
    dump = one.built or one.dump
    order = one.order
    if order is None or not asked.by_record:
        dump = one.dump
        held, shown = memory(dump, asked.counting), None
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
        held = memory(dump, asked.counting, whole, launched or None)
        shown = LaunchOrder(source, path, why)
    if not is_built(dump.path) and (shown is None or shown.source == "validate"):
        held = replace(held, order_error=int(held.dynamic_bytes * VALIDATE_ERROR))
    stage = layout.stage_of(one.rank)
    return RankMemory(one.rank, one.ranks, stage, held, None, shown, one.recorded)


def _severities(view: MemoryView, allow_unknown: bool) -> list[Severity]:
    """How grave what was found is: an error where it does not fit, an info where nobody knows."""
    severities: list[Severity] = []
    if view.limit is not None:
        fits = [one.memory.fits(view.limit) for one in view.ranks]
        if False in fits:
            severities.append("error")
        if None in fits and not allow_unknown:
            severities.append("info")
    if any(not one.memory.is_complete for one in view.ranks) and not allow_unknown:
        severities.append("info")
    return severities
