"""Strategies for what is left of a cluster: searched where the planner can, else scaled.

Both ways are looked at.  What the planner finds is cheapest over the steps to come, what is moved
and compiled for it included; strategies that are only scaled keep the form of the old ones.  What a
step costs, by the planner's own model, and what has to be moved stand beside each, so that the
choice can be judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from irtool.cluster.machine import Machine
from irtool.compare.graph_diff import diff_graphs
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.cost.holdings import Holdings, StageDumps, holdings
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.report import step_cost
from irtool.planning.recovery.elastic import HORIZON
from irtool.planning.recovery.elastic import replan as elastic_plan
from irtool.planning.recovery.scale import scaled_plan
from irtool.planning.search.tables import CannotPlan
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.sharded_nodes import primitive

How = Literal["searched", "scaled", "given"]


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """An operator that both networks have, with another strategy; ``node`` is the new one's."""

    node: Node
    before: Strategy | None
    after: Strategy | None


@dataclass(frozen=True, eq=False)
class Replan:
    """A plan to go on with other devices.

    Attributes:
        how: where its strategies are from.
        network: the begin dumps of its stages.
        holdings: who needs what, with what ``check`` says of it.
        changes: operators with another strategy; ``unmatched`` those that the old network lacks.
        seconds: of a step of the slowest stage, by the planner's model; None where not all is
            priced.
        kept: operators that keep a strategy which does not fit.
    """

    how: How
    network: StageDumps
    holdings: Holdings
    changes: tuple[StrategyChange, ...]
    unmatched: int
    seconds: float | None
    kept: tuple[Node, ...] = ()

    @property
    def accepted(self) -> bool | None:
        """What MindSpore would say of it; None: not known."""
        return self.holdings.accepted


def loaded(context: ParallelContext, devices: int) -> ParallelContext:
    """The context under which given strategies are loaded for another number of devices.

    A run that let MindSpore search would search anew: strategies that are given are propagated.

    Args:
        context: that the run was compiled under.
        devices: to go on with.
    """
    search = "sharding_propagation" if context.searches else context.search
    return replace(context.for_devices(devices), search=search)


def given_plan(
    begins: StageDumps,
    old: Holdings,
    network: StageDumps,
    context: ParallelContext,
    machine: Machine,
) -> Replan:
    """A plan that somebody made: begin dumps with strategies.

    Operators are matched as ``irtool diff`` does it.

    Args:
        begins: begin dumps of the run, by stage.
        old: who held what.
        network: begin dumps of the plan, by stage.
        context: to go on under.
        machine: that seconds are of.
    """
    new = holdings(network, context)
    pairs: list[tuple[Node, Node]] = []
    unmatched = 0
    for stage in begins:
        if stage in network:
            diff = diff_graphs(begins[stage], network[stage])
            pairs += [(pair.left, pair.right) for pair in diff.pairs]
            unmatched += len(diff.only_right)
    return _replan("given", network, new, tuple(_changes(old, new, pairs)), unmatched, machine)


def scaled(begins: StageDumps, old: Holdings, context: ParallelContext, machine: Machine) -> Replan:
    """Strategies of the old form, the batch scaled first.

    Args:
        begins: begin dumps of the run, by stage.
        old: who held what, with what ``check`` says of each stage.
        context: to go on under, with another number of devices.
        machine: that seconds are of.
    """
    plans = {
        stage: scaled_plan(
            dump, old.reports[stage], replace(context, rank=stage * context.stage_size)
        )
        for stage, dump in begins.items()
    }
    network = {stage: plan.dump for stage, plan in plans.items()}
    replan = _same_nodes("scaled", begins, old, network, context, machine)
    kept = tuple(node for plan in plans.values() for node in plan.failed if _is_free(node))
    return replace(replan, kept=kept)


