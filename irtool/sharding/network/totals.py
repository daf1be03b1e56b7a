"""What the answer of ``check`` adds up to: collectives by group, parameters, verdicts."""

from __future__ import annotations

from collections import Counter

from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import group_name
from irtool.sharding.network.communications import edge_dtype, tensor_bytes
from irtool.sharding.network.report import CheckResult, ParameterReport, RedistributionReport
from irtool.sharding.redistribution import RedistributionStep


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Collectives of one operator among the same ranks for the same reason.

    ``bytes`` is what one device puts into all of them, ``unknown`` of how many that is not known.
    """

    op: str
    ranks: tuple[int, ...]
    group: str
    why: str
    count: int
    bytes: int
    unknown: int


def collective_rows(result: CheckResult) -> list[CollectiveRow]:
    """All communications of a step, gradients included, the largest first.

    Args:
        result: of ``check``.

    Returns:
        One row for each collective, ranks and reason; bytes are those that one rank puts in, times
        the launches of a step.
    """
    by_group: dict[tuple[str, tuple[int, ...], str], list[int]] = {}
    for item in result.communications:
        totals = by_group.setdefault((item.op, item.ranks, item.why), [0, 0, 0])
        totals[0] += item.count
        totals[1] += (item.bytes or 0) * item.count
        totals[2] += item.count if item.bytes is None else 0
    context = result.context
    rows = [
        CollectiveRow(op, ranks, group_name(ranks, context.devices, context.target), why, *totals)
        for (op, ranks, why), totals in by_group.items()
    ]
    return sorted(rows, key=lambda row: -row.bytes)


def is_group(ranks: tuple[int, ...] | None) -> bool:
    """Whether these ranks communicate: one alone does not.

    Args:
        ranks: None where nobody communicates.
    """
    return ranks is not None and len(ranks) > 1


def moves(edge: RedistributionReport) -> bool:
    """Whether something is inserted that is more than another view of the same local tensor.

    Args:
        edge: a redistribution; one of which nobody knows the operators counts as moving.
    """
    return edge.operators is None or any(step.op != "Reshape" for step in edge.operators)


def step_bytes(edge: RedistributionReport, step: RedistributionStep) -> int | None:
    """Bytes that one device puts into a step of a redistribution.

    Args:
        edge: the redistribution, whose consumer tells the element type.
        step: one of its operators.

    Returns:
        None where a size or the element type is not known.
    """
    return tensor_bytes(edge_dtype(edge.consumer, edge.input, edge.item), step.input_shape)


def parameter_bytes(parameter: ParameterReport) -> tuple[int | None, int | None]:
    """Bytes of the slice that operators see, and of what a device stores.

    Args:
        parameter: as this rank holds it.

    Returns:
        Both in bytes, None each where the slice or its type is not known.
    """
    kind = parameter.parameter.type
    dtype = kind.dtype if kind else None
    seen, stored = (
        None if shape is None else tensor_bytes(dtype, shape)
        for shape in (parameter.base, parameter.slice)
    )
    return seen, stored


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """How many parameters are what; ``bytes`` is what one device stores of all that are known."""

    total: int
    sliced: int
    mirrored: int
    sharded: int
    unknown: int
    bytes: int


def parameter_counts(result: CheckResult) -> ParameterCounts:
    """Count parameters by what becomes of them.

    Args:
        result: of ``check``; an unknown slice adds nothing to the bytes.
    """
    parameters = result.parameters
    return ParameterCounts(
        total=len(parameters),
        sliced=sum(item.base is not None and item.base != item.shape for item in parameters),
        mirrored=sum(is_group(item.mirror_ranks) for item in parameters),
        sharded=sum(is_group(item.gather_ranks) or item.slice != item.base for item in parameters),
        unknown=sum(item.slice is None for item in parameters),
        bytes=sum(parameter_bytes(item)[1] or 0 for item in parameters),
    )


def verdict_counts(result: CheckResult) -> Counter[str]:
    """How many operators are legal, illegal, unknown.

    Args:
        result: of ``check``.

    Returns:
        By ``legal``, ``illegal``, ``unknown``; 0 for what none is.
    """
    return Counter(operator.verdict for operator in result.operators)
