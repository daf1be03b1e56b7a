"""The moves of a redistribution, before they become operators.

Between two refined placements (same devices, same shape) MindSpore walks from the source's axes to
the target's greedily: slice where nothing is in the way, exchange where another dimension holds
the wanted axis, gather otherwise. The order is visible in dumps, so it is followed exactly.

Terms: ``AllConcat`` gathers along one dimension, ``Slice`` (MindSpore: SplitByAxis) keeps one of
equal parts, ``AllToAll`` (MindSpore: PermuteByAxis) moves a split from one dimension to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import Shape, coordinates, ranks_along
from irtool.sharding.redistribution.refinement import Placement


@dataclass(frozen=True, slots=True)
class AllConcat:
    """Gather the slices of ``ranks`` and join them along dimension ``axis``."""

    axis: int
    ranks: tuple[int, ...]

    def applied(self, shape: Shape) -> Shape:
        """The local shape after it, of the local shape before it."""
        return _scaled(shape, self.axis, len(self.ranks), 1)


@dataclass(frozen=True, slots=True)
class Slice:
    """Keep part ``index`` of ``count`` equal parts of dimension ``axis``.

    ``ranks``: who keeps the other parts. MindSpore creates a group of them, though none is used.
    """

    axis: int
    count: int
    index: int
    ranks: tuple[int, ...] = ()

    def applied(self, shape: Shape) -> Shape:
        """The local shape after it, of the local shape before it."""
        return _scaled(shape, self.axis, 1, self.count)


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Split dimension ``axis`` over ``ranks`` and join what they send along ``concat_axis``."""

    axis: int
    concat_axis: int
    ranks: tuple[int, ...]

    def applied(self, shape: Shape) -> Shape:
        """The local shape after it, of the local shape before it."""
        count = len(self.ranks)
        return _scaled(_scaled(shape, self.axis, 1, count), self.concat_axis, count, 1)


@dataclass(frozen=True, slots=True)
class Reshape:
    """Give the local tensor another shape."""

    shape: Shape

    def applied(self, shape: Shape) -> Shape:
        """The local shape after it, whatever the one before it."""
        del shape
        return self.shape


Move = AllConcat | Slice | AllToAll | Reshape


def shapes_along(shape: Shape, moves: Sequence[Move]) -> list[Shape]:
    """Local shapes before each move and, last, after all of them.

    Args:
        shape: the local shape before the first move.
        moves: in order.

    Returns:
        One shape more than there are moves.
    """
    shapes = [shape]
    for move in moves:
        shapes.append(move.applied(shapes[-1]))
    return shapes


