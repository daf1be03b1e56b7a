"""Predict the operators that MindSpore inserts between two layouts of one tensor.

Where a producer leaves a tensor in another layout than its consumer wants, MindSpore inserts a
chain of operators on the edge; a Reshape operator is replaced by such a chain. ``infer`` gives the
chain for one rank, at one of three levels:

- ``abstract``: AllConcat, SplitByAxis, PermuteByAxis, Reshape: what moves;
- ``operators``: AllGather, Split, Concat, StridedSlice, AlltoAll, Reshape: what costs;
- ``nodes``: the same with the TupleGetItem and MakeTuple nodes that tie them together in a dump.

Dimensions of unknown size (-1) are handled where producer and consumer see the same shape: slices
are then Split and TupleGetItem instead of StridedSlice.

Limits: no micro-batch interleaving layouts, no Reshape of unknown sizes. A Reshape of booleans has
a Cast on either side of its chain (AllGather takes no booleans), which the caller knows and this
module doesn't; elsewhere a chain that gathers booleans makes the compilation fail.

Source: chains in dumps of MindSpore 2.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import DYNAMIC, Shape, TensorLayout
from irtool.operators.steps import CONCAT, RESHAPE, SPLIT, STRIDED_SLICE
from irtool.sharding.redistribution.moves import (
    AllConcat,
    AllToAll,
    Move,
    Reshape,
    Slice,
    moves_between,
    shapes_along,
)
from irtool.sharding.redistribution.peephole import tidied
from irtool.sharding.redistribution.refinement import Placement, placement, refine

Level = Literal["abstract", "operators", "nodes"]


# Primes that divide no real size: what they divide is unknown.
_STAND_INS = (1000003, 1000033, 1000037, 1000039, 1000081, 1000099, 1000117, 1000121)

_UNKNOWN_RESHAPE = "a Reshape of unknown sizes is not predicted"


class RedistributionError(ValueError):
    """The two layouts can't be turned into each other, or are no layouts at all."""


@dataclass(frozen=True, slots=True)
class RedistributionStep:
    """One operator of a chain, as one rank executes it.

    Shapes are local (what this device holds); for Split, TupleGetItem and MakeTuple they are those
    of one part.

    - ``axis``: dimension that is gathered, joined, or cut.
    - ``concat_axis``: dimension along which an AlltoAll joins what it receives.
    - ``count``: number of parts (ranks of a collective, parts of a cut).
    - ``index``: which part this rank keeps (StridedSlice, SplitByAxis), or item (TupleGetItem).
      A TupleGetItem at level ``operators`` keeps one part of the Split before it.
    - ``ranks``: group of a collective, sorted; empty for local operators.
    """

    op: str
    input_shape: Shape
    output_shape: Shape
    axis: int | None = None
    concat_axis: int | None = None
    count: int | None = None
    index: int | None = None
    ranks: tuple[int, ...] = ()

    @property
    def is_collective(self) -> bool:
        """True if the step communicates."""
        return bool(self.ranks)

    @property
    def received_elements(self) -> int:
        """Elements that each device receives from others, under a ring or pairwise algorithm."""
        if not self.ranks:
            return 0
        others, size = len(self.ranks) - 1, prod(self.input_shape)
        if self.concat_axis is not None:
            return size * others // len(self.ranks)
        return size * others

    def cost_bytes(self, item_bytes: int) -> int:
        """Bytes that each device receives, ``item_bytes`` being the size of one element."""
        return self.received_elements * item_bytes

    @property
    def begin(self) -> Shape | None:
        """Where a StridedSlice begins; None for other operators."""
        if self.axis is None or self.index is None or self.op not in (STRIDED_SLICE, "SplitByAxis"):
            return None
        offset = self.index * self.output_shape[self.axis]
        return tuple(offset if axis == self.axis else 0 for axis in range(len(self.output_shape)))

    @property
    def end(self) -> Shape | None:
        """Where a StridedSlice ends (exclusive); None for other operators."""
        begin = self.begin
        if begin is None:
            return None
        return tuple(low + size for low, size in zip(begin, self.output_shape, strict=True))


