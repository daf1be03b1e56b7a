"""A pipeline of a network that has none: balanced stages, and a plan inside of each.

The network is cut into micro-batches (``micro_batch``) and planned on the devices of one stage.
Since costs add up operator by operator, and an edge belongs to the operator that reads it, this
plan is the best one inside of every stage, however the network is cut.  Then its cells, in the
order in which they run, are cut so that the slowest stage is as fast as can be (exact, by dynamic
programming).  Under the 1F1B schedule stage ``i`` of ``S`` holds results of ``min(S - i, M)`` of
``M`` micro-batches.  Under a memory limit stages that do not fit are planned anew, and the cut is
made again with what that costs; cuts that need no new plan, and those that are even in memory, are
tried beside, and the fastest step wins.
"""

from __future__ import annotations

from dataclasses import replace

from irtool.cluster.machine import Machine
from irtool.ir.dump import Dump
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.plan import Plan, PlannedOperator, plan
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.search.effort import EffortName
from irtool.planning.search.problem import plain_dump, planned_context, problem_of
from irtool.planning.search.tables import CannotPlan
from irtool.planning.stages.maker import PipelineMaker
from irtool.planning.stages.micro_batch import (
    batch_of,
    dataset_splits,
    default_micro_batches,
    micro_batch,
)
from irtool.planning.stages.results import PlannedStage, StagedPlan, Transfer
from irtool.planning.stages.search import StageSearch
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext


def staged_plan(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    stages: int,
    *,
    devices: int | None = None,
    micro_batches: int | None = None,
    memory_limit: int | None = None,
    decide_optimizer: bool = False,
    decide_recompute: bool = False,
    effort: EffortName = "default",
) -> StagedPlan:
    """Cut a network into stages, and plan inside of each.

    Args:
        dump: a begin dump of the whole network and the whole batch, one stage.
        context: what it was compiled under.
        machine: what things cost.
        stages: how many.
        devices: of all stages; None: those of the context.
        micro_batches: in a step; None: four for each stage, or fewer where the batch asks for it.
        memory_limit: bytes of one device; a stage that needs more is planned anew under it.
        decide_optimizer: whether optimizer parallel is decided weight by weight.
        decide_recompute: whether recomputation is decided operator by operator.
        effort: how many strategies of operators are looked at.

    Raises:
        CannotPlan: it can't be cut like this; the message says what would have to change.
    """
    machine = replace(machine, overlap=0.0)  # its search adds up what nothing hides
    total = devices or context.devices
    _check_whole(dump, context)
    if total % stages:
        legal = [count for count in range(1, total + 1) if total % count == 0]
        raise CannotPlan(
            f"{total} devices cannot be divided among {stages} stages: "
            f"{', '.join(map(str, legal))} would do"
        )
    try:
        target = planned_context(context, total // stages)
    except CannotPlan as error:
        raise CannotPlan(f"{stages} stages of {total // stages} devices each: {error}") from None
    micro = micro_batches or _default(dump, target, stages)
    _check_micro_batches(dump, target, stages, micro)
    if decide_optimizer:
        target = replace(target, parallel_optimizer=False)
    plain = plain_dump(dump)
    problem = problem_of(micro_batch(plain, micro), context, target, counts_all=True)
    search = StageSearch.of(
        problem, machine, micro,
        optimizer=decide_optimizer, recompute=decide_recompute, effort=effort,
    )  # fmt: skip
    maker = PipelineMaker(search, machine, stages, micro, total)
    made = maker.best(memory_limit)
    return replace(
        made,
        unstaged=_unstaged(dump, context, machine, total),
        unstaged_plan=_planned(dump, context, machine, total, memory_limit, effort),
        memory_limit=memory_limit,
        inner=replace(
            made.inner,
            before=None,
            operators=_beside_what_was(dump, context, total, made.inner),
            memory_limit=memory_limit,
            notes=(*made.inner.notes, *maker.notes()),
        ),
    )


def _default(dump: Dump, target: ParallelContext, stages: int) -> int:
    if stages == 1:
        return 1
    return default_micro_batches(dump, stages, dataset_splits(target))


def _check_micro_batches(dump: Dump, target: ParallelContext, stages: int, micro: int) -> None:
    """Refuse numbers of micro-batches that MindSpore would refuse.

    Raises:
        CannotPlan: it is one.
    """
    if micro < stages:
        raise CannotPlan(
            f"MindSpore refuses fewer micro-batches than stages: {micro} for {stages} stages"
        )
    splits, batch = dataset_splits(target), batch_of(dump)
    if micro > 1 and batch % micro == 0 and batch // micro % splits:
        most = batch // splits
        advice = f"at most {most} micro-batches, " if most >= stages else ""
        raise CannotPlan(
            f"the dataset is split over the {splits} devices of a stage, and one of {micro} "
            f"micro-batches has {batch // micro} rows: {advice}a larger batch, or full_batch "
            "would do"
        )


def _check_whole(dump: Dump, context: ParallelContext) -> None:
    """Refuse what is a part of a pipeline.

    Raises:
        CannotPlan: it is.
    """
    advice = "give the begin dump of the whole network, compiled without stages and PipelineCell"
    if context.stages > 1:
        raise CannotPlan(f"this dump is of a pipeline of {context.stages} stages already: {advice}")
    for node in dump.nodes():
        if node.op in ("Send", "Receive"):
            one = f"this dump is of one stage of several (it holds {node.op})"
            raise CannotPlan(f"{one}: {advice}")
        if "-PipelineCell" in (node.scope or ""):
            raise CannotPlan(f"this network is cut into micro-batches already: {advice}")


def _beside_what_was(
    dump: Dump, context: ParallelContext, devices: int, inner: Plan
) -> tuple[PlannedOperator, ...]:
    """The operators of a plan with the strategies that the dump has; a micro-batch has none."""
    try:
        problem = problem_of(dump, context, planned_context(context, devices))
    except CannotPlan:
        return inner.operators
    plain = problem.structure.dump.nodes()
    had = {
        node: problem.current[old]
        for old, node in zip(plain, inner.dump.nodes(), strict=True)
        if old in problem.current
    }
    return tuple(
        replace(item, before=had[item.node][0], out_before=had[item.node][1])
        if item.node in had
        else item
        for item in inner.operators
    )


def _planned(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    devices: int,
    limit: int | None,
    effort: EffortName,
) -> float | None:
    """Seconds of a step as it is planned without stages; None where nothing fits."""
    try:
        made = plan(dump, context, machine, devices=devices, memory_limit=limit, effort=effort)
    except CannotPlan:
        return None
    return made.after.seconds


def _unstaged(dump: Dump, context: ParallelContext, machine: Machine, devices: int) -> float | None:
    """Seconds of a step as the dump is; None where it has no complete plan for these devices."""
    if context.devices != devices or not context.is_parallel:
        return None
    report = check(dump, context)
    if report.accepted is not True:
        return None
    cost: StepCost = step_cost(structure_of(dump, context), report, machine)
    return None if cost.unknown else cost.seconds


__all__ = ["PlannedStage", "StagedPlan", "Transfer", "staged_plan"]
