"""Which operators of two dumps are the same: rounds of matching, from the surest to the weakest.

Each round looks at what no earlier one matched.  A match says which round made it:

1. ``identical``: everything that leads to the operator and everything that comes of it is equal.
2. ``same inputs``, ``same readers``: one of the two, where no other operator has it.
3. ``parameter``, ``source line``, ``scope``: identity by what the operator reads, the Python lines
   that made it and where it stands, where no other has the same.
4. ``structure``: as 1 and 2 without types, attributes and constants.
5. ``neighbours``: the only operator of its name at the same place of a matched neighbour, casts
   looked through.
6. ``order``: as many equal candidates on both sides, taken in order.
7. ``similar``: the most similar one of the same scope, if it is similar enough.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Literal, TypeAlias

from irtool.compare.fingerprints import Numbering, fingerprints, loose_content
from irtool.compare.identity import IDENTITIES, ORDERED, home
from irtool.compare.side import From, Side, content
from irtool.compare.similarity import similar_pairs

Round: TypeAlias = Literal[
    "given",
    "identical",
    "same inputs",
    "same readers",
    "parameter",
    "source line",
    "scope",
    "structure",
    "neighbours",
    "order",
    "similar",
]

CASTS = frozenset(("Cast", "TensorCast"))
"""Operators that one side may have alone between two others that are the same on both."""

Key: TypeAlias = Callable[[Side, int], Hashable]


class Matching:
    """Pairs of operators of two sides; ``left`` and ``right`` lead from one to the other."""

    def __init__(self, left: Side, right: Side) -> None:
        self.sides = (left, right)
        self.left: dict[int, int] = {}
        self.right: dict[int, int] = {}
        self.rounds: dict[int, Round] = {}
        self.is_identical = False
        self._pending: list[int] = []

    def pair(self, index: int, other: int, round: Round) -> None:
        """Match two operators that are still free."""
        self.left[index] = other
        self.right[other] = index
        self.rounds[index] = round
        self._pending.append(index)

    def free(self, which: int) -> list[int]:
        """Operators of one side (0 left, 1 right) that are not matched."""
        taken = self.right if which else self.left
        return [index for index in range(len(self.sides[which].operators)) if index not in taken]

    # -- rounds

    def by_key(self, round: Round, key: Key, in_order: bool = False) -> None:
        """Match operators whose key nobody else has; ``in_order`` also equal numbers of them."""
        groups = [self._grouped(which, key) for which in (0, 1)]
        for value, members in groups[0].items():
            others = groups[1].get(value, [])
            if len(members) != len(others) or (len(members) > 1 and not in_order):
                continue
            for index, other in zip(members, others, strict=True):
                if self._may_pair(index, other):
                    self.pair(index, other, round)

    def spread(self) -> None:
        """Match the neighbours of what was matched, as far as they leave no choice."""
        while self._pending:
            index = self._pending.pop()
            other = self.left[index]
            self._spread_to_producers(index, other)
            self._spread_to_readers(index, other)

    def _grouped(self, which: int, key: Key) -> dict[Hashable, list[int]]:
        groups: dict[Hashable, list[int]] = {}
        side = self.sides[which]
        for index in self.free(which):
            value = key(side, index)
            if value is not None:
                groups.setdefault(value, []).append(index)
        return groups

    def _may_pair(self, index: int, other: int) -> bool:
        """Whether a parameter speaks against a match: both read one, and not the same."""
        left, right = self.sides[0].operators[index], self.sides[1].operators[other]
        if left.op != right.op:
            return False
        ours, theirs = left.names(), right.names()
        return not ours or not theirs or bool(set(ours) & set(theirs)) or len(ours) != len(theirs)

    def _spread_to_producers(self, index: int, other: int) -> None:
        ours = dict(self.sides[0].operators[index].producers())
        theirs = dict(self.sides[1].operators[other].producers())
        for place, made in ours.items():
            match = theirs.get(place)
            if not isinstance(match, From):
                continue
            if made.element == match.element:
                self._pair_neighbours(made.operator, match.operator)
            mine, yours = self._solid(0, made), self._solid(1, match)
            if (mine, yours) != (made, match) and mine.element == yours.element:
                self._pair_neighbours(mine.operator, yours.operator)

    def _spread_to_readers(self, index: int, other: int) -> None:
        for kinship, through in ((home, False), (_name_alone, False), (_name_alone, True)):
            ours = self._free_readers(0, index, kinship, through)
            theirs = self._free_readers(1, other, kinship, through)
            for key, members in ours.items():
                others = theirs.get(key, [])
                if len(members) == 1 and len(others) == 1:
                    self._pair_neighbours(members[0], others[0])

    def _pair_neighbours(self, index: int, other: int) -> None:
        if index in self.left or other in self.right or not self._may_pair(index, other):
            return
        if self.sides[0].operators[index].phase == self.sides[1].operators[other].phase:
            self.pair(index, other, "neighbours")

    def _free_readers(
        self, which: int, index: int, kinship: Key, through: bool
    ) -> dict[Hashable, list[int]]:
        """Free readers by what they are and where they take it; ``through`` casts if wanted."""
        side, taken = self.sides[which], (self.left, self.right)[which]
        readers: dict[Hashable, list[int]] = {}
        queue = list(dict.fromkeys(side.readers[index]))
        for reader, place in queue:
            if reader in taken:
                continue
            if through and side.operators[reader].op in CASTS:
                queue += side.readers[reader]
            else:
                readers.setdefault((kinship(side, reader), place), []).append(reader)
        return readers

    def _solid(self, which: int, made: From) -> From:
        """What stands behind casts that are not matched: they may be on one side alone."""
        side, taken = self.sides[which], (self.left, self.right)[which]
        operator = side.operators[made.operator]
        while operator.op in CASTS and operator.index not in taken:
            source = operator.operands[0] if operator.operands else None
            if not isinstance(source, From):
                break
            made, operator = source, side.operators[source.operator]
        return made


def match(left: Side, right: Side, given: Iterable[tuple[int, int]] = ()) -> Matching:
    """Match the operators of two sides.

    Args:
        left: one side.
        right: the other.
        given: pairs that are known from elsewhere (a map file); they come first.
    """
    matching = Matching(left, right)
    for index, other in given:
        if index not in matching.left and other not in matching.right:
            matching.pair(index, other, "given")
    numbering = Numbering()
    full = [fingerprints(side, content, numbering) for side in (left, right)]
    matching.is_identical = _equal_as_a_whole(full[0].inputs, full[1].inputs)
    tables = {id(left): full[0], id(right): full[1]}

    def both(side: Side, index: int) -> Hashable:
        return tables[id(side)].inputs[index], tables[id(side)].readers[index]

    def inputs(side: Side, index: int) -> Hashable:
        return tables[id(side)].inputs[index]

    def readers(side: Side, index: int) -> Hashable:
        return tables[id(side)].readers[index]

    matching.by_key("identical", both, in_order=True)
    matching.by_key("same inputs", inputs)
    matching.by_key("same readers", readers)
    if matching.free(0) and matching.free(1):
        _by_identity(matching)
        loose = [fingerprints(side, loose_content, numbering) for side in (left, right)]
        tables.update({id(left): loose[0], id(right): loose[1]})
        for key in (both, inputs, readers):
            matching.by_key("structure", key)
            matching.spread()
        for ordered in ORDERED:
            matching.by_key("order", ordered, in_order=True)
            matching.spread()
        for index, other in similar_pairs(matching.sides, matching.left, matching.right):
            matching.pair(index, other, "similar")
        matching.spread()
    return matching


def _by_identity(matching: Matching) -> None:
    for round, key in IDENTITIES:
        matching.by_key(round, key)
        matching.spread()


def _equal_as_a_whole(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return sorted(left) == sorted(right)


def _name_alone(side: Side, index: int) -> Hashable:
    return side.operators[index].op