def infer(
    source: TensorLayout,
    target: TensorLayout,
    ranks: Sequence[int],
    rank: int,
    *,
    enable_alltoall: bool = False,
    keep_reshape: bool = False,
    level: Level = "operators",
    tidy: bool = True,
) -> tuple[RedistributionStep, ...]:
    """The chain that turns ``source`` into ``target`` on device ``rank``; empty if none is needed.

    Args:
        source: layout that the producer leaves.
        target: layout that the consumer wants; its tensor shape may differ (same elements).
        ranks: all ranks of the stage, sorted and consecutive.
        rank: the rank for which slices and groups are given.
        enable_alltoall: as in ``set_auto_parallel_context``.
        keep_reshape: the chain replaces a Reshape operator, of which something must remain.
        level: see the module.
        tidy: False for chains that the peephole pass leaves alone.

    Raises:
        RedistributionError: for layouts that don't fit each other, the ranks, or this module.
    """
    _check(source, target, ranks, rank)
    edge = _Edge(source, target, ranks, rank, enable_alltoall)
    if not edge.is_dynamic:
        moves = edge.moves()
        if tidy:
            moves = edge.tidied(moves, keep_reshape=keep_reshape)
        return tuple(_steps(source.slice_shape, moves, level))
    if keep_reshape:
        raise RedistributionError(_UNKNOWN_RESHAPE)
    known = edge.with_stand_ins()
    # The peephole pass leaves chains with unknown sizes alone.
    steps = _steps(known.source.slice_shape, known.moves(), level, dynamic=True)
    return tuple(map(_forgotten, steps))


def created_groups(
    source: TensorLayout,
    target: TensorLayout,
    ranks: Sequence[int],
    rank: int,
    *,
    enable_alltoall: bool = False,
) -> tuple[tuple[int, ...], ...]:
    """All groups that MindSpore creates to infer the chain, in order, each once.

    More than the chain uses: those of slices, and those of gathers that are merged later. Where
    one of them is refused (device lists of the first-generation 910), so is the network.

    Args:
        source: layout that the producer leaves.
        target: layout that the consumer wants.
        ranks: all ranks of the stage, sorted and consecutive.
        rank: the rank for which groups are given.
        enable_alltoall: as in ``set_auto_parallel_context``.

    Returns:
        Ranks of each group.

    Raises:
        RedistributionError: for layouts that don't fit each other, the ranks, or this module.
    """
    _check(source, target, ranks, rank)
    edge = _Edge(source, target, ranks, rank, enable_alltoall)
    if edge.is_dynamic:
        moves = edge.with_stand_ins().moves()
    else:
        moves = edge.moves()
        moves = [*moves, *edge.tidied(moves)]
    return _groups(moves)


def infer_with_groups(
    source: TensorLayout,
    target: TensorLayout,
    ranks: Sequence[int],
    rank: int,
    *,
    enable_alltoall: bool = False,
    keep_reshape: bool = False,
) -> tuple[tuple[RedistributionStep, ...], tuple[tuple[int, ...], ...]]:
    """What :func:`infer` and :func:`created_groups` tell, the chain looked for once.

    Args:
        source: layout that the producer leaves.
        target: layout that the consumer wants; its tensor shape may differ (same elements).
        ranks: all ranks of the stage, sorted and consecutive.
        rank: the rank for which slices and groups are given.
        enable_alltoall: as in ``set_auto_parallel_context``.
        keep_reshape: the chain replaces a Reshape operator, of which something must remain.

    Returns:
        The steps at the level ``operators``, and the ranks of each group.

    Raises:
        RedistributionError: as :func:`infer` does.
    """
    _check(source, target, ranks, rank)
    edge = _Edge(source, target, ranks, rank, enable_alltoall)
    if edge.is_dynamic:
        alltoall = enable_alltoall
        groups = created_groups(source, target, ranks, rank, enable_alltoall=alltoall)
        steps = infer(
            source, target, ranks, rank, enable_alltoall=alltoall, keep_reshape=keep_reshape
        )
        return steps, groups
    moves = edge.moves()
    tidy = edge.tidied(moves)
    kept = edge.tidied(moves, keep_reshape=True) if keep_reshape else tidy
    return tuple(_steps(source.slice_shape, kept, "operators")), _groups([*moves, *tidy])


