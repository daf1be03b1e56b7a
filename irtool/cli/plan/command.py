"""``irtool plan``: which strategies would be better, and how far from the best?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from irtool.cli.answering import Answered, AnswerForm, tell
from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, context_command, parallel_of
from irtool.cli.cost import read_begin
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.begin import begin_of, context_of, find_begin
from irtool.cli.inputs.memory import size_of, sized, sizes_of
from irtool.cli.machines import named_machine, with_overlap
from irtool.cli.output import Output
from irtool.cli.parameters import Argument
from irtool.cli.plan.asked import horizon_of, nodes_like, pins_of, ranks_of
from irtool.cli.plan.forms import plan_itself
from irtool.cli.plan.options import PlanForm, PlanOptions, not_weighed, refuse_ignored, way_of
from irtool.cli.plan.request import Made, Request, made, settled
from irtool.cli.plan.scale import scaled_network
from irtool.cli.question import Question, question_of
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.report.text import escape_lines
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.scaling.candidates import Candidates
    from irtool.report.planning.view import PlanView


PLAN_ITSELF = frozenset({"ir", "strategy", "shard", "msjob"})
"""Formats that hold the plan, and nothing about it."""


PlanQuestion: TypeAlias = "Question[str | Dump, PlanOptions]"


@with_options(PlanOptions)
def _plan(
    path: Annotated[
        str,
        Argument(metavar="BEGIN", help="A begin dump, a run folder, or -.", show_default=False),
    ],
    options: PlanOptions,
    *,
    context: ContextArguments,
) -> int:
    """Which strategy would be better, and how far from the best can it be?

    Exit status: 0 the dump's strategies are as good; 1 there is something better, the dump has no
    complete plan, or could not be read whole; 2 there is no plan. With --format ir, strategy, shard
    and msjob 1 says only that it could not be read whole.
    """
    planning = planned(question_of(path, options, context))
    form, file = options.format, options.output_file
    output = Output(file)
    if form.value in PLAN_ITSELF:
        # A dump keeps the bytes that it came with; in other forms names are but comments.
        is_dump = form is PlanForm.ir
        for piece in planning.written(form.value):
            output.write_dump(piece) if is_dump else output.write(escape_lines(piece))
        output.close()
        if form is PlanForm.strategy and file is not None and _moves_weights(planning):
            note(f"what becomes of checkpoints: irtool ckpt {planning.path} {file}")
        problems = planning.request.dump.problems
        return fails(options.fail_on, those=(problem.severity for problem in problems))
    return tell(plan_answered(planning), output, AnswerForm(form.value), options.assumptions)


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan, with what it was made from.

    Attributes:
        made: the plan, and what it is a part of.
        request: what was asked, once the dump is known.
        read: the dump before unknown sizes were bound.
        known: the context of the run.
        path: of the dump.
        candidates: what was searched together, where this plan is one of them.
    """

    made: Made
    request: Request
    read: Dump
    known: RunContext
    path: str
    candidates: Candidates | None = None

    def written(self, form: str) -> list[str]:
        """The plan as text, in pieces.

        Args:
            form: one of ``PLAN_ITSELF``.

        Raises:
            Failure: the form can't say what the plan says.
        """
        return plan_itself(self.made, self.request, form, self.read)


def planned(asked: PlanQuestion) -> Planned:
    """Plan the strategies of a network, as the options ask for it.

    Args:
        asked: about a begin dump or a run folder; the options say what may change.

    Raises:
        Failure: there is no plan, no such dump, or an option means nothing here.
    """
    from irtool.planning.plans.plan import CannotPlan

    options, context, configuration = asked.options, asked.context, asked.configuration
    file, read = begin_of(asked.source, context.rank, options.graph)
    report_problems(read.problems)
    model = named_machine(options.machine)
    known = context_of(file, read, context, configuration, model)
    dump = sized(read, file.path, sizes_of(options.bind or ()))
    parallel = parallel_of(known, file.path)
    network = scaled_network(options, dump, parallel)
    if network is not None:
        read = dump = network.scaled.dump
        parallel = network.context
    _refuse(options, dump, parallel)
    old = _old(options.onto, context, configuration)
    request = _request(options, dump, parallel, model, old)
    request = replace(request, network=network)
    try:
        request, candidates = settled(request)
        outcome = made(request)
    except CannotPlan as error:
        raise Failure(str(error), file.path) from None
    for text in (*outcome.plan.notes, *part_of(request.context)):
        note(text)
    return Planned(outcome, request, read, known, file.path, candidates)


