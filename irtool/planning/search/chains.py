"""What a redistribution between two layouts costs: exactly, and at least.

The exact price needs the chain of operators (a quarter of a millisecond each); a search looks at a
million pairs of layouts.  So pairs have a lower bound first, made from which bits of a rank's
number say which part of the tensor it holds, and the exact price is asked for where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.operators.checks import group_problem
from irtool.operators.judgement import Context
from irtool.operators.layout import TensorLayout
from irtool.planning.cost.costs import (
    chain_communications,
    copied_bytes,
    copy_seconds,
    seconds_of,
)
from irtool.planning.cost.layout_bits import bits_of, common_shape
from irtool.planning.search.bounds import Moved, least_between
from irtool.sharding.redistribution import (
    RedistributionError,
    RedistributionStep,
    infer_with_groups,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Want:
    """What is moved: ``element`` bytes of one element; ``gradient``: a gradient comes back.

    ``keep_reshape``: the chain replaces a Reshape; ``is_bool``: nothing can gather truth values;
    ``runs``: how often a step.
    """

    element: int
    gradient: bool
    keep_reshape: bool
    is_bool: bool
    runs: int = 1


_Pair: TypeAlias = tuple[TensorLayout, TensorLayout, bool]
_Chain: TypeAlias = tuple[RedistributionStep, ...] | None


@dataclass(eq=False, slots=True)
class Chains:
    """Prices of redistributions on one machine; each chain is inferred once."""

    context: Context
    machine: Machine
    enable_alltoall: bool
    known: dict[_Pair, _Chain] = field(default_factory=dict[_Pair, _Chain])
    prices: dict[tuple[object, ...], float] = field(default_factory=dict[tuple[object, ...], float])
    inferred: int = 0

    def seconds(self, source: TensorLayout, target: TensorLayout, want: Want) -> float:
        """The price of a chain; infinite where there is none, or MindSpore would refuse it."""
        key = (source, target, want)
        price = self.prices.get(key)
        if price is None:
            price = self.prices[key] = self._seconds(source, target, want)
        return price

    def steps(
        self, source: TensorLayout, target: TensorLayout, keep_reshape: bool
    ) -> tuple[RedistributionStep, ...] | None:
        """The chain; None where there is none."""
        if keep_reshape and source.is_whole and target.is_whole:
            return ()
        if not keep_reshape and source.same_as(target):
            return ()
        key = (source, target, keep_reshape)
        if key not in self.known:
            self.inferred += 1
            self.known[key] = self._steps(source, target, keep_reshape)
        return self.known[key]

    def _seconds(self, source: TensorLayout, target: TensorLayout, want: Want) -> float:
        steps = self.steps(source, target, want.keep_reshape)
        if steps is None:
            return inf
        # Around a Reshape of truth values MindSpore casts; elsewhere it can't gather them.
        if want.is_bool and not want.keep_reshape and any(s.op == "AllGather" for s in steps):
            return inf
        once = chain_seconds(steps, want.element, self.machine, gradient=want.gradient)
        return want.runs * once

    def _steps(
        self, source: TensorLayout, target: TensorLayout, keep_reshape: bool
    ) -> tuple[RedistributionStep, ...] | None:
        ranks, rank = self.context.devices, self.context.own_rank
        try:
            steps, groups = infer_with_groups(
                source,
                target,
                ranks,
                rank,
                enable_alltoall=self.enable_alltoall,
                keep_reshape=keep_reshape,
            )
        except RedistributionError:
            return None
        refused = any(group_problem(group, self.context) is not None for group in groups)
        return None if refused else steps


def chain_seconds(
    steps: Sequence[RedistributionStep], element: int, machine: Machine, *, gradient: bool
) -> float:
    """Seconds of a chain: its collectives, and the local operators that copy; forward and back."""
    seconds = seconds_of(chain_communications(steps, element, machine, gradient=gradient))
    copies = sum(copy_seconds(size, machine) for size in copied_bytes(steps, element))
    return seconds + copies * (2 if gradient else 1)


# -- lower bounds --------------------------------------------------------------------------------


def least_seconds(
    sources: Sequence[TensorLayout],
    targets: Sequence[TensorLayout],
    want: Want,
    machine: Machine,
    enable_alltoall: bool,
) -> Floats:
    """At least what each redistribution costs; 0 where nothing is known.

    Args:
        sources: layouts of one tensor.
        targets: layouts of one tensor, of as many elements.
        want: what is moved, and how often a step.
        machine: whose links are used.
        enable_alltoall: whether an AlltoAll may be used.

    Returns:
        a row for each source, a column for each target.
    """
    least = np.zeros((len(sources), len(targets)))
    shape = common_shape(sources[0].tensor_shape, targets[0].tensor_shape)
    if shape is None:
        return least
    first, known_first = bits_of(sources, shape)
    second, known_second = bits_of(targets, shape)
    moved = Moved(want.element, want.gradient)
    seconds = want.runs * least_between(first, second, moved, machine, enable_alltoall)
    return np.where(known_first[:, None] & known_second[None, :], seconds, least)