def _groups(moves: Sequence[Move]) -> tuple[tuple[int, ...], ...]:
    """The groups of moves in order, each once."""
    groups = (() if isinstance(move, Reshape) else move.ranks for move in moves)
    return tuple(dict.fromkeys(group for group in groups if group))


def cost_bytes(steps: Sequence[RedistributionStep], item_bytes: int) -> int:
    """Bytes that each device receives in a whole chain.

    Args:
        steps: of the chain.
        item_bytes: bytes of one element.
    """
    return sum(step.cost_bytes(item_bytes) for step in steps)


def _check(source: TensorLayout, target: TensorLayout, ranks: Sequence[int], rank: int) -> None:
    for layout in (source, target):
        problem = layout.problem()
        if problem is not None:
            raise RedistributionError(problem)
        if 0 in layout.tensor_shape:
            raise RedistributionError(f"the tensor shape {layout.tensor_shape} has no elements")
        if prod(layout.device_matrix) != len(ranks):
            raise RedistributionError(
                f"the device matrix {layout.device_matrix} needs {prod(layout.device_matrix)} "
                f"devices, the stage has {len(ranks)}"
            )
    dynamic = DYNAMIC in (*source.tensor_shape, *target.tensor_shape)
    if not dynamic and prod(source.tensor_shape) != prod(target.tensor_shape):
        raise RedistributionError(
            f"from shape size must be equal to to shape size: {source.tensor_shape} has "
            f"{prod(source.tensor_shape)} elements, {target.tensor_shape} has "
            f"{prod(target.tensor_shape)}"
        )
    if not _are_consecutive(tuple(ranks)):
        raise RedistributionError(f"the stage's ranks {list(ranks)} are not consecutive")
    if rank not in ranks:
        raise RedistributionError(f"rank {rank} is outside the stage's ranks {list(ranks)}")


@lru_cache(maxsize=16)
def _are_consecutive(ranks: tuple[int, ...]) -> bool:
    return ranks == tuple(range(ranks[0], ranks[0] + len(ranks)))


@dataclass(frozen=True, slots=True)
class _Edge:
    """What there is between a producer and a consumer, for one rank."""

    source: TensorLayout
    target: TensorLayout
    ranks: Sequence[int]
    rank: int
    enable_alltoall: bool

    @property
    def is_dynamic(self) -> bool:
        return DYNAMIC in (*self.source.tensor_shape, *self.target.tensor_shape)

    def with_stand_ins(self) -> _Edge:
        """The edge with a large prime, times what is needed to divide it, for each unknown size."""
        if self.source.tensor_shape != self.target.tensor_shape:
            raise RedistributionError(_UNKNOWN_RESHAPE)
        shape = list(self.source.tensor_shape)
        primes = iter(_STAND_INS)
        for index, size in enumerate(shape):
            if size == DYNAMIC:
                shape[index] = next(primes) * self.source.splits[index] * self.target.splits[index]
        return replace(
            self,
            source=replace(self.source, tensor_shape=tuple(shape)),
            target=replace(self.target, tensor_shape=tuple(shape)),
        )

    def tidied(self, moves: list[Move], *, keep_reshape: bool = False) -> list[Move]:
        """The chain after the peephole pass; at least one Reshape with ``keep_reshape``."""
        if not moves and keep_reshape:
            return [Reshape(self.target.slice_shape)]
        return tidied(self.source.slice_shape, moves)

    def moves(self) -> list[Move]:
        """The chain with the reshapes around it that the refinement makes necessary."""
        first, last = placement(self.source), placement(self.target)
        before, after = self.source.slice_shape, self.target.slice_shape
        pair = refine(first.squeezed(), last.squeezed())
        if pair is None:
            # The way out where refinement fails: gather the whole tensor, then slice it.
            start = replace(last, axes=(None,) * len(last.axes))
            return [
                *_reshapes(before, first.slice_shape),
                *self._between(first, (None,) * len(first.axes)),
                *_reshapes(first.shape, last.shape),
                *self._between(start, last.axes),
                *_reshapes(last.slice_shape, after),
            ]
        middle = self._between(pair[0], pair[1].axes)
        if not middle:
            return list(_reshapes(before, after))
        return [
            *_reshapes(before, first.slice_shape, pair[0].slice_shape),
            *middle,
            *_reshapes(pair[1].slice_shape, last.slice_shape, after),
        ]

    def _between(self, start: Placement, goal: tuple[int | None, ...]) -> list[Move]:
        return moves_between(
            start, goal, self.ranks, self.rank, enable_alltoall=self.enable_alltoall
        )


