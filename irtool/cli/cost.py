"""``irtool cost``: where does a step go, and what would make it shorter?"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, TypeAlias

from irtool.cli import options as shared
from irtool.cli.answering import Answered, AnswerForm, tell
from irtool.cli.context import ContextArguments, context_command, parallel_of
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.begin import begin_of, context_of
from irtool.cli.inputs.dumps import read_statements
from irtool.cli.inputs.memory import sized, sizes_of
from irtool.cli.inputs.profile import graph_that_ran, has_begin, measured_memory, profile_at
from irtool.cli.machines import named_machine, with_overlap
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.question import Question, RunOptions, question_of
from irtool.cli.report import Failure, report_problems
from irtool.cluster.context.model import RunContext
from irtool.cluster.context.weigh import weighed
from irtool.cluster.machine import default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.sharding.check import check, of_what_was_read
from irtool.syntax import file_facts

if TYPE_CHECKING:
    from irtool.artefacts.profile import Profile
    from irtool.cluster.machine import Machine
    from irtool.cluster.measured import MeasuredStep
    from irtool.report.cost import CostView
    from irtool.sharding.network.context import ParallelContext


class Format(str, Enum):
    """Output formats of ``irtool cost``."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    perfetto = "perfetto"


@dataclass(frozen=True, slots=True)
class CostOptions(RunOptions):
    """What the command line asks of a step's cost, as it is typed."""

    format: Annotated[
        Format,
        Option(
            "--format", "-f", help="table is for people; perfetto is the predicted step as a trace."
        ),
    ] = Format.table
    machine: shared.MachineName = None
    overlap: shared.Overlap = None
    bind: shared.Bind = None
    limit: shared.Limit = None
    profile: Annotated[
        str | None,
        Option(
            metavar="FILE|FOLDER",
            help="What was measured beside the model: kernel_details.csv, or a profile's folder.",
            show_default="from the run folder",
        ),
    ] = None
    allow_unknown: shared.AllowUnknown = False


CostQuestion: TypeAlias = "Question[str | Dump, CostOptions]"


@with_options(CostOptions)
def _cost(
    path: Annotated[
        str,
        Argument(metavar="BEGIN", help="A begin dump, a run folder, or -.", show_default=False),
    ],
    options: CostOptions,
    *,
    context: ContextArguments,
) -> int:
    """Where does a step go: arithmetic, communication by cause, redistribution, the optimizer?

    Where a profile is in the run folder, or named, what it measured stands beside the model. A run
    without a parallel pass is priced by its kernel graph.

    Exit status: 0; 1 MindSpore would refuse the dump's strategies, or a part can't be priced.
    """
    form = options.format
    if options.limit is not None and form is not Format.table:
        message = f"goes with --format table, not with {form.value}"
        raise Failure(message, "--limit", hint="--format table")
    asked = question_of(path, options, context)
    if not has_begin(path, context.rank, options.graph):
        return _tell_graph(asked)
    answered = cost_answered(asked)
    output = Output(options.output_file)
    if form is Format.perfetto:
        from irtool.report.trace import trace_pieces

        view = answered.result
        for piece in trace_pieces(sorted(view.stages) or [(view.report.context.stage, view.cost)]):
            output.write(piece)
        output.close()
        return fails(options.fail_on, "error" if view.report.accepted is False else None)
    return tell(answered, output, AnswerForm(form.value), options.assumptions)


command = context_command("cost", _cost)


def cost_answered(asked: CostQuestion) -> Answered[CostView]:
    """What a step costs: computing, communication by axis, redistribution, recomputing, the bubble.

    Args:
        asked: about a dump or a run folder; its options say which profile, machine and sizes count.

    Raises:
        Failure: there is no dump with strategies, or nothing can be priced.
    """
    from irtool.planning.cost.structure import structure_of
    from irtool.planning.plans.step.report import step_cost
    from irtool.report.cost import CostView, cost_answer, cost_report, usual_assumptions

    options, rank, graph = asked.options, asked.context.rank, asked.options.graph
    path = asked.source if isinstance(asked.source, str) else ""
    measured = profile_at(path, options.profile, rank) if path or options.profile else None
    file, read = begin_of(asked.source, rank, graph)
    report_problems(read.problems)
    dump = sized(read, file.path, sizes_of(options.bind or ()))
    named = named_machine(options.machine)
    known = context_of(file, read, asked.context, asked.configuration, named)
    parallel = parallel_of(known, file.path)
    chosen = with_overlap(named or default_machine(parallel.target), options.overlap)
    report = of_what_was_read(check(dump, parallel), dump)
    known = weighed(known, report)
    if not report.operators:
        reason = report.findings[0].message if report.findings else "nothing here has a strategy"
        raise Failure(f"nothing can be priced: {reason}", file.path)
    view = CostView(
        step_cost(structure_of(dump, parallel), report, chosen), report, file.path, options.limit
    )
    if parallel.stages > 1 and file_facts.is_folder(path):
        view, dump = _slowest(path, parallel, chosen, graph, file, (view, dump))
    if measured is not None:
        ran = graph_that_ran(path or file.path, rank, graph)
        joined = _joined(measured, path or file.path, chosen, ran)
        memory = measured_memory(joined, path, rank) if options.format is Format.html else None
        view = replace(view, measured=joined, memory=memory)
    incomplete = bool(view.cost.unknown) or view.report.accepted is None
    refused = view.report.accepted is False
    return Answered(
        view,
        lambda: cost_answer(view, known),
        lambda is_page: cost_report(view, dump if is_page else None),
        known,
        usual_assumptions(view.cost),
        fails(
            options.fail_on,
            "error" if refused else None,
            "info" if incomplete and not options.allow_unknown else None,
            those=(problem.severity for problem in dump.problems),
        ),
    )


