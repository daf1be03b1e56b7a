"""Seconds that no plan is below, where not all strategies were looked at: part of the network.

The operators with the most strategies are left out, with their weights and with all that is
redistributed before and behind them: of these, arithmetic and updates alone count
(:mod:`irtool.planning.search.arithmetic`). The rest is searched with all of its strategies. Prices
are never negative, and what several users want alike is paid for by those that are left: so no
plan of the whole network costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from irtool.cluster.machine import Machine
from irtool.ir.graph import Node
from irtool.planning.cost.structure import Structure
from irtool.planning.limits.memory import search
from irtool.planning.search.arithmetic import least_arithmetic
from irtool.planning.search.effort import Sizes
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.search.tables import Model

PAIRS = 100_000
"""Pairs of strategies of neighbours that are looked at."""


def least_without_widest(
    structure: Structure, machine: Machine, make: Callable[[Collection[Node]], Model]
) -> float:
    """Seconds that no plan of a network is below.

    Args:
        structure: the network.
        machine: what things cost.
        make: its tables, all strategies in them, without some operators.
    """
    wide = Sizes.of(structure).widest(PAIRS)
    least = least_arithmetic(structure, machine)
    if len(wide) == len(structure.calls):
        return least
    try:
        rest = search(make(wide), None, most_cases=1).bound
    except CannotPlan:
        return least
    return max(least, rest + least_arithmetic(structure, machine, wide))
