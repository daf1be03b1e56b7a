"""What a redistribution between two layouts costs: exactly, and at least.

The exact price needs the chain of operators (a quarter of a millisecond each); a search looks at a
million pairs of layouts.  So pairs have a lower bound first, made from which bits of a rank's
number say which part of the tensor it holds, and the exact price is asked for where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.planning.costs import chain_communications, moved_bytes, seconds_of
from irtool.sharding.checks import group_problem
from irtool.sharding.judgement import Context
from irtool.sharding.layout import Shape, TensorLayout, axes_of
from irtool.sharding.redistribution import (
    RedistributionError,
    RedistributionStep,
    created_groups,
    infer,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Want:
    """What is moved: ``element`` bytes of one element; ``gradient``: a gradient comes back.

    ``keep_reshape``: the chain replaces a Reshape; ``is_bool``: nothing can gather truth values.
    """

    element: int
    gradient: bool
    keep_reshape: bool
    is_bool: bool


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
        found = self.prices.get(key)
        if found is None:
            found = self.prices[key] = self._seconds(source, target, want)
        return found

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
        return chain_seconds(steps, want.element, self.machine, gradient=want.gradient)

    def _steps(
        self, source: TensorLayout, target: TensorLayout, keep_reshape: bool
    ) -> tuple[RedistributionStep, ...] | None:
        ranks, rank = self.context.devices, self.context.own_rank
        try:
            for group in created_groups(
                source, target, ranks, rank, enable_alltoall=self.enable_alltoall
            ):
                if group_problem(group, self.context) is not None:
                    return None
            return infer(
                source,
                target,
                ranks,
                rank,
                enable_alltoall=self.enable_alltoall,
                keep_reshape=keep_reshape,
            )
        except RedistributionError:
            return None


def chain_seconds(
    steps: Sequence[RedistributionStep], element: int, machine: Machine, *, gradient: bool
) -> float:
    """Seconds of a chain: its collectives, and the memory that its local operators write."""
    seconds = seconds_of(chain_communications(steps, element, machine, gradient=gradient))
    if machine.memory_bandwidth:
        moved = 2 * moved_bytes(steps, element) / machine.memory_bandwidth
        seconds += moved * (2 if gradient else 1)
    return seconds


# -- lower bounds --------------------------------------------------------------------------------


def least_seconds(
    sources: Sequence[TensorLayout],
    targets: Sequence[TensorLayout],
    want: Want,
    machine: Machine,
    enable_alltoall: bool,
) -> Floats:
    """At least what each redistribution costs; 0 where nothing is known.

    A device's part of a tensor is named by bits: which half of a dimension, which half of that,
    and so on.  A bit of the source that the target does not have at the same place must be gathered
    (or exchanged), and what is gathered has at least the bits that stay, and the new ones.
    """
    nothing = np.zeros((len(sources), len(targets)))
    shape = _common(sources[0].tensor_shape, targets[0].tensor_shape)
    size = prod(sources[0].device_matrix)
    if shape is None or size & (size - 1):
        return nothing
    left = [_bits(layout, shape) for layout in sources]
    right = [_bits(layout, shape) for layout in targets]
    if any(bits is None for bits in (*left, *right)):
        known_left = np.array([bits is not None for bits in left])
        known_right = np.array([bits is not None for bits in right])
        if not known_left.any() or not known_right.any():
            return nothing
        inner = least_seconds(
            [s for s, known in zip(sources, known_left, strict=True) if known],
            [t for t, known in zip(targets, known_right, strict=True) if known],
            want,
            machine,
            enable_alltoall,
        )
        nothing[np.ix_(known_left, known_right)] = inner
        return nothing
    first = np.array([bits for bits in left if bits is not None])
    second = np.array([bits for bits in right if bits is not None])
    return _bound(first, second, prod(shape) * want.element, want, machine, enable_alltoall)


_LEVELS = 12
"""Halvings of a dimension that are looked at; 4096 devices at most."""


def _bound(
    first: Ints, second: Ints, size: int, want: Want, machine: Machine, enable_alltoall: bool
) -> Floats:
    a, b = first[:, None], second[None, :]  # (sources, targets, dimensions, levels)
    same = (a == b) & (a >= 0)
    if enable_alltoall:
        kept = same
    else:
        prefix = np.logical_and.accumulate(same, axis=-1)
        kept = prefix
    mask_first, mask_second = _masks(first), _masks(second)
    mask_kept = np.where(kept, 1 << np.maximum(a, 0), 0).sum(axis=(2, 3))
    moved = mask_first[:, None] & ~mask_kept
    new = mask_second[None, :] & ~mask_first[:, None]
    if enable_alltoall:
        local = size / 2.0 ** _count(np.broadcast_to(mask_second[None, :], moved.shape))
    else:
        local = size / 2.0 ** (_count(mask_kept) + _count(new))
    inner = machine.levels[0]
    node = inner.devices or 1 << 62
    near_mask = (1 << max(0, (node & -node).bit_length() - 1)) - 1
    near, far = _count(moved & near_mask), _count(moved & ~near_mask)
    if enable_alltoall or node & (node - 1):
        mesh = (node - 1) if inner.topology == "mesh" else 1
        fast = max([inner.bandwidth * mesh, *(level.bandwidth for level in machine.levels[1:])])
        seconds = local * (1 - 2.0 ** -(near + far)) / fast
    else:
        # Whatever is gathered first, the other is gathered on at least what there was before.
        links = 2.0**near - 1 if inner.topology == "mesh" else np.ones(near.shape)
        within = inner.bandwidth * np.maximum(links, 1.0)
        seconds = local / 2.0**far * (1 - 2.0**-near) / within
        for level in machine.levels[1:2]:
            slow = max(each.bandwidth for each in machine.levels[1:])
            seconds += local / 2.0**near * (1 - 2.0**-far) / slow + far * level.latency
    least = min(level.start + level.latency for level in machine.levels)
    seconds = np.where(moved > 0, np.maximum(seconds, least), 0.0)
    return seconds * (2 if want.gradient else 1)


def _masks(bits: Ints) -> Ints:
    return np.where(bits >= 0, 1 << np.maximum(bits, 0), 0).sum(axis=(1, 2))


def _count(mask: Ints) -> Ints:
    found = np.zeros(mask.shape, dtype=np.int64)
    rest: Ints = np.array(mask, dtype=np.int64)
    while np.any(rest):
        found += rest & 1
        rest >>= 1
    return found


def _bits(layout: TensorLayout, shape: Shape) -> list[list[int]] | None:
    """Per dimension of ``shape`` (a refinement of the layout's) the rank bits that halve it."""
    per_dimension: list[list[int]] = []
    for entry in layout.tensor_map:
        bits: list[int] = []
        for axis in axes_of(layout.device_matrix, entry):
            stride = prod(layout.device_matrix[axis + 1 :])
            high, low = (
                (stride * layout.device_matrix[axis]).bit_length() - 1,
                stride.bit_length() - 1,
            )
            bits += range(high - 1, low - 1, -1)
        per_dimension.append(bits)
    refined: list[list[int]] = []
    at = 0
    for size, bits in zip(layout.tensor_shape, per_dimension, strict=True):
        rest, left = size, list(bits)
        while rest > 1:
            part = shape[at]
            outer = part & -part  # the part's power of two
            room = outer.bit_length() - 1
            last = rest == part
            if len(left) > room and (last or outer != part):
                return None  # it is cut across a border that the other shape has
            refined.append(left[:room])
            left = left[room:]
            rest //= part
            at += 1
        if left:
            return None
    return [(bits + [-1] * _LEVELS)[:_LEVELS] for bits in refined] or [[-1] * _LEVELS]


def _common(first: Shape, second: Shape) -> Shape | None:
    """The shape of which both are groups of neighbouring dimensions; None if there is none."""
    if any(size <= 0 for size in (*first, *second)) or prod(first) != prod(second):
        return None
    a, b = [n for n in first if n > 1], [n for n in second if n > 1]
    found: list[int] = []
    while a and b:
        part = min(a[0], b[0])
        if max(a[0], b[0]) % part:
            return None
        found.append(part)
        for side in (a, b):
            side[0] //= part
            if side[0] == 1:
                side.pop(0)
    return tuple(found)
