"""Writing rows: Scatter, ScatterNd, and sums by segment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from irtool.ir.group_names import group_name
from irtool.operators.case import Case
from irtool.operators.functions.common import check_masked
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Collective, Reduction, Sharding, Unsure
from irtool.operators.layout import DYNAMIC, WHOLE, identity_map

Base = Callable[[], Sharding]


@irregular("scatter")
def scatter(case: Case, base: Base) -> Sharding:
    """Rows are replaced: they can not be split."""
    if case.strategy[0][:1] != (1,):
        message = f"the first dimension of the input can not be split: {case.strategy[0]}"
        case.refuse("axis-split", message)
    # What is written in place of rows has no gradient.
    return replace(_scattered(case), mirrored=(False,) * len(case.tensors))


@irregular("scatter_masked")
def scatter_masked(case: Case, base: Base) -> Sharding:
    """Rows are added to and the like: if they are split, others' updates are masked away."""
    sharding = _scattered(case)
    if case.strategy[0][0] == 1:
        return sharding
    if case.shape(0)[0] == DYNAMIC or (case.context.dynamic and case.call.is_dynamic):
        message = "the first dimension can not be split where shapes are dynamic"
        place = "scatter_math_ops_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", message, place)
    check_masked(case, 1)
    return replace(sharding, replaced="a masked local scatter")


def _scattered(case: Case) -> Sharding:
    first, indices, updates = case.strategy[:3]
    if prod(indices) != 1:
        case.refuse("axis-split", f"indices can not be split, strategy {indices}")
    if any(split != 1 for split in updates[: len(indices)]):
        message = f"the first {len(indices)} dimensions of updates can not be split: {updates}"
        case.refuse("axis-split", message)
    if updates != (*indices, *first[1:]):
        message = f"updates must be split like indices and the rows of the input: {case.strategy}"
        case.refuse("axis-mismatch", message)
    plain = identity_map(len(first))
    unsplit = (WHOLE,) * len(indices)
    return Sharding(first, (plain, unsplit, (*unsplit, *plain[1:])), (plain,))


@axes("scatter_nd")
def scatter_nd_axes(case: Case) -> str:
    """An index points into the first dimensions of the input, which are whole."""
    return _element_axes(case, "!")


@axes("scatter_nd_masked")
def scatter_nd_masked_axes(case: Case) -> str:
    """An index points into the first dimensions of the input, which may be split."""
    return _element_axes(case, "")


def _element_axes(case: Case, mark: str) -> str:
    depth = _depth(case)
    into = [f"{mark}d{place}" for place in range(depth)]
    rest = [f"x{place}" for place in range(len(case.shape(0)) - depth)]
    tensor, slices = " ".join(into + rest), " ".join(rest)
    places = ". " * (len(case.shape(1)) - 1)
    return f"[{tensor}] [{places}.] [{places}{slices}] -> [{tensor}]"


@irregular("scatter_nd")
def scatter_nd(case: Case, base: Base) -> Sharding:
    """Elements are replaced: the dimensions that indices point into can not be split."""
    depth = _depth(case)
    if any(split != 1 for split in case.strategy[0][:depth]):
        message = f"the first {depth} dimensions of the input can not be split: {case.strategy[0]}"
        case.refuse("axis-split", message, "scatter_nd_ops_info.cc:CheckInputStrategy")
    _check_updates(case, depth)
    sharding = _scattered_nd(case, depth)
    if case.call.op == "ScatterNdUpdate":  # what is written in place of elements has no gradient
        return replace(sharding, mirrored=(False,) * len(case.tensors))
    return sharding


@irregular("scatter_nd_masked")
def scatter_nd_masked(case: Case, base: Base) -> Sharding:
    """Elements are added to and the like: others' updates are masked away."""
    depth = _depth(case)
    _check_updates(case, depth)
    split = any(value != 1 for value in case.strategy[0][:depth])
    if split and case.call.is_dynamic:
        message = f"the first {depth} dimensions can not be split where shapes are dynamic"
        place = "scatter_nd_ops_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", message, place)
    sharding = _scattered_nd(case, depth)
    if split:
        check_masked(case, 1)
    return replace(sharding, replaced="a masked local scatter") if split else sharding


def _depth(case: Case) -> int:
    """How many dimensions of the input an index points into."""
    if len(case.strategy) != 3:
        case.refuse("strategy-size", f"the strategy must have three entries: {case.strategy}")
    depth = case.shape(1)[-1] if case.shape(1) else 1
    if depth == DYNAMIC:
        message = "the last dimension of indices is dynamic"
        place = "scatter_nd_ops_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", message, place)
    return depth


def _check_updates(case: Case, depth: int) -> None:
    first, indices, updates = case.strategy
    if prod(indices) != 1:
        case.refuse("axis-split", f"indices can not be split, strategy {indices}")
    places = len(indices) - 1
    if any(split != 1 for split in updates[:places]):
        message = f"the first {places} dimensions of updates can not be split: {updates}"
        case.refuse("axis-split", message)
    if updates != (*indices[:-1], *first[depth:]):
        message = f"updates must be split like indices and the rest of the input: {case.strategy}"
        case.refuse("axis-mismatch", message)


def _scattered_nd(case: Case, depth: int) -> Sharding:
    first, indices, _ = case.strategy
    plain = identity_map(len(first))
    unsplit = (WHOLE,) * len(indices)
    return Sharding(first, (plain, unsplit, (*unsplit[:-1], *plain[depth:])), (plain,))


REDUCED = {"Sum": "sum", "Prod": "prod", "Min": "min", "Max": "max"}


@irregular("unsorted_segment")
def unsorted_segment(case: Case, base: Base) -> Sharding:
    """Rows with one segment id become one row: their sum, product, minimum or maximum."""
    return _segments(case, REDUCED[case.call.op.removeprefix("UnsortedSegment")])


def _segments(case: Case, reduce: str) -> Sharding:
    """X and its segment ids, split alike; every device has all segments, results are combined."""
    x, ids = case.strategy[:2]
    front = len(ids)
    shapes = case.shape(0)[:front], case.shape(1)
    if x[:front] != ids or shapes[0] != shapes[1]:
        message = f"shapes and strategies must be equal up to the rank of the ids: {case.strategy}"
        case.refuse("axis-mismatch", message)
    if len(case.tensors) > 2:
        raise Unsure("the number of segments is a tensor")
    plain = identity_map(len(x))
    out = (WHOLE, *plain[front:])
    over = tuple(axis for axis in range(front) if x[axis] > 1)
    why = "pieces of segments are combined"
    maps = (plain, plain[:front])
    sharding = Sharding(x, maps, (out,), mirrored=(True, False))
    if not over:
        return sharding
    if reduce in ("sum", "prod"):
        return replace(sharding, reductions=(Reduction("AllReduce", over, reduce, why),))
    # Minimum and maximum are taken over what all devices have.
    world = tuple(range(case.context.world_size))
    exchange = Collective("AllGather", world, "", why, None, None, group_name(world, len(world)))
    return replace(sharding, exchanges=(exchange,), replaced=f"AllGather, then Reduce{reduce}")
