"""Memory with everything that could be done about it: options, prices, sets that fit a limit."""

from __future__ import annotations

import math

from irtool.cluster.flops_seconds import operator_seconds
from irtool.cluster.machine import Machine
from irtool.cluster.memory import Memory
from irtool.cluster.pricing import Launch, step_seconds
from irtool.cluster.schedule import recovered
from irtool.cluster.what_if import (
    Combination,
    Option,
    Price,
    Saving,
    combinations_within,
    savings,
)
from irtool.cluster.what_if.recompute import activation_options, recomputed_collectives
from irtool.cluster.what_if.stages import ServedWeight, more_stages, served_weights
from irtool.cluster.what_if.state import THRESHOLD, Weight, state_options, weights
from irtool.ir.dataclass import dataclass

HOST_BANDWIDTH = 16e9
"""Bytes a second between a device and its host: an assumption (PCIe 4.0, half of its peak)."""


@dataclass(frozen=True, slots=True)
class SavingGroup:
    """One switch that saves equally much on each of several targets; ``saving`` is of the first."""

    targets: tuple[str, ...]
    saving: Saving


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """What could be done about a device's memory.

    ``savings`` are ranked, the cheapest byte first; ``unshardable`` says of weights why optimizer
    parallel leaves them whole; ``combinations`` are sets of options that stay below the limit
    (empty where it is not passed, or none does).
    """

    memory: Memory
    savings: tuple[Saving, ...]
    combinations: tuple[Combination, ...]
    unshardable: tuple[tuple[Weight, str], ...]
    served: tuple[ServedWeight, ...]
    micro_batches: int

    @property
    def folded_savings(self) -> list[SavingGroup]:
        """Savings with equal effect of one switch on several targets, together."""
        groups: dict[tuple[object, ...], tuple[list[str], Saving]] = {}
        for saving in self.savings:
            option = saving.option
            key = (option.switch, saving.saved, option.flops, option.traffic_bytes)
            if option.target:
                groups.setdefault(key, ([], saving))[0].append(option.target)
            else:
                groups[(*key, len(groups))] = ([], saving)
        return [SavingGroup(tuple(targets), saving) for targets, saving in groups.values()]


def memory_plan(
    memory: Memory,
    machine: Machine,
    limit: int | None = None,
    stages: int = 1,
    host_bandwidth: float = HOST_BANDWIDTH,
    threshold: int = THRESHOLD,
) -> MemoryPlan:
    """Try every option on a device's memory.

    Args:
        memory: the device.
        machine: turns operations and bytes into seconds, so that options can be compared.
        limit: bytes of the device, for which to look for sets of options.
        stages: pipeline stages now.
        host_bandwidth: bytes a second to and from the host.
        threshold: bytes of a weight below which optimizer parallel leaves it whole.
    """
    schedule = recovered(memory.launched, memory.phases)
    micro = schedule.micro_batches if schedule else 1
    held = weights(memory, threshold)
    options = [*activation_options(memory), *state_options(memory, micro, threshold)]
    whole_run = (recomputed_collectives(memory), more_stages(memory, stages, micro))
    options += [option for option in whole_run if option is not None]
    price = prices(memory, machine, host_bandwidth)
    ranked = savings(memory, options, price)
    sets: tuple[Combination, ...] = ()
    if limit is not None and memory.fits(limit) is not True:
        beside = memory.device_bytes.high - memory.peak_bytes
        sets = combinations_within(memory, ranked, limit - beside, price)
    left = [
        (weight, why)
        for weight in held
        if not weight.is_sharded and len(weight.replicas) > 1 and (why := weight.unshardable())
    ]
    return MemoryPlan(memory, ranked, sets, tuple(left), served_weights(memory, held), micro)


def prices(memory: Memory, machine: Machine, host_bandwidth: float) -> Price:
    """Seconds that an option adds to a step: operations at the machine's rate, bytes over links.

    The rate is that of the element type most of the step's tensors have; on a machine that lists
    none arithmetic takes no time, as everywhere.

    Args:
        memory: of the device; its launches tell the usual element type.
        machine: what operations and communication cost.
        host_bandwidth: bytes a second to and from the host.

    Returns:
        A function of an option; less than 0 where the option saves time.
    """
    counts: dict[str, int] = {}
    for item in memory.launched:
        output = item.node.output_type
        if output is not None and output.dtype:
            counts[output.dtype] = counts.get(output.dtype, 0) + (output.size or 0)
    most = max(counts, key=counts.__getitem__) if counts else None
    rate = machine.rate(most) if machine.flops else math.inf

    def seconds(option: Option) -> float:
        total = sum(operator_seconds(node, machine) for node in option.again)
        total = total or option.flops / rate
        for item in option.traffic:
            if item.link == "host":
                total += item.bytes / host_bandwidth
            elif not item.ranks:
                total += item.bytes / machine.levels[-1].bandwidth
        more, less = (
            [
                Launch(item.op, abs(item.bytes), item.ranks, item.fusion)
                for item in option.traffic
                if item.link != "host" and item.ranks and (item.bytes >= 0) is added
            ]
            for added in (True, False)
        )
        return total + sum(step_seconds(more, machine)) - sum(step_seconds(less, machine))

    return seconds
