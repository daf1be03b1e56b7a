"""The least sum of tables over choices, by eliminating one choice after another.

Each variable has a table of one number a choice; some pairs of variables have a table of both.
Eliminating a variable puts the best it can do into one table over its neighbours (Bertele and
Brioschi's nonserial dynamic programming; bucket elimination, Dechter 1999), so that what is left
over at the end is the optimum, not an estimate.  Tables that are the same object give results that
are the same object, so parts that repeat, with the same behind them, are eliminated once.  Where a
table would become too large, its bucket is divided (mini-buckets, Dechter and Rish 2003): what is
found then is a lower bound, and a choice that is good but perhaps not the best.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_ENTRIES = 30_000_000
"""Entries of one table; larger ones are divided."""
MOST_SUMS = 16
"""Sums that are looked at for a table, over the entries that it may have."""


PIECE = 1 << 17
"""Entries of a sum that are made at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Numbers over some variables, in ascending order of the variables."""

    variables: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class Solution:
    """A choice for every variable, its sum, and what no choice can be below."""

    choices: tuple[int, ...]
    value: float
    bound: float

    @property
    def is_optimal(self) -> bool:
        """Whether the sum is the least there is."""
        return self.value <= self.bound * (1 + 1e-12) + 1e-15


@dataclass(slots=True)
class Memo:
    """Eliminations done so far, by the tables that went in; it keeps them alive."""

    results: dict[object, Floats] = field(default_factory=dict[object, Floats])
    kept: list[Floats] = field(default_factory=list[Floats])

    def clear(self) -> None:
        """Forget everything."""
        self.results.clear()
        self.kept.clear()


def solve(
    sizes: Sequence[int],
    unary: Sequence[Floats],
    pairs: Sequence[Table],
    memo: Memo | None = None,
    most: int = MOST_ENTRIES,
) -> Solution:
    """The choices with the least sum.

    Args:
        sizes: how many choices each variable has.
        unary: the numbers of each variable's choices.
        pairs: tables over two variables each.
        memo: eliminations of earlier calls; give the same one to be quick where little changed.
        most: entries of the largest table that may be made.
    """
    memo = memo if memo is not None else Memo()
    buckets: dict[int, list[Table]] = {
        variable: [Table((variable,), values)] for variable, values in enumerate(unary)
    }
    for table in pairs:
        for variable in table.variables:
            buckets[variable].append(table)
    order: list[tuple[int, list[Table]]] = []
    bound = 0.0
    neighbours = {
        variable: {other for table in tables for other in table.variables} - {variable}
        for variable, tables in buckets.items()
    }
    heap = [(_size(sizes, near), variable) for variable, near in neighbours.items()]
    heapq.heapify(heap)
    left = set(buckets)
    while heap:
        size, variable = heapq.heappop(heap)
        if variable not in left or size != _size(sizes, neighbours[variable]):
            continue
        left.discard(variable)
        own = buckets.pop(variable)
        order.append((variable, own))
        made = _eliminated(variable, own, sizes, memo, most)
        gone = {id(table) for table in own}
        for other in neighbours[variable]:
            buckets[other] = [table for table in buckets[other] if id(table) not in gone]
        for table in made:
            if not table.variables:
                bound += float(table.values)
            for other in table.variables:
                buckets[other].append(table)
        for other in neighbours.pop(variable):
            near = {each for table in buckets[other] for each in table.variables} - {other}
            neighbours[other] = near
            heapq.heappush(heap, (_size(sizes, near), other))
    choices = _decoded(order, len(sizes))
    return Solution(choices, value_of(choices, unary, pairs), bound)


def value_of(choices: Sequence[int], unary: Sequence[Floats], pairs: Sequence[Table]) -> float:
    """The sum of all tables for given choices."""
    total = sum(float(values[choices[variable]]) for variable, values in enumerate(unary))
    for table in pairs:
        total += float(table.values[tuple(choices[variable] for variable in table.variables)])
    return total


def _size(sizes: Sequence[int], variables: set[int]) -> int:
    found = 1
    for variable in variables:
        found *= sizes[variable]
    return found


def _eliminated(
    variable: int, tables: list[Table], sizes: Sequence[int], memo: Memo, most: int
) -> list[Table]:
    """What is left of a bucket: one table over its neighbours, or several smaller ones."""
    groups: list[list[Table]] = []
    ordered = sorted(tables, key=lambda table: -table.values.size)
    everything = {other for table in tables for other in table.variables}

    def fits(variables: set[int]) -> bool:
        size = _size(sizes, variables)
        return size <= most * MOST_SUMS and size <= most * sizes[variable]

    if fits(everything):
        groups = [tables]
    else:
        for table in ordered:
            for group in groups:
                union = {other for each in group for other in each.variables}
                if fits(union | set(table.variables)):
                    group.append(table)
                    break
            else:
                groups.append([table])
    return [_least(variable, group, sizes, memo) for group in groups]


def _least(variable: int, tables: list[Table], sizes: Sequence[int], memo: Memo) -> Table:
    """The least over one variable of the sum of some tables."""
    union = sorted({other for table in tables for other in table.variables})
    place = {other: at for at, other in enumerate(union)}
    parts = sorted(
        (id(table.values), tuple(place[other] for other in table.variables)) for table in tables
    )
    key = (place[variable], tuple(sizes[other] for other in union), tuple(parts))
    rest = tuple(other for other in union if other != variable)
    found = memo.results.get(key)
    if found is None:
        parts = [
            np.reshape(table.values, [sizes[v] if v in table.variables else 1 for v in union])
            for table in tables
        ]
        found = _least_sum(parts, [sizes[other] for other in union], place[variable])
        memo.results[key] = found
        memo.kept += [table.values for table in tables]
    return Table(rest, found)


def _least_sum(parts: list[Floats], shape: list[int], axis: int) -> Floats:
    """The least along one axis of a sum of arrays that are broadcast to a shape.

    Large sums are made piece by piece along the other axes, so that a piece stays in the cache.
    """
    outer = sorted((at for at in range(len(shape)) if at != axis), key=lambda at: shape[at])
    inner = prod(shape)
    cut: list[int] = []
    while inner > PIECE and len(outer) > 1:
        cut.append(outer.pop(0))
        inner //= shape[cut[-1]]
    base = [part for part in parts if all(part.shape[at] == 1 for at in cut)]
    others = [part for part in parts if not all(part.shape[at] == 1 for at in cut)]
    common = _sum(base, [1 if at in cut else size for at, size in enumerate(shape)])
    found = np.empty([1 if at == axis else size for at, size in enumerate(shape)])
    for places in product(*(range(shape[at]) for at in cut)):
        total = common
        for part in others:
            total = total + _piece(part, cut, places)
        _piece(found, cut, places)[...] = total.min(axis=axis, keepdims=True)
    return found.squeeze(axis)


def _piece(values: Floats, cut: list[int], places: tuple[int, ...]) -> Floats:
    """The part of an array at some places of some axes; the axes stay."""
    index = [slice(None)] * values.ndim
    for at, place in zip(cut, places, strict=True):
        if values.shape[at] > 1:
            index[at] = slice(place, place + 1)
    return values[tuple(index)]


def _sum(parts: list[Floats], shape: list[int]) -> Floats:
    total = np.zeros(shape)
    for part in parts:
        total += part
    return total


def _decoded(order: list[tuple[int, list[Table]]], count: int) -> tuple[int, ...]:
    """The choices, from the variable that was eliminated last to the first."""
    chosen: dict[int, int] = {}
    for variable, tables in reversed(order):
        total: Floats | float = 0.0
        for table in tables:
            place = tuple(
                slice(None) if other == variable else chosen[other] for other in table.variables
            )
            total = total + table.values[place]
        chosen[variable] = int(np.argmin(total))
    return tuple(chosen[variable] for variable in range(count))


__all__ = ["MOST_ENTRIES", "Floats", "Memo", "Solution", "Table", "solve", "value_of"]
