"""Operators that stand for something else: the dataset, results, user-defined sharding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from irtool.operators.call import Strategy
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.facts import Computation
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import WHOLE, TensorLayout, UserLayout
from irtool.operators.table import operator_of

Base = Callable[[], Sharding]


@irregular("virtual_dataset", self_checked=True, out_layout=True)
def virtual_dataset(case: Case, base: Base) -> Sharding:
    """All inputs of the network: whole, or split in one dimension into one number of slices."""
    if case.layouts is not None:
        maps = tuple(layout.tensor_map for layout in case.layouts)
        return Sharding(case.layouts[0].device_matrix, maps, maps, complete=True, loss_divisor=1)
    strategy = case.strategy or dataset_strategy(case)
    if case.context.dataset_strategy is not None and not case.strategy:
        _check_rows_of_lists(case, strategy)
    check_strategy(strategy, tuple(t.divisible_shape for t in case.tensors), case.context)
    seen = 1
    for row in strategy:
        split = [value for value in row if value != 1]
        if len(split) > 1:
            message = f"a dataset input can only be split in one dimension, not by {row}"
            case.refuse("dataset", message)
        if split and seen not in (1, split[0]):
            message = f"all dataset inputs must be split into one number of slices: {strategy}"
            case.refuse("dataset", message)
        seen = split[0] if split else seen
    longest = max(range(len(strategy)), key=lambda index: len(strategy[index]), default=0)
    return _dataset(case, strategy, longest, seen)


def _check_rows_of_lists(case: Case, strategy: Strategy) -> None:
    """The context's strategy has a row an input: one for a whole list of tensors, it holds none."""
    operands = [operand for operand in case.call.inputs if any(True for _ in operand.tensors)]
    if not any(operand.items for operand in operands):
        return
    if len(strategy) > len(operands):
        message = f"{len(strategy)} rows for {len(operands)} inputs, of which one is a list"
        case.refuse("strategy-size", message, "")
    raise Unsure("a dataset strategy of rows for a list of tensors")


def _dataset(case: Case, strategy: Strategy, longest: int, seen: int) -> Sharding:
    """The matrix is the strategy of the first input with most dimensions."""
    matrix = strategy[longest] if strategy else ()
    if seen != 1 and all(value == 1 for value in matrix):
        message = f"the dataset input with most dimensions must be split if any is: {strategy}"
        case.refuse("dataset", message)
    axis = next((place for place, value in enumerate(matrix) if value != 1), None)
    maps = tuple(
        tuple(len(matrix) - 1 - axis if value != 1 and axis is not None else WHOLE for value in row)
        for row in strategy
    )
    mirrored = (False,) * len(maps)
    return Sharding(matrix, maps, maps, mirrored=mirrored, loss_divisor=1, strategy=strategy)


def dataset_strategy(case: Case) -> Strategy:
    """The strategy the context gives: as set, whole, or the first dimension over all devices.

    Args:
        case: the call of ``_VirtualDataset``, whose own strategy is not looked at.

    Raises:
        Unsure: the context gives layouts.
    """
    given = case.context.dataset_strategy
    if given is not None:
        if any(isinstance(row, UserLayout) for row in given):
            raise Unsure("the dataset strategy is a layout: give it as in_layout")
        return given  # type: ignore[return-value]
    first = 1 if case.context.full_batch else case.devices
    return tuple(
        tuple(first if not dimension else 1 for dimension in range(len(tensor.shape or ())))
        for tensor in case.tensors
    )


@irregular("virtual_output", self_checked=True)
def virtual_output(case: Case, base: Base) -> Sharding:
    """A result of an evaluation: the batch over all devices where it divides."""
    strategy = case.strategy or _output_strategy(case)
    if len(strategy) != 1:
        case.refuse("strategy-size", f"the strategy must have one entry, not {len(strategy)}")
    check_strategy(strategy, tuple(t.divisible_shape for t in case.tensors), case.context)
    row = strategy[0]
    maps = tuple(len(row) - 1 - place for place in range(len(row)))
    return Sharding(row, (maps,), (maps,), mirrored=(False,), loss_divisor=1, strategy=strategy)


