"""A strategy for every operator: the cheapest under the cost model, with a proof of how cheap.

The search is exact: tables of all choices (``cost_tables``), their least sum (``exact``).  Prices
of redistributions are lower bounds at first; those that the best choice uses are asked for, and the
search goes on until it uses no other.  Then the choice is optimal under the exact prices, too:
no other choice costs less even under prices that are too low.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from irtool.cluster.machine import Machine
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import plural, share_text
from irtool.operators.call import Strategy
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import structure_of
from irtool.planning.limits.around import Near, around_the_best
from irtool.planning.limits.memory import Limited, TooLittleMemory, search
from irtool.planning.limits.modes import Choice, choice_of
from irtool.planning.limits.without_widest import least_without_widest
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.border import Border, Share, share_of
from irtool.planning.plans.compatible import compatible
from irtool.planning.plans.decisions import DecidedModes, Decisions
from irtool.planning.plans.onto import Onto, taken_over
from irtool.planning.plans.overlapping import Tried, overlapped
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.plans.ties import (
    Priced,
    communication_of,
    is_tie,
    no_dearer,
    with_slower_links,
)
from irtool.planning.search.arithmetic import least_arithmetic
from irtool.planning.search.effort import EFFORTS, Effort, EffortName
from irtool.planning.search.known import Known
from irtool.planning.search.problem import (
    Carried,
    Problem,
    configured,
    left_alone,
    outside,
    pins,
    plain_dump,
    planned_context,
    problem_of,
)
from irtool.planning.search.search import Search, Solution
from irtool.planning.search.tables import (
    CannotPlan,
    Given,
    Hiding,
    Model,
    model_of,
)
from irtool.sharding.check import check, of_what_was_read
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.sharded_nodes import primitive
from irtool.syntax.collector import CollectorPause


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """What is planned for one operator.

    ``node`` stands in the plan's dump. ``before`` is None where the dump had no strategy. ``why``:
    why MindSpore's own strategy is all there is ("": there was a choice).
    """

    node: Node
    before: Strategy | None
    after: Strategy | None
    out_before: Strategy | None
    out_after: Strategy | None
    pinned: bool
    why: str = ""

    @property
    def changes(self) -> bool:
        """Whether it gets another strategy than it had; None after: nobody chose one."""
        changed = (self.before, self.out_before) != (self.after, self.out_after)
        return changed and self.after is not None


@dataclass(frozen=True, eq=False)
class Plan(Shown):
    """Strategies for the operators of a dump, what a step costs under them, and how good that is.

    Attributes:
        dump: the dump with the plan's strategies.
        context: that the plan is for.
        report: what ``check`` says of it.
        operators: every operator that has a strategy, in MindSpore's order.
        before: cost of what the dump had; None: it had no complete plan for these devices.
        after: cost of the plan.
        lower_bound: seconds that no plan under the same constraints can be below (where plans
            nearly tie, one of them is to communicate no dearer than the dump: ``plan_ties``);
            None: the search was MindSpore's, which knows none.
        memory_limit: bytes, if there is a limit.
        seconds: CPU time of tables and search.
        rounds: how often the search was run.
        notes: what the reader should know.
        onto: what was taken over from an old plan.
        border: what it costs that only a region was planned.
        decisions: what was decided beside strategies.
        algorithm: how it was searched.
        passed_over: cost of the fastest plan where it is not this one: see ``plan_ties``.
    """

    dump: Dump
    context: ParallelContext
    report: CheckResult
    operators: tuple[PlannedOperator, ...]
    before: StepCost | None
    after: StepCost
    lower_bound: float | None
    memory_limit: int | None
    seconds: float
    rounds: int
    notes: tuple[str, ...]
    onto: Onto | None = None
    border: Border | None = None
    decisions: Decisions | None = None
    algorithm: str = "exact"
    passed_over: StepCost | None = None

    @property
    def gap(self) -> float | None:
        """By what part of the bound the plan may be above the optimum; None: there is no bound."""
        if self.lower_bound is None:
            return None
        if self.lower_bound <= 0:
            return 0.0
        return max(0.0, self.after.seconds / self.lower_bound - 1)


def plan(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    *,
    devices: int | None = None,
    pinned: Mapping[Node, Strategy] | None = None,
    pinned_outputs: Mapping[Node, Strategy] | None = None,
    keep_configured: bool = False,
    region: frozenset[Node] | None = None,
    onto: tuple[Dump, ParallelContext] | None = None,
    memory_limit: int | None = None,
    decide_optimizer: bool = False,
    decide_recompute: bool = False,
    carried: Carried | None = None,
    effort: EffortName = "default",
) -> Plan:
    """Find the cheapest legal strategies.

    Args:
        dump: a begin dump, with strategies or without.
        context: what the dump was compiled under.
        machine: what things cost.
        devices: devices to plan for; None: those of the context.
        pinned: strategies that must be, by node of the dump.
        pinned_outputs: the out_strategy of some of these nodes.
        keep_configured: operators that users gave a strategy keep it.
        region: nodes of the dump to plan; all others keep what they have.
        onto: an old dump whose strategies stay where nothing changed, with its context.
        memory_limit: bytes of one device.
        decide_optimizer: whether optimizer parallel is decided weight by weight; else the context
            decides.
        decide_recompute: whether recomputation is decided operator by operator.
        carried: what the form can say in which the plan is handed over; None: everything.
        effort: how many strategies of operators are looked at: where some are left out, the lower
            bound counts arithmetic alone.

    Raises:
        CannotPlan: there is no such plan; the message says what would have to change.
    """
    carried = carried or Carried()
    target = planned_context(context, devices or context.devices)
    if decide_optimizer:
        target = replace(target, parallel_optimizer=False)
    problem = problem_of(dump, context, target, counts_all=decide_recompute)
    started = time.process_time()
    fixed = pins(problem, pinned or {}, pinned_outputs or {})
    if keep_configured:
        fixed = {**configured(problem), **fixed}
    fixed = {**left_alone(problem, carried.left), **fixed}
    tied = [[problem.twins[node] for node in nodes] for nodes in carried.tied]
    free = fixed
    if region is not None:
        fixed = {**outside(problem, {problem.twins[node] for node in region}), **fixed}
    taken = taken_over(problem, *onto) if onto is not None else None
    if taken is not None:
        taken = compatible(problem, machine, taken, fixed)
        kept = {problem.twins[node]: given for node, given in taken.kept.items()}
        fixed = {**kept, **fixed}
    searching = _Searching(
        problem, machine, carried, tuple(map(tuple, tied)), memory_limit, started,
        optimizer=decide_optimizer, recompute=decide_recompute, effort=EFFORTS[effort],
    )  # fmt: skip
    with CollectorPause.over(0):
        searching, model = searching.around_the_best(fixed)
        if machine.overlap:
            made = searching.overlapped(model, fixed)
        else:
            made = searching.plan(model)
            is_free = carried == Carried()
            if is_free and _keeps(made, problem, fixed):
                made = _as_it_was(made, problem)
            elif is_free and made.decisions is None:
                made = _untied(made, model, searching, fixed)
    border = None
    if region is not None:
        border = _border(dump, region, made, searching.plan(searching.model(free)))
    if model.left_out and made.lower_bound is not None:
        begun = time.process_time()
        bound = min(searching.least(fixed), made.after.seconds)
        spent = made.seconds + time.process_time() - begun
        made = replace(made, lower_bound=bound, seconds=spent)
    note = context.dataset_note(target.devices)
    notes = (*made.notes, note) if note else made.notes
    return replace(made, onto=taken, border=border, notes=notes)


@dataclass(frozen=True, eq=False)
class _Searching:
    """A problem, and everything that its plans are held to but strategies."""

    problem: Problem
    machine: Machine
    carried: Carried
    tied: tuple[tuple[Node, ...], ...]
    limit: int | None
    started: float
    optimizer: bool
    recompute: bool
    effort: Effort = EFFORTS["default"]
    near: Near = field(default_factory=dict[Node, Strategy])
    known: Known = field(default_factory=Known)

    def model(
        self,
        fixed: Mapping[Node, Given],
        hiding: Hiding | None = None,
        loose: Collection[Node] = (),
    ) -> Model:
        """The tables under strategies that must be, without operators that are ``loose``."""
        structure, current = self.problem.structure, self.problem.current
        return model_of(
            structure, self.machine, current, fixed, self.tied, outs=self.carried.outs,
            hiding=hiding, near=self.near, effort=self.effort, known=self.known, loose=loose,
        )  # fmt: skip

    def around_the_best(self, fixed: Mapping[Node, Given]) -> tuple[_Searching, Model]:
        """This search around the best strategies, where operators have too many; and its tables.

        Args:
            fixed: strategies that must be.
        """

        def make(near: Near) -> Model:
            return replace(self, near=near).model(fixed)

        model, near = around_the_best(make, self.limit)
        return replace(self, near=near), model

    def least(self, fixed: Mapping[Node, Given]) -> float:
        """Seconds that no plan is below, all strategies counted, under some that must be.

        What is hidden, and weights that are cut, cost less than tables of other plans say.
        """
        structure, machine = self.problem.structure, self.machine
        if machine.overlap or self.optimizer or not self.effort.bounds:
            return least_arithmetic(structure, machine)
        full = replace(self, effort=EFFORTS["full"], near={})
        return least_without_widest(
            structure, machine, lambda loose: full.model(fixed, loose=loose)
        )

    def plan(self, model: Model) -> Plan:
        """The plan of a model."""
        return _made(
            model, self.problem, self.limit, self.started,
            optimizer=self.optimizer, recompute=self.recompute,
        )  # fmt: skip

    def overlapped(self, model: Model, fixed: Mapping[Node, Given]) -> Plan:
        """The plan where computing hides communication.

        Raises:
            CannotPlan: something is to be decided whose part in it is not known.
        """
        if self.optimizer or self.recompute:
            raise CannotPlan(
                "what runs again and which weights are cut is decided for steps that hide nothing: "
                "leave out the overlap, or the decision"
            )

        def with_hiding(hiding: Hiding) -> Tried[Plan]:
            made = self.plan(self.model(fixed, hiding))
            return Tried(made, made.after, made.lower_bound or 0.0)

        best, bound = overlapped(with_hiding, self.machine.overlap, self._own(model))
        return replace(best.plan, lower_bound=bound)

    def _own(self, model: Model) -> Tried[Plan] | None:
        """The plan that the dump has, if it is within what is given."""
        own = model.own
        if own is None or any(not weight.agrees(own) for weight in model.shared):
            return None
        elapsed = time.process_time() - self.started
        made = plan_of_choices(
            model, Solution(own, 0.0, 0), self.problem.current, self.limit, elapsed
        )
        if self.limit is not None and made.after.memory.total > self.limit:
            return None
        return Tried(made, made.after, 0.0)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A plan, and the bytes of a device that the tables count for it."""

    plan: Plan
    bytes: float

    @property
    def above(self) -> float:
        """Bytes that a device holds beside those that the tables count."""
        return self.plan.after.memory.total - self.bytes


