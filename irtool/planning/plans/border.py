"""What it costs that only a region of a network was planned, and all around it was frozen."""

from __future__ import annotations

from collections.abc import Set

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import StepCost


@dataclass(frozen=True, slots=True)
class Share:
    """Seconds of a region in one plan: inside, on edges across its border, and of the whole step.

    ``edges``: how many edges across the border redistribute something.
    """

    inside: float
    border: float
    total: float
    edges: int

    @property
    def own(self) -> float:
        """The region with its border."""
        return self.inside + self.border


@dataclass(frozen=True, slots=True)
class Border:
    """A region's plan against one of everything under the same constraints.

    ``operators``: of the region; ``frozen``: its plan with all around it as it was; ``free``: the
    plan of everything.
    """

    operators: int
    frozen: Share
    free: Share

    @property
    def seconds(self) -> float:
        """What the frozen border costs: the region with its border, against the plan of all."""
        return self.frozen.own - self.free.own

    @property
    def step_seconds(self) -> float:
        """What it costs in all that the rest was not planned."""
        return self.frozen.total - self.free.total


def share_of(cost: StepCost, region: Set[Node]) -> Share:
    """A region's part of a step.

    Args:
        cost: of a plan.
        region: nodes of that plan's dump.
    """
    inside = border = 0.0
    edges = 0
    for item in cost.items:
        ends = _ends(item, region)
        if all(ends):
            inside += item.total
        elif any(ends):
            border += item.total
            edges += 1
    return Share(inside, border, cost.seconds, edges)


def _ends(item: CostItem, region: Set[Node]) -> tuple[bool, ...]:
    """Whether an item's node is of the region; of an edge, whether both its ends are."""
    if item.kind == "edge" and item.producer is not None:
        return item.producer in region, item.node in region
    return (item.node in region,)
