"""Sums that add the same terms in another order: equal on paper, not in floating point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from irtool.compare.matching import Matching
from irtool.compare.side import From, Operand, Side
from irtool.ir.dataclass import dataclass
from irtool.operators.table import operator_of


@dataclass(frozen=True, slots=True)
class ReorderedSum:
    """The additions of one sum on both sides, by their places."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    terms: int


def is_addition(op: str) -> bool:
    """Whether an operator gives the sum of its operands.

    Args:
        op: name of the primitive.
    """
    return operator_of(op).is_("adds")


def reordered_sums(matching: Matching) -> list[ReorderedSum]:
    """Sums whose terms are the same on both sides but are added up in another order.

    Args:
        matching: of two sides.

    Returns:
        The last one of the left side first.
    """
    sums: list[ReorderedSum] = []
    trees = {tree[0]: tree for tree in _trees(matching.sides[0])}
    others = {tree[0]: tree for tree in _trees(matching.sides[1])}
    for root, tree in trees.items():
        other = others.get(matching.left.get(root, -1))
        if other is None or len(tree) + len(other) < 3:
            continue
        ours = Counter(_terms(matching, 0, tree))
        if ours == Counter(_terms(matching, 1, other)) and not _same_form(matching, tree, other):
            sums.append(ReorderedSum(tree, other, sum(ours.values())))
    return sums


def _trees(side: Side) -> Iterator[tuple[int, ...]]:
    """Additions that feed each other and nothing else, the last one first."""
    inner: set[int] = set()
    for operator in reversed(side.operators):
        if not is_addition(operator.op) or operator.index in inner:
            continue
        tree = [operator.index]
        for index in tree:
            for _, made in side.operators[index].producers():
                producer = side.operators[made.operator]
                if is_addition(producer.op) and len(side.readers[made.operator]) == 1:
                    tree.append(made.operator)
                    inner.add(made.operator)
        yield tuple(tree)


def _terms(matching: Matching, which: int, tree: tuple[int, ...]) -> Iterator[Hashable]:
    """What a sum adds up, in terms of the left side."""
    inside = set(tree)
    for index in tree:
        for operand in matching.sides[which].operators[index].operands:
            yield from _flat(matching, which, operand, inside)


def _flat(matching: Matching, which: int, operand: Operand, inside: set[int]) -> Iterator[Hashable]:
    if isinstance(operand, tuple):
        for item in operand:
            yield from _flat(matching, which, item, inside)
    elif not isinstance(operand, From):
        yield operand
    elif operand.operator not in inside:
        match = matching.right.get(operand.operator) if which else operand.operator
        yield ("alone" if match is None else match, operand.element)


def _same_form(matching: Matching, tree: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether each addition of one side adds the same things as one of the other."""
    forms = [
        Counter(frozenset(Counter(_terms(matching, which, (index,))).items()) for index in members)
        for which, members in ((0, tree), (1, other))
    ]
    return forms[0] == forms[1]