def _made(
    model: Model,
    problem: Problem,
    limit: int | None,
    started: float,
    *,
    optimizer: bool,
    recompute: bool,
) -> Plan:
    """The plan of a model, with what else is to be decided; it keeps the limit."""
    decided = None
    if optimizer or recompute:
        decided = DecidedModes(model, optimizer=optimizer, recompute=recompute)

    def searched(room: int | None) -> _Counted:
        if decided is not None:
            return _decided(model, problem, decided, room, started)
        solution = search(model, room)
        made = plan_of_choices(
            model, solution, problem.current, room, time.process_time() - started
        )
        return _Counted(made, model.memory_of(solution.choices))

    if limit is None:
        return searched(None).plan
    return replace(_within(limit, searched), memory_limit=limit)


def _within(limit: int, searched: Callable[[int], _Counted]) -> Plan:
    """The plan that a device can hold.

    The tables of a search add up by operator: they count no batch, no buffers, and each kept result
    in one layout. What a device holds (:class:`irtool.planning.plans.step.report.MemoryCost`) is
    known once a plan is whole; the search is told to leave that much room.

    Args:
        limit: bytes of a device.
        searched: the plan whose tables count so many bytes at most.

    Raises:
        TooLittleMemory: nothing that was found fits.
    """
    room, constant, bound, most, fewest = limit, 0, 0.0, math.inf, math.inf
    while True:
        try:
            made = searched(room)
        except TooLittleMemory as error:
            made = searched(math.ceil(error.fewest))
            fewest = min(fewest, made.plan.after.memory.total)
            if made.plan.after.memory.total > limit:
                raise TooLittleMemory(limit, fewest, error.least + constant, error.help) from None
        memory = made.plan.after.memory
        if room >= limit - constant:  # no plan that fits is below what was shown here
            bound = made.plan.lower_bound or 0.0
        if memory.total <= limit:
            break
        most, fewest = made.bytes - 1, min(fewest, memory.total)
        is_first = constant == 0 < memory.inputs + memory.other
        constant = memory.inputs + memory.other
        room = limit - constant if is_first else math.floor(limit - made.above)
    tried = list(_with_more_room(limit, searched, made, min(most, limit - made.above)))
    fitting = (candidate for candidate in tried if candidate.after.memory.total <= limit)
    best = min((made.plan, *fitting), key=lambda candidate: candidate.after.seconds)
    if min(most, limit - made.above) > limit:  # tables that count too much show less
        bound = min([bound, *(candidate.lower_bound or 0.0 for candidate in tried)])
    return replace(best, lower_bound=min(bound, best.after.seconds))


