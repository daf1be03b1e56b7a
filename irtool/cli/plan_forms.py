"""A plan in a form that MindSpore, Kubernetes or a person takes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irtool.cli.plan_asked import json_file
from irtool.cli.report import Failure, note
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.syntax.printer import dumps

if TYPE_CHECKING:
    from irtool.planning.plans.plan import Plan
    from irtool.planning.stages.stages import StagedPlan

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What the command line says of a job; ``servers`` None: the dump decides."""

    name: str
    image: str
    command: str
    servers: int | None


JOB = JobOptions("mindspore-training", "mindspore-image-name:tag", "python train.py", None)
"""Of a job that nobody says anything of."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of a form.

    ``region``: nodes of the plan's dump. ``read``: the dump before unknown sizes were bound.
    """

    keys: str
    names: str | None
    region: frozenset[Node] | None
    job: JobOptions
    staged: StagedPlan | None = None
    read: Dump | None = None


def plan_itself(found: Plan, format: str, asked: Asked) -> list[str]:
    """The plan as text, in pieces.

    Raises:
        Failure: the form can't say what the plan says.
    """
    for text in unsaid(found, format, asked.staged):
        note(text)
    if format == "ir":
        return [dumps(_as_read(found, asked.read))]
    if format == "shard":
        return [f"{line}\n" for line in _lines(found, asked)]
    if format == "msjob":
        devices = asked.staged.devices if asked.staged is not None else found.context.devices
        return [_job(found, asked.job, devices)]
    from irtool.planning.files.strategy_files import NotExpressible, operator_file, parameter_file

    try:
        if asked.keys == "operators" and asked.staged is not None and len(asked.staged.stages) > 1:
            from irtool.planning.stages.files import staged_operator_file

            file = staged_operator_file(asked.staged, json_file(asked.names))
            return [json.dumps(file, sort_keys=True) + "\n"]
        if asked.keys == "operators":
            file = operator_file(found, json_file(asked.names))
            return [json.dumps(file, sort_keys=True) + "\n"]
        file, left = parameter_file(found)
    except NotExpressible as error:
        hint = "--keys parameters, or --format shard"
        raise Failure(str(error), "--format strategy", hint=hint) from None
    if left:
        note(f"this file can't say {len(left)} parts of the plan, the first: {left[0]}")
    return [json.dumps(file, sort_keys=True) + "\n"]


def unsaid(found: Plan, format: str, staged: StagedPlan | None) -> list[str]:
    """What a form says nothing of; ``--format shard`` says all of it."""
    if format == "shard":
        return []
    decided = found.decisions
    parts = {
        "strategies": format == "msjob",
        "which weights optimizer parallel cuts": decided is not None and bool(decided.sharded),
        "what runs again": decided is not None and bool(decided.recomputed),
        "where the network is cut into stages": staged is not None,
    }
    missing = [part for part, is_missing in parts.items() if is_missing]
    if not missing:
        return []
    return [f"--format {format} says nothing of {', '.join(missing)}: --format shard does"]


def _as_read(found: Plan, read: Dump | None) -> Dump:
    """The plan in the dump as it was read, with unknown sizes where it has them.

    Raises:
        Failure: of unknown sizes MindSpore takes less.
    """
    from irtool.planning.plans.annotate import with_strategies
    from irtool.sharding.check import check

    if read is None or not any(size < 0 for node in read.nodes() for size in _sizes(node)):
        return found.dump
    twins = dict(zip(found.dump.nodes(), read.nodes(), strict=True))
    planned = {twins[item.node]: item.after for item in found.operators if item.after is not None}
    outs = {twins[item.node]: item.out_after for item in found.operators if item.out_after}
    dump = with_strategies(read, planned, outs)
    report = check(dump, found.context)
    if report.accepted is False:
        first = next(item for item in report.findings if item.severity == "error")
        message = f"with unknown sizes MindSpore would refuse this: {first.op}: {first.message}"
        raise Failure(message, f"line {first.line}")
    return dump


def _sizes(node: Node) -> tuple[int, ...]:
    type = node.output_type
    return () if type is None else tuple(size for _, shape in type.tensors for size in shape)


def _lines(found: Plan, asked: Asked) -> list[str]:
    from irtool.planning.files.shard_lines import (
        decision_lines,
        function_lines,
        shard_lines,
        sharded_function,
    )

    lines = list(shard_lines(found))
    if found.decisions is not None:
        lines += decision_lines(found.decisions)
    if asked.staged is not None:
        from irtool.report.planning.stages import stage_lines

        lines += stage_lines(asked.staged)
    if asked.region is not None:
        lines += function_lines(sharded_function(found, asked.region))
    return lines


def _job(found: Plan, job: JobOptions, devices: int) -> str:
    from irtool.planning.recovery.servers import serves_parameters
    from irtool.report.msjob import Job, job_text

    if not _NAME.fullmatch(job.name):
        hint = "lower-case letters, digits and hyphens, 63 at most"
        raise Failure(f"{job.name!r} is no name for a job", "--name", hint=hint)
    servers = job.servers
    if servers is None:
        servers = int(serves_parameters(found.dump))
    target = found.context.target
    return job_text(Job(job.name, job.image, job.command, devices, servers, target))
