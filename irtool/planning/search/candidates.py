"""Strategies that could be tried for an operator: the splits of the axes that its entry tells.

What follows from most of them the axes say themselves (a form); of those that cut an axis which is
left to a function, the operator's rule is asked one by one, and the legal ones are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import prod

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.operators.axes import CallAxes, axes_of
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.guard import could_not_judge
from irtool.operators.judgement import Context, Judgement
from irtool.operators.table import operator_of
from irtool.planning.search.candidate_forms import Form, Ints, form_from
from irtool.planning.search.candidate_outputs import other_output
from irtool.sharding.judge import judge

MOST = 4000
"""Combinations that are looked at; those on few devices that are left out beyond are counted."""


@dataclass(frozen=True, slots=True)
class Space:
    """Which strategies are looked at of an operator that has too many.

    Attributes:
        every: combinations; of an operator that has no more, all are looked at.
        few: of any other one so many, at most.
        near: strategies around which to look; none: every second number of slices of each axis
            (of those every second one, and so on) that it may be cut into.
    """

    every: int
    few: int
    near: frozenset[Strategy] = frozenset()


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
    have, in order; the others were judged one by one. ``left_out``: combinations that nobody looked
    at, so that no bound can be told.
    """

    items: tuple[Candidate, ...]
    why: str = ""
    families: tuple[Family, ...] = ()
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def places(self) -> dict[tuple[Strategy | None, Strategy | None], int]:
        """Where a strategy and an ``out_strategy`` stand among them."""
        return {(item.strategy, item.out_strategy): index for index, item in enumerate(self.items)}

    @property
    def others(self) -> tuple[Candidate, ...]:
        """Those that are of no form."""
        return self.items[sum(len(family.values) for family in self.families) :]

    def without_outs(self) -> Candidates:
        """Those that have no ``out_strategy``."""
        kept: list[Candidate] = []
        families: list[Family] = []
        start = 0
        for family in self.families:
            own = self.items[start : start + len(family.values)]
            start += len(own)
            if own and own[0].out_strategy is None:
                families.append(family)
                kept += own
        kept += [item for item in self.items[start:] if item.out_strategy is None]
        return replace(self, items=tuple(kept), families=tuple(families))

    def sketches(self) -> Iterator[Judgement]:
        """What follows from each candidate, as far as prices go."""
        for family in self.families:
            yield from family.form.sketches(family.values)
        yield from (item.judgement for item in self.others)


def candidates_of(call: OperatorCall, context: Context, space: Space | None = None) -> Candidates:
    """All legal strategies of a call with power-of-two splits (or the devices' own divisors).

    A call without a rule, or one that the rule does not know, has one candidate: what MindSpore
    makes of it by itself.

    Args:
        call: the operator.
        context: devices and rank.
        space: what is looked at where there are too many; None: those on the most devices.
    """
    try:
        return _candidates(call, context, space)
    except Exception as error:
        return Candidates((), could_not_judge(call.op, error))


def _candidates(call: OperatorCall, context: Context, space: Space | None) -> Candidates:
    own = judge(call, None, context)
    call_axes = None if own.kind != "rule" else axes_of(call, context)
    if call_axes is None:
        return _own(own, call)
    asked = _Asked(call, context, call_axes, space)
    if asked.judge(asked.strategy((1,) * len(call_axes.axes))).verdict != "legal":
        return _own(own, call)
    return _formed(asked) or _enumerated(asked, own)


def count_of(call: OperatorCall, context: Context) -> int:
    """How many combinations of splits a call has; those that need an ``out_strategy`` left out.

    Args:
        call: the operator's inputs and attributes.
        context: devices and settings.

    Returns:
        1 where the operator's entry tells no axes.
    """
    call_axes = axes_of(call, context)
    if call_axes is None:
        return 1
    asked = _Asked(call, context, call_axes)
    counts = {1: 1}
    for numbers in _options(asked):
        more: dict[int, int] = {}
        for before, count in counts.items():
            for number in numbers:
                if context.stage_size % (before * number) == 0:
                    more[before * number] = more.get(before * number, 0) + count
        counts = more
    return sum(counts.values())


def _enumerated(asked: _Asked, own: Judgement) -> Candidates:
    """Those of all combinations that the rule finds legal."""
    splits, left_out = _splits(asked)
    legal = (*_judged(asked, splits), *_gathered(asked))
    return Candidates(legal, left_out=left_out) if legal else _own(own, asked.call)


