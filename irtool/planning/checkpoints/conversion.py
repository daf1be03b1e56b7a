"""A checkpoint under another layout: who needs what from whom, and what MindSpore asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from math import prod

from irtool.artefacts.cuts import Refused, cuts_in_conversion, cuts_of
from irtool.artefacts.strategies.model import StrategyFile
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.finding import Severity
from irtool.ir.types import BITS
from irtool.planning.checkpoints.rank_lists import all_mindspore_ranks
from irtool.planning.checkpoints.sources import (
    HeldSlices,
    Need,
    Region,
    Source,
    by_hand,
    chosen_sources,
    needs_of,
    slices_of,
    target_of,
)


@dataclass(frozen=True, slots=True)
class KnownParameter:
    """What a network says of a parameter: its whole shape, and the bytes of an element."""

    shape: tuple[int, ...]
    item_bytes: float | None

    def elements_of(self, region: Region) -> list[tuple[int, int]] | None:
        """Begin and end of a region in elements, by dimension; None: it has other dimensions."""
        if len(region) != len(self.shape):
            return None
        sized = zip(region, self.shape, strict=True)
        return [(int(begin * size), int(end * size)) for (begin, end), size in sized]


def known_parameters(dump: Dump) -> dict[str, KnownParameter]:
    """What a network says of its parameters of known shape, by name.

    Args:
        dump: of any pass that declares parameters whole, as the begin dump does.

    Returns:
        bytes of an element are None for a data type of unknown size.
    """
    known: dict[str, KnownParameter] = {}
    for parameter in dump.parameters:
        kind = parameter.type
        shape = kind.dimensions if kind is not None else None
        if kind is not None and shape is not None and min(shape, default=1) >= 0:
            size = BITS[kind.dtype] / 8 if kind.dtype in BITS else None
            known[parameter.name] = KnownParameter(tuple(shape), size)
    return known


@dataclass(frozen=True, slots=True)
class ParameterSources:
    """Where a target rank gets a parameter from; ``unknown``: why nobody can say."""

    name: str
    sources: tuple[Source, ...]
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class RankSources:
    """What one rank of the new layout needs.

    Attributes:
        rank: of the new layout.
        mindspore: the old ranks that ``rank_list_for_transform`` names, ascending; None where
            MindSpore raises an error.
        refused: that error.
        parameters: where each parameter comes from.
    """

    rank: int
    mindspore: tuple[int, ...] | None
    refused: str
    parameters: tuple[ParameterSources, ...]

    def moved_part(self, parameter: ParameterSources) -> Fraction:
        """Which part of a whole parameter comes from other ranks."""
        others = [source.part for source in parameter.sources if source.rank != self.rank]
        return others[0] if len(others) == 1 else sum(others, start=Fraction(0))

    @property
    def needed(self) -> tuple[int, ...]:
        """The old ranks whose slices are really needed, ascending."""
        return tuple(sorted({source.rank for one in self.parameters for source in one.sources}))


@dataclass(frozen=True, slots=True)
class Moved:
    """How much comes from other ranks' checkpoints; None where shapes or types are not known."""

    elements: int | None
    bytes: int | None


@dataclass(frozen=True, eq=False)
class Conversion(Shown):
    """Checkpoints of one layout as those of another.

    Attributes:
        old: how the checkpoints lie; None: whole, in one file.
        new: how they are to lie; None: whole, in one file.
        ranks: of the new layout, as asked for.
        parameters: shape and element size of those of which they are known.
        added: parameters of the new layout that no old checkpoint has.
        dropped: parameters of the old layout that nobody needs any more.
        misplaced: parameters that MindSpore's conversion cuts otherwise than training does.
    """

    old: StrategyFile | None
    new: StrategyFile | None
    ranks: tuple[RankSources, ...]
    parameters: Mapping[str, KnownParameter]
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = field(default=())

    @property
    def old_devices(self) -> int:
        """How many checkpoints there are: one a rank, or one that is whole."""
        return 1 if self.old is None else self.old.devices

    @property
    def new_devices(self) -> int:
        """Checkpoints that there will be."""
        return 1 if self.new is None else self.new.devices

    @property
    def severities(self) -> tuple[Severity, ...]:
        """How grave what needs care is: refused or misplaced, in no old checkpoint, unknown."""
        refused = any(one.mindspore is None for one in self.ranks)
        unknown = any(parameter.unknown for one in self.ranks for parameter in one.parameters)
        concerns: dict[Severity, bool] = {
            "error": refused or bool(self.misplaced),
            "warning": bool(self.added),
            "info": unknown,
        }
        return tuple(severity for severity, is_so in concerns.items() if is_so)

    def moved_shares(self) -> dict[str, float]:
        """By parameter: which part of what all ranks hold of it comes from other ranks."""
        moved: dict[str, Fraction] = {}
        held: dict[str, Fraction] = {}
        for one in self.ranks:
            alike: dict[int, tuple[Fraction, Fraction]] = {}
            for parameter in one.parameters:
                if not parameter.sources:
                    continue
                if id(parameter.sources) not in alike:
                    total = sum((source.part for source in parameter.sources), start=Fraction(0))
                    alike[id(parameter.sources)] = total, one.moved_part(parameter)
                total, part = alike[id(parameter.sources)]
                held[parameter.name] = held.get(parameter.name, Fraction(0)) + total
                moved[parameter.name] = moved.get(parameter.name, Fraction(0)) + part
        return {name: float(moved.get(name, Fraction(0)) / total) for name, total in held.items()}

    def moved(self, ranks: Sequence[RankSources] | None = None) -> Moved:
        """How much comes from other ranks; of all ranks, or of some."""
        moved = [self._moved_to[one.rank] for one in (self.ranks if ranks is None else ranks)]
        elements = [one[0] for one in moved if one[0] is not None]
        held = [one[1] for one in moved if one[1] is not None]
        return Moved(
            sum(elements) if len(elements) == len(moved) else None,
            int(sum(held)) if len(held) == len(moved) else None,
        )

    @cached_property
    def _moved_to(self) -> dict[int, tuple[int | None, float | None]]:
        """By rank the elements and bytes that it takes from others; None where nobody knows."""
        return {one.rank: self._taken(one) for one in self.ranks}

    def _taken(self, one: RankSources) -> tuple[int | None, float | None]:
        elements = 0
        held = 0.0
        known = sized = True
        alike: dict[int, Fraction] = {}
        for parameter in one.parameters:
            if id(parameter.sources) not in alike:
                alike[id(parameter.sources)] = one.moved_part(parameter)
            part = alike[id(parameter.sources)]
            tensor = self.parameters.get(parameter.name)
            if parameter.unknown or (part and tensor is None):
                known = False
            elif part and tensor is not None:
                count = prod(tensor.shape) * part.numerator // part.denominator
                elements += count
                sized = sized and tensor.item_bytes is not None
                held += count * (tensor.item_bytes or 0)
        return elements if known else None, held if known and sized else None


