"""Resizing images, regions of interest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.ir.group_names import WORLD_GROUPS
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.halo import exchanged
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Collective, Reduction, Sharding, Unsure
from irtool.operators.layout import DYNAMIC, identity_map, ranks_along, repeated_calculation

Base = Callable[[], Sharding]
DYNAMIC_PLACE = "resizebilinear_v2_info.cc:CheckStrategyForDynamicShape"


@irregular("resize_bilinear")
def resize_bilinear(case: Case, base: Base) -> Sharding:
    """The height is whole; a split width is exchanged with the neighbours."""
    strategy = case.strategy[0]
    _refuse_dynamic(case)
    if strategy[2] != 1:
        case.refuse("axis-split", f"the height can not be split, strategy {strategy}")
    check_strategy((strategy,), (case.call.results[0].divisible_shape,), case.context)
    plain = identity_map(4)
    sharding = Sharding(strategy, (plain,), (plain,))
    if strategy[3] == 1:
        return sharding
    if case.context.target != "Ascend":
        case.refuse("axis-split", f"the width can only be split on Ascend, strategy {strategy}")
    return _columns_exchanged(case, sharding)


def _columns_exchanged(case: Case, sharding: Sharding) -> Sharding:
    """Each piece of the new width needs the old columns that it lies between."""
    matrix, shape = case.strategy[0], case.shape(0)
    devices, rank = case.context.devices, case.context.own_rank
    repeated = repeated_calculation(matrix, len(devices))
    if repeated is None:
        return sharding
    ranks = ranks_along(repeated.device_matrix, (3,), devices, rank)
    own, count = ranks.index(rank), matrix[3]
    received = _columns(case, own)
    sent = (
        _columns(case, own - 1)[1] if own else 0,
        _columns(case, own + 1)[0] if own < count - 1 else 0,
    )
    near = {ranks[own + step] for step in (-1, 1) if received[step > 0] or sent[step > 0]}
    local = [size // split for size, split in zip(shape, matrix, strict=True)]
    exchange = Collective(
        "NeighborExchangeV2",
        tuple(sorted({rank, *near})),
        why="columns of a split image",
        output=None,
        shape=exchanged(local, {3: received}, {3: sent}),
        group=WORLD_GROUPS[0],
    )
    local[3] += sum(received)
    return replace(
        sharding,
        exchanges=(exchange,),
        raw_inputs=((0, tuple(local)),),
        replaced="an exchange of columns, then a local resize",
    )


def _columns(case: Case, place: int) -> tuple[int, int]:
    """How many columns of its neighbours before and after piece ``place`` needs.

    A piece that needs less than its own columns on the right is refused: widths that shrink.
    """
    count, old, new = case.strategy[0][3], case.shape(0)[3], case.result(0)[3]
    above, below = (old - 1, new - 1) if case.flag("align_corners") and new > 1 else (old, new)
    first, last = place * new // count, (place + 1) * new // count - 1
    begin, end = place * old // count, (place + 1) * old // count - 1
    left = begin - first * above // below if place else 0
    right = -(-last * above // below) - end if place < count - 1 else 0
    for size, side in ((left, "Left"), (right, "Right")):
        if not 0 <= size <= 1:
            message = f"piece {place} of the width would need {size} columns of a neighbour"
            check = f"resizebilinear_v2_info.cc:InferOverlap{side}SizeByRankBias"
            case.refuse("halo", message, check)
    return left, right


def _refuse_dynamic(case: Case) -> None:
    if DYNAMIC in case.shape(0)[2:]:
        message = "height and width can not be dynamic"
        case.refuse("dynamic-shape", message, DYNAMIC_PLACE)


@irregular("resize_nearest")
def resize_nearest(case: Case, base: Base) -> Sharding:
    """Height and width may be split, but not with aligned corners."""
    strategy = case.strategy[0]
    if case.flag("align_corners") and strategy[2:] != (1, 1):
        message = f"with align_corners the image can not be split, strategy {strategy}"
        case.refuse("axis-split", message)
    shape = case.call.results[0].divisible_shape
    check_strategy((strategy,), (shape,), case.context)
    plain = identity_map(4)
    return Sharding(strategy, (plain,), (plain,))


@irregular("grid_sampler")
def grid_sampler(case: Case, base: Base) -> Sharding:
    """MindSpore cuts images and grid in the same places, whatever these dimensions stand for."""
    sharding = base()
    if case.strategy[1][-1] != 1:
        raise Unsure("the coordinates of a grid are split: local shapes do not fit")
    return sharding


@irregular("roi_align")
def roi_align(case: Case, base: Base) -> Sharding:
    """Height and width are whole; split images get only the regions that are their own."""
    features, regions = case.strategy[:2]
    if features[2:] != (1, 1):
        message = f"height and width can not be split, strategy {case.strategy}"
        case.refuse("axis-split", message)
    if regions[1] != 1:
        message = f"the second dimension of regions can not be split, strategy {case.strategy}"
        case.refuse("axis-split", message)
    if features[0] != 1 and case.shape(0)[0] == DYNAMIC:
        message = "a dynamic number of images can not be split"
        case.refuse("dynamic-shape", message, "roi_align_info.cc:CheckStrategyForDynamicShape")
    return _by_region(case, base())


def _by_region(case: Case, sharding: Sharding) -> Sharding:
    if case.strategy[0][0] == 1:
        return sharding
    why = "each device computes the regions of its own images"
    return replace(
        sharding,
        reductions=(Reduction("AllReduce", (0,), "sum", why),),
        replaced="a masked local operator and the AllReduce",
    )


@irregular("crop_and_resize")
def crop_and_resize(case: Case, base: Base) -> Sharding:
    """Image [n h w c], boxes [b 4], the image each box is of [b]."""
    image, boxes, index = case.strategy[:3]
    if image[1:3] != (1, 1):
        case.refuse("axis-split", f"height and width can not be split, strategy {case.strategy}")
    if boxes[1] != 1:
        message = f"the second dimension of boxes can not be split, strategy {case.strategy}"
        case.refuse("axis-split", message)
    if boxes[0] != index[0]:
        message = f"boxes and their indices are split differently: {case.strategy}"
        case.refuse("axis-mismatch", message)
    if image[0] != 1 and case.shape(0)[0] == DYNAMIC:
        message = "a dynamic number of images can not be split"
        place = "crop_and_resize_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", message, place)
    return _by_region(case, base())
