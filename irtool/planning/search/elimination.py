"""In which order choices are eliminated, and what goes into each elimination.

That depends on which tables are over which variables, and on how many choices there are: not on
the numbers in the tables.  So it is found out once, and used for all searches of a network.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import prod

from irtool.ir.dataclass import dataclass

Pattern = tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]
"""An elimination up to names: which axis goes, the shape of all, by table the axes that it has."""


@dataclass(frozen=True, eq=False, slots=True)
class Elimination:
    """The least over a variable of the sum of some tables.

    Attributes:
        slots: the tables, numbered in the order in which they come to be.
        beside: other variables that these tables are over, ascending.
        pattern: equal for eliminations that differ in their variables' names alone.
        alike: whether several tables are over the same variables.
    """

    slots: tuple[int, ...]
    beside: tuple[int, ...]
    pattern: Pattern
    alike: bool


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A variable goes: one elimination, or several where one table would become too large."""

    variable: int
    parts: tuple[Elimination, ...]


@dataclass(slots=True)
class _Slot:
    number: int
    variables: tuple[int, ...]


def order_of(
    sizes: Sequence[int], tables: Sequence[tuple[int, ...]], most: int, most_sums: int
) -> tuple[Step, ...]:
    """All variables, those first that leave the smallest tables behind.

    Args:
        sizes: how many choices each variable has; each has a table of its own, too.
        tables: variables of all others, ascending.
        most: entries of the largest table that may be made.
        most_sums: how many sums may be looked at for an entry.
    """
    count = len(sizes)
    buckets = {variable: [_Slot(variable, (variable,))] for variable in range(count)}
    for number, variables in enumerate(tables):
        slot = _Slot(count + number, variables)
        for variable in variables:
            buckets[variable].append(slot)
    following = count + len(tables)
    neighbours = {
        variable: {other for slot in slots for other in slot.variables} - {variable}
        for variable, slots in buckets.items()
    }
    heap = [(_size(sizes, near), variable) for variable, near in neighbours.items()]
    heapq.heapify(heap)
    steps: list[Step] = []
    while heap:
        size, variable = heapq.heappop(heap)
        if variable not in neighbours or size != _size(sizes, neighbours[variable]):
            continue
        own = buckets.pop(variable)
        groups = _divided(own, sizes, sizes[variable], most, most_sums)
        parts = tuple(_elimination(variable, group, sizes) for group in groups)
        steps.append(Step(variable, parts))
        near = neighbours.pop(variable)
        for other in near:
            buckets[other] = [slot for slot in buckets[other] if variable not in slot.variables]
        for part in parts:
            for other in part.beside:
                buckets[other].append(_Slot(following, part.beside))
            following += 1
        for other in near:
            left = {neighbour for slot in buckets[other] for neighbour in slot.variables} - {other}
            neighbours[other] = left
            heapq.heappush(heap, (_size(sizes, left), other))
    return tuple(steps)


def _size(sizes: Sequence[int], variables: set[int]) -> int:
    return prod(sizes[variable] for variable in variables)


def _divided(
    own: list[_Slot], sizes: Sequence[int], choices: int, most: int, most_sums: int
) -> list[list[_Slot]]:
    """Tables that are summed up together: all of them, if that is not too large."""

    def fits(variables: set[int]) -> bool:
        size = _size(sizes, variables)
        return size <= most * most_sums and size <= most * choices

    if fits({other for slot in own for other in slot.variables}):
        return [own]
    groups: list[list[_Slot]] = []
    for slot in sorted(own, key=lambda slot: -_size(sizes, set(slot.variables))):
        for group in groups:
            union = {other for member in group for other in member.variables}
            if fits(union | set(slot.variables)):
                group.append(slot)
                break
        else:
            groups.append([slot])
    return groups


def _elimination(variable: int, group: list[_Slot], sizes: Sequence[int]) -> Elimination:
    union = sorted({other for slot in group for other in slot.variables})
    place = {other: axis for axis, other in enumerate(union)}
    axes = sorted((tuple(place[other] for other in slot.variables), slot.number) for slot in group)
    pattern = (place[variable], tuple(sizes[v] for v in union), tuple(own for own, _ in axes))
    return Elimination(
        tuple(number for _, number in axes),
        tuple(other for other in union if other != variable),
        pattern,
        len(set(pattern[2])) < len(axes),
    )
