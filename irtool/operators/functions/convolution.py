"""Convolution, and its gradient (transposed convolution)."""

from __future__ import annotations

from collections.abc import Callable

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.halo import (
    PAD,
    SAME,
    Image,
    Window,
    check_images,
    check_output_divides,
    needs_of,
    needs_transposed,
    place_of,
    used_padding,
    with_halos,
)
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import WHOLE, Shape

Base = Callable[[], Sharding]


@axes("conv2d")
def conv2d_axes(case: Case) -> str:
    """Batch, channels and image; with groups channels are whole."""
    return _axes(case, "[n {i} h w] [{o} {i} . .] -> [n {o} h w] order (n i h w o)")


@axes("conv3d")
def conv3d_axes(case: Case) -> str:
    """Batch, channels and an image of three dimensions, of which the last is whole."""
    return _axes(case, "[n {i} h w .] [{o} {i} . . .] -> [n {o} h w .] order (n i h w o)")


@axes("conv2d_transpose")
def conv2d_transpose_axes(case: Case) -> str:
    """The channels that are summed up are those of the convolution's output."""
    others = " [*.]" * (len(case.tensors) - 2)
    return _axes(
        case,
        "[n {i} h w] [{i} {o} . .]" + others + " -> [n {o} h w] order (n i h w o)"
        f" strategy of ({'0 1' if len(case.tensors) > 1 else '0'})",
    )


def _axes(case: Case, pattern: str) -> str:
    if case.call.attributes.get("group", 1) != 1:
        return f"{pattern.format(i='!i', o='!o')} judged (h w)"
    return f"{pattern.format(i='i', o='o')} judged (h w) reduce i with sum"


@irregular("conv2d")
def conv2d(case: Case, base: Base) -> Sharding:
    """A convolution: x [n i h w], weight [o i . .]; i is summed up."""
    _check_attributes(case, 4)
    _check_channels(case, case.strategy[1][1], "c-in")
    images = _images(case, (2, 3))
    check_images(case, images, case.number("pad_mode"))
    return _convolved(case, images)


@irregular("convolution")
def convolution(case: Case, base: Base) -> Sharding:
    """The operator of the newer interface: a bias may not be there, the image is whole.

    MindSpore compares the split of the input's channels with that of the weight's first
    dimension, and does not look at that of its second one.
    """
    place = "conv2d_info.cc:CheckStrategy"
    if len(case.strategy) != 2:
        message = f"the strategy must have two entries, not {len(case.strategy)}"
        case.refuse("strategy-size", message)
    x, weight = case.strategy
    if x[1] != weight[0]:
        message = f"channels of the input are split by {x[1]}, of the weight by {weight[0]}"
        case.refuse("axis-mismatch", message, place)
    if any(split != 1 for split in weight[2:]):
        message = f"the kernel can not be split, but its strategy is {weight[2:]}"
        case.refuse("axis-split", message, place)
    if x[2:] != (1, 1):
        case.refuse("axis-split", f"height and width can not be split, strategy {x}", place)
    if case.call.is_dynamic or len(x) != 4:
        raise Unsure("a convolution of other than four known dimensions")
    return _convolved(case, [])


@irregular("conv3d")
def conv3d(case: Case, base: Base) -> Sharding:
    """A convolution of three image dimensions, the last one whole; input channels are summed up."""
    _check_attributes(case, 5)
    _check_channels(case, case.strategy[1][1], "c-in")
    if case.strategy[0][4] != 1:
        message = f"the last dimension can not be split, strategy {case.strategy[0]}"
        case.refuse("axis-split", message)
    images = _images(case, (2, 3))
    check_images(case, images, case.number("pad_mode"))
    return _convolved(case, images)


def _convolved(case: Case, images: list[Image]) -> Sharding:
    x, weight = case.strategy[0], case.strategy[1]
    rank = len(x)
    depth = (WHOLE,) * (rank - 4)
    matrix = (*x[:4], weight[0])
    x_map = (4, 3, 2, 1, *depth)
    weight_map = (0, 3, *((WHOLE,) * (rank - 2)))
    out = (4, 0, 2, 1, *depth)
    reductions = ()
    if x[1] > 1:
        reductions = (Reduction("AllReduce", (1,), "sum", "input channels are summed up"),)
    sharding = Sharding(matrix, (x_map, weight_map), (out,), reductions)
    wide = [
        image for image in images if image.split > 1 and image.window.kernel > image.window.stride
    ]
    if wide and case.call.is_dynamic:
        message = "halos can't be exchanged where shapes are dynamic"
        case.refuse("dynamic-shape", message, "conv2d_info.cc:CheckStrategyForDynamicShape")
    return with_halos(case, sharding, wide, needs_of, (x_map, 0)) if wide else sharding


