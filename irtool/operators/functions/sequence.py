"""Operators that make tensors from numbers: ranges, random numbers; and routing of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from irtool.operators.call import Strategy
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.defaults import adjusted
from irtool.operators.functions.common import whole_map
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Sharding, Unsure
from irtool.operators.layout import DYNAMIC, WHOLE, TensorMap, identity_map

Base = Callable[[], Sharding]


@irregular("line_space", self_checked=True)
def line_space(case: Case, base: Base) -> Sharding:
    """One entry of one number: slices of the output."""
    dynamic = case.result(0)[0] == DYNAMIC
    free = dynamic and case.call.op == "Arange"
    size = 0 if free else case.call.results[0].divisible_shape[0]
    # Arange is left whole where it does not divide; the others are refused then.
    is_unsplit = free or (size % case.devices != 0 and case.call.op == "Arange")
    if not case.strategy and not case.generated and case.call.op != "Arange":
        case.refuse("strategy-size", "the strategy is given, but holds nothing")
    strategy = case.strategy or ((1 if is_unsplit else case.devices,),)
    if len(strategy) != 1 or len(strategy[0]) != 1:
        case.refuse("strategy-size", f"the strategy must have the form ((n,),), not {strategy}")
    split = strategy[0][0]
    if split <= 0:
        case.refuse("strategy-value", f"a strategy's value must be positive, but is {split}")
    if size % split:
        case.refuse("not-divisible", f"the output's size {size} does not divide by {split}")
    if case.devices % split:
        message = f"the {case.devices} devices of the stage don't divide by {split}"
        case.refuse("device-count", message)
    if split != 1 and dynamic and not free:
        place = "lin_space_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", f"a dynamic output can not be split by {split}", place)
    inputs = tuple(whole_map(tensor.shape or ()) for tensor in case.tensors)
    replaced = "start and number are made for the rank's own piece" if split > 1 else ""
    return Sharding((split,), inputs, ((0,),), replaced=replaced, strategy=strategy)


@irregular("random", self_checked=True)
def random(case: Case, base: Base) -> Sharding:
    """The strategy is one of the shape that is asked for; seeds differ from slice to slice."""
    shape = case.result(0)
    strategy = case.strategy
    if case.call.is_dynamic and not strategy:
        # None is made for a shape that is computed.
        case.refuse("strategy-size", "there must be one strategy, but a dynamic shape gets none")
    if not strategy:
        first = ((case.devices, *((1,) * (len(shape) - 1))),) if shape else ((),)
        strategy = adjusted(first, (shape,), case.devices)
    if case.call.is_dynamic:
        place = "random_distribute_info.cc:CheckStrategyForDynamicShape"
        case.refuse("dynamic-shape", "random numbers of a dynamic shape are not supported", place)
    check_strategy(strategy, (shape,), case.context)
    inputs = tuple(whole_map(tensor.shape or ()) for tensor in case.tensors)
    plain = identity_map(len(shape))
    mirrored = (False,) * len(inputs)
    return Sharding(strategy[0], inputs, (plain,), mirrored=mirrored, strategy=strategy)


@irregular("gamma", self_checked=True)
def gamma(case: Case, base: Base) -> Sharding:
    """The first entry is one of the shape that is asked for; alpha and beta are whole."""
    wanted = case.call.inputs[0].value
    if not isinstance(wanted, (tuple, list)):
        raise Unsure("the shape of Gamma is no constant")
    sizes = cast("tuple[int, ...]", tuple(cast("Sequence[object]", wanted)))
    shapes = (sizes, *(tensor.divisible_shape for tensor in case.tensors))
    strategy = case.strategy
    if not strategy:
        first = ((case.devices, *((1,) * (len(sizes) - 1))),)
        strategy = (
            *adjusted(first, (sizes,), case.devices),
            *((1,) * len(tensor.shape or ()) for tensor in case.tensors),
        )
    check_strategy(strategy, shapes, case.context)
    if any(split != 1 for row in strategy[1:] for split in row):
        case.refuse("axis-split", f"alpha and beta can not be split: {strategy}")
    inputs = tuple(whole_map(tensor.shape or ()) for tensor in case.tensors)
    plain = identity_map(len(sizes))
    if len(case.result(0)) != len(sizes):
        raise Unsure("the result of Gamma has another rank than the shape that is asked for")
    mirrored = (False,) * len(inputs)
    return Sharding(strategy[0], inputs, (plain,), mirrored=mirrored, strategy=strategy)


@irregular("candidate_sampler")
def candidate_sampler(case: Case, base: Base) -> Sharding:
    """True classes may be split, candidates are sampled everywhere."""
    if case.flag("remove_accidental_hits") and any(split > 1 for split in case.strategy[0]):
        message = f"with remove_accidental_hits nothing can be split: {case.strategy[0]}"
        case.refuse("axis-split", message)
    return base()


@irregular("unsplit")
def unsplit(case: Case, base: Base) -> Sharding:
    """Nothing may be split."""
    for strategy in case.strategy:
        if any(split != 1 for split in strategy):
            case.refuse("axis-split", f"no dimension can be split, strategy {case.strategy}")
    matrix = case.strategy[0] if case.strategy else ()
    return Sharding(
        matrix,
        tuple(whole_map(tensor.shape or ()) for tensor in case.tensors),
        tuple(whole_map(tensor.shape or ()) for tensor in case.call.results),
    )


@irregular("unsplit_everywhere")
def unsplit_everywhere(case: Case, base: Base) -> Sharding:
    """Nothing may be split, and all devices stand in one axis."""
    return replace(unsplit(case, base), device_matrix=(case.devices,), complete=True)


@irregular("init_routing")
def init_routing(case: Case, base: Base) -> Sharding:
    """All is whole; a split of x is passed over unless both of its dimensions are."""
    if all(split != 1 for split in case.strategy[0]):
        case.refuse("axis-split", f"x can not be split, strategy {case.strategy[0]}")
    undivided = replace(case, strategy=tuple((1,) * len(row) for row in case.strategy))
    return unsplit_everywhere(undivided, base)


@axes("capacity_router")
def capacity_router_axes(case: Case) -> str:
    """The batch of the choices, which are the input with three dimensions."""
    inputs = ["[b . .]" if len(tensor.shape or ()) == 3 else "[*.]" for tensor in case.tensors]
    return f"{' '.join(inputs)} -> [b *.]+ judged (b)"


@irregular("capacity_router", self_checked=True)
def capacity_router(case: Case, base: Base) -> Sharding:
    """Expert choices [b n k]: only the batch may be split; scalars may have entries too."""
    choices = [index for index, tensor in enumerate(case.tensors) if len(tensor.shape or ()) == 3]
    if not choices:
        raise Unsure("the router has no choices of experts [b n k] among its inputs")
    if not case.strategy:
        shape = case.sizes(choices[0])
        case = replace(case, strategy=adjusted(((case.devices, 1, 1),), (shape,), case.devices))
    rows = [row for row in case.strategy if len(row) == 3]
    if not rows:
        raise Unsure("the strategy of the router has an unknown form")
    # Only the first row is held against its shape; of the others only the last two numbers count.
    check_strategy((rows[0],), (case.sizes(choices[0]),), case.context)
    for row in rows:
        if row[1:] != (1, 1):
            case.refuse("axis-split", f"the last two dimensions can not be split, strategy {row}")
    if case.call.op == "TopPRouter" and len(case.strategy) < 6:
        message = "MindSpore looks for a sixth row of the strategy, and there is none"
        case.refuse("strategy-size", message)
    if len(rows) != len(choices):
        raise Unsure("the strategy of the router has too few entries")
    inputs = tuple(
        (2, WHOLE, WHOLE) if index == choices[0] else whole_map(tensor.shape or ())
        for index, tensor in enumerate(case.tensors)
    )
    outputs = tuple((2, *((WHOLE,) * (len(t.shape or ()) - 1))) for t in case.call.results)
    return Sharding(rows[0], inputs, outputs, strategy=case.strategy)


@irregular("finalize_routing")
def finalize_routing(case: Case, base: Base) -> Sharding:
    """Tokens, hidden size, experts and k are whole."""
    if len(case.strategy) not in (6, 7):
        case.refuse("strategy-size", f"the strategy must have 6 or 7 entries: {case.strategy}")
    sharding = unsplit(case, base)
    rows: tuple[TensorMap, ...] = ((2, 0),) * (len(case.strategy) - 4)
    maps = (*rows, (1, 0), (2, WHOLE), (2,), (2, 0))
    return replace(sharding, device_matrix=(1, 1, 1), input_maps=maps, output_maps=((2, 0),))


@irregular("scalars_behind")
def scalars_behind(case: Case, base: Base) -> Sharding:
    """The inputs behind the first have a map without axes, so that they must be scalars."""
    sharding = base()
    for index, tensor in enumerate(case.tensors[1:], 1):
        if tensor.shape:
            message = f"input {index} must be a scalar tensor, but has shape {tensor.shape}"
            case.refuse("layout", message, "tensor_layout.cc:IsValidTensorLayout")
    return sharding


@axes("dynamic_quant")
def dynamic_quant_axes(case: Case) -> str:
    """X, and a scale along its last dimension."""
    return f"[*x c]{' [c]' * (len(case.tensors) - 1)} -> [*x c] [*x]"


@irregular("dynamic_quant", out_strategy=True)
def dynamic_quant(case: Case, base: Base) -> Sharding:
    """X, and a scale that lies along its last dimension whatever its own strategy says.

    An output strategy has no effect; MindSpore only looks whether its two rows fit each other.
    """
    if case.out_strategy is not None:
        _check_quantised_output(case, case.out_strategy)
    if case.generated and len(case.tensors) < 2:
        message = "MindSpore's own strategy counts the scale, which is not there"
        case.refuse("batch-parallel", message)
    if len(case.tensors) > 2:
        raise Unsure("DynamicQuantExt with more than two inputs")
    first = case.strategy[0]
    plain = identity_map(len(first))
    maps = (plain, (0,)) if len(case.tensors) > 1 else (plain,)
    return Sharding(first, maps, (plain, plain[:-1]))


def _check_quantised_output(case: Case, given: Strategy) -> None:
    check = "dynamic_quant_ext_info.cc:CheckOutputStrategy"
    if len(given) != 2:
        case.refuse("out-strategy", f"the output strategy has {len(given)} rows, not 2", check)
    if given[1] != given[0][:-1]:
        message = f"the output strategy's second row must be {given[0][:-1]}, not {given[1]}"
        case.refuse("out-strategy", message, check)