def _judged(asked: _Asked, splits: Iterable[tuple[int, ...]]) -> Iterator[Candidate]:
    """Those that the rule finds legal."""
    for values in splits:
        strategy = asked.strategy(values)
        judgement = asked.judge(strategy)
        if judgement.verdict == "legal":
            yield Candidate(strategy, None, judgement)
            out = other_output(asked.call, strategy, judgement)
            other = None if out is None else asked.judge_output(strategy, out)
            if other is None or other.verdict != "legal" or not _is_as_noted(other):
                continue
            if other.collectives[0].op != judgement.collectives[0].op:
                yield Candidate(strategy, out, other)


def _is_as_noted(judgement: Judgement) -> bool:
    """Whether results are what MindSpore notes of them, so that what follows fits."""
    return all(
        held == layout.slice_shape
        for held, layout in zip(judgement.output_slices, judgement.output_layouts, strict=True)
    )


@dataclass(slots=True)
class _Asked:
    """Strategies of one call, and what the rule said of those that it was asked about."""

    call: OperatorCall
    context: Context
    call_axes: CallAxes
    space: Space | None = None
    known: dict[Strategy, Judgement] = field(default_factory=dict[Strategy, Judgement])

    def judge(self, strategy: Strategy) -> Judgement:
        """What the operator's rule says of a strategy; each is asked for once."""
        if strategy not in self.known:
            self.known[strategy] = judge(self.call, strategy, self.context)
        return self.known[strategy]

    def strategy(self, values: Sequence[int]) -> Strategy:
        """The strategy that cuts each axis so often."""
        numbers = [[1] * len(row) for row in self.call_axes.rows]
        for axis, value in zip(self.call_axes.axes, values, strict=True):
            for row, place in axis.entries:
                numbers[row][place] = value
        return tuple(tuple(row) for row in numbers)

    def judge_output(self, strategy: Strategy, out: Strategy) -> Judgement:
        """What the rule says of it with an ``out_strategy``."""
        return judge(self.call, strategy, self.context, out_strategy=out)

    def later(self, candidate: Candidate) -> Judgement:
        """The judgement of a candidate that was not asked about yet."""
        out = candidate.out_strategy
        if out is None:
            return self.judge(candidate.strategy or ())
        return self.judge_output(candidate.strategy or (), out)


def _formed(asked: _Asked) -> Candidates | None:
    """All candidates by the form that the axes give; None if they give none.

    Where axes are cut that are left to a function, its judgement of each strategy counts.
    """
    form = form_from(asked.call, asked.context, asked.call_axes)
    if form is None:
        return None
    judged = [number for number, axis in enumerate(asked.call_axes.axes) if axis.judged]
    all_splits, left_out = _splits(asked)
    splits = [values for values in all_splits if all(values[number] == 1 for number in judged)]
    items = [Candidate(asked.strategy(values), None, asked.later) for values in splits]
    families = [Family(form, np.array(splits, dtype=np.int64))]
    if operator_of(asked.call.op).is_("scatters"):
        scattered = form.scattered()
        more, outs = _scattered_splits(form, splits)
        if more and scattered is not None:
            items += [
                Candidate(asked.strategy(values), out, asked.later)
                for values, out in zip(more, outs, strict=True)
            ]
            families.append(Family(scattered, np.array(more, dtype=np.int64)))
    rest = (values for values in all_splits if any(values[number] > 1 for number in judged))
    others = (*_judged(asked, rest), *_gathered(asked))
    return Candidates((*items, *others), "", tuple(families), left_out)


