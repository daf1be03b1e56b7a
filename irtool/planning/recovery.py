"""Recovery: devices or layers came or went; what changes, what moves, how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irtool.ir.dump import Dump
from irtool.planning.device_counts import device_count_problem, legal_counts
from irtool.planning.growth import Growth, grown
from irtool.planning.holdings import Holdings, holdings
from irtool.planning.recovery_groups import GroupTable, GroupUse
from irtool.planning.recovery_time import Assumptions, TimeComparison, compare_times
from irtool.planning.reshard import (
    LostSlice,
    Resharding,
    WeakPoint,
    lost_slices,
    reshard,
    weak_points,
)
from irtool.planning.scale import ScaledPlan, scaled_plan
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import Report


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
class Recovery:
    """The answer.

    Attributes:
        context: of the old run.
        old: who held what.
        request: what happened.
        survivors: ranks whose devices are there.
        broken: groups to be built anew; ``groups`` all of them.
        lost: slices without a holder.
        weak: the smallest sets of ranks whose loss no peer repairs; ``weak_servers`` of servers.
        target: devices to go on with; ``legal`` the legal numbers up to what is there.
        why_target: why it is that number.
        plan: strategies for that number (None: nothing changes).
        report: what ``check`` says of the plan.
        new: who needs what.
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
    groups: GroupTable | None
    broken: tuple[GroupUse, ...]
    lost: tuple[LostSlice, ...]
    weak: tuple[WeakPoint, ...]
    weak_servers: tuple[WeakPoint, ...]
    target: int
    legal: tuple[int, ...]
    why_target: str
    plan: ScaledPlan | None
    report: Report | None
    new: Holdings | None
    moves: Resharding | None
    changed: int
    growth: Growth | None
    times: TimeComparison
    notes: tuple[str, ...]


def recover(
    begin: Dump,
    context: ParallelContext,
    request: Request,
    groups: GroupTable | None = None,
    new_begin: Dump | None = None,
    grown_begin: Dump | None = None,
    statements: int = 0,
    assumptions: Assumptions | None = None,
) -> Recovery:
    """What a failure or a change of the cluster means for a run.

    Args:
        begin: the dump ``step_parallel_begin`` of the run.
        context: its devices and options.
        request: what happened.
        groups: all its communication groups, where its dumps show them.
        new_begin: a plan for the new number of devices; without it strategies are scaled.
        grown_begin: the network with layers added.
        statements: of the graph that has to be compiled.
        assumptions: rates of the time model.

    Raises:
        CannotRecover: a rank does not exist, or no number of devices is legal.
    """
    survivors = _survivors(context, request.lost)
    old = holdings(begin, context)
    target, legal, why = _target(context, request, len(survivors))
    notes = [f"{name}: {reason}" for name, reason in old.unknown.items()]
    new_context = replace(context, devices=target, rank=0)
    plan, network = _plan(begin, old.report, context, new_context, new_begin, grown_begin)
    report = check(network, new_context) if network is not None else None
    new = holdings(network, new_context) if network is not None else old
    notes += _plan_notes(plan, report, network is not new_begin and network is not grown_begin)
    fresh = max(0, target - len(survivors))
    moves = reshard(old, new, survivors, fresh, request.server)
    growth = grown(begin, grown_begin, old, new) if grown_begin is not None else None
    broken = groups.broken_by(request.lost) if groups is not None else ()
    rebuilt = _rebuilt(groups, broken, plan is not None or network is not None)
    state = sum(
        item.bytes_of(item.boxes[ranks[0]]) for item in new.items for ranks in item.replica_sets
    )
    times = compare_times(
        assumptions or Assumptions(),
        len(rebuilt),
        sum(len(group.ranks) for group in rebuilt),
        statements if network is not None else 0,
        moves,
        state,
    )
    return Recovery(
        context,
        old,
        request,
        survivors,
        groups,
        broken,
        lost_slices(old, request.lost),
        weak_points(old),
        weak_points(old, request.server),
        target,
        legal,
        why,
        plan,
        report,
        new,
        moves,
        _changed(plan, growth),
        growth,
        times,
        tuple(notes),
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


def _plan(
    begin: Dump,
    report: Report,
    old: ParallelContext,
    new: ParallelContext,
    new_begin: Dump | None,
    grown_begin: Dump | None,
) -> tuple[ScaledPlan | None, Dump | None]:
    """The new strategies, and the begin dump that holds them; None if nothing changes."""
    if grown_begin is not None or new_begin is not None:
        return None, grown_begin if grown_begin is not None else new_begin
    if old.devices == new.devices:
        return None, None
    plan = scaled_plan(begin, report, new)
    return plan, plan.dump


def _plan_notes(plan: ScaledPlan | None, report: Report | None, is_scaled: bool) -> list[str]:
    found: list[str] = []
    if plan is not None and is_scaled:
        found.append(
            "strategies were scaled, data parallelism first; a searched plan may be better "
            "(give its begin dump with --plan)"
        )
        if plan.failed:
            names = ", ".join(sorted({node.op for node in plan.failed}))
            found.append(f"{len(plan.failed)} operators keep strategies that do not fit: {names}")
    if report is not None and report.accepted is not True:
        first = next((item.message for item in report.findings), "a part is unknown")
        word = "refuse" if report.accepted is False else "perhaps refuse"
        found.append(f"MindSpore would {word} this plan: {first}")
    return found


def _rebuilt(
    groups: GroupTable | None, broken: tuple[GroupUse, ...], is_new: bool
) -> tuple[GroupUse, ...]:
    """Groups to build: all of them for a new plan, else those that were broken."""
    if groups is None:
        return ()
    return groups.groups if is_new else broken


def _changed(plan: ScaledPlan | None, growth: Growth | None) -> int:
    if growth is not None:
        return len(growth.resharded)
    return len(plan.changed) if plan is not None else 0
