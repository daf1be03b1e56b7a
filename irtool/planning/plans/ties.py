"""Plans that the model can hardly tell apart: one that communicates no dearer than the dump does.

A step adds up arithmetic, memory traffic and communication, whose rates stand in different data
sheets; what a device computes is surer than what the links between all of them do, and nothing says
how much of either hides behind the other.  So a plan that saves less than ``MARGIN`` of the step
only because devices compute less, and communicates dearer than the strategies that the dump has, is
not known to be better.  There, the cheapest plan is wanted of those that communicate no dearer.

That is a search under a limit, and like one of memory it is made by a price (Lagrange): seconds of
communication count some part more, which is nothing else than the same search on a machine whose
links are slower by that part.  The sum at a price, less what the limit costs at it, is a bound of
every plan within the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.costs import seconds_of
from irtool.planning.plans.step.report import StepCost
from irtool.planning.search.search import Solution

MARGIN = 0.01
"""What part of a step is no reason to communicate dearer: data sheets are no truer than that."""
_PRICES = 6
"""Prices that are tried; beyond, what is left is a gap."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Choices, what they cost by the machine as it is, and the bound they were found with."""

    solution: Solution
    cost: StepCost

    @property
    def communication(self) -> float:
        """Seconds of all collectives of the step."""
        return communication_of(self.cost)


def communication_of(cost: StepCost) -> float:
    """Seconds of all collectives of a step.

    Args:
        cost: of the step; what could hide behind computing counts, too.
    """
    return seconds_of(cost.communications)


def is_tie(before: StepCost, after: StepCost) -> bool:
    """Whether a plan communicates dearer than what was there, and saves next to nothing.

    Args:
        before: the step under the strategies that the dump has.
        after: the step under the plan; it saves less than ``MARGIN`` of that.
    """
    dearer = communication_of(after) > communication_of(before) * (1 + 1e-9)
    return dearer and after.seconds >= before.seconds * (1 - MARGIN)


def with_slower_links(machine: Machine, part: float) -> Machine:
    """A machine like this one, on which collectives take longer.

    Args:
        machine: whose links are slowed, in bandwidth, latency and start alike.
        part: by which they take longer: 0.5 for half as long again.
    """
    levels = tuple(
        replace(
            level,
            bandwidth=level.bandwidth / (1 + part),
            latency=level.latency * (1 + part),
            start=level.start * (1 + part),
        )
        for level in machine.levels
    )
    return replace(machine, levels=levels)


def no_dearer(
    fastest: Priced, own: Priced, at_price: Callable[[float], Priced]
) -> tuple[Priced, float]:
    """The cheapest choices that communicate no dearer than those the dump has, and a bound.

    Args:
        fastest: the cheapest choices of all, which communicate dearer.
        own: those of the dump.
        at_price: the cheapest where each second of communication counts so much of one more; its
            bound is of that sum.
    """
    most = own.communication
    over, under, best = fastest, own, own
    bound = fastest.solution.bound
    for _ in range(_PRICES):
        more = under.cost.seconds - over.cost.seconds
        price = more / (over.communication - under.communication)
        if price <= 0:
            break
        between = at_price(price)
        bound = max(bound, between.solution.bound - price * most)
        line = over.cost.seconds + price * over.communication
        if between.cost.seconds + price * between.communication >= line * (1 - 1e-9):
            break
        if between.communication <= most * (1 + 1e-9):
            under = between
            best = min(best, between, key=lambda priced: priced.cost.seconds)
        else:
            over = between
    return best, min(bound, best.cost.seconds)
