"""What is least around every choice: elimination there and back.

``exact`` eliminates one variable after another, and keeps what is least of all.
Going back the same mode, each variable learns from those that were eliminated behind it what the
rest takes at least, too (the cluster tree of the elimination, Kask, Dechter et al. 2005): then it
is known of every choice what the best sum with it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import field
from math import prod

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats, Table

MOST_ENTRIES = 4_000_000
"""Entries of a bucket that are looked at, at most."""

MOST_COPIES = 60
"""Variables that are chosen twice, at most."""


@dataclass(slots=True)
class Bucket:
    """A variable when it is eliminated.

    Attributes:
        variable: it.
        beside: variables that are left and share a table with it; ascending.
        tables: over it and one or more of those.
        children: buckets whose least numbers come in, by place in the tree.
        least: over ``beside``, the least of the bucket and of all that comes in.
        rest: over ``beside``, the least of everything else.
    """

    variable: int
    beside: tuple[int, ...]
    tables: list[Table]
    children: list[int]
    least: Floats = field(default_factory=lambda: np.zeros(()))
    rest: Floats = field(default_factory=lambda: np.zeros(()))


class TooWide(Exception):
    """A bucket would need more memory than it may have; ``variables``: those that it is over."""

    def __init__(self, variables: tuple[int, ...]) -> None:
        super().__init__(variables)
        self.variables = variables

    def __str__(self) -> str:
        return f"too many entries over {len(self.variables)} variables"


@dataclass(slots=True)
class Tree:
    """All buckets in the order of elimination."""

    sizes: Sequence[int]
    unary: Sequence[Floats]
    buckets: list[Bucket]

    @property
    def roots(self) -> list[Bucket]:
        """Buckets that nothing is left beside; each stands for a part of its own."""
        return [bucket for bucket in self.buckets if not bucket.beside]

    def spread(self, table: Floats, variables: tuple[int, ...], scope: tuple[int, ...]) -> Floats:
        """A table over some of a scope's variables, so that it broadcasts to the scope."""
        return np.reshape(table, [self.sizes[v] if v in variables else 1 for v in scope])

    def between(self, bucket: Bucket) -> Floats:
        """The sum of a bucket's tables over its scope, the numbers of the variable left out."""
        scope = scope_of(bucket)
        total = np.zeros([self.sizes[v] for v in scope])
        for table in bucket.tables:
            total += self.spread(table.values, table.variables, scope)
        return total

    def own(self, bucket: Bucket) -> Floats:
        """The sum of a bucket's tables over its scope, the numbers of the variable included."""
        variable = bucket.variable
        return self.between(bucket) + self.spread(
            self.unary[variable], (variable,), scope_of(bucket)
        )

    def inside(self, bucket: Bucket) -> Floats:
        """Over a bucket's scope, the sum of its own tables and the least of what comes in."""
        scope = scope_of(bucket)
        total = self.own(bucket)
        for index in bucket.children:
            child = self.buckets[index]
            total += self.spread(child.least, child.beside, scope)
        return total

    def best_with(self, bucket: Bucket) -> Floats:
        """By choice of a bucket's variable, the least sum of everything."""
        scope = scope_of(bucket)
        total = self.inside(bucket) + self.spread(bucket.rest, bucket.beside, scope)
        axes = tuple(axis for axis, v in enumerate(scope) if v != bucket.variable)
        return total.min(axis=axes)


def scope_of(bucket: Bucket) -> tuple[int, ...]:
    """A bucket's variable and those beside it, ascending.

    Args:
        bucket: a variable when it is eliminated.
    """
    return tuple(sorted((bucket.variable, *bucket.beside)))


def tree_of(sizes: Sequence[int], unary: Sequence[Floats], tables: Sequence[Table]) -> Tree:
    """Eliminate there and back.

    Args:
        sizes: number of choices, by variable.
        unary: numbers by choice, by variable.
        tables: numbers over several variables.

    Returns:
        the tree, in which each bucket knows the least below it and of everything else.

    Raises:
        TooWide: there is too much to look at.
    """
    tree = Tree(sizes, unary, _ordered(sizes, tables))
    for bucket in tree.buckets:
        axis = scope_of(bucket).index(bucket.variable)
        bucket.least = tree.inside(bucket).min(axis=axis)
    for bucket in reversed(tree.buckets):
        if not bucket.beside:
            others = (float(root.least) for root in tree.roots if root is not bucket)
            bucket.rest = np.array(sum(others))
        _hand_down(tree, bucket)
    return tree


