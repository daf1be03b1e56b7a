"""Operator pairs of two frameworks: the calls that lie between values which both have.

Where one call on either side makes a value of values that are paired, these two are a pair as in
runs of one framework.  Where one side takes eight calls for it, they stand together as one
operator, a *stretch*: what goes in and comes out is compared, what lies between is not, and a
fault in it is told as lying between its ends.

A call's gradient states the gradients of what the call made and read.  The gradient of a value
is made of the gradients of what was computed from it, so in the backward pass the calls between
are those that read the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import NamedTuple

from irtool.compare.tensors.model import Columns, Op, Phase, TensorRun
from irtool.compare.tensors.pairing.across import Partners
from irtool.compare.tensors.pairing.flow import Flow, Value
from irtool.compare.tensors.pairing.gradients import gradients_of
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass

_RESIDUE = 1e-6
"""Norm of a gradient, against those it is made of, from which down it is rounding alone."""
Shown = tuple[int, int]
"""Tensors, a place in the columns of either run, that show a pair of values."""


@dataclass(slots=True)
class Stretch:
    """Calls of both sides between paired values.

    Attributes:
        left, right: the calls, in order.
        before: place in the order of execution of the left call that is given what comes out; -1
            where that is not known.
        inputs, outputs: pairs of values by the number of the left one, and tensors that show them.
        phase: forward or backward.
    """

    left: list[Op]
    right: list[Op]
    phase: Phase = "forward"
    call: str = ""
    before: int = -1
    inputs: dict[int, Shown] = field(default_factory=dict[int, Shown])
    outputs: dict[int, Shown] = field(default_factory=dict[int, Shown])


class Stretches:
    """Finds them all.

    Attributes:
        partners: values that are paired.
        flows: of the left and the right run.
        gradients: of each run, where the gradients of values stand, by the number of the value.
        shown: those that are paired, once the backward pass was looked at.
        others: further tensors that show the same values, in other layouts.
    """

    def __init__(self, left: TensorRun, right: TensorRun) -> None:
        self.partners = Partners(Flow(left), Flow(right))
        self.flows = self.partners.left, self.partners.right
        self.gradients = gradients_of(self.flows[0], left), gradients_of(self.flows[1], right)
        self.shown: dict[int, Shown] = {}
        self.others: dict[Shown, tuple[list[int], list[int]]] = {}
        self._stops: dict[int, Value] = {}

    def forward(self) -> Iterator[Stretch]:
        """What makes each paired value of the forward pass, by the left call that makes it."""
        by_value: dict[int, Stretch] = {}
        for value in self.flows[0].values:
            match = self.partners.of_left.get(value.number)
            if match is None or value.maker is None or match.maker is None:
                continue
            if value.maker.index not in self.flows[0].forward:
                continue
            stretch = self._made(value, match)
            if not stretch.inputs:  # nothing that it is made of is paired
                continue
            known = by_value.setdefault(value.maker.index, stretch)
            if known is not stretch:
                known.inputs |= stretch.inputs
                known.outputs |= stretch.outputs
                known.right = _merged(known.right, stretch.right)
                known.left = _merged(known.left, stretch.left)
        yield from by_value.values()

    def _made(self, value: Value, match: Value) -> Stretch:
        """The calls that make a value of others that are paired too."""
        left, given, lone = _slice(self.flows[0], value, self.partners.of_left)
        right, read, others = _slice(self.flows[1], match, self.partners.of_right)
        for ours, theirs in _alike(lone, others):  # parameters that are not the same
            self.partners.pair(ours, theirs)
            given[ours.number], read[theirs.number] = ours.places, theirs.places
        assert value.maker is not None
        stretch = Stretch(left, right, call=value.maker.call)
        for number, ours in given.items():
            theirs = read.get(self.partners.of_left[number].number)
            if theirs is not None:
                pair = self.flows[0].values[number], self.partners.of_left[number]
                stretch.inputs[number] = self._best(*pair, ours, theirs)
        stretch.outputs[value.number] = self._best(value, match, [value.made], [match.made])
        return stretch

    def _shown(self, ours: list[int], theirs: list[int]) -> Shown:
        """Of the tensors of two values a pair of equal shape, if there is one."""
        left, right = self.flows[0].columns.shapes, self.flows[1].columns.shapes
        for a, b in product(ours, theirs):
            if left[a] == right[b]:
                return a, b
        return ours[0], theirs[0]

    def _best(self, value: Value, match: Value, ours: list[int], theirs: list[int]) -> Shown:
        """The tensors of two values by which to compare them: a pair of equal shape.

        Those given are tried first, then whatever else shows one of the values.
        """
        left, right = self.flows[0].columns.shapes, self.flows[1].columns.shapes
        best = ours[0], theirs[0]
        for first, second in product((ours, value.places), (theirs, match.places)):
            a, b = self._shown(first, second)
            if left[a] == right[b]:
                best = a, b
                break
        self.others[best] = value.places, match.places
        return best

    # -- the backward pass

    def backward(self) -> Iterator[Stretch]:
        """What makes each paired gradient of those behind it."""
        shown = self.shown = self._paired_gradients()
        self._stops = self._known_on_the_right() if self.flows[1].is_graph else {}
        by_calls: dict[tuple[int, ...], Stretch] = {}
        for value in self.flows[0].values:
            pair = shown.get(value.number)
            if pair is None:
                continue
            behind: dict[int, Shown] = {}
            calls = self._behind(value, shown, behind)
            if not calls or self._is_residue(pair, behind):
                continue
            match = self.partners.of_left[value.number]
            ours = _gradient_calls(self.flows[0], calls) or calls
            theirs = self._right_calls(match, pair, shown, [b for _, b in behind.values()])
            if not theirs:  # handed on
                continue
            key = tuple(op.index for op in calls)
            stretch = by_calls.setdefault(key, Stretch(ours, theirs, "backward", calls[-1].call))
            stretch.right = _merged(stretch.right, theirs)
            stretch.inputs |= behind
            stretch.outputs[value.number] = pair
            maker = value.maker and self.flows[0].gradient_calls.get(value.maker.call)
            is_sum = all(family(op.type) == "sum" for op in calls)
            if is_sum and maker is not None:  # who else reads it may not be dumped, and run later
                stretch.before = max(stretch.before, maker.index)
        yield from by_calls.values()

    def _paired_gradients(self) -> dict[int, Shown]:
        """Tensors that show the gradients of paired values, by the number of the left value."""
        paired: dict[int, Shown] = {}
        ours, theirs = self.gradients
        if not self.flows[0].is_graph and not self.flows[1].is_graph:
            for number, match in self.partners.of_left.items():
                if number in ours and match.number in theirs:
                    pair = paired[number] = ours[number], theirs[match.number]
                    if match.maker is None:  # a matrix may be kept the other way round
                        self.others[pair] = [pair[0]], [pair[1]]
            return paired
        self.partners.gradients_by_figures()
        which = 1 if self.flows[1].is_graph else 0
        flow, columns = self.flows[1 - which], self.flows[which].columns
        known = self.partners.of_right if which == 0 else self.partners.of_left
        for number, place in self.gradients[1 - which].items():
            if self._other(number, 1 - which) < 0:
                continue
            value = flow.at(place, True)
            match = known.get(value.number) if value is not None else None
            other = self.gradients[which].get(self._other(number, 1 - which))
            if other is None and match is not None:
                shape = flow.columns.shapes[place]
                same = (tensor for tensor in match.places if columns.shapes[tensor] == shape)
                other = next(same, match.places[0])
                pair = (place, other) if which else (other, place)
                self.others[pair] = ([place], match.places) if which else (match.places, [place])
            if other is None:
                continue
            self.others.setdefault((place, other) if which else (other, place), ([place], [other]))
            mine = self._other(number, 1) if which == 0 else number
            paired[mine] = (place, other) if which else (other, place)
        return paired

    def _known_on_the_right(self) -> dict[int, Value]:
        """Values of the right graph at which a gradient's calls end: forward, or paired."""
        flow = self.flows[1]
        paired = (flow.at(place) for _, place in self.shown.values())
        made = (v for v in flow.values if v.maker is not None and v.maker.index in flow.forward)
        return {value.number: value for value in (*paired, *made) if value is not None}

    def _other(self, number: int, which: int) -> int:
        """The partner of a value of the left (0) or right (1) flow; -1 if it has none."""
        match = (self.partners.of_right if which else self.partners.of_left).get(number)
        return -1 if match is None else match.number

    def _behind(
        self, value: Value, shown: Mapping[int, Shown], behind: dict[int, Shown]
    ) -> list[Op]:
        """Calls of the left run between a value and the next ones whose gradients are paired."""
        flow = self.flows[0]
        calls: dict[int, Op] = {}
        pending = flow.forward_readers(value)
        while pending:
            op = pending.pop()
            if op.index in calls:
                continue
            calls[op.index] = op
            for made in flow.outputs(op):
                if made.number in shown:
                    behind[made.number] = shown[made.number]
                else:
                    pending += flow.forward_readers(made)
        return [calls[index] for index in sorted(calls)]

    def _right_calls(
        self, match: Value, pair: Shown, shown: Mapping[int, Shown], given: Sequence[int]
    ) -> list[Op]:
        """Calls of the right run that make a gradient of those behind it."""
        flow = self.flows[1]
        if flow.is_graph:
            made = flow.at(pair[1])
            if made is None or made.maker is None:
                return []
            behind = {
                origin.number: origin for place in given if (origin := flow.at(place)) is not None
            }
            if made.number in behind:
                return []
            return _slice(flow, made, self._stops).calls
        partners = self.partners.of_right
        calls: dict[int, Op] = {}
        pending = flow.forward_readers(match)
        while pending:
            op = pending.pop()
            if op.index not in calls:
                calls[op.index] = op
                for value in flow.outputs(op):
                    partner = partners.get(value.number)
                    if partner is None or partner.number not in shown:
                        pending += flow.forward_readers(value)
        return _gradient_calls(flow, calls.values())

    def _is_residue(self, pair: Shown, behind: Mapping[int, Shown]) -> bool:
        """Whether a gradient is nothing but rounding: its terms cancel, as of a key's bias."""
        columns: tuple[Columns, Columns] = self.flows[0].columns, self.flows[1].columns
        for side, place in zip(columns, pair, strict=True):
            which = 0 if side is columns[0] else 1
            norms = [side.norm[places[which]] for places in behind.values()]
            if norms and side.norm[place] < _RESIDUE * max(norms):
                return True
        return False


