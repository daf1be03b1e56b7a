"""The strategy of an operator, from the row that it took over from a neighbour.

The table of operators says which way (``fits``); the general one gives all operands the row, from
the left, and leaves dimensions of 1 whole.

Source: strategies in dumps after the search, beside those of the neighbours that the log names.
"""

from __future__ import annotations

from collections.abc import Callable

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.functions.attention import (
    COMPRESSED,
    KEY,
    LAYOUTS,
    OPTIONAL,
    QUERY,
)
from irtool.operators.layout import Shape
from irtool.planning.recursive.kinds import NotSearchable
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.sources import gather_row
from irtool.planning.recursive.tensors import pieces


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices, and those of one pipeline stage."""

    all: int
    stage: int


def fitted(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """The operator's strategy; an empty row gives empty ones.

    Args:
        operator: to be given a strategy.
        row: into how many slices each dimension of its first tensor is cut, as a neighbour has it.
        devices: of all stages, and of one.
    """
    if not row:
        return tuple(() for _ in operator.inputs)
    return FITS.get(operator.search.fits, _general)(operator, row, devices)


def unsplit(operator: Operator) -> Strategy:
    """The operator's strategy that splits nothing.

    Args:
        operator: with the shapes of its inputs.
    """
    return tuple((1,) * len(shape) for shape in operator.inputs)


def valid(operator: Operator, strategy: Strategy) -> Strategy:
    """The strategy with whole dimensions in place of splits that don't divide.

    Args:
        operator: with the shapes of its inputs.
        strategy: a row an input; rows that are too short are filled up with ones.
    """
    if operator.search.fits == "filled":
        return strategy
    rows: list[Shape] = []
    for shape, row in zip(operator.inputs, strategy, strict=False):
        filled = (*row, *(1 for _ in range(len(shape) - len(row))))
        rows.append(tuple(_fits(size, split) for size, split in zip(shape, filled, strict=False)))
    changed = any(fixed != row[: len(fixed)] for fixed, row in zip(rows, strategy, strict=False))
    return tuple(rows) if changed else strategy


def _fits(size: int, split: int) -> int:
    return split if size >= split and size % split == 0 else 1


def _general(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    return tuple(
        tuple(
            1 if size == 1 or axis >= len(row) else row[axis]
            for axis, size in enumerate(shape)
        )
        for shape in operator.inputs
    )  # fmt: skip


def _protected(operator: Operator, strategy: Strategy) -> Strategy:
    """Splits that don't divide made whole."""
    return tuple(
        tuple(_fits(size, split) for size, split in zip(shape, row, strict=False))
        for shape, row in zip(operator.inputs, strategy, strict=False)
    )


