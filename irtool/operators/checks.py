"""Checks that every operator passes through, in MindSpore's order, and the device-list rule.

Source: the ERROR lines of refused compilations (file:function), and what was refused and accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from irtool.operators.call import Strategy
from irtool.operators.judgement import Context, Refused
from irtool.operators.layout import DYNAMIC, Shape, TensorLayout

BY_VECTOR = "operator_info.cc:CheckStrategyByVector"
REPEATED = "operator_info.cc:InferRepeatedCalcInfo"
OUT_STRATEGY = "operator_info.cc:CheckOutputStrategy"
TENSOR_LAYOUT = "tensor_layout.cc:TensorShapeDimensionIsDividedBySplitDeviceDimension"
LAYOUT_RANK = "tensor_layout.cc:InitFromExtendVector"
LAYOUT_DIVISOR = "dynamic_shape.cc:CheckLayoutAndDivisor"
LAYOUT_FORMAT = "dynamic_shape.cc:CheckLayoutFormatForDynamicShape"
GROUP = "device_manager.cc:CheckDeviceList"
SERVER = 8
"""Devices in one server of first-generation Ascend 910."""


def is_power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, 8, ….

    Args:
        number: any; 0 and negative ones are none.
    """
    return number > 0 and number & (number - 1) == 0


def check_strategy(strategy: Strategy, shapes: Sequence[Shape], context: Context) -> None:
    """Check the number of rows of a strategy, their lengths and their values, in MindSpore's order.

    Values are looked at in the order in which they are written.

    Source: ``CheckStrategyByVector`` in MindSpore's ``operator_info.cc``.

    Args:
        strategy: a row for each tensor input, a number for each of its dimensions.
        shapes: of these inputs; a dynamic dimension as what is known to divide it.
        context: whose world size tells whether numbers must be powers of two.

    Raises:
        Refused: MindSpore would refuse it.
    """
    if len(strategy) != len(shapes):
        raise Refused(
            "strategy-size",
            f"the strategy {strategy} has {len(strategy)} entries, "
            f"the operator has {len(shapes)} tensor inputs",
            BY_VECTOR,
        )
    any_value = not is_power_of_two(context.world_size)
    for index, (split, shape) in enumerate(zip(strategy, shapes, strict=True)):
        if len(split) != len(shape):
            raise Refused(
                "strategy-length",
                f"strategy {split} has length {len(split)}, input {index} has rank {len(shape)}",
                BY_VECTOR,
            )
        for dimension, (value, size) in enumerate(zip(split, shape, strict=True)):
            _check_value(strategy, index, dimension, value, size, any_value)


def _check_value(
    strategy: Strategy, index: int, dimension: int, value: int, size: int, any_value: bool
) -> None:
    where = f"dimension {dimension} of input {index}, strategy {strategy}"
    if value <= 0:
        message = f"a strategy's value must be larger than 0, but is {value}: {where}"
        raise Refused("strategy-value", message, BY_VECTOR)
    if size != DYNAMIC and size % value:
        message = f"size (or divisor) {size} is not divisible by strategy value {value}: {where}"
        raise Refused("not-divisible", message, BY_VECTOR)
    if not any_value and not is_power_of_two(value):
        message = f"a strategy's value must be a power of 2, but is {value}: {where}"
        raise Refused("not-power-of-two", message, BY_VECTOR)


def check_product(product: int, context: Context) -> None:
    """The devices a strategy asks for must divide those of the stage.

    Args:
        product: of the device matrix.
        context: whose stage has the devices.

    Raises:
        Refused: they don't.
    """
    if product == 0 or context.stage_size % product:
        raise Refused(
            "device-count",
            f"the strategy requires {product} devices, the stage has {context.stage_size}, "
            "which it does not divide",
            REPEATED,
        )


