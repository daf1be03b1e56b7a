"""What ``irtool plan`` is asked for, and the search that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.cli.plan.options import Decide, PlanOptions, Way
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text
from irtool.operators.call import Strategy
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.cli.plan.scale import ScaledNetwork
    from irtool.planning.files.handing_over import Again
    from irtool.planning.plans.plan import Plan
    from irtool.planning.recovery.elastic import ElasticPlan
    from irtool.planning.scaling.candidates import Candidates
    from irtool.planning.search.problem import Carried
    from irtool.planning.stages.stages import StagedPlan


@dataclass(frozen=True, slots=True)
class Request:
    """What is planned, and what the options say once the dump is known.

    Attributes:
        options: as they were typed.
        way: how to plan.
        dump, context: what, and what it was compiled under.
        machine: what things cost.
        memory: bytes of a device.
        pinned, outs: strategies and output strategies that must be.
        region: nodes to plan, all others frozen.
        onto: an old dump with its context.
        lost: ranks that are gone.
        horizon: steps that the plan is for.
        network: the network of other sizes that is planned instead of the one that was read.
    """

    options: PlanOptions
    way: Way
    dump: Dump
    context: ParallelContext
    machine: Machine
    memory: int | None
    pinned: Mapping[Node, Strategy]
    outs: Mapping[Node, Strategy]
    region: frozenset[Node] | None
    onto: tuple[Dump, ParallelContext] | None
    lost: tuple[int, ...]
    horizon: float
    network: ScaledNetwork | None = None


@dataclass(frozen=True, eq=False)
class Made:
    """A plan, and what it is a part of."""

    plan: Plan
    elastic: ElasticPlan | None = None
    staged: StagedPlan | None = None


def made(asked: Request) -> Made:
    """The plan that is asked for.

    Args:
        asked: what is planned, and how.

    Raises:
        CannotPlan: there is none; the message says what would have to change.
    """
    if asked.way == "devices":
        elastic = _for_other_devices(asked)
        return Made(_with_fewer(asked, next(iter(elastic.plans.values()))), elastic)
    if asked.way == "stages":
        staged = _in_stages(asked)
        return Made(staged.inner, staged=staged)
    if asked.way == "plan":
        return Made(_with_fewer(asked, _searched(asked)))
    return Made(_imitated(asked))


def settled(asked: Request) -> tuple[Request, Candidates | None]:
    """What is asked for once everything that may be decided was searched together.

    Args:
        asked: what is planned, and how.

    Returns:
        What is to be planned with the chosen candidate's devices, stages and switches, and all
        candidates; the request as it is, and None, where nothing is searched together.

    Raises:
        CannotPlan: no candidate fits, or there is none of the number that is asked for.
    """
    from irtool.planning.scaling.candidates import candidates_of
    from irtool.planning.search.operator_candidates import CannotPlan

    network = asked.network
    if asked.way != "candidates" or network is None:
        return asked, None
    candidates = candidates_of(
        network.scaled,
        asked.context,
        asked.machine,
        asked.context.devices,
        asked.memory,
        asked.options.effort_name,
    )
    number = asked.options.candidate
    index = candidates.best if number is None else number - 1
    if index is None:
        raise CannotPlan(
            f"none of {len(candidates.ranked)} candidates fits into "
            f"{bytes_text(candidates.limit)} a device: more devices would do, or --candidate 1 "
            "to see one that does not"
        )
    if index >= len(candidates.ranked):
        raise CannotPlan(f"there are {len(candidates.ranked)} candidates, none has number {number}")
    chosen = candidates.ranked[index]
    is_cut = chosen.stages > 1 or chosen.micro_batches > 1
    options = replace(
        asked.options,
        to=chosen.devices,
        to_stages=chosen.stages if is_cut else None,
        micro_batches=chosen.micro_batches if is_cut else None,
        optimizer_parallel=Decide.auto if chosen.optimizer_parallel else None,
        recompute=Decide.auto if chosen.recompute else None,
    )
    return replace(
        asked,
        options=options,
        way="stages" if is_cut else "plan",
        context=replace(asked.context, devices=chosen.devices),
        memory=candidates.limit if chosen.fits else None,
    ), replace(candidates, chosen=index)


def again_of(asked: Request) -> Again:
    """How to plan the same within what a form of the plan can say.

    Args:
        asked: what was planned.
    """
    from irtool.planning.files.handing_over import Again

    if asked.way != "plan":
        return Again(asked.dump)
    return Again(asked.dump, lambda carried, context: _searched(asked, carried, context))


def _with_fewer(asked: Request, plan: Plan) -> Plan:
    """The plan, with a note where nothing but the number of devices is given and fewer are faster.

    What is pinned, kept or frozen was chosen for that number, what is lost is another question, and
    what else is to be decided takes a search longer.
    """
    from irtool.cli.plan.options import Effort
    from irtool.planning.plans.fewer_devices import with_fewer

    options = asked.options
    held = asked.pinned or options.keep_configured or asked.region or asked.onto or asked.lost
    decided = options.optimizer_parallel or options.recompute or asked.network
    if held or decided or plan.context.stages > 1:
        return plan

    def plan_for(devices: int) -> Plan:
        return _searched(replace(asked, options=replace(options, to=devices, effort=Effort.quick)))

    return with_fewer(plan, plan_for)


def _searched(
    asked: Request, carried: Carried | None = None, context: ParallelContext | None = None
) -> Plan:
    from irtool.planning.plans.plan import plan

    options = asked.options
    return plan(
        asked.dump,
        asked.context if context is None else replace(asked.context, mode=context.mode),
        asked.machine,
        devices=options.to,
        pinned=asked.pinned,
        pinned_outputs=asked.outs,
        keep_configured=options.keep_configured,
        region=asked.region,
        onto=asked.onto,
        memory_limit=asked.memory,
        decide_optimizer=options.optimizer_parallel is not None,
        decide_recompute=options.recompute is not None,
        carried=carried,
        effort=options.effort_name,
    )


def _for_other_devices(asked: Request) -> ElasticPlan:
    from irtool.planning.recovery.elastic import replan

    return replan(
        asked.dump,
        asked.context,
        asked.machine,
        lost=asked.lost,
        to=asked.options.to,
        horizon=asked.horizon,
        memory_limit=asked.memory,
        pinned={node: (rows, asked.outs.get(node)) for node, rows in asked.pinned.items()},
        effort=asked.options.effort_name,
    )


def _in_stages(asked: Request) -> StagedPlan:
    from irtool.planning.stages.stages import staged_plan

    options = asked.options
    return staged_plan(
        asked.dump,
        asked.context,
        asked.machine,
        options.to_stages or 1,
        devices=options.to,
        micro_batches=options.micro_batches,
        memory_limit=asked.memory,
        decide_optimizer=options.optimizer_parallel is not None,
        decide_recompute=options.recompute is not None,
        effort=options.effort_name,
    )


def _imitated(asked: Request) -> Plan:
    from irtool.planning.plans.imitation import Settings, imitate

    options = asked.options
    return imitate(
        asked.dump,
        asked.context,
        asked.machine,
        asked.way,
        devices=options.to,
        pinned=asked.pinned,
        keep_configured=options.keep_configured,
        settings=Settings.given(options.row_coefficient),
    )