def _broadcast(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Two operands: the row is the larger one's; taken from the smaller, nothing is split."""
    first, second = operator.inputs[0], operator.inputs[1]
    if len(first) == len(second):
        return _protected(operator, _general(operator, row, devices))
    if len(row) != max(len(first), len(second)):
        return unsplit(operator)
    small = second if len(second) < len(first) else first
    added = len(row) - len(small)
    short = tuple(1 if size == 1 else row[added + axis] for axis, size in enumerate(small))
    rows = (row, short) if len(second) < len(first) else (short, row)
    return _protected(operator, rows)


def _bias(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    if len(row) < 2:
        raise NotSearchable(f"BiasAdd takes over a row of {len(row)} numbers")
    return (row, (row[1],))


def _filled(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    rank = len(operator.outputs[0])
    return ((*row, *(1 for _ in range(rank - len(row)))), ())


def _sliced(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Dimensions that are not taken whole, or not step by step, are not split."""
    begin = list(operator.numbers("begin") or ())
    end = list(operator.numbers("end") or ())
    strides = list(operator.numbers("strides") or ())
    shape = list(operator.inputs[0])
    splits = list(row)
    for axis in range(min(len(begin), len(end), len(strides))):
        if axis < len(shape) and _is_masked(operator, "begin_mask", axis):
            begin[axis] = shape[axis] - 1 if strides[axis] < 0 else 0
        if axis < len(shape) and _is_masked(operator, "end_mask", axis):
            end[axis] = -1 if strides[axis] < 0 else shape[axis]
        if _is_masked(operator, "new_axis_mask", axis):
            begin[axis], end[axis], strides[axis] = 0, 1, 1
            shape.insert(axis, 1)
            splits.insert(axis, 1)
    skipped = operator.call.attributes.get("skip_redistribution") is True
    for axis in range(min(len(splits), len(begin), len(end), len(strides))):
        taken = begin[axis] == 0 and axis < len(shape) and end[axis] >= shape[axis]
        if strides[axis] != 1 or (not taken and not skipped):
            splits[axis] = 1
    return (tuple(splits),)


def _is_masked(operator: Operator, name: str, axis: int) -> bool:
    value = operator.value(name, 0)
    return isinstance(value, int) and axis < 8 and bool(value >> axis & 1)


def _normalised(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Softmax and the like: not along the axis."""
    rank = len(operator.inputs[0])
    axes = operator.numbers("axis") or (-1,)
    return _protected(operator, (_without(operator, row, axes, rank),))


def _layer_norm(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Not along the last axis, whichever axes are normalised; scale and shift whole."""
    return (_without(operator, row, (-1,), len(operator.inputs[0])), (1,), (1,))


def _without(operator: Operator, row: Shape, axes: tuple[int, ...], rank: int) -> Shape:
    gone = {axis + rank if axis < 0 else axis for axis in axes}
    if any(axis >= len(row) or axis < 0 for axis in gone):
        raise NotSearchable(f"an axis of {operator.op} lies outside of the {len(row)} it takes")
    return tuple(1 if axis in gone else split for axis, split in enumerate(row))


def _l2(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    axes = (operator.numbers("axis") or (0,))[:1]
    return (_without(operator, row, axes, len(operator.inputs[0])),)


def _rms_norm(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """The first dimension over as many devices as it can take, whatever the neighbours have."""
    shape, scale = operator.inputs[0], operator.inputs[1]
    first = (min(shape[0], devices.stage), *(1 for _ in shape[1:]))
    return (first, first[len(shape) - len(scale) :])


def _one_hot(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """One row of the result; the two values are scalars."""
    shape = operator.outputs[0]
    filled = (*row, *(1 for _ in range(len(shape) - len(row))))
    fitting = tuple(
        1 if axis < len(shape) and split > shape[axis] else split
        for axis, split in enumerate(filled)
    )
    return (fitting, (), ())


def _gather(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Indices first, what is left to the table; neighbours don't count."""
    table, indices = operator.inputs[0], operator.inputs[1]
    value = operator.value("axis", 0)
    axis = value if isinstance(value, int) else 0
    axis = axis + len(table) if axis < 0 else axis
    batch = operator.value("batch_dims", 0)
    result = gather_row(operator.outputs[0], devices.stage)
    if isinstance(batch, int) and batch > 1:
        first = tuple(1 if dimension == axis else split for dimension, split in enumerate(result))
        return (first, *(result for _ in operator.inputs[1:]))
    if axis == 0:
        rows = _gather_rows(table, indices, devices.stage)
    elif axis == 1:
        start = len(table) - 1
        rows = ((result[0], 1), result[start : start + len(indices)])
    else:
        raise NotSearchable(f"Gather takes along axis {axis}, but only 0 and 1 are known")
    # MindSpore has not read the operator's axis yet when it looks at how it is split: 0.
    if rows[0][0] != 1 and not _shares(rows, devices.stage) and pieces(rows[1]) != 1:
        rows = (
            tuple(1 if dimension == axis else split for dimension, split in enumerate(rows[0])),
            rows[1],
        )
    return rows


def _gather_rows(table: Shape, indices: Shape, devices: int) -> tuple[Shape, Shape]:
    """The first dimension of the indices, then the rows of the table, cut in two repeatedly."""
    cut = 1
    splits: list[int] = []
    for shape in (indices, table):
        size, split = shape[0] if shape else 1, 1
        while size % 2 == 0 and size > 0 and cut < devices:
            size //= 2
            cut *= 2
            split *= 2
        splits.append(split)
    rows = (splits[1], *(1 for _ in table[1:])), (splits[0], *(1 for _ in indices[1:]))
    return rows[0], rows[1] if indices else ()


def _shares(rows: tuple[Shape, Shape], devices: int) -> bool:
    """Whether table rows and indices may both be split: each over a part of the devices."""
    table, indices = rows
    if len(table) != 2 or len(indices) != 2 or table[1] != 1:
        return False
    if devices in (table[0], indices[0]):
        return False
    if indices[1] != 1:
        return indices[0] != 1
    return table[0] * indices[0] == devices


def _first_dimension(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Over all devices where it divides."""
    return tuple(
        (devices.stage if shape[0] % devices.stage == 0 else 1, *(1 for _ in shape[1:]))
        if shape
        else ()
        for shape in operator.inputs
    )


def _batched_product(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Batch, rows and columns as in the result; the summed dimension whole."""
    rows: list[Shape] = []
    for place, (shape, turn) in enumerate(
        zip(operator.inputs, ("transpose_a", "transpose_b"), strict=False)
    ):
        kept = row[-2] if place == 0 else row[-1]
        pair = (kept, 1) if place == 0 else (1, kept)
        if operator.flag(turn):
            pair = pair[::-1]
        batch = tuple(
            row[-distance] if distance <= len(row) else 1 for distance in range(len(shape), 2, -1)
        )
        rows.append((*batch, *pair))
    return tuple(rows)


def _masked(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    return (row,)


def _attention(operator: Operator, row: Shape, devices: Devices) -> Strategy:
    """Batch, heads and the query's sequence as in the row; keys' sequence whole."""
    value = operator.value("input_layout", 0)
    layout = value if isinstance(value, str) else LAYOUTS[value if isinstance(value, int) else 0]
    if layout not in QUERY:
        raise NotSearchable(f"the layout {layout} of FlashAttentionScore is not known")
    order = {axis: QUERY[layout].index(axis) for axis in "bsn"}
    splits = {axis: row[position] if position < len(row) else 1 for axis, position in order.items()}
    heads = operator.value("head_num", 1)
    position = order["n"]
    shared = operator.inputs[0][position] == operator.inputs[1][position] * (
        heads if isinstance(heads, int) else 1
    )
    splits |= {".": 1, "t": 1, "m": 1 if shared else splits["n"]}
    given = _given(operator)
    patterns = [QUERY[layout], KEY[layout], KEY[layout]]
    for name, shape in zip(given, operator.inputs[3:], strict=False):
        patterns.append(_mask_axes(operator, name, shape))
    return tuple(tuple(splits[axis] for axis in pattern) for pattern in patterns)


def _given(operator: Operator) -> tuple[str, ...]:
    """Which optional operands there are."""
    inputs = operator.call.inputs
    return tuple(
        name
        for place, name in enumerate(OPTIONAL, 3)
        if place < len(inputs) and any(True for _ in inputs[place].tensors)
    )


def _mask_axes(operator: Operator, name: str, shape: Shape) -> str:
    mode = operator.value("sparse_mode", 0)
    rows = "." if mode in COMPRESSED else "s"
    if name == "drop_mask":
        return "bns."
    if name == "real_shift":
        # MindSpore looks at the last dimension to see whether there is a sequence.
        batch = "b" if shape[0] != 1 else "."
        return f"{batch}n{'s' if shape[-1] != 1 else '.'}."
    if name == "attn_mask" and len(shape) == 2:
        return f"{rows}."
    if name == "attn_mask" and len(shape) == 4:
        return "".join(
            "." if position < 2 and shape[position] == 1 else axis
            for position, axis in enumerate(f"bn{rows}.")
        )
    if name == "prefix":
        return "b" + "." * (len(shape) - 1)
    return "." * len(shape)


FITS: dict[str, Callable[[Operator, Shape, Devices], Strategy]] = {
    "attention": _attention,
    "batched_product": _batched_product,
    "bias": _bias,
    "broadcast": _broadcast,
    "filled": _filled,
    "first_dimension": _first_dimension,
    "gather": _gather,
    "l2": _l2,
    "layer_norm": _layer_norm,
    "masked": _masked,
    "normalised": _normalised,
    "one_hot": _one_hot,
    "rms_norm": _rms_norm,
    "sliced": _sliced,
}
"""How a strategy follows from the row, by what the table says that fits; else ``_general``."""
