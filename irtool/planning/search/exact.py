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

from collections.abc import Sequence
from dataclasses import field
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.planning.search.elimination import Elimination, Pattern, Step, order_of

Floats = npt.NDArray[np.float64]

MOST_ENTRIES = 30_000_000
"""Entries of one table; larger ones are divided."""
MOST_KEPT = 1 << 30
"""Bytes of results that are kept for later calls; beyond, they are made again."""
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


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """What an elimination left over, and which choice was best beside those that were asked for."""

    values: Floats
    best: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])


@dataclass(slots=True)
class Memo:
    """Eliminations done so far, by the tables that went in (it keeps them alive), and orders."""

    results: dict[object, Result] = field(default_factory=dict[object, Result])
    kept: list[Floats] = field(default_factory=list[Floats])
    orders: dict[object, tuple[Step, ...]] = field(default_factory=dict[object, tuple[Step, ...]])
    patterns: dict[Pattern, int] = field(default_factory=dict[Pattern, int])
    bytes: int = 0

    def clear(self) -> None:
        """Forget all eliminations and orders."""
        self.forget()
        self.orders.clear()

    def forget(self) -> None:
        """Forget all eliminations."""
        self.results.clear()
        self.kept.clear()
        self.bytes = 0

    def order(self, sizes: Sequence[int], tables: Sequence[Table], most: int) -> tuple[Step, ...]:
        """In which order variables are eliminated."""
        over = tuple(table.variables for table in tables)
        key = tuple(sizes), over, most
        if key not in self.orders:
            self.orders[key] = order_of(sizes, over, most, MOST_SUMS)
        return self.orders[key]

    def least(self, part: Elimination, values: list[Floats]) -> Result:
        """The least over a variable of the sum of some tables; ``values`` by slot."""
        tables = [values[slot] for slot in part.slots]
        pattern = self.patterns.setdefault(part.pattern, len(self.patterns))
        ids: Sequence[object] = [id(table) for table in tables]
        if part.alike:
            ids = sorted(zip(part.pattern[2], ids, strict=True))
        key = (pattern, *ids)
        result = self.results.get(key)
        if result is None:
            axis, shape, axes = part.pattern
            parts = [
                np.reshape(
                    table,
                    [
                        shape[dimension] if dimension in own else 1
                        for dimension in range(len(shape))
                    ],
                )
                for table, own in zip(tables, axes, strict=True)
            ]
            result = self.results[key] = Result(_least_sum(parts, list(shape), axis))
            self.kept += tables
            self.bytes += result.values.nbytes
        return result


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
    if memo.bytes > MOST_KEPT:
        memo.forget()
    steps = memo.order(sizes, pairs, most)
    values = [*unary, *(table.values for table in pairs)]
    results: list[Result] = []
    bound = 0.0
    for step in steps:
        for part in step.parts:
            made = memo.least(part, values)
            results.append(made)
            values.append(made.values)
            if not part.beside:
                bound += float(made.values)
    choices = _decoded(steps, values, results)
    return Solution(choices, value_of(choices, unary, pairs), bound)


def value_of(choices: Sequence[int], unary: Sequence[Floats], pairs: Sequence[Table]) -> float:
    """The sum of all tables for given choices.

    Args:
        choices: one for every variable.
        unary: numbers by choice, by variable.
        pairs: numbers over several variables.
    """
    total = sum(float(values[choices[variable]]) for variable, values in enumerate(unary))
    for table in pairs:
        total += float(table.values[tuple(choices[variable] for variable in table.variables)])
    return total


def _least_sum(parts: list[Floats], shape: list[int], axis: int) -> Floats:
    """The least along one axis of a sum of arrays that are broadcast to a shape.

    Large sums are made piece by piece along the other axes, so that a piece stays in the cache.
    """
    outer = sorted(
        (dimension for dimension in range(len(shape)) if dimension != axis),
        key=lambda dimension: shape[dimension],
    )
    inner = prod(shape)
    cut: list[int] = []
    while inner > PIECE and len(outer) > 1:
        cut.append(outer.pop(0))
        inner //= shape[cut[-1]]
    base = [part for part in parts if all(part.shape[dimension] == 1 for dimension in cut)]
    others = [part for part in parts if not all(part.shape[dimension] == 1 for dimension in cut)]
    common = _sum(base, [1 if dimension in cut else size for dimension, size in enumerate(shape)])
    least = np.empty([1 if dimension == axis else size for dimension, size in enumerate(shape)])
    for places in product(*(range(shape[dimension]) for dimension in cut)):
        total = common
        for part in others:
            total = total + _piece(part, cut, places)
        _piece(least, cut, places)[...] = total.min(axis=axis, keepdims=True)
    return least.squeeze(axis)


def _piece(values: Floats, cut: list[int], places: tuple[int, ...]) -> Floats:
    """The part of an array at some places of some axes; the axes stay."""
    index = [slice(None)] * values.ndim
    for axis, place in zip(cut, places, strict=True):
        if values.shape[axis] > 1:
            index[axis] = slice(place, place + 1)
    return values[tuple(index)]


def _sum(parts: list[Floats], shape: list[int]) -> Floats:
    """The sum of arrays, broadcast to a shape only where one of them is."""
    if not parts:
        return np.zeros(shape)
    total, *others = parts
    for part in others:
        total = total + part
    return np.broadcast_to(total, shape)


def _decoded(
    steps: Sequence[Step], values: Sequence[Floats], results: Sequence[Result]
) -> tuple[int, ...]:
    """The choices, from the variable that was eliminated last to the first."""
    chosen = [0] * len(steps)
    position = len(results)
    for step in reversed(steps):
        position -= len(step.parts)
        if len(step.parts) != 1:
            chosen[step.variable] = _best(step, values, chosen)
            continue
        best = results[
            position
        ].best  # of equal eliminations: beside equal choices the same is best
        key = tuple([chosen[other] for other in step.parts[0].beside])
        choice = best.get(key)
        if choice is None:
            choice = best[key] = _best(step, values, chosen)
        chosen[step.variable] = choice
    return tuple(chosen)


def _best(step: Step, values: Sequence[Floats], chosen: Sequence[int]) -> int:
    """The best choice of a variable beside those that are chosen already."""
    axis = step.parts[0].pattern[0]
    total = np.zeros(step.parts[0].pattern[1][axis])
    for part in step.parts:
        axis = part.pattern[0]
        names = [*part.beside[:axis], step.variable, *part.beside[axis:]]
        for slot, axes in zip(part.slots, part.pattern[2], strict=True):
            place = [
                slice(None) if dimension == axis else chosen[names[dimension]] for dimension in axes
            ]
            total += values[slot][tuple(place)]
    return int(np.argmin(total))


__all__ = ["MOST_ENTRIES", "Floats", "Memo", "Solution", "Table", "solve", "value_of"]
