"""Strategies that could be tried for an operator, found by asking its sharding rule.

Rules say whether a strategy is legal, not which ones there are.  So the axes are found out first:
which numbers of a strategy may be raised alone, and which only together (the summed axis of a
product of matrices, the axes that operands of an addition share).  Then every combination of splits
is judged, and the legal ones are kept, with what follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from irtool.operators.axes import CallAxes, axes_of
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.guard import could_not_judge
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import Shape
from irtool.planning.search.candidate_forms import Form, Ints, form_from, form_of
from irtool.planning.search.candidate_outputs import SCATTERS, other_output
from irtool.sharding.judge import judge

Place = tuple[int, int]
"""A number of a strategy: which row, which dimension."""

PRODUCTS = frozenset({"MatMul", "BatchMatMul"})
"""Operators whose arithmetic is worth every device; tried on all devices only, if that is legal."""

MOST = 4000
"""Combinations that are judged at most; beyond, those that use few devices are left out."""


class Candidate:
    """A strategy with what follows from it. ``strategy`` None: MindSpore makes one itself."""

    __slots__ = ("_judge", "_judgement", "out_strategy", "strategy")

    def __init__(
        self,
        strategy: Strategy | None,
        out_strategy: Strategy | None,
        judgement: Judgement | Callable[[Candidate], Judgement],
    ) -> None:
        self.strategy, self.out_strategy = strategy, out_strategy
        self._judge = None if isinstance(judgement, Judgement) else judgement
        self._judgement = judgement if isinstance(judgement, Judgement) else None

    @property
    def judgement(self) -> Judgement:
        """What the rule says; asked when it is first wanted."""
        if self._judgement is None:
            assert self._judge is not None
            self._judgement = self._judge(self)
        return self._judgement

    def __repr__(self) -> str:
        return f"Candidate({self.strategy}, {self.out_strategy})"


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """Candidates of one form; ``values``: by candidate into how many slices each axis is cut."""

    form: Form
    values: Ints


@dataclass(frozen=True, eq=False)
class Candidates:
    """All that may be tried for an operator.

    ``why``: why there is only MindSpore's own choice. ``families``: forms that the first candidates
    have, in order; the others were judged one by one.
    """

    items: tuple[Candidate, ...]
    why: str = ""
    families: tuple[Family, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def places(self) -> dict[tuple[Strategy | None, Strategy | None], int]:
        """Where a strategy and an ``out_strategy`` stand among them."""
        return {(item.strategy, item.out_strategy): at for at, item in enumerate(self.items)}

    def sketches(self) -> Iterator[Judgement]:
        """What follows from each candidate, as far as prices go."""
        for family in self.families:
            yield from family.form.sketches(family.values)
        told = sum(len(family.values) for family in self.families)
        yield from (item.judgement for item in self.items[told:])


def candidates_of(call: OperatorCall, context: Context) -> Candidates:
    """All legal strategies of a call with power-of-two splits (or the devices' own divisors).

    A call without a rule, or one that the rule does not know, has one candidate: what MindSpore
    makes of it by itself.
    """
    try:
        return _candidates(call, context)
    except Exception as error:
        return Candidates((), could_not_judge(call.op, error))


def _candidates(call: OperatorCall, context: Context) -> Candidates:
    own = judge(call, None, context)
    rows = _rows(call, context)
    if own.kind != "rule" or rows is None:
        return _own(own, call)
    asked = _Asked(call, context, rows)
    told = axes_of(call, context)
    if told is not None and rows == tuple(tensor.shape or () for tensor in call.tensors):
        return _told(asked, told, own)
    asked.axes = _axes(asked)
    form = form_of(call, context, [_largest(rows, axis) for axis in asked.axes], asked.of)
    if form is not None:
        made = _formed(asked, form)
        if made is not None:
            return made
    made = _but_for_one(asked)
    if made is not None:
        return made
    return _each(asked, own)


def _told(asked: _Asked, told: CallAxes, own: Judgement) -> Candidates:
    """All candidates where the operator's entry tells its axes."""
    asked.axes = [axis.inputs for axis in told.axes]
    form = form_from(asked.call, asked.context, told)
    made = None if form is None else _formed(asked, form)
    return made or _each(asked, own)


def _each(asked: _Asked, own: Judgement) -> Candidates:
    """Those of all combinations that the rule finds legal."""
    found = list(_judged(asked, _splits(asked)))
    if not found:
        return _own(own, asked.call)
    if asked.call.op in PRODUCTS:
        least = min(item.judgement.repeats for item in found)
        found = [item for item in found if item.judgement.repeats == least]
    return Candidates(tuple(found))


def _judged(asked: _Asked, splits: Iterable[tuple[int, ...]]) -> Iterator[Candidate]:
    """Those that the rule finds legal."""
    for values in splits:
        strategy = asked.strategy(values)
        judgement = asked.judge(strategy)
        if judgement.verdict == "legal":
            yield Candidate(strategy, None, judgement)
            out = other_output(asked.call, strategy, judgement)
            other = None if out is None else asked.judge_output(strategy, out)
            if other is None or other.verdict != "legal":
                continue
            if other.collectives[0].op != judgement.collectives[0].op:
                yield Candidate(strategy, out, other)


def _but_for_one(asked: _Asked) -> Candidates | None:
    """All candidates where one axis is unlike the others, and all that leave it whole have a form.

    The rows of a table from which something is gathered are such an axis.
    """
    if len(asked.axes) < 2 or asked.call.op in PRODUCTS:
        return None
    for odd in range(len(asked.axes)):
        others = [axis for at, axis in enumerate(asked.axes) if at != odd]
        rest = _Asked(asked.call, asked.context, asked.rows, others, asked.known)
        largest = [_largest(asked.rows, axis) for axis in others]
        form = form_of(asked.call, asked.context, largest, rest.of)
        made = None if form is None else _formed(rest, form)
        if made is not None:
            more = _judged(asked, (values for values in _splits(asked) if values[odd] > 1))
            return Candidates((*made.items, *more), "", made.families)
    return None


@dataclass(slots=True)
class _Asked:
    """Strategies of one call, and what the rule said of those that it was asked about."""

    call: OperatorCall
    context: Context
    rows: tuple[Shape, ...]
    axes: list[tuple[Place, ...]] = field(default_factory=list[tuple[Place, ...]])
    known: dict[Strategy, Judgement] = field(default_factory=dict[Strategy, Judgement])

    def judge(self, strategy: Strategy) -> Judgement:
        """What the rule says."""
        if strategy not in self.known:
            self.known[strategy] = judge(self.call, strategy, self.context)
        return self.known[strategy]

    def strategy(self, values: Sequence[int]) -> Strategy:
        """The strategy that cuts each axis so often."""
        return _strategy(self.rows, self.axes, values)

    def of(self, values: Sequence[int]) -> Judgement:
        """What the rule says of it."""
        return self.judge(self.strategy(values))

    def judge_output(self, strategy: Strategy, out: Strategy) -> Judgement:
        """What the rule says of it with an ``out_strategy``."""
        return judge(self.call, strategy, self.context, out_strategy=out)

    def later(self, candidate: Candidate) -> Judgement:
        """The judgement of a candidate that was not asked about yet."""
        out = candidate.out_strategy
        if out is None:
            return self.judge(candidate.strategy or ())
        return self.judge_output(candidate.strategy or (), out)


def _formed(asked: _Asked, form: Form) -> Candidates | None:
    """All candidates by the form; None if the scattered ones have none."""
    splits = list(_splits(asked))
    if asked.call.op in PRODUCTS:
        most = max(prod(values) for values in splits)
        splits = [values for values in splits if prod(values) == most]
    items = [Candidate(asked.strategy(values), None, asked.later) for values in splits]
    families = [Family(form, np.array(splits, dtype=np.int64))]
    if asked.call.op in SCATTERS:
        scattered = form.scattered()
        more, outs = _scattered_splits(form, splits)
        if more:
            if scattered is None:
                return None
            others = [
                Candidate(asked.strategy(values), out, asked.later)
                for values, out in zip(more, outs, strict=True)
            ]
            few = others[:: max(1, len(others) // 4)]
            probes = more[:: max(1, len(others) // 4)]
            if not scattered.agrees(probes, [item.judgement for item in few]):
                return None
            items += others
            families.append(Family(scattered, np.array(more, dtype=np.int64)))
    return Candidates(tuple(items), "", tuple(families))


def _scattered_splits(
    form: Form, splits: Sequence[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], list[Strategy]]:
    """Splits whose sum may be scattered over the rows of the result, with the ``out_strategy``."""
    found: list[tuple[int, ...]] = []
    outs: list[Strategy] = []
    if len(form.sums) != 1 or len(form.outputs) != 1 or len(form.outputs[0]) != 2:
        return found, outs
    rows, columns = form.outputs[0]
    size = (form.call.results[0].shape or (1,))[0]
    for values in splits:
        summed = prod(values[axis] for axis in form.sums[0].axes)
        cut = summed * prod(values[axis] for axis in rows)
        if summed > 1 and size % cut == 0:
            found.append(values)
            outs.append(((cut, prod(values[axis] for axis in columns)),))
    return found, outs


def _largest(rows: Sequence[Shape], axis: tuple[Place, ...]) -> int:
    """The largest power of two that an axis can be cut into."""
    return min((n & -n) if (n := rows[row][at]) > 0 else 1 for row, at in axis)


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


def _axes(asked: _Asked) -> list[tuple[Place, ...]]:
    """Places whose numbers may be raised together; each place stands in one axis at most."""
    taken: set[Place] = set()
    found: list[tuple[Place, ...]] = []
    rows = asked.rows
    # Groups of some sizes may be refused, so that an axis shows only under another factor.
    for factor in _trial_factors(asked.context.stage_size):
        if found and factor == asked.context.stage_size:
            break  # only where all devices or none is what a rule asks for
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
                if asked.judge(strategy).verdict == "legal":
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


def _splits(asked: _Asked) -> Iterator[tuple[int, ...]]:
    """Numbers of slices, one an axis, whose product the devices allow."""
    rows, axes, devices = asked.rows, asked.axes, asked.context.stage_size
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
    """Splits by which axes are found out: the number of devices' prime factors, last itself."""
    primes = [n for n in _divisors(devices) if n > 1 and len(_divisors(n)) == 2]
    return [*primes, devices] if devices > 1 and devices not in primes else primes


def _strategy(
    rows: Sequence[Shape], axes: Sequence[tuple[Place, ...]], values: Sequence[int]
) -> Strategy:
    numbers = [[1] * len(row) for row in rows]
    for axis, value in zip(axes, values, strict=True):
        for row, at in axis:
            numbers[row][at] = value
    return tuple(tuple(row) for row in numbers)