def _reshapes(*shapes: Shape) -> Iterator[Move]:
    """A Reshape from each form of a layout to the next: given, one axis a dimension, refined."""
    for before, after in pairwise(shapes):
        if before != after:
            yield Reshape(after)


def _forgotten(step: RedistributionStep) -> RedistributionStep:
    """The step with stand-ins for unknown sizes turned back into -1."""

    def forget(shape: Shape) -> Shape:
        return tuple(
            DYNAMIC if any(size % prime == 0 for prime in _STAND_INS) else size for size in shape
        )

    return replace(
        step, input_shape=forget(step.input_shape), output_shape=forget(step.output_shape)
    )


def _steps(
    shape: Shape, moves: list[Move], level: Level, *, dynamic: bool = False
) -> Iterator[RedistributionStep]:
    shapes = shapes_along(shape, moves)
    for move, before, after in zip(moves, shapes, shapes[1:], strict=False):
        if isinstance(move, Reshape):
            yield RedistributionStep(RESHAPE, before, after)
        elif isinstance(move, Slice) and dynamic and level != "abstract":
            yield RedistributionStep(SPLIT, before, after, move.axis, None, move.count)
            yield RedistributionStep("TupleGetItem", after, after, index=move.index)
        elif isinstance(move, Slice):
            op = "SplitByAxis" if level == "abstract" else STRIDED_SLICE
            yield RedistributionStep(op, before, after, move.axis, None, move.count, move.index)
        elif isinstance(move, AllToAll):
            op = "PermuteByAxis" if level == "abstract" else "AlltoAll"
            count = len(move.ranks)
            yield RedistributionStep(
                op, before, after, move.axis, move.concat_axis, count, None, move.ranks
            )
        elif level == "abstract":
            count = len(move.ranks)
            yield RedistributionStep(
                "AllConcat", before, after, move.axis, None, count, None, move.ranks
            )
        else:
            yield from _gather_operators(move, before, after, level)


def _gather_operators(
    move: AllConcat, before: Shape, after: Shape, level: Level
) -> Iterator[RedistributionStep]:
    """AllGather joins along dimension 0; another one needs Split and Concat behind it."""
    count = len(move.ranks)
    joined = (before[0] * count, *before[1:])
    yield RedistributionStep("AllGather", before, joined, 0, None, count, None, move.ranks)
    if move.axis == 0:
        return
    yield RedistributionStep(SPLIT, joined, before, 0, None, count)
    if level == "nodes":
        for index in range(count):
            yield RedistributionStep("TupleGetItem", before, before, index=index)
        yield RedistributionStep("MakeTuple", before, before, count=count)
    yield RedistributionStep(CONCAT, before, after, move.axis, None, count)