def convert(
    old: StrategyFile | None,
    new: StrategyFile | None,
    known: Mapping[str, KnownParameter] | None = None,
    ranks: Sequence[int] | None = None,
) -> Conversion:
    """Which slices of old checkpoints each rank of the new layout needs, and which MindSpore reads.

    Args:
        old: how checkpoints lie; None: whole.
        new: how they are to lie; None: whole.
        known: shapes and types that a network says; shapes of strategy files stand behind them.
        ranks: of the new layout; None: all.

    Raises:
        Refused: a layout makes no sense.
    """
    sources, targets = slices_of(old), slices_of(new)
    known_parameters = {**_shapes(new), **_shapes(old), **(known or {})}
    old_names = dict.fromkeys((targets if sources is None else sources) or ())
    new_names = dict.fromkeys((sources if targets is None else targets) or ())
    unknown = dict.fromkeys(by_hand(old) | by_hand(new), "a manual split cuts it unevenly")
    pairs = [
        _Pair(
            name,
            None if sources is None else sources[name],
            None if targets is None else targets[name],
        )
        for name in new_names
        if name in old_names and name not in unknown
    ]
    wanted = range(1 if new is None else new.devices) if ranks is None else ranks
    demanded = all_mindspore_ranks(old, new, wanted)
    return Conversion(
        old,
        new,
        tuple(_of_rank(rank, pairs, unknown, demanded[rank]) for rank in wanted),
        known_parameters,
        tuple(name for name in new_names if name not in old_names),
        tuple(name for name in old_names if name not in new_names),
        tuple(dict.fromkeys([*_misplaced(old), *_misplaced(new)])),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """A parameter under both layouts; None: whole."""

    name: str
    old: HeldSlices | None
    new: HeldSlices | None

    @property
    def dimensions(self) -> int:
        """Of the parameter, as the layout that is there has it."""
        held = self.old or self.new
        return 0 if held is None else held.dimensions


def _of_rank(
    rank: int, pairs: Sequence[_Pair], uneven: Mapping[str, str], demand: list[int] | str
) -> RankSources:
    """What one rank needs, and what MindSpore names for it: ``demand``."""
    needs: dict[str, list[Need]] = {}
    unknown = dict(uneven)
    regions: dict[tuple[int, int], Region | None] = {}
    known: dict[tuple[int, int], list[Need]] = {}
    for pair in pairs:
        # Parameters that lie alike share their slices: what is found of one holds for all.
        new = id(pair.new), pair.dimensions
        if new not in regions:
            regions[new] = target_of(pair.new, rank, pair.dimensions)
        region = regions[new]
        if region is None:
            continue
        both = id(pair.old), id(region)
        try:
            if both not in known:
                known[both] = (
                    [Need([0], region)] if pair.old is None else needs_of(pair.old, region)
                )
            needs[pair.name] = known[both]
        except Refused as error:
            unknown[pair.name] = str(error)
    named = () if isinstance(demand, str) else demand
    chosen = chosen_sources(needs, rank, named)
    parameters = [ParameterSources(name, sources) for name, sources in chosen]
    parameters += [ParameterSources(name, (), why) for name, why in unknown.items()]
    if isinstance(demand, str):
        return RankSources(rank, None, demand, tuple(parameters))
    return RankSources(rank, tuple(demand), "", tuple(parameters))


def _shapes(file: StrategyFile | None) -> dict[str, KnownParameter]:
    if file is None:
        return {}
    layouts = file.layouts.values()
    return {layout.name: KnownParameter(layout.shape, None) for layout in layouts if layout.shape}


def _misplaced(file: StrategyFile | None) -> Iterator[str]:
    """Parameters of which MindSpore's conversion thinks that they lie otherwise than they do."""
    for layout in file.layouts.values() if file is not None else ():
        try:
            if cuts_in_conversion(layout) != cuts_of(layout):
                yield layout.name
        except Refused:
            continue
