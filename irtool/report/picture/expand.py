"""Which frames are opened: from the outside in, as long as the picture holds few enough boxes."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import count

from irtool.ir.dataclass import dataclass
from irtool.report.picture.leaves import Leaf, Link
from irtool.report.picture.tree import Label, Scope, families, in_order, leaf_signatures, runs


@dataclass(slots=True, eq=False)
class Unit:
    """A frame, or several of equal structure of which the first stands for all."""

    members: list[Scope]
    parent: Unit | None
    number: int
    is_open: bool = False
    inner: list[Unit] = field(default_factory=list["Unit"])

    @property
    def first(self) -> Scope:
        """The frame that is drawn."""
        return self.members[0]

    @property
    def repeats(self) -> int:
        """How often what it shows is there, by this frame alone."""
        return len(self.members)

    @property
    def size(self) -> int:
        """Boxes that it makes once it is open and nothing in it is."""
        return len(self.first.leaves) + len(self.inner)


class Expansion:
    """Opens frames of a tree.

    ``alias`` leads from a leaf of a repeated frame to the one that is drawn for it; ``instance``
    says of which repeats a leaf is.
    """

    def __init__(
        self,
        root: Scope,
        into: Mapping[Leaf, list[Link]],
        label: Label,
        fold: bool,
        wanted: Sequence[str] = (),
    ) -> None:
        self.alias: dict[Leaf, Leaf] = {}
        self.instance: dict[Leaf, tuple[tuple[int, int], ...]] = {}
        self.met: set[str] = set()
        self._into = into
        self._label = label
        self._fold = fold
        self._numbers = count()
        self._wanted = tuple(wanted)
        self._asked, self._around = self._matches(root)
        self.root = self._unit([root], None)

    def _matches(self, root: Scope) -> tuple[set[Scope], set[Scope]]:
        """Frames that the user wants open, and those around them."""
        asked: set[Scope] = set()
        around: set[Scope] = set()
        if not self._wanted:
            return asked, around
        for scope in root.inner():
            path, above = scope.path, scope.parent.path if scope.parent else ""
            for text in self._wanted:
                titles = (scope.name,) if scope.kind != "scope" else ()
                if (names(path, text) and not names(above, text)) or text in titles:
                    self.met.add(text)
                    asked.add(scope)
                    outer: Scope | None = scope
                    while outer is not None and outer not in around:
                        around.add(outer)
                        outer = outer.parent
        return asked, around

    def _unit(self, members: list[Scope], parent: Unit | None) -> Unit:
        unit = Unit(members, parent, next(self._numbers))
        if self._fold:
            groups = families(unit.first, self._into, self._label, lambda child: False)
            groups = [part for family in groups for part in self._split(family)]
        else:
            groups = [[child] for child in in_order(unit.first.children.values())]
        # Inner units are made when this one is opened; until then their number is enough.
        unit.inner = [Unit(family, unit, -1) for family in groups]
        return unit

    def _split(self, family: list[Scope]) -> list[list[Scope]]:
        """Take the frames out of a family that the user asked for by number."""
        asked = [scope for scope in family if scope in self._around]
        if not asked or len(asked) == len(family):
            return [family]
        others = [scope for scope in family if scope not in asked]
        parts = [*([scope] for scope in asked), *runs(others, family)]
        return sorted(parts, key=lambda part: family.index(part[0]))

    def open(self, unit: Unit) -> None:
        """Show what is in a frame."""
        unit.is_open = True
        if unit.repeats > 1:
            self._fold_leaves(unit)
        unit.inner = [self._unit(inner.members, unit) for inner in unit.inner]

    def _fold_leaves(self, unit: Unit) -> None:
        ordered: list[list[Leaf]] = []
        for member in unit.members:
            signatures = leaf_signatures(member, self._into, self._label)
            ordered.append(sorted(signatures, key=lambda leaf: (signatures[leaf], leaf.index)))
        for number, leaves in enumerate(ordered):
            for leaf, first in zip(leaves, ordered[0], strict=True):
                before = self.instance.get(leaf, ())
                self.instance[leaf] = (*before, (unit.number, number))
                if number:
                    self.alias[leaf] = first

    def run(self, most: int) -> int:
        """Open frames until no other fits, those that were asked for in any case.

        Args:
            most: boxes that the picture may hold; 0 for any number.

        Returns:
            How many boxes there are.
        """
        total = 1
        order = count()
        heap: list[tuple[int, int, int, int, Unit]] = [(0, 0, 0, next(order), self.root)]
        while heap:
            _, depth, _, _, unit = heapq.heappop(heap)
            asked = unit is self.root or any(scope in self._around for scope in unit.members)
            if not asked and most and total - 1 + unit.size > most:
                continue
            self.open(unit)
            total += unit.size - 1
            for inner in unit.inner:
                first = any(scope in self._around for scope in inner.members)
                inside = any(scope in self._asked for scope in unit.members)
                if inside and not first:
                    self._asked.update(inner.members)
                rank = 0 if first else 1 if inside else 2 + _lateness(inner)
                heapq.heappush(heap, (rank, depth + 1, inner.size, next(order), inner))
        return total

    def drawn(self, leaf: Leaf) -> Leaf:
        """The leaf that is drawn for another."""
        while leaf in self.alias:
            leaf = self.alias[leaf]
        return leaf

    def instances(self, leaf: Leaf) -> dict[int, int]:
        """By number of a folded frame: of which of its repeats a leaf is."""
        by_unit = dict(self.instance.get(leaf, ()))
        while leaf in self.alias:
            leaf = self.alias[leaf]
            for unit, number in self.instance.get(leaf, ()):
                by_unit.setdefault(unit, number)
        return by_unit


def _lateness(unit: Unit) -> int:
    """Updates of parameters are much alike: they are opened after everything else."""
    scope: Scope | None = unit.first
    while scope is not None and scope.kind != "phase":
        scope = scope.parent
    return int(scope is not None and scope.name == "optimizer" and scope is not unit.first)


def names(path: str, text: str) -> bool:
    """Whether ``text`` occurs in a path at a boundary: ``3-Block`` is not in ``13-Block``.

    Args:
        path: names of scopes, joined by slashes.
        text: a part of such a path; only numbers have to be whole.
    """
    start = path.find(text)
    while start >= 0:
        before, after = path[start - 1 : start] if start else "", path[start + len(text) :][:1]
        left = not (before.isdigit() and text[:1].isdigit())
        right = not (after.isdigit() and text[-1:].isdigit())
        if left and right:
            return True
        start = path.find(text, start + 1)
    return False
