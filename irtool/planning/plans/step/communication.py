"""What a step communicates, as ``check`` predicts it, with its prices.

What of equal values and gradients is left when the graph is compiled, and how often a cell runs,
only the whole network tells: so what an operator, an edge or a weight communicates is asked there.
Beside them there are the norm of all gradients, results that are handed to all stages, collectives
that the network's own code calls; and what a stage sends to others and receives from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.planning.cost.costs import (
    Cause,
    Communication,
    Fusion,
    Phase,
    chain_communications,
    communication,
    gradient_communications,
    item_bytes,
    operator_communications,
    seconds_of,
)
from irtool.planning.cost.structure import Parameter, Structure
from irtool.planning.plans.step.items import CostItem
from irtool.sharding.network.communications import AGAIN, USER_CODE, Owner, StepCommunication
from irtool.sharding.network.graphs import Use
from irtool.sharding.network.report import (
    CheckResult,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)


@dataclass(frozen=True, slots=True)
class Communicated:
    """What one part of a network communicates in a step.

    Attributes:
        once: forward and backward.
        again: what runs once more for the backward pass, where the network is recomputed.
        unsized: texts that say of which the size is not known.
    """

    once: tuple[Communication, ...] = ()
    again: tuple[Communication, ...] = ()
    unsized: tuple[str, ...] = ()


def of_operator(
    structure: Structure, item: OperatorReport, report: CheckResult, machine: Machine
) -> Communicated:
    """What an operator brings with it, in all its runs.

    Args:
        structure: of the network.
        item: the operator under its strategy.
        report: what ``check`` says of the network; of one that it accepts, what is left after
            compiling.
        machine: whose links are used.
    """
    if report.accepted is not False:
        return _communicated(report, item.node, machine)
    back = structure.communicates_back(item.node)
    own = operator_communications(item.call.call, item.judgement, machine, gradient=back)
    return Communicated(tuple(own) * structure.runs(item.node))


def of_edge(
    structure: Structure, item: RedistributionReport, report: CheckResult, machine: Machine
) -> Communicated:
    """What a redistribution communicates; nothing where that of another user serves this one.

    Args:
        structure: of the network.
        item: the edge with the operators that are inserted.
        report: what ``check`` says of the network.
        machine: whose links are used.
    """
    if report.accepted is not False:
        return _communicated(report, Use(item.consumer, item.input, item.item), machine)
    gradient = item.producer in structure.with_gradient
    element = edge_bytes(item)
    own = chain_communications(item.operators or (), element, machine, gradient=gradient)
    return Communicated(tuple(own) * structure.runs(item.consumer))


def of_weight(
    structure: Structure, item: ParameterReport, known: Parameter, report: CheckResult,
    machine: Machine,
) -> Communicated:  # fmt: skip
    """Sums of a weight's gradient, and with optimizer parallel its gathers.

    Args:
        structure: of the network.
        item: how the weight lies.
        known: the weight as the planner sees it: bytes of an element, whether it is trained.
        report: what ``check`` says of the network.
        machine: whose links are used.
    """
    fusion = structure.fusion_of(known)
    if report.accepted is not False:
        return _communicated(report, item.name, machine, fusion)
    size = prod(item.base or ()) * known.element
    ranks = item.mirror_ranks, item.gather_ranks
    whole = structure.context.sums_before_scatter
    mirrors, shared = gradient_communications(size, *ranks, machine, fusion, whole=whole)
    own = (*mirrors, *(step for step in shared if known.trained or step.phase == "forward"))
    return Communicated(own)


def _communicated(
    report: CheckResult, owner: Owner, machine: Machine, fusion: Fusion | None = None
) -> Communicated:
    """What a part of an accepted network communicates, each launch with its price."""
    steps = report.communications_owned.get(owner, ())
    return Communicated(
        tuple(_launches((step for step in steps if not _is_again(step)), machine, fusion)),
        tuple(_launches((step for step in steps if _is_again(step)), machine, fusion)),
        tuple(f"{step.op}, {step.why}" for step in steps if step.bytes is None),
    )


def edge_bytes(item: RedistributionReport) -> int:
    """Bytes of an element of what an edge hands on, behind a Cast if there is one.

    Args:
        item: the edge; an element whose type is not known counts 4 bytes.
    """
    holder, position = (item.consumer, item.input)
    if item.tie is not None:
        holder, position = (item.tie, item.item)
    abstract = holder.input_types[position] if position < len(holder.input_types) else None
    dtypes = [dtype for dtype, _ in abstract.tensors] if abstract is not None else []
    return item_bytes(dtypes[0] if dtypes else None)


FUSION_OF_BATCH = 100
"""By how much fusion numbers of one micro-batch differ from those of the one before (measured)."""


def others(
    report: CheckResult, machine: Machine, weights: Collection[str], unknown: list[str]
) -> Iterator[CostItem]:
    """An item for each kind of communication that no operator, edge or weight brings.

    Args:
        report: what ``check`` says.
        machine: what things cost.
        weights: names of those that have a price of their own.
        unknown: takes a text for each whose size is not known.
    """
    for owner, steps in report.communications_owned.items():
        for step in steps if owner is None else ():
            cause: Cause = "optimizer" if step.phase == "optimizer" else "redistribution"
            launches = tuple(_launches((step,), machine))
            unknown += () if step.bytes is not None else (unsized(f"{step.op}, {step.why}"),)
            yield CostItem("other", None, step.why, {cause: seconds_of(launches)}, launches)
        if isinstance(owner, str) and owner not in weights:
            own = _communicated(report, owner, machine)
            unknown += (unsized(f"weight {owner}: {text}") for text in own.unsized)
            seconds: dict[Cause, float] = {"gradients": seconds_of(own.once)}
            yield CostItem("other", None, owner, seconds, own.once)
        if not isinstance(owner, Node) or owner in report.by_node or owner.op in POINT_TO_POINT:
            continue
        own = _communicated(report, owner, machine)
        unknown += (unsized(f"{owner.id} {text}") for text in own.unsized)
        yield CostItem(
            "other", owner, f"{owner.op}, {USER_CODE}",
            {"operator collectives": seconds_of(own.once)}, own.once,
            again=seconds_of(own.again), repeated=own.again,
        )  # fmt: skip


def transfers(report: CheckResult, machine: Machine) -> tuple[Communication, ...]:
    """What a stage sends to others and receives from them, and what the gradients of that do.

    Args:
        report: what ``check`` says of the stage.
        machine: whose links are used.
    """
    steps = (step for step in report.communications if step.op in POINT_TO_POINT)
    return tuple(_launches(steps, machine))


def _is_again(step: StepCommunication) -> bool:
    return step.why.startswith(AGAIN)


def unsized(what: str) -> str:
    """Say that the size of a communication is not known.

    Args:
        what: that communicates.
    """
    return f"{what}: how much it hands over is not known"


def _launches(
    steps: Iterable[StepCommunication], machine: Machine, fusion: Fusion | None = None
) -> Iterator[Communication]:
    """Every launch with its price; its size is the whole tensor's, larger of input and output."""
    for step in steps:
        if step.bytes is None:
            continue
        size = step.bytes * (len(step.ranks) if step.op == "AllGather" else 1)
        phase: Phase = "forward" if step.phase == "other" or _is_again(step) else step.phase
        for batch in range(step.count):
            own = _of_batch(fusion, batch) if fusion and step.op == "ReduceScatter" else fusion
            yield communication(step.op, phase, step.ranks, size, machine, own)


def _of_batch(fusion: Fusion, batch: int) -> Fusion:
    """The fusion of what is scattered for each micro-batch: those of several never go together."""
    if not batch or not fusion.number:
        return fusion
    return replace(fusion, number=fusion.number + batch * FUSION_OF_BATCH)
