"""What another pipeline stage hands over: how it lies.

The dump of a later stage holds ``Receive`` in the place of the operator whose result was sent. It
bears that operator's strategy behind the statement, the slice that comes as its attribute, and the
whole tensor as its type. Which operator it was is not told: where the strategy fits several that
leave their results otherwise, nothing is known.

Source: compilations of pipelines with MindSpore 2.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from irtool.ir.graph import GraphParameter, Node
from irtool.operators.call import Strategy
from irtool.operators.layout import (
    DYNAMIC,
    DeviceMatrix,
    Shape,
    TensorLayout,
    TensorMap,
    identity_map,
    repeated_calculation,
)
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.strategies import StrategyFormatError, strategy_of

RECEIVE = "Receive"
SEND = "Send"

SLICE = "shape"
"""The attribute of a Receive that holds the shape of what comes."""

HANDED_OVER = "pipeline_param"
"""Attribute of a transfer that hands a weight to another stage, for all micro-batches."""

NOT_TOLD = "the dump does not tell which operator of the stage before sent it, nor how it lies"


def is_received(analysis: Analysis, node: Node) -> bool:
    """Whether a node brings in what another stage computed, which this dump does not hold.

    Args:
        analysis: that knows which nodes other stages own.
        node: of any primitive.
    """
    if primitive(node) != RECEIVE or node in analysis.foreign or brings_weight(node):
        return False
    source = analysis.network.first(node)
    # With all stages in one dump the Send stands before it, and the sender before that.
    return not (isinstance(source, Node) and primitive(source) == SEND)


def brings_weight(node: Node) -> bool:
    """Whether a node brings in a weight that an earlier stage holds, too.

    Such a weight is cut already where the parallel pass begins: as the first operator of the first
    stage that uses it wants it. Nothing is redistributed behind it.

    Args:
        node: of any primitive.
    """
    return primitive(node) == RECEIVE and node.attribute(HANDED_OVER) is not None


def received_weight(network: Network, parameter: GraphParameter) -> Node | None:
    """The Receive that brings in a weight from an earlier stage.

    Args:
        network: that the parameter stands in.
        parameter: of the entry.

    Returns:
        None of a weight that this stage holds by itself.
    """
    users = (use.node for use in network.users_of(parameter))
    return next((user for user in users if brings_weight(user)), None)


def is_handed(analysis: Analysis, parameter: GraphParameter) -> bool:
    """Whether the own stage is handed a weight by another one that stands in the same dump.

    Args:
        analysis: of a dump that may hold several stages.
        parameter: the weight.
    """
    network = analysis.network
    return any(
        primitive(behind.node) == RECEIVE and behind.node not in analysis.foreign
        for use in network.users_of(parameter)
        if primitive(use.node) == SEND
        for behind in network.users_of(use.node)
    )


def received_slice(node: Node) -> Shape | None:
    """The shape of the slice that a device of this stage is sent.

    Args:
        node: a Receive.

    Returns:
        None where the dump does not tell it, or tells another number of dimensions than the type
        has.
    """
    value = node.attribute(SLICE)
    shape = _whole(node)
    if not isinstance(value, (tuple, list)) or shape is None:
        return None
    part = tuple(cast("tuple[int, ...]", value))
    return part if len(part) == len(shape) else None


def received_layout(analysis: Analysis, node: Node) -> TensorLayout | None:
    """How what a device is sent lies on the devices of its stage.

    Args:
        analysis: that knows how many devices a stage has.
        node: a Receive, with the sender's strategy behind it.

    Returns:
        None where that is not known: no strategy, sizes that are dynamic or do not divide, or
        several layouts that fit and differ.
    """
    shape, part = _whole(node), received_slice(node)
    if shape is None or part is None or DYNAMIC in (*shape, *part):
        return None
    if any(size % held for size, held in zip(shape, part, strict=True)):
        return None
    splits = tuple(size // held for size, held in zip(shape, part, strict=True))
    if node.strategy is None or "in_strategy" not in node.strategy:
        return None
    try:
        strategy = strategy_of("in_strategy", node.strategy["in_strategy"])
    except StrategyFormatError:
        return None
    layouts: list[TensorLayout] = []
    for matrix, entries in _left_by(strategy or (), splits):
        repeated = repeated_calculation(matrix, analysis.context.stage_size)
        if repeated is not None:
            layout = TensorLayout(repeated.device_matrix, repeated.shifted(entries), shape)
            layouts.append(layout)
    if not layouts or any(not layouts[0].same_as(other) for other in layouts[1:]):
        return None
    return layouts[0]


def _whole(node: Node) -> Shape | None:
    return node.output_type.dimensions if node.output_type is not None else None


def _left_by(strategy: Strategy, splits: Shape) -> Iterator[tuple[DeviceMatrix, TensorMap]]:
    """Device matrix and map of a result, for each kind of operator that the strategy fits."""
    rank = len(splits)
    rows = [row for row in strategy if row]
    if rows and all(_broadcasts(row, splits) for row in rows) and splits in rows:
        yield splits, identity_map(rank)
    if len(rows) > 1 and rank > 1 and len(rows[0]) == len(rows[1]) == rank:
        batch, (left, right) = splits[:-2], splits[-2:]
        if rows[0][:-2] == rows[1][:-2] == batch:
            for inner in _contracted(rows[0][-2:], rows[1][-2:], left, right):
                entries = (*range(rank, 2, -1), 2, 0)
                yield (*batch, left, inner, right), entries


def _broadcasts(row: tuple[int, ...], splits: Shape) -> bool:
    """Whether an operand with this row is as large as the result, or repeated along it."""
    if len(row) > len(splits):
        return False
    pairs = zip(reversed(row), reversed(splits), strict=False)
    return all(entry in (1, split) for entry, split in pairs)


def _contracted(
    first: tuple[int, ...], second: tuple[int, ...], left: int, right: int
) -> Iterator[int]:
    """Into how many parts the dimension is cut that a product sums up, transposed or not."""
    for outer, inner in (first, first[::-1]):
        for summed, other in (second, second[::-1]):
            if outer == left and other == right and inner == summed:
                yield inner


def fits_slice(layout: TensorLayout | None, node: Node) -> bool:
    """Whether a layout has the slices that a Receive brings.

    Args:
        layout: of the whole tensor; None fits nothing.
        node: the Receive.
    """
    return layout is not None and layout.slice_shape == received_slice(node)
