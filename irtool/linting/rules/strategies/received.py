"""What a device receives on an edge, as it is and with ``enable_alltoall``."""

from __future__ import annotations

from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.ir.types import BITS
from irtool.operators.layout import axes_of, coordinates
from irtool.operators.table import operator_of
from irtool.sharding.network.report import CheckResult, OperatorReport, RedistributionReport
from irtool.sharding.redistribution import RedistributionError, cost_bytes, infer

_PASSED_ON = frozenset(("Reshape", "TupleGetItem", "Depend", "Load"))
"""Operators that pass on how their input is split."""
_LEAST_SHARE = 0.3
"""Part of the bytes of an edge that AlltoAll has to save to be what is wrong with it."""


def ends(edge: RedistributionReport) -> tuple[Node, Node]:
    """The operator that splits a tensor as it is, and the one that wants it otherwise.

    Where what is inserted stands in the place of a Reshape, these are the operators around it: a
    Reshape has no strategy that anybody could change.

    Args:
        edge: with a redistribution.
    """
    producer, consumer = edge.producer, edge.consumer
    while producer.op in _PASSED_ON and isinstance(source := _first(producer), Node):
        producer = source
    while consumer.op in _PASSED_ON and len(consumer.users) == 1:
        consumer = consumer.users[0]
    return producer, consumer if consumer.op not in PLUMBING else edge.consumer


def _first(node: Node) -> object:
    return node.inputs[0] if node.inputs else None


def edge_text(edge: RedistributionReport) -> str:
    """The ends of an edge: ``MatMul to Softmax``, or ``Gather to Cast through Reshape``.

    Args:
        edge: with a redistribution.
    """
    producer, consumer = ends(edge)
    if not edge.replaces:
        return f"{producer.op} to {consumer.op}"
    to = "" if consumer is edge.consumer else f" to {consumer.op}"
    return f"{producer.op}{to} through {edge.consumer.op}"


def received_bytes(edge: RedistributionReport) -> int:
    """Bytes that each device receives on an edge, forward; 0 where they are not known.

    Args:
        edge: with the operators that are inserted.
    """
    size = item_bytes(edge)
    return 0 if size is None else cost_bytes(edge.operators or (), size)


def item_bytes(edge: RedistributionReport) -> int | None:
    """Bytes of one element of what is redistributed; None where the type is not known.

    Args:
        edge: with a redistribution.
    """
    types = edge.consumer.input_types
    abstract = types[edge.input] if edge.input < len(types) else None
    tensors = abstract.tensors if abstract is not None else ()
    item = edge.item if 0 <= edge.item < len(tensors) else 0
    bits = BITS.get(tensors[item][0] or "") if tensors else None
    return None if bits is None else max(1, bits // 8)


def bytes_by_alltoall(edge: RedistributionReport, report: CheckResult) -> int | None:
    """Bytes that each device would receive with ``enable_alltoall``; None where not known.

    Args:
        edge: with the layouts at its ends.
        report: of the network that it is in.
    """
    size = item_bytes(edge)
    if size is None or edge.source is None or edge.target is None:
        return None
    ranks = report.context.stage_ranks
    try:
        steps = infer(
            edge.source, edge.target, ranks, ranks[0], enable_alltoall=True,
            keep_reshape=edge.replaces,
        )  # fmt: skip
    except RedistributionError:
        return None
    return cost_bytes(steps, size)


def pays(edge: RedistributionReport, report: CheckResult) -> bool:
    """Whether ``enable_alltoall`` is off and would save a good part of what an edge receives.

    Args:
        edge: with a redistribution.
        report: of the network that it is in, whose context has ``enable_alltoall``.

    Returns:
        Of the bytes that it receives, :data:`_LEAST_SHARE` must be saved.
    """
    now = 0 if report.context.enable_alltoall else received_bytes(edge)
    if now <= 0:
        return False
    other = bytes_by_alltoall(edge, report)
    return other is not None and now - other >= _LEAST_SHARE * now


def is_tensor_parallel(edge: RedistributionReport, report: CheckResult) -> bool:
    """Whether the devices that gather a tensor share the product by its other operand.

    Sequence parallelism gathers so on purpose: what is computed position by position is split over
    the devices that split the weights, which need all positions.

    Args:
        edge: with a redistribution.
        report: of the network that it is in.
    """
    consumer = ends(edge)[1]
    item = report.operator(consumer)
    gathers = [step for step in edge.operators or () if step.is_collective]
    if item is None or operator_of(consumer.op).computes != "matmul" or not gathers:
        return False
    others = [
        place
        for place in range(len(item.input_maps))
        if consumer is not edge.consumer or place != edge.input
    ]
    devices = report.context.stage_ranks
    return all(
        any(
            _all_differ(item, place, [devices.index(rank) for rank in step.ranks])
            for place in others
        )
        for step in gathers
    )


def _all_differ(item: OperatorReport, place: int, positions: list[int]) -> bool:
    """Whether each of some devices holds another slice of an operand."""
    matrix = item.device_matrix
    axes = [axis for entry in item.input_maps[place] for axis in axes_of(matrix, entry)]
    held = {tuple(coordinates(matrix, position)[axis] for axis in axes) for position in positions}
    return len(held) == len(positions)
