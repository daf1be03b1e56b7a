"""``irtool recover``: devices or layers came or went: what changes, and what has to move?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.declared import with_options
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.recover_files import (
    FileOptions,
    RecoverForm,
    handed_over,
    plan_text,
    refuse_other_forms,
)
from irtool.cli.recover_inputs import begins_of, read_run
from irtool.cli.report import Failure
from irtool.cluster.machine import Machine, default_machine
from irtool.planning.recovery.times import Assumptions
from irtool.report.text import escape_lines
from irtool.syntax.printer import dumps
from irtool.syntax.run_classes import Fingerprints

if TYPE_CHECKING:
    from irtool.planning.cost.holdings import StageDumps
    from irtool.planning.recovery.recover import Recovery

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


@with_options(FileOptions, "files")
def _recover(
    path: Annotated[
        str, Argument(metavar="RUN", help="A run folder, or its begin dump.",
                            show_default=False),
    ],
    files: FileOptions,
    format: Annotated[
        RecoverForm,
        Option("--format", "-f", help="strategy, msjob: the plan itself.", group=options.OUTPUT),
    ] = RecoverForm.table,
    lost: Annotated[
        str | None, Option(metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.")
    ] = None,
    to: Annotated[
        int | None, Option(least=1, metavar="N", help="Devices to go on with.")
    ] = None,
    add_devices: Annotated[
        int, Option("--add-devices", least=0, metavar="N", help="Devices that joined.")
    ] = 0,
    plan: Annotated[
        str | None,
        Option(metavar="BEGIN", help="A begin dump with a plan for the new devices."),
    ] = None,
    grown: Annotated[
        str | None, Option(metavar="BEGIN", help="The begin dump with layers added.")
    ] = None,
    scaled: Annotated[
        bool, Option("--scaled", help="Scale strategies, don't search for better ones.")
    ] = False,
    horizon: Annotated[
        str | None,
        Option(metavar="STEPS", show_default="10000",
                     help="Steps that pay off what is moved and compiled for a new plan."),
    ] = None,
    machine: options.MachineName = None,
    server: Annotated[
        int | None,
        Option(least=1, metavar="N", help="Devices of a server, which fail together; "
                     "else the machine's."),
    ] = None,
    data_bytes: Annotated[
        str | None,
        Option("--data-bytes", metavar="SIZE", help="Other state, in bytes: 20GiB."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        Option(metavar="NAME=NUMBER", help="For the time: step_seconds=2.5."),
    ] = None,
    limit: options.Limit = None,
    allow_unknown: options.AllowUnknown = False,
    fail_on: FailOn = FailLevel.info,
    graph: options.GraphNumber = None,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:  # fmt: skip
    """Devices or layers came or went: what changes, and what has to move?

    Without an option: the smallest losses that peers cannot repair. Exit status: 0 all survives;
    1 slices are lost, MindSpore would refuse the new plan, or a part is unknown; 2 there is no way
    on. With --format strategy and msjob 1 says only that a dump could not be read whole, and
    without an option the plan is the run's own.
    """
    from irtool.cli.plan_asked import horizon_of, ranks_of
    from irtool.planning.recovery.elastic import HORIZON
    from irtool.planning.recovery.groups import group_table
    from irtool.planning.recovery.holdings_seen import seen_holdings
    from irtool.planning.recovery.recover import CannotRecover, Request, recover
    from irtool.report.recovery.answer import recover_answer
    from irtool.report.recovery.report import recovery_report
    from irtool.report.recovery.view import RecoveryView

    refuse_other_forms(files, format)
    assumptions = _assumptions(assume or (), data_bytes)
    configuration = read_configuration(config)
    load_custom_rules(configuration)
    named = named_machine(machine)
    read = read_run(path, context, configuration, graph, named)
    size, stages = read.context.devices, read.context.stages
    groups = seen = None
    if read.cluster is not None:
        groups = group_table(read.cluster, size, stages)
        if not read.begins:
            seen = seen_holdings(read.cluster, size, stages)
    links = _with_servers(named or default_machine(read.context.target), server)
    request = Request(
        ranks_of(lost, "--lost"),
        to,
        add_devices,
        links.node_devices or 8,
        not scaled,
        horizon_of(horizon, HORIZON),
    )
    new = begins_of(plan, read.context, graph) if plan else None
    larger = begins_of(grown, read.context, graph) if grown else None
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
            assumptions=assumptions,
            machine=links,
        )
    except CannotRecover as error:
        raise Failure(str(error), path) from None
    if format.is_plan:
        output = Output(output_file)
        output.write(escape_lines(plan_text(recovery, read, files, format)))
        output.close()
        problems = [problem for dump in read.begins.values() for problem in dump.problems]
        return fails(fail_on, those=(problem.severity for problem in problems))
    handed = handed_over(recovery, read, path)
    prints = _fingerprints(read.begins)
    cache = _cache_text(recovery, prints, _fingerprints(new or larger or {}))
    view = RecoveryView(
        recovery,
        path,
        assumptions,
        read.classes,
        cache,
        limit,
        (*read.notes, *handed.notes),
        fingerprints=prints,
        file=handed.file,
        conversion=handed.conversion,
    )
    write_answer(
        Output(output_file),
        AnswerForm(format.value),
        answer=lambda: recover_answer(view, read.known),
        report=lambda is_page: recovery_report(view, is_page),
        context=read.known,
    )
    refused = recovery.replanned and recovery.new.accepted is False
    unknown = bool(recovery.old.unknown or recovery.old.missing or recovery.moves is None)
    unknown = unknown or (recovery.replanned and recovery.accepted is None)
    return fails(
        fail_on,
        "error" if recovery.lost or refused else None,
        "warning" if read.known.contradictions else None,
        "info" if unknown and not allow_unknown else None,
    )


command = context_command("recover", _recover)


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
    return f"of stages {', '.join(map(str, sorted(same)))} {valid}; of all others {stale}"


# -- options -------------------------------------------------------------------------------------


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
            values[name] = math.nan
        if not math.isfinite(values[name]):
            raise Failure(f"{number} is no number", "--assume", hint="--assume step_seconds=2.5")
        if values[name] < 0 or (name == "storage_bandwidth" and values[name] == 0):
            raise Failure(f"{name} must be more than 0", "--assume")
    if data is not None:
        match = _SIZE.fullmatch(data.strip())
        if match is None:
            raise Failure(f"{data} is no size", "--data-bytes", hint="--data-bytes 20GiB")
        values["data_bytes"] = float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")
    typed = {
        name: int(value) if name in ("checkpoint_steps", "data_bytes") else value
        for name, value in values.items()
    }
    return replace(Assumptions(), **typed)  # pyright: ignore[reportArgumentType]  # names were checked