def _scaled(shape: Shape, axis: int, times: int, parts: int) -> Shape:
    return (*shape[:axis], shape[axis] * times // parts, *shape[axis + 1 :])


# ------------------------------------------------------------------------------ inference


@dataclass(slots=True)
class _Walk:
    """The state of one inference: ``now`` and ``goal`` hold the device axis of each dimension."""

    devices: tuple[int, ...]
    ranks: Sequence[int]
    rank: int
    enable_alltoall: bool
    now: dict[int, int | None]
    goal: tuple[int | None, ...]
    moves: list[Move]

    def run(self) -> list[Move]:
        """Dimensions leave ``now`` as they reach their goal; the walk ends when none is left."""
        while self.now:
            before = len(self.moves)
            self._slice_and_exchange()
            self._gather_unwanted()
            if self.now and len(self.moves) == before:
                # Dimensions hold each other's axes in a circle: open it at the first one.
                first = next(iter(self.now))
                self._gather(first)
        return self.moves

    def _slice_and_exchange(self) -> None:
        while self.now:
            before = len(self.moves)
            self._slice_free()
            while self.now and self._exchange():
                pass
            if len(self.moves) == before:
                return

    def _slice_free(self) -> None:
        """Split dimensions along axes that no other dimension holds."""
        for index in list(self.now):
            wanted = self.goal[index]
            if self.now[index] == wanted:
                del self.now[index]
            elif self.now[index] is None and wanted is not None and not self._holder(wanted):
                self._split(index, wanted)
                del self.now[index]

    def _exchange(self) -> bool:
        """Take wanted axes from the dimensions that hold them; True if that moved anything."""
        before = len(self.moves)
        for index in list(self.now):
            wanted = self.goal[index]
            if self.now[index] == wanted:
                del self.now[index]
                continue
            holders = [] if wanted is None else self._holder(wanted)
            if self.now[index] is not None or wanted is None or not holders:
                continue
            if self.enable_alltoall:
                self.moves.append(AllToAll(index, holders[0], self._group(wanted)))
                self.now[holders[0]] = None
            else:
                self._gather(holders[0])
                self._split(index, wanted)
            del self.now[index]
        return len(self.moves) > before

    def _gather_unwanted(self) -> None:
        """Gather dimensions along axes that the target doesn't use at all."""
        for index in list(self.now):
            axis = self.now[index]
            if axis is not None and axis not in self.goal:
                self._gather(index)
                if self.goal[index] is None:
                    del self.now[index]

    def _holder(self, axis: int) -> list[int]:
        return [index for index, held in self.now.items() if held == axis]

    def _group(self, axis: int) -> tuple[int, ...]:
        return ranks_along(self.devices, (axis,), self.ranks, self.rank)

    def _gather(self, index: int) -> None:
        axis = self.now[index]
        assert axis is not None
        self.moves.append(AllConcat(index, self._group(axis)))
        self.now[index] = None

    def _split(self, index: int, axis: int) -> None:
        place = coordinates(self.devices, self.rank - self.ranks[0])
        self.moves.append(Slice(index, self.devices[axis], place[axis], self._group(axis)))


def moves_between(
    source: Placement,
    goal: tuple[int | None, ...],
    ranks: Sequence[int],
    rank: int,
    *,
    enable_alltoall: bool,
) -> list[Move]:
    """Moves that bring a placement's axes to others (same devices, same shape), untidied.

    Args:
        source: how the tensor lies.
        goal: by dimension the position of its device axis, from the left; None: it is whole.
        ranks: all ranks of the stage, sorted.
        rank: the rank for which slices and groups are given.
        enable_alltoall: as in ``set_auto_parallel_context``; else an exchange is a gather and a
            slice.
    """
    now = {index: source.axes[index] for index in _visiting_order(len(source.axes))}
    return _Walk(source.devices, ranks, rank, enable_alltoall, now, goal, []).run()


@cache
def _visiting_order(dimensions: int) -> tuple[int, ...]:
    """The order in which MindSpore visits ``dimensions`` dimensions: the order of its hash map.

    It keeps them in an open-addressing table (robin_hood, 8 slots at first, at most 80 % full)
    keyed by their number. The order is seen in chains with AlltoAll; others are sorted anyway.
    """
    slots, order = 8, list[int]()
    for index in range(dimensions):
        if len(order) >= slots * 8 // 10:
            slots *= 2
            order = _robin_hood(order, slots)
        order = _robin_hood([*order, index], slots)
    return tuple(order)


def _robin_hood(keys: Sequence[int], slots: int) -> list[int]:
    """The keys in the order of their slots, after insertion one by one in the given order.

    A key stands at its home slot or behind it. The poorer (further from home, then higher low hash
    bits) stands first, and who came first among equals.
    """
    table: dict[int, tuple[int, int]] = {}
    for key in keys:
        mixed = _mixed(key)
        place, debt = (mixed >> 5) % slots, mixed % 32
        carried = (debt, key)
        while place in table:
            if carried[0] > table[place][0]:
                carried, table[place] = table[place], carried
            place, carried = place + 1, (carried[0] + 32, carried[1])
        table[place] = carried
    return [table[place][1] for place in sorted(table)]


def _mixed(key: int) -> int:
    """The 64-bit finaliser of MurmurHash3."""
    bits = (1 << 64) - 1
    key ^= key >> 33
    key = key * 0xFF51AFD7ED558CCD & bits
    key ^= key >> 33
    key = key * 0xC4CEB9FE1A85EC53 & bits
    return key ^ key >> 33
