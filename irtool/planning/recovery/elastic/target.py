"""Plans for one number of devices, from the fastest to the nearest to what ran before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf
from typing import TypeVar

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.cost.holdings import Holdings, StageDumps
from irtool.planning.cost.kept import FIXED
from irtool.planning.limits.around import Near, around_the_best
from irtool.planning.limits.memory import Limited, search
from irtool.planning.limits.modes import plain_modes
from irtool.planning.plans.plan import Plan, plan_of_choices
from irtool.planning.recovery.elastic.transition import COMPILE_SECONDS, Extra, Extras, paid
from irtool.planning.recovery.fetch import Fetch
from irtool.planning.recovery.scale import scaled_plan
from irtool.planning.search.effort import EFFORTS, EffortName
from irtool.planning.search.exact import value_of
from irtool.planning.search.known import Known
from irtool.planning.search.problem import Problem, planned_context, problem_of
from irtool.planning.search.search import Search, Solution
from irtool.planning.search.shared_starts import seconds_above
from irtool.planning.search.tables import CannotPlan, Given, Model, model_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.sharded_nodes import primitive

HORIZONS = (1e6, 1e5, 1e4, 1e3, 1e2, 10.0, 1.0)
"""Horizons of the list, beside the endless one: there nothing but the step counts."""
COUNTED = ((1, 1, 1), (1, 0, 0), (0, 1, 1))
"""What of a transition counts: bytes fetched, operators compiled, operators changed."""


@dataclass(frozen=True, slots=True)
class Point:
    """A plan to choose from.

    Attributes:
        devices: that it uses.
        horizon: steps that it is best for; infinite: the fastest plan for these devices.
        seconds: a step, under the cost model; of a pipeline that of its slowest stage.
        fetched_bytes: that all devices together fetch.
        recompiled: operators whose slices are others than before.
        changed: operators whose strategy is not the old one fitted to the number of devices.
    """

    devices: int
    horizon: float
    seconds: float
    fetched_bytes: int
    recompiled: int
    changed: int

    @property
    def fetched_per_device(self) -> float:
        """Bytes that a device fetches, on average."""
        return self.fetched_bytes / self.devices

    def seconds_over(self, horizon: float, bandwidth: float) -> float:
        """Seconds a step, with what it costs to get there paid off over a horizon."""
        return self.seconds + self.seconds_before(bandwidth) / horizon

    def seconds_before(self, bandwidth: float) -> float:
        """Seconds until the plan runs: bytes fetched, operators compiled."""
        return self.fetched_per_device / bandwidth + COMPILE_SECONDS * self.recompiled

    def beats(self, other: Point) -> bool:
        """Whether it is no worse in anything."""
        mine = (self.seconds, self.fetched_bytes, self.recompiled, self.changed)
        theirs = (other.seconds, other.fetched_bytes, other.recompiled, other.changed)
        close = all(a <= b * (1 + 1e-9) for a, b in zip(mine, theirs, strict=True))
        return close and mine != theirs


def best_over(points: Sequence[Point], bandwidth: float) -> tuple[tuple[float, float] | None, ...]:
    """For which horizons, from 1 to endless, each point is the cheapest; None: for none.

    Args:
        points: plans to choose from.
        bandwidth: bytes a second at which a device fetches.

    Returns:
        the first and the last step count of each, in the order of the points.
    """
    costs = [(point.seconds, point.seconds_before(bandwidth)) for point in points]
    horizons: list[tuple[float, float] | None] = []
    for index, (step, before) in enumerate(costs):
        least, most = 1.0, inf
        for other, (its_step, its_before) in enumerate(costs):
            if its_step == step:
                beaten = (its_before, other) < (before, index)
                most = 0.0 if beaten else most
            elif its_step > step:
                least = max(least, (before - its_before) / (its_step - step))
            else:
                most = min(most, (its_before - before) / (step - its_step))
        horizons.append((least, most) if least < most else None)
    return tuple(horizons)


@dataclass(frozen=True, eq=False)
class Stage:
    """What one stage is searched with; ``fitted``: the old strategies, for these devices."""

    problem: Problem
    fitted: Mapping[Node, Given]
    search: Search
    extras: tuple[Extra, ...]

    @property
    def model(self) -> Model:
        """The tables that are searched."""
        return self.search.model


Choices = Mapping[int, tuple[int, ...]]
"""By stage."""
Found = TypeVar("Found")


def best_along(horizons: Sequence[float], find: Callable[[float], Found]) -> list[Found]:
    """What is the best for each horizon.

    What a choice costs is linear in the inverse of the horizon, so the least of all choices is
    concave in it: a choice that is the best for two horizons is the best for all between them.

    Args:
        horizons: in order.
        find: the best for one of them.
    """
    found = {place: find(horizons[place]) for place in {0, len(horizons) - 1}}

    def between(first: int, last: int) -> None:
        if last - first < 2:
            return
        if found[first] == found[last]:
            found.update(dict.fromkeys(range(first + 1, last), found[first]))
            return
        middle = (first + last) // 2
        found[middle] = find(horizons[middle])
        between(first, middle)
        between(middle, last)

    between(0, len(horizons) - 1)
    return [found[place] for place in range(len(horizons))]


@dataclass(eq=False)
class Target:
    """Plans for a number of devices.

    Attributes:
        count: of them.
        bandwidth: bytes a second at which a device fetches.
        stages: what they are searched with.
        seconds: CPU time of tables and searches up to now.
        plans: what was found.
        bounds: by stage of the fastest one.
    """

    count: int
    bandwidth: float
    stages: Mapping[int, Stage]
    seconds: float = 0.0
    plans: list[tuple[Point, Choices]] = field(default_factory=list[tuple[Point, Choices]])
    bounds: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def operators(self) -> int:
        """How many have a strategy, in all stages."""
        return sum(
            primitive(node) not in FIXED
            for stage in self.stages.values()
            for node in stage.model.nodes
        )

    def fill(self, limit: int | None) -> None:
        """The best plan of each horizon, whatever of the transition counts."""
        begun = time.process_time()
        fastest: dict[int, tuple[int, ...]] = {}
        for number, stage in self.stages.items():
            found = search(stage.model, limit)
            fastest[number], self.bounds[number] = found.choices, found.bound
        self.plans.append((self.point(fastest, inf), fastest))
        columns = [
            best_along(HORIZONS, partial(self._cheapest, limit, weights)) for weights in COUNTED
        ]
        for horizon, row in zip(HORIZONS, zip(*columns, strict=True), strict=True):
            self.plans += [(self.point(choices, horizon), choices) for choices in row]
        self.seconds += time.process_time() - begun

    def _cheapest(
        self, limit: int | None, weights: tuple[int, int, int], horizon: float
    ) -> Choices:
        """The best plan of a horizon."""
        choices: dict[int, tuple[int, ...]] = {}
        for number, stage in self.stages.items():
            more = paid(stage.extras, horizon, weights, self.count, self.bandwidth)
            modes = plain_modes(stage.model, more)
            choices[number] = Limited(stage.search, modes).cheapest(limit).choices
        return choices

    def point(self, choices: Choices, horizon: float) -> Point:
        """What choices cost, and what it costs to get there."""
        seconds, sums = 0.0, [0.0, 0.0, 0.0]
        for number, stage in self.stages.items():
            own = choices[number]
            model = stage.model
            own_seconds = value_of(own, model.unary, model.pairs()) + model.constant
            seconds = max(seconds, own_seconds + seconds_above(model, own))
            for extra, choice in zip(stage.extras, own, strict=True):
                for index, values in enumerate((extra.fetched, extra.recompiled, extra.changed)):
                    sums[index] += float(values[choice])
        return Point(self.count, horizon, seconds, int(sums[0]), int(sums[1]), int(sums[2]))

    def plans_of(self, choices: Choices, limit: int | None, elapsed: float) -> dict[int, Plan]:
        """The plans of the stages."""
        return {
            number: plan_of_choices(
                stage.model,
                Solution(choices[number], self.bounds[number], stage.search.rounds),
                stage.problem.current,
                limit,
                elapsed,
                start=stage.fitted,
            )
            for number, stage in self.stages.items()
        }


def target_of(
    begins: StageDumps,
    context: ParallelContext,
    machine: Machine,
    old: Holdings,
    count: int,
    devices: Sequence[int | None],
    pinned: Mapping[Node, Given],
    effort: EffortName = "default",
) -> Target:
    """The search for some number of devices.

    Args:
        begins: begin dumps by stage.
        context: that the run was compiled under.
        machine: that its costs are of.
        old: who held what.
        count: devices of the new plan.
        devices: by new rank the old rank whose device plays it; None: a new device.
        pinned: strategies that must be, by node of the begin dumps.
        effort: how much is looked at.

    Raises:
        CannotPlan: nothing is known of what ran.
    """
    target = planned_context(context, count)
    stages: dict[int, Stage] = {}
    seconds = 0.0
    for number, dump in sorted(begins.items()):
        own = replace(target, rank=number * target.stage_size)
        problem = problem_of(dump, replace(context, rank=number * context.stage_size), own)
        if not problem.current:
            raise CannotPlan(
                "this dump has no strategies, so nothing is known of what ran: without --lost, a "
                "new plan can be made for any number of devices"
            )
        fitted = _fitted(problem)
        fixed = {
            problem.twins[node]: given for node, given in pinned.items() if node in problem.twins
        }
        begun = time.process_time()
        model = _model(problem, machine, fitted, fixed, effort)
        ranks = own.stage_ranks
        fetch = Fetch(ranks, tuple(devices[rank] for rank in ranks))
        extras = Extras(problem, fitted, model, fetch, old)
        stages[number] = Stage(problem, fitted, Search.of(model), extras.all())
        seconds += time.process_time() - begun
    return Target(count, fetch_bandwidth(machine), stages, seconds)


def _model(
    problem: Problem,
    machine: Machine,
    fitted: Mapping[Node, Given],
    fixed: Mapping[Node, Given],
    effort: EffortName,
) -> Model:
    """The tables of a stage, around the best strategies where not all are looked at."""
    known = Known()

    def make(near: Near) -> Model:
        return model_of(
            problem.structure, machine, fitted, fixed,
            near=near, effort=EFFORTS[effort], known=known,
        )  # fmt: skip

    return around_the_best(make, None)[0]


def _fitted(problem: Problem) -> dict[Node, Given]:
    """The old strategies, fitted to the new number of devices where they have to be."""
    report = problem.report
    if report is None or problem.old.stage_size == problem.target.stage_size:
        return dict(problem.current)
    scaled = scaled_plan(problem.dump, report, problem.target)
    fitted: dict[Node, Given] = {}
    for old, new in zip(problem.dump.nodes(), scaled.dump.nodes(), strict=True):
        twin = problem.twins[old]
        strategy = new.in_strategy
        if twin in problem.current and strategy is not None and old not in scaled.failed:
            fitted[twin] = (strategy, None)
    return fitted


def fetch_bandwidth(machine: Machine) -> float:
    """Bytes a second at which a device fetches: the slowest of its links.

    Args:
        machine: with its links.
    """
    return min(level.bandwidth for level in machine.levels)
