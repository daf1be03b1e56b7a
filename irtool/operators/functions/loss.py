"""Losses and one-hot encoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import check_masked, whole_map
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import WHOLE, Shape, identity_map

Base = Callable[[], Sharding]


@irregular("softmax_cross_entropy")
def softmax_cross_entropy(case: Case, base: Base) -> Sharding:
    """Logits and labels alike; the classes, the last axis, are whole."""
    logits, labels = case.strategy
    if logits != labels:
        case.refuse("axis-mismatch", f"logits and labels are split differently: {case.strategy}")
    if logits[-1] != 1 or labels[-1] != 1:
        case.refuse("axis-split", f"the classes can not be split, strategy {logits}")
    return base()


@axes("cross_entropy")
def cross_entropy_axes(case: Case) -> str:
    """Rows; they are added up unless each has a loss of its own."""
    pattern = f"[n !c] [n]{' [!c]' * (len(case.tensors) - 2)} -> "
    if case.number("reduction") == _NONE:
        return f"{pattern} [n] [n !c]{_EMPTY_OUTPUTS}"
    return f"{pattern} [.] [n !c]{_EMPTY_OUTPUTS} reduce n with sum"


_EMPTY_OUTPUTS = " [*.]+"


@irregular("cross_entropy")
def cross_entropy(case: Case, base: Base) -> Sharding:
    """Logits by rows, a class a row; a weight a class, whole. The loss is of rows, or of them all.

    ``reduction``: 0 sum, 1 mean, 2 none. The outputs after the logarithms are empty: no layouts.
    """
    logits, labels = case.strategy[:2]
    if logits[0] != labels[0]:
        case.refuse("axis-mismatch", f"rows and labels are split differently: {case.strategy}")
    if logits[-1] != 1:
        case.refuse("axis-split", f"the classes can not be split, strategy {logits}")
    if len(case.tensors) > 2 and case.strategy[2] != (1,):
        case.refuse("axis-split", f"the weight can not be split, strategy {case.strategy[2]}")
    if len(logits) != 2:
        raise Unsure(f"logits of {len(logits)} dimensions")
    inputs = ((1, 0), (1,), (0,))[: len(case.tensors)]
    if case.number("reduction") == _NONE:
        return Sharding(logits, inputs, ((1,), (1, 0)), loss_output=1)
    reductions = ()
    if logits[0] > 1:
        reductions = (Reduction("AllReduce", (0,), "sum", "the loss is taken over all rows"),)
    return Sharding(logits, inputs, ((WHOLE,), (1, 0)), reductions, loss_output=1)


_NONE = 2
"""The number of the reduction that leaves a loss a row."""


@axes("kl_div")
def kl_div_axes(case: Case) -> str:
    """Logits and labels alike."""
    out = "[*x]" if case.text("reduction") == "none" else "[] reduce *x with sum"
    return f"[*x] [*x] -> {out}"


@irregular("kl_div")
def kl_div(case: Case, base: Base) -> Sharding:
    """Logits and labels alike; the result is one number unless the reduction is none."""
    logits, labels = case.strategy
    if logits != labels:
        case.refuse("axis-mismatch", f"logits and labels are split differently: {case.strategy}")
    plain = identity_map(len(logits))
    reduction = case.text("reduction")
    if reduction == "none":
        return Sharding(logits, (plain, plain), (plain,))
    over = tuple(axis for axis, split in enumerate(logits) if split > 1)
    why = f"reduction {reduction}"
    reductions = (Reduction("AllReduce", over, "sum", why),) if over else ()
    return Sharding(logits, (plain, plain), ((),), reductions)


@axes("one_hot")
def one_hot_axes(case: Case) -> str:
    """The strategy is one of the output: indices and classes."""
    rank = len(case.shape(0))
    others = " [*.]" * (len(case.tensors) - 1)
    if rank > 1:
        pattern = f"[i {'. ' * (rank - 1)}]{others} -> [i {'. ' * rank}]"
    elif case.number("axis") == 0:
        pattern = f"[i]{others} -> [c i]"
    else:
        pattern = f"[*i]{others} -> [*i c]"
    return f"{pattern} strategy of (output others)"


@irregular("one_hot", self_checked=True)
def one_hot(case: Case, base: Base) -> Sharding:
    """The first entry of the strategy is that of the output; the depth may be split."""
    if case.strategy == ():
        case = replace(case, strategy=_one_hot_batch(case))
    first = case.call.results[0].divisible_shape
    shapes = (first, *(case.sizes(index) for index in range(1, len(case.tensors))))
    check_strategy(case.strategy, shapes, case.context)
    axis = case.number("axis")
    if not -1 <= axis <= 1:
        case.refuse(
            "attribute", f"the axis must be -1, 0 or 1, not {axis}", "onehot_info.cc:GetAttrs"
        )
    strategy = case.strategy[0]
    rank = len(case.shape(0))
    if rank > 1 and (axis != -1 or any(split != 1 for split in strategy[1:])):
        message = "indices of more than one dimension: axis -1 and a split of dimension 0 only"
        case.refuse("axis-split", f"{message}, strategy {strategy}")
    others = tuple(whole_map(tensor.shape or ()) for tensor in case.tensors[1:])
    if strategy[0 if axis == 0 else -1] > 1:  # the classes
        check_masked(case, 0)
    if axis == 0:
        matrix: Shape = (strategy[1], strategy[0])
        out = tuple(range(len(strategy)))
        return Sharding(matrix, ((1,), *others), (out,), strategy=case.strategy)
    plain = identity_map(len(strategy))
    sharding = Sharding(strategy, (plain[:-1], *others), (plain,), strategy=case.strategy)
    if strategy[-1] > 1:
        return replace(sharding, replaced="a local one-hot of the rank's own classes")
    return sharding


def _one_hot_batch(case: Case) -> tuple[Shape, ...]:
    """The strategy MindSpore makes: the batch, where it divides by all devices."""
    rank = len(case.shape(0))
    divides = bool(rank) and case.sizes(0)[0] % case.devices == 0
    first = (case.devices if divides else 1, *((1,) * rank))
    return (first, *(() for _ in case.tensors[1:]))


@irregular("batch_parallel")
def batch_parallel(case: Case, base: Base) -> Sharding:
    """Each input is whole, or split in one dimension over all devices.

    MindSpore maps first dimensions only: any other one that is split stays whole.
    """
    for strategy in case.strategy:
        split = [value for value in strategy if value != 1]
        if len(split) > 1 or any(value != case.devices for value in split):
            message = f"one dimension over all {case.devices} devices, or none: {case.strategy}"
            case.refuse("batch-parallel", message)
    inputs = tuple(
        tuple(WHOLE if dimension or value == 1 else 0 for dimension, value in enumerate(strategy))
        for strategy in case.strategy
    )
    outputs = tuple(
        tuple(0 if dimension == 0 else WHOLE for dimension in range(len(operand.shape or ())))
        for operand in case.call.results
    )
    split = any(value != 1 for strategy in case.strategy for value in strategy)
    # The layout of the result is of split rows even where the inputs, and it, are whole.
    results = [operand.shape or () for operand in case.call.results]
    fits = all(shape and min(shape) > 0 and shape[0] % case.devices == 0 for shape in results)
    slices = results if fits and not split else ()
    return Sharding(
        (case.devices,),
        inputs,
        outputs,
        complete=True,
        loss_divisor=1,
        output_slices=tuple(enumerate(slices)),
    )


@irregular("check_valid")
def check_valid(case: Case, base: Base) -> Sharding:
    """Boxes by number; the shape of the image is whole."""
    boxes, image = case.strategy[:2]
    place = "batch_parallel_info.cc:CheckStrategy"
    if boxes[1] != 1:
        case.refuse("axis-split", f"the second dimension can not be split, strategy {boxes}", place)
    if any(split != 1 for split in image):
        case.refuse("axis-split", f"the second input can not be split, strategy {image}", place)
    first = 0 if boxes[0] > 1 else WHOLE
    return Sharding((boxes[0],), ((first, WHOLE), whole_map(case.shape(1))), ((0,),))


@axes("prelu")
def prelu_axes(case: Case) -> str:
    """The weight lies along the channels, if it is not one for all."""
    shared = case.shape(1) in ((), (1,))
    return "[*x] [*.] -> [*x]" if shared else "[n c *x] [c] -> [n c *x]"


@irregular("prelu")
def prelu(case: Case, base: Base) -> Sharding:
    """One weight a channel, or one for all."""
    x, weight = case.strategy[:2]
    size = case.shape(1)[0] if case.shape(1) else 1
    channel = x[1] if len(x) > 1 else 1
    if size == 1:
        if any(split != 1 for split in weight):
            raise Unsure("a single weight of PReLU is split")
        return Sharding(
            x, (identity_map(len(x)), whole_map(case.shape(1))), (identity_map(len(x)),)
        )
    if weight[0] != channel:
        case.refuse("axis-mismatch", f"the weight is not split like the channels: {case.strategy}")
    plain = identity_map(len(x))
    return Sharding(x, (plain, (plain[1],)), (plain,))
