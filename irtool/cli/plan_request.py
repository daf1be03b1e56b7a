"""What ``irtool plan`` is asked for, and the search that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irtool.cli.plan_options import Way
from irtool.cluster.machine import Machine
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.sharding.network.context import ParallelContext

if TYPE_CHECKING:
    from irtool.planning.plans.plan import Plan
    from irtool.planning.recovery.elastic import ElasticPlan
    from irtool.planning.stages.stages import StagedPlan


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a plan may depend on; each way of planning looks at its own part.

    Attributes:
        way: how to plan.
        dump, context: what, and what it was compiled under.
        machine: what things cost.
        to: devices to plan for.
        memory: bytes of a device.
        pinned, outs: strategies and output strategies that must be.
        keep_configured: whether what users sharded must be.
        region: nodes to plan, all others frozen.
        onto: an old dump with its context.
        optimizer, recompute: whether those are decided, too.
        lost: ranks that are gone.
        horizon: steps that the plan is for.
        stages, micro_batches: of a pipeline.
        row_coefficient: ``rp_matmul_mem_coef``.
    """

    way: Way
    dump: Dump
    context: ParallelContext
    machine: Machine
    to: int | None
    memory: int | None
    pinned: Mapping[Node, Strategy]
    outs: Mapping[Node, Strategy]
    keep_configured: bool
    region: frozenset[Node] | None
    onto: tuple[Dump, ParallelContext] | None
    optimizer: bool
    recompute: bool
    lost: tuple[int, ...]
    horizon: float
    stages: int
    micro_batches: int | None
    row_coefficient: float | None


def made(asked: Request) -> tuple[Plan, ElasticPlan | None, StagedPlan | None]:
    """The plan, and what it is a part of.

    Raises:
        CannotPlan: there is none; the message says what would have to change.
    """
    if asked.way == "devices":
        elastic = _for_other_devices(asked)
        return next(iter(elastic.plans.values())), elastic, None
    if asked.way == "stages":
        staged = _in_stages(asked)
        return staged.inner, None, staged
    if asked.way == "plan":
        return _searched(asked), None, None
    return _imitated(asked), None, None


def _searched(asked: Request) -> Plan:
    from irtool.planning.plans.plan import plan

    return plan(
        asked.dump,
        asked.context,
        asked.machine,
        devices=asked.to,
        pinned=asked.pinned,
        pinned_outputs=asked.outs,
        keep_configured=asked.keep_configured,
        region=asked.region,
        onto=asked.onto,
        memory_limit=asked.memory,
        decide_optimizer=asked.optimizer,
        decide_recompute=asked.recompute,
    )


def _for_other_devices(asked: Request) -> ElasticPlan:
    from irtool.planning.recovery.elastic import replan

    return replan(
        asked.dump,
        asked.context,
        asked.machine,
        lost=asked.lost,
        to=asked.to,
        horizon=asked.horizon,
        memory_limit=asked.memory,
        pinned={node: (rows, asked.outs.get(node)) for node, rows in asked.pinned.items()},
    )


def _in_stages(asked: Request) -> StagedPlan:
    from irtool.planning.stages.stages import staged_plan

    return staged_plan(
        asked.dump,
        asked.context,
        asked.machine,
        asked.stages,
        devices=asked.to,
        micro_batches=asked.micro_batches,
        memory_limit=asked.memory,
        decide_optimizer=asked.optimizer,
        decide_recompute=asked.recompute,
    )


def _imitated(asked: Request) -> Plan:
    from irtool.planning.plans.imitation import Settings, imitate

    return imitate(
        asked.dump,
        asked.context,
        asked.machine,
        asked.way,
        devices=asked.to,
        pinned=asked.pinned,
        keep_configured=asked.keep_configured,
        settings=Settings.given(asked.row_coefficient),
    )