def _with_more_room(
    limit: int, searched: Callable[[int], _Counted], made: _Counted, most: float
) -> Iterator[Plan]:
    """Plans whose tables count more bytes than those of a plan that fits.

    Args:
        limit: bytes of a device.
        searched: the plan whose tables count so many bytes at most.
        made: a plan that fits.
        most: bytes that tables may count for a plan that fits.
    """
    low = made.bytes
    for _ in range(_HALVES):
        if most <= low * (1 + _SAME_ROOM) or made.plan.gap == 0:
            break
        room = math.floor(most)
        other = searched(room)
        yield other.plan
        if other.plan.after.memory.total <= limit:
            break
        most = (low + min(most, other.bytes)) / 2


_HALVES = 4
"""How often the room between a plan that fits and one that does not is halved."""
_SAME_ROOM = 1e-3
"""Part of a room by which another is no other."""


def _decided(
    model: Model, problem: Problem, decided: DecidedModes, limit: int | None, started: float
) -> _Counted:
    """The plan of a model, with what else is decided.

    That search does not know which buckets of fused collectives are opened by what it decides. So
    the plan in which nothing is decided is the answer where it costs less.
    """
    own = Search.of(model)
    choice = Limited(own, decided.modes, decided if decided.recompute else None).cheapest(limit)

    def counted(choice: Choice, rounds: int) -> _Counted:
        elapsed = time.process_time() - started
        decisions = decided.decided(choice)
        made = plan_of_choices(
            model,
            Solution(choice.choices, choice.bound, rounds),
            problem.current,
            limit,
            elapsed,
            recomputed=decisions.recomputed or (),
        )
        pairs = zip(model.structure.dump.nodes(), made.dump.nodes(), strict=True)
        after = decided.priced(made.after, choice, dict(pairs))
        if decisions.sharded:
            refuse_illegal(check(made.dump, replace(made.context, parallel_optimizer=True)))
        bound = min(choice.bound, after.seconds)
        above = decided.above(choice.choices, choice.modes) if decided.recompute else 0.0
        made = replace(made, after=after, decisions=decisions, lower_bound=bound)
        return _Counted(made, choice.held + above)

    best = counted(choice, own.rounds)
    if not best.plan.gap:
        return best
    try:
        plain = search(model, limit)
    except CannotPlan:
        return best
    modes = (0,) * len(plain.choices)
    undecided = choice_of(model, decided.modes, plain.choices, modes, choice.bound)
    other = counted(undecided, own.rounds + plain.rounds)
    held = other.plan.after.memory.total
    if limit is not None and held > max(limit, best.plan.after.memory.total):
        return best  # tables count less than a device holds
    return min(best, other, key=lambda counted: counted.plan.after.seconds)


