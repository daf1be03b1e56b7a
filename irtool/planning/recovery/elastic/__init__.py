"""Re-planning: devices came or went, and a running network needs strategies for the others.

The fastest plan for the new number of devices may want every weight elsewhere and every operator
compiled anew; a plan near the old one is slower a step, but there sooner.  So what a plan costs to
get to (bytes that devices fetch, operators whose slices are others) is paid off over the steps that
it will run, its horizon, and added to the step:

    seconds a step + (fetched bytes / bandwidth + compilation) / horizon

Each horizon has an exact optimum, by the same tables and search as any plan.  Horizons from short
to endless give plans from the nearest to the fastest; those that no other beats in everything are
the list that a person chooses from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.planning.cost.holdings import StageDumps, holdings, stages_of
from irtool.planning.plans.plan import Plan
from irtool.planning.recovery.elastic.target import (
    Choices,
    Point,
    Target,
    best_over,
    fetch_bandwidth,
    target_of,
)
from irtool.planning.search.device_counts import device_count_problem, legal_counts
from irtool.planning.search.effort import EffortName
from irtool.planning.search.problem import planned_context
from irtool.planning.search.tables import CannotPlan, Given
from irtool.sharding.network.context import LARGEST_WORLD, ParallelContext

HORIZON = 10_000
"""Steps that a plan is taken to run for where nobody says."""
MOST_COUNTS = 3
"""Numbers of devices that are tried where nobody says which."""


@dataclass(frozen=True, eq=False)
class ElasticPlan(Shown):
    """Plans for other devices than those that a network ran on.

    Attributes:
        plans: the chosen plan, by stage; those of all stages are one plan.
        points: what there was to choose from, the fastest first; ``chosen`` is the place of the
            chosen one.
        horizon: steps that the choice is for.
        bandwidth: bytes a second at which a device fetches.
        lost: ranks that are gone; ``devices``: by new rank the old one whose device plays it (None:
            a new device). Survivors keep their order.
        legal: numbers of devices that MindSpore accepts, up to those that are there.
        operators: how many have a strategy, in all stages.
        why: why it is that number of devices.
        seconds: CPU time of all tables and searches.
    """

    plans: Mapping[int, Plan]
    points: tuple[Point, ...]
    chosen: int
    horizon: float
    bandwidth: float
    lost: tuple[int, ...]
    devices: tuple[int | None, ...]
    legal: tuple[int, ...]
    operators: int
    why: str
    seconds: float

    @property
    def point(self) -> Point:
        """The plan that was chosen, as a point with its costs."""
        return self.points[self.chosen]

    @property
    def best_over(self) -> tuple[tuple[float, float] | None, ...]:
        """By point for which horizons it is the cheapest; None: for none."""
        return best_over(self.points, self.bandwidth)

    @property
    def best_with_more(self) -> Point | None:
        """The cheapest one over the horizon with more devices than the chosen one."""
        more = [point for point in self.points if point.devices > self.point.devices]
        seconds = {point: point.seconds_over(self.horizon, self.bandwidth) for point in more}
        return min(more, key=seconds.__getitem__, default=None)


def replan(
    begin: Dump | StageDumps,
    context: ParallelContext,
    machine: Machine,
    *,
    lost: Sequence[int] = (),
    added: int = 0,
    to: int | None = None,
    horizon: float = HORIZON,
    memory_limit: int | None = None,
    pinned: Mapping[Node, Given] | None = None,
    effort: EffortName = "default",
) -> ElasticPlan:
    """Plan for the devices that are left, or for others, from what ran before.

    Without ``to`` the largest legal numbers of devices are tried, and the largest power of two;
    the choice among all their plans is the one that is cheapest over the horizon.

    Args:
        begin: the begin dump with the strategies of the run; of a pipeline those of its stages.
        context: devices and options of the run.
        machine: what things cost.
        lost: ranks whose devices are gone.
        added: devices that joined; they hold nothing.
        to: devices to go on with.
        horizon: steps that the plan will run for: the more, the more may be moved and compiled
            for a faster step.
        memory_limit: bytes of one device.
        pinned: strategies that must be, by node of the dumps.
        effort: how many strategies of operators are looked at.

    Returns:
        The chosen plan, its dump and context included, and the list that it was chosen from.

    Raises:
        CannotPlan: a rank does not exist, the run had no complete strategies, or no number of
            devices is legal; the message says what would have to change.
    """
    machine = replace(machine, overlap=0.0)  # its search adds up what nothing hides
    left = _survivors(context, lost)
    available: list[int | None] = [*left, *[None] * added]
    counts, legal, why = _counts(context, to, len(available))
    begins = stages_of(begin, context)
    old = holdings(begins, context)
    if to is not None:
        available += [None] * (to - len(available))
    kinds: list[Target] = []
    refused = ""
    for count in counts:
        try:
            kinds.append(
                target_of(
                    begins, context, machine, old, count, available[:count], pinned or {}, effort
                )
            )
            kinds[-1].fill(memory_limit)
        except CannotPlan as error:
            kinds = [kind for kind in kinds if kind.plans]
            refused = refused or str(error)
    options = [(kind, point, choices) for kind in kinds for point, choices in kind.plans]
    if not options:
        raise CannotPlan(refused)
    kept = _best(options)
    bandwidth = fetch_bandwidth(machine)
    chosen = min(
        range(len(kept)), key=lambda index: kept[index][1].seconds_over(horizon, bandwidth)
    )
    kind, _, choices = kept[chosen]
    elapsed = sum(kind.seconds for kind in kinds)
    plans = kind.plans_of(choices, memory_limit, elapsed)
    return ElasticPlan(
        plans,
        tuple(point for _, point, _ in kept),
        chosen,
        horizon,
        bandwidth,
        tuple(sorted(set(lost))),
        tuple(available[: kind.count]),
        legal,
        kind.operators,
        why,
        elapsed,
    )


# -- devices -------------------------------------------------------------------------------------


def _survivors(context: ParallelContext, lost: Sequence[int]) -> list[int]:
    wrong = [rank for rank in lost if not 0 <= rank < context.devices]
    if wrong:
        raise CannotPlan(
            f"there is no rank {wrong[0]}: the run has {context.devices} devices, from rank 0"
        )
    survivors = [rank for rank in range(context.devices) if rank not in set(lost)]
    if not survivors:
        raise CannotPlan("all devices are lost")
    return survivors


def _counts(
    context: ParallelContext, to: int | None, available: int
) -> tuple[list[int], tuple[int, ...], str]:
    """Numbers of devices to try, all legal ones, and why these."""
    loaded = replace(context, search="sharding_propagation")
    if to is not None:
        planned_context(context, to)  # says what is wrong with the number
    legal = tuple(legal_counts(min(max(available, to or 0), LARGEST_WORLD), loaded))
    if to is not None:
        more = to - available
        return [to], legal, f"as asked for, {more} of them new" if more > 0 else "as asked for"
    if not legal:
        raise CannotPlan(f"no number of devices up to {available} is legal here")
    powers = [count for count in legal if not count & (count - 1)]
    counts = list(dict.fromkeys([*legal[: MOST_COUNTS - 1], *powers[:1]]))
    idle = available - legal[0]
    why = f"of {available} devices that are left, {legal[0]} can be used"
    if device_count_problem(available, loaded) and idle:
        why += f": {device_count_problem(available, loaded)}"
    return counts, legal, why


def _best(
    options: Sequence[tuple[Target, Point, Choices]],
) -> list[tuple[Target, Point, Choices]]:
    """Those that no other one beats, and the fastest for each number of devices; fastest first."""
    once: dict[Point, tuple[Target, Point, Choices]] = {}
    for option in options:
        once.setdefault(replace(option[1], horizon=0.0), option)
    points = list(once)
    kept = [
        once[point]
        for point in points
        if once[point][1].horizon == inf or not any(other.beats(point) for other in points)
    ]
    return sorted(kept, key=lambda option: (option[1].seconds, option[1].fetched_bytes))
