"""Products of several pairs of matrices at once."""

from __future__ import annotations

from collections.abc import Callable

from irtool.operators.case import Case
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import WHOLE, TensorMap

Base = Callable[[], Sharding]
BIAS, GROUPS = 2, 7
"""Positions of the optional inputs that may be there: lists of biases, where the groups end."""


@axes("grouped_matmul")
def grouped_matmul_axes(case: Case) -> str:
    """Each pair of matrices is split alike; what is optional is left to the function."""
    count = len(tuple(case.call.inputs[0].tensors))
    weights = ["[" + ". " * (len(case.shape(count + i)) - 2) + "k n]" for i in range(count)]
    others = " [*.]" * (len(case.tensors) - 2 * count)
    outputs = " ".join("[m n]" for _ in case.call.results)
    return f"{'[m k] ' * count}{' '.join(weights)}{others} -> {outputs} judged (m k n)"


@irregular("grouped_matmul", self_checked=True)
def grouped_matmul(case: Case, base: Base) -> Sharding:
    """Lists of x [m k], of weights [(e) k n] and of biases [(e) n], and where the groups end.

    The first pair decides, the others are only checked; experts stay whole whatever the strategy
    says of them.
    """
    if not case.strategy:
        message = "a strategy is not made for lists of tensors: it must be given"
        case.refuse(
            "strategy-size", message, "step_parallel_utils.cc:GenerateBatchParallelStrategy"
        )
    count = len(tuple(case.call.inputs[0].tensors))
    if not count or len(tuple(case.call.inputs[1].tensors)) != count:
        raise Unsure("GroupedMatmul with lists of different length")
    if len(case.strategy) < 2 * count:
        raise Unsure("GroupedMatmul with a strategy of fewer rows than matrices, which it reads on")
    for index in range(count):
        _check_pair(case, index, count + index)
    x, weight = case.strategy[0], case.strategy[count]
    if len(x) != 2:
        raise Unsure("GroupedMatmul with an x that is no matrix")
    matrix = (*x, weight[-1])
    rows = tuple(range(len(matrix) - 1, 1, -1))
    maps: list[TensorMap] = [(*rows, 1)] * count
    maps += [_along_last(case, count + index, (1, 0)) for index in range(count)]
    maps += _optional_maps(case, 2 * count, rows)
    why = "k is contracted and split"
    reductions = tuple(
        Reduction("AllReduce", (len(matrix) - 2,), "sum", why, output) for output in range(count)
    )
    outputs = tuple((*rows, 0) for _ in case.call.results)
    return Sharding(
        matrix,
        tuple(maps),
        outputs,
        reductions if x[-1] > 1 else (),
        mirrored=(False,) * len(maps),
        no_gradient=_no_gradient(case, x[0]),
    )


def _no_gradient(case: Case, split: int) -> str:
    """Why MindSpore's gradient can't be made: it knows one form only, and whole groups."""
    inputs = case.call.inputs
    if case.number("split_item") != 3:
        return f"the gradient of GroupedMatmul wants split_item 3, not {case.number('split_item')}"
    if any(inputs[BIAS].tensors):
        return "the gradient of GroupedMatmul wants no bias"
    if split > 1 and len(inputs) > GROUPS and any(inputs[GROUPS].tensors):
        return (
            f"the rows of x are split by {split}, and so are the ends of the groups: the gradient "
            "makes weights of fewer groups than there are"
        )
    return ""


def _check_pair(case: Case, first: int, second: int) -> None:
    """Rows of the strategy are as long as the shapes, and k is split alike."""
    x, weight = case.strategy[first], case.strategy[second]
    if len(x) != len(case.shape(first)) or len(weight) != len(case.shape(second)):
        message = (
            f"the strategies of x {x} and of the weight {weight} must be as long as the shapes"
        )
        case.refuse("strategy-length", message)
    if x[-1] != weight[-2]:
        message = f"k is split by {x[-1]} in x {x}, by {weight[-2]} in the weight {weight}"
        case.refuse("axis-mismatch", message)
    if case.shape(second)[-1] % max(case.strategy[len(list(case.call.inputs[0].tensors))][-1], 1):
        raise Unsure(f"columns of GroupedMatmul that the split {weight} does not divide")


def _optional_maps(case: Case, index: int, rows: tuple[int, ...]) -> list[TensorMap]:
    """Biases lie along n, where the groups end along m, whatever the strategy says of them."""
    maps: list[TensorMap] = []
    for position, operand in enumerate(case.call.inputs[2:], start=2):
        for _ in operand.tensors:
            if position not in (BIAS, GROUPS):
                raise Unsure(f"input {position} of GroupedMatmul, which nobody measured")
            if position == BIAS:
                maps.append(_along_last(case, index + len(maps), (0,)))
            else:
                maps.append((rows[0],))
    return maps


def _along_last(case: Case, index: int, axes: TensorMap) -> TensorMap:
    """The map of a tensor whose last dimensions lie along ``axes``; experts before stay whole."""
    return (*((WHOLE,) * (len(case.shape(index)) - len(axes))), *axes)
