"""Who holds what: for every parameter, which box of it each rank stores.

From a begin dump of each pipeline stage and the parallel context, as ``irtool check`` predicts
them: an operator's layout gives the slice that it sees, and with optimizer parallel the ranks of
its gather group store equal parts of the first dimension, in the order of their ranks.  Optimizer
state is laid out as the weight that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.parameter_roles import is_accumulated
from irtool.ir.types import BITS
from irtool.operators.layout import Shape, TensorLayout
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, ParameterReport

Box = tuple[tuple[int, int], ...]
"""Begin and end of each dimension."""
StageDumps = Mapping[int, Dump]
"""A begin dump for each pipeline stage."""


@dataclass(frozen=True, eq=False)
class Holding:
    """One parameter and the box that each of its ranks stores.

    ``weight`` is the weight that it belongs to (its own name for a weight); ``item_bytes`` the
    bytes of one element.
    """

    name: str
    weight: str
    shape: Shape
    item_bytes: float
    boxes: Mapping[int, Box]

    @property
    def is_state(self) -> bool:
        """Whether an optimizer keeps it for a weight."""
        return self.weight != self.name

    @cached_property
    def replica_sets(self) -> tuple[tuple[int, ...], ...]:
        """Ranks that store the same box, each set sorted; single ranks are points of failure."""
        holders: dict[Box, list[int]] = {}
        for rank, box in sorted(self.boxes.items()):
            holders.setdefault(box, []).append(rank)
        return tuple(tuple(ranks) for ranks in holders.values())

    @property
    def whole_bytes(self) -> int:
        """Bytes of all its slices, each counted once."""
        return sum(self.bytes_of(self.boxes[ranks[0]]) for ranks in self.replica_sets)

    def bytes_of(self, box: Box) -> int:
        """Bytes of a part of the parameter, begin and end of each dimension given."""
        return int(volume(box) * self.item_bytes)


@dataclass(frozen=True, eq=False)
class Holdings:
    """All parameters of a network on some devices.

    ``unknown`` are parameters whose slice is not known, with the reason; ``reports`` what ``check``
    says of each stage; ``seen`` the stages whose slices were read off later dumps, without reports.
    """

    devices: int
    stages: int
    items: tuple[Holding, ...]
    unknown: Mapping[str, str]
    reports: Mapping[int, CheckResult]
    seen: frozenset[int] = frozenset()

    @property
    def missing(self) -> tuple[int, ...]:
        """Stages of which nothing is known."""
        known = self.seen | self.reports.keys()
        return tuple(stage for stage in range(self.stages) if stage not in known)

    @property
    def accepted(self) -> bool | None:
        """What MindSpore would say of all stages; None where a part is unknown."""
        verdicts = [report.accepted for report in self.reports.values()]
        if False in verdicts:
            return False
        return None if None in verdicts or not verdicts or self.missing else True

    def by_name(self) -> dict[str, Holding]:
        """The parameters by name."""
        return {item.name: item for item in self.items}

    def bytes_on(self, rank: int) -> int:
        """Bytes that a rank stores."""
        return sum(item.bytes_of(item.boxes[rank]) for item in self.items if rank in item.boxes)


def stages_of(begin: Dump | StageDumps, context: ParallelContext) -> StageDumps:
    """The begin dumps by stage: MindSpore splits a pipeline before it writes them.

    Args:
        begin: one dump, of the stage of the context's rank, or those of several stages.
        context: devices and stages.
    """
    return {context.stage: begin} if isinstance(begin, Dump) else begin


def holdings(begin: Dump | StageDumps, context: ParallelContext) -> Holdings:
    """Who holds what, before anything ran.

    Args:
        begin: the dump ``step_parallel_begin``; of a pipeline those of its stages, as
            :func:`stages_of` takes them.
        context: devices and options.
    """
    size = context.stage_size
    reports = {
        stage: check(dump, replace(context, rank=stage * size))
        for stage, dump in sorted(stages_of(begin, context).items())
    }
    held: dict[str, dict[int, Box]] = {}
    shapes: dict[str, ParameterReport] = {}
    unknown: dict[str, str] = {}
    for stage, report in reports.items():
        ranks = range(stage * size, (stage + 1) * size)
        weights = _weights(report)
        gathers = {item.name: item for item in report.parameters}
        alike: dict[_Cut, dict[int, Box] | None] = {}
        for item in report.parameters:
            if item.name not in weights:
                continue
            owner = gathers.get(item.weight, item)
            cut = _cut_of(item, owner)
            # The weights of a layer lie as those of the next.
            if cut is not None and cut not in alike:
                alike[cut] = _boxes(cut, ranks)
            boxes = None if cut is None else alike[cut]
            if boxes is None:
                unknown[item.name] = item.why or "its slice is not known"
                continue
            shapes[item.name] = item
            held.setdefault(item.name, {}).update(boxes)
    items = tuple(
        Holding(
            name,
            shapes[name].weight,
            tuple(shapes[name].shape),
            _item_bytes(shapes[name]),
            boxes,
        )
        for name, boxes in held.items()
    )
    return Holdings(context.devices, context.stages, items, unknown, reports)


def is_restored(name: str) -> bool:
    """Whether a parameter has to be there before a step: gradients that a step adds up do not.

    They are zero between steps; MindSpore 2.7 leaves them out of checkpoints, and its fault
    tolerance sets them to zero on every rank.

    Args:
        name: of the parameter.
    """
    return not is_accumulated(name)


def _weights(report: CheckResult) -> set[str]:
    return {
        item.name
        for item in report.parameters
        if item.parameter.declaration is not None
        and item.parameter.declaration.is_weight
        and is_restored(item.name)
    }


def _item_bytes(item: ParameterReport) -> float:
    dtype = item.parameter.type.dtype if item.parameter.type else None
    return BITS.get(dtype or "", 32) / 8


@dataclass(frozen=True, slots=True)
class _Cut:
    """How one stage stores a parameter.

    Attributes:
        shape: of the whole parameter.
        layout: None where every rank stores all of it.
        gathered: the ranks that share the report's slice by optimizer parallel; fewer than two
            where none do.
    """

    shape: Shape
    layout: TensorLayout | None
    gathered: tuple[int, ...]


def _cut_of(item: ParameterReport, owner: ParameterReport) -> _Cut | None:
    """How a parameter is stored; None where it is not known."""
    if item.slice is None or min((*item.shape, *item.slice), default=0) < 0:
        return None
    layout = item.layout if item.layout is not None else owner.layout
    shape = tuple(item.shape)
    if layout is not None and len(layout.tensor_map) == len(shape):
        return _Cut(shape, layout, tuple(owner.gather_ranks or ()))
    return _Cut(shape, None, ()) if tuple(item.slice) == shape else None


def _boxes(cut: _Cut, ranks: Sequence[int]) -> dict[int, Box] | None:
    """What each rank of a stage stores; None where the group of those that share is no block."""
    layout = cut.layout
    if layout is None:
        return dict.fromkeys(ranks, tuple((0, size) for size in cut.shape))
    seen: dict[int, Box] = {}
    for position, rank in enumerate(ranks):
        piece = layout.piece(position)
        seen[rank] = tuple(
            (start, start + size) for start, size in zip(piece.offset, piece.shape, strict=True)
        )
    return seen if len(cut.gathered) < 2 else _shared(seen, cut.gathered)


def _shared(seen: Mapping[int, Box], gathered: tuple[int, ...]) -> dict[int, Box] | None:
    """What ranks store that share slices by optimizer parallel: blocks of those that see the same.

    None where the group that the report gives for its own rank is no such block.
    """
    alike: dict[Box, list[int]] = {}
    for rank, box in seen.items():
        alike.setdefault(box, []).append(rank)
    size = len(gathered)
    blocks = [
        tuple(ranks[start : start + size])
        for ranks in alike.values()
        for start in range(0, len(ranks), size)
    ]
    if gathered not in blocks:
        return None
    parts = {
        rank: _part(seen[rank], index, len(block))
        for block in blocks
        for index, rank in enumerate(block)
    }
    return dict(sorted(parts.items()))


def _part(box: Box, index: int, count: int) -> Box:
    if not box:  # of a number
        return box
    (start, end), *rest = box
    size = (end - start) // count
    return ((start + index * size, start + (index + 1) * size), *rest)


# -- boxes ---------------------------------------------------------------------------------------


def volume(box: Box) -> int:
    """Number of elements of a box.

    Args:
        box: begin and end of each dimension.
    """
    return math.prod(max(0, end - start) for start, end in box)


def overlap(left: Box, right: Box) -> Box | None:
    """The elements that two boxes have in common.

    Args:
        left: begin and end of each dimension.
        right: likewise, of as many dimensions.

    Returns:
        None if they share nothing.
    """
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(left, right, strict=True))
    return common if all(start < end for start, end in common) else None


def without(box: Box, hole: Box) -> Iterator[Box]:
    """A box without another one, as boxes that do not overlap.

    Args:
        box: begin and end of each dimension.
        hole: what is taken out; it may reach beyond the box.
    """
    shared = overlap(box, hole)
    if shared is None:
        yield box
        return
    rest = list(box)
    for axis, ((start, end), (low, high)) in enumerate(zip(box, shared, strict=True)):
        if start < low:
            yield (*rest[:axis], (start, low), *rest[axis + 1 :])
        if high < end:
            yield (*rest[:axis], (high, end), *rest[axis + 1 :])
        rest[axis] = (low, high)


def uncovered(box: Box, holders: Sequence[Box]) -> int:
    """Elements of a box that none of some others has."""
    left = [box]
    for holder in dict.fromkeys(holders):
        left = [piece for part in left for piece in without(part, holder)]
        if not left:
            return 0
    return sum(map(volume, left))
