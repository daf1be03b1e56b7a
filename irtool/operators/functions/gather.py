"""Gather and its kin: rows of a table by their indices.

How a table is split decides the mode: whole axis (no communication), batch dimensions, one piece
of the axis a device (partial results are added up), or uneven pieces (``manual_split``).

An ``out_strategy`` says whether partial results are added up everywhere or scattered over the first
dimension; in every mode it must be one of the two that MindSpore makes of the strategies of indices
and table. Source: refusals and dumps of MindSpore 2.7.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import cast

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.functions.common import check_masked
from irtool.operators.functions.gather_output import (
    ROWS,
    check_output,
    is_scattered,
    is_whole,
    local_shape,
    output_strategies,
    scattered,
)
from irtool.operators.irregular import axes, irregular
from irtool.operators.judgement import Reduction, Sharding, Unsure
from irtool.operators.layout import DYNAMIC, WHOLE, MapEntry, TensorMap, identity_map

Base = Callable[[], Sharding]
GET_ATTRS = "gather_info.cc:GetAttrs"
MASKED = "a masked local Gather and the collective"
LESS_OFFSET = "the indices less an offset, then a local Gather"


@axes("gather")
def gather_axes(case: Case) -> str:
    """Table and indices: the axis that is looked up in is left to the function."""
    batch = case.number("batch_dims") if case.has("batch_dims") else 0
    return _gather_axes(case, case.number("axis"), batch)


@axes("index_select")
def index_select_axes(case: Case) -> str:
    """Table and indices without batch dimensions: the axis is left to the function."""
    return _gather_axes(case, case.number("dim"), 0)


@axes("embedding_lookup")
def embedding_lookup_axes(case: Case) -> str:
    """Rows of the table are looked up; the offset has none."""
    return f"{_gather_axes(case, 0, 0)} strategy of (0 1)"


def _gather_axes(case: Case, axis: int, batch: int) -> str:
    table = [f"t{place}" for place in range(len(case.shape(0)))]
    indices = [f"i{place}" for place in range(len(case.shape(1)))]
    axis = axis % len(table) if table else 0
    order = [*indices, *table]
    rows = table[axis]
    if batch > 0:
        table[:batch] = indices[:batch]
        order = [*indices, *table[batch:]]
        table[axis] = f"!{table[axis]}"
    manual = any(name in case.call.attributes for name in ("manual_split", MANUAL_WITH_OFFSET))
    if manual and axis == 0 and indices:
        indices[-1] = rows
    out = [*table[:axis], *indices[batch:], *table[axis + 1 :]]
    if rows not in out:
        judged = [rows]
    else:
        judged = [*table, *indices] if manual else []
    others = " [*.]" * (len(case.tensors) - 2)
    return (
        f"[{' '.join(table)}] [{' '.join(indices)}]{others} -> [{' '.join(out)}] "
        f"order ({' '.join(order)}) judged ({' '.join(judged)})"
    )


@irregular("gather", out_strategy=True)
def gather(case: Case, base: Base) -> Sharding:
    """Table, indices, axis, batch dimensions."""
    rank = len(case.shape(0))
    if rank == 0:
        case.refuse("shape", "the table can not be a scalar")
    axis = case.number("axis") % rank
    batch = case.number("batch_dims") if case.has("batch_dims") else 0
    return _gathered(case, axis, batch)


@irregular("index_select", out_strategy=True)
def index_select(case: Case, base: Base) -> Sharding:
    """Table, axis and indices: a Gather without batch dimensions."""
    return _gathered(case, case.number("dim") % len(case.shape(0)), 0)


@irregular("embedding_lookup", out_strategy=True, self_checked=True)
def embedding_lookup(case: Case, base: Base) -> Sharding:
    """Rows of a table on the host, which the compiler adds an offset to: the user gives none."""
    if not _is_on_host(case):
        message = "EmbeddingLookup must have the CPU as its target"
        case.refuse("attribute", message, "gather_info.cc:GetAttrs")
    offset = case.call.inputs[2].value if len(case.call.inputs) > 2 else 0
    if offset not in (0, None):
        message = f"on the CPU the offset must be 0, not {offset}"
        case.refuse("attribute", message, "gather_info.cc:GetAttrs")
    check_strategy(case.strategy, (case.sizes(0), case.sizes(1)), case.context)
    return _gathered(case, 0, 0)


@irregular("embedding", out_strategy=True)
def embedding(case: Case, base: Base) -> Sharding:
    """Indices first, then the table; optional behaviours must be off."""
    wanted = {"padding_idx": None, "max_norm": None, "scale_grad_by_freq": False}
    for name, value in wanted.items():
        if case.attribute(name) != value:
            message = f"{name} must be {value}, not {case.attribute(name)}"
            case.refuse("attribute", message, GET_ATTRS)
    for product, full, what in (
        (prod(case.strategy[1]), case.devices, "table"),
        (prod(case.strategy[0]), 1, "indices"),
    ):
        if product not in (1, full):
            message = f"the split of the {what} is not supported: {case.strategy}"
            case.refuse("gather-mode", message, "gather_info.cc:CheckProductValidity")
    ranks = [len(case.shape(index)) for index in (0, 1)]
    if case.strategy[1][0] == 1 and ranks[0] != ranks[1] and not case.generated:
        # MindSpore takes the map of the table for the indices where no rows are split
        message = (
            f"with whole rows indices must have the rank of the table, {ranks[1]}, not {ranks[0]}"
        )
        case.refuse("layout", message, "tensor_layout.cc:IsValidTensorLayout")
    turned = replace(
        case,
        call=replace(case.call, inputs=(case.tensors[1], case.tensors[0])),
        strategy=(case.strategy[1], case.strategy[0], *case.strategy[2:]),
    )
    sharding = _gathered(turned, 0, 0)
    first, second, *rest = sharding.input_maps
    return replace(sharding, input_maps=(second, first, *rest), mirrored=(False, True))


MANUAL_WITH_OFFSET = "manual_split_with_offset"


def _gathered(case: Case, axis: int, batch: int) -> Sharding:
    """Choose the mode, in MindSpore's order."""
    table = case.strategy[0]
    manual = next(
        (n for n in ("manual_split", MANUAL_WITH_OFFSET) if n in case.call.attributes), ""
    )
    if manual and axis != 0:
        message = f"the axis must be 0 with {manual}, not {axis}"
        case.refuse("attribute", message, GET_ATTRS)
    if manual:
        _manual_rows(case, manual)  # its form is looked at whether the table is split or not
    if case.generated and manual:
        case.refuse("manual-split", f"no strategy is made for {manual}: give one", "")
    if case.generated and not case.shape(1):
        case.refuse("strategy-length", "no strategy can be made for scalar indices: give one")
    scatters = False
    if batch > 0:
        sharding = _batch_mode(case, axis, batch)
    elif manual and table[axis] != 1:
        sharding = _manual_mode(case, manual)
    elif table[axis] == 1:
        sharding = _plain_mode(case, axis)
    elif _shards_batch_and_rest(case, axis):
        sharding, scatters = _batch_and_rest_mode(case), True
    elif _shards_batch_and_axis(case, axis):
        sharding, scatters = _batch_and_axis_mode(case), True
    elif _shards_indices_and_table(case):
        sharding, scatters = _indices_and_table_mode(case, axis), True
    elif axis in (0, 1):
        scatters = axis == 0 and DYNAMIC not in case.shape(1)
        sharding = _axis_mode(case, axis)
    else:
        case.refuse("gather-mode", f"axis {axis} can not be split")
    if sharding.replaced in (MASKED, LESS_OFFSET) and not _is_on_host(case):
        check_masked(case, 1)
    if case.out_strategy is not None:
        check_output(case, axis, batch, scatters=scatters)
    return replace(
        sharding,
        mirrored=(True, *(False for _ in case.tensors[1:])),
        repeat_right=sharding.repeat_right is not False,  # its own choice goes before an attribute
    )


