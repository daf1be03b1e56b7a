"""Pooling of images in two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable

from irtool.operators.case import Case
from irtool.operators.functions.halo import (
    PAD,
    SAME,
    VALID,
    Image,
    Window,
    check_images,
    needs_of,
    place_of,
    with_halos,
)
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import Shape, identity_map

Base = Callable[[], Sharding]


@irregular("max_pool")
def max_pool(case: Case, base: Base) -> Sharding:
    """Kernel no larger than stride where the image is split."""
    return _pooled(case, case.numbers("kernel_size"), case.numbers("strides"))


@irregular("avg_pool")
def avg_pool(case: Case, base: Base) -> Sharding:
    """The average of a window: its kernel no larger than its stride where the image is split."""
    return _pooled(case, case.numbers("kernel_size"), case.numbers("strides"))


def _pooled(case: Case, kernel: Shape, stride: Shape) -> Sharding:
    strategy = case.strategy[0]
    if len(strategy) != 4:
        case.refuse("shape", f"the input must have four dimensions, not {len(strategy)}")
    form = next((case.call.attributes.get(n) for n in ("format", "data_format")), None)
    if form not in (None, 0, "NCHW"):
        case.refuse("attribute", f"the format must be NCHW, not {form}", place_of(case, "GetAttrs"))
    check = place_of(case, "CheckHWStrategy")
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
    check_images(case, images, mode)
    plain = identity_map(5)
    sharding = Sharding(strategy, (plain,), (plain,))
    wide = [
        image for image in images if image.split > 1 and image.window.kernel > image.window.stride
    ]
    if wide and case.call.is_dynamic:
        check = place_of(case, "CheckStrategyForDynamicShape")
        case.refuse("dynamic-shape", "halos can't be exchanged where shapes are dynamic", check)
    return with_halos(case, sharding, wide, needs_of, (plain, 0))


def _pool_image(case: Case, dimension: int, kernel: Shape, stride: Shape, mode: int) -> Image:
    size, out = case.shape(0)[dimension], case.result(0)[dimension]
    place = 2 * (dimension - 2)
    pads = case.numbers("pad_list")[place : place + 2]
    if mode == SAME:
        total = max(0, (out - 1) * stride[dimension] + kernel[dimension] - size)
        pads = (total // 2, total - total // 2)
    window = Window(kernel[dimension], stride[dimension], pads[0], pads[1])
    return Image(dimension, size, out, case.strategy[0][dimension], window)
