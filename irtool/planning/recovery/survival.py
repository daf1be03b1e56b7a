"""Which slices survive the loss of ranks, and which losses no peer can repair."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from irtool.ir.dataclass import dataclass
from irtool.planning.cost.holdings import Holdings


@dataclass(frozen=True, slots=True)
class LostSlice:
    """A slice of a parameter that no survivor holds.

    Attributes:
        ranks: that held it.
        bytes: of the slice.
    """

    parameter: str
    ranks: tuple[int, ...]
    bytes: int


def lost_slices(old: Holdings, lost: Iterable[int]) -> tuple[LostSlice, ...]:
    """Slices all of whose holders are lost.

    Args:
        old: who held what.
        lost: ranks.
    """
    gone = set(lost)
    slices: list[LostSlice] = []
    for item in old.items:
        slices += [
            LostSlice(item.name, ranks, item.bytes_of(item.boxes[ranks[0]]))
            for ranks in item.replica_sets
            if gone.issuperset(ranks)
        ]
    return tuple(slices)


@dataclass(frozen=True, slots=True)
class SurvivingSlice:
    """A slice that lost ranks held and survivors hold too: it comes back without a disk.

    Attributes:
        lost: ranks that held it.
        survivors: ranks that hold it still.
        bytes: of the slice.
    """

    parameter: str
    lost: tuple[int, ...]
    survivors: tuple[int, ...]
    bytes: int


def surviving_slices(old: Holdings, lost: Iterable[int]) -> tuple[SurvivingSlice, ...]:
    """Slices some but not all of whose holders are lost.

    Args:
        old: who held what.
        lost: ranks.
    """
    gone = set(lost)
    slices: list[SurvivingSlice] = []
    for item in old.items:
        for ranks in item.replica_sets:
            left = tuple(rank for rank in ranks if rank not in gone)
            if left and len(left) < len(ranks):
                missing = tuple(rank for rank in ranks if rank in gone)
                size = item.bytes_of(item.boxes[ranks[0]])
                slices.append(SurvivingSlice(item.name, missing, left, size))
    return tuple(slices)


def common_replicas(old: Holdings) -> tuple[tuple[int, ...], ...]:
    """Ranks that MindSpore itself would restore from each other (TFT), which is coarser.

    It intersects the replicas of all parameters of a rank, and gives up (the rank alone) as soon as
    two of them are not nested, as MindSpore 2.7 does it. Ranks of which nothing is known are left
    out.

    Args:
        old: who held what.

    Returns:
        sets of ranks, each once, by the lowest rank.
    """
    common: dict[tuple[int, ...], None] = {}
    sets: dict[int, dict[frozenset[int], None]] = {}
    for layout in dict.fromkeys(item.replica_sets for item in old.items):
        for ranks in layout:
            members = frozenset(ranks)
            for rank in ranks:
                sets.setdefault(rank, {})[members] = None
    for rank, replicas in sorted(sets.items()):
        by_size = sorted(replicas, key=len)
        nested = all(small <= large for small, large in pairwise(by_size))
        common[tuple(sorted(by_size[0])) if nested else (rank,)] = None
    return tuple(common)


@dataclass(frozen=True, slots=True)
class WeakPoint:
    """Ranks (or servers) whose loss no peer can repair, with the parameters that would be lost."""

    units: tuple[int, ...]
    parameters: tuple[str, ...]


def weak_points(old: Holdings, unit: int = 1) -> tuple[WeakPoint, ...]:
    """The smallest sets of ranks, or of servers, whose loss no peer can repair.

    A slice is gone when all its holders are; so the sets are those of the holders themselves.

    Args:
        old: who holds what.
        unit: ranks that fail together (8 for a server); sets are then of servers' numbers.
    """
    killing: dict[tuple[int, ...], dict[str, None]] = {}
    for item in old.items:
        for ranks in item.replica_sets:
            units = tuple(sorted({rank // unit for rank in ranks}))
            killing.setdefault(units, {})[item.name] = None
    least = min(map(len, killing), default=0)
    return tuple(
        WeakPoint(units, tuple(names))
        for units, names in sorted(killing.items())
        if len(units) == least
    )