def _is_on_host(case: Case) -> bool:
    """Whether the rows are looked up by the CPU, which is given an offset."""
    return case.call.attributes.get("primitive_target") == "CPU"


def _batch_mode(case: Case, axis: int, batch: int) -> Sharding:
    table, indices = case.strategy[:2]
    if table[axis] != 1:
        case.refuse("axis-split", f"the axis {axis} can not be split, strategy {table}")
    if table[:batch] != indices[:batch]:
        message = (
            f"the batch dimensions of table and indices are split differently: {case.strategy}"
        )
        case.refuse("axis-mismatch", message)
    matrix = indices + table[batch:]
    last = len(matrix) - 1
    indices_map = tuple(last - place for place in range(len(indices)))
    table_map = (
        *indices_map[:batch],
        *(last - len(indices) - place for place in range(len(table) - batch)),
    )
    out = (*table_map[:axis], *indices_map[batch:], *table_map[axis + 1 :])
    return Sharding(matrix, (table_map, indices_map), (out,))


def _plain_mode(case: Case, axis: int) -> Sharding:
    """The axis is whole: indices and the other axes may be split as they like."""
    table, indices = case.strategy[:2]
    matrix = indices + table
    plain = identity_map(len(matrix))
    indices_map, table_map = plain[: len(indices)], plain[len(indices) :]
    out = (*table_map[:axis], *indices_map, *table_map[axis + 1 :])
    return Sharding(matrix, (table_map, indices_map), (out,))


