"""Similarity: pairs of operators of one scope that agree in enough to be the same one, changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from irtool.compare.identity import scope_pattern
from irtool.compare.side import From, Operand, Side

ENOUGH = 0.5
"""Least share of evidence that must agree; below, two operators are not called the same."""
_MOST = 400
"""Largest number of candidates of one scope on a side that are compared with each other."""


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
        for rank, index in enumerate(members):
            for place, other in enumerate(others):
                score = similarity(sides, left, index, other)
                if score >= ENOUGH:
                    scored.append((-score, abs(rank - place), index, other))
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, _, index, other in sorted(scored):
        if index not in taken[0] and other not in taken[1]:
            pairs.append((index, other))
            taken[0].add(index)
            taken[1].add(other)
    return pairs


def similarity(sides: tuple[Side, Side], left: Mapping[int, int], index: int, other: int) -> float:
    """Share of the evidence that agrees: operands (twice), readers, type, attributes, scope.

    Args:
        sides: the left and the right side.
        left: match of each matched operator of the left side.
        index: an operator of the left side.
        other: an operator of the right side.

    Returns:
        From 0 to 1.
    """
    ours, theirs = sides[0].operators[index], sides[1].operators[other]
    operands = max(len(ours.operands), len(theirs.operands))
    same = sum(
        same_operand(mine, yours, left)
        for mine, yours in zip(ours.operands, theirs.operands, strict=False)
    )
    readers = {left[user] for user, _ in sides[0].readers[index] if user in left}
    others = {user for user, _ in sides[1].readers[other]}
    evidence = [
        (2.0, same / operands if operands else 1.0),
        (1.0, _overlap(readers, others)),
        (0.5, float(sides[0].types[index] == sides[1].types[other])),
        (0.5, float(ours.attributes == theirs.attributes)),
        (0.5, float(ours.node.scope == theirs.node.scope)),
    ]
    return sum(weight * value for weight, value in evidence) / sum(w for w, _ in evidence)


def same_operand(mine: Operand, yours: Operand, left: Mapping[int, int]) -> bool:
    """Whether two operands are the same: made by matched operators, or equal in themselves."""
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


def _overlap(left: set[int], right: set[int]) -> float:
    return len(left & right) / len(left | right) if left or right else 1.0


def _grouped(side: Side, taken: Mapping[int, int]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for operator in side.operators:
        if operator.index not in taken:
            key = (operator.op, scope_pattern(operator.node.scope), operator.phase)
            groups.setdefault(key, []).append(operator.index)
    return groups
