"""Which axes of parallelism a step's communication serves: data, tensor, optimizer, sequence."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.axes import Axis, axis_of_ranks, passes_round, sums_product
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.costs import Communication
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import StepCost
from irtool.planning.plans.step.shared import cause_of


@dataclass(frozen=True, slots=True)
class AxisCost:
    """Communication along one axis: how often, how long, how much one device receives."""

    axis: Axis
    count: int
    seconds: float
    received: int


def axis_costs(cost: StepCost) -> tuple[AxisCost, ...]:
    """Communication by axis, the dearest first; what is recomputed, and transfers, too.

    Args:
        cost: of a step.
    """
    sharing: set[frozenset[int]] = set()
    products: set[frozenset[int]] = set()
    for item in cost.items:
        for communication in item.communications:
            if item.kind == "weight":
                sharing.add(frozenset(communication.ranks))
            elif item.kind == "operator" and sums_product(item.name):
                products.add(frozenset(communication.ranks))
    totals: dict[Axis, AxisCost] = {}
    for axis, communication in _axes(cost, sharing, products):
        old = totals.get(axis, AxisCost(axis, 0, 0.0, 0))
        totals[axis] = AxisCost(
            axis,
            old.count + 1,
            old.seconds + communication.seconds,
            old.received + communication.received,
        )
    return tuple(sorted(totals.values(), key=lambda total: -total.seconds))


def _axes(
    cost: StepCost, sharing: set[frozenset[int]], products: set[frozenset[int]]
) -> Iterator[tuple[Axis, Communication]]:
    known: dict[tuple[int, ...], Axis] = {}
    for item in cost.items:
        for communication in (*item.communications, *item.repeated):
            if communication.ranks not in known:
                known[communication.ranks] = axis_of_ranks(communication.ranks, sharing, products)
            yield _axis(item, communication, known[communication.ranks]), communication
    for communication in cost.transfers:
        yield "pipeline", communication


def _axis(item: CostItem, communication: Communication, by_ranks: Axis) -> Axis:
    if item.kind == "weight":
        return "data" if cause_of(communication) == "gradients" else "optimizer"
    if item.kind == "operator" and sums_product(item.name):
        return "tensor"
    if item.kind == "operator" and passes_round(item.name, communication.op):
        return "sequence"
    return by_ranks