def searched(
    begins: StageDumps, old: Holdings, context: ParallelContext, change: Change, machine: Machine
) -> Replan:
    """What the planner finds: cheapest over the steps to come, the way there included.

    Args:
        begins: begin dumps of the run, by stage.
        old: who held what, with what ``check`` says of each stage.
        context: to go on under, with another number of devices.
        change: devices lost and added, and the steps that pay the way off.
        machine: that seconds are of.

    Raises:
        CannotPlan: it finds nothing; the message says why.
    """
    first = next(iter(old.reports.values()))
    elastic = elastic_plan(
        begins,
        first.context,
        machine,
        lost=change.lost,
        added=change.added,
        to=context.devices,
        horizon=change.horizon,
    )
    network = {stage: plan.dump for stage, plan in elastic.plans.items()}
    return _same_nodes("searched", begins, old, network, context, machine)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to the devices, and how long the new plan will run.

    Attributes:
        lost: ranks whose devices are gone.
        added: devices that joined.
        horizon: steps that pay off what is moved and compiled.
        search: whether to search at all.
    """

    lost: tuple[int, ...] = ()
    added: int = 0
    horizon: float = HORIZON
    search: bool = True


def replans(
    begins: StageDumps,
    old: Holdings,
    context: ParallelContext,
    change: Change,
    machine: Machine,
) -> tuple[list[Replan], str]:
    """Plans for another number of devices, the best first, and why none was searched.

    What was searched goes before what was scaled, if MindSpore accepts it.

    Args:
        begins: the begin dumps of the old run, by stage.
        old: who held what.
        context: as :func:`loaded` makes it for the new number of devices.
        change: what happened to the devices.
        machine: what things cost.

    Returns:
        the plans, and a reason that is empty where one was searched.
    """
    plans: list[Replan] = []
    why = "" if change.search else "no search was asked for"
    if change.search:
        try:
            plans.append(searched(begins, old, context, change, machine))
        except CannotPlan as error:
            why = str(error)
    plans.append(scaled(begins, old, context, machine))
    plans.sort(key=lambda plan: _REFUSED[plan.accepted])
    return plans, why


_REFUSED = {True: 0, None: 1, False: 2}


def _same_nodes(
    how: How,
    begins: StageDumps,
    old: Holdings,
    network: StageDumps,
    context: ParallelContext,
    machine: Machine,
) -> Replan:
    """A plan whose dumps have the statements of the old ones."""
    new = holdings(network, context)
    pairs = [
        pair
        for stage, dump in begins.items()
        for pair in zip(dump.nodes(), network[stage].nodes(), strict=True)
    ]
    return _replan(how, network, new, tuple(_changes(old, new, pairs)), 0, machine)


def _replan(
    how: How,
    network: StageDumps,
    new: Holdings,
    changes: tuple[StrategyChange, ...],
    unmatched: int,
    machine: Machine,
) -> Replan:
    return Replan(how, network, new, changes, unmatched, slowest_stage(network, new, machine))


def slowest_stage(begins: StageDumps, network: Holdings, machine: Machine) -> float | None:
    """Seconds of a step of the slowest stage; None where a part has no price.

    Args:
        begins: begin dumps by stage.
        network: what ``check`` says of each stage.
        machine: that seconds are of.
    """
    seconds: list[float] = []
    for stage, report in network.reports.items():
        if not report.operators or report.accepted is False:
            return None
        cost = step_cost(structure_of(begins[stage], report.context), report, machine)
        if cost.unknown:
            return None
        seconds.append(cost.seconds)
    return max(seconds, default=None)


def _changes(
    old: Holdings, new: Holdings, pairs: list[tuple[Node, Node]]
) -> Iterator[StrategyChange]:
    """Operators whose strategies differ; those that a neighbour decides are left out."""
    before, after = _strategies(old), _strategies(new)
    for left, right in pairs:
        if not left.has_strategy and not right.has_strategy:
            continue
        had, has = before.get(left, (None, None)), after.get(right, (None, None))
        if had != has:
            yield StrategyChange(right, had[0], has[0])


def _strategies(
    network: Holdings,
) -> Mapping[Node, tuple[Strategy | None, Strategy | None]]:
    return {
        item.node: (item.strategy, item.out_strategy)
        for report in network.reports.values()
        for item in report.operators
        if _is_free(item.node)
    }


def _is_free(node: Node) -> bool:
    """Whether a strategy of its own can be chosen: not the context's, as a dataset's is."""
    return primitive(node) not in FIXED