@irregular("conv2d_transpose", self_checked=True)
def conv2d_transpose(case: Case, base: Base) -> Sharding:
    """The gradient of a convolution: x [n o h w], weight [o i . .], the shape that comes out."""
    count = min(2, len(case.tensors))
    check_strategy(case.strategy, tuple(case.sizes(i) for i in range(count)), case.context)
    if case.call.is_dynamic:
        message = "dynamic shapes are not supported"
        case.refuse("dynamic-shape", message, "conv2d_info.cc:CheckStrategyForDynamicShape")
    _check_attributes(case, 4)
    _check_channels(case, case.strategy[1][0], "c-out")
    x, weight = case.strategy[0], case.strategy[1]
    images = _images(case, (2, 3))
    split = [image for image in images if image.split > 1]
    for image in split:
        check_output_divides(case, image)
    if split and case.number("pad_mode") not in (PAD, SAME):
        message = "a split height or width needs the pad or same mode"
        case.refuse("image-split", message, place_of(case, "CheckHWStrategy"))
    matrix = (*x, weight[1])
    out_splits = (x[0], weight[1], x[2], x[3])
    if any(size % split for size, split in zip(case.result(0), out_splits, strict=True)):
        message = f"the output {case.result(0)} can not be split by {out_splits}"
        case.refuse("not-divisible", message, "conv2d_info.cc:InferDevMatrixShape")
    reductions = ()
    if x[1] > 1:
        reductions = (Reduction("AllReduce", (1,), "sum", "output channels are summed up"),)
    sharding = Sharding(matrix, ((4, 3, 2, 1), (3, 0, -1, -1)), ((4, 0, 2, 1),), reductions)
    if not split:
        return sharding
    return with_halos(case, sharding, split, needs_transposed, ((4, 3, 2, 1), 0))


def _check_attributes(case: Case, rank: int) -> None:
    """Format, strides and shapes that the compiler takes at all."""
    wanted = "NCHW" if rank == 4 else "NCDHW"
    file = case.rule.check.partition(":")[0]
    check = f"{file if rank == 5 else 'conv2d_info.cc'}:CheckAttrsBase"
    form = case.call.attributes.get("format", wanted)
    if form != wanted:
        case.refuse("attribute", f"the format must be {wanted}, not {form}", check)
    stride = _spread(case, "stride", "strides", rank)
    if len(stride) != rank:
        raise Unsure(f"stride {stride}")
    if stride[:2] != (1, 1):
        message = f"the first two strides must be 1, but are {stride[:2]}"
        case.refuse("attribute", message, check)


def _spread(case: Case, name: str, plural: str, rank: int) -> Shape:
    """Strides or dilations, one a dimension: three-dimensional ones have them in the plural."""
    if case.has(plural):
        return case.numbers(plural)
    return case.numbers(name) if case.has(name) else (1,) * rank


def _check_channels(case: Case, weight: int, what: str) -> None:
    """Groups, the channels that are summed up, the kernel, in the compiler's order."""
    splits = case.strategy[1]
    group = case.call.attributes.get("group", 1)
    if group != 1 and splits[:2] != (1, 1):
        message = f"with group {group}, channels can not be split: {splits[:2]}"
        case.refuse("axis-split", message, "conv2d_info.cc:CheckStrategyBase")
    file = "conv2d_info.cc" if len(splits) == 4 else "conv3d_info.cc"
    if case.strategy[0][1] != weight:
        message = (
            f"{what} of the input is split by {case.strategy[0][1]}, of the weight by {weight}"
        )
        case.refuse("axis-mismatch", message, f"{file}:CheckStrategy")
    if any(split != 1 for split in splits[2:]):
        message = f"the kernel can not be split, but its strategy is {splits[2:]}"
        case.refuse("axis-split", message, f"{file}:CheckStrategy")


def _images(case: Case, dimensions: tuple[int, ...]) -> list[Image]:
    """Sizes and windows of the image dimensions that may be split."""
    rank = len(case.shape(0))
    stride = _spread(case, "stride", "strides", rank)
    dilation = _spread(case, "dilation", "dilations", rank)
    kernel = case.numbers("kernel_size")
    kernel = kernel * (len(stride) - 2) if len(kernel) == 1 else kernel
    pads = case.numbers("pad_list")
    if len(dilation) != len(stride) or len(pads) != 2 * (len(stride) - 2):
        raise Unsure(f"dilation {dilation}, pad_list {pads}")
    images: list[Image] = []
    for dimension in dimensions:
        place = dimension - 2
        width = dilation[dimension] * (kernel[place] - 1) + 1
        before, after = pads[2 * place : 2 * place + 2]
        if case.number("pad_mode") == PAD and case.rule.function != "conv2d_transpose":
            after = used_padding(case.shape(0)[dimension], width, stride[dimension], before, after)
        window = Window(width, stride[dimension], before, after)
        images.append(
            Image(
                dimension,
                case.shape(0)[dimension],
                case.result(0)[dimension],
                case.strategy[0][dimension],
                window,
            )
        )
    return images
