"""Tables of few strategies, then of those around the best of these, as long as that finds better.

Where operators have more strategies than are looked at, the first tables hold every second number
of slices of each axis.  What is next to the best of those is looked at then, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.planning.limits.memory import search, total_seconds
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.search.tables import Model

Near = Mapping[Node, Strategy]
"""By operator the strategy around which to look."""

_ROUNDS = 4
"""How often strategies around the best ones are looked at, at most."""
_CASES = 2
"""Searches with buckets of fused collectives opened and closed, each time."""
_BETTER = 1e-3
"""Part of a step that is worth looking once more."""


def around_the_best(make: Callable[[Near], Model], limit: int | None) -> tuple[Model, Near]:
    """The tables in which nothing better was found, and around which strategies they are.

    Args:
        make: tables around some strategies; around none: of a few everywhere.
        limit: bytes of a device.

    Raises:
        CannotPlan: an operator has no legal strategy, or a pinned one is illegal.

    Returns:
        the model, and the strategies by operator; empty where nothing was left out of the tables.
    """
    near: Near = {}
    model, best = make(near), inf
    for _ in range(_ROUNDS if model.left_out else 0):
        try:
            choices = search(model, limit, most_cases=_CASES).choices
        except CannotPlan:
            break
        seconds = total_seconds(model, choices)
        if seconds >= best * (1 - _BETTER):
            break
        chosen = model.chosen(choices)
        best = seconds
        near = {node: item.strategy for node, item in chosen.items() if item.strategy}
        model = make(near)
    return model, near
