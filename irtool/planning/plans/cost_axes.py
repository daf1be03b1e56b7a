"""Which axes of parallelism a step's communication serves: data, tensor, optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irtool.cluster.axes import Axis, axis_of_ranks, sums_product
from irtool.planning.cost.costs import Communication
from irtool.planning.plans.cost_items import CostItem
from irtool.planning.plans.cost_report import StepCost
from irtool.planning.plans.cost_shared import cause_of


@dataclass(frozen=True, slots=True)
class AxisCost:
    """Communication along one axis: how often, how long, how much one device receives."""

    axis: Axis
    count: int
    seconds: float
    received: int


def axis_costs(cost: StepCost) -> tuple[AxisCost, ...]:
    """Communication by axis, the dearest first; what is recomputed, and transfers, too."""
    sharing: set[frozenset[int]] = set()
    products: set[frozenset[int]] = set()
    for item in cost.items:
        for each in item.communications:
            if item.kind == "weight":
                sharing.add(frozenset(each.ranks))
            elif item.kind == "operator" and sums_product(item.name):
                products.add(frozenset(each.ranks))
    found: dict[Axis, AxisCost] = {}
    for axis, each in _axes(cost, sharing, products):
        old = found.get(axis, AxisCost(axis, 0, 0.0, 0))
        found[axis] = AxisCost(
            axis, old.count + 1, old.seconds + each.seconds, old.received + each.received
        )
    return tuple(sorted(found.values(), key=lambda each: -each.seconds))


def _axes(
    cost: StepCost, sharing: set[frozenset[int]], products: set[frozenset[int]]
) -> Iterator[tuple[Axis, Communication]]:
    known: dict[tuple[int, ...], Axis] = {}
    for item in cost.items:
        for each in (*item.communications, *item.repeated):
            if each.ranks not in known:
                known[each.ranks] = axis_of_ranks(each.ranks, sharing, products)
            yield _axis(item, each, known[each.ranks]), each
    for each in cost.transfers:
        yield "pipeline", each


def _axis(item: CostItem, each: Communication, by_ranks: Axis) -> Axis:
    if item.kind == "weight":
        return "data" if cause_of(each) == "gradients" else "optimizer"
    if item.kind == "operator" and sums_product(item.name):
        return "tensor"
    return by_ranks
