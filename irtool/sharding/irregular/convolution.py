"""Convolution and pooling: split images need the rows that their neighbours hold (halos).

Output rows ``[first, last)`` of a convolution with kernel ``k``, stride ``s`` and padding ``p``
need input rows from ``first * s - p`` to ``(last - 1) * s - p + k``. What of them is not a
device's own is exchanged with the neighbours before the local operator runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from irtool.ir.group_names import WORLD_GROUPS
from irtool.sharding.case import Case
from irtool.sharding.checks import check_strategy
from irtool.sharding.irregular import irregular
from irtool.sharding.judgement import Collective, Reduction, Sharding, Unsure
from irtool.sharding.layout import (
    Shape,
    TensorMap,
    axes_of,
    coordinates,
    identity_map,
    position_of,
)

Base = Callable[[], Sharding]
PAD, SAME, VALID = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _Window:
    """A kernel along one image dimension: effective size, stride, padding before and after."""

    kernel: int
    stride: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Image:
    """One split image dimension: its place, sizes before and after, number of slices."""

    dimension: int
    size: int
    out: int
    split: int
    window: _Window

    @property
    def slice(self) -> int:
        return self.size // self.split


@irregular("conv2d")
def conv2d(case: Case, base: Base) -> Sharding:
    """A convolution: x [n i h w], weight [o i . .]; i is summed up."""
    _check_attributes(case, 4)
    _check_weight(case)
    _check_channels(case, case.strategy[1][1], "c-in")
    images = _images(case, (2, 3))
    mode = case.number("pad_mode")
    _check_images(case, images, mode)
    return _convolved(case, images)


@irregular("conv3d")
def conv3d(case: Case, base: Base) -> Sharding:
    """The same with three image dimensions; the last one is whole."""
    _check_attributes(case, 5)
    _check_weight(case, check="conv2d_info.cc:CheckStrategyBase")
    if case.strategy[0][4] != 1:
        message = f"the last dimension can not be split, strategy {case.strategy[0]}"
        case.refuse("axis-split", message)
    _check_channels(case, case.strategy[1][1], "c-in")
    images = _images(case, (2, 3))
    _check_images(case, images, case.number("pad_mode"))
    return _convolved(case, images)


def _convolved(case: Case, images: list[_Image]) -> Sharding:
    x, weight = case.strategy[0], case.strategy[1]
    rank = len(x)
    matrix = (*x, weight[0])
    last = len(matrix) - 1
    x_map = tuple(range(last, 0, -1))
    weight_map = (0, last - 1, *((-1,) * (rank - 2)))
    out = (last, 0, *x_map[2:])
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
    return _with_halos(case, sharding, wide, _needs, (x_map, 0)) if wide else sharding


@irregular("conv2d_transpose", self_checked=True)
def conv2d_transpose(case: Case, base: Base) -> Sharding:
    """The gradient of a convolution: x [n o h w], weight [o i . .], the shape that comes out."""
    count = min(2, len(case.tensors))
    check_strategy(case.strategy, tuple(case.sizes(i) for i in range(count)), case.context)
    if case.call.is_dynamic:
        message = "dynamic shapes are not supported"
        case.refuse("dynamic-shape", message, "conv2d_info.cc:CheckStrategyForDynamicShape")
    _check_attributes(case, 4)
    _check_weight(case, check="conv2d_info.cc:CheckStrategy")
    _check_channels(case, case.strategy[1][0], "c-out")
    x, weight = case.strategy[0], case.strategy[1]
    images = _images(case, (2, 3))
    split = [image for image in images if image.split > 1]
    for image in split:
        _check_output_divides(case, image)
    if split and case.number("pad_mode") not in (PAD, SAME):
        case.refuse("image-split", "a split height or width needs the pad or same mode")
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
    return _with_halos(case, sharding, split, _needs_transposed, ((4, 3, 2, 1), 0))


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


def _check_weight(case: Case, check: str = "") -> None:
    weight = case.strategy[1]
    if any(split != 1 for split in weight[2:]):
        message = f"the kernel can not be split, but its strategy is {weight[2:]}"
        case.refuse("axis-split", message, check)
    group = case.call.attributes.get("group", 1)
    if group != 1 and weight[:2] != (1, 1):
        message = f"with group {group}, channels can not be split: {weight[:2]}"
        case.refuse("axis-split", message, check)


def _check_channels(case: Case, weight: int, what: str) -> None:
    if case.strategy[0][1] != weight:
        message = (
            f"{what} of the input is split by {case.strategy[0][1]}, of the weight by {weight}"
        )
        case.refuse("axis-mismatch", message, "conv2d_info.cc:CheckStrategy")


def _images(case: Case, dimensions: tuple[int, ...]) -> list[_Image]:
    """Sizes and windows of the image dimensions that may be split."""
    rank = len(case.shape(0))
    stride = _spread(case, "stride", "strides", rank)
    dilation = _spread(case, "dilation", "dilations", rank)
    kernel = case.numbers("kernel_size")
    kernel = kernel * (len(stride) - 2) if len(kernel) == 1 else kernel
    pads = case.numbers("pad_list")
    if len(dilation) != len(stride) or len(pads) != 2 * (len(stride) - 2):
        raise Unsure(f"dilation {dilation}, pad_list {pads}")
    images: list[_Image] = []
    for dimension in dimensions:
        place = dimension - 2
        size = dilation[dimension] * (kernel[place] - 1) + 1
        window = _Window(size, stride[dimension], pads[2 * place], pads[2 * place + 1])
        images.append(
            _Image(
                dimension,
                case.shape(0)[dimension],
                case.result(0)[dimension],
                case.strategy[0][dimension],
                window,
            )
        )
    return images


def _check_output_divides(case: Case, image: _Image, check: str = "") -> None:
    if image.out % image.split:
        message = (
            f"dimension {image.dimension} of the output has size {image.out}, "
            f"which its strategy {image.split} does not divide"
        )
        case.refuse("image-split", message, check or _place(case, "CheckHWStrategyBase"))


def _place(case: Case, function: str) -> str:
    file = case.rule.check.partition(":")[0]
    return f"{'conv2d_info.cc' if file == 'conv3d_info.cc' else file}:{function}"


def _check_images(case: Case, images: list[_Image], mode: int) -> None:
    """Whether the split image dimensions can be computed with halos, or need none."""
    if all(image.split == 1 for image in images):
        return
    for image in images:
        _check_output_divides(case, image)
    if mode == VALID:
        _check_valid(case, images)
        return
    for image in images:
        if image.split > 1:
            _check_padded(case, image)


def _check_valid(case: Case, images: list[_Image]) -> None:
    check = _place(case, "CheckHWStrategyValidMode")
    if any(image.window.kernel > image.window.stride and image.split > 1 for image in images):
        message = "in valid mode, a kernel larger than its stride forbids to split the image"
        case.refuse("image-split", message, check)
    for image in images:
        window = image.window
        if window.kernel <= window.stride and image.slice % window.stride:
            message = f"slices of {image.slice} rows don't divide by stride {window.stride}"
            case.refuse("image-split", f"{message} in dimension {image.dimension}", check)


def _check_padded(case: Case, image: _Image) -> None:
    """Pad and same mode."""
    window = image.window
    check = _place(case, "CheckHWStrategyPadModeByDimension")
    where = f"in dimension {image.dimension}"
    padding = window.before + window.after
    if window.kernel <= window.stride:
        if padding:
            message = f"a kernel no larger than its stride allows no padding {where}"
            case.refuse("image-split", message, check)
        if image.slice % window.stride:
            message = f"slices of {image.slice} rows don't divide by stride {window.stride} {where}"
            case.refuse("image-split", message, check)
        return
    if (image.size + padding - window.kernel) % window.stride:
        message = f"the padded image less the kernel does not divide by the stride {where}"
        case.refuse("image-split", message, check)
    if (image.out * window.stride - image.size) % image.split:
        message = f"output rows times stride, less input rows, don't divide by the split {where}"
        case.refuse("image-split", message, check)


Needs = Callable[[_Image, int], tuple[int, int]]


def _needs(image: _Image, index: int) -> tuple[int, int]:
    """Input rows [first, end) that slice ``index`` of the output needs, padding not cut off."""
    per_slice = image.out // image.split
    first, last = index * per_slice, (index + 1) * per_slice
    window = image.window
    return (
        first * window.stride - window.before,
        (last - 1) * window.stride - window.before + window.kernel,
    )


def _needs_transposed(image: _Image, index: int) -> tuple[int, int]:
    """The same where the image is spread by the stride, as in the gradient of a convolution."""
    per_slice = image.out // image.split
    window = image.window
    first = index * per_slice - window.kernel + window.before + 1
    end = (index + 1) * per_slice + window.before
    return -(-first // window.stride), -(-end // window.stride)


def _overlaps(image: _Image, index: int, needs: Needs) -> tuple[int, int]:
    """Rows that slice ``index`` needs of its neighbours before and after."""
    first, end = needs(image, index)
    own = image.slice
    before = 0 if index == 0 else index * own - first
    after = 0 if index == image.split - 1 else end - (index + 1) * own
    return before, after


def _with_halos(
    case: Case,
    sharding: Sharding,
    images: list[_Image],
    needs: Needs,
    where: tuple[TensorMap, int],
) -> Sharding:
    """Add the exchange with neighbours, and what the local operator then gets."""
    x_map, index = where
    matrix = sharding.device_matrix
    repeats = case.devices // (prod(matrix) or 1) or 1
    position = (case.context.own_rank - case.context.devices[0]) // repeats
    if position >= prod(matrix):
        return sharding
    place = coordinates(matrix, position)
    local = [size // split for size, split in zip(case.shape(index), case.strategy[0], strict=True)]
    partners: set[int] = {position}
    moved = 0
    for image in images:
        axis = axes_of(matrix, x_map[image.dimension])[0]
        moved += _check_halo(case, image, place[axis], needs)
        before, after = _overlaps(image, place[axis], needs)
        local[image.dimension] += before + after
        for step in (-1, 1):
            if 0 <= place[axis] + step < image.split:
                near = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                partners.add(position_of(matrix, near))
    first = case.context.own_rank - position * repeats
    ranks = tuple(sorted(first + partner * repeats for partner in partners))
    exchange = Collective(
        "NeighborExchangeV2", ranks, "", "halo of a split image", None, None, WORLD_GROUPS[0]
    )
    return replace(
        sharding,
        exchanges=(exchange,) if moved else (),
        raw_inputs=((index, tuple(local)),),
        replaced="an exchange of halos, then the local operator" if moved else "",
    )


def _check_halo(case: Case, image: _Image, own: int, needs: Needs) -> int:
    """No negative overlap anywhere, none larger than a slice here; returns the rows moved."""
    check = _place(case, "InferCommunicationAttrs")
    if needs is _needs:
        for index in range(image.split):
            if min(_overlaps(image, index, needs)) < 0:
                message = f"slice {index} of dimension {image.dimension} would need negative rows"
                case.refuse("halo", message, _place(case, "InferOverlapSize"))
    received = _overlaps(image, own, needs)
    sent = (
        _overlaps(image, own - 1, needs)[1] if own > 0 else 0,
        _overlaps(image, own + 1, needs)[0] if own < image.split - 1 else 0,
    )
    lengths = (*received, *sent)
    if max(lengths) > image.slice:
        message = (
            f"{max(lengths)} rows to exchange are more than the {image.slice} of a slice "
            f"of dimension {image.dimension}"
        )
        case.refuse("halo", message, check)
    if min(lengths) < 0:
        case.refuse("halo", f"negative rows to exchange in dimension {image.dimension}", check)
    return sum(lengths)


@irregular("max_pool")
def max_pool(case: Case, base: Base) -> Sharding:
    """Kernel no larger than stride where the image is split."""
    return _pooled(case, case.numbers("kernel_size"), case.numbers("strides"))


@irregular("avg_pool")
def avg_pool(case: Case, base: Base) -> Sharding:
    """The same for the average."""
    return _pooled(case, case.numbers("kernel_size"), case.numbers("strides"))


def _pooled(case: Case, kernel: Shape, stride: Shape) -> Sharding:
    strategy = case.strategy[0]
    if len(strategy) != 4:
        case.refuse("shape", f"the input must have four dimensions, not {len(strategy)}")
    form = next((case.call.attributes.get(n) for n in ("format", "data_format")), None)
    if form not in (None, 0, "NCHW"):
        case.refuse("attribute", f"the format must be NCHW, not {form}", _place(case, "GetAttrs"))
    check = _place(case, "CheckHWStrategy")
    if strategy[2:] != (1, 1):
        for dimension in (2, 3):
            out = case.result(0)[dimension]
            if out % strategy[dimension]:
                message = (
                    f"dimension {dimension} of the output, {out}, does not divide by its split"
                )
                case.refuse("image-split", message, check)
        for dimension in (2, 3):
            width = _at(kernel, dimension - 4)
            step = _at(stride, dimension - 4)
            if width > step and strategy[dimension] > 1:
                message = "a kernel larger than its stride forbids to split the image"
                case.refuse("image-split", f"{message} in dimension {dimension}", check)
            rows = case.shape(0)[dimension] // strategy[dimension]
            if width <= step and rows % step:
                message = f"slices of {rows} rows don't divide by the stride {step}"
                case.refuse("image-split", f"{message} in dimension {dimension}", check)
    plain = identity_map(4)
    return Sharding(strategy, (plain,), (plain,))


def _at(sizes: Shape, place: int) -> int:
    """The size of a dimension, counted from the right; one size may stand for all."""
    return sizes[place % len(sizes)]


@irregular("pool3d")
def pool3d(case: Case, base: Base) -> Sharding:
    """Three image dimensions, the last one whole; halos as for a convolution."""
    strategy = case.strategy[0]
    if len(strategy) != 5:
        case.refuse("shape", f"the input must have five dimensions, not {len(strategy)}")
    if strategy[4] != 1:
        case.refuse("axis-split", f"the last dimension can not be split, strategy {strategy}")
    kernel, stride = case.numbers("kernel_size"), case.numbers("strides")
    mode_name = case.text("pad_mode").lower()
    modes = {"pad": PAD, "calculated": PAD, "same": SAME, "valid": VALID}
    mode = modes.get(mode_name)
    if mode is None or len(kernel) != 5 or len(stride) != 5:
        raise Unsure(f"pad mode {mode_name}, kernel {kernel}, stride {stride}")
    images = [_pool_image(case, dimension, kernel, stride, mode) for dimension in (2, 3)]
    _check_images(case, images, mode)
    plain = identity_map(5)
    sharding = Sharding(strategy, (plain,), (plain,))
    wide = [
        image for image in images if image.split > 1 and image.window.kernel > image.window.stride
    ]
    if wide and case.call.is_dynamic:
        check = _place(case, "CheckStrategyForDynamicShape")
        case.refuse("dynamic-shape", "halos can't be exchanged where shapes are dynamic", check)
    return _with_halos(case, sharding, wide, _needs, (plain, 0)) if wide else sharding


def _pool_image(case: Case, dimension: int, kernel: Shape, stride: Shape, mode: int) -> _Image:
    size, out = case.shape(0)[dimension], case.result(0)[dimension]
    place = 2 * (dimension - 2)
    pads = case.numbers("pad_list")[place : place + 2]
    if mode == SAME:
        total = max(0, (out - 1) * stride[dimension] + kernel[dimension] - size)
        pads = (total // 2, total - total // 2)
    window = _Window(kernel[dimension], stride[dimension], pads[0], pads[1])
    return _Image(dimension, size, out, case.strategy[0][dimension], window)
