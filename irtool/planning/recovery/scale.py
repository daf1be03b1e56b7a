"""Strategies for fewer or more devices, as near to the old ones as is legal.

Not a search: each operator keeps the form of its strategy, and what the number of devices changes
by is taken from (or given to) the first dimensions that allow it, which are those of the batch in
most operators.  So data parallelism shrinks before tensor parallelism does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, product
from math import gcd, prod

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.judgement import Judgement
from irtool.planning.plans.annotate import with_strategies
from irtool.sharding.judge import judge
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, OperatorReport

_MOST_TRIED = 400
"""Strategies of one operator that are judged; beyond, the best so far is taken."""
_MOST_LOOKED_AT = 8000


@dataclass(frozen=True, eq=False)
class ScaledPlan:
    """A plan for another number of devices.

    ``changed`` are operators with another strategy; ``failed`` those for which no legal one was
    found. Output strategies are not kept: those of the new input strategies follow.
    """

    dump: Dump
    context: ParallelContext
    changed: dict[Node, tuple[Strategy, Strategy]]
    failed: tuple[Node, ...]


def scaled_plan(begin: Dump, report: CheckResult, context: ParallelContext) -> ScaledPlan:
    """The begin dump with strategies for the devices of another context.

    Args:
        begin: the dump that the old strategies stand in.
        report: what ``check`` says of it with the old number of devices.
        context: the new one, its rank in the stage that the dump is of.
    """
    strategies: dict[Node, Strategy] = {}
    changed: dict[Node, tuple[Strategy, Strategy]] = {}
    failed: list[Node] = []
    known: dict[object, Strategy | None] = {}
    for item in report.operators:
        if item.strategy is None or not item.node.has_strategy:
            continue
        shapes = tuple(tensor.shape for tensor in item.call.call.tensors)
        key = (item.op, item.strategy, item.out_strategy, shapes, item.node.operands[-2:])
        if key not in known:
            known[key] = _scaled(item, report.context, context)
        strategy = known[key]
        if strategy is None:
            failed.append(item.node)
            continue
        strategies[item.node] = strategy
        if strategy != item.strategy:
            changed[item.node] = (item.strategy, strategy)
    return ScaledPlan(with_strategies(begin, strategies), context, changed, tuple(failed))


def _scaled(item: OperatorReport, old: ParallelContext, new: ParallelContext) -> Strategy | None:
    """The nearest legal strategy with the same share of the devices; None if there is none.

    Where the share cannot be kept, it is the one that uses most of them.
    """
    call = item.call.call
    judged = new.for_operators(dynamic=call.is_dynamic)
    target = max(1, _used(item.judgement) * new.stage_size // old.stage_size)
    best: tuple[tuple[bool, int], Strategy] | None = None
    for candidate in _candidates(item.strategy or (), old.stage_size, new.stage_size):
        judgement = judge(call, candidate, judged)
        if judgement.verdict != "legal":
            continue
        rank = (_axes(judgement) == _axes(item.judgement), _used(judgement))
        if rank == (True, target):
            return candidate
        if best is None or rank > best[0]:
            best = rank, candidate
    return best[1] if best is not None else None


def _used(judgement: Judgement) -> int:
    """Devices that do different work."""
    return max(1, prod(judgement.device_matrix) // max(1, judgement.repeats))


def _axes(judgement: Judgement) -> int:
    """Axes of the device matrix, the one of repeated calculation left out: the strategy's form."""
    return len(judgement.device_matrix) - (judgement.repeats > 1)


def _candidates(strategy: Strategy, old: int, new: int) -> Iterator[Strategy]:
    """Strategies whose numbers are those of the old one, divided or multiplied.

    The old strategy itself comes first; then those that change one dimension (of all inputs
    together), those in front before others, then two, and so on. Last comes calculation that every
    device repeats.
    """
    flat = [number for row in strategy for number in row]
    places = [axis for row in strategy for axis in range(len(row))]
    seen: set[tuple[int, ...]] = set()
    for numbers in islice(_numbers(flat, places, old, new), _MOST_LOOKED_AT):
        if min(numbers, default=1) < 1:
            break  # nobody can cut into no pieces, whatever the number of devices
        rows = _rows(numbers, strategy)
        if numbers not in seen and all(new % prod(row) == 0 for row in rows):
            seen.add(numbers)
            yield rows
            if len(seen) == _MOST_TRIED:
                break
    yield tuple((1,) * len(row) for row in strategy)


def _numbers(flat: list[int], places: list[int], old: int, new: int) -> Iterator[tuple[int, ...]]:
    factors = _factors(old, new)
    options = [[n * up // down for up, down in factors if n * up % down == 0] for n in flat]
    axes = sorted(set(places))
    for count in range(len(axes) + 1):
        for chosen in combinations(axes, count):
            for up, down in factors:
                yield tuple(
                    n * up // down if axis in chosen and n * up % down == 0 else n
                    for n, axis in zip(flat, places, strict=True)
                )
        for chosen in combinations(axes, count):
            yield from product(
                *(
                    multiples if axis in chosen else [n]
                    for n, axis, multiples in zip(flat, places, options, strict=True)
                )
            )


def _factors(old: int, new: int) -> list[tuple[int, int]]:
    """By what a number may be multiplied and divided: parts of the ratio, the smallest first."""
    common = gcd(old, new)
    ups, downs = _divisors(new // common), _divisors(old // common)
    return sorted(product(ups, downs), key=lambda pair: pair[0] * pair[1])


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _rows(numbers: tuple[int, ...], strategy: Strategy) -> Strategy:
    rest = iter(numbers)
    return tuple(tuple(islice(rest, len(row))) for row in strategy)
