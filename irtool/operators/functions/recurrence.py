"""Operators that carry a state along a sequence, and the cache that holds one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irtool.operators.case import Case
from irtool.operators.checks import check_strategy
from irtool.operators.defaults import adjusted
from irtool.operators.functions.common import whole_map
from irtool.operators.irregular import irregular
from irtool.operators.judgement import Sharding
from irtool.operators.layout import identity_map
from irtool.operators.pattern import evaluate

Base = Callable[[], Sharding]


@irregular("wkv", self_checked=True)
def wkv(case: Case, base: Base) -> Sharding:
    """Time first and decay [c], key and value [b s c], states [b c]: the sequence is whole."""
    shapes = tuple(tensor.divisible_shape for tensor in case.tensors)
    strategy = case.strategy
    if not strategy:
        made = tuple(
            tuple(
                case.devices if place == 0 and len(shape) > 1 else 1 for place in range(len(shape))
            )
            for shape in shapes
        )
        strategy = adjusted(made, shapes, case.devices)
    check_strategy(strategy, shapes, case.context)
    return replace(evaluate(replace(case, strategy=strategy)), strategy=strategy)


@irregular("cache_manager", self_checked=True)
def cache_manager(case: Case, base: Base) -> Sharding:
    """Past and present [b n s d] by batch and heads; what else is split is not looked at."""
    check_strategy(case.strategy[:1], (case.sizes(0),), case.context)
    matrix = (*case.strategy[0][:2], 1, 1)
    plain = identity_map(4)
    return Sharding(matrix, (plain, plain, whole_map(case.shape(2))), (plain,))
