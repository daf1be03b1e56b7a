"""Ties between two dumps: rounds of matching, from the strictest evidence to the weakest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from irtool.ir.ties.keys import EQUAL, STRICT, Key, by_variable, home, innermost, kin, own_name
from irtool.ir.ties.model import Rule, Tie
from irtool.ir.ties.side import Side, passes_on
from irtool.ir.types import Abstract
from irtool.ir.whole import WholeNode


class Matcher:
    """Ties nodes of two sides in rounds, from the strictest evidence to the weakest."""

    def __init__(self, left: Side, right: Side) -> None:
        self.left = left
        self.right = right
        self.tieable = len({left.nodes[index].node for index in left.open})
        self.pairs: dict[int, tuple[int, Rule, bool]] = {}
        self._pending: list[int] = []

    def ties(self) -> Iterator[Tie]:
        """What was found, in the order of the left side."""
        for index in sorted(self.pairs):
            other, rule, certain = self.pairs[index]
            left, right = self.left.nodes[index].node, self.right.nodes[other].node
            yield Tie(left, right, "pass", rule, certain)

    def run(self) -> None:
        """All rounds; what each finds is spread to the neighbours before the next."""
        for rule, key in STRICT:
            self._round(rule, key, in_order=False)
            self._spread()
        for key in EQUAL:
            self._round("order", key, in_order=True)
            self._spread()

    def _round(self, rule: Rule, key: Callable[[Side, int], Key], in_order: bool) -> None:
        """Tie nodes whose key nobody else has; ``in_order`` also equal numbers of equal keys."""
        left, right = _grouped(self.left, key), _grouped(self.right, key)
        for value, members in left.items():
            others = right.get(value, [])
            if len(members) != len(others) or (len(members) > 1 and not in_order):
                continue
            for index, other in zip(members, others, strict=True):
                certain = not in_order and rule != "scope"
                if rule == "scope":
                    certain = self._same_instance(index, other)
                elif key is by_variable:
                    certain = self._same_place(index, other)
                self._tie(index, other, rule, certain)

    def _same_instance(self, index: int, other: int) -> bool:
        left, right = self.left.nodes[index].node, self.right.nodes[other].node
        return left.instance_name is not None and left.instance_name == right.instance_name

    def _same_place(self, index: int, other: int) -> bool:
        place = innermost(self.left.nodes[index].node)
        return place is not None and place == innermost(self.right.nodes[other].node)

    def _tie(self, index: int, other: int, rule: Rule, certain: bool) -> None:
        if not self._compatible(index, other):
            return
        self.pairs[index] = (other, rule, certain)
        del self.left.open[index]
        del self.right.open[other]
        self._pending.append(index)

    def _compatible(self, index: int, other: int) -> bool:
        """Whether nothing speaks against a tie: operator, types, parameters, names, inputs."""
        left, right = self.left.nodes[index].node, self.right.nodes[other].node
        if left.op != right.op or not _alike(left.output_type, right.output_type):
            return False
        ours, theirs = self.left.parameters(index), self.right.parameters(other)
        if ours and theirs and not set(ours) & set(theirs):
            return False
        ours_at, theirs_at = innermost(left), innermost(right)
        if ours_at is not None and theirs_at is not None and ours_at != theirs_at:
            return False  # equal nodes were merged, and another line's one stayed
        names = own_name(left), own_name(right)
        if names[0] and names[1] and names[0] != names[1]:
            return False
        for mine, yours in zip(self.left.operands[index], self.right.operands[other], strict=False):
            if isinstance(mine, WholeNode) and isinstance(yours, WholeNode):
                tied = self.pairs.get(mine.index)
                if tied is not None and tied[2] and tied[0] != yours.index:
                    return not self._is_certain_elsewhere(yours.index)
        return True

    def _is_certain_elsewhere(self, other: int) -> bool:
        return other not in self.right.open and not passes_on(self.right.nodes[other].node)

    # -- neighbours

    def _spread(self) -> None:
        while self._pending:
            index = self._pending.pop()
            other, _, certain = self.pairs[index]
            self._spread_to_inputs(index, other, certain)
            self._spread_to_readers(index, other, certain)

    def _spread_to_inputs(self, index: int, other: int, certain: bool) -> None:
        for mine, yours in zip(self.left.operands[index], self.right.operands[other], strict=False):
            if not isinstance(mine, WholeNode) or not isinstance(yours, WholeNode):
                continue
            if home(self.left, mine.index) == home(self.right, yours.index):
                self._tie_open(mine.index, yours.index, certain)

    def _spread_to_readers(self, index: int, other: int, certain: bool) -> None:
        for kinship in (kin, home):
            mine = self._readers(self.left, index, kinship)
            yours = self._readers(self.right, other, kinship)
            for key, members in mine.items():
                others = yours.get(key, [])
                if len(members) == 1 and len(others) == 1:
                    self._tie_open(members[0], others[0], certain)

    def _tie_open(self, index: int, other: int, certain: bool) -> None:
        if index in self.left.open and other in self.right.open:
            self._tie(index, other, "neighbours", certain)

    @staticmethod
    def _readers(
        side: Side, index: int, kinship: Callable[[Side, int], Hashable]
    ) -> dict[Hashable, list[int]]:
        by_kinship: dict[Hashable, list[int]] = {}
        for reader, position in side.readers.get(index, ()):
            by_kinship.setdefault((position, kinship(side, reader)), []).append(reader)
        return by_kinship


def _grouped(side: Side, key: Callable[[Side, int], Key]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for index in side.open:
        value = key(side, index)
        if value is not None:
            groups.setdefault(value, []).append(index)
    return groups


def _alike(left: Abstract | None, right: Abstract | None) -> bool:
    """Whether two types may be one value before and after slicing: same elements, same rank."""
    if left is None or right is None:
        return True
    if left.dtype is not None and right.dtype is not None and left.dtype != right.dtype:
        return False
    ours, theirs = left.dimensions, right.dimensions
    if ours is None or theirs is None or -2 in (*ours, *theirs):
        return True
    return len(ours) == len(theirs)