def _joined(profile: Profile, path: str, machine: Machine, dump: Dump | None) -> MeasuredStep:
    """A profile joined with the dump of what ran.

    Raises:
        Failure: there is no such dump, or the profile is of another network.
    """
    from irtool.cluster.measured import measured_step

    if dump is None:
        hint = "MS_DEV_SAVE_GRAPHS=2 writes graph_build_*.ir and validate"
        raise Failure("no dump of what ran is beside it", path, hint=hint)
    step = measured_step(profile, dump, machine)
    if not step.joined.nodes:
        message = f"names no node of {dump.path}: is it of this network?"
        raise Failure(message, profile.path)
    return step


def _tell_graph(asked: Question[str, CostOptions]) -> int:
    """The cost of a run without a parallel pass; the exit status."""
    from irtool.cluster.modelled import modelled_step
    from irtool.report.measured import GraphCostView, graph_cost_answer, graph_cost_report

    path, rank, options = asked.source, asked.context.rank, asked.options
    graph, form = options.graph, options.format
    profile = profile_at(path, options.profile, rank)
    dump = graph_that_ran(path, rank, graph)
    if dump is None:
        hint = "MS_DEV_SAVE_GRAPHS=2 writes graph_build_*.ir and validate"
        raise Failure("no dump of what ran is here", path, hint=hint)
    report_problems(dump.problems)
    chosen = named_machine(options.machine) or default_machine()
    step = None if profile is None else _joined(profile, path, chosen, dump)
    memory = measured_memory(step, path, rank) if step and form is Format.html else None
    view = GraphCostView(modelled_step(dump, chosen), step, options.limit, memory)
    if form is Format.perfetto:
        from irtool.report.trace import kernel_trace_pieces

        output = Output(options.output_file)
        for piece in kernel_trace_pieces(view.modelled, step):
            output.write(piece)
        output.close()
        return fails(options.fail_on, those=(problem.severity for problem in dump.problems))
    known = RunContext(None)
    answered = Answered(
        view,
        lambda: graph_cost_answer(view.modelled, step, known),
        lambda is_page: graph_cost_report(view, is_page),
        known,
        status=fails(
            options.fail_on,
            "info" if view.modelled.unknown and not options.allow_unknown else None,
            those=(problem.severity for problem in dump.problems),
        ),
    )
    return tell(answered, Output(options.output_file), AnswerForm(form.value))


def _slowest(
    path: str,
    context: ParallelContext,
    machine: Machine,
    graph: int | None,
    file: InputFile,
    read: tuple[CostView, Dump],
) -> tuple[CostView, Dump]:
    """The slowest stage of those that left a begin dump, with all of them, and its dump.

    ``file`` and ``read``: what was read first, for a folder with one stage.
    """
    from irtool.cli.inputs.stages import begins_of
    from irtool.planning.cost.structure import structure_of
    from irtool.planning.plans.step.report import step_cost
    from irtool.report.cost import CostView

    made: list[tuple[float, int, CostView, Dump]] = []
    for stage, dump in begins_of(path, context, graph, file).items():
        own = replace(context, rank=stage * context.stage_size)
        report = check(dump, own)
        if report.operators:
            cost = step_cost(structure_of(dump, own), report, machine)
            made.append((cost.seconds, stage, CostView(cost, report, path, read[0].limit), dump))
    made.sort(key=lambda entry: (-entry[0], entry[1]))
    if len(made) < 2:
        return read
    stages = tuple((stage, view.cost) for _, stage, view, _ in made)
    return replace(made[0][2], stages=stages), made[0][3]


def read_begin(file: InputFile) -> Dump:
    """A dump with statements in it; its problems go to stderr.

    Args:
        file: the dump.

    Raises:
        Failure: it can't be read, or is empty.
    """
    dump = read_statements(file)
    report_problems(dump.problems)
    return dump
