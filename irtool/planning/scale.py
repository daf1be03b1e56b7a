"""Strategies for fewer or more devices, as near to the old ones as is legal.

Not a search: each operator keeps the form of its strategy, and what the number of devices changes
by is taken from (or given to) the first dimensions that allow it, which are those of the batch in
most operators.  So data parallelism shrinks before tensor parallelism does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.annotate import with_strategies
from irtool.sharding.judge import judge
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import OperatorReport, Report
from irtool.sharding.operator import Strategy

_MOST_TRIED = 4000


@dataclass(frozen=True, eq=False)
class ScaledPlan:
    """A plan for another number of devices.

    ``changed`` are operators with another strategy; ``kept`` operators that have no strategy of
    their own; ``failed`` those for which no legal strategy of this form was found.
    """

    dump: Dump
    context: ParallelContext
    changed: dict[Node, tuple[Strategy, Strategy]]
    failed: tuple[Node, ...]


def scaled_plan(begin: Dump, report: Report, context: ParallelContext) -> ScaledPlan:
    """The begin dump with strategies for the devices of another context.

    Args:
        begin: the dump that the old strategies stand in.
        report: what ``check`` says of it with the old number of devices.
        context: the new one.
    """
    strategies: dict[Node, Strategy] = {}
    outs: dict[Node, Strategy] = {}
    changed: dict[Node, tuple[Strategy, Strategy]] = {}
    failed: list[Node] = []
    known: dict[object, tuple[Strategy, Strategy | None] | None] = {}
    for item in report.operators:
        if item.strategy is None or item.node.in_strategy is None:
            continue
        shapes = tuple(tensor.shape for tensor in item.call.call.tensors)
        key = (item.op, item.strategy, item.out_strategy, shapes, item.node.operands[-2:])
        if key not in known:
            known[key] = _scaled(item, report.context, context)
        found = known[key]
        if found is None:
            failed.append(item.node)
            continue
        strategies[item.node] = found[0]
        if found[1] is not None:
            outs[item.node] = found[1]
        if found[0] != item.strategy:
            changed[item.node] = (item.strategy, found[0])
    return ScaledPlan(with_strategies(begin, strategies, outs), context, changed, tuple(failed))


def _scaled(
    item: OperatorReport, old: ParallelContext, new: ParallelContext
) -> tuple[Strategy, Strategy | None] | None:
    """The nearest legal strategy with the same share of the devices; None if there is none."""
    strategy = item.strategy or ()
    call = item.call.call
    judged = replace(new, rank=0).for_operators(dynamic=call.is_dynamic)
    used = _used(item, old)
    target = max(1, used * new.stage_size // old.stage_size)
    for candidate in _candidates(strategy, old.stage_size, new.stage_size):
        found = judge(call, candidate, judged, out_strategy=None)
        if found.verdict != "legal":
            continue
        if prod(_axes(found.device_matrix, found.repeats)) == target:
            return candidate, None
    # Where the share cannot be kept, anything legal of this form is better than nothing.
    for candidate in _candidates(strategy, old.stage_size, new.stage_size):
        if judge(call, candidate, judged).verdict == "legal":
            return candidate, None
    return None


def _axes(matrix: tuple[int, ...], repeats: int) -> tuple[int, ...]:
    """The device matrix without the devices that only repeat."""
    return (prod(matrix) // max(1, repeats),)


def _used(item: OperatorReport, context: ParallelContext) -> int:
    return max(1, context.stage_size // max(1, item.judgement.repeats))


def _candidates(strategy: Strategy, old: int, new: int) -> Iterator[Strategy]:
    """Strategies whose numbers are those of the old one, divided or multiplied.

    First come those that change the first dimensions; the old strategy itself comes first of all
    where the number of devices grew, since it is legal with repeated calculation.
    """
    flat = [number for row in strategy for number in row]
    options = [_options(number, old, new) for number in flat]
    axes = [axis for row in strategy for axis in range(len(row))]
    ranked = sorted(product(*options), key=lambda each: _distance(flat, each, axes))
    for numbers in ranked[:_MOST_TRIED]:
        rows: list[tuple[int, ...]] = []
        at = 0
        for row in strategy:
            rows.append(tuple(numbers[at : at + len(row)]))
            at += len(row)
        yield tuple(rows)


def _options(number: int, old: int, new: int) -> list[int]:
    """What a number of a strategy may become: its divisors, or its multiples."""
    if new < old:
        return [divisor for divisor in range(number, 0, -1) if number % divisor == 0]
    factor = max(1, new // old)
    return [number * each for each in range(1, factor + 1) if factor % each == 0]


def _distance(
    old: list[int], new: tuple[int, ...], axes: list[int]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Fewer dimensions that change first, then those in front, over all inputs together."""
    changed = [place for place, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    dimensions = tuple(sorted({axes[place] for place in changed}))
    return len(dimensions), dimensions, tuple(changed)