def _manual_mode(case: Case, name: str) -> Sharding:
    """Uneven pieces: each device along axis 0 has the number of rows that the user says."""
    rows = _manual_rows(case, name)
    table, indices = case.strategy[:2]
    shape, wanted = case.shape(0), case.shape(1)
    if any(split != 1 for split in indices[:-1]):
        case.refuse("axis-split", f"only the last dimension of indices can be split: {indices}")
    if table[0] != indices[-1] or indices[-1] != len(rows):
        case.refuse(
            "manual-split",
            f"{name} has {len(rows)} pieces, the table is split by {table[0]}, "
            f"the last dimension of indices by {indices[-1]}: they must be equal",
        )
    per_device = wanted[-1] // indices[-1]
    if min(rows) < per_device:
        case.refuse("manual-split", f"a piece of {min(rows)} rows is less than {per_device} fields")
    if shape[0] < wanted[-1]:
        case.refuse(
            "manual-split", f"the table's {shape[0]} rows are less than {wanted[-1]} fields"
        )
    if prod(table) < case.devices:
        case.refuse("manual-split", "manual split does not support repeated calculation")
    if sum(rows) != shape[0]:
        case.refuse("manual-split", f"the pieces have {sum(rows)} rows, the table {shape[0]}")
    plain = identity_map(len(table))
    position = case.context.own_rank - case.context.devices[0]
    own = rows[position // (prod(table[1:]) or 1)]
    local = (own, *(size // split for size, split in zip(shape[1:], table[1:], strict=True)))
    return Sharding(
        device_matrix=table,
        input_maps=(plain, ((WHOLE,) * (len(indices) - 1)) + (plain[0],)),
        output_maps=(((WHOLE,) * (len(indices) - 1)) + plain,),
        input_slices=((0, local),),
        replaced=LESS_OFFSET,
    )


def _manual_rows(case: Case, name: str) -> tuple[int, ...]:
    """Rows of each piece: a tuple of numbers, or of (rows, offset) where offsets are given."""
    value = case.call.attributes[name]
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()
    rows: list[int] = []
    for item in items:
        number = item
        if name == MANUAL_WITH_OFFSET:
            pair = cast("tuple[object, ...]", item) if isinstance(item, tuple) else ()
            number = pair[0] if len(pair) == 2 and is_whole_number(pair[1]) else None
        if isinstance(number, int) and is_whole_number(number) and number > 0:
            rows.append(number)
    if rows and len(rows) == len(items):
        return tuple(rows)
    wanted = "(rows, offset) pairs" if name == MANUAL_WITH_OFFSET else "positive numbers"
    return case.refuse("manual-split", f"{name} {value!r} is no tuple of {wanted}")


def is_whole_number(value: object) -> bool:
    """Whether an attribute's value is an integer, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _shards_batch_and_rest(case: Case, axis: int) -> bool:
    table, indices = case.strategy[:2]
    return (
        axis == 0
        and len(table) == len(indices) == 2
        and table[1] == 1
        and min(table[0], indices[0], indices[1]) > 1
        and case.devices not in (table[0], indices[0])
    )


def _shards_batch_and_axis(case: Case, axis: int) -> bool:
    table, indices = case.strategy[:2]
    return (
        axis == 0
        and len(table) == len(indices) == 2
        and table[1] == indices[1] == 1
        and table[0] * indices[0] == case.devices
        and case.devices not in (table[0], indices[0])
    )


def _shards_indices_and_table(case: Case) -> bool:
    """One dimension of indices, and a table split any way, over all devices together."""
    table, indices = case.strategy[:2]
    return (
        len(table) == 2
        and len(indices) == 1
        and indices[0] > 1
        and prod(table) * indices[0] == case.devices
    )


def _batch_and_rest_mode(case: Case) -> Sharding:
    """Rows of the table, and both dimensions of indices; partial results are added up."""
    table, indices = case.strategy[:2]
    matrix = (*indices, table[0])
    if prod(matrix) != case.devices:
        message = f"{case.strategy} splits over {prod(matrix)} devices, not over all {case.devices}"
        case.refuse("repeated", message, "tensor_layout.cc:IsValidTensorLayout")
    sharding = Sharding(
        matrix,
        ((0, WHOLE), (2, 1)),
        ((2, 1, WHOLE),),
        (Reduction("AllReduce", (2,), "sum", ROWS),),
        replaced=MASKED,
    )
    if not is_scattered(case):
        return sharding
    rows = (indices[0] * table[0], indices[1])
    return scattered(case, sharding, 2, rows, (1, 0, WHOLE), (*indices, 1))


def _batch_and_axis_mode(case: Case) -> Sharding:
    """Rows of the table, and the first dimension of indices; partial results are added up."""
    table, indices = case.strategy[:2]
    sharding = Sharding(
        (indices[0], table[0]),
        ((0, WHOLE), (1, WHOLE)),
        ((1, WHOLE, WHOLE),),
        (Reduction("AllReduce", (1,), "sum", ROWS),),
        replaced=MASKED,
    )
    if not is_scattered(case):
        return sharding
    made = scattered(case, sharding, 1, None, (0, WHOLE, WHOLE), (*indices, 1))
    # What MindSpore notes of the result is rows that are split along the table's axis alone.
    held = local_shape(case.result(0), output_strategies(case)[1])
    return replace(made, output_slices=((0, held),), loss_divisor=1)


def _indices_and_table_mode(case: Case, axis: int) -> Sharding:
    """Both dimensions of the table, and the one of indices; partial results are added up."""
    table, indices = case.strategy[:2]
    if axis != 0:
        raise Unsure(
            f"MindSpore compiles a table that is split along axis {axis} together with its "
            "indices, but adds up over the devices of another axis"
        )
    sharding = Sharding(
        (*indices, *table),
        ((1, 0), (2,)),
        ((2, 0),),
        (Reduction("AllReduce", (1,), "sum", ROWS),),
        replaced=MASKED,
    )
    if not is_scattered(case):
        return sharding
    rows = (indices[0] * table[0], table[1])
    return scattered(case, sharding, 1, rows, (1, 0), (*indices, table[1]))


def _axis_mode(case: Case, axis: int) -> Sharding:
    """The axis is split: a masked local Gather, and the sum over the devices along the axis."""
    table, indices = case.strategy[:2]
    rank = len(table)
    product = prod(table)
    if rank not in (1, 2):
        case.refuse("gather-mode", f"a table of rank {rank} can't be split along the axis")
    if not case.shape(1):
        case.refuse("gather-mode", "scalar indices can't be used with a split axis")
    if axis != 0 and case.sizes(0)[0] % (table[0] * table[axis]):
        case.refuse("not-divisible", "rows don't divide by the splits of both dimensions")
    if prod(indices) != 1:
        message = f"the table is split along axis {axis}, so indices can't be: {case.strategy}"
        case.refuse("axis-split", message, "gather_info.cc:CheckSplitAxisStrategy")
    if product != case.devices and (axis != 0 or (rank == 2 and table[1] != 1)):
        message = f"repeated calculation is not supported with strategy {case.strategy}"
        case.refuse("repeated", message, "gather_info.cc:CheckSplitAxisStrategy")
    plain = identity_map(rank)
    indices_map = (WHOLE,) * len(indices)
    if case.call.is_dynamic and table[axis] != 1 and case.shape(0)[axis] == DYNAMIC:
        message = f"axis {axis} of the table is dynamic, so it can not be split"
        case.refuse("dynamic-shape", message, "gather_info.cc:CheckStrategyForDynamicShape")
    sharding = Sharding(
        device_matrix=table,
        input_maps=(plain, indices_map),
        output_maps=((),),
        repeat_right=product in (1, case.devices),
        replaced=MASKED,
    )
    return _axis_output(case, axis, sharding)


def _axis_output(case: Case, axis: int, sharding: Sharding) -> Sharding:
    """AllReduce leaves the rows of the result whole, ReduceScatter splits them."""
    table, indices = case.strategy[:2]
    dynamic = DYNAMIC in case.shape(1)
    host = _is_on_host(case)
    indivisible = axis == 0 and case.sizes(1)[0] % table[0] != 0
    all_reduce = indivisible or (dynamic and not host)
    all_reduce = all_reduce or (axis == 0 and is_whole(case))
    why = "the axis of the table is split"
    columns: TensorMap = tuple(len(table) - 1 - place for place in range(1, len(table)))
    others: list[MapEntry] = [WHOLE] * (len(indices) - 1)
    if axis == 0:
        rows: MapEntry = WHOLE if all_reduce else len(table) - 1
        out: TensorMap = (rows, *others, *columns)
        unscattered = local_shape(case.result(0), (1, *(1 for _ in others), *table[1:]))
        kind = "AllReduce" if all_reduce else "ReduceScatter"
        return replace(
            sharding,
            output_maps=(out,),
            reductions=(Reduction(kind, (0,), "sum", why, 0, unscattered),),
        )
    if dynamic:
        raise Unsure("a split column axis with dynamic indices")
    unscattered = local_shape(case.result(0), (table[0], *(1 for _ in indices)))
    over_rows = replace(
        sharding,
        output_matrix=(1, table[0] * table[1]),
        output_maps=((0, *(WHOLE for _ in indices)),),
        reductions=(Reduction("ReduceScatter", (1,), "sum", why, 0, unscattered),),
    )
    if not is_whole(case):
        return over_rows
    # MindSpore adds up everywhere then, but notes a result that is scattered.
    everywhere = (Reduction("AllReduce", (1,), "sum", why, 0, unscattered),)
    return replace(over_rows, reductions=everywhere, output_slices=((0, unscattered),))
