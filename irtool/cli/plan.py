"""``irtool plan``: which strategies would be better, and how far from the best?"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from irtool.cli import options
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.begin import context_of, find_begin
from irtool.cli.configuration import Configuration, load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command, parallel_of
from irtool.cli.cost import read_begin
from irtool.cli.machines import named_machine
from irtool.cli.memory_inputs import size_of, sized, sizes_of
from irtool.cli.output import Output
from irtool.cli.plan_asked import horizon_of, nodes_like, pins_of, ranks_of, twins
from irtool.cli.plan_forms import JOB, Asked, JobOptions, plan_itself
from irtool.cli.plan_options import not_weighed, refuse_ignored, way_of
from irtool.cli.plan_request import Request, made
from irtool.cli.report import Failure, note
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.report.text import escape_lines
from irtool.sharding.network.context import ParallelContext


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    html = "html"
    ir = "ir"
    strategy = "strategy"
    shard = "shard"
    msjob = "msjob"


PLAN_ITSELF = frozenset({"ir", "strategy", "shard", "msjob"})
"""Formats that hold the plan, and nothing about it."""


class Keys(str, Enum):
    """Which of MindSpore's strategy files."""

    operators = "operators"
    parameters = "parameters"


class Decide(str, Enum):
    """Who decides."""

    auto = "auto"


class Algorithm(str, Enum):
    """How to search."""

    exact = "exact"
    recursive = "recursive"
    propagation = "propagation"


DECIDED = "Decided beside strategies"
HELD = "What a plan is held to"
AFTER = "After failures"
FILES = "Files of the plan"
"""Groups of options."""


