"""Strategies that could be tried for an operator, found by asking its sharding rule.

Rules say whether a strategy is legal, not which ones there are.  So the axes are found out first:
which numbers of a strategy may be raised alone, and which only together (the summed axis of a
product of matrices, the axes that operands of an addition share).  Then every combination of splits
is judged, and the legal ones are kept, with what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from irtool.sharding.judge import judge
from irtool.sharding.judgement import Context, Judgement
from irtool.sharding.layout import Shape
from irtool.sharding.operator import OperatorCall, Strategy

Place = tuple[int, int]
"""A number of a strategy: which row, which dimension."""

PRODUCTS = frozenset({"MatMul", "BatchMatMul"})
"""Operators whose arithmetic is worth every device; tried on all devices only, if that is legal."""

SCATTERS = frozenset({"MatMul"})
"""Operators that may scatter a split sum over their first output dimension (``out_strategy``)."""

MOST = 4000
"""Combinations that are judged at most; beyond, those that use few devices are left out."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy with what follows from it. ``strategy`` None: MindSpore makes one itself."""

    strategy: Strategy | None
    out_strategy: Strategy | None
    judgement: Judgement


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """All that may be tried for an operator. ``why``: why there is only MindSpore's own choice."""

    items: tuple[Candidate, ...]
    why: str = ""

    def __len__(self) -> int:
        return len(self.items)


def candidates_of(call: OperatorCall, context: Context) -> Candidates:
    """All legal strategies of a call with power-of-two splits (or the devices' own divisors).

    A call without a rule, or one that the rule does not know, has one candidate: what MindSpore
    makes of it by itself.
    """
    own = judge(call, None, context)
    rows = _rows(call, context)
    if own.kind != "rule" or rows is None:
        return _own(own, call)
    axes = _axes(call, rows, context)
    found: list[Candidate] = []
    for values in _splits(call, rows, axes, context.stage_size):
        strategy = _strategy(rows, axes, values)
        judgement = judge(call, strategy, context)
        if judgement.verdict == "legal":
            found.append(Candidate(strategy, None, judgement))
            found += _scattered(call, strategy, judgement, context)
    if not found:
        return _own(own, call)
    if call.op in PRODUCTS:
        least = min(item.judgement.repeats for item in found)
        found = [item for item in found if item.judgement.repeats == least]
    return Candidates(tuple(found))


def given_candidate(
    call: OperatorCall, strategy: Strategy, out_strategy: Strategy | None, context: Context
) -> Candidate:
    """A strategy that somebody wants, legal or not."""
    judgement = judge(call, strategy, context, out_strategy=out_strategy)
    return Candidate(strategy, out_strategy, judgement)


def _own(own: Judgement, call: OperatorCall) -> Candidates:
    """MindSpore's own choice, if there is one."""
    if own.verdict != "legal":
        reason = own.findings[0].message if own.findings else "no strategy is legal"
        return Candidates((), reason)
    kept = own.strategy if own.kind == "rule" else None
    why = "" if own.kind == "rule" else f"{call.op} has no rule: MindSpore makes it {own.kind}"
    return Candidates((Candidate(kept, None, own),), why)


def _rows(call: OperatorCall, context: Context) -> tuple[Shape, ...] | None:
    """The shapes that a strategy is about: those under which splitting nothing is legal."""
    inputs = tuple(tensor.divisible_shape for tensor in call.tensors)
    outputs = tuple(tensor.divisible_shape for tensor in call.results[:1])
    choices = [inputs, inputs[:1], (*outputs, *inputs[1:]), ((), *inputs[1:])]
    for rows in choices:
        whole = tuple((1,) * len(row) for row in rows)
        if judge(call, whole, context).verdict == "legal":
            return rows
    return None


def _axes(call: OperatorCall, rows: Sequence[Shape], context: Context) -> list[tuple[Place, ...]]:
    """Places whose numbers may be raised together; each place stands in one axis at most."""
    taken: set[Place] = set()
    found: list[tuple[Place, ...]] = []
    # Groups of some sizes may be refused, so that an axis shows only under another factor.
    for factor in _trial_factors(context.stage_size):
        places = [
            (row, at)
            for row, shape in enumerate(rows)
            for at, size in enumerate(shape)
            if size != 1 and _divides(factor, size) and (row, at) not in taken
        ]
        for place in places:
            if place in taken:
                continue
            for together in _together(place, places, rows):
                if taken & set(together):
                    continue
                strategy = _strategy(rows, [together], [factor])
                if judge(call, strategy, context).verdict == "legal":
                    found.append(together)
                    taken |= set(together)
                    break
    return sorted(found)


def _together(
    place: Place, places: Sequence[Place], rows: Sequence[Shape]
) -> Iterator[tuple[Place, ...]]:
    """What may have to be raised with a place: nothing, the same axis elsewhere, some of those."""
    yield (place,)
    row, at = place
    size = rows[row][at]
    same = [other for other in places if other[0] != row and rows[other[0]][other[1]] == size]
    right = len(rows[row]) - at
    aligned = [other for other in same if len(rows[other[0]]) - other[1] == right]
    if aligned:
        yield (place, *aligned)
    left = [other for other in same if other[1] == at]
    if left and left != aligned:
        yield (place, *left)
    for count in (1, 2, 3):
        for others in combinations(same[:6], count):
            if len({other[0] for other in others}) == count:
                yield (place, *others)


def _splits(
    call: OperatorCall, rows: Sequence[Shape], axes: Sequence[tuple[Place, ...]], devices: int
) -> Iterator[tuple[int, ...]]:
    """Numbers of slices, one an axis, whose product the devices allow."""
    options = [
        [n for n in _divisors(devices) if all(_divides(n, rows[r][at]) for r, at in axis)]
        for axis in axes
    ]
    found: list[tuple[int, ...]] = [()]
    for choice in options:
        found = [
            (*before, n) for before in found for n in choice if devices % (prod(before) * n) == 0
        ]
    if len(found) > MOST:
        found.sort(key=lambda values: -prod(values))
        del found[MOST:]
    yield from found


def _divides(number: int, size: int) -> bool:
    return size < 0 or size % number == 0


def _divisors(devices: int) -> list[int]:
    return [n for n in range(1, devices + 1) if devices % n == 0]


def _trial_factors(devices: int) -> list[int]:
    """Splits by which axes are found out: the prime factors of the number of devices."""
    return [n for n in _divisors(devices) if n > 1 and len(_divisors(n)) == 2]


def _strategy(
    rows: Sequence[Shape], axes: Sequence[tuple[Place, ...]], values: Sequence[int]
) -> Strategy:
    numbers = [[1] * len(row) for row in rows]
    for axis, value in zip(axes, values, strict=True):
        for row, at in axis:
            numbers[row][at] = value
    return tuple(tuple(row) for row in numbers)


def _scattered(
    call: OperatorCall, strategy: Strategy, judgement: Judgement, context: Context
) -> Iterator[Candidate]:
    """The same with the split sum scattered: half of what an AllReduce moves."""
    if call.op not in SCATTERS or not judgement.collectives or len(judgement.output_layouts) != 1:
        return
    splits = judgement.output_layouts[0].splits
    summed = len(judgement.collectives[0].ranks)
    if len(splits) != 2:
        return
    out = ((splits[0] * summed, splits[1]),)
    found = judge(call, strategy, context, out_strategy=out)
    if found.verdict == "legal":
        yield Candidate(strategy, out, found)
