"""Products of attention whose matrices are kept as blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.case import Case
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Sharding
from irtool.operators.layout import WHOLE, TensorMap

Base = Callable[[], Sharding]


@irregular("blocks_of_heads")
def blocks_of_heads(case: Case, base: Base) -> Sharding:
    """Heads must divide by their split."""
    heads, split = case.number("heads"), case.strategy[0][0]
    if heads % split:
        case.refuse("not-divisible", f"{heads} heads are not divisible by their split {split}")
    return base()


@irregular("blocks_of_values")
def blocks_of_values(case: Case, base: Base) -> Sharding:
    """All but batch and heads are axes of the matrix, but no tensor is mapped to them."""
    sharding = base()

    def first_two(maps: tuple[TensorMap, ...]) -> tuple[TensorMap, ...]:
        return tuple((*m[:2], *((WHOLE,) * (len(m) - 2))) for m in maps)

    return replace(
        sharding,
        input_maps=first_two(sharding.input_maps),
        output_maps=first_two(sharding.output_maps),
    )