def loose_tree_of(sizes: Sequence[int], unary: Sequence[Floats], tables: Sequence[Table]) -> Tree:
    """A tree of what would be too wide, with numbers that nothing is below (mini-buckets).

    A variable that makes a bucket too wide is chosen twice: once beside some of its tables, once
    beside the others (Dechter and Rish 2003). The second ones stand behind all variables.

    Args:
        sizes: number of choices, by variable.
        unary: numbers by choice, by variable.
        tables: numbers over several variables.

    Raises:
        TooWide: that does not help.
    """
    sizes, unary, tables = list(sizes), list(unary), list(tables)
    for _ in range(MOST_COPIES):
        try:
            return tree_of(sizes, unary, tables)
        except TooWide as wide:
            own = {v: [t for t in tables if v in t.variables] for v in wide.variables}
            variable = max(wide.variables, key=lambda v: (len(own[v]) > 1, sizes[v], len(own[v])))
            if len(own[variable]) < 2:
                raise
            copy, moved = (
                len(sizes),
                {id(table) for table in own[variable][len(own[variable]) // 2 :]},
            )
            sizes.append(sizes[variable])
            unary.append(np.zeros(sizes[variable]))
            tables = [_beside(t, variable, copy) if id(t) in moved else t for t in tables]
    return tree_of(sizes, unary, tables)


def _beside(table: Table, old: int, new: int) -> Table:
    """A table over another variable, which stands behind all of its others."""
    axis = table.variables.index(old)
    rest = tuple(v for v in table.variables if v != old)
    return Table((*rest, new), np.moveaxis(table.values, axis, -1))


def _hand_down(tree: Tree, bucket: Bucket) -> None:
    """Tell the buckets that come in what is least around them."""
    if not bucket.children:
        return
    scope = scope_of(bucket)
    parts = [tree.own(bucket) + tree.spread(bucket.rest, bucket.beside, scope)]
    for index in bucket.children:
        child = tree.buckets[index]
        parts.append(tree.spread(child.least, child.beside, scope))
    for number, index in enumerate(bucket.children, 1):
        child = tree.buckets[index]
        total = sum(part for place, part in enumerate(parts) if place != number)
        axes = tuple(axis for axis, v in enumerate(scope) if v not in child.beside)
        child.rest = np.min(total, axis=axes)


def _ordered(sizes: Sequence[int], tables: Sequence[Table]) -> list[Bucket]:
    """Buckets without numbers: the variable with the smallest bucket first."""
    waiting: dict[int, list[Table]] = {variable: [] for variable in range(len(sizes))}
    near: dict[int, set[int]] = {variable: set() for variable in waiting}
    coming: dict[int, list[int]] = {variable: [] for variable in waiting}
    for table in tables:
        for variable in table.variables:
            waiting[variable].append(table)
            near[variable].update(table.variables)
    for variable in near:
        near[variable].discard(variable)

    def size(variable: int) -> int:
        return prod(sizes[v] for v in near[variable])

    heap = [(size(variable), variable) for variable in near]
    heapq.heapify(heap)
    buckets: list[Bucket] = []
    while heap:
        entries, variable = heapq.heappop(heap)
        if variable not in near or entries != size(variable):
            continue
        if entries * sizes[variable] > MOST_ENTRIES:
            raise TooWide((variable, *sorted(near[variable])))
        beside = near.pop(variable)
        number = len(buckets)
        buckets.append(
            Bucket(variable, tuple(sorted(beside)), waiting.pop(variable), coming.pop(variable))
        )
        gone = set(buckets[-1].children)
        for other in beside:
            near[other] = (near[other] | beside) - {variable, other}
            waiting[other] = [table for table in waiting[other] if variable not in table.variables]
            coming[other] = [child for child in coming[other] if child not in gone] + [number]
            heapq.heappush(heap, (size(other), other))
    return buckets
