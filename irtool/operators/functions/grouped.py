"""Products of several pairs of matrices at once."""

from __future__ import annotations

from collections.abc import Callable

from irtool.operators.case import Case
from irtool.operators.functions import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import WHOLE, TensorMap

Base = Callable[[], Sharding]


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
    """Lists of x [m k] and of weights [(e) k n], and where the groups end, which lies along m.

    The first pair decides; experts stay whole whatever the strategy says of them.
    """
    if not case.strategy:
        message = "a strategy is not made for lists of tensors: it must be given"
        case.refuse(
            "strategy-size", message, "step_parallel_utils.cc:GenerateBatchParallelStrategy"
        )
    count = len(tuple(case.call.inputs[0].tensors))
    if not count or len(tuple(case.call.inputs[1].tensors)) != count:
        raise Unsure("GroupedMatmul with lists of different length")
    pairs = [(case.strategy[i], case.strategy[count + i]) for i in range(count)]
    for x, weight in pairs:
        if x[-1] != weight[-2]:
            message = f"k is split by {x[-1]} in x {x}, by {weight[-2]} in the weight {weight}"
            case.refuse("axis-mismatch", message)
    if any(pair != pairs[0] for pair in pairs):
        raise Unsure("GroupedMatmul with pairs that are split differently")
    x, weight = pairs[0]
    matrix = (*x, weight[-1])
    rows = tuple(range(len(matrix) - 1, 1, -1))
    maps: list[TensorMap] = [(*rows, 1)] * count
    maps += [(*((WHOLE,) * (len(weight) - 2)), 1, 0)] * count
    listed = {7: tuple(case.call.inputs[7].tensors)} if len(case.call.inputs) > 7 else {}
    others = len(case.tensors) - 2 * count
    if others != sum(len(found) for found in listed.values()) or len(x) != 2:
        raise Unsure("optional inputs of GroupedMatmul that were not seen in a dump")
    maps += [(rows[0],)] * others
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
    )