def _untied(made: Plan, model: Model, searching: _Searching, fixed: Mapping[Node, Given]) -> Plan:
    """The plan, or if the dump's strategies nearly tie, one that communicates no dearer."""
    problem, started = searching.problem, searching.started
    before, limit, own = made.before, made.memory_limit, model.own
    if before is None or own is None or not is_tie(before, made.after):
        return made
    if limit is not None and before.memory.total > limit:
        return made
    if any(problem.current.get(node) != given for node, given in fixed.items()):
        return made  # the dump's strategies are not what is asked for: nothing to be near to

    def plan_with(solution: Solution) -> Plan:
        return plan_of_choices(
            model, solution, problem.current, limit, time.process_time() - started
        )

    def at_price(price: float) -> Priced:
        slower = with_slower_links(model.machine, price)
        solution = search(replace(searching, machine=slower).model(fixed), limit)
        return Priced(solution, plan_with(solution).after)

    fastest = Priced(Solution((), made.lower_bound or 0.0, made.rounds), made.after)
    best, bound = no_dearer(fastest, Priced(Solution(own, 0.0, made.rounds), before), at_price)
    untied = plan_with(replace(best.solution, bound=bound))
    if limit is not None and untied.after.memory.total > limit:
        return made
    if untied.after.seconds <= made.after.seconds * (1 + 1e-9):
        return untied
    saved = 1 - made.after.seconds / untied.after.seconds
    dearer = communication_of(made.after) / communication_of(before) - 1
    note = (
        f"a plan that saves {share_text(saved)} more of the step communicates {share_text(dearer)} "
        "dearer than the dump's strategies, and is not taken"
    )
    return replace(untied, notes=(*untied.notes, note), passed_over=made.after)


