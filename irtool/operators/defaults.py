"""Strategies that MindSpore makes itself for operators without one: batch parallel.

The first dimension of some inputs is split over all devices of the stage, the rest is whole; where
that does not divide, over the greatest common divisor.

Source: ``gen_strategy`` and the trailing ``in_strategy`` in step_parallel_end dumps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.case import Case
from irtool.operators.judgement import Unsure
from irtool.operators.layout import DYNAMIC, Shape
from irtool.operators.table import operator_of


def is_stand_alone(call: OperatorCall, devices: int) -> bool:
    """Whether an operator without rule runs whole on every device (else: batch parallel).

    Args:
        call: of an operator that has no strategy.
        devices: of the stage.

    Returns:
        True also where dimension 0 of its first input or output does not divide by the devices.
    """
    if operator_of(call.op).is_("stands_alone"):
        return True
    return any(
        not tensors or not tensors[0].shape or tensors[0].divisible_shape[0] % devices
        for tensors in (call.tensors, call.results)
    )


def locally_inferred(call: OperatorCall, devices: int) -> tuple[tuple[int, Shape], ...]:
    """Local results of a batch-parallel operator where they are no slices of the whole ones.

    MindSpore takes dimension 0 of each result to be split. The operator on each device works on a
    slice of its first operand and on all of the others, and its results follow from these.

    Args:
        call: of an operator without rule, split along dimension 0.
        devices: of the stage.

    Returns:
        (output, local shape) of each result that differs from what its layout says.
    """
    entry = operator_of(call.op)
    shapes = [result.shape or () for result in call.results]
    if entry.is_("whole_results"):
        return tuple(enumerate(shapes))
    if entry.is_("whole_others"):
        return tuple(enumerate(shapes))[1:]
    if entry.is_("turns"):
        place = _turned_to(call, len(shapes[0]))
        parts = (size // devices if axis == place else size for axis, size in enumerate(shapes[0]))
        return ((0, tuple(parts)),)
    return ()


def _turned_to(call: OperatorCall, rank: int) -> int:
    """Where a transposition puts the first dimension."""
    numbers = [one.value for one in call.inputs[1:] if one.is_constant]
    if not numbers:
        return rank - 1  # all of them the other way round
    if isinstance(numbers[0], tuple):
        order = [number % rank for number in numbers[0] if isinstance(number, int)]  # type: ignore[misc]  # items of any type
        return order.index(0)
    pair = [number % rank for number in numbers if isinstance(number, int)]
    return sum(pair) if 0 in pair else 0


def batch_strategy(case: Case) -> Strategy:
    """The strategy of a call that has none. The case's own strategy is not looked at.

    Args:
        case: whose rule names the way; without a name, dimension 0 of the first input is split.

    Raises:
        Unsure: there is no such way.
    """
    strategy_of = BATCH_STRATEGIES.get(case.rule.batch or "first")
    if strategy_of is None:
        raise Unsure(f"no batch strategy {case.rule.batch!r}")
    return adjusted(strategy_of(case), tuple(t.divisible_shape for t in case.tensors), case.devices)


def adjusted(strategy: Strategy, shapes: tuple[Shape, ...], devices: int) -> Strategy:
    """Split by the greatest common divisor of the devices and all dimensions that are split.

    A strategy with a number other than 1 and that of all devices is left as it is.

    Args:
        strategy: which splits dimensions over all devices, or not at all.
        shapes: by row; a dynamic dimension as what is known to divide it.
        devices: of the stage.
    """
    common = devices
    for split, shape in zip(strategy, shapes, strict=True):
        for value, size in zip(split, shape, strict=True):
            if value not in (1, devices):
                return strategy
            if value == devices:
                common = gcd(size, common)
    return tuple(
        tuple(common if value == devices and value != 1 else value for value in split)
        for split in strategy
    )


def _split(case: Case, flags: tuple[bool, ...]) -> Strategy:
    """Dimension 0 of the flagged inputs over all devices."""
    return tuple(
        tuple(case.devices if flag and not dimension else 1 for dimension in range(len(shape)))
        for flag, shape in zip(flags, (t.shape or () for t in case.tensors), strict=True)
    )


def _first(case: Case) -> Strategy:
    return _split(case, tuple(index == 0 for index in range(len(case.tensors))))


def _all(case: Case) -> Strategy:
    return _split(case, (True,) * len(case.tensors))


def _labelled(case: Case) -> Strategy:
    """Rows and their labels, not what is given for each class."""
    return _split(case, tuple(index < 2 for index in range(len(case.tensors))))


def _attended(case: Case) -> Strategy:
    """All inputs but a mask that is one for all (sparse modes 1 to 4), or one without a batch."""
    shared = case.number("sparse_mode") > 0
    given = [one.shape for one in case.call.inputs[3:4] if one.shape is not None]
    masks = sum(1 for shape in given if shared or len(shape) == 2)
    return _split(case, tuple(not 3 <= index < 3 + masks for index in range(len(case.tensors))))


def _none(case: Case) -> Strategy:
    return _split(case, (False,) * len(case.tensors))


def _broadcast(case: Case) -> Strategy:
    """Inputs whose first dimension, after alignment from the right, is not 1."""
    rank = max((len(tensor.shape or ()) for tensor in case.tensors), default=0)
    if rank == 0:
        return _none(case)
    flags = tuple(
        len(tensor.shape or ()) == rank and tensor.divisible_shape[0] != 1
        for tensor in case.tensors
    )
    return _split(case, flags)


def _matmul(case: Case) -> Strategy:
    """The first axis of the result: m of the first input, or the batch."""
    first, second = (len(tensor.shape or ()) for tensor in case.tensors[:2])
    others = tuple(False for _ in case.tensors[2:])
    if first == second and first > 2:
        return _split(case, (True, True, *others))
    if first != second:
        return _split(case, (first > second, second > first, *others))
    strategy = _split(case, (True, False, *others))
    if case.has("transpose_a") and case.flag("transpose_a"):
        turned = (1, case.devices, *(1 for _ in range(first - 2)))
        return (turned, *strategy[1:])
    return strategy


def _along(case: Case) -> Strategy:
    """All of the first input but not along what ``axis``, ``dim``, ``axis1`` and the like name."""
    names = [name for name in ("dim", "split_dim", "axes", "axis1", "axis2") if case.has(name)]
    rank = len(case.shape(0))
    along = {axis for name in names or ("axis",) for axis in case.axes(name, rank)}
    return _none(case) if 0 in along else _first(case)


def _joined(case: Case) -> Strategy:
    """All inputs, but not along the attribute ``axis`` (or ``dim``)."""
    name = "dim" if case.has("dim") else "axis"
    return _none(case) if 0 in case.axes(name, len(case.shape(0))) else _all(case)


def _fetched(case: Case) -> Strategy:
    """Only where dimension 0 comes out as long as it went in; micro-batches are whole.

    Two sizes that are not known are the same where a mask says that the end is not looked at, or
    the dump calls them the same.
    """
    if case.call.attributes.get("strided_slice_flag"):
        return _none(case)
    if DYNAMIC in case.shape(0) and not case.tensors[0].symbols:
        message = (
            "an input of unknown sizes has no symbols for them where a gradient is taken, so no "
            "strategy can be made: give one"
        )
        case.refuse("dynamic-shape", message, "")
    keeps_length = bool(case.shape(0)) and case.result(0)[:1] == case.shape(0)[:1]
    if keeps_length and case.shape(0)[0] == DYNAMIC and case.has("end_mask"):
        before, after = case.tensors[0].symbols, case.call.results[0].symbols
        keeps_length = bool(case.number("end_mask") & 1) or bool(before and before[:1] == after[:1])
    return _first(case) if keeps_length else _none(case)


def _gather(case: Case) -> Strategy:
    """The indices; the table too if it has batch dimensions."""
    batched = case.has("batch_dims") and case.number("batch_dims") > 0
    return _split(case, (batched, True, *(False for _ in case.tensors[2:])))


def _embedding(case: Case) -> Strategy:
    """The table, which is the second input."""
    return _split(case, tuple(index == 1 for index in range(len(case.tensors))))


BATCH_STRATEGIES: dict[str, Callable[[Case], Strategy]] = {
    "first": _first,
    "all": _all,
    "attended": _attended,
    "labelled": _labelled,
    "none": _none,
    "broadcast": _broadcast,
    "matmul": _matmul,
    "along": _along,
    "joined": _joined,
    "fetched": _fetched,
    "gather": _gather,
    "embedding": _embedding,
}
"""How a strategy is made, by the word of the clause ``batch``."""
