"""Products of quantised matrices, and the statistics of quantisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.call import constant
from irtool.operators.case import Case
from irtool.operators.functions.product import with_split_sum
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Refused, Sharding, Unsure
from irtool.operators.layout import WHOLE, MapEntry, Shape, TensorMap, identity_map
from irtool.operators.pattern import evaluate

Base = Callable[[], Sharding]
BIAS = {"QuantBatchMatmul": 4, "WeightQuantBatchMatmul": 6}
PER_TOKEN = 5
"""Position of the scale of each row among the inputs of QuantBatchMatmul."""


@axes("quantised_matmul")
def quantised_matmul_axes(case: Case) -> str:
    """The product, and scales along its rows or columns."""
    turned = [case.flag(attribute.name) for attribute in case.rule.attributes[:2]]
    weight = "n k" if turned[1] else "k n"
    scales: list[str] = []
    for position, operand in enumerate(case.call.inputs[2:], start=2):
        shape = operand.shape
        if shape is None:
            continue
        if len(shape) > 1:
            scales.append(f"[{weight}]" if len(shape) == 2 else f"[~b {weight}]")
        elif shape == (1,) and position != BIAS[case.call.op]:
            scales.append("[.]")
        else:
            per_token = case.call.op == "QuantBatchMatmul" and position == PER_TOKEN
            scales.append("[m]" if per_token else "[n]")
    first = "k m" if turned[0] else "m k"
    return (
        f"[~b {first}] [~b {weight}] {' '.join(scales)} -> [~b m n] "
        "order (b m k n) reduce k with sum"
    )


@irregular("quantised_matmul", out_strategy=True)
def quantised_matmul(case: Case, base: Base) -> Sharding:
    """A product, and scales that lie along it whatever their own strategies say."""
    _check_batches(case)
    sharding = evaluate(_product_only(case))
    weight_map = sharding.input_maps[1]
    turned = case.flag(case.rule.attributes[1].name)
    columns: MapEntry = weight_map[-2 if turned else -1]
    rows: MapEntry = 2  # the matrix ends with m k n
    maps: list[TensorMap] = []
    for position, operand in enumerate(case.call.inputs[2:], start=2):
        if operand.shape is None:
            continue
        per_token = case.call.op == "QuantBatchMatmul" and position == PER_TOKEN
        bias = position == BIAS[case.call.op]
        along = rows if per_token else columns
        maps.append(_scale_map(operand.shape, along, weight_map, bias))
    maps_of_all = (*sharding.input_maps[:2], *maps)
    if len(maps_of_all) != len(case.tensors):
        raise Unsure("lists of tensors among the scales")
    left_whole = ((len(maps_of_all) - 1, case.tensors[-1].shape or ()),)
    sharding = replace(
        sharding,
        input_maps=maps_of_all,
        mirrored=None,
        input_slices=left_whole if _skips_bias(case) else (),
    )
    return sharding if case.out_strategy is None else _with_out_strategy(case, sharding)


def _skips_bias(case: Case) -> bool:
    """Whether the bias is not cut: MindSpore 2.7 looks for it in the place of what is left out."""
    position = BIAS[case.call.op]
    if case.call.op != "WeightQuantBatchMatmul" or len(case.call.inputs) <= position:
        return False
    left_out = any(operand.shape is None for operand in case.call.inputs[2:position])
    return left_out and case.call.inputs[position].shape is not None


def _with_out_strategy(case: Case, sharding: Sharding) -> Sharding:
    check = case.rule.check.partition(":")[0] + ":CheckOutputStrategy"
    if len(case.shape(0)) != 2 or len(case.shape(1)) != 2:
        case.refuse("out-strategy", "an output strategy needs matrices of two dimensions", check)
    return with_split_sum(case, sharding, check)


def _check_batches(case: Case) -> None:
    """Dimensions before the matrices, aligned from the right, are split alike or of size 1."""
    rows = zip(case.strategy[0][-3::-1], case.strategy[1][-3::-1], strict=False)
    sizes = zip(case.sizes(0)[-3::-1], case.sizes(1)[-3::-1], strict=False)
    for (first, second), pair in zip(rows, sizes, strict=True):
        if first != second and 1 not in pair:
            message = f"batches are split differently: {case.strategy[:2]}"
            file = case.rule.check.partition(":")[0]
            case.refuse("axis-mismatch", message, f"{file}:CheckBatchDimensions")


def _product_only(case: Case) -> Case:
    """The call without its scales: what the notation says something of."""
    inputs = tuple(
        operand if index < 2 or operand.shape is None else constant(None)
        for index, operand in enumerate(case.call.inputs)
    )
    call = replace(case.call, inputs=inputs)
    return replace(case, call=call, strategy=case.strategy[:2])


def _scale_map(shape: Shape, along: MapEntry, weight_map: TensorMap, bias: bool) -> TensorMap:
    """One number, one a column (or row), or one for each group of rows of the weight."""
    if bias and len(shape) != 1:
        message = f"a bias of shape {shape} does not fit its map of one dimension"
        raise Refused("layout", message, "tensor_layout.cc:IsValidTensorLayout")
    if len(shape) == 1:
        return (WHOLE,) if shape == (1,) and not bias else (along,)
    if 1 < len(shape) <= len(weight_map):
        return weight_map[-len(shape) :]
    raise Unsure(f"a scale of shape {shape}")


@irregular("sparse_linear")
def sparse_linear(case: Case, base: Base) -> Sharding:
    """X [m k], a compressed weight, and scales; only rows of x can be split in the end."""
    x, weight, scale, index = case.strategy[:4]
    if weight != (1,) or index != (1,):
        case.refuse("axis-split", f"weight and its index can not be split: {case.strategy}")
    if x[-1] != 1 or scale[0] != 1:
        raise Unsure("split columns pass the check, but the local shapes do not fit the weight")
    matrix = (*x, 1)
    plain = identity_map(len(matrix))
    maps: tuple[TensorMap, ...] = (plain[:-1], (WHOLE,), (0,), (WHOLE,))
    biases = tuple((0,) for _ in case.tensors[4:])
    return Sharding(matrix, (*maps, *biases), ((*plain[:-2], 0),))


@axes("fake_quant")
def fake_quant_axes(case: Case) -> str:
    """Minimum and maximum lie along the channels, if each has its own."""
    x, along = _statistics_axes(case)
    return f"[{x}] [{along}] [{along}] -> [{x}]"


@axes("min_max_update")
def min_max_update_axes(case: Case) -> str:
    """Minimum and maximum are taken over all pieces of x."""
    x, along = _statistics_axes(case)
    return f"[{x}] [{along}] [{along}] -> [{along}] [{along}] judged ({x})"


def _statistics_axes(case: Case) -> tuple[str, str]:
    x = [f"x{place}" for place in range(len(case.shape(0)))]
    along = "."
    if case.call.op.endswith("PerChannel"):
        along = x[case.number("channel_axis") % len(x)]
    return " ".join(x), along


@irregular("fake_quant")
def fake_quant(case: Case, base: Base) -> Sharding:
    """X, minimum, maximum: one number each, or one for each channel."""
    sharding = _statistics(case)
    if case.call.op == "FakeQuantPerChannel":
        channel = case.strategy[0][case.number("channel_axis")]
        if any(row != (channel,) for row in case.strategy[1:]):
            message = f"minimum and maximum must be split like the channels: {case.strategy}"
            case.refuse("axis-mismatch", message)
    return replace(sharding, output_maps=(sharding.input_maps[0],))


@irregular("min_max_update")
def min_max_update(case: Case, base: Base) -> Sharding:
    """Minimum and maximum of x over all its pieces, whether or not they are of one channel."""
    sharding = _statistics(case)
    over = tuple(axis for axis, split in enumerate(case.strategy[0]) if split > 1)
    why = "minimum and maximum are those of all pieces"
    return replace(
        sharding,
        output_maps=sharding.input_maps[1:],
        reductions=tuple(
            Reduction("AllReduce", over, kind, why, output)
            for output, kind in enumerate(("min", "max"))
        )
        if over
        else (),
        replaced="the local statistics and their AllReduce",
    )


def _statistics(case: Case) -> Sharding:
    x_map = identity_map(len(case.strategy[0]))
    entry: MapEntry = WHOLE
    if case.call.op.endswith("PerChannel"):
        entry = x_map[case.number("channel_axis") % len(x_map)]
    return Sharding(case.strategy[0], (x_map, (entry,), (entry,)), ())
