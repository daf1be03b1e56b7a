"""``irtool plan``: which strategies would be better, and how far from the best?"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from irtool.cli import options
from irtool.cli.begin import context_of, find_begin
from irtool.cli.configuration import Configuration, load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.cost import read_begin
from irtool.cli.memory_inputs import machine_of, size_of
from irtool.cli.output import Output
from irtool.cli.plan_algorithm import exact_only
from irtool.cli.plan_asked import horizon_of, nodes_like, pins_of, ranks_of, twins
from irtool.cli.plan_forms import Asked, JobOptions, plan_itself
from irtool.cli.report import Failure, note
from irtool.ir.dump import Dump
from irtool.render.json import json_text
from irtool.render.page.write import render_page
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.elastic import ElasticPlan
    from irtool.planning.stages import StagedPlan


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    html = "html"
    ir = "ir"
    strategy = "strategy"
    shard = "shard"
    msjob = "msjob"


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


def _plan(
    path: Annotated[
        str,
        typer.Argument(metavar="BEGIN", help="A begin dump, a run folder, or -.",
                       show_default=False),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="ir, strategy, shard, msjob: the plan itself.")
    ] = Format.table,
    algorithm: Annotated[Algorithm, typer.Option(help="How to search.")] = Algorithm.exact,
    to: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Devices to plan for.")
    ] = None,
    machine: options.MachineName = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="At most so much a device: 30GiB.")
    ] = None,
    to_stages: Annotated[
        int | None,
        typer.Option(min=1, metavar="S", help="Cut the network into so many pipeline stages."),
    ] = None,
    micro_batches: Annotated[
        int | None,
        typer.Option(min=1, metavar="M", show_default="4 a stage", help="Of a step, in stages."),
    ] = None,
    optimizer_parallel: Annotated[
        Decide | None,
        typer.Option(help="auto: which weights to cut over their replicas.",
                     show_default="as the context says"),
    ] = None,
    recompute: Annotated[
        Decide | None,
        typer.Option(help="auto: which operators to run again, so as not to keep results.",
                     show_default="none"),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="QUERY=STRATEGY", help="Operators that must have a strategy."),
    ] = None,
    keep_configured: Annotated[
        bool, typer.Option("--keep-configured", help="What users sharded stays as it is.")
    ] = False,
    region: Annotated[
        str | None, typer.Option(metavar="QUERY", help="Plan these operators, freeze all others.")
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(metavar="OLD", help="A begin dump whose plan stays where nothing changed."),
    ] = None,
    lost: Annotated[
        str | None, typer.Option(metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.")
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(metavar="STEPS", show_default="10000",
                     help="Steps that pay off what is moved and compiled for other devices."),
    ] = None,
    keys: Annotated[
        Keys, typer.Option(help="With --format strategy: which of MindSpore's files.")
    ] = Keys.operators,
    names: Annotated[
        str | None,
        typer.Option(metavar="SAVED.json", help="A strategy file of MindSpore's to check keys by."),
    ] = None,
    row_coefficient: Annotated[
        float | None,
        typer.Option("--matmul-mem-coef", min=0, metavar="X",
                     help="Of recursive: MindSpore's rp_matmul_mem_coef."),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="With --format msjob: what the job is called.")
    ] = "mindspore-training",
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="With --format msjob: the image of all pods.")
    ] = "mindspore-image-name:tag",
    command: Annotated[
        str, typer.Option(metavar="SHELL", help="With --format msjob: what every role runs.")
    ] = "python train.py",
    servers: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", show_default="1 if parameters live on servers, else 0",
                     help="With --format msjob: parameter servers."),
    ] = None,
    limit: options.Limit = None,
    graph: options.GraphNumber = None,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:  # fmt: skip
    """Which strategy would be better, and how far from the best can it be?

    Exit status: 0 the dump's strategies are as good; 1 there is something better, or the dump has
    no complete plan; 2 there is no plan. With --format ir, strategy, shard and msjob 0 or 2.
    """
    if algorithm is not Algorithm.exact:
        exact_only(
            algorithm.value, memory=memory, region=region, onto=onto, lost=lost,
            to_stages=to_stages, optimizer_parallel=optimizer_parallel, recompute=recompute,
        )  # fmt: skip
    from irtool.planning.elastic import HORIZON, replan
    from irtool.planning.imitation import Settings, imitate
    from irtool.planning.plan import CannotPlan, plan
    from irtool.planning.stages import staged_plan
    from irtool.render.plan import PlanView, plan_document, plan_object

    configuration = read_configuration(config)
    load_custom_rules(configuration)
    file = find_begin(path, context.rank, graph)
    dump = read_begin(file)
    resolved = context_of(file, context, configuration)
    chosen = machine_of(machine, context)
    pinned, outs = pins_of(dump, pin or [])
    wanted = nodes_like(dump, "--region", region)
    if names is not None and format is not Format.strategy:
        raise Failure("goes with --format strategy alone", "--names")
    limits = None if memory is None else size_of(memory, "--memory")
    ranks = ranks_of(lost, "--lost")
    steps = horizon_of(horizon, HORIZON)
    elastic: ElasticPlan | None = None
    staged: StagedPlan | None = None
    try:
        if algorithm is not Algorithm.exact:
            found = imitate(
                dump, resolved.context, chosen, algorithm.value, devices=to, pinned=pinned,
                keep_configured=keep_configured, settings=Settings.given(row_coefficient),
            )  # fmt: skip
        elif to_stages is not None:
            _alone(
                "--to-stages",
                [lost, wanted, onto, keep_configured or None, pinned or None, optimizer_parallel,
                 recompute],
            )  # fmt: skip
            staged = staged_plan(
                dump, resolved.context, chosen, to_stages, devices=to,
                micro_batches=micro_batches, memory_limit=limits,
            )  # fmt: skip
            found = staged.inner
        elif _is_elastic(
            dump,
            resolved.context,
            ranks,
            to,
            [wanted, onto, keep_configured or None, optimizer_parallel, recompute],
        ):
            given = {node: (rows, outs.get(node)) for node, rows in pinned.items()}
            elastic = replan(
                dump, resolved.context, chosen, lost=ranks, to=to, horizon=steps,
                memory_limit=limits, pinned=given,
            )  # fmt: skip
            found = next(iter(elastic.plans.values()))
        else:
            found = plan(
                dump,
                resolved.context,
                chosen,
                devices=to,
                pinned=pinned,
                pinned_outputs=outs,
                keep_configured=keep_configured,
                region=wanted,
                onto=_old(onto, context, configuration),
                memory_limit=limits,
                decide_optimizer=optimizer_parallel is not None,
                decide_recompute=recompute is not None,
            )
    except CannotPlan as error:
        raise Failure(str(error), path) from None
    for text in found.notes:
        note(text)
    region_nodes = twins(dump, found.dump, wanted)
    job = JobOptions(name, image, command, servers)
    asked = Asked(keys.value, names, region_nodes, job, staged)
    output = Output(output_file)
    view = PlanView(found, file.path, limit, elastic, staged)
    if format is Format.json:
        output.write(json_text(plan_object(view)) + "\n")
    elif format is Format.html:
        from irtool.render.plan_page import plan_page

        output.write(render_page(plan_page(view)))
    elif format is Format.table:
        output.show(plan_document(view))
    else:
        for piece in plan_itself(found, format.value, asked):
            output.write(piece)
        output.close()
        return 0
    output.close()
    tight = limits is not None and found.before is not None
    if tight and found.before is not None and found.before.memory.total > (limits or 0):
        return 1
    better = found.before is None or found.after.seconds < found.before.seconds * (1 - 1e-9)
    return 1 if better else 0


command = context_command("plan", _plan)


def _alone(option: str, others: list[object]) -> None:
    """Refuse an option together with others."""
    if any(other is not None for other in others):
        raise Failure(
            "goes with none of --lost, --region, --onto, --keep-configured, --pin, "
            "--optimizer-parallel, --recompute",
            option,
        )


def _is_elastic(
    dump: Dump,
    context: ParallelContext,
    lost: tuple[int, ...],
    to: int | None,
    others: list[object],
) -> bool:
    """Whether a run goes on with other devices, so that what it holds counts."""
    if lost and any(other is not None for other in others):
        raise Failure(
            "goes with no --region, --onto, --keep-configured, --optimizer-parallel, --recompute",
            "--lost",
        )
    if lost:
        return True
    if to is None or to == context.devices or any(other is not None for other in others):
        return False
    return context.is_parallel and any(node.in_strategy is not None for node in dump.nodes())


def _old(
    path: str | None, context: ContextArguments, configuration: Configuration
) -> tuple[Dump, ParallelContext] | None:
    """The dump that ``--onto`` names, with its context."""
    if path is None:
        return None
    file = find_begin(path, context.rank, None)
    return read_begin(file), context_of(file, context, configuration).context
