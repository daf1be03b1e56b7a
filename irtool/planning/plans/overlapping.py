"""The plan whose step is shortest if computing hides communication, and a bound of all plans.

Sums of gradients hide behind the backward pass, gathers of weights behind all computing
(:func:`irtool.planning.plans.step.shared.overlaps`).  What hides is no sum over operators, so it is
searched between bounds: of sums ``G`` and a backward pass ``B``, computing hides at most ``G`` and
at most ``B``, so at most ``s G + (1 - s) B`` for any share ``s``.  A search in which that much of
either does not count is one over sums again, and none of its plans costs less than it says.  The
share is halved in on; the plan that costs least when it is priced as a whole is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from irtool.ir.dataclass import dataclass
from irtool.planning.plans.step.report import StepCost
from irtool.planning.search.tables import Hiding

P = TypeVar("P")
TRIES = 6
"""Shares that are tried; what is left then is the gap."""
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Tried(Generic[P]):
    """A plan, what it costs as a whole, and seconds that no plan is below."""

    plan: P
    cost: StepCost
    bound: float


def overlapped(
    search: Callable[[Hiding], Tried[P]], overlap: float, own: Tried[P] | None
) -> tuple[Tried[P], float]:
    """The cheapest plan that is found, and the best bound.

    Args:
        search: the cheapest plan where some seconds do not count, with the bound of that search
            (the bound of one in which all count is none of plans that hide).
        overlap: what part of what can hide does.
        own: the plan that the dump has, if it is one of those that may be.
    """
    # What hides nothing may be the cheapest: a bucket of fused sums waits for the last of them.
    tried = [search(Hiding()), *([own] if own is not None else [])]
    low, high, share, bound = 0.0, 1.0, 1.0, 0.0
    for _ in range(TRIES):
        made = search(Hiding(overlap * share, overlap, overlap * (1 - share)))
        tried.append(made)
        bound = max(bound, made.bound)
        if min(trial.cost.seconds for trial in tried) <= bound * (1 + _CLOSE):
            break
        if made.cost.overlaps[0].hideable > _backward(made.cost):
            high = share
        else:
            low = share
        if low == high:
            break
        share = (low + high) / 2
    best = min(tried, key=lambda trial: trial.cost.seconds)
    return best, min(bound, best.cost.seconds)


def _backward(cost: StepCost) -> float:
    """Seconds of computing of the backward pass."""
    return sum(item.backward for item in cost.items if item.kind == "operator")
