"""Plans as MindSpore's own searches make them, priced like all others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import structure_of
from irtool.planning.limits.memory import search as cheapest
from irtool.planning.plans.annotate import with_strategies
from irtool.planning.plans.plan import Plan, plan_of_choices
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.planning.propagation.search import search as propagate
from irtool.planning.recursive.cut_costs import ROW_COEFFICIENT
from irtool.planning.recursive.kinds import NotSearchable
from irtool.planning.recursive.search import Choice
from irtool.planning.recursive.search import search as recursive
from irtool.planning.search.device_counts import nearest_legal
from irtool.planning.search.problem import Problem, configured, pins, planned_context, problem_of
from irtool.planning.search.tables import CannotPlan, model_of
from irtool.sharding.check import check
from irtool.sharding.network.analysis import Analysis, analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of


@dataclass(frozen=True, slots=True)
class Settings:
    """What MindSpore's searches can be told besides the context.

    ``row_coefficient``: ``rp_matmul_mem_coef`` of the recursive search.
    """

    row_coefficient: float = ROW_COEFFICIENT

    @classmethod
    def given(cls, row_coefficient: float | None) -> Settings:
        """Settings with MindSpore's defaults where nothing is given."""
        return cls(ROW_COEFFICIENT if row_coefficient is None else row_coefficient)


Search = Callable[[Analysis, Mapping[Node, Strategy], Settings], Choice]


def _recursive(analysis: Analysis, given: Mapping[Node, Strategy], settings: Settings) -> Choice:
    return recursive(analysis, given, row_coefficient=settings.row_coefficient)


def _propagated(analysis: Analysis, given: Mapping[Node, Strategy], settings: Settings) -> Choice:
    return propagate(analysis, given)


SEARCHES: Mapping[str, tuple[str, Search]] = {
    "recursive": ("recursive_programming", _recursive),
    "propagation": ("sharding_propagation", _propagated),
}
"""By name of an algorithm, MindSpore's ``search_mode`` and the function that does it."""


def choose(
    dump: Dump,
    context: ParallelContext,
    algorithm: str,
    *,
    settings: Settings | None = None,
) -> Choice:
    """What one of MindSpore's searches chooses for a dump, legal or not.

    Args:
        dump: a begin dump without strategies, or with ones that don't count.
        context: what it is searched under.
        algorithm: one of ``SEARCHES``.
        settings: what the search can be told.

    Returns:
        Strategies by node of the dump.

    Raises:
        CannotPlan: MindSpore's search fails here.
    """
    mode, search = SEARCHES[algorithm]
    searching = replace(context, mode="auto_parallel", search=mode)
    analysis = analysis_of(network_of(dump), searching)
    try:
        return search(analysis, {}, settings or Settings())
    except NotSearchable as error:
        raise CannotPlan(f"MindSpore's {algorithm} search fails here: {error}") from None


def imitate(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    algorithm: str,
    *,
    devices: int | None = None,
    pinned: Mapping[Node, Strategy] | None = None,
    keep_configured: bool = False,
    settings: Settings | None = None,
) -> Plan:
    """Choose strategies as one of MindSpore's searches does.

    Args:
        dump: a begin dump, with strategies (they are not looked at) or without.
        context: what the dump was compiled under.
        machine: what things cost; MindSpore's searches don't ask it.
        algorithm: one of ``SEARCHES``.
        devices: devices to plan for; None: those of the context.
        pinned: strategies that are given, by node of the dump.
        keep_configured: strategies that users gave count as given.
        settings: what the search can be told.

    Raises:
        CannotPlan: MindSpore's search fails here, or chooses what MindSpore refuses.
    """
    if algorithm not in SEARCHES:
        raise CannotPlan(f"{algorithm} is none of {', '.join(SEARCHES)}")
    mode, search = SEARCHES[algorithm]
    wanted = devices or context.devices
    searching = replace(context, rank=0, mode="auto_parallel", search=mode)
    near = nearest_legal(wanted, searching)
    if near:
        raise CannotPlan(near)
    if wanted & (wanted - 1):
        # MindSpore's propagation multiplies one split by the odd part then; not reproduced.
        less = 1 << (wanted.bit_length() - 1)
        what = f"the {algorithm} search is reproduced for powers of two only"
        raise CannotPlan(f"{wanted} devices: {what}; {less} or {2 * less} would do")
    target = planned_context(context, wanted)
    started = time.process_time()
    problem = problem_of(dump, context, target)
    fixed = pins(problem, pinned or {}, {})
    if keep_configured:
        fixed = {**configured(problem), **fixed}
    given = {node: rows for node, (rows, _) in fixed.items()}
    try:
        network = network_of(problem.structure.dump)
        analysis = analysis_of(network, replace(searching, devices=wanted))
        choice = search(analysis, given, settings or Settings())
    except NotSearchable as error:
        raise CannotPlan(f"MindSpore's {algorithm} search fails here: {error}") from None
    elapsed = time.process_time() - started
    kept = {
        node: (rows, choice.outs.get(node))
        for node, rows in choice.strategies.items()
        if problem.takes_strategy(node)
    }
    _check_legal(problem, kept, algorithm)
    model = model_of(problem.structure, machine, problem.current, kept)
    made = plan_of_choices(model, cheapest(model, None), problem.current, None, elapsed)
    operators = tuple(
        replace(operator, pinned=False) if node not in fixed else operator
        for operator, node in zip(made.operators, _order(problem, made), strict=True)
    )
    return replace(
        made,
        operators=operators,
        before=_before(problem, kept, machine),
        lower_bound=None,
        algorithm=algorithm,
        rounds=1,
    )


def _check_legal(
    problem: Problem, kept: Mapping[Node, tuple[Strategy, Strategy | None]], algorithm: str
) -> None:
    """Say so where MindSpore's own choice is refused by MindSpore.

    Raises:
        CannotPlan: it is.
    """
    planned = with_strategies(
        problem.structure.dump,
        {node: rows for node, (rows, _) in kept.items()},
        {node: out for node, (_, out) in kept.items() if out is not None},
    )
    report = check(planned, problem.target)
    if report.accepted is False:
        first = next(item for item in report.findings if item.severity == "error")
        if first.op in FIXED:
            raise CannotPlan(f"the dataset's split is the context's, and refused: {first.message}")
        raise CannotPlan(
            f"MindSpore's {algorithm} search chooses what MindSpore then refuses: {first.op} in "
            f"line {first.line}: {first.message}"
        )


def _before(
    problem: Problem, kept: Mapping[Node, tuple[Strategy, Strategy | None]], machine: Machine
) -> StepCost | None:
    """The cost of what the dump has; None where it lacks some of these strategies."""
    if any(node not in problem.current for node in kept):
        return None
    had = {node: given for node, given in problem.current.items() if node in kept}
    old = with_strategies(
        problem.structure.dump,
        {node: rows for node, (rows, _) in had.items()},
        {node: out for node, (_, out) in had.items() if out is not None},
    )
    report = check(old, problem.target)
    if report.accepted is False:
        return None
    return step_cost(structure_of(old, problem.target), report, machine)


def _order(problem: Problem, made: Plan) -> list[Node]:
    """The problem's nodes of a plan's operators."""
    plain = dict(zip(made.dump.nodes(), problem.structure.dump.nodes(), strict=True))
    return [plain[operator.node] for operator in made.operators]
