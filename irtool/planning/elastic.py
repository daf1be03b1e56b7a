"""Re-planning: devices came or went, and a running network needs strategies for the others.

The fastest plan for the new number of devices may want every weight elsewhere and every operator
compiled anew; a plan near the old one is slower a step, but there sooner.  So what a plan costs to
get to (bytes that devices fetch, operators whose slices or strategies are others) is paid off over
the steps that it will run, its horizon, and added to the step:

    seconds a step + (fetched bytes / bandwidth + compilation) / horizon

Each horizon has an exact optimum, by the same tables and search as any plan.  Horizons from short
to endless give plans from the nearest to the fastest; those that no other beats in everything are
the list that a person chooses from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from irtool.cluster.machine import Machine
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.cost_tables import CannotPlan, Given, Model, model_of
from irtool.planning.cost_weights import held_weight
from irtool.planning.device_counts import device_count_problem, legal_counts
from irtool.planning.exact import Floats, value_of
from irtool.planning.fetch import Boxes, Fetch
from irtool.planning.holdings import Holdings, StageDumps, holdings, stages_of
from irtool.planning.plan import Plan, told
from irtool.planning.plan_memory import Limited
from irtool.planning.plan_search import Found, Search
from irtool.planning.plan_structure import FIXED, Parameter
from irtool.planning.plan_ways import plain_ways
from irtool.planning.problem import Problem, planned_context, problem_of
from irtool.planning.scale import scaled_plan
from irtool.sharding.judgement import Judgement
from irtool.sharding.layout import Shape
from irtool.sharding.network.care import primitive
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import OperatorReport

HORIZON = 10_000
"""Steps that a plan is taken to run for where nobody says."""
HORIZONS = (inf, 1e6, 1e5, 1e4, 1e3, 1e2, 10.0, 1.0)
"""Horizons of the list; endless: nothing but the step counts."""
COMPILE_SECONDS = 0.044
"""Of the compiler's front end for one operator (measured on a slow machine)."""
MOST_COUNTS = 3
"""Numbers of devices that are tried where nobody says which."""


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
        """The chosen one."""
        return self.points[self.chosen]


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

    Returns:
        The chosen plan, its dump and context included, and the list that it was chosen from.

    Raises:
        CannotPlan: a rank does not exist, the run had no complete strategies, or no number of
            devices is legal; the message says what would have to change.
    """
    started = time.process_time()
    left = _survivors(context, lost)
    available: list[int | None] = [*left, *[None] * added]
    counts, legal, why = _counts(context, to, len(available))
    begins = stages_of(begin, context)
    old = holdings(begins, context)
    if to is not None:
        available += [None] * (to - len(available))
    kinds: list[_Target] = []
    refused = ""
    for count in counts:
        try:
            kinds.append(
                _target(begins, context, machine, old, count, available[:count], pinned or {})
            )
            kinds[-1].fill(memory_limit)
        except CannotPlan as error:
            kinds = [each for each in kinds if each.plans]
            refused = refused or str(error)
    options = [(kind, point, choices) for kind in kinds for point, choices in kind.plans]
    if not options:
        raise CannotPlan(refused)
    kept = _best(options)
    bandwidth = fetch_bandwidth(machine)
    chosen = min(range(len(kept)), key=lambda at: kept[at][1].seconds_over(horizon, bandwidth))
    kind, _, choices = kept[chosen]
    elapsed = time.process_time() - started
    plans = kind.told(choices, memory_limit, elapsed)
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


def fetch_bandwidth(machine: Machine) -> float:
    """Bytes a second at which a device fetches: the slowest of its links."""
    return min(level.bandwidth for level in machine.levels)


# -- devices -------------------------------------------------------------------------------------


def _survivors(context: ParallelContext, lost: Sequence[int]) -> list[int]:
    wrong = [rank for rank in lost if not 0 <= rank < context.devices]
    if wrong:
        raise CannotPlan(
            f"there is no rank {wrong[0]}: the run has {context.devices} devices, from rank 0"
        )
    found = [rank for rank in range(context.devices) if rank not in set(lost)]
    if not found:
        raise CannotPlan("all devices are lost")
    return found


def _counts(
    context: ParallelContext, to: int | None, available: int
) -> tuple[list[int], tuple[int, ...], str]:
    """Numbers of devices to try, all legal ones, and why these."""
    loaded = replace(context, search="sharding_propagation")
    legal = tuple(legal_counts(max(available, to or 0), loaded))
    if to is not None:
        planned_context(context, to)  # says what is wrong with the number
        more = to - available
        return [to], legal, f"as asked for, {more} of them new" if more > 0 else "as asked for"
    if not legal:
        raise CannotPlan(f"no number of devices up to {available} is legal here")
    powers = [count for count in legal if not count & (count - 1)]
    found = list(dict.fromkeys([*legal[: MOST_COUNTS - 1], *powers[:1]]))
    idle = available - legal[0]
    why = f"of {available} devices that are left, {legal[0]} can be used"
    if device_count_problem(available, loaded) and idle:
        why += f": {device_count_problem(available, loaded)}"
    return found, legal, why


# -- plans for one number of devices -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Extra:
    """What the candidates of an operator cost to get to: bytes fetched, slices and form new."""

    fetched: Floats
    recompiled: Floats
    changed: Floats


@dataclass(frozen=True, eq=False)
class _Stage:
    problem: Problem
    fitted: Mapping[Node, Given]
    search: Search
    extras: tuple[_Extra, ...]

    @property
    def model(self) -> Model:
        return self.search.model


Choices = Mapping[int, tuple[int, ...]]
"""By stage."""


@dataclass(eq=False)
class _Target:
    count: int
    bandwidth: float
    stages: Mapping[int, _Stage]
    plans: list[tuple[Point, Choices]]
    bounds: dict[int, float]

    @property
    def operators(self) -> int:
        return sum(
            primitive(node) not in FIXED
            for stage in self.stages.values()
            for node in stage.model.nodes
        )

    def fill(self, limit: int | None) -> None:
        """The best plan of each horizon, whatever of the way there counts."""
        for horizon in HORIZONS:
            for weights in ((1, 1, 1), (1, 0, 0), (0, 1, 1)) if horizon < inf else ((0, 0, 0),):
                choices: dict[int, tuple[int, ...]] = {}
                for number, stage in self.stages.items():
                    more = _paid(stage, horizon, weights, self.count, self.bandwidth)
                    ways = plain_ways(stage.model, more)
                    found = Limited(stage.search, ways).cheapest(limit)
                    choices[number] = found.choices
                    if horizon == inf:
                        self.bounds[number] = found.bound
                point = self.point(choices, horizon)
                self.plans.append((point, choices))

    def point(self, choices: Choices, horizon: float) -> Point:
        """What choices cost, and what it costs to get there."""
        seconds, sums = 0.0, [0.0, 0.0, 0.0]
        for number, stage in self.stages.items():
            own = choices[number]
            model = stage.model
            seconds = max(seconds, value_of(own, model.unary, model.pairs()) + model.constant)
            for extra, choice in zip(stage.extras, own, strict=True):
                for at, values in enumerate((extra.fetched, extra.recompiled, extra.changed)):
                    sums[at] += float(values[choice])
        return Point(self.count, horizon, seconds, int(sums[0]), int(sums[1]), int(sums[2]))

    def told(self, choices: Choices, limit: int | None, elapsed: float) -> dict[int, Plan]:
        """The plans of the stages."""
        return {
            number: told(
                stage.model,
                Found(choices[number], self.bounds[number], stage.search.rounds),
                stage.problem.current,
                limit,
                elapsed,
                start=stage.fitted,
            )
            for number, stage in self.stages.items()
        }


def _target(
    begins: StageDumps,
    context: ParallelContext,
    machine: Machine,
    old: Holdings,
    count: int,
    devices: Sequence[int | None],
    pinned: Mapping[Node, Given],
) -> _Target:
    target = planned_context(context, count)
    stages: dict[int, _Stage] = {}
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
        model = model_of(problem.structure, machine, fitted, fixed)
        ranks = own.stage_ranks
        fetch = Fetch(ranks, tuple(devices[rank] for rank in ranks))
        extras = _Extras(problem, fitted, model, fetch, old)
        stages[number] = _Stage(problem, fitted, Search(model), extras.all())
    return _Target(count, fetch_bandwidth(machine), stages, [], {})


def _fitted(problem: Problem) -> dict[Node, Given]:
    """The old strategies, fitted to the new number of devices where they have to be."""
    report = problem.report
    if report is None or problem.old.stage_size == problem.target.stage_size:
        return dict(problem.current)
    scaled = scaled_plan(problem.dump, report, problem.target)
    found: dict[Node, Given] = {}
    for old, new in zip(problem.dump.nodes(), scaled.dump.nodes(), strict=True):
        twin = problem.twins[old]
        if twin in problem.current and new.in_strategy is not None and old not in scaled.failed:
            found[twin] = (tuple(tuple(row) for row in new.in_strategy), None)  # type: ignore[arg-type, misc, union-attr]
    return found


class _Extras:
    """Arrays of what candidates cost to get to; operators that are alike share theirs."""

    def __init__(
        self,
        problem: Problem,
        fitted: Mapping[Node, Given],
        model: Model,
        fetch: Fetch,
        old: Holdings,
    ) -> None:
        self.problem = problem
        self.fitted = fitted
        self.model = model
        self.fetch = fetch
        self.old = old.by_name()
        self._known: dict[object, _Extra] = {}
        reports = problem.report.by_node if problem.report is not None else {}
        self._reports: dict[Node, OperatorReport] = {
            problem.twins[node]: item for node, item in reports.items() if node in problem.twins
        }
        self._owned: dict[Node, list[tuple[Parameter, Boxes]]] = {}
        for parameter in problem.structure.parameters:
            if parameter.owner is not None and parameter.owner.node is not None:
                held = fetch.held(self.old.get(parameter.name))
                self._owned.setdefault(parameter.owner.node, []).append((parameter, held))

    def all(self) -> tuple[_Extra, ...]:
        """By variable of the model."""
        return tuple(self._of(at) for at in range(len(self.model.nodes)))

    def _of(self, at: int) -> _Extra:
        node, candidates = self.model.nodes[at], self.model.candidates[at]
        report = self._reports.get(node)
        slices = None
        if report is not None:
            slices = (report.judgement.input_slices, report.judgement.output_slices)
        owned = self._owned.get(node, [])
        fitted = self.fitted.get(node)
        shown = tuple(
            (p.owner.side, p.owner.index, p.element, p.states, p.weight.shape, held)
            for p, held in owned
            if p.owner is not None
        )
        key = (id(candidates), slices, fitted, shown)
        found = self._known.get(key)
        if found is None:
            judgements = [item.judgement for item in candidates.items]
            found = self._known[key] = _Extra(
                np.array([self._fetched(owned, each) for each in judgements]),
                np.array([float(slices != _slices(each)) for each in judgements]),
                np.array(
                    [
                        float(
                            primitive(node) not in FIXED
                            and fitted is not None
                            and (item.strategy, item.out_strategy) != fitted
                        )
                        for item in candidates.items
                    ]
                ),
            )
        return found

    def _fetched(self, owned: Sequence[tuple[Parameter, Boxes]], judgement: Judgement) -> float:
        total = 0
        for parameter, held in owned:
            weight = held_weight(self.problem.structure, parameter, judgement)
            if weight.layout is None:
                continue
            shared = len(weight.gather_ranks or (0,))
            elements = self.fetch.elements(weight.layout, shared, held)
            total += elements * (parameter.element + parameter.states)
        return float(total)


def _slices(judgement: Judgement) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    return judgement.input_slices, judgement.output_slices


def _paid(
    stage: _Stage, horizon: float, weights: tuple[int, int, int], count: int, bandwidth: float
) -> list[Floats] | None:
    """Seconds a step that the way to each candidate costs; equal operators share an array."""
    if horizon == inf:
        return None
    fetched, recompiled, changed = weights
    known: dict[int, Floats] = {}
    for extra in stage.extras:
        if id(extra) not in known:
            way = fetched * extra.fetched / count / bandwidth + COMPILE_SECONDS * (
                recompiled * extra.recompiled + changed * extra.changed
            )
            known[id(extra)] = way / horizon
    return [known[id(extra)] for extra in stage.extras]


def _best(
    options: Sequence[tuple[_Target, Point, Choices]],
) -> list[tuple[_Target, Point, Choices]]:
    """Those that no other one beats, and the fastest for each number of devices; fastest first."""
    once: dict[Point, tuple[_Target, Point, Choices]] = {}
    for option in options:
        once.setdefault(replace(option[1], horizon=0.0), option)
    points = list(once)
    kept = [
        once[point]
        for point in points
        if once[point][1].horizon == inf or not any(other.beats(point) for other in points)
    ]
    return sorted(kept, key=lambda each: (each[1].seconds, each[1].fetched_bytes))
