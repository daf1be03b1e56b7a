"""What an ``out_strategy`` of a Gather says: partial results added up everywhere, or scattered.

In every mode it must be one of the two that MindSpore makes of the strategies of indices and table.

Source: refusals and dumps of MindSpore 2.7.0.
"""

from __future__ import annotations

from dataclasses import replace

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.judgement import Reduction, Sharding
from irtool.operators.layout import DYNAMIC, Shape, TensorMap

OUTPUT = "gather_info.cc:CheckOutputStrategy"
ROWS = "rows of the table are split"


def output_strategies(case: Case) -> tuple[Shape, Shape]:
    """The splits of a result that is added up everywhere, and of one that is scattered.

    Args:
        case: whose strategy begins with the rows of table and indices.
    """
    table, indices = case.strategy[:2]
    summed = indices + table[1:]
    return summed, (summed[0] * table[0], *summed[1:]) if summed else summed


def is_whole(case: Case) -> bool:
    """Whether the user asks for a result that is added up everywhere.

    Args:
        case: with an ``out_strategy``, or without one, which asks for nothing.
    """
    return case.out_strategy is not None and case.out_strategy[0] == output_strategies(case)[0]


def is_scattered(case: Case) -> bool:
    """Whether the user asks for a scattered result.

    Args:
        case: with an ``out_strategy``, or without one, which asks for nothing.
    """
    if case.out_strategy is None or is_whole(case):
        return False
    return case.out_strategy[0] == output_strategies(case)[1]


def check_output(case: Case, axis: int, batch: int, *, scatters: bool) -> None:
    """Check that the output strategy has the right form, and is one of those that MindSpore makes.

    Args:
        case: with an ``out_strategy``.
        axis: that is looked up along, from 0.
        batch: number of batch dimensions.
        scatters: whether results may be scattered in this mode.

    Raises:
        Refused: MindSpore would refuse it.
    """
    assert case.out_strategy is not None
    check_strategy(case.out_strategy, (case.call.results[0].shape or (),), case.context)
    if axis != 0 and batch != 0:
        message = "an output strategy needs axis 0 or no batch dimensions"
        case.refuse("out-strategy", message, OUTPUT)
    summed, split = output_strategies(case)
    wanted = {summed, split} if scatters else {summed}
    if case.out_strategy[0] not in wanted:
        listed = " or ".join(str(strategy) for strategy in sorted(wanted))
        message = f"the output strategy {case.out_strategy[0]} must be {listed}"
        case.refuse("out-strategy", message, OUTPUT)


def scattered(
    case: Case,
    sharding: Sharding,
    axis: int,
    matrix: Shape | None,
    output_map: TensorMap,
    before: Shape,
) -> Sharding:
    """Partial results that are scattered instead of added up everywhere.

    Args:
        case: the case.
        sharding: what holds where they are added up.
        axis: device axis over which they are scattered.
        matrix: the device matrix of the result; None: that of the operator.
        output_map: how the result lies then.
        before: how the result was split before.
    """
    local = local_shape(case.result(0), before)
    return replace(
        sharding,
        output_matrix=matrix,
        output_maps=(output_map,),
        reductions=(Reduction("ReduceScatter", (axis,), "sum", ROWS, 0, local),),
    )


def local_shape(shape: Shape, splits: Shape) -> Shape:
    """The shape of a slice; unknown sizes stay unknown.

    Args:
        shape: of the whole tensor; -1 for an unknown size.
        splits: by dimension.
    """
    return tuple(
        size if size == DYNAMIC else size // split
        for size, split in zip(shape, splits, strict=True)
    )