def _gathered(asked: _Asked) -> Iterator[Candidate]:
    """Both matrices of a product cut into the same blocks over all devices, gathered before it."""
    if not operator_of(asked.call.op).is_("blocks") or len(asked.call_axes.rows) != 2:
        return
    if any(len(row) != 2 for row in asked.call_axes.rows):
        return
    devices = asked.context.stage_size
    for rows in _divisors(devices) if devices > 1 else ():
        block = (rows, devices // rows)
        judgement = asked.judge((block, block))
        if judgement.verdict == "legal" and judgement.replaced:
            yield Candidate((block, block), None, judgement)


def _scattered_splits(
    form: Form, splits: Sequence[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], list[Strategy]]:
    """Splits whose sum may be scattered over the rows of the result, with the ``out_strategy``."""
    scattered: list[tuple[int, ...]] = []
    outs: list[Strategy] = []
    if len(form.sums) != 1 or len(form.outputs) != 1 or len(form.outputs[0]) != 2:
        return scattered, outs
    rows, columns = form.outputs[0]
    size = (form.call.results[0].shape or (1,))[0]
    for values in splits:
        summed = prod(values[axis] for axis in form.sums[0].axes)
        cut = summed * prod(values[axis] for axis in rows)
        if summed > 1 and size % cut == 0:
            scattered.append(values)
            outs.append(((cut, prod(values[axis] for axis in columns)),))
    return scattered, outs


def given_candidate(
    call: OperatorCall, strategy: Strategy, out_strategy: Strategy | None, context: Context
) -> Candidate:
    """A strategy that somebody wants, legal or not.

    Args:
        call: the operator's inputs and attributes.
        strategy: one tuple a tensor input.
        out_strategy: of the outputs; None: none is asked for.
        context: devices and settings.
    """
    judgement = judge(call, strategy, context, out_strategy=out_strategy)
    return Candidate(strategy, out_strategy, judgement)


def _own(own: Judgement, call: OperatorCall) -> Candidates:
    """MindSpore's own choice, if there is one."""
    if own.verdict != "legal":
        reason = own.reasons[0].message if own.reasons else "no strategy is legal"
        return Candidates((), reason)
    kept = own.strategy if own.kind == "rule" else None
    why = "" if own.kind == "rule" else f"{call.op} has no rule: MindSpore makes it {own.kind}"
    return Candidates((Candidate(kept, None, own),), why)


def _splits(asked: _Asked) -> tuple[list[tuple[int, ...]], int]:
    """Numbers of slices, one an axis, whose product the devices allow; how many more there are."""
    options = _options(asked)
    splits = _combined(options, asked.context.stage_size)
    count, space = len(splits), asked.space
    if space is None and count > MOST:
        splits.sort(key=lambda values: -prod(values))
        del splits[MOST:]
    elif space is not None and count > space.every:
        near = _around(splits, options, asked) if space.near else _coarse(options, asked)
        splits = list(dict.fromkeys([*near, *_plain(options)]))
    return splits, count - len(splits)


def _options(asked: _Asked) -> list[list[int]]:
    """By axis into how many slices it may be cut."""
    rows = asked.call_axes.rows
    return [
        [
            number
            for number in _divisors(asked.context.stage_size)
            if axis.limit % number == 0
            and all(_divides(number, rows[row][place]) for row, place in axis.entries)
        ]
        for axis in asked.call_axes.axes
    ]


def _combined(options: Sequence[Sequence[int]], devices: int) -> list[tuple[int, ...]]:
    """A number of each row, where their product divides the devices."""
    splits: list[tuple[int, ...]] = [()]
    for choice in options:
        splits = [
            (*before, n) for before in splits for n in choice if devices % (prod(before) * n) == 0
        ]
    return splits


def _coarse(options: Sequence[Sequence[int]], asked: _Asked) -> list[tuple[int, ...]]:
    """Of the numbers of each axis every second one, and the largest, until there are few enough."""
    assert asked.space is not None
    while True:
        fewer = [sorted({*numbers[::2], numbers[-1]}) for numbers in options]
        splits = _combined(fewer, asked.context.stage_size)
        if len(splits) <= asked.space.few or fewer == options:
            return splits
        options = fewer


def _plain(options: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Nothing cut, and each axis alone as often as it can be: whole plans are made of these."""
    ones = (1,) * len(options)
    yield ones
    for axis, numbers in enumerate(options):
        yield (*ones[:axis], max(numbers), *ones[axis + 1 :])


def _around(
    splits: Sequence[tuple[int, ...]], options: Sequence[Sequence[int]], asked: _Asked
) -> list[tuple[int, ...]]:
    """Those of which no axis has a number that is not next to that of some strategy."""
    assert asked.space is not None
    place = [{number: index for index, number in enumerate(numbers)} for numbers in options]
    rows = [[place[axis][n] for axis, n in enumerate(values)] for values in splits]
    table, kept = np.array(rows), np.zeros(len(splits), dtype=np.bool_)
    for strategy in asked.space.near:
        own = [
            place[axis].get(max(strategy[row][dimension] for row, dimension in entries.entries), 0)
            for axis, entries in enumerate(asked.call_axes.axes)
        ]
        kept |= (np.abs(table - np.array(own)) <= 1).all(axis=1)
    return [values for values, keep in zip(splits, kept.tolist(), strict=True) if keep]


def _divides(number: int, size: int) -> bool:
    return size < 0 or size % number == 0


def _divisors(devices: int) -> list[int]:
    return [n for n in range(1, devices + 1) if devices % n == 0]
