"""The parts of a step: operators, edges between them, and weights, with their seconds by cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.cost.costs import Cause, Communication


@dataclass(frozen=True, slots=True)
class CostItem:
    """One operator, edge or weight, or what none of these brings (``other``).

    ``node`` is the operator, or the edge's consumer.

    ``seconds`` by cause; ``communications`` in the order of the step's phases. ``operations``: of
    the whole step. ``again``: seconds that recomputing it takes, of what the network marks for it;
    no part of ``seconds``. ``repeated``: the communications that run again then. ``backward``: what
    of its computing lies in the backward pass. ``users``: of a weight,
    every operator that takes it.
    """

    kind: str
    node: Node | None
    name: str
    seconds: Mapping[Cause, float]
    communications: tuple[Communication, ...]
    producer: Node | None = None
    strategy: Strategy | None = None
    operations: int = 0
    again: float = 0.0
    repeated: tuple[Communication, ...] = ()
    backward: float = 0.0
    users: tuple[Node, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of all causes."""
        return sum(self.seconds.values())

    @property
    def received(self) -> int:
        """Bytes that one device receives."""
        return sum(item.received for item in self.communications)


def run(item: CostItem, count: int) -> CostItem:
    """An item that runs so often in a step.

    Args:
        item: what it takes once.
        count: how often; seconds, operations and communications are multiplied by it.
    """
    if count == 1:
        return item
    return replace(
        item,
        seconds={cause: count * seconds for cause, seconds in item.seconds.items()},
        communications=item.communications * count,
        operations=count * item.operations,
        again=count * item.again,
        repeated=item.repeated * count,
        backward=count * item.backward,
    )