def _plan(
    path: Annotated[
        str,
        typer.Argument(
            metavar="BEGIN", help="A begin dump, a run folder, or -.", show_default=False
        ),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="ir, strategy, shard, msjob: the plan itself.")
    ] = Format.table,
    algorithm: Annotated[Algorithm, typer.Option(help="How to search.")] = Algorithm.exact,
    to: Annotated[int | None, typer.Option(min=1, metavar="N", help="Devices to plan for.")] = None,
    machine: options.MachineName = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="At most so much a device: 30GiB.", rich_help_panel=HELD),
    ] = None,
    to_stages: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="S",
            help="Cut the network into so many pipeline stages.",
            rich_help_panel=DECIDED,
        ),
    ] = None,
    micro_batches: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="M",
            show_default="4 a stage",
            help="Of a step, in stages.",
            rich_help_panel=DECIDED,
        ),
    ] = None,
    optimizer_parallel: Annotated[
        Decide | None,
        typer.Option(
            help="auto: which weights to cut over their replicas.",
            show_default="as the context says",
            rich_help_panel=DECIDED,
        ),
    ] = None,
    recompute: Annotated[
        Decide | None,
        typer.Option(
            help="auto: which operators to run again, so as not to keep results.",
            show_default="none",
            rich_help_panel=DECIDED,
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUERY=STRATEGY",
            help="Operators that must have a strategy.",
            rich_help_panel=HELD,
        ),
    ] = None,
    keep_configured: Annotated[
        bool,
        typer.Option(
            "--keep-configured", help="What users sharded stays as it is.", rich_help_panel=HELD
        ),
    ] = False,
    region: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY", help="Plan these operators, freeze all others.", rich_help_panel=HELD
        ),
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(
            metavar="OLD",
            help="A begin dump whose plan stays where nothing changed.",
            rich_help_panel=HELD,
        ),
    ] = None,
    bind: options.Bind = None,
    lost: Annotated[
        str | None,
        typer.Option(
            metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.", rich_help_panel=AFTER
        ),
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="STEPS",
            show_default="10000",
            help="Steps that pay off what is moved and compiled for other devices.",
            rich_help_panel=AFTER,
        ),
    ] = None,
    keys: Annotated[
        Keys | None,
        typer.Option(
            help="With --format strategy: which of MindSpore's files.",
            show_default="operators",
            rich_help_panel=FILES,
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="SAVED.json",
            help="A strategy file of MindSpore's to check keys by.",
            rich_help_panel=FILES,
        ),
    ] = None,
    row_coefficient: Annotated[
        float | None,
        typer.Option(
            "--matmul-mem-coef",
            min=0,
            metavar="X",
            help="Of recursive: MindSpore's rp_matmul_mem_coef.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --format msjob: what the job is called.",
            show_default=JOB.name,
            rich_help_panel=FILES,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE",
            help="With --format msjob: the image of all pods.",
            show_default=JOB.image,
            rich_help_panel=FILES,
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="SHELL",
            help="With --format msjob: what every role runs.",
            show_default=JOB.command,
            rich_help_panel=FILES,
        ),
    ] = None,
    servers: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            show_default="1 if parameters live on servers, else 0",
            help="With --format msjob: parameter servers.",
            rich_help_panel=FILES,
        ),
    ] = None,
    limit: options.Limit = None,
    assumptions: options.Assumptions = False,
    graph: options.GraphNumber = None,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:
    """Which strategy would be better, and how far from the best can it be?

    Exit status: 0 the dump's strategies are as good; 1 there is something better, the dump has no
    complete plan, or could not be read whole; 2 there is no plan. With --format ir, strategy, shard
    and msjob 1 says only that it could not be read whole.
    """
    from irtool.planning.plans.plan import CannotPlan
    from irtool.planning.recovery.elastic import HORIZON
    from irtool.report.planning.answer import plan_answer
    from irtool.report.planning.report import plan_report
    from irtool.report.planning.view import PlanView, assumed

    configuration = read_configuration(config)
    load_custom_rules(configuration)
    file = find_begin(path, context.rank, graph)
    read = read_begin(file)
    dump = sized(read, file.path, sizes_of(bind or ()))
    model = named_machine(machine)
    known = context_of(file, read, context, configuration, model)
    resolved = parallel_of(known, file.path)
    pinned, outs = pins_of(dump, pin or [])
    given: dict[str, object] = {
        "--to": to, "--memory": memory, "--to-stages": to_stages, "--micro-batches": micro_batches,
        "--optimizer-parallel": optimizer_parallel, "--recompute": recompute, "--pin": pinned,
        "--pin … -> …": outs, "--keep-configured": keep_configured, "--region": region,
        "--onto": onto, "--lost": lost, "--horizon": horizon, "--keys": keys and keys.value,
        "--names": names, "--matmul-mem-coef": row_coefficient, "--name": name, "--image": image,
        "--command": command, "--servers": servers, "--limit": limit,
    }  # fmt: skip
    way = way_of(algorithm.value, given, dump, resolved)
    refuse_ignored(way, format.value, given)
    if said := not_weighed(way, given, dump, resolved):
        note(said)
    wanted = nodes_like(dump, "--region", region)
    limits = None if memory is None else size_of(memory, "--memory")
    request = Request(
        way, dump, resolved, model or default_machine(resolved.target), to, limits, pinned, outs,
        keep_configured, wanted, _old(onto, context, configuration),
        optimizer_parallel is not None, recompute is not None, ranks_of(lost, "--lost"),
        horizon_of(horizon, HORIZON), to_stages or 1, micro_batches, row_coefficient,
    )  # fmt: skip
    try:
        found, elastic, staged = made(request)
    except CannotPlan as error:
        raise Failure(str(error), path) from None
    for text in (*found.notes, *part_of(dump, resolved)):
        note(text)
    region_nodes = twins(dump, found.dump, wanted)
    job = JobOptions(name or JOB.name, image or JOB.image, command or JOB.command, servers)
    asked = Asked((keys or Keys.operators).value, names, region_nodes, job, staged, read)
    output = Output(output_file)
    view = PlanView(found, file.path, limit, elastic, staged)
    if format.value in PLAN_ITSELF:
        # A dump keeps the bytes that it came with; in other forms names are but comments.
        is_dump = format is Format.ir
        for piece in plan_itself(found, format.value, asked):
            output.write_dump(piece) if is_dump else output.write(escape_lines(piece))
        output.close()
        return 1 if dump.problems else 0
    write_answer(
        output,
        AnswerForm(format.value),
        answer=lambda: plan_answer(view, known),
        report=lambda is_page: plan_report(view, found.dump if is_page else None),
        context=known,
        assumptions=assumed(view),
        all_assumptions=assumptions,
    )
    if dump.problems:
        return 1
    if staged is not None:
        return 1 if staged.is_better else 0
    tight = limits is not None and found.before is not None
    if tight and found.before is not None and found.before.memory.total > (limits or 0):
        return 1
    better = found.before is None or found.after.seconds < found.before.seconds * (1 - 1e-9)
    return 1 if better else 0


command = context_command("plan", _plan)


def part_of(dump: Dump, context: ParallelContext) -> list[str]:
    """What the plan is not of."""
    found: list[str] = []
    if dump.problems:
        found.append("the dump could not be read whole: this is a plan of what was read")
    if context.stages > 1:
        found.append(
            f"this is a plan of stage {context.stage} of {context.stages}: what the others do, and "
            "what they would have to move, is not in it"
        )
    return found


def _old(
    path: str | None, context: ContextArguments, configuration: Configuration
) -> tuple[Dump, ParallelContext] | None:
    """The dump that ``--onto`` names, with its context."""
    if path is None:
        return None
    file = find_begin(path, context.rank, None)
    dump = read_begin(file)
    known = context_of(file, dump, context, configuration)
    return dump, parallel_of(known, file.path)