def _border(dump: Dump, region: frozenset[Node], made: Plan, other: Plan) -> Border:
    shares: list[Share] = []
    for candidate in (made, other):
        pairs = zip(dump.nodes(), candidate.dump.nodes(), strict=True)
        shares.append(share_of(candidate.after, {new for old, new in pairs if old in region}))
    count = sum(
        old in region and new in made.report.by_node
        for old, new in zip(dump.nodes(), made.dump.nodes(), strict=True)
    )
    return Border(count, *shares)


# -- the answer ----------------------------------------------------------------------------------


def plan_of_choices(
    model: Model,
    solution: Solution,
    current: Mapping[Node, Given],
    limit: int | None,
    elapsed: float,
    start: Mapping[Node, Given] | None = None,
    recomputed: Collection[Node] = (),
) -> Plan:
    """The plan of some choices.

    Args:
        model: the tables of the network.
        solution: a candidate for every variable, and the bound.
        current: strategies that the dump has, by node without strategies.
        limit: bytes of a device that the plan was to fit into; None: there was no limit.
        elapsed: CPU seconds of tables and search.
        start: strategies whose cost is the one before, where those of the dump fit other devices.
        recomputed: nodes of the model's dump that are to run again.

    Raises:
        CannotPlan: ``check`` refuses it.
    """
    structure = model.structure
    places: list[tuple[Node, int]] = []
    given: dict[Node, Given] = {}
    for variable, (node, item) in enumerate(model.chosen(solution.choices).items()):
        places.append((node, variable))
        if item.strategy is not None and primitive(node) not in FIXED:
            given[node] = (item.strategy, item.out_strategy)
    written = _written(model, given, recomputed)
    planned, report, after = written.dump, written.report, written.cost
    twins = dict(zip(structure.dump.nodes(), planned.nodes(), strict=True))
    bound = solution.bound
    if model.left_out:
        bound = least_arithmetic(structure, model.machine)
    operators = tuple(
        _planned(model, solution.choices, variable, twins[node], current.get(node))
        for node, variable in places
        if primitive(node) not in FIXED
    )
    before = start if start is not None else current
    named = ("before", id(before), id(model.machine))
    if named not in model.known.kept:
        model.known.kept[named] = (_before(model, before), before)
    cost, _ = cast("tuple[StepCost | None, object]", model.known.kept[named])
    return Plan(
        planned,
        structure.context,
        report,
        operators,
        cost,
        after,
        min(bound, after.seconds),
        limit,
        elapsed,
        solution.rounds,
        tuple(_notes(model, report)),
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """Strategies in the dump, what ``check`` says of that, and what it costs."""

    dump: Dump
    report: CheckResult
    cost: StepCost


def _written(model: Model, given: Mapping[Node, Given], recomputed: Collection[Node]) -> _Written:
    """Write strategies into the dump and price them: searches end in the same ones again and again.

    Raises:
        CannotPlan: ``check`` refuses it.
    """
    structure = model.structure
    named = (
        tuple(given.items()),
        frozenset(recomputed),
        id(model.machine),
        structure.micro_batches,
    )
    known = model.known.kept.get(named)
    if isinstance(known, _Written):
        return known
    planned = with_strategies(
        structure.dump,
        {node: strategy for node, (strategy, _) in given.items()},
        {node: out for node, (_, out) in given.items() if out is not None},
    )
    twins = dict(zip(structure.dump.nodes(), planned.nodes(), strict=True))
    report = of_what_was_read(check(planned, structure.context), planned)
    refuse_illegal(report)
    own = structure_of(planned, structure.context, {twins[node] for node in recomputed})
    made = _Written(planned, report, step_cost(own, report, model.machine))
    model.known.kept[named] = made
    return made


def refuse_illegal(report: CheckResult) -> None:
    """Refuse to give out what MindSpore would refuse.

    Args:
        report: what ``check`` says of the planned network.

    Raises:
        CannotPlan: it refuses an operator; the message names the first.
    """
    if report.accepted is False:
        first = next(item for item in report.findings if item.severity == "error")
        raise CannotPlan(
            f"MindSpore would refuse the plan for {first.op} in line {first.line}: "
            f"{first.message}; if the code asks for that, mend it there, else it is a fault of "
            "irtool"
        )


def _planned(
    model: Model, choices: tuple[int, ...], variable: int, node: Node, before: Given | None
) -> PlannedOperator:
    candidates = model.candidates[variable]
    item = candidates.items[choices[variable]]
    return PlannedOperator(
        node,
        before[0] if before is not None else None,
        item.strategy,
        before[1] if before is not None else None,
        item.out_strategy,
        model.nodes[variable] in model.pinned,
        candidates.why,
    )


def _before(model: Model, current: Mapping[Node, Given]) -> StepCost | None:
    """The cost of what the dump had, for the same devices; None if it was not complete or legal.

    In semi-auto mode what has no strategy gets MindSpore's own; else its search would decide.
    """
    structure = model.structure
    needed = [
        node
        for node, candidates in zip(model.nodes, model.candidates, strict=True)
        if len(candidates) > 1 and primitive(node) not in FIXED
    ]
    searches = structure.context.mode == "auto_parallel"
    given = bool(current) or any(
        judged.wanted.in_layout is not None for judged in structure.calls.values()
    )
    if not given or (searches and any(node not in current for node in needed)):
        return None
    old = with_strategies(
        structure.dump,
        {node: given[0] for node, given in current.items() if primitive(node) not in FIXED},
        {node: given[1] for node, given in current.items() if given[1] is not None},
    )
    report = check(old, structure.context)
    if report.accepted is False:
        return None
    own = structure_of(old, structure.context)
    return step_cost(own, report, model.machine)


def _notes(model: Model, report: CheckResult) -> list[str]:
    notes: list[str] = []
    whys: dict[str, int] = {}
    for candidates in model.candidates:
        if candidates.why:
            whys[candidates.why] = whys.get(candidates.why, 0) + 1
    notes += [why if count == 1 else f"{why} ({count} times)" for why, count in whys.items()]
    if model.left_out:
        first, count = model.left_out[0], len(model.left_out)
        more = f", and {count - 1} more operators have" if count > 1 else ""
        notes.append(
            f"{first.op} in line {first.line} has more strategies than are looked at{more}: the "
            "lower bound counts arithmetic alone where operators have most (--effort full looks at "
            "all)"
        )
    unread = any(problem.severity == "error" for problem in model.structure.dump.problems)
    if unread:
        notes.append("a part of the dump could not be read: this is a plan of the rest")
    unknown = sum(item.code == "unknown" for item in report.findings) - unread
    if report.accepted is None and unknown:
        parts = plural(unknown, "part")
        notes.append(f"check cannot say all of this plan: it does not know {parts}")
    return notes


__all__ = [
    "CannotPlan",
    "Plan",
    "PlannedOperator",
    "plain_dump",
    "plan",
    "plan_of_choices",
    "planned_context",
]


_KEPT = (
    "what the dump has costs less than any plan that was found: layouts of the code are handed on "
    "to neighbours, which the search does not follow"
)


def _keeps(made: Plan, problem: Problem, fixed: Mapping[Node, Given]) -> bool:
    """Whether the dump's own strategies are the cheaper plan, and do what is asked."""
    before = made.before
    if before is None or made.decisions is not None:
        return False
    if before.seconds >= made.after.seconds * (1 - 1e-9):
        return False
    if made.memory_limit is not None and before.memory.total > made.memory_limit:
        return False
    return all(problem.current.get(node) == given for node, given in fixed.items())


def _as_it_was(made: Plan, problem: Problem) -> Plan:
    """The plan that keeps everything, where the search can find none that costs less.

    Layouts that the code gives to some operators are handed on to neighbours whose strategies agree
    with them; a strategy alone does not say on which devices its parts lie, so the search prices
    them where MindSpore puts them by itself.  No bound is known of such a plan.
    """
    assert made.before is not None
    taken = {node: given for node, given in problem.current.items() if problem.takes_strategy(node)}
    dump = with_strategies(
        problem.structure.dump,
        {node: rows for node, (rows, _) in taken.items()},
        {node: out for node, (_, out) in taken.items() if out is not None},
    )
    twins = dict(zip(made.dump.nodes(), dump.nodes(), strict=True))
    return replace(
        made,
        dump=dump,
        report=of_what_was_read(check(dump, made.context), dump),
        operators=tuple(
            replace(item, node=twins[item.node], after=item.before, out_after=item.out_before)
            for item in made.operators
        ),
        after=made.before,
        lower_bound=None,
        notes=(*made.notes, _KEPT),
    )
