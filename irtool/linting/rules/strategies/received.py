"""What a device receives on an edge, as it is and with ``enable_alltoall``."""

from __future__ import annotations

from irtool.ir.types import BITS
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.redistribution import RedistributionError, cost_bytes, infer

_LEAST_SHARE = 0.3
"""Part of the bytes of an edge that AlltoAll has to save to be what is wrong with it."""


def received_bytes(edge: RedistributionReport) -> int:
    """Bytes that each device receives on an edge, forward; 0 where they are not known."""
    size = item_bytes(edge)
    return 0 if size is None else cost_bytes(edge.operators or (), size)


def item_bytes(edge: RedistributionReport) -> int | None:
    """Bytes of one element of what is redistributed; None where the type is not known."""
    types = edge.consumer.input_types
    abstract = types[edge.input] if edge.input < len(types) else None
    tensors = abstract.tensors if abstract is not None else ()
    item = edge.item if 0 <= edge.item < len(tensors) else 0
    bits = BITS.get(tensors[item][0] or "") if tensors else None
    return None if bits is None else max(1, bits // 8)


def bytes_by_alltoall(edge: RedistributionReport, report: CheckResult) -> int | None:
    """Bytes that each device would receive with ``enable_alltoall``; None where not known."""
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
    """Whether ``enable_alltoall`` is off and would save a good part of what an edge receives."""
    if report.context.enable_alltoall:
        return False
    now, other = received_bytes(edge), bytes_by_alltoall(edge, report)
    return other is not None and now > 0 and now - other >= _LEAST_SHARE * now
