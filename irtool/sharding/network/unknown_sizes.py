"""Reshape of tensors with unknown sizes.

With one unknown size on both sides MindSpore calculates with a prime in its place; with several it
gathers everything, reshapes, and slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, lcm, prod

from irtool.operators.layout import DYNAMIC, Shape, TensorLayout, axes_of, coordinates, ranks_along
from irtool.sharding.redistribution import (
    CONCAT,
    RESHAPE,
    SPLIT,
    STRIDED_SLICE,
    RedistributionError,
    RedistributionStep,
    infer,
)

STAND_IN = 1000003
"""A prime that divides no real size: what it divides is unknown."""


def reshape_chain(
    source: TensorLayout,
    target: TensorLayout,
    devices: tuple[int, ...],
    rank: int,
    *,
    enable_alltoall: bool,
) -> tuple[RedistributionStep, ...] | None:
    """The chain that a Reshape of unknown sizes is replaced by.

    Args:
        source: how its operand lies; an unknown size is negative.
        target: how its result is to lie.
        devices: ranks of the stage.
        rank: whose chain.
        enable_alltoall: whether AlltoAll may move a split from one dimension to another.

    Returns:
        Operators in the order in which they run; None if it is not known.
    """
    unknown = [layout.tensor_shape.count(DYNAMIC) for layout in (source, target)]
    if unknown[1] == 1 and _joins_rows(source, target):
        return (RedistributionStep(RESHAPE, source.slice_shape, target.slice_shape),)
    if max(unknown) > 1:
        return gather_and_slice(source, target, devices, rank)
    if unknown != [1, 1]:
        return None
    first, last = _with_stand_ins(source, target)
    try:
        steps = infer(
            replace(source, tensor_shape=first),
            replace(target, tensor_shape=last),
            devices,
            rank,
            enable_alltoall=enable_alltoall,
            keep_reshape=True,
            tidy=False,
        )
    except RedistributionError:
        return None
    return tuple(_reshaped_last([*_forgotten(steps)]))


def _with_stand_ins(source: TensorLayout, target: TensorLayout) -> tuple[Shape, Shape]:
    """Both shapes with multiples of the prime in the place of what is not known.

    The smaller size is one that the target divides, and the larger one that the source divides.
    """
    rest = [prod(n for n in layout.tensor_shape if n != DYNAMIC) for layout in (source, target)]
    common = gcd(*rest)
    factors = (rest[1] // common, rest[0] // common)
    cut, wanted = (layout.splits[layout.tensor_shape.index(DYNAMIC)] for layout in (source, target))
    needed = lcm(cut // gcd(cut, factors[0]), wanted)
    first, last = (STAND_IN * needed * factor for factor in factors)
    return _filled(source.tensor_shape, first), _filled(target.tensor_shape, last)


def _reshaped_last(steps: list[RedistributionStep]) -> list[RedistributionStep]:
    """A Reshape before a gather of the first, unknown dimension comes behind it."""
    if [step.op for step in steps] != [RESHAPE, "AllGather"]:
        return steps
    reshape, gather = steps
    sizes = (reshape.input_shape[:1], gather.output_shape[:1])
    if gather.axis != 0 or any(size != (DYNAMIC,) for size in sizes):
        return steps
    return [
        replace(gather, input_shape=reshape.input_shape, output_shape=reshape.input_shape),
        replace(reshape, output_shape=gather.output_shape),
    ]


def _joins_rows(source: TensorLayout, target: TensorLayout) -> bool:
    """Whether the first dimension alone is split, by the same devices, and unknown behind it.

    Then each device has whole rows of both, if others than the first join it.
    """
    if source.tensor_shape.count(DYNAMIC) < 2 or target.tensor_shape[:1] != (DYNAMIC,):
        return False
    splits = [layout.splits for layout in (source, target)]
    if splits[0][:1] != splits[1][:1] or any(max(one[1:], default=1) > 1 for one in splits):
        return False
    places = [_place_of_rows(layout) for layout in (source, target)]
    return splits[0][0] > 1 and places[0] == places[1]


def _place_of_rows(layout: TensorLayout) -> int:
    """How many neighbouring devices hold the same rows."""
    axes = axes_of(layout.device_matrix, layout.tensor_map[0])
    return prod(layout.device_matrix[max(axes) + 1 :]) if axes else 0


def _filled(shape: Shape, size: int) -> Shape:
    return tuple(size if length == DYNAMIC else length for length in shape)


def _forgotten(steps: tuple[RedistributionStep, ...]) -> Iterator[RedistributionStep]:
    """The steps with unknown sizes again; slices are Split and TupleGetItem."""
    for step in steps:
        before, after = (
            tuple(DYNAMIC if size % STAND_IN == 0 else size for size in shape)
            for shape in (step.input_shape, step.output_shape)
        )
        if step.op == STRIDED_SLICE:
            yield RedistributionStep(SPLIT, before, after, step.axis, None, step.count)
            yield RedistributionStep("TupleGetItem", after, after, index=step.index)
        else:
            yield replace(step, input_shape=before, output_shape=after)


def gather_and_slice(
    source: TensorLayout, target: TensorLayout, devices: tuple[int, ...], rank: int
) -> tuple[RedistributionStep, ...] | None:
    """The chain of such a Reshape through the whole tensor, or None where it is not taken.

    Every split dimension is gathered, first one first; then the whole tensor is reshaped; then
    every dimension that is to be split is cut.

    Args:
        source: how its operand lies; an unknown size is negative.
        target: how its result is to lie.
        devices: ranks of the stage.
        rank: whose chain.
    """
    if _keeps_sizes(source, target):
        return None
    steps: list[RedistributionStep] = []
    shape = source.slice_shape
    for dimension, entry in enumerate(source.tensor_map):
        axes = axes_of(source.device_matrix, entry)
        if not axes:
            continue
        ranks = ranks_along(source.device_matrix, axes, devices, rank)
        if len(ranks) == 1:
            continue
        steps += _gathered(shape, dimension, source.tensor_shape, ranks)
        shape = _with(shape, dimension, source.tensor_shape[dimension])
    steps.append(RedistributionStep(RESHAPE, shape, target.tensor_shape))
    shape = target.tensor_shape
    place = coordinates(target.device_matrix, devices.index(rank))
    for dimension, entry in enumerate(target.tensor_map):
        count = target.splits[dimension]
        if count == 1:
            continue
        index = 0
        for axis in axes_of(target.device_matrix, entry):
            index = index * target.device_matrix[axis] + place[axis]
        local = _with(shape, dimension, target.slice_shape[dimension])
        steps.append(RedistributionStep(SPLIT, shape, local, dimension, None, count))
        steps.append(RedistributionStep("TupleGetItem", local, local, index=index))
        shape = local
    return tuple(steps)


def _keeps_sizes(source: TensorLayout, target: TensorLayout) -> bool:
    """Whether both are split along one dimension only, and its size is known: nothing moves."""
    split = [
        [dimension for dimension, count in enumerate(layout.splits) if count != 1]
        for layout in (source, target)
    ]
    if len(split[0]) != 1 or len(split[1]) != 1:
        return False
    sizes = (source.tensor_shape[split[0][0]], target.tensor_shape[split[1][0]])
    return DYNAMIC not in sizes


def _with(shape: Shape, dimension: int, size: int) -> Shape:
    return (*shape[:dimension], size, *shape[dimension + 1 :])


def _gathered(
    shape: Shape, dimension: int, full_shape: Shape, ranks: tuple[int, ...]
) -> list[RedistributionStep]:
    count = len(ranks)
    first = shape[0] if shape[0] == DYNAMIC else shape[0] * count
    joined = _with(shape, 0, first)
    steps = [RedistributionStep("AllGather", shape, joined, 0, None, count, None, ranks)]
    if dimension:
        after = _with(shape, dimension, full_shape[dimension])
        steps.append(RedistributionStep(SPLIT, joined, shape, 0, None, count))
        steps.append(RedistributionStep(CONCAT, shape, after, dimension, None, count))
    return steps
