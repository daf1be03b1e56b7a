"""Devices, stages and rank of a run, as its dumps and folders show them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.model import Entry, Origin
from irtool.cluster.context.shown import Shown
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import POINT_TO_POINT

TRANSFERS = " and ".join(POINT_TO_POINT)


@dataclass(frozen=True, slots=True)
class SeenStages:
    """Pipeline stages: ``size`` devices each, None where transfers do not show it.

    ``taken_rank`` is the rank that the dump was taken for, None where it is known; ``what`` says
    by what the size is known.
    """

    has_pipeline: bool
    size: int | None
    path: str
    taken_rank: int | None = None
    what: str = ""


def seen_devices(evidence: Evidence, *, thorough: bool) -> Entry | None:
    """How many devices there are, where a group lists all of them or all ranks left a folder.

    Args:
        evidence: the dumps.
        thorough: whether to go on reading while nothing is known; else the later dumps of the same
            rank are enough.
    """
    for shown in evidence.later:
        world = _world(shown)
        if world is not None:
            return world
    if not thorough:
        return None
    world = None if evidence.begin is None else _world(evidence.begin)
    if world is not None:
        return world
    by_mirrors = _of_mirrors(evidence)
    if by_mirrors is not None:
        return by_mirrors
    for shown in evidence.sibling_dumps:
        world = _world(shown)
        if world is not None:
            return world
    return _of_folder(evidence)


def _world(shown: Shown) -> Entry | None:
    """Devices that one dump shows: a group of all of them, or all stages of a pipeline."""
    if shown.world is not None:
        count, what = shown.world
        return Entry(count, Origin("dump", shown.path, what))
    borders = shown.borders
    if borders is None or borders.stages is None:
        return None
    return Entry(borders.size * borders.stages, Origin("dump", shown.path, borders.what))


def _of_folder(evidence: Evidence) -> Entry | None:
    """As many as left a folder, where these are the ranks from 0 on and no group knows another."""
    count = len(evidence.ranks)
    if count < 2 or evidence.ranks != tuple(range(count)):
        return None
    seen = {rank for shown in evidence.later for rank in shown.ranks}
    if max(seen, default=0) >= count:
        return None
    return Entry(count, Origin("folder", what=f"folders of ranks 0 to {count - 1}"))


def _of_mirrors(evidence: Evidence) -> Entry | None:
    """By weights whose gradient is summed over all that hold the same slice.

    As many devices hold each slice as the sum is over, so slices times these are a stage. Groups
    are taken that list their ranks, of weights that are not cut over their replicas.
    """
    begin, stages = evidence.begin, seen_stages(evidence)
    if begin is None or stages is None or stages.has_pipeline:
        return None
    for shown in evidence.later:
        sizes: dict[int, str] = {}
        for item in shown.communications:
            name = item.parameter
            if item.origin != "mirror" or name is None or name in shown.gathers:
                continue
            slices = _slices(begin, shown, name)
            if item.ranks_from not in _LISTED or item.ranks is None or slices is None:
                continue
            sizes[len(item.ranks) * slices] = name
        if len(sizes) == 1:
            count, name = sizes.popitem()
            what = f"slices of {name}, and the ranks that sum the gradient of one"
            return Entry(count, Origin("dump", shown.path, what))
    return None


_LISTED = ("rank_list", "group_rank_ids", "group_ranks")


def _slices(begin: Shown, later: Shown, name: str) -> int | None:
    """Into how many slices a weight is cut."""
    full, own = begin.weights.get(name), later.weights.get(name)
    if full is None or own is None or full.type is None or own.type is None:
        return None
    sizes, parts = full.type.dimensions, own.type.dimensions
    if sizes is None or parts is None or len(sizes) != len(parts):
        return None
    if any(part < 1 or size % part for size, part in zip(sizes, parts, strict=True)):
        return None
    return math.prod(size // part for size, part in zip(sizes, parts, strict=True))


def least_devices(evidence: Evidence, stages: SeenStages) -> Entry | None:
    """The smallest number of devices that holds the ranks seen in whole stages.

    Another number may be true, so it counts as assumed.

    Args:
        evidence: the dumps of a compilation.
        stages: that the same dumps show.

    Returns:
        None without a pipeline, or where the size of its stages is not known.
    """
    if not stages.has_pipeline or stages.size is None:
        return None
    seen = {rank for shown in _telling(evidence) for rank in shown.ranks}
    highest = max(seen | {evidence.rank or 0})
    count = (highest // stages.size + 1) * stages.size
    return Entry(count, Origin("assumed", what=f"{TRANSFERS} show as many at least"))


def seen_stages(evidence: Evidence) -> SeenStages | None:
    """Whether there is a pipeline, and how large its stages are; None where there is no dump.

    Args:
        evidence: the dumps of a compilation.
    """
    read = _telling(evidence)
    if not read:
        return None
    piped = next((shown for shown in read if shown.has_pipeline), None)
    if piped is None:
        return SeenStages(False, None, read[0].path)
    sized = next((shown for shown in _all(evidence) if shown.stage_size is not None), None)
    if sized is not None:
        what = sized.borders.what if sized.borders is not None else ""
        return SeenStages(True, sized.stage_size, sized.path, what=what)
    rank = evidence.taken_rank
    if piped.rank is None and rank is not None and not piped.possible_ranks:
        # One peer alone shows a distance only from somewhere.
        return SeenStages(True, piped.distance_from(rank), piped.path, rank)
    return SeenStages(True, None, piped.path)


def _all(evidence: Evidence) -> Iterator[Shown]:
    """Later dumps, then the begin dump: not all have what says the size of a stage."""
    yield from evidence.later
    if evidence.begin is not None:
        yield evidence.begin


def _telling(evidence: Evidence) -> list[Shown]:
    """The first later dump; where there is none, the begin dump."""
    first = next(evidence.later, None) or evidence.begin
    return [] if first is None else [first]


def seen_rank(evidence: Evidence) -> Entry | None:
    """Whose dumps these are, where groups say: the lowest rank of those that they allow.

    Args:
        evidence: the dumps of a compilation.

    Returns:
        None where groups say nothing, or allow rank 0 among others; assumed where they allow
        several.
    """
    for shown in evidence.later:
        if shown.named_rank is not None:
            what = "its place among the ranks of all stages"
            return Entry(shown.named_rank, Origin("dump", shown.path, what))
    first = next(evidence.later, None)
    able = first.possible_ranks if first is not None else None
    if first is None or not able:
        return None
    lowest = min(able)
    if len(able) == 1:
        return Entry(lowest, Origin("dump", first.path, "the only rank in all of its groups"))
    if lowest == 0:
        return None
    return Entry(lowest, Origin("assumed", what="the first that the groups of its dump allow"))
