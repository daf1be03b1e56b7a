"""Sizes that are the same size wherever they stand: factors, products and sums of them.

Every dimension of every tensor is a product of factors, in row-major order.  Two dimensions that an
operator lays along one axis are made equal factor by factor: where one side has a larger factor,
that factor becomes a product.  So a Reshape of (batch · sequence, heads · head size) tells its
parts apart though the numbers may coincide.  What cuts an axis, or joins several, makes it a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from math import prod
from typing import TypeAlias

from irtool.ir.dataclass import dataclass

Product: TypeAlias = tuple[int, ...]
"""Factors by number, outermost first; empty: 1."""

ONE: Product = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two dimensions that an operator makes equal and that have no common factors.

    Attributes:
        left, right: their factors.
        place: of the operator.
    """

    left: Product
    right: Product
    place: object


@dataclass(eq=False, slots=True)
class Sizes:
    """All factors.

    Attributes:
        size: of each factor, as the dump has it.
        parent: the factor that one was found to be the same as, or itself.
        products: of what a factor is the product.
        sums: of what a factor is the sum.
        fixed: factors that belong to the code, and are no size of the network.
        conflicts: what could not be made equal.
    """

    size: list[int] = field(default_factory=list[int])
    parent: list[int] = field(default_factory=list[int])
    products: dict[int, Product] = field(default_factory=dict[int, Product])
    sums: dict[int, tuple[Product, ...]] = field(default_factory=dict[int, "tuple[Product, ...]"])
    fixed: set[int] = field(default_factory=set[int])
    conflicts: list[Conflict] = field(default_factory=list[Conflict])

    def new(self, size: int, *, fixed: bool = False) -> Product:
        """A dimension of which nothing is known but its size; 1 has no factors."""
        if size == 1:
            return ONE
        number = len(self.size)
        self.size.append(size)
        self.parent.append(number)
        if fixed:
            self.fixed.add(number)
        return (number,)

    def root(self, factor: int) -> int:
        """The factor that stands for all that are the same."""
        while self.parent[factor] != factor:
            self.parent[factor] = self.parent[self.parent[factor]]
            factor = self.parent[factor]
        return factor

    def factors(self, product: Product) -> Product:
        """A product's factors, those that are products themselves taken apart.

        Args:
            product: factors by number, outermost first.
        """
        roots: list[int] = []
        for factor in product:
            root = self.root(factor)
            parts = self.products.get(root)
            roots += [root] if parts is None else self.factors(parts)
        return tuple(roots)

    def value(self, product: Product) -> int:
        """The number that a product is in the dump."""
        return prod(self.size[factor] for factor in product)

    def is_fixed(self, factor: int) -> bool:
        """Whether a factor is a number of the code."""
        return self.root(factor) in self.fixed

    # -- equal -----------------------------------------------------------------------------------

    def equate(self, left: Product, right: Product, place: object = None) -> None:
        """Note that two dimensions (or rows of them, in row-major order) are the same."""
        ours, theirs = list(self.factors(left)), list(self.factors(right))
        if self.value(tuple(ours)) != self.value(tuple(theirs)):
            self.conflicts.append(Conflict(left, right, place))
            return
        if self._is_permuted(ours, theirs):
            theirs.sort(key=lambda factor: [self.size[other] for other in ours].index(
                self.size[factor]))  # fmt: skip
        while ours and theirs:
            a, b = self.root(ours.pop(0)), self.root(theirs.pop(0))
            if a == b:
                continue
            if self.size[a] == self.size[b]:
                self._join(a, b, place)
            elif self.size[a] % self.size[b] == 0:
                ours[:0] = self._cut(a, b)
            elif self.size[b] % self.size[a] == 0:
                theirs[:0] = self._cut(b, a)
            else:
                self.conflicts.append(Conflict(left, right, place))
                return

    def _is_permuted(self, ours: list[int], theirs: list[int]) -> bool:
        """Whether two products have factors of the same sizes, each once, in another order.

        Rows that are counted batch first on one side and sequence first on the other are as many.
        """
        left, right = ([self.size[factor] for factor in factors] for factors in (ours, theirs))
        return left != right and len(set(left)) == len(left) and sorted(left) == sorted(right)

    def _cut(self, factor: int, first: int) -> Product:
        """Make a factor the product of a given first one and a new one; the new one."""
        rest = self.new(self.size[factor] // self.size[first])
        self.products[factor] = (first, *rest)
        return rest

    def _join(self, a: int, b: int, place: object) -> None:
        """Make two factors of one size the same one."""
        if b in self.products or (b in self.sums and a not in self.products):
            a, b = b, a  # what is known more of stands for both
        own, other = self.sums.get(a), self.sums.pop(b, None)
        self.parent[b] = a
        if b in self.fixed:
            self.fixed.discard(b)
            self.fixed.add(a)
        parts = self.products.pop(b, None)
        if parts is not None:
            if a in self.products:
                self.equate(self.products[a], parts, place)
            else:
                self.products[a] = parts
        if other is None:
            return
        if own is None:
            self.sums[a] = other
        elif [self.value(part) for part in own] == [self.value(part) for part in other]:
            for left, right in zip(own, other, strict=True):
                self.equate(left, right, place)

    def is_sum(self, product: Product, parts: Iterable[Product], place: object = None) -> None:
        """Note that a dimension is made of parts that lie behind one another."""
        terms = tuple(parts)
        if len(terms) == 1:
            self.equate(product, terms[0], place)
            return
        total = self.new(sum(self.value(part) for part in terms))
        if total == ONE:
            return
        self.sums[total[0]] = terms
        self.equate(product, total, place)

    # -- other sizes -----------------------------------------------------------------------------

    def terms(self, factor: int) -> tuple[Product, ...] | None:
        """What a factor is the sum of; None: nothing is known of parts."""
        return self.sums.get(self.root(factor))

    def leaves(self, product: Product) -> Iterator[int]:
        """Factors that a product depends on: of sums those of their parts."""
        todo, seen = list(self.factors(product)), set[int]()
        while todo:
            factor = todo.pop(0)
            if factor in seen:
                continue
            seen.add(factor)
            parts = self.terms(factor)
            if parts is None:
                yield factor
            else:
                todo += [inner for part in parts for inner in self.factors(part)]

    def scaled(self, product: Product, targets: Mapping[int, int]) -> int:
        """The number that a product is where some factors have other sizes."""
        number = 1
        for factor in self.factors(product):
            parts = self.terms(factor)
            if factor in targets:
                number *= targets[factor]
            elif parts is None or factor in self.fixed:
                number *= self.size[factor]
            else:
                number *= sum(self.scaled(part, targets) for part in parts)
        return number
