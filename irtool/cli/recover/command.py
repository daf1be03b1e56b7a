"""``irtool recover``: devices or layers came or went: what changes, and what has to move?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from irtool.cli.answering import Answered, AnswerForm, tell
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.stages import Inputs, begins_of, read_run
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.parameters import Argument
from irtool.cli.question import Question, question_of
from irtool.cli.recover.files import handed_over, plan_text
from irtool.cli.recover.options import RecoverOptions
from irtool.cli.report import Failure
from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.units import numbered_text
from irtool.report.text import escape_lines
from irtool.syntax.printer import dumps
from irtool.syntax.run.classes import Fingerprints

if TYPE_CHECKING:
    from irtool.planning.cost.holdings import StageDumps
    from irtool.planning.recovery.recover import Recovery
    from irtool.report.recovery.view import RecoveryView

RecoverQuestion: TypeAlias = "Question[str, RecoverOptions]"


@with_options(RecoverOptions)
def _recover(
    path: Annotated[
        str, Argument(metavar="RUN", help="A run folder, or its begin dump.", show_default=False)
    ],
    options: RecoverOptions,
    *,
    context: ContextArguments,
) -> int:
    """Devices or layers came or went: what changes, and what has to move?

    Without an option: the smallest losses that peers cannot repair. Exit status: 0 all survives;
    1 slices are lost, MindSpore would refuse the new plan, or a part is unknown; 2 there is no way
    on. With --format strategy and msjob 1 says only that a dump could not be read whole, and
    without an option the plan is the run's own.
    """
    options.refuse_other_forms()
    recovered = _recovered(question_of(path, options, context))
    output = Output(options.output_file)
    if options.format.is_plan:
        text = plan_text(recovered.recovery, recovered.read, options)
        output.write(escape_lines(text))
        output.close()
        problems = [problem for dump in recovered.read.begins.values() for problem in dump.problems]
        return fails(options.fail_on, those=(problem.severity for problem in problems))
    answered = _answered(recovered, path, options)
    return tell(answered, output, AnswerForm(options.format.value), options.assumptions)


command = context_command("recover", _recover)


@dataclass(frozen=True, slots=True, eq=False)
class _Recovered:
    """A recovery with what was read for it; ``given``: begin dumps of the plan that was named."""

    recovery: Recovery
    read: Inputs
    given: StageDumps


def _recovered(asked: RecoverQuestion) -> _Recovered:
    """What becomes of a run.

    Raises:
        Failure: there is no way on, nothing to read, or an option makes no sense.
    """
    from irtool.cli.plan.asked import horizon_of, ranks_of
    from irtool.planning.recovery.elastic import HORIZON
    from irtool.planning.recovery.groups import group_table
    from irtool.planning.recovery.holdings_seen import seen_holdings
    from irtool.planning.recovery.recover import CannotRecover, Request, recover

    options, path, rates = asked.options, asked.source, asked.options.rates
    named = named_machine(options.machine)
    read = read_run(path, asked.context, asked.configuration, options.graph, named)
    size, stages = read.context.devices, read.context.stages
    groups = seen = None
    if read.cluster is not None:
        groups = group_table(read.cluster, size, stages)
        if not read.begins:
            seen = seen_holdings(read.cluster, size, stages)
    links = _with_servers(named or default_machine(read.context.target), options.server)
    request = Request(
        lost=ranks_of(options.lost, "--lost"),
        to=options.to,
        added=options.add_devices,
        server=links.node_devices or 8,
        search=not options.scaled,
        horizon=horizon_of(options.horizon, HORIZON),
    )
    new = begins_of(options.plan, read.context, options.graph) if options.plan else None
    larger = begins_of(options.grown, read.context, options.graph) if options.grown else None
    if (new or larger) and not read.begins:
        raise Failure("without a begin dump of the run there is nothing to compare with", path)
    try:
        recovery = recover(
            read.begins,
            read.context,
            request,
            groups,
            seen,
            new_begin=new,
            grown_begin=larger,
            statements=read.statements,
            assumptions=rates,
            machine=links,
        )
    except CannotRecover as error:
        raise Failure(str(error), path) from None
    return _Recovered(recovery, read, new or larger or {})


def _answered(recovered: _Recovered, path: str, options: RecoverOptions) -> Answered[RecoveryView]:
    """The answer about a recovery."""
    from irtool.report.recovery.answer import recover_answer
    from irtool.report.recovery.report import recovery_report
    from irtool.report.recovery.view import RecoveryView

    recovery, read = recovered.recovery, recovered.read
    handed = handed_over(recovery, read, path)
    prints = _fingerprints(read.begins)
    view = RecoveryView(
        recovery,
        path,
        options.rates,
        read.classes,
        _cache_text(recovery, prints, _fingerprints(recovered.given)),
        options.limit,
        (*read.notes, *handed.notes),
        fingerprints=prints,
        file=handed.file,
        conversion=handed.conversion,
    )
    refused = recovery.replanned and recovery.new.accepted is False
    unknown = bool(recovery.old.unknown or recovery.old.missing or recovery.moves is None)
    unknown = unknown or (recovery.replanned and recovery.accepted is None)
    return Answered(
        view,
        lambda: recover_answer(view, read.known),
        lambda is_page: recovery_report(view, is_page),
        read.known,
        status=fails(
            options.fail_on,
            "error" if recovery.lost or refused else None,
            "warning" if read.known.contradictions else None,
            "info" if unknown and not options.allow_unknown else None,
        ),
    )


def _with_servers(machine: Machine, size: int | None) -> Machine:
    """The machine with servers of another size, if one was given."""
    if size is None:
        return machine
    inner, *outer = machine.levels
    return replace(machine, levels=(replace(inner, devices=size), *outer))


def _fingerprints(begins: StageDumps) -> dict[int, str]:
    made = Fingerprints()
    return {stage: made.of(dumps(begin), 0) for stage, begin in sorted(begins.items())}


def _cache_text(recovery: Recovery, old: Mapping[int, str], given: Mapping[int, str]) -> str:
    """Whether MindSpore may load compiled graphs: it hashes Python files only."""
    same: list[int] = []
    stages = range(recovery.context.stages)
    if given and recovery.target == recovery.context.devices:
        same = [stage for stage in old if old[stage] == given.get(stage)]
    elif not recovery.replanned and recovery.target == recovery.context.devices:
        same = list(stages)
    stale = "stale, though MindSpore would load it (it hashes Python files only): remove it"
    if not same:
        return stale
    valid = "still valid: the graph is the same"
    if recovery.request.lost:
        valid += "; a new device that plays a lost rank has none"
    if len(same) == len(stages):
        return valid
    return f"of {numbered_text('stage', same)} {valid}; of all others {stale}"