def _output_strategy(case: Case) -> Strategy:
    shape = case.tensors[0].divisible_shape
    is_whole = case.context.full_batch or not shape or shape[0] % case.devices != 0
    return (tuple(1 if place or is_whole else case.devices for place in range(len(shape))),)


@irregular("get_next", self_checked=True)
def get_next(case: Case, base: Base) -> Sharding:
    """The dataset in sink mode: outputs as the dataset strategy says, no inputs."""
    if case.strategy:
        case.refuse("strategy-size", f"GetNext takes no strategy, but has {case.strategy}")
    results = case.call.results
    outputs = replace(case, call=replace(case.call, inputs=results))
    sharding = virtual_dataset(replace(outputs, strategy=()), base)
    return replace(sharding, input_maps=(), mirrored=None, strategy=())


@irregular("self_define_shard", self_checked=True, out_layout=True)
def self_define_shard(case: Case, base: Base) -> Sharding:
    """The user's layouts, taken as they are: inputs and outputs over one device matrix."""
    if case.layouts is None:
        message = f"{case.call.op} with self_define_shard takes layouts, not a strategy"
        case.refuse("layout", message, "self_define_shard_info.cc:CheckStrategy")
    if case.output_layouts is None:
        message = f"{case.call.op} with self_define_shard needs out_layout too"
        case.refuse("layout", message, "self_define_shard_info.cc:InferOutputTensorInfo")
    matrices = {layout.device_matrix for layout in (*case.layouts, *case.output_layouts)}
    if len(matrices) != 1:
        message = f"layouts must have one device matrix, not {sorted(matrices)}"
        case.refuse("layout", message, "self_define_shard_info.cc:CheckLayout")
    _check_keeps_slices(case, case.layouts, case.output_layouts)
    return Sharding(
        device_matrix=matrices.pop(),
        input_maps=tuple(layout.tensor_map for layout in case.layouts),
        output_maps=tuple(layout.tensor_map for layout in case.output_layouts),
        complete=True,
    )


_KEEP_SHAPES: frozenset[Computation] = frozenset(
    {"elementwise", "sum", "product", "cast", "softmax"}
)


def _check_keeps_slices(
    case: Case, inputs: Sequence[TensorLayout], outputs: Sequence[TensorLayout]
) -> None:
    """Say "unknown" where the operator may make other slices of its inputs' than the layouts say.

    MindSpore infers shapes from slices again, by the operator itself. What it has no operator for
    is the user's own, shapes included.
    """
    entry = operator_of(case.call.op)
    own = not entry.name or (entry.rule is not None and entry.rule.function == "self_define_shard")
    if own or entry.declared:
        return
    name = case.call.op
    if entry.rule is not None and entry.rule.function == "scatter_nd":
        if _keeps_slices_of_scatter(case, inputs) and outputs[0] == inputs[0]:
            return
        raise Unsure(f"{name} with self_define_shard was not measured with such layouts")
    shapes = {operand.shape for operand in (*case.tensors, *case.call.results)}
    sized = any(isinstance(item.value, int) for one in case.call.inputs for item in one.items)
    if entry.computes not in _KEEP_SHAPES or sized or len(shapes) != 1:
        raise Unsure(f"what {name} with self_define_shard makes of slices was not measured")
    if len({layout.tensor_map for layout in (*inputs, *outputs)}) != 1:
        message = f"{name} with self_define_shard was not measured with maps that differ"
        raise Unsure(message)


def _keeps_slices_of_scatter(case: Case, inputs: Sequence[TensorLayout]) -> bool:
    """Whether only dimensions that indices point at are cut, and indices and updates whole."""
    target, *others = inputs
    depth = case.shape(1)[-1] if case.shape(1) else 0
    return all(layout.is_whole for layout in others) and set(target.splits[depth:]) <= {1}


@irregular("stand_alone", self_checked=True)
def stand_alone(case: Case, base: Base) -> Sharding:
    """Whole on every device."""
    return Sharding(
        (case.devices,),
        tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors),
        tuple((WHOLE,) * len(t.shape or ()) for t in case.call.results),
        complete=True,
    )