def _merged(ours: Iterable[Op], more: Iterable[Op]) -> list[Op]:
    by_index = {op.index: op for op in (*ours, *more)}
    return [by_index[index] for index in sorted(by_index)]


class _Slice(NamedTuple):
    """Calls that make a value, tensors of known values that they read, values from outside."""

    calls: list[Op]
    given: dict[int, list[int]]
    lone: list[Value]


def _slice(flow: Flow, value: Value, known: Mapping[int, Value]) -> _Slice:
    """Calls that make a value of known ones."""
    calls: dict[int, Op] = {}
    given: dict[int, list[int]] = {}
    lone: dict[int, Value] = {}
    pending = [value.maker] if value.maker is not None else []
    while pending:
        op = pending.pop()
        if op.index in calls:
            continue
        calls[op.index] = op
        read = [(place, flow.value(place)) for place in op.inputs]
        for place, source in (*read, *((value.made, value) for value in flow.scalars(op))):
            if source is None:
                continue
            if source.number in known:
                given.setdefault(source.number, []).append(place)
            elif source.maker is None:
                lone[source.number] = source
            elif source.maker.index < op.index:
                pending.append(source.maker)
    return _Slice([calls[index] for index in sorted(calls)], given, list(lone.values()))


def _alike(ours: Sequence[Value], theirs: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    """Values that come from outside on both sides and are the only ones of their size."""
    for value in ours:
        size = value.size
        rows = [[v for v in side if v.size == size and v.size > 1] for side in (ours, theirs)]
        if len(rows[0]) == len(rows[1]) == 1:
            yield value, rows[1][0]


def _gradient_calls(flow: Flow, calls: Iterable[Op]) -> list[Op]:
    """Gradients of some calls, in the order in which they ran."""
    gradients = (flow.gradient_calls.get(op.call) for op in calls)
    return sorted((op for op in gradients if op is not None), key=lambda op: op.index)