def plan_answered(planning: Planned) -> Answered[PlanView]:
    """The answer about a plan: what changes, what it costs, how far it is from the best.

    Args:
        planning: the plan, with what it was made from.
    """
    from irtool.report.planning.answer import plan_answer
    from irtool.report.planning.report import plan_report
    from irtool.report.planning.view import PlanView, assumed

    plan, request = planning.made.plan, planning.request
    network = request.network
    view = PlanView(
        plan,
        planning.path,
        request.options.limit,
        planning.made.elastic,
        planning.made.staged,
        None if network is None else network.scaled,
        planning.candidates,
    )
    return Answered(
        view,
        lambda: plan_answer(view, planning.known),
        lambda is_page: plan_report(view, plan.dump if is_page else None),
        planning.known,
        assumed(view),
        fails(
            request.options.fail_on,
            "warning" if _has_none(planning.made, request) else None,
            "info" if _is_better(planning.made) else None,
            those=(problem.severity for problem in request.dump.problems),
        ),
    )


def _refuse(options: PlanOptions, dump: Dump, context: ParallelContext) -> None:
    """Say what would not count.

    Raises:
        Failure: an option would be ignored.
    """
    way = way_of(options, dump, context)
    refuse_ignored(way, options)
    if said := not_weighed(way, options, dump, context):
        note(said)


def _request(
    options: PlanOptions,
    dump: Dump,
    context: ParallelContext,
    machine: Machine | None,
    old: tuple[Dump, ParallelContext] | None,
) -> Request:
    """What the options ask of a dump.

    Raises:
        Failure: they mean nothing here.
    """
    from irtool.planning.recovery.elastic import HORIZON

    pinned, outs = pins_of(dump, options.pin or [])
    way = way_of(options, dump, context)
    chosen = with_overlap(machine or default_machine(context.target), options.overlap)
    if chosen.overlap and way in ("devices", "stages", "candidates"):
        chosen = replace(chosen, overlap=0.0)
        note("for other devices and in stages nothing counts as hidden: the machine's overlap is 0")
    return Request(
        options=options,
        way=way,
        dump=dump,
        context=context,
        machine=chosen,
        memory=None if options.memory is None else size_of(options.memory, "--memory"),
        pinned=pinned,
        outs=outs,
        region=nodes_like(dump, "--region", options.region),
        onto=old,
        lost=ranks_of(options.lost, "--lost"),
        horizon=horizon_of(options.horizon, HORIZON),
    )


def _has_none(outcome: Made, request: Request) -> bool:
    """Whether the dump has no complete plan, or one that does not fit into the memory."""
    plan, limit = outcome.plan, request.memory
    if outcome.staged is not None or request.network is not None:
        return False
    return plan.before is None or (limit is not None and plan.before.memory.total > limit)


def _is_better(outcome: Made) -> bool:
    """Whether there is something better than what the dump has."""
    plan = outcome.plan
    if outcome.staged is not None:
        return outcome.staged.is_better
    return plan.before is not None and plan.after.seconds < plan.before.seconds * (1 - 1e-9)


def _moves_weights(planning: Planned) -> bool:
    """Whether checkpoints may be there that the plan makes lie otherwise."""
    made, network = planning.made, planning.request.network
    if network is not None or made.staged is not None:
        return False
    had = any(operator.before is not None and operator.changes for operator in made.plan.operators)
    return had or made.elastic is not None


command = context_command("plan", _plan)


def part_of(context: ParallelContext) -> list[str]:
    """What a plan of one pipeline stage leaves out, as a sentence; none where there is one stage.

    Args:
        context: that is planned under.
    """
    if context.stages == 1:
        return []
    return [
        f"this is a plan of stage {context.stage} of {context.stages}: what the others do, and "
        "what they would have to move, is not in it"
    ]


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
