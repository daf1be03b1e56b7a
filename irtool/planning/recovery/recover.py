"""Recovery: devices or layers came or went; what changes, what moves, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irtool.cluster.machine import Machine, default_machine
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.units import bytes_text, numbered_text, plural
from irtool.planning.cost.holdings import Holdings, StageDumps, holdings, stages_of
from irtool.planning.recovery.elastic import HORIZON
from irtool.planning.recovery.groups import (
    GroupChanges,
    GroupTable,
    GroupUse,
    group_changes,
    predicted_groups,
)
from irtool.planning.recovery.growth import Growth, grown
from irtool.planning.recovery.replan import (
    Change,
    Replan,
    given_plan,
    loaded,
    replans,
    slowest_stage,
)
from irtool.planning.recovery.reshard import Resharding, reshard
from irtool.planning.recovery.survival import (
    LostSlice,
    SurvivingSlice,
    WeakPoint,
    common_replicas,
    lost_slices,
    surviving_slices,
    weak_points,
)
from irtool.planning.recovery.times import Assumptions, TimeComparison, compare_times
from irtool.planning.search.device_counts import device_count_problem, legal_counts
from irtool.sharding.network.context import LARGEST_WORLD, ParallelContext


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
        search: whether strategies for another number of devices are searched, or scaled only.
        horizon: steps that pay off what is moved and compiled for them.
    """

    lost: tuple[int, ...] = ()
    to: int | None = None
    added: int = 0
    server: int = 8
    search: bool = True
    horizon: float = HORIZON


@dataclass(frozen=True, eq=False)
class Alternative:
    """A plan to go on with, and what has to be moved for it."""

    plan: Replan
    moves: Resharding


@dataclass(frozen=True, eq=False)
class Recovery(Shown):
    """What a change of devices or layers breaks, what survives it, and how to go on.

    Attributes:
        context: of the old run.
        old: who held what.
        old_seconds: of a step of its slowest stage, by the planner's model; None: not all has a
            price there, or nothing changes.
        request: what happened.
        survivors: ranks whose devices are there.
        broken: groups to be built anew; ``groups`` all of them.
        lost: slices without a holder; ``surviving`` those of lost ranks that have another one.
        common_replicas: ranks that MindSpore's own recovery would restore from each other.
        weak: the smallest sets of ranks whose loss no peer repairs; ``weak_servers`` of servers.
        target: devices to go on with; ``legal`` the legal numbers up to it or to what is there.
        stages: pipeline stages to go on with: those of the run, where its devices can be divided
            among them.
        why_target: why it is that number.
        alternatives: plans for that number with what they move, the chosen one first; none: the
            plan stays as it is.
        moves: what has to be moved, for the chosen plan; None: nobody knows, for want of a plan.
        group_changes: groups of the plan against those of the old one; None if nothing changes.
        growth: where layers were added.
        times: how long it takes.
        machine: links and prices.
        notes: what could not be said, and what was taken for granted.
    """

    context: ParallelContext
    old: Holdings
    old_seconds: float | None
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
    stages: int
    legal: tuple[int, ...]
    why_target: str
    alternatives: tuple[Alternative, ...]
    moves: Resharding | None
    group_changes: GroupChanges | None
    growth: Growth | None
    times: TimeComparison
    machine: Machine
    notes: tuple[str, ...]

    @property
    def plan(self) -> Replan | None:
        """The plan to go on with; None: the old one."""
        return self.alternatives[0].plan if self.alternatives else None

    @property
    def new(self) -> Holdings:
        """Who needs what under the plan to go on with; under the old one where there is none."""
        return self.alternatives[0].plan.holdings if self.alternatives else self.old

    @property
    def replanned(self) -> bool:
        """Whether the network is another one than before."""
        return bool(self.alternatives)

    @property
    def accepted(self) -> bool | None:
        """What MindSpore would say of the new plan; None: not known, or nothing changes."""
        return self.alternatives[0].plan.accepted if self.alternatives else None

    @property
    def changed(self) -> int:
        """Operators with another strategy."""
        return len(self.alternatives[0].plan.changes) if self.alternatives else 0

    @property
    def has_change(self) -> bool:
        """Whether anything came or went."""
        asked = self.request
        return bool(asked.lost or asked.added or asked.to or self.alternatives)


