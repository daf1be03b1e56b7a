"""Normalisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import layout_maps
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import WHOLE, TensorMap, axes_of, identity_map, split_of

Base = Callable[[], Sharding]


@axes("layer_norm")
def layer_norm_axes(case: Case) -> str:
    """Dimensions before those that are normalised; gamma and beta lie like the last of x."""
    rank = len(case.shape(0))
    begin = _first_normalised(case)
    x = [f"x{axis}" if axis < begin else f"!x{axis}" for axis in range(rank)]
    others = [f"[{' '.join(x[rank - len(tensor.shape or ()) :])}]" for tensor in case.tensors[1:]]
    statistics = f"[{' '.join(x[:begin])} {'. ' * (rank - begin)}]"
    return f"[{' '.join(x)}] {' '.join(others)} -> [{' '.join(x)}] {statistics} {statistics}"


def _first_normalised(case: Case) -> int:
    begin = case.number("begin_norm_axis")
    return begin + len(case.shape(0)) if begin < 0 else begin


@irregular("layer_norm", self_checked=True)
def layer_norm(case: Case, base: Base) -> Sharding:
    """x, gamma, beta: normalised dimensions are whole, gamma and beta lie like the last of x."""
    _check_strategy(case, 3)
    rank = len(case.shape(0))
    begin = _first_normalised(case)
    if any(case.is_split(0, dimension) for dimension in range(begin, rank)):
        message = f"dimensions from {begin} on can not be split, strategy {case.strategy[0]}"
        case.refuse("axis-split", message)
    matrix, x_map, maps = _aligned(case)
    statistics = (*x_map[:begin], *((WHOLE,) * (rank - begin)))
    outputs = (x_map, statistics, statistics)[: len(case.call.results)]
    return Sharding(matrix, maps, outputs, complete=case.layouts is not None)


def _check_strategy(case: Case, count: int) -> None:
    """Norms count the entries of a strategy themselves, before its form is looked at."""
    if case.layouts is not None:
        return
    if len(case.strategy) != count:
        message = f"the strategy must have {count} entries, not {len(case.strategy)}"
        case.refuse("strategy-size", message)
    shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
    check_strategy(case.strategy, shapes, case.context)


def _aligned(case: Case) -> tuple[tuple[int, ...], TensorMap, tuple[TensorMap, ...]]:
    """Matrix, map of x, and all input maps; further inputs are aligned with x from the right."""
    if case.layouts is not None:
        matrix, given = layout_maps(case)
        for index, tensor_map in enumerate(given[1:], 1):
            if tensor_map and tensor_map != given[0][-len(tensor_map) :]:
                message = f"input {index} must be mapped like the last dimensions of x: {given}"
                case.refuse("axis-mismatch", message)
        return matrix, given[0], given
    x = case.strategy[0]
    plain = identity_map(len(x))
    maps: list[TensorMap] = [plain]
    for index, strategy in enumerate(case.strategy[1:], 1):
        if len(strategy) > len(x) or (strategy and strategy != x[-len(strategy) :]):
            message = f"input {index} must be split like the last dimensions of x: {case.strategy}"
            case.refuse("axis-mismatch", message)
        maps.append(plain[len(plain) - len(strategy) :])
    return x, plain, tuple(maps)


@irregular("rms_norm", self_checked=True)
def rms_norm(case: Case, base: Base) -> Sharding:
    """x, gamma: normalised dimensions may be split; then their squares are summed up."""
    _check_strategy(case, 2)
    matrix, x_map, maps = _aligned(case)
    rank = len(x_map)
    begin = rank - len(case.shape(1))
    statistics = (*x_map[:begin], *((WHOLE,) * (rank - begin)))
    outputs = (x_map, statistics)[: len(case.call.results)]
    sharding = Sharding(matrix, maps, outputs, complete=case.layouts is not None)
    if case.layouts is not None and len({entry == WHOLE for entry in x_map[begin:]}) > 1:
        # MindSpore looks up the device axis of each of them, of whole ones, too
        message = f"normalised dimensions must all be split, or none: {x_map[begin:]}"
        case.refuse("layout", message, "device_matrix.cc:GetDevicesAlongDim")
    over = tuple(
        axis
        for entry in x_map[begin:]
        if split_of(matrix, entry) > 1
        for axis in axes_of(matrix, entry)
    )
    if not over:
        return sharding
    local = tuple(
        size // split_of(matrix, entry) if place < begin else 1
        for place, (size, entry) in enumerate(zip(case.shape(0), x_map, strict=True))
    )
    why = "normalised dimensions are split"
    return replace(
        sharding,
        reductions=(Reduction("AllReduce", over, "sum", why, None, local),),
        replaced="the norm in single operators, with an AllReduce of the mean of squares",
    )


@irregular("group_norm", self_checked=True)
def group_norm(case: Case, base: Base) -> Sharding:
    """Only the batch of x may be split; gradients of weight and bias are summed up."""
    _check_strategy(case, 3)
    if any(split != 1 for strategy in case.strategy[1:] for split in strategy):
        case.refuse("axis-split", f"only x can be split: {case.strategy}")
    if any(split != 1 for split in case.strategy[0][1:]):
        case.refuse("axis-split", f"only the batch can be split: {case.strategy[0]}")
    sharding = base()
    batch = (sharding.input_maps[0][0], *((WHOLE,) * (len(case.strategy[0]) - 1)))
    return replace(
        sharding,
        input_maps=(batch, *sharding.input_maps[1:]),
        output_maps=(batch, *sharding.output_maps[1:]),
    )


@irregular("batch_norm")
def batch_norm(case: Case, base: Base) -> Sharding:
    """X [n c (h w)] and four vectors of c; in training the statistics are those of all devices."""
    x = case.strategy[0]
    if len(x) not in (2, 4):
        case.refuse("shape", f"x must have two or four dimensions, not {len(x)}")
    form = case.attribute("data_format")
    if form not in ("NCHW", 0):
        case.refuse(
            "attribute", f"the format must be NCHW, not {form}", "batchnorm_info.cc:GetAttrs"
        )
    if len(case.strategy) != 5:
        case.refuse(
            "strategy-size", f"the strategy must have five entries, not {len(case.strategy)}"
        )
    for index, strategy in enumerate(case.strategy[1:], 1):
        if strategy != (x[1],):
            message = f"input {index} must be split like the channels of x: {case.strategy}"
            case.refuse("axis-mismatch", message)
    size = _group_size(case)
    if size and x[0] != case.devices:
        message = f"with group_size {size} the batch must be split by {case.devices}, not {x[0]}"
        case.refuse("axis-mismatch", message)
    plain = identity_map(len(x))
    channel = (plain[1],)
    sharding = Sharding(x, (plain, *((channel,) * 4)), _norm_outputs(case, plain, channel))
    training = bool(case.attribute("is_training"))
    if not training:
        return sharding
    return _synchronised(case, sharding, size)


def _norm_outputs(case: Case, plain: TensorMap, channel: TensorMap) -> tuple[TensorMap, ...]:
    return (plain, *((channel,) * (len(case.call.results) - 1)))


def _group_size(case: Case) -> int:
    size = case.call.attributes.get("group_size", 0)
    if not isinstance(size, int) or isinstance(size, bool):
        raise Unsure(f"group_size is {size!r}")
    if "group_size" in case.call.attributes:
        bad = size < 1 or size > case.devices or size & (size - 1) or case.devices % size
        if bad:
            message = f"group_size {size} must be a power of two that divides {case.devices}"
            case.refuse("attribute", message, "batchnorm_info.cc:GetAttrs")
    return size


def _synchronised(case: Case, sharding: Sharding, size: int) -> Sharding:
    """On Ascend the statistics are those of all devices that split batch and image."""
    x = case.strategy[0]
    split = any(axis != 1 and value > 1 for axis, value in enumerate(x))
    if size == 1 or not (size or split):
        return sharding
    what = f"{size} neighbouring ranks" if size else "the ranks that split batch and image"
    unsure = f"on Ascend it may become SyncBatchNorm over {what}; dumps of the front end keep it"
    return replace(sharding, unsure=unsure)
