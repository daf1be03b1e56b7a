"""``irtool memory``: what a device holds, when it holds most, and what would make that less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Annotated, TypeAlias

from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.memory import (
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
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.parameters import Option
from irtool.cli.question import Question, RunOptions, question_of
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import VALIDATE_ERROR, MemoryCounting, memory
from irtool.cluster.recorded_order import recorded_launches
from irtool.cluster.what_if.plan import memory_plan
from irtool.ir.dataclass import dataclass
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
    """Orders of launch that memory can be counted in."""

    bfs = "bfs"
    dfs = "dfs"
    dump = "dump"


class Rounding(str, Enum):
    """How sizes of blocks are rounded: as the memory pool does, as Somas does, or not."""

    pool = "pool"
    somas = "somas"
    none = "none"


COUNTED = "How it is counted"
"""A group of options."""


@dataclass(frozen=True, slots=True)
class MemoryOptions(RunOptions):
    """What the command line asks of memory, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    limit: Annotated[
        str | None,
        Option(metavar="SIZE", help="Does it fit? 60GiB of a device; exit 1 if not."),
    ] = None
    bind: shared.Bind = None
    order: Annotated[
        Order | None,
        Option(
            help="bfs is MindSpore's default; dump is the printed order.",
            show_default="as recorded, else bfs",
            group=COUNTED,
        ),
    ] = None
    rounding: Annotated[
        Rounding,
        Option(help="Of tensors: by the memory pool, by Somas, or not at all.", group=COUNTED),
    ] = Rounding.pool
    views: Annotated[
        bool,
        Option(
            "--views",
            help="Transpose, Split and slices are views, not copies.",
            group=COUNTED,
        ),
    ] = False
    hccl_buffer: Annotated[
        str,
        Option(metavar="SIZE", help="Of one communicator (HCCL_BUFFSIZE).", group=COUNTED),
    ] = "200MiB"
    input_copies: Annotated[
        int,
        Option(
            least=1,
            most=1000,
            metavar="N",
            help="Batches a device holds: 2 with dataset sink.",
            group=COUNTED,
        ),
    ] = 1
    machine: shared.MachineName = None
    layers: Annotated[bool, Option("--layers", help="What stays, layer by layer.")] = False
    servers: Annotated[bool, Option("--servers", help="What parameter server mode would move.")] = (
        False
    )
    rows: shared.Rows = None
    allow_unknown: shared.AllowUnknown = False

    @property
    def counting(self) -> MemoryCounting:
        """How memory is counted, by the options.

        Raises:
            Failure: ``--hccl-buffer`` is no size.
        """
        return MemoryCounting(
            (self.order or Order.bfs).value,
            self.rounding.value,
            self.views,
            size_of(self.hccl_buffer, "--hccl-buffer"),
            self.input_copies,
        )

    @property
    def device_bytes(self) -> int | None:
        """Bytes of a device; None where nobody says them.

        Raises:
            Failure: ``--limit`` is no size.
        """
        return None if self.limit is None else size_of(self.limit, "--limit")


MemoryQuestion: TypeAlias = "Question[Sequence[str | Dump], MemoryOptions]"


@with_options(MemoryOptions)
def _memory(
    paths: shared.Paths,
    options: MemoryOptions,
    *,
    context: ContextArguments,
) -> int:
    """What does a device hold, when most, and what would make that less?

    Reads a validate dump, or a run folder: then one dump of each class of equal ranks, the worst
    rank first. Exit status: 0 fine; 1 it does not fit, or a part is unknown.
    """
    asked = question_of(paths, options, context)
    return tell(
        memory_answered(asked), Output(options.output_file), options.format, options.assumptions
    )


command = context_command("memory", _memory)


def memory_answered(asked: MemoryQuestion) -> Answered[MemoryView]:
    """What devices hold, when they hold most, and what would make that less.

    Args:
        asked: about dumps or a run folder; its options say how memory is counted.

    Raises:
        Failure: nothing can be read, or a value makes no sense.
    """
    options = asked.options
    counting, limit, sizes = options.counting, options.device_bytes, sizes_of(options.bind or ())
    ranks = read_ranks(asked.source, asked.context.rank, options.graph)
    ranks = [with_sizes(one, sizes) for one in ranks]
    named = named_machine(options.machine)
    layout = layout_of(ranks, asked.context, asked.configuration, named)
    ranks = placed(ranks, layout)
    model = named or default_machine(target_of(layout.context))
    counted = [_counted(counting, options.order is None, layout, one) for one in ranks]
    counted.sort(key=lambda one: (-one.memory.device_bytes.low, one.rank or 0))
    worst = counted[0]
    # Options are tried on the rank that needs most only.
    parallel = layout.context.parallel
    threshold = {} if parallel is None else {"threshold": parallel.threshold << 10}
    plan = memory_plan(worst.memory, model, limit, layout.stages or 1, **threshold)
    classes = (replace(worst, plan=plan), *counted[1:])
    view = MemoryView(classes, limit, options.layers, options.servers, options.rows)
    wrong = any(one.dump.problems for one in ranks) or layout.context.contradictions
    return Answered(
        view,
        lambda: memory_answer(view, plan, layout.context),
        lambda is_page: memory_report(view, is_page),
        layout.context,
        status=fails(
            options.fail_on,
            "warning" if wrong else None,
            those=_severities(view, options.allow_unknown),
        ),
    )


def _counted(
    counting: MemoryCounting, by_record: bool, layout: Layout, one: RankDump
) -> RankMemory:
    """What a rank holds: of what the backend built where that is there, as it was launched."""
    dump = one.built or one.dump
    order = one.order
    if order is None or not by_record:
        dump = one.dump
        held, shown = memory(dump, counting), None
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
        held = memory(dump, counting, whole, launched or None)
        shown = LaunchOrder(source, path, why or None)
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
