"""Which checkpoints MindSpore asks for: ``rank_list_for_transform`` in closed form.

MindSpore infers a redistribution for every parameter and takes all ranks whose slices its
AllConcats join.  That is: write both layouts as cuts, cut these at every stride of either, and
gather each piece of the source that the target does not have in the same place.  Equal to
``rank_list_for_transform`` of MindSpore 2.7.0 on every answer that it was held to (docs/ckpt.md).
It is always enough, and often more than is needed (:mod:`irtool.planning.checkpoints.sources`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod

from irtool.artefacts.cuts import Cut, Cuts, Refused, cuts_in_conversion
from irtool.artefacts.strategies.model import SavedLayout, StrategyFile
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Placed:
    """A parameter as MindSpore's conversion sees it: one layout, and all stages that hold it."""

    layout: SavedLayout
    stages: tuple[int, ...]


def mindspore_ranks(old: StrategyFile | None, new: StrategyFile | None, rank: int) -> list[int]:
    """The source ranks that ``rank_list_for_transform`` names, ascending.

    Args:
        old: how the checkpoints lie; None: whole, in one file.
        new: how they are to lie; None: whole.
        rank: of the new layout.

    Raises:
        Refused: MindSpore raises an error; the message says which.
    """
    if old is None:
        return [0]
    return _asked(old, new, rank).ranks_of(rank)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What MindSpore's conversion asks of the ranks of one stage.

    Attributes:
        pairs: the layouts of parameters, old and new, those that lie alike once; with a name.
        stages: of the source whose checkpoints are read.
        size: devices of one of these.
        devices: of a stage of the target.
    """

    pairs: tuple[tuple[SavedLayout, SavedLayout | None, str], ...]
    stages: tuple[int, ...]
    size: int
    devices: int

    def ranks_of(self, rank: int) -> list[int]:
        """The source ranks of a rank of the target, ascending.

        Raises:
            Refused: MindSpore raises an error.
        """
        local = rank % self.devices if self.devices > 1 else rank
        needed: set[int] = set()
        for source, target, name in self.pairs:
            try:
                needed.update(_needed(source, target, local))
            except Refused:
                # The same with its name, for the message.
                needed.update(_needed(replace(source, key=name), target, local))
        return sorted(stage * self.size + device for stage in self.stages for device in needed)


def _asked(old: StrategyFile, new: StrategyFile | None, rank: int) -> _Asked:
    """What is asked of the stage of a rank.

    Raises:
        Refused: the source holds nothing of it.
    """
    sources = _placed(old, None)
    targets = None if new is None else _placed(new, rank)
    devices = 1 if new is None else new.stage_devices
    if targets is not None:
        stage = rank // devices
        for name in [name for name, placed in targets.items() if stage not in placed.stages]:
            del targets[name]
            sources.pop(name, None)
    if not sources:
        raise Refused("the source holds none of the parameters of this stage")
    size = next(iter(sources.values())).layout.devices
    pairs: dict[tuple[SavedLayout, SavedLayout | None], str] = {}
    for name, placed in sources.items():
        if targets is not None and name not in targets:
            continue
        target = None if targets is None else _plain(targets[name].layout)
        pairs.setdefault((_plain(placed.layout), target), name)
    stages = dict.fromkeys(stage for placed in sources.values() for stage in placed.stages)
    return _Asked(
        tuple((source, target, name) for (source, target), name in pairs.items()),
        tuple(stages),
        size,
        devices,
    )


def _placed(file: StrategyFile, rank: int | None) -> dict[str, _Placed]:
    """Parameters by name; of one that several stages hold the layout that MindSpore keeps.

    Source: ``_convert_to_list`` of ``mindspore/parallel/_parallel_serialization.py``.
    """
    placed: dict[str, _Placed] = {}
    for layout in file.layouts.values():
        stage = layout.stage or 0
        known = placed.get(layout.name)
        if known is None:
            placed[layout.name] = _Placed(layout, (stage,))
            continue
        stages = (*known.stages, stage)
        if rank is None:
            is_kept = all(stage <= other for other in stages)
        else:
            is_kept = (rank // layout.devices == 0) == (stage == 0)
        placed[layout.name] = _Placed(layout if is_kept else known.layout, stages)
    return placed


def _plain(layout: SavedLayout) -> SavedLayout:
    """A layout without what tells parameters apart that lie alike."""
    return replace(layout, key="", stage=None, shape=None, name="")


@cache
def _needed(source: SavedLayout, target: SavedLayout | None, local: int) -> frozenset[int]:
    """Ranks of the source's stage that a rank of the target's stage gathers from."""
    theirs = cuts_in_conversion(source)
    ours: Cuts = tuple(() for _ in theirs) if target is None else cuts_in_conversion(target)
    if len(ours) != len(theirs):
        raise Refused(
            f"{source.key}: its tensor maps have {len(theirs)} and {len(ours)} dimensions, "
            "as where JSON makes a dimension of each axis"
        )
    devices = 1 if target is None else target.devices
    larger, smaller = max(source.devices, devices), min(source.devices, devices)
    if larger % smaller:
        raise Refused(f"cannot transform device_num from {source.devices} to {devices}")
    strides = _strides(source)
    if target is not None:
        strides |= _strides(target)
    gathered: list[Cut] = []
    for their_cuts, our_cuts in zip(theirs, ours, strict=True):
        kept = set(_pieces(our_cuts, strides))
        gathered += [cut for left, cut in _pieces(their_cuts, strides) if (left, cut) not in kept]
    base = local - sum(cut.part_of(local) * cut.stride for cut in gathered)
    offsets = product(*(range(0, cut.stride * cut.size, cut.stride) for cut in gathered))
    return frozenset((base + sum(offset)) % source.devices for offset in offsets)


def _strides(layout: SavedLayout) -> set[int]:
    """Strides of all axes of its device matrix, and of the parts that optimizer parallel cuts."""
    matrix = layout.device_matrix
    strides = {prod(matrix[axis + 1 :]) for axis in range(len(matrix))}
    strides |= {cut.stride for cuts in cuts_in_conversion(layout) for cut in cuts}
    strides |= {cut.stride * cut.size for cuts in cuts_in_conversion(layout) for cut in cuts}
    return strides


def _pieces(cuts: Sequence[Cut], strides: Iterable[int]) -> list[tuple[int, Cut]]:
    """The cuts of a dimension, cut at all strides: each with the number of parts before it."""
    pieces: list[tuple[int, Cut]] = []
    left = 1
    for cut in cuts:
        end = cut.stride * cut.size
        for stride in sorted(
            (candidate for candidate in strides if cut.stride <= candidate < end), reverse=True
        ):
            if end % stride or stride % cut.stride:
                raise Refused("strides that do not divide each other: nobody tried")
            pieces.append((left, Cut(stride, end // stride)))
            left *= end // stride
            end = stride
    return pieces


def all_mindspore_ranks(
    old: StrategyFile | None, new: StrategyFile | None, ranks: Sequence[int]
) -> Mapping[int, list[int] | str]:
    """Old checkpoints that MindSpore asks for, by rank of the new layout; a text where it fails.

    Args:
        old: layouts that the checkpoints were saved under; None: there is one whole checkpoint,
            rank 0.
        new: layouts that they are converted to; None: to whole checkpoints.
        ranks: of the new layout.

    Returns:
        ranks of the old layout, or why MindSpore raises an error.
    """
    sources: dict[int, list[int] | str] = {}
    asked: dict[object, _Asked] = {}
    for rank in ranks:
        try:
            if old is None:
                sources[rank] = [0]
                continue
            # What is asked differs between stages alone.
            key = _stage_key(new, rank)
            if key not in asked:
                asked[key] = _asked(old, new, rank)
            sources[rank] = asked[key].ranks_of(rank)
        except Refused as error:
            sources[rank] = str(error)
    return sources


def _stage_key(new: StrategyFile | None, rank: int) -> tuple[int, ...]:
    if new is None:
        return ()
    sizes = sorted({layout.devices for layout in new.layouts.values()})
    return rank // new.stage_devices, *(int(rank // size == 0) for size in sizes)
