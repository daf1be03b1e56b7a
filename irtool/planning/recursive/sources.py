"""Which split an operator that was not cut takes over: of its producer's result, or of its user.

``row_from_producer`` and ``row_from_user`` give one row of a strategy, for the first tensor of the
operator; an empty row says that nothing can be taken over from there.

Source: what MindSpore's log says that operators were assigned, from which neighbour, and the
strategies in dumps after the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd

from irtool.operators.call import Strategy
from irtool.operators.layout import Shape
from irtool.planning.recursive.elimination import Vertex
from irtool.planning.recursive.kinds import Kind, NotSearchable
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.tensors import row_of

Strategies = Mapping[int, Strategy]
"""By place, the strategies chosen so far; an empty one is as good as none."""


def row_from_producer(
    operators: Sequence[Operator],
    vertices: Mapping[int, Vertex],
    strategies: Strategies,
    index: int,
    producer: int,
    devices: int,
) -> Shape:
    """The row that an operator takes over from the result of one of its producers.

    Args:
        operators: in the search's order.
        vertices: those that the search cut, by place.
        strategies: chosen so far.
        index: place of the operator.
        producer: place of the producer.
        devices: of a stage.

    Returns:
        into how many slices each dimension of its first tensor is cut; empty: nothing can be taken
        over.

    Raises:
        NotSearchable: it takes a tensor of more than four dimensions from an operator that was cut.
    """
    operator, source = operators[index], operators[producer]
    vertex = vertices.get(producer)
    if vertex is not None:
        ranks = [len(shape) for shape in operator.inputs if shape]
        if not ranks:
            return ()
        if ranks[0] > 4:
            raise NotSearchable(f"{operator.op} takes a tensor of {ranks[0]} dimensions")
        return row_of(vertex.result_cut, ranks[0])
    takes_none = operator.kind is Kind.ONE_HOT or operator.search.gives == "transposed"
    if takes_none or source.kind is Kind.STRIDED_SLICE:
        return ()
    if source.kind is Kind.GATHER:
        return gather_row(source.outputs[0], devices)
    strategy = strategies.get(producer, ())
    if not strategy:
        return ()
    row = RESULTS.get(source.search.gives, _first_row)(source, strategy)
    if not row:
        return row
    return AFTER.get(source.search.gives, _same)(source, row)


def row_from_user(
    operators: Sequence[Operator],
    strategies: Strategies,
    index: int,
    user: int,
    operand: int,
    devices: int,
) -> Shape:
    """The row that an operator takes over from what a user of its result wants of it.

    Args:
        operators: in the search's order.
        strategies: chosen so far, the user's among them.
        index: place of the operator.
        user: place of the user.
        operand: which of the user's operands is the result.
        devices: of a stage.

    Returns:
        into how many slices each dimension of its first tensor is cut; empty: nothing can be taken
        over.
    """
    operator = operators[index]
    if operator.kind in (Kind.ARGUMENT, Kind.FLATTEN):
        return ()
    if operator.kind is Kind.GATHER:
        return gather_row(operators[user].inputs[operand], devices)
    strategy = strategies[user]
    wanted = strategy[operand] if operand < len(strategy) else ()
    if operator.kind is Kind.EXPAND_DIMS:
        return _without_new(operator, wanted)
    if operator.kind is Kind.RESHAPE:
        return reshaped_row(operator.outputs[0], operator.inputs[0], wanted)
    if operator.kind is Kind.REDUCE:
        return _before_reduction(operator, wanted)
    if operator.search.gives == "transposed":
        return _permuted(operator, wanted)
    rank = len(operator.outputs[0])
    row = (*wanted[:rank], *(1 for _ in range(rank - len(wanted))))
    return _before_squeeze(operator, row, devices) if operator.kind is Kind.SQUEEZE else row


# -- the result of a producer --------------------------------------------------------------------


def _first_row(source: Operator, strategy: Strategy) -> Shape:
    """The row of the first operand that has dimensions."""
    for shape, row in zip(source.inputs, strategy, strict=False):
        if shape:
            return row[: len(shape)]
    return ()


def _largest_row(source: Operator, strategy: Strategy) -> Shape:
    """The row of the operand with most dimensions, the first of these."""
    operand = max(
        range(len(source.inputs)), key=lambda position: (len(source.inputs[position]), -position)
    )
    return strategy[operand][: len(source.inputs[operand])] if operand < len(strategy) else ()


def _reshaped(source: Operator, strategy: Strategy) -> Shape:
    return reshaped_row(source.inputs[0], source.outputs[0], strategy[0])


def _transposed(source: Operator, strategy: Strategy) -> Shape:
    return _permuted(source, strategy[0])


def _expanded(source: Operator, strategy: Strategy) -> Shape:
    rank = len(source.inputs[0])
    axis = _axis(source, rank + 1)
    row = strategy[0]
    return (*row[:axis], 1, *row[axis:rank])


def _accumulated(source: Operator, strategy: Strategy) -> Shape:
    """A negative axis counts from one behind the end, as MindSpore has it."""
    rank = len(source.inputs[0])
    axis = _axis(source, rank + 1)
    return tuple(
        1 if dimension == axis else split for dimension, split in enumerate(strategy[0][:rank])
    )


def _one_hot(source: Operator, strategy: Strategy) -> Shape:
    for shape, row in zip(source.inputs, strategy, strict=False):
        if shape:
            return row
    return ()


RESULTS: dict[str, Callable[[Operator, Strategy], Shape]] = {
    "largest_row": _largest_row,
    "accumulated": _accumulated,
    "reshaped": _reshaped,
    "transposed": _transposed,
    "expanded": _expanded,
    "one_hot": _one_hot,
}
"""How the split of a result follows from an operator's strategy, by what the table says that it
gives; else it is the first operand's."""