def recover(
    begin: Dump | StageDumps,
    context: ParallelContext,
    request: Request,
    groups: GroupTable | None = None,
    seen: Holdings | None = None,
    new_begin: Dump | StageDumps | None = None,
    grown_begin: Dump | StageDumps | None = None,
    statements: int = 0,
    assumptions: Assumptions | None = None,
    machine: Machine | None = None,
) -> Recovery:
    """What a failure or a change of the cluster means for a run.

    Args:
        begin: the dump ``step_parallel_begin`` of the run; of a pipeline those of its stages.
        context: its devices and options.
        request: what happened.
        groups: all its communication groups, where its dumps show them; else they are predicted.
        seen: who holds what, as later dumps show it: for a run without begin dumps (``begin`` is
            empty then), whose devices can be replaced but not re-planned.
        new_begin: a plan for the new number of devices; without it the planner makes one.
        grown_begin: the network with layers added.
        statements: of the graph that has to be compiled.
        assumptions: rates of the time model.
        machine: links and prices; None: the default one of the context's target.

    Raises:
        CannotRecover: a rank does not exist, or no number of devices is legal.
    """
    assumptions = assumptions or Assumptions()
    machine = _with_links(machine or default_machine(context.target), assumptions)
    survivors = _survivors(context, request.lost)
    begins = stages_of(begin, context)
    old = seen if seen is not None and not begins else holdings(begins, context)
    staged, target, legal, why = _staged_target(context, request, len(survivors))
    new_context = loaded(staged, target)
    fresh = max(0, target - len(survivors))
    plans, no_search = _plans(
        begins,
        old,
        new_context,
        grown_begin if grown_begin is not None else new_begin,
        Change(request.lost, fresh, request.horizon, request.search),
        machine,
        is_searched=target != context.devices and staged.stages == context.stages,
    )
    alternatives = tuple(
        Alternative(plan, reshard(old, plan.holdings, survivors, machine, fresh)) for plan in plans
    )
    new = alternatives[0].plan.holdings if alternatives else old
    moves: Resharding | None = alternatives[0].moves if alternatives else None
    if not alternatives and target == context.devices:
        moves = reshard(old, old, survivors, machine, fresh)
    predicted = predicted_groups(old)
    groups = groups if groups is not None and groups.groups else predicted
    changes = group_changes(predicted, predicted_groups(new)) if alternatives else None
    broken = groups.broken_by(request.lost)
    rebuilt = broken if changes is None else (*changes.kept, *changes.added)
    growth = None
    if grown_begin is not None:
        growth = grown(begins, stages_of(grown_begin, new_context), old, new)
    times = compare_times(
        assumptions,
        _most_groups(rebuilt),
        # A device that takes a lost rank's place has no compile cache, even if all others have.
        statements if alternatives or target != context.devices or request.lost else 0,
        moves,
        sum(item.whole_bytes for item in new.items),
        bool(old.unknown or old.missing),
    )
    return Recovery(
        context,
        old,
        slowest_stage(begins, old, machine) if alternatives else None,
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
        staged.stages,
        legal,
        why,
        alternatives,
        moves,
        changes,
        growth,
        times,
        machine,
        (
            *_stage_notes(old, context, staged, target, alternatives),
            *((note,) if plans and (note := context.dataset_note(target)) else ()),
            *_notes(old, alternatives, no_search, moves),
        ),
    )


def _plans(
    begins: StageDumps,
    old: Holdings,
    context: ParallelContext,
    given: Dump | StageDumps | None,
    change: Change,
    machine: Machine,
    *,
    is_searched: bool,
) -> tuple[list[Replan], str]:
    """Plans to go on with, the best one first, and why strategies were not searched, if so."""
    if not begins:
        return [], ""
    if given is not None:
        return [given_plan(begins, old, stages_of(given, context), context, machine)], ""
    return replans(begins, old, context, change, machine) if is_searched else ([], "")


def _survivors(context: ParallelContext, lost: Sequence[int]) -> tuple[int, ...]:
    wrong = [rank for rank in lost if not 0 <= rank < context.devices]
    if wrong:
        raise CannotRecover(
            f"there is no rank {wrong[0]}: the run has {context.devices} devices, from rank 0"
        )
    gone = set(lost)
    survivors = tuple(rank for rank in range(context.devices) if rank not in gone)
    if not survivors:
        raise CannotRecover("all devices are lost")
    return survivors


