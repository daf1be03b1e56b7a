"""Whether a step would be shorter on fewer devices than it is planned for.

MindSpore numbers devices that compute the same next to each other, so that on many devices the
groups of a plan for few of them span nodes: no strategy on many devices does what that plan does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from irtool.ir.units import seconds_text
from irtool.planning.plans.plan import Plan
from irtool.planning.search.device_counts import device_count_problem
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.context import ParallelContext

LEAST_GAIN = 0.01
"""Part of a step that must be saved to be worth a word."""
MOST_MISSES = 2
"""Numbers in a row that are no faster, after which only a node's and a single device are tried."""


def with_fewer(made: Plan, plan_for: Callable[[int], Plan]) -> Plan:
    """The plan, with a note where fewer devices take less time for a step.

    Powers of two below the number of devices are tried, the largest first: what spans nodes may be
    slower on half the devices, and faster again on those of one node.

    Args:
        made: the plan.
        plan_for: a plan for another number of devices.
    """
    devices = made.context.devices
    best, least = devices, made.after.seconds * (1 - LEAST_GAIN)
    always = {1, made.after.machine.node_devices}
    misses = 0
    for count in _powers_below(devices):
        if misses >= MOST_MISSES and count not in always:
            continue
        if device_count_problem(count, _loaded(made.context)):
            continue
        try:
            seconds = plan_for(count).after.seconds
        except CannotPlan:
            misses += 1
            continue
        if seconds < least:
            best, least, misses = count, seconds, 0
        else:
            misses += 1
    if best == devices:
        return made
    note = f"fewer devices are faster: on {best} a step takes {seconds_text(least)}"
    return replace(made, notes=(*made.notes, note))


def _powers_below(devices: int) -> Iterator[int]:
    """The powers of two below a number of devices, the largest first."""
    power = 1 << (devices - 1).bit_length() - 1 if devices > 1 else 0
    while power:
        yield power
        power >>= 1


def _loaded(context: ParallelContext) -> ParallelContext:
    """The context in which a plan is loaded: that of propagation."""
    return replace(context, search="sharding_propagation")
