"""Regions: operators that only one dump has, put together where they are one edit.

Unmatched operators that feed each other make a region.  A region of the left side and one of the
right side with the same surroundings replace each other; what is left was added or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Literal, TypeAlias

from irtool.compare.matching import Matching
from irtool.compare.side import Constant, From, Named, Operand, Side
from irtool.compare.sums import is_addition
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import COMMUNICATION
from irtool.operators.table import operator_of

RegionKind: TypeAlias = Literal[
    "added",
    "removed",
    "cast inserted",
    "cast removed",
    "collective inserted",
    "collective removed",
    "redistribution inserted",
    "redistribution removed",
    "recompute copy added",
    "recompute copy removed",
    "replaced",
    "fused",
    "split",
    "reduction split",
    "reduction joined",
    "reduction reordered",
]

_JOINS = ("Concat", "AllReduce", "ReduceScatter")
"""What puts the parts of a split reduction together, beside additions."""


@dataclass(frozen=True, slots=True)
class Region:
    """Operators of either side that are one edit, by their places."""

    kind: RegionKind
    left: tuple[int, ...]
    right: tuple[int, ...]


def regions(matching: Matching) -> list[Region]:
    """All unmatched operators, as edits, in the order of their first operator.

    Args:
        matching: of two sides.
    """
    lefts = _components(matching, 0)
    rights = _components(matching, 1)
    surroundings: dict[Hashable, list[tuple[int, ...]]] = {}
    for part in rights:
        surroundings.setdefault(_surroundings(matching, 1, part), []).append(part)
    named: list[Region] = []
    used: set[tuple[int, ...]] = set()
    for part in lefts:
        others = surroundings.get(_surroundings(matching, 0, part), [])
        other = next((item for item in others if item not in used), None)
        if other is None:
            named += _alone(matching, 0, part)
        else:
            used.add(other)
            named.append(Region(_replacement(matching, part, other), part, other))
    for part in rights:
        if part not in used:
            named += _alone(matching, 1, part)
    return named


def _components(matching: Matching, which: int) -> list[tuple[int, ...]]:
    """Connected groups of unmatched operators, each in order.

    Collectives and casts end a group: one that was inserted is an edit for itself.
    """
    side = matching.sides[which]
    free = matching.free(which)
    parent = {index: index for index in free}

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for index in free:
        for _, made in side.operators[index].producers():
            if made.operator in parent and _belong_together(side, index, made.operator):
                parent[root(index)] = root(made.operator)
    groups: dict[int, list[int]] = {}
    for index in free:
        groups.setdefault(root(index), []).append(index)
    return [tuple(members) for members in groups.values()]


def _belong_together(side: Side, index: int, other: int) -> bool:
    left, right = side.operators[index], side.operators[other]
    return left.phase == right.phase and left.node.is_recomputed == right.node.is_recomputed


def _surroundings(matching: Matching, which: int, part: tuple[int, ...]) -> Hashable:
    """What leads into a region and what reads it, in terms of the left side."""
    side = matching.sides[which]
    inside = set(part)
    sources: set[Hashable] = set()
    readers: set[Hashable] = set()
    for index in part:
        for operand in side.operators[index].operands:
            sources |= _outside(matching, which, operand, inside)
        for reader, place in side.readers[index]:
            if reader not in inside:
                known = reader if which == 0 else matching.right.get(reader, -1)
                matched = reader in matching.left if which == 0 else known >= 0
                readers.add((known, place) if matched else None)
    return frozenset(sources), frozenset(readers)


def _outside(matching: Matching, which: int, operand: Operand, inside: set[int]) -> set[Hashable]:
    if isinstance(operand, Named):
        return {operand.name}
    if isinstance(operand, Constant):
        return set()
    if isinstance(operand, tuple):
        return {
            producer for item in operand for producer in _outside(matching, which, item, inside)
        }
    index = operand.operator
    if index in inside:
        return set()
    if which:
        return {(matching.right.get(index), operand.element)}
    return {(index if index in matching.left else None, operand.element)}


def _replacement(matching: Matching, left: tuple[int, ...], right: tuple[int, ...]) -> RegionKind:
    """What one region for another is called."""
    ours = Counter(matching.sides[0].operators[index].op for index in left)
    theirs = Counter(matching.sides[1].operators[index].op for index in right)
    if all(is_addition(op) for op in (*ours, *theirs)):
        return "reduction reordered"
    if len(left) == 1 < len(right):
        return "reduction split" if _is_split(ours, theirs) else "split"
    if len(right) == 1 < len(left):
        return "reduction joined" if _is_split(theirs, ours) else "fused"
    if _is_split(ours, theirs):
        return "reduction split"
    return "reduction joined" if _is_split(theirs, ours) else "replaced"


def _is_split(undivided: Counter[str], parts: Counter[str]) -> bool:
    """Whether parts do a reduction several times on pieces and add the pieces up."""
    joining = {op for op in (*undivided, *parts) if op in _JOINS or is_addition(op)}
    adds = sum(parts[op] for op in joining) > sum(undivided[op] for op in joining)
    more = any(parts[op] > undivided[op] > 0 for op in undivided if op not in joining)
    return adds and more


def _alone(matching: Matching, which: int, part: tuple[int, ...]) -> list[Region]:
    """Regions without a counterpart; casts and collectives among them for themselves."""
    side = matching.sides[which]
    if all(_redistributes(side, index) for index in part):
        kind: RegionKind = "redistribution inserted" if which else "redistribution removed"
        return [_region(kind, which, part)]
    alone: list[Region] = []
    rest: list[int] = []
    for index in part:
        special = _special(side, index, which)
        if special is None:
            rest.append(index)
        else:
            alone.append(_region(special, which, (index,)))
    if rest:
        alone.append(_region("added" if which else "removed", which, tuple(rest)))
    return alone


def _redistributes(side: Side, index: int) -> bool:
    name = side.operators[index].node.instance_name or ""
    return name.startswith(("redistribution_", "grad_redistribution_", "gradredistribution_"))


def _special(side: Side, index: int, which: int) -> RegionKind | None:
    node = side.operators[index].node
    if node.is_recomputed:
        return "recompute copy added" if which else "recompute copy removed"
    if node.op in COMMUNICATION:
        return "collective inserted" if which else "collective removed"
    if operator_of(node.op).is_("converts"):
        return "cast inserted" if which else "cast removed"
    return None


def _region(kind: RegionKind, which: int, part: tuple[int, ...]) -> Region:
    return Region(kind, () if which else part, part if which else ())


__all__ = ["From", "Region", "RegionKind", "regions"]
