"""Similarity: pairs of operators of one scope that agree in enough to be the same one, changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from operator import eq
from typing import NamedTuple

from irtool.compare.identity import scope_pattern
from irtool.compare.side import From, Operand, Side

ENOUGH = 0.5
"""Least share of evidence that must agree; below, two operators are not called the same."""
_MOST = 400
"""Largest number of candidates of one scope on a side that are compared with each other."""
_ALL_EVIDENCE = 4.5
"""What the weights of all evidence come to (:func:`_similarity`)."""


def similar_pairs(
    sides: tuple[Side, Side], left: Mapping[int, int], right: Mapping[int, int]
) -> list[tuple[int, int]]:
    """The best pairs of free operators of the same name and scope, each operator once.

    Pairs are taken from the most similar on; of equally similar ones the first in order.

    Args:
        sides: the left and the right side.
        left: match of each matched operator of the left side.
        right: match of each matched operator of the right side.

    Returns:
        Pairs of operators by index.
    """
    groups = [_grouped(sides[0], left), _grouped(sides[1], right)]
    scored: list[tuple[float, int, int, int]] = []
    for key, members in groups[0].items():
        others = groups[1].get(key, [])
        if not others or len(members) * len(others) > _MOST * _MOST:
            continue
        seen = _Seen(left)
        theirs = [seen.right(sides[1], other) for other in others]
        for rank, index in enumerate(members):
            ours = seen.left(sides[0], index)
            for place, one in enumerate(theirs):
                score = _similarity(ours, one)
                if score >= ENOUGH:
                    scored.append((-score, abs(rank - place), index, others[place]))
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, _, index, other in sorted(scored):
        if index not in taken[0] and other not in taken[1]:
            pairs.append((index, other))
            taken[0].add(index)
            taken[1].add(other)
    return pairs


class _Evidence(NamedTuple):
    """What is compared of an operator; equal numbers stand for what is equal.

    Attributes:
        operands: those of the left side as their matches; 0 for one that has none.
        readers: numbers on the right side of the operators that read it.
        kind: of its type.
        attributes: of these.
        scope: of this.
    """

    operands: tuple[int, ...]
    readers: frozenset[int]
    kind: int
    attributes: int
    scope: int


class _Seen:
    """Gives equal things of the operators of one scope equal numbers: each is compared often.

    Args:
        matched: match of each matched operator of the left side.
    """

    def __init__(self, matched: Mapping[int, int]) -> None:
        self._matched = matched
        self._numbers: dict[Hashable, int] = {}
        self._attributes: list[dict[str, object]] = []

    def left(self, side: Side, index: int) -> _Evidence:
        """What counts of an operator of the left side."""
        readers = (self._matched.get(user) for user, _ in side.readers[index])
        return self._evidence(
            side,
            index,
            tuple(map(self._matched_operand, side.operators[index].operands)),
            frozenset(user for user in readers if user is not None),
        )

    def right(self, side: Side, index: int) -> _Evidence:
        """What counts of an operator of the right side."""
        operands = side.operators[index].operands
        readers = frozenset(user for user, _ in side.readers[index])
        return self._evidence(side, index, tuple(map(self._number, operands)), readers)

    def _evidence(
        self, side: Side, index: int, operands: tuple[int, ...], readers: frozenset[int]
    ) -> _Evidence:
        operator = side.operators[index]
        return _Evidence(
            operands,
            readers,
            self._number(("type", side.types[index])),
            self._attributes_number(operator.attributes),
            self._number(("scope", operator.node.scope)),
        )

    def _matched_operand(self, operand: Operand) -> int:
        match = _as_matched(operand, self._matched)
        return 0 if match is None else self._number(match)

    def _number(self, thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers) + 1)

    def _attributes_number(self, attributes: dict[str, object]) -> int:
        try:
            return self._attributes.index(attributes)
        except ValueError:
            self._attributes.append(attributes)
            return len(self._attributes) - 1


def _as_matched(operand: Operand, matched: Mapping[int, int]) -> Operand | None:
    """What an operand of the left side is on the right one; None of one that is not there."""
    if isinstance(operand, From):
        match = matched.get(operand.operator)
        return None if match is None else From(match, operand.element)
    if isinstance(operand, tuple):
        items = [_as_matched(item, matched) for item in operand]
        known = tuple(item for item in items if item is not None)
        return known if len(known) == len(items) else None
    return operand


def _similarity(ours: _Evidence, theirs: _Evidence) -> float:
    """Share of the evidence that agrees: operands (twice), readers, type, attributes, scope."""
    operands = max(len(ours.operands), len(theirs.operands))
    same = sum(map(eq, ours.operands, theirs.operands)) / operands if operands else 1.0
    agreeing = (
        2.0 * same
        + _overlap(ours.readers, theirs.readers)
        + 0.5 * (ours.kind == theirs.kind)
        + 0.5 * (ours.attributes == theirs.attributes)
        + 0.5 * (ours.scope == theirs.scope)
    )
    return agreeing / _ALL_EVIDENCE


def same_operand(mine: Operand, yours: Operand, left: Mapping[int, int]) -> bool:
    """Whether two operands are the same: made by matched operators, or equal in themselves.

    Args:
        mine: of the left operator.
        yours: of the right one.
        left: by index of an operator on the left side, that of its partner on the right.
    """
    if isinstance(mine, From):
        return (
            isinstance(yours, From)
            and left.get(mine.operator) == yours.operator
            and mine.element == yours.element
        )
    if isinstance(mine, tuple):
        if not isinstance(yours, tuple) or len(mine) != len(yours):
            return False
        return all(same_operand(a, b, left) for a, b in zip(mine, yours, strict=True))
    return mine == yours


def _overlap(left: frozenset[int], right: frozenset[int]) -> float:
    if not left or not right:
        return 0.0 if left or right else 1.0
    return len(left & right) / len(left | right)


def _grouped(side: Side, taken: Mapping[int, int]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for operator in side.operators:
        if operator.index not in taken:
            key = (operator.op, scope_pattern(operator.node.scope), operator.phase)
            groups.setdefault(key, []).append(operator.index)
    return groups
