"""Operator calls for tests, written in few words."""

from __future__ import annotations

from irtool.operators.call import Operand, OperatorCall, Strategy, constant, tensor
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import Shape, UserLayout
from irtool.sharding.judge import judge


def context(devices: int, rank: int = 0, *, start: int = 0, soc: str = "Ascend910B") -> Context:
    """One stage of consecutive devices."""
    ranks = tuple(range(start, start + devices))
    return Context(ranks, device_num=devices, rank=rank or start, soc=soc)


def operand(value: object) -> Operand:
    """A tuple of numbers in a list is a tensor's shape; anything else is a constant."""
    if isinstance(value, Operand):
        return value
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return Operand(items=tuple(operand(item) for item in value))
        return tensor(*value)
    return constant(value)


def call(op: str, *inputs: object, out: object, **attributes: object) -> OperatorCall:
    """``[8, 16]`` is a tensor of that shape, ``[[8], [8]]`` a tuple of tensors, else a constant."""
    results = [operand(shape) for shape in out] if isinstance(out, tuple) else [operand(out)]
    return OperatorCall(op, tuple(operand(v) for v in inputs), tuple(results), attributes)


def judged(
    what: OperatorCall,
    strategy: Strategy | None,
    devices: int = 8,
    *,
    rank: int = 0,
    soc: str = "Ascend910B",
    layouts: tuple[UserLayout, ...] | None = None,
    out_layouts: tuple[UserLayout, ...] | None = None,
    out_strategy: Strategy | None = None,
) -> Judgement:
    """Judge a call on one stage."""
    return judge(
        what,
        strategy,
        context(devices, rank, soc=soc),
        in_layout=layouts,
        out_layout=out_layouts,
        out_strategy=out_strategy,
    )


def reason(judgement: Judgement) -> tuple[str, str]:
    """Code and log source of the first reason."""
    assert judgement.verdict == "illegal", judgement.reasons
    return judgement.reasons[0].code, judgement.reasons[0].check


def collectives(judgement: Judgement) -> list[tuple[str, str, Shape]]:
    """What is communicated: operator, reduction, ranks."""
    assert judgement.verdict == "legal", judgement.reasons
    return [(c.op, c.reduce, c.ranks) for c in judgement.collectives]
