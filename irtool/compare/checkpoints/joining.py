"""Parameters that ranks share, put together by a strategy file; replicas held to one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from irtool.artefacts.cuts import Cuts, Refused, cuts_of
from irtool.artefacts.strategies.model import SavedLayout, StrategyFile
from irtool.compare.checkpoints.read import BLOCK, Array, Checkpoint, Kept
from irtool.compare.tensors.formats.window import BadPayload
from irtool.compare.tensors.model import Shape
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A parameter whose slices several ranks keep.

    Attributes:
        name, dtype, shape: of the whole.
        slices: by the place of each slice (its number in each dimension) what holds it first.
        counts: into how many parts each dimension is cut.
        laid: the dimensions that are cut, which may be more than the parameter has: a strategy
            file in JSON makes one of each axis of devices.
    """

    name: str
    dtype: str
    shape: Shape
    slices: Mapping[tuple[int, ...], Kept]
    counts: tuple[int, ...]
    laid: Shape

    @property
    def elements(self) -> int:
        """How many elements the whole parameter has."""
        return prod(self.shape)

    def array(self) -> Array:
        """The whole, as it is stored.

        Raises:
            BadPayload: a slice can't be read.
        """
        import numpy as np

        sizes = [size // count for size, count in zip(self.laid, self.counts, strict=True)]
        full: Array | None = None
        for place, kept in self.slices.items():
            part = kept.array().reshape(sizes)
            if full is None:
                full = np.empty(self.laid, part.dtype)
            window = tuple(
                slice(number * size, (number + 1) * size)
                for number, size in zip(place, sizes, strict=True)
            )
            full[window] = part
        assert full is not None  # a parameter has a slice
        return full.reshape(self.shape)

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """Its elements in C order, so many at a time; raises as :meth:`array` does."""
        flat = self.array().reshape(-1)
        for start in range(0, max(len(flat), 1), size):
            yield flat[start : start + size]


@dataclass(frozen=True, slots=True, eq=False)
class PickedRows:
    """Rows of a parameter, or columns: one of those that are packed in it.

    Attributes:
        name: of the parameter.
        whole: all of it.
        rows: which.
        shape: of what they make.
        is_turned: they are columns.
    """

    name: str
    whole: Kept | Joined | PickedRows
    rows: tuple[int, ...]
    shape: Shape
    is_turned: bool = False

    @property
    def dtype(self) -> str:
        """Of the parameter."""
        return self.whole.dtype

    @property
    def elements(self) -> int:
        """How many elements they have."""
        return prod(self.shape)

    def array(self) -> Array:
        """The rows, in their order; raises as that of the whole does."""
        import numpy as np

        full: Array = self.whole.array()
        full = full.T if self.is_turned else full
        rows: Array = np.ascontiguousarray(full[list(self.rows)])
        return rows.reshape(self.shape)

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """Their elements in C order, so many at a time."""
        flat = self.array().reshape(-1)
        for start in range(0, max(len(flat), 1), size):
            yield flat[start : start + size]


Whole = Kept | Joined | PickedRows
"""A parameter as one device would hold it."""


@dataclass(frozen=True, slots=True)
class OddReplica:
    """Ranks that should hold the same of a parameter, and do not."""

    name: str
    rank: int
    as_rank: int


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of a comparison.

    Attributes:
        path: the checkpoint.
        parameters: whole, by name.
        files: that it was read from.
        ranks: that share it.
        odd: replicas that differ.
        apart: parameters that could not be put together, and why.
    """

    path: str
    parameters: Mapping[str, Whole]
    files: int
    ranks: int
    odd: tuple[OddReplica, ...] = ()
    apart: Mapping[str, str] | None = None


def side_of(checkpoint: Checkpoint, layouts: StrategyFile | None) -> Side:
    """A checkpoint as one device would hold it.

    Args:
        checkpoint: what the files hold.
        layouts: how its parameters lie; None: every rank is taken to hold all of them whole, and
            what their shapes contradict, or their values, is said.
    """
    if not checkpoint.is_shared:
        (only,) = checkpoint.ranks.values()
        return Side(checkpoint.path, only, checkpoint.files, 1)
    parameters: dict[str, Whole] = {}
    odd: list[OddReplica] = []
    apart: dict[str, str] = {}
    by_name = {} if layouts is None else _by_name(layouts)
    for name in dict.fromkeys(name for held in checkpoint.ranks.values() for name in held):
        held = {rank: kept[name] for rank, kept in sorted(checkpoint.ranks.items()) if name in kept}
        try:
            parameters[name] = _whole(name, held, _layout_of(name, held, by_name), odd)
        except (BadPayload, Refused) as error:
            apart[name] = str(error)
    return Side(
        checkpoint.path, parameters, checkpoint.files, len(checkpoint.ranks), tuple(odd), apart
    )


def _by_name(layouts: StrategyFile) -> dict[str, list[SavedLayout]]:
    by_name: dict[str, list[SavedLayout]] = {}
    for layout in layouts.layouts.values():
        by_name.setdefault(layout.name, []).append(layout)
    return by_name


def _layout_of(
    name: str, held: Mapping[int, Kept], by_name: Mapping[str, list[SavedLayout]]
) -> SavedLayout | None:
    """How a parameter lies; a state of the optimizer as the parameter that its name ends with."""
    stated = by_name.get(name)
    rest = name
    while stated is None and "." in rest:
        rest = rest.partition(".")[2]
        stated = by_name.get(rest)
    if not stated:
        return None
    # Of a parameter on several stages each stage has a layout: that of the ranks that hold it.
    lowest = min(held)
    for layout in stated:
        if layout.stage is None or lowest // layout.devices == layout.stage:
            return layout
    return stated[0]


def _whole(
    name: str, held: Mapping[int, Kept], layout: SavedLayout | None, odd: list[OddReplica]
) -> Whole:
    first = next(iter(held.values()))
    cuts: Cuts = cuts_of(layout) if layout is not None else ()
    counts = tuple(prod(cut.size for cut in dimension) for dimension in cuts)
    if layout is not None and layout.is_split_by_hand:
        raise BadPayload("its slices are of different sizes, which is not put together")
    if any(kept.shape != first.shape or kept.dtype != first.dtype for kept in held.values()):
        raise BadPayload("ranks hold slices of different shapes or types")
    if prod(counts) == 1:
        _hold_together(name, {(): held}, odd)
        return first
    places: dict[tuple[int, ...], dict[int, Kept]] = {}
    for rank, kept in held.items():
        place = tuple(_number(dimension, rank) for dimension in cuts)
        places.setdefault(place, {})[rank] = kept
    if len(places) < prod(counts):
        raise BadPayload(f"{prod(counts) - len(places)} of {prod(counts)} slices are missing")
    _hold_together(name, places, odd)
    laid = _laid(first, counts, layout)
    slices = {place: next(iter(same.values())) for place, same in places.items()}
    return Joined(name, first.dtype, _merged(laid, counts, first.shape), slices, counts, laid)


def _number(cuts: tuple[Any, ...], rank: int) -> int:
    """Which part of a dimension a rank holds: its cuts stand with the most significant first."""
    number = 0
    for cut in cuts:
        number = number * cut.size + cut.part_of(rank)
    return number


def _laid(first: Kept, counts: tuple[int, ...], layout: SavedLayout | None) -> Shape:
    """The dimensions that the cuts are of: JSON makes one of each axis of devices."""
    if len(counts) == len(first.shape):
        return tuple(size * count for size, count in zip(first.shape, counts, strict=True))
    shape = layout.shape if layout is not None else None
    if shape is None or len(shape) != len(counts) or prod(shape) != first.elements * prod(counts):
        raise BadPayload("its slices have other dimensions than the strategy file says")
    return shape


def _merged(laid: Shape, counts: tuple[int, ...], slice_shape: Shape) -> Shape:
    """The whole's own dimensions: each of the slice's takes those laid out that make it up.

    Of a dimension that lies along several axes all but the last are cut down to one element.
    """
    merged: list[int] = []
    held, full, rest = 1, 1, list(slice_shape)
    for size, count in zip(laid, counts, strict=True):
        held, full = held * (size // count), full * size
        if rest and held == rest[0]:
            merged.append(full)
            held, full = 1, 1
            rest.pop(0)
    return tuple(merged) if not rest and full == 1 else laid


def _hold_together(
    name: str, places: Mapping[tuple[int, ...], Mapping[int, Kept]], odd: list[OddReplica]
) -> None:
    """Hold replicas to the one of the lowest rank, bit by bit."""
    import numpy as np

    for same in places.values():
        (lead, first), *others = same.items()
        for rank, kept in others:
            for ours, theirs in zip(first.blocks(), kept.blocks(), strict=True):
                if not np.array_equal(ours.view(np.uint8), theirs.view(np.uint8)):
                    odd.append(OddReplica(name, rank, lead))
                    break