def check_layout(layout: TensorLayout, what: str) -> None:
    """A layout must be one: each dimension divides by its split, no axis is used twice.

    Args:
        layout: of one tensor.
        what: ``input 0``, ``output 1``, for the message.

    Raises:
        Refused: it isn't, or the tensor is empty.
    """
    if 0 in layout.tensor_shape:
        message = f"{what}: an empty tensor {layout.tensor_shape} has no layout"
        raise Refused("layout", message, "arrangement.cc:Init")
    problem = layout.problem()
    if problem is not None:
        fits = len(layout.tensor_map) == len(layout.tensor_shape)
        raise Refused("layout", f"{what}: {problem}", TENSOR_LAYOUT if fits else LAYOUT_RANK)


def check_unknown_sizes(layout: TensorLayout, divisors: Shape, what: str) -> None:
    """What is known to divide a size that is not known must divide by its split.

    It is asked of operators with an unknown size somewhere only.

    Args:
        layout: a tensor's layout.
        divisors: by dimension the size, or what is known to divide it (1: nothing).
        what: ``input 0``, ``output 1``.
    """
    for dimension, entry in enumerate(layout.tensor_map):
        if isinstance(entry, tuple):
            message = (
                f"{what}: dimension {dimension} can not lie along several device axes where an "
                "operator has sizes that are not known"
            )
            raise Refused("layout", message, LAYOUT_FORMAT)
    for dimension, (divisor, split) in enumerate(zip(divisors, layout.splits, strict=True)):
        if layout.tensor_shape[dimension] == DYNAMIC and divisor % split:
            message = (
                f"{what}: dimension {dimension} has no known size, of which {divisor} is known to "
                f"divide it: it can not be split by {split}"
            )
            raise Refused("layout", message, LAYOUT_DIVISOR)


def applies_device_rule(context: Context) -> bool:
    """Whether groups must fit the links of a server of first-generation Ascend 910."""
    return context.target == "Ascend" and context.soc in ("", "Ascend910")


def group_problem(ranks: Sequence[int], context: Context) -> str | None:
    """Why no communication group can be made of these ranks, or None.

    Args:
        ranks: of the group.
        context: whose target and SoC decide; outside first-generation Ascend 910 any ranks are
            fine.
    """
    return first_generation_problem(tuple(ranks)) if applies_device_rule(context) else None


@lru_cache(maxsize=512)
def first_generation_problem(ranks: tuple[int, ...]) -> str | None:
    """Why first-generation Ascend 910 has no group of these ranks, or None.

    A group takes the same devices in every server of eight, and as many of one as its links join.

    Args:
        ranks: of the group; a server holds eight in a row, from a multiple of eight on.
    """
    if len(ranks) < 2:
        return None
    servers: dict[int, list[int]] = {}
    for rank in sorted(ranks):
        servers.setdefault(rank // SERVER, []).append(rank % SERVER)
    lists = list(servers.values())
    if any(local != lists[0] for local in lists):
        return f"ranks {list(ranks)} don't take the same devices in every server"
    if not _fits_server(lists[0]):
        return f"devices {lists[0]} of one server can't form a group on Ascend 910"
    return None


def _fits_server(local: Sequence[int]) -> bool:
    """Whether local device ids may be together: whole, one, or along the links of two rings."""
    if len(local) in (1, SERVER):
        return True
    half = SERVER // 2
    if len(local) == 2:
        first, second = local
        return second - first == half or second < half or first >= half
    if len(local) == 4:
        if local[-1] < half or local[0] >= half:
            return True
        return local[0] % half == local[2] % half and local[1] % half == local[3] % half
    return False


def check_group(ranks: Sequence[int], what: str, context: Context) -> None:
    """Refuse what needs a group that can't be made.

    Args:
        ranks: of the group.
        what: needs it, for the message.
        context: whose target and SoC decide.

    Raises:
        Refused: it can't be made.
    """
    problem = group_problem(ranks, context)
    if problem is not None:
        raise Refused("device-list", f"{what}: {problem}", GROUP)
