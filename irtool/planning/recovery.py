"""Recovery: devices or layers came or went; what changes, what moves, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.planning.device_counts import device_count_problem, legal_counts
from irtool.planning.growth import Growth, grown
from irtool.planning.holdings import Holdings, StageDumps, holdings, stages_of
from irtool.planning.recovery_groups import (
    GroupChanges,
    GroupTable,
    GroupUse,
    group_changes,
    predicted_groups,
)
from irtool.planning.recovery_time import Assumptions, TimeComparison, compare_times
from irtool.planning.reshard import (
    LostSlice,
    Resharding,
    SurvivingSlice,
    WeakPoint,
    common_replicas,
    lost_slices,
    reshard,
    surviving_slices,
    weak_points,
)
from irtool.planning.scale import ScaledPlan, scaled_plan
from irtool.sharding.network.context import ParallelContext


class CannotRecover(ValueError):
    """There is no way on: the message says what would have to be different."""


@dataclass(frozen=True, slots=True)
class Request:
    """What happened, and what is wanted.

    Attributes:
        lost: ranks whose devices are gone.
        to: devices to go on with; None for the largest legal number of those that are left.
        added: devices that joined.
        server: devices that fail together.
    """

    lost: tuple[int, ...] = ()
    to: int | None = None
    added: int = 0
    server: int = 8


@dataclass(frozen=True, eq=False)
class Recovery(Shown):
    """The answer.

    Attributes:
        context: of the old run.
        old: who held what.
        request: what happened.
        survivors: ranks whose devices are there.
        broken: groups to be built anew; ``groups`` all of them.
        lost: slices without a holder; ``surviving`` those of lost ranks that have another one.
        common_replicas: ranks that MindSpore's own recovery would restore from each other.
        weak: the smallest sets of ranks whose loss no peer repairs; ``weak_servers`` of servers.
        target: devices to go on with; ``legal`` the legal numbers up to what is there.
        why_target: why it is that number.
        plans: strategies for that number, by stage (none: nothing changes, or they were given).
        new: who needs what, with what ``check`` says of the plan; the old one if nothing changes.
        replanned: whether it is another network than the old one.
        group_changes: groups of the plan against those of the old one; None if nothing changes.
        moves: what has to be moved.
        changed: operators with another strategy.
        growth: where layers were added.
        times: how long it takes.
        notes: what could not be said, and what was taken for granted.
    """

    context: ParallelContext
    old: Holdings
    request: Request
    survivors: tuple[int, ...]
    groups: GroupTable
    broken: tuple[GroupUse, ...]
    lost: tuple[LostSlice, ...]
    surviving: tuple[SurvivingSlice, ...]
    common_replicas: tuple[tuple[int, ...], ...]
    weak: tuple[WeakPoint, ...]
    weak_servers: tuple[WeakPoint, ...]
    target: int
    legal: tuple[int, ...]
    why_target: str
    plans: Mapping[int, ScaledPlan]
    new: Holdings
    replanned: bool
    group_changes: GroupChanges | None
    moves: Resharding
    changed: int
    growth: Growth | None
    times: TimeComparison
    notes: tuple[str, ...]

    @property
    def accepted(self) -> bool | None:
        """What MindSpore would say of the new plan; None: not known, or nothing changes."""
        return self.new.accepted if self.replanned else None


def recover(
    begin: Dump | StageDumps,
    context: ParallelContext,
    request: Request,
    groups: GroupTable | None = None,
    new_begin: Dump | StageDumps | None = None,
    grown_begin: Dump | StageDumps | None = None,
    statements: int = 0,
    assumptions: Assumptions | None = None,
) -> Recovery:
    """What a failure or a change of the cluster means for a run.

    Args:
        begin: the dump ``step_parallel_begin`` of the run; of a pipeline those of its stages.
        context: its devices and options.
        request: what happened.
        groups: all its communication groups, where its dumps show them; else they are predicted.
        new_begin: a plan for the new number of devices; without it strategies are scaled.
        grown_begin: the network with layers added.
        statements: of the graph that has to be compiled.
        assumptions: rates of the time model.

    Raises:
        CannotRecover: a rank does not exist, or no number of devices is legal.
    """
    survivors = _survivors(context, request.lost)
    begins = stages_of(begin, context)
    old = holdings(begins, context)
    target, legal, why = _target(context, request, len(survivors))
    new_context = replace(context, devices=target, rank=0)
    plans: dict[int, ScaledPlan] = {}
    network: StageDumps | None = None
    given = grown_begin if grown_begin is not None else new_begin
    if given is not None:
        network = stages_of(given, new_context)
    elif target != context.devices:
        plans = _scaled(begins, old, new_context)
        network = {stage: plan.dump for stage, plan in plans.items()}
    new = holdings(network, new_context) if network is not None else old
    predicted = predicted_groups(old)
    groups = groups if groups is not None and groups.groups else predicted
    changes = None if network is None else group_changes(predicted, predicted_groups(new))
    broken = groups.broken_by(request.lost)
    rebuilt = broken if changes is None else (*changes.kept, *changes.added)
    moves = reshard(old, new, survivors, max(0, target - len(survivors)), request.server)
    growth = None
    if grown_begin is not None:
        growth = grown(begins, stages_of(grown_begin, new_context), old, new)
    times = compare_times(
        assumptions or Assumptions(),
        len(rebuilt),
        sum(len(group.ranks) for group in rebuilt),
        statements if network is not None else 0,
        moves,
        sum(item.whole_bytes for item in new.items),
    )
    return Recovery(
        context,
        old,
        request,
        survivors,
        groups,
        broken,
        lost_slices(old, request.lost),
        surviving_slices(old, request.lost),
        common_replicas(old),
        weak_points(old),
        weak_points(old, request.server),
        target,
        legal,
        why,
        plans,
        new,
        network is not None,
        changes,
        moves,
        _changed(plans, growth),
        growth,
        times,
        tuple(_notes(old, new, plans, network is not None)),
    )


def _survivors(context: ParallelContext, lost: Sequence[int]) -> tuple[int, ...]:
    wrong = [rank for rank in lost if not 0 <= rank < context.devices]
    if wrong:
        raise CannotRecover(
            f"there is no rank {wrong[0]}: the run has {context.devices} devices, from rank 0"
        )
    gone = set(lost)
    found = tuple(rank for rank in range(context.devices) if rank not in gone)
    if not found:
        raise CannotRecover("all devices are lost")
    return found


def _target(
    context: ParallelContext, request: Request, left: int
) -> tuple[int, tuple[int, ...], str]:
    """How many devices to go on with, which numbers are legal, and why this one."""
    available = left + request.added
    legal = tuple(legal_counts(available, context))
    if request.to is not None:
        problem = device_count_problem(request.to, context)
        if problem:
            near = ", ".join(map(str, legal[:3])) or "none"
            raise CannotRecover(f"{request.to} devices: {problem}; legal here: {near}")
        return request.to, legal, "as asked for"
    if not request.lost and not request.added:
        return context.devices, legal, "nothing happened to the devices"
    if not legal:
        raise CannotRecover(f"no number of devices up to {available} is legal here")
    idle = available - legal[0]
    why = "the largest legal number of those that are left"
    return legal[0], legal, f"{why}; {idle} stay idle" if idle else why


def _scaled(begins: StageDumps, old: Holdings, context: ParallelContext) -> dict[int, ScaledPlan]:
    """Strategies for another number of devices, stage by stage."""
    return {
        stage: scaled_plan(
            dump, old.reports[stage], replace(context, rank=stage * context.stage_size)
        )
        for stage, dump in begins.items()
    }


def _notes(
    old: Holdings, new: Holdings, plans: Mapping[int, ScaledPlan], replanned: bool
) -> list[str]:
    found = [f"{name}: {reason}" for name, reason in old.unknown.items()]
    if old.missing:
        stages = ", ".join(map(str, old.missing))
        found.append(f"no begin dump of stage {stages}: nothing is known of what its ranks hold")
    if plans:
        found.append(
            "strategies were scaled, data parallelism first; a searched plan may be better "
            "(give its begin dump with --plan)"
        )
    failed = [node.op for plan in plans.values() for node in plan.failed]
    if failed:
        names = ", ".join(sorted(set(failed)))
        found.append(f"{len(failed)} operators keep strategies that do not fit: {names}")
    if replanned and new.accepted is not True:
        findings = [item.message for report in new.reports.values() for item in report.findings]
        first = next(iter(findings), "a part is unknown")
        word = "refuse" if new.accepted is False else "perhaps refuse"
        found.append(f"MindSpore would {word} this plan: {first}")
    return found


def _changed(plans: Mapping[int, ScaledPlan], growth: Growth | None) -> int:
    if growth is not None:
        return len(growth.resharded)
    return sum(len(plan.changed) for plan in plans.values())