def _staged_target(
    context: ParallelContext, request: Request, left: int
) -> tuple[ParallelContext, int, tuple[int, ...], str]:
    """The context with as many stages as can go on, and its devices as of :func:`_target`.

    Where no number of devices that is there can be divided among the run's stages, the largest
    smaller number of stages among which one can is taken.

    Raises:
        CannotRecover: there is none.
    """
    try:
        return (context, *_target(context, request, left))
    except CannotRecover:
        for stages in range(context.stages - 1, 0, -1):
            if context.devices % stages:
                continue
            fewer = replace(context, stages=stages, rank=0)
            try:
                target, legal, why = _target(fewer, request, left)
            except CannotRecover:
                continue
            return fewer, target, legal, f"{why}; not among {context.stages} stages"
        raise


def _stage_notes(
    old: Holdings,
    context: ParallelContext,
    staged: ParallelContext,
    target: int,
    alternatives: Sequence[Alternative],
) -> Iterator[str]:
    """What another number of stages means."""
    if staged.stages == context.stages or alternatives:
        return
    total = sum(item.whole_bytes for item in old.items)
    share = total // staged.stages
    yield (
        f"with pipeline_stages={staged.stages} the network has to be compiled anew: its begin dump "
        f"(--plan BEGIN) tells what moves; a stage then holds {bytes_text(share)} of weights and "
        f"states on {plural(target // staged.stages, 'device')}, where one of the run holds "
        f"{bytes_text(total // context.stages)}"
    )


def _target(
    context: ParallelContext, request: Request, left: int
) -> tuple[int, tuple[int, ...], str]:
    """How many devices to go on with, which numbers are legal, and why this one."""
    if request.added > LARGEST_WORLD:
        raise CannotRecover(
            f"{request.added} devices that joined: MindSpore takes {LARGEST_WORLD} at most"
        )
    available = left + request.added
    legal = tuple(legal_counts(min(max(available, request.to or 0), LARGEST_WORLD), context))
    if request.to is not None:
        problem = device_count_problem(request.to, loaded(context, context.devices))
        if request.to > LARGEST_WORLD:
            problem = f"MindSpore takes {LARGEST_WORLD} at most"
        if problem:
            near = ", ".join(map(str, legal[:3])) or "none"
            raise CannotRecover(f"{request.to} devices: {problem}; legal here: {near}")
        searching = device_count_problem(request.to, context)
        more = request.to - available
        why = f"as asked for, {more} of them new" if more > 0 else "as asked for"
        if searching:
            why += f"; its strategies have to be given: {searching}"
        return request.to, legal, why
    if not request.lost and not request.added:
        return context.devices, legal, "nothing happened to the devices"
    if not legal:
        raise CannotRecover(f"no number of devices up to {available} is legal here")
    idle = available - legal[0]
    why = "the largest legal number of those that are left"
    return legal[0], legal, f"{why}; {idle} stay idle" if idle else why


def _with_links(machine: Machine, assumptions: Assumptions) -> Machine:
    """The machine with the bandwidth between servers that was given, if one was."""
    if not assumptions.link_bandwidth:
        return machine
    *inner, outer = machine.levels
    return replace(machine, levels=(*inner, replace(outer, bandwidth=assumptions.link_bandwidth)))


def _most_groups(groups: Sequence[GroupUse]) -> list[int]:
    """Sizes of the groups of the rank that has most members to link."""
    sizes: dict[int, list[int]] = {}
    for group in groups:
        for rank in group.ranks:
            sizes.setdefault(rank, []).append(len(group.ranks))
    return max(sizes.values(), key=sum, default=list[int]())


def _notes(
    old: Holdings, alternatives: Sequence[Alternative], no_search: str, moves: Resharding | None
) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in old.unknown.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {reason}"
    if old.missing:
        kind = "dump" if old.seen else "begin dump"
        stages = numbered_text("stage", old.missing)
        yield f"no {kind} of {stages}: nothing is known of what its ranks hold"
    if moves is None and not old.reports:
        yield "without a begin dump there is no plan for other devices, so what moves is not known"
    if not alternatives:
        return
    plan = alternatives[0].plan
    if no_search:
        yield f"strategies were scaled, data parallelism first, not searched: {no_search}"
    if plan.kept:
        names = ", ".join(sorted({node.op for node in plan.kept}))
        yield f"{len(plan.kept)} operators keep strategies that do not fit: {names}"
    if plan.accepted is not True:
        reports = plan.holdings.reports.values()
        findings = [item.message for report in reports for item in report.findings]
        first = next(iter(findings), "a part is unknown")
        word = "refuse" if plan.accepted is False else "perhaps refuse"
        yield f"MindSpore would {word} this plan: {first}"
