"""A plan in a form that MindSpore, Kubernetes or a person takes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.cli.jobs import JobWords, written_job
from irtool.cli.plan.asked import json_file, twins
from irtool.cli.plan.request import Made, Request, again_of
from irtool.cli.report import Failure, note
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.syntax.printer import dumps

if TYPE_CHECKING:
    from irtool.planning.plans.plan import Plan
    from irtool.planning.stages.stages import StagedPlan


def plan_itself(made: Made, request: Request, format: str, read: Dump) -> list[str]:
    """The plan as text, in pieces.

    Args:
        made: the plan, and what it is a part of.
        request: what was asked for.
        format: of the text.
        read: the dump before unknown sizes were bound.

    Raises:
        Failure: the form can't say what the plan says.
    """
    if format == "msjob":
        return [_job(made, request)]
    for text in unsaid(made.plan, format, made.staged):
        note(text)
    if format == "ir":
        return [dumps(_as_read(made.plan, read))]
    if format == "shard":
        made = _sayable(made, request)
        region = twins(request.dump, made.plan.dump, request.region)
        return [f"{line}\n" for line in _lines(made, region)]
    return [_strategy_file(made, request)]


def _sayable(made: Made, request: Request) -> Made:
    """The plan that lines can say, where there is one; what they cannot say stands in comments."""
    from irtool.planning.files.handing_over import by_lines
    from irtool.planning.files.strategy_files import NotExpressible

    if request.way != "plan" or request.region is not None:
        return made
    try:
        plan, notes = by_lines(made.plan, again_of(request))
    except NotExpressible as error:
        note(f"not all of this plan can be pasted: {error}")
        return made
    for text in notes:
        note(text)
    return replace(made, plan=plan)


def _strategy_file(made: Made, request: Request) -> str:
    """The plan as a strategy file; what it can't say is planned anew.

    Raises:
        Failure: it can't hold such a plan.
    """
    from irtool.planning.files.handing_over import hand_over
    from irtool.planning.files.strategy_files import NotExpressible

    options = request.options
    keys = options.keys.value if options.keys is not None else None
    saved = json_file(options.names)
    try:
        if keys != "parameters" and made.staged is not None and len(made.staged.stages) > 1:
            from irtool.planning.stages.files import staged_operator_file

            return json.dumps(staged_operator_file(made.staged, saved), sort_keys=True) + "\n"
        file = hand_over(made.plan, again_of(request), keys, saved)
    except NotExpressible as error:
        hints = ["--names with a file that MindSpore saved", "--format shard"]
        if keys == "operators":
            hints.insert(1, "--keys parameters")
        raise Failure(str(error), "--format strategy", hint=", or ".join(hints)) from None
    for text in file.notes:
        note(text)
    return file.text


def unsaid(
    plan: Plan, format: str, staged: StagedPlan | None, *, strategies: bool = True
) -> list[str]:
    """What a form says nothing of; ``--format shard`` says all of it.

    Args:
        plan: the plan.
        format: of the text.
        staged: the cut into stages, where there is one.
        strategies: whether the form holds the strategies.
    """
    if format == "shard":
        return []
    decided = plan.decisions
    parts = {
        "strategies": not strategies,
        "which weights optimizer parallel cuts": decided is not None and bool(decided.sharded),
        "what runs again": decided is not None and bool(decided.recomputed),
        "where the network is cut into stages": staged is not None,
    }
    missing = [part for part, is_missing in parts.items() if is_missing]
    if not missing:
        return []
    return [f"--format {format} says nothing of {', '.join(missing)}: --format shard does"]


def _as_read(plan: Plan, read: Dump) -> Dump:
    """The plan in the dump as it was read, with unknown sizes where it has them.

    Raises:
        Failure: of unknown sizes MindSpore takes less.
    """
    from irtool.planning.plans.annotate import with_strategies
    from irtool.sharding.check import check

    if not any(size < 0 for node in read.nodes() for size in _sizes(node)):
        return plan.dump
    twins = dict(zip(plan.dump.nodes(), read.nodes(), strict=True))
    planned = {twins[item.node]: item.after for item in plan.operators if item.after is not None}
    outs = {twins[item.node]: item.out_after for item in plan.operators if item.out_after}
    dump = with_strategies(read, planned, outs)
    report = check(dump, plan.context)
    if report.accepted is False:
        first = next(item for item in report.findings if item.severity == "error")
        message = f"with unknown sizes MindSpore would refuse this: {first.op}: {first.message}"
        raise Failure(message, f"line {first.line}")
    return dump


def _sizes(node: Node) -> tuple[int, ...]:
    type = node.output_type
    return () if type is None else tuple(size for _, shape in type.tensors for size in shape)


def _lines(made: Made, region: frozenset[Node] | None) -> list[str]:
    from irtool.planning.files.shard_lines import (
        decision_lines,
        function_lines,
        shard_lines,
        sharded_function,
    )

    lines = list(shard_lines(made.plan))
    if made.plan.decisions is not None:
        lines += decision_lines(made.plan.decisions)
    if made.staged is not None:
        from irtool.report.planning.stages import stage_lines

        lines += stage_lines(made.staged)
    if region is not None:
        lines += function_lines(sharded_function(made.plan, region))
    return lines


def _job(made: Made, request: Request) -> str:
    """The job, with the plan as the strategy file that its pods mount."""
    options, plan = request.options, made.plan
    devices = made.staged.devices if made.staged is not None else plan.context.devices
    words = JobWords(options.name, options.image, options.command, options.servers)
    job = written_job(
        words, plan.dump, devices, plan.context.target, lambda: _strategy_file(made, request)
    )
    for text in unsaid(plan, "msjob", made.staged, strategies=job.has_strategies):
        note(text)
    return job.text
