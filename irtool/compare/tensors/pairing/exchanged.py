"""Whether calls changed places, or the weights that they read did.

Calls that read weights of the same values are the same call, in whatever order a side makes them:
so values of a weight that no other call has pair calls.  But a checkpoint may have exchanged the
weights of two layers, and then values say nothing of which call it is.  What tells are the modules
that the calls ran in; the data beside the weights, that of the first call above all, which comes
before what an exchange brings about; and for calls that read the same data, such as keys and values
of one layer, what reads their results.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Literal, NamedTuple, TypeAlias

from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family

Told: TypeAlias = Literal["order", "values"]
"""By what calls are paired whose weights stand elsewhere on the other side."""

_CLEARLY = 8.0
"""How many times nearer the data of one of two calls has to be to tell which of them it is."""
_MOST_STEPS = 8
"""Calls of one operand that are followed from a result to the call that combines it."""
_COMMUTATIVE = ("sum", "product")


class _Cycle(NamedTuple):
    """Calls of one kind that hold each other's weights: ``left[n]`` those of ``values[n]``.

    ``order[n]`` is the call of the right side that stands where ``left[n]`` does.
    """

    left: tuple[Op, ...]
    order: tuple[Op, ...]
    values: tuple[Op, ...]


class _Role(NamedTuple):
    """What becomes of a result: the calls of one operand that read it, and the one that ends them.

    ``operand`` is its label there, empty where operands may change places; ``end`` the place of
    that call in the order of execution, -1 where the dump does not show it.
    """

    path: tuple[str, ...]
    operand: str
    end: int


def placed(
    runs: tuple[TensorRun, TensorRun], groups: Iterable[Sequence[tuple[Op, Op]]]
) -> Iterator[tuple[Op, Op, Told]]:
    """Pairs of calls whose weights have the same values, set right where weights were exchanged.

    Args:
        runs: both dumps.
        groups: calls of one kind each, paired by the values of their weights.

    Yields:
        Pairs of calls, and by what they are the same one.
    """
    cycles: list[_Cycle] = []
    for group in groups:
        for cycle in _cycles(group):
            if len(cycle.left) == 1:
                yield cycle.left[0], cycle.values[0], "values"
            else:
                cycles.append(cycle)
    readers = _Readers(runs[0]), _Readers(runs[1])
    decided: list[tuple[_Cycle, Told]] = []
    for cycle in sorted(cycles, key=lambda item: item.left[0].index):
        told = _told(runs, readers, cycle) or _inherited(decided, cycle)
        decided.append((cycle, told))
        others = cycle.order if told == "order" else cycle.values
        for ours, theirs in zip(cycle.left, others, strict=True):
            yield ours, theirs, told


def _told(
    runs: tuple[TensorRun, TensorRun], readers: tuple[_Readers, _Readers], cycle: _Cycle
) -> Told | None:
    """By what the calls of a cycle are paired; None where nothing of its own tells."""
    for told in (_by_owners(cycle), _by_data(runs, cycle)):
        if told is not None:
            return told
    return _by_readers(readers, cycle)


def _inherited(decided: Sequence[tuple[_Cycle, Told]], cycle: _Cycle) -> Told:
    """What was told of calls that run in between: whole layers that changed places, say."""
    for other, told in decided:
        if _overlap(cycle, other):
            return told
    return "values"  # calls in another order accuse nobody


def _cycles(group: Sequence[tuple[Op, Op]]) -> Iterator[_Cycle]:
    """The cycles of the permutation in which values stand on the right side; of one call mostly."""
    ranked = sorted(group, key=lambda pair: pair[0].index)
    order = sorted((right for _, right in group), key=lambda op: op.index)
    place = {op.index: n for n, op in enumerate(order)}
    seen: set[int] = set()
    for start in range(len(ranked)):
        members: list[int] = []
        n = start
        while n not in seen:
            seen.add(n)
            members.append(n)
            n = place[ranked[n][1].index]
        if members:
            members.sort()
            yield _Cycle(
                tuple(ranked[n][0] for n in members),
                tuple(order[n] for n in members),
                tuple(ranked[n][1] for n in members),
            )


def _overlap(cycle: _Cycle, other: _Cycle) -> bool:
    """Whether calls of both run in between each other."""
    return cycle.left[0].index < other.left[-1].index and other.left[0].index < cycle.left[-1].index


def _by_owners(cycle: _Cycle) -> Told | None:
    """By the modules that the calls ran in, where both dumps know them."""
    ours = [op.owner for op in cycle.left]
    if not all(ours):
        return None
    if ours == [op.owner for op in cycle.values]:
        return "values" if len(set(ours)) > 1 else None
    return "order" if ours == [op.owner for op in cycle.order] else None


def _by_data(runs: tuple[TensorRun, TensorRun], cycle: _Cycle) -> Told | None:
    """By the data beside the weights, of the first call that makes a difference."""
    for ours, order, values in zip(cycle.left, cycle.order, cycle.values, strict=True):
        far = _distance(runs, ours, order), _distance(runs, ours, values)
        if _CLEARLY * far[0] < far[1]:
            return "order"
        if _CLEARLY * far[1] < far[0]:
            return "values"
    return None


def _distance(runs: tuple[TensorRun, TensorRun], left: Op, right: Op) -> float:
    """The largest relative difference of a figure of the data that two calls read; NaN for none."""
    data = [[place for place in op.inputs if place not in op.parameters] for op in (left, right)]
    if len(data[0]) != len(data[1]):
        return math.nan
    far: list[float] = []
    for a, b in zip(*data, strict=True):
        ours, theirs = _figures(runs[0], a), _figures(runs[1], b)
        scales = (ours[0], theirs[0]), (*map(abs, ours[1:]), *map(abs, theirs[1:]))
        for n, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            scale = max(scales[n > 0])
            if math.isfinite(x) and math.isfinite(y) and scale > 0:
                far.append(abs(x - y) / scale)
    return max(far, default=math.nan)


def _figures(run: TensorRun, place: int) -> tuple[float, float, float]:
    """Norm and extremes of a tensor."""
    columns = run.columns
    if math.isnan(columns.most[place]):
        complete(columns, place, False)
    return columns.norm[place], columns.most[place], columns.least[place]


def _by_readers(readers: tuple[_Readers, _Readers], cycle: _Cycle) -> Told | None:
    """By what reads the results: operands of a product cannot change places, nor can functions."""
    if not (readers[0].can_tell(cycle.left) and readers[1].can_tell(cycle.order)):
        return None
    ours, theirs = readers[0].roles(cycle.left), readers[1].roles(cycle.order)
    roles = {op.index: role for op, role in zip(cycle.order, theirs, strict=True)}
    by_order = sum(starmap(_alike, zip(ours, theirs, strict=True)))
    by_values = sum(_alike(a, roles[op.index]) for a, op in zip(ours, cycle.values, strict=True))
    if by_order == by_values:
        return None
    return "order" if by_order > by_values else "values"


def _alike(left: _Role, right: _Role) -> int:
    """How much two results have in common: 0, 1 for the same functions, 2 for the same operand."""
    return (left.path == right.path) * (1 + (left[1:] == right[1:]))


class _Readers:
    """The calls that read a tensor, known by its extremes, which views and repeats leave."""

    def __init__(self, run: TensorRun) -> None:
        self.run = run
        self._index: dict[Hashable, list[tuple[Op, int]]] | None = None

    def _of(self, op: Op, place: int) -> tuple[Op, int] | None:
        """The first call after one that reads its result, and as which tensor."""
        if self._index is None:
            self._index = {}
            for reader in self.run.ops:
                if reader.phase == "forward" and not reader.is_module:
                    for given in reader.inputs:
                        self._index.setdefault(self._key(given), []).append((reader, given))
        rows = self._index.get(self._key(place), ())
        return next((row for row in rows if row[0].index > op.index), None)

    def _key(self, place: int) -> Hashable:
        columns = self.run.columns
        return columns.most[place], columns.least[place]

    def can_tell(self, ops: Sequence[Op]) -> bool:
        """Whether the results of some calls can be told from each other."""
        return len({self._key(op.outputs[0]) for op in ops if op.outputs}) == len(ops)

    def roles(self, ops: Sequence[Op]) -> list[_Role]:
        """What becomes of the results of some calls; calls that end them are counted up."""
        roles = [self._role(op) for op in ops]
        ends = sorted({role.end for role in roles})
        return [role._replace(end=ends.index(role.end)) for role in roles]

    def _role(self, op: Op) -> _Role:
        path: list[str] = []
        columns = self.run.columns
        for _ in range(_MOST_STEPS):
            row = self._of(op, op.outputs[0]) if op.outputs else None
            if row is None:
                return _Role(tuple(path), "", -1)
            op, place = row
            kind = family(op.type)
            if kind not in ("view", "cast"):
                path.append(op.type)
            if sum(math.prod(columns.shapes[given]) > 1 for given in op.inputs) > 1:
                label = "" if kind in _COMMUTATIVE else columns.labels[place]
                return _Role(tuple(path), label, op.index)
        return _Role(tuple(path), "", -1)
