"""Single elements by their indices: along a dimension, by position, by one index a dimension."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from irtool.ir.group_names import group_name
from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import base_maps, check_masked, must_be_whole
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Collective, Reduction, Sharding, Unsure
from irtool.operators.layout import DYNAMIC, WHOLE, identity_map

Base = Callable[[], Sharding]


@axes("gather_d")
def gather_d_axes(case: Case) -> str:
    """X and index; the dimension that is gathered along is split in x only, and added up."""
    dim = case.number("dim") % len(case.shape(0))
    x = [f"x{place}" for place in range(len(case.shape(0)))]
    rest = " ".join("." if place == dim else name for place, name in enumerate(x))
    return f"[{' '.join(x)}] [{rest}] -> [{rest}] reduce x{dim} with sum"


@irregular("gather_d")
def gather_d(case: Case, base: Base) -> Sharding:
    """X and index are split alike, but for the dimension that is gathered along."""
    x, index = case.strategy[:2]
    rank = len(x)
    dim = case.number("dim") % rank
    for axis in range(rank):
        if axis != dim and x[axis] != index[axis]:
            message = f"x and index are split differently in dimension {axis}: {case.strategy}"
            case.refuse("axis-mismatch", message)
    if index[dim] != 1:
        message = f"dimension {dim} of index can not be split, strategy {index}"
        case.refuse("axis-split", message)
    if x[dim] != 1 and case.shape(0)[dim] == DYNAMIC:
        message = f"dimension {dim} of x is dynamic, so it can not be split"
        case.refuse("dynamic-shape", message, "gatherd_info.cc:CheckStrategyForDynamicShape")
    plain = identity_map(rank)
    out = tuple(WHOLE if axis == dim else plain[axis] for axis in range(rank))
    if x[dim] == 1:
        return Sharding(x, (plain, out), (out,))
    check_masked(case, 1)
    why = f"dimension {dim} of x is split"
    return Sharding(
        device_matrix=x,
        input_maps=(plain, out),
        output_maps=(out,),
        reductions=(Reduction("AllReduce", (dim,), "sum", why),),
        replaced="a masked local GatherD and the AllReduce",
    )


@irregular("index_add", self_checked=True)
def index_add(case: Case, base: Base) -> Sharding:
    """Rows added along one dimension: input and source are split alike, but not along it."""
    dim = case.number("dim")
    rank = len(case.shape(0))
    if not 0 <= dim < rank:
        message = f"dim must be from 0 to {rank - 1}, but is {dim}"
        case.refuse("attribute", message, "index_add_info.cc:GetAttrs")
    if case.layouts is None:
        shapes = tuple(case.sizes(index) for index in range(len(case.tensors)))
        check_strategy(case.strategy, shapes, case.context)
    first, index, source = case.strategy
    if source != first:
        case.refuse("axis-mismatch", f"input and source are split differently: {case.strategy}")
    if first[dim] != 1:
        case.refuse("axis-split", f"dimension {dim} can not be split, strategy {first}")
    if index[0] != 1:
        case.refuse("axis-split", f"the index can not be split, strategy {index}")
    matrix, plain = base_maps(case)
    return Sharding(matrix, (plain, (WHOLE,), plain), (plain,))


@irregular("gather_nd")
def gather_nd(case: Case, base: Base) -> Sharding:
    """The table is whole; indices may be split but for their last dimension."""
    must_be_whole(case, 0, "the input")
    indices = case.strategy[1]
    if not indices or indices[-1] != 1:
        case.refuse("axis-split", f"the last dimension of indices can not be split: {indices}")
    plain = identity_map(len(indices))
    table = (WHOLE,) * len(case.shape(0))
    rest = len(case.result(0)) - (len(indices) - 1)
    return Sharding(indices, (table, plain), (plain[:-1] + (WHOLE,) * rest,))


@irregular("index")
def index(case: Case, base: Base) -> Sharding:
    """Elements of a matrix: each device its own, the rest is added up.

    Indices are whole, whatever their strategy says.
    """
    count = len(case.shape(0))
    if len(case.tensors) < 1 + count or len(case.strategy) < 1 + count:
        given = min(len(case.tensors), len(case.strategy)) - 1
        message = (
            f"Index into {count} dimensions needs as many indices with a strategy, not {given}"
        )
        case.refuse("strategy-size", message)
    if count > 2 or len(case.tensors) != 1 + count:
        raise Unsure(f"Index into {count} dimensions with {len(case.tensors) - 1} indices")
    first = case.strategy[0]
    index_maps = tuple((WHOLE,) * len(t.shape or ()) for t in case.tensors[1:])
    out = (WHOLE,) * len(case.result(0))
    over = tuple(axis for axis, split in enumerate(first) if split > 1)
    why = "the table is split"
    reductions = (Reduction("AllReduce", over, "sum", why),) if over else ()
    own = (case.context.own_rank,)
    # Of a whole table, too, the results are added up: over a group of one rank.
    alone = Collective("AllReduce", own, "sum", "one piece", 0, case.result(0), group_name(own))
    return Sharding(
        first,
        (identity_map(count), *index_maps),
        (out,),
        reductions,
        exchanges=() if over else (alone,),
        loss_divisor=prod(first),
        replaced="a masked local Index and the AllReduce",
    )
