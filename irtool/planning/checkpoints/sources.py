"""Which slices of old checkpoints make up what a rank holds under a new layout, and no more.

Both layouts cut each dimension into equal parts, so a target slice meets a range of source parts in
every dimension.  Of each source slice that it meets, any rank that holds it will do: the rank
itself first, then one that sends something else already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, floor, prod

from irtool.artefacts.cuts import Cuts, Refused, cuts_of
from irtool.artefacts.strategies.model import SavedLayout, StrategyFile
from irtool.ir.dataclass import dataclass

Interval = tuple[Fraction, Fraction]
"""Of a dimension, as parts of the whole: ``(1/4, 1/2)``."""
Region = tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What one old rank gives: a region of the whole parameter."""

    rank: int
    region: Region

    @property
    def part(self) -> Fraction:
        """Which part of the whole parameter it is."""
        # In whole numbers: a Fraction reduces what every step of a calculation gives.
        wanted = whole = 1
        for begin, end in self.region:
            wanted *= end.numerator * begin.denominator - begin.numerator * end.denominator
            whole *= end.denominator * begin.denominator
        return Fraction(wanted, whole)


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of one parameter under one layout of one stage.

    ``first``: the stage's first rank.
    """

    cuts: Cuts
    first: int
    devices: int

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return tuple(prod(cut.size for cut in cuts) for cuts in self.cuts)

    def index(self, rank: int) -> tuple[int, ...]:
        """Which part of each dimension a rank of the run holds."""
        index: list[int] = []
        for cuts in self.cuts:
            place = 0
            for cut in cuts:
                place = place * cut.size + cut.part_of(rank - self.first)
            index.append(place)
        return tuple(index)


@dataclass(frozen=True)
class HeldSlices:
    """The slices of one parameter in a run: in each stage that holds it."""

    stages: tuple[Slices, ...]

    @property
    def dimensions(self) -> int:
        """How many dimensions the parameter has."""
        return len(self.stages[0].cuts)

    @cached_property
    def holders(self) -> dict[tuple[int, tuple[int, ...]], list[int]]:
        """Ranks by the stage's place in ``stages`` and the slice that they hold."""
        holders: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for place, slices in enumerate(self.stages):
            for rank in range(slices.first, slices.first + slices.devices):
                holders.setdefault((place, slices.index(rank)), []).append(rank)
        return holders


def slices_of(file: StrategyFile | None) -> dict[str, HeldSlices] | None:
    """By parameter its slices in all stages that hold it; None: every checkpoint is whole.

    Args:
        file: layouts of all stages; None: every checkpoint is whole.

    Raises:
        Refused: a layout makes no sense.
    """
    if file is None:
        return None
    held: dict[str, list[Slices]] = {}
    for layout in file.layouts.values():
        first = (layout.stage or 0) * file.stage_devices
        slices = Slices(cuts_of(layout), first, file.stage_devices)
        held.setdefault(layout.name, []).append(slices)
    # Parameters that lie alike share what is found out about them.
    alike: dict[tuple[Slices, ...], HeldSlices] = {}
    return {
        name: alike.setdefault(tuple(stages), HeldSlices(tuple(stages)))
        for name, stages in held.items()
    }


def by_hand(file: StrategyFile | None) -> set[str]:
    """Parameters that a manual split cuts unevenly: of these nothing is said.

    Args:
        file: layouts of all stages; None: there are none.
    """
    layouts: Sequence[SavedLayout] = () if file is None else tuple(file.layouts.values())
    return {layout.name for layout in layouts if layout.is_split_by_hand}


def target_of(held: HeldSlices | None, rank: int, dimensions: int) -> Region | None:
    """What a rank of the new layout holds of a parameter; None where it holds nothing.

    Args:
        held: the parameter's slices; None where the new checkpoint is whole.
        rank: of the new layout, counted over all stages.
        dimensions: of the parameter.

    Returns:
        begin and end in each dimension, as fractions of it.
    """
    if held is None:
        return ((Fraction(0), Fraction(1)),) * dimensions
    for slices in held.stages:
        if slices.first <= rank < slices.first + slices.devices:
            return _region(slices.index(rank), slices.parts)
    return None


def _region(index: Sequence[int], parts: Sequence[int]) -> Region:
    return tuple(
        (Fraction(place, count), Fraction(place + 1, count))
        for place, count in zip(index, parts, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Need:
    """One slice of the old layout that a target meets: who holds it, and what of it is wanted."""

    holders: Sequence[int]
    region: Region


def needs_of(held: HeldSlices, target: Region) -> list[Need]:
    """The old slices that a region meets: in the one stage that meets it in fewest.

    Args:
        held: the parameter's slices in the old layout.
        target: begin and end in each dimension, as fractions of it.

    Raises:
        Refused: the layouts have dimensions of different number.
    """
    needs: list[list[Need]] = []
    for place, slices in enumerate(held.stages):
        parts = slices.parts
        if len(parts) != len(target):
            raise Refused(f"its tensor maps have {len(parts)} and {len(target)} dimensions")
        ranges = [
            range(floor(begin * count), ceil(end * count))
            for (begin, end), count in zip(target, parts, strict=True)
        ]
        needs.append(
            [
                Need(held.holders[place, index], _common(_region(index, parts), target))
                for index in product(*ranges)
            ]
        )
    return _merged(needs)


def _merged(stages: Sequence[list[Need]]) -> list[Need]:
    """The needs of the stage with fewest; holders of the same in other stages will do, too."""
    best = min(stages, key=len)
    others = [need for stage in stages if stage is not best for need in stage]
    by_region: dict[Region, list[int]] = {}
    for need in others:
        by_region.setdefault(need.region, []).extend(need.holders)
    return [Need([*need.holders, *by_region.get(need.region, ())], need.region) for need in best]


def _common(one: Region, other: Region) -> Region:
    return tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other, strict=True))


def chosen_sources(
    needs: Mapping[str, Sequence[Need]], rank: int, preferred: Sequence[int] = ()
) -> Iterator[tuple[str, tuple[Source, ...]]]:
    """Which rank gives each slice that a target rank needs: as few ranks as a greedy choice finds.

    Args:
        needs: by parameter.
        rank: the target; where its own old checkpoint holds a slice, that is taken.
        preferred: ranks that are better than others: those that MindSpore reads anyway.
    """
    likely = set(preferred)
    wanted = {tuple(need.holders) for required in needs.values() for need in required}
    taken: list[int] = [rank] if any(rank in holders for holders in wanted) else []
    left = [set(holders) for holders in wanted if rank not in holders]
    while left:
        counts: dict[int, int] = {}
        for holders in left:
            for holder in holders:
                counts[holder] = counts.get(holder, 0) + 1
        best = min(
            counts,
            key=lambda candidate: (
                candidate not in likely,
                -counts[candidate],
                abs(candidate - rank),
                candidate,
            ),
        )
        taken.append(best)
        left = [holders for holders in left if best not in holders]
    # Parameters that lie alike need alike, and share what was found for the first of them.
    alike: dict[int, tuple[Source, ...]] = {}
    for name, required in needs.items():
        if id(required) not in alike:
            alike[id(required)] = tuple(
                Source(next(one for one in taken if one in need.holders), need.region)
                for need in required
            )
        yield name, alike[id(required)]
