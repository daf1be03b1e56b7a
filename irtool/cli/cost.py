"""``irtool cost``: where does a step go, and what would make it shorter?"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from irtool.cli import options
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.begin import context_of, find_begin
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command, parallel_of
from irtool.cli.inputs import read_statements
from irtool.cli.machines import named_machine
from irtool.cli.memory_inputs import sized, sizes_of
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.cluster.context.weigh import weighed
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.sharding.check import check

if TYPE_CHECKING:
    from irtool.cluster.machine import Machine
    from irtool.report.cost import CostView
    from irtool.sharding.network.context import ParallelContext


def _cost(
    path: Annotated[
        str,
        typer.Argument(metavar="BEGIN", help="A begin dump, a run folder, or -.",
                       show_default=False),
    ],
    format: options.AnswerFormat = AnswerForm.table,
    machine: options.MachineName = None,
    bind: options.Bind = None,
    limit: options.Limit = None,
    graph: options.GraphNumber = None,
    allow_unknown: options.AllowUnknown = False,
    assumptions: options.Assumptions = False,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:  # fmt: skip
    """Where does a step go: arithmetic, communication by cause, redistribution, the optimizer?

    Exit status: 0; 1 MindSpore would refuse the dump's strategies, or a part can't be priced.
    """
    from irtool.planning.cost.structure import structure_of
    from irtool.planning.plans.cost_report import step_cost
    from irtool.report.cost import CostView, cost_answer, cost_report, usual_assumptions

    if limit is not None and format is not AnswerForm.table:
        message = f"goes with --format table, not with {format.value}"
        raise Failure(message, "--limit", hint="--format table")
    configuration = read_configuration(config)
    load_custom_rules(configuration)
    file = find_begin(path, context.rank, graph)
    read = read_begin(file)
    dump = sized(read, file.path, sizes_of(bind or ()))
    named = named_machine(machine)
    known = context_of(file, read, context, configuration, named)
    parallel = parallel_of(known, file.path)
    chosen = named or default_machine(parallel.target)
    report = check(dump, parallel)
    known = weighed(known, report)
    if not report.operators:
        reason = report.findings[0].message if report.findings else "nothing here has a strategy"
        raise Failure(f"nothing can be priced: {reason}", file.path)
    found = step_cost(structure_of(dump, parallel), report, chosen)
    view = CostView(found, report, file.path, limit)
    if parallel.stages > 1 and os.path.isdir(path):
        view, dump = _slowest(path, parallel, chosen, graph, (view, dump))
        found, report = view.cost, view.report
    write_answer(
        Output(output_file),
        format,
        answer=lambda: cost_answer(view, known),
        report=lambda is_page: cost_report(view, dump if is_page else None),
        context=known,
        assumptions=usual_assumptions(view.cost),
        all_assumptions=assumptions,
    )
    incomplete = bool(found.unknown) or report.accepted is None
    refused = report.accepted is False
    return 1 if dump.problems or refused or (incomplete and not allow_unknown) else 0


command = context_command("cost", _cost)


def _slowest(
    path: str,
    context: ParallelContext,
    machine: Machine,
    graph: int | None,
    read: tuple[CostView, Dump],
) -> tuple[CostView, Dump]:
    """The slowest stage of those that left a begin dump, with all of them, and its dump.

    ``read``: what was read first, for a folder with one stage.
    """
    from irtool.cli.recover_inputs import begins_of
    from irtool.planning.cost.structure import structure_of
    from irtool.planning.plans.cost_report import step_cost
    from irtool.report.cost import CostView

    made: list[tuple[float, int, CostView, Dump]] = []
    for stage, dump in begins_of(path, context, graph).items():
        own = replace(context, rank=stage * context.stage_size)
        report = check(dump, own)
        if report.operators:
            cost = step_cost(structure_of(dump, own), report, machine)
            made.append((cost.seconds, stage, CostView(cost, report, path, read[0].limit), dump))
    made.sort(key=lambda each: (-each[0], each[1]))
    if len(made) < 2:
        return read
    stages = tuple((stage, each.cost) for _, stage, each, _ in made)
    return replace(made[0][2], stages=stages), made[0][3]


def read_begin(file: InputFile) -> Dump:
    """A dump with statements in it; its problems go to stderr.

    Raises:
        Failure: it can't be read, or is empty.
    """
    dump = read_statements(file)
    report_problems(dump.problems)
    return dump
