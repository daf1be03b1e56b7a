"""Whether each collective gave what its operands on all ranks make: no other run is needed.

Nor is one to see whether what a stage of a pipeline sent is what arrived.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from irtool.compare.layouts.ranks import Ranks
from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.measuring.measure import measure_arrays
from irtool.compare.tensors.model import Op
from irtool.ir.collectives import Collective, collective
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_UNIT = 2.0**-24
_FACTOR = 8.0
"""How many times the rounding of a sum over the group a result may be off."""
_REDUCTIONS = ("sum", "max", "min", "prod")


@dataclass(frozen=True, slots=True)
class WrongCollective:
    """A collective that did not do its work.

    Attributes:
        op: on the lowest rank of its group.
        ranks: whose result is wrong.
        group: of the collective.
        error: largest relative error of a result.
        explained: what rounding allows.
        why: what it gave instead, as far as that shows.
    """

    op: Op
    ranks: tuple[int, ...]
    group: tuple[int, ...]
    error: float
    explained: float
    why: str


def wrong_collectives(ranks: Ranks) -> Iterator[WrongCollective]:
    """Collectives whose results are not what their operands make, in the order of execution.

    Args:
        ranks: the tensors of all ranks of one step; a collective with ranks that are not there is
            left out.

    Yields:
        Transfers between stages first.
    """
    yield from _wrong_transfers(ranks)
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for rank, run in ranks.runs.items():
        for op in run.ops:
            info = collective(op.node) if op.node is not None else None
            if info is None or not info.ranks or rank not in info.ranks:
                continue
            if (op.name, info.ranks) in seen or not set(info.ranks) <= set(ranks.runs):
                continue
            seen.add((op.name, info.ranks))
            wrong = _judged(ranks, op, info, info.ranks)
            if wrong is not None:
                yield wrong


def _wrong_transfers(ranks: Ranks) -> Iterator[WrongCollective]:
    """Receives that got other numbers than were sent to them."""
    sent: dict[tuple[int, int, int | None], list[str]] = {}
    for rank, run in ranks.runs.items():
        for op in run.ops:
            info = collective(op.node) if op.node is not None else None
            if info is not None and info.op == "Send" and info.peer is not None:
                sent.setdefault((rank, info.peer, info.tag), []).append(op.name)
    for rank, run in ranks.runs.items():
        for op in run.ops:
            info = collective(op.node) if op.node is not None else None
            if info is None or info.op != "Receive" or info.peer is None:
                continue
            names = sent.get((info.peer, rank, info.tag), [])
            if len(names) != 1:  # one tag for several: nothing says which is which
                continue
            given = ranks.values(info.peer, names[0], "input.0")
            made = ranks.values(rank, op.name, "output.0")
            if given is None or made is None or given.shape != made.shape:
                continue
            error = measure_arrays(given, made).error
            if error > (unit := _unit(ranks, rank, op.name)):
                why = f"{op.type} on rank {rank} does not give what rank {info.peer} sent"
                yield WrongCollective(op, (rank,), (rank,), error, unit, why)


def _judged(
    ranks: Ranks, op: Op, info: Collective, group: tuple[int, ...]
) -> WrongCollective | None:
    given = {rank: ranks.values(rank, op.name, "input.0") for rank in group}
    made = {rank: ranks.values(rank, op.name, "output.0") for rank in group}
    operands = [value for value in given.values() if value is not None]
    if len(operands) != len(group):
        return None
    wanted = _wanted(info, operands)
    if wanted is None:
        return None
    unit = max(_unit(ranks, rank, op.name) for rank in group)
    explained = _FACTOR * math.sqrt(len(group)) * unit * _cancelled(operands, wanted)
    errors: dict[int, float] = {}
    for place, rank in enumerate(group):
        result = made[rank]
        if result is None or result.size != wanted[place].size:
            continue
        error = measure_arrays(wanted[place], result).error
        if error > explained:
            errors[rank] = error
    if not errors:
        return None
    worst = max(errors, key=lambda rank: errors[rank])
    result = made[worst]
    assert result is not None
    why = _instead(info, group, worst, operands, wanted[group.index(worst)], result)
    return WrongCollective(op, tuple(errors), group, errors[worst], explained, why)


def _wanted(info: Collective, operands: list[NDArray[Any]]) -> list[NDArray[Any]] | None:
    """What each rank of the group should get, in the order of the group."""
    import numpy as np

    if len({value.shape for value in operands}) != 1:
        return None
    wide = [value.astype(np.float64) for value in operands]
    if info.op == "AllGather":
        gathered = np.concatenate([np.atleast_1d(value) for value in wide])
        return [gathered] * len(wide)
    reduction = info.reduction or "sum"
    if info.op not in ("AllReduce", "ReduceScatter") or reduction not in _REDUCTIONS:
        return None
    stack = np.stack(wide)
    total: NDArray[Any] = {
        "sum": stack.sum, "max": stack.max, "min": stack.min, "prod": stack.prod,
    }[reduction](axis=0)  # fmt: skip
    if info.op == "AllReduce":
        return [total] * len(wide)
    return list(np.split(total, len(wide))) if total.shape[0] % len(wide) == 0 else None


def _instead(
    info: Collective,
    group: tuple[int, ...],
    rank: int,
    operands: list[NDArray[Any]],
    wanted: NDArray[Any],
    result: NDArray[Any],
) -> str:
    """What a result is, where it is not what it should be."""
    where = f"{info.op} over ranks {', '.join(map(str, group))}"
    own = operands[group.index(rank)]
    if own.size == result.size and measure_arrays(own, result).error == 0:
        return f"{where} gives each rank its own operand back: nothing was exchanged"
    if measure_arrays(wanted / len(group), result).error < 1e-5:
        return f"{where} gives the mean of the operands, not their sum"
    if measure_arrays(wanted * len(group), result).error < 1e-5:
        return f"{where} adds the sum up {len(group)} times"
    for other, operand in zip(group, operands, strict=True):
        if operand.size == result.size and measure_arrays(wanted - operand, result).error < 1e-5:
            return f"{where} leaves the operand of rank {other} out"
    return f"{where} does not give what the operands on its ranks make"


def _cancelled(operands: list[NDArray[Any]], wanted: list[NDArray[Any]]) -> float:
    """How much larger the terms are than their sum."""
    import numpy as np

    total = float(np.linalg.norm(wanted[0].ravel()))
    terms = math.sqrt(
        sum(float(np.linalg.norm(v.astype(np.float64).ravel())) ** 2 for v in operands)
    )
    return max(1.0, terms / total) if total else 1.0


def _unit(ranks: Ranks, rank: int, name: str) -> float:
    place = ranks.tensors[rank].get((name, "output.0"))
    dtype = ranks.runs[rank].columns.dtypes[place] if place is not None else "Float32"
    return max(roundoff(dtype), _LEAST_UNIT)