def _same(source: Operator, row: Shape) -> Shape:
    return row


def _squeezed(source: Operator, row: Shape) -> Shape:
    gone = {axis % len(row) for axis in source.numbers("axis") or ()}
    return tuple(split for dimension, split in enumerate(row) if dimension not in gone)


def _reduced(source: Operator, row: Shape) -> Shape:
    gone = set(_reduced_axes(source))
    return tuple(split for dimension, split in enumerate(row) if dimension not in gone)


def _without_axis(source: Operator, row: Shape) -> Shape:
    """Of ArgMaxWithValue and the like."""
    if source.flag("keep_dims"):
        return row
    if "axis" not in source.call.attributes:
        raise NotSearchable(f"it looks for the axis of {source.op} among its attributes")
    gone = {axis % len(row) for axis in source.numbers("axis") or (0,)}
    return tuple(split for dimension, split in enumerate(row) if dimension not in gone)


def _flattened(source: Operator, row: Shape) -> Shape:
    start = source.value("start_dim", 1)
    end = source.value("end_dim", -1)
    first = start if isinstance(start, int) else 1
    last = end if isinstance(end, int) and end >= 0 else len(row) - 1
    product = 1
    for split in row[first : last + 1]:
        product *= split
    return (*row[:first], product, *row[last + 1 :])


AFTER: dict[str, Callable[[Operator, Shape], Shape]] = {
    "reduced": _reduced,
    "without_axis": _without_axis,
    "squeezed": _squeezed,
    "flattened": _flattened,
}
"""By the same word: what is dropped or joined between an operand's row and that of the result."""


# -- what a user wants ---------------------------------------------------------------------------


def _without_new(operator: Operator, wanted: Shape) -> Shape:
    axis = _axis(operator, len(wanted))
    return tuple(split for dimension, split in enumerate(wanted) if dimension != axis)


def _before_reduction(operator: Operator, wanted: Shape) -> Shape:
    """Axes that are summed up are whole; where they are kept, MindSpore takes the row as it is."""
    gone = set(_reduced_axes(operator))
    left = iter(wanted)
    return tuple(
        1 if dimension in gone else next(left, 1) for dimension in range(len(operator.inputs[0]))
    )


def _reduced_axes(operator: Operator) -> tuple[int, ...]:
    """Axes that a reduction takes away; none where it keeps them."""
    if operator.flag("keep_dims"):
        return ()
    rank = len(operator.inputs[0])
    axes = operator.numbers("axis") or tuple(range(rank))
    return tuple(axis % rank if rank else 0 for axis in axes)


def _before_squeeze(operator: Operator, row: Shape, devices: int) -> Shape:
    """Dimensions of 1 put back in. Only a row that uses all devices is taken over."""
    axes = operator.numbers("axis") or ()
    restored: list[int] = []
    left, place = iter(row), 0
    for dimension in range(len(row) + len(axes)):
        if place < len(axes) and axes[place] > 0 and dimension == axes[place]:
            restored.append(1)
            place += 1
        else:
            restored.append(next(left, 1))
    used = 1
    for split in restored:
        used *= split
    return tuple(restored) if used == devices else ()


# -- shared --------------------------------------------------------------------------------------


def _permuted(operator: Operator, row: Shape) -> Shape:
    """A row in the order of a Transpose; MindSpore takes it for both directions."""
    order = operator.numbers("perm") or ()
    return tuple(row[dimension] if -len(row) <= dimension < len(row) else 1 for dimension in order)


def _axis(operator: Operator, rank: int) -> int:
    value = operator.value("axis", 0)
    axis = value if isinstance(value, int) else 0
    return axis + rank if axis < 0 else axis


def reshaped_row(before: Shape, after: Shape, row: Shape) -> Shape:
    """A split taken through a Reshape.

    First each number goes to one dimension that it divides, the first that is met; only what is
    left is shared out, by what divides. So a split may end on an inner dimension where the outer
    one would have been in line with how the tensor lies.
    """
    splits = [1] * len(after)
    left = [*row[: len(before)], *(1 for _ in range(len(before) - len(row)))]
    for undivided in (True, False):
        sizes, targets = list(before), list(after)
        i = o = 0
        while i < len(sizes) and o < len(targets):
            size, target = sizes[i], targets[o]
            if undivided:
                if size >= target and target % left[i] == 0:
                    splits[o] *= left[i]
                    left[i] = 1
            elif size > target:
                common = gcd(left[i], target)
                splits[o] *= common
                left[i] //= common
            else:
                splits[o] *= left[i]
            if size > target:
                sizes[i] = _truncated(size, target)
                o += 1
            elif size < target:
                targets[o] = _truncated(target, size)
                i += 1
            else:
                i += 1
                o += 1
    return tuple(splits)


def _truncated(size: int, divisor: int) -> int:
    """A quotient cut off towards 0, as sizes that are not known (-1) are divided."""
    quotient = abs(size) // max(abs(divisor), 1)
    return quotient if (size < 0) == (divisor < 0) else -quotient


def gather_row(shape: Shape, devices: int) -> Shape:
    """A tensor cut in two again and again: its first dimension, then the largest ones.

    Args:
        shape: of the whole tensor.
        devices: at which halving stops.

    Returns:
        into how many slices each dimension is cut.
    """
    order = (
        [0, *sorted(range(1, len(shape)), key=lambda dimension: -shape[dimension])] if shape else []
    )
    left = list(shape)
    splits = [1] * len(shape)
    cut = 1
    for dimension in order:
        while left[dimension] % 2 == 0 and left[dimension] > 0 and cut < devices:
            left[dimension] //= 2
            splits[dimension] *= 2
            cut *= 2
    return tuple(splits)
