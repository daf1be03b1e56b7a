"""Transfers between stages: every Send with the Receive that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Literal, TypeAlias

from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass

Direction: TypeAlias = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Equal tensors handed from one stage to another in a step, all micro-batches together.

    Attributes:
        bytes: of all of them; null: a size is not known.
        ranks: one sender and its receiver; other pairs of the two stages do the same.
    """

    from_stage: int
    to_stage: int
    direction: Direction
    count: int
    bytes: int | None
    shape: tuple[int, ...] | None
    dtype: str | None
    ranks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A Send or Receive that nothing answers: the run would hang.

    ``why`` says what is missing; ``is_certain`` is False where the other end's dump is.
    """

    rank: int
    stage: int
    item: Collective
    peer: int | None
    why: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """Point-to-point communication of one rank that speaks for ``ranks`` (equal graphs)."""

    rank: int
    stage: int
    ranks: tuple[int, ...]
    items: Sequence[Collective]


@dataclass(frozen=True, slots=True)
class Transfers:
    """Matched transfers by pair of stages, and what is left over; ``matched`` counts pairs."""

    items: tuple[Transfer, ...]
    unmatched: tuple[Unmatched, ...]
    matched: int

    @property
    def lost(self) -> list[Unmatched]:
        """Ends without a counterpart although its dump was read: the run would hang."""
        return [item for item in self.unmatched if item.is_certain]


_Key = tuple[int, int, object]
"""A rank that receives, how far behind its sender is, and the tag."""


def transfers(ends: Sequence[Ends]) -> Transfers:
    """Pair Sends with Receives by sender, receiver and tag; the k-th with the k-th.

    Ranks with equal graphs are represented by one: what it sends ``d`` ranks ahead is received by
    the representatives of the receivers' classes from ``d`` ranks behind.  A stage may have several
    classes; one pair of ranks stands for all of two stages.

    Args:
        ends: for each class of ranks with equal graphs, its point-to-point communication.

    Returns:
        Pairs by stages and direction, and Sends and Receives that are left over.
    """
    owner: dict[int, Ends] = {rank: one for one in ends for rank in one.ranks}
    receives: dict[_Key, list[Collective]] = {}
    for one in ends:
        for item in one.items:
            if item.op == "Receive" and item.peer is not None:
                key = (one.rank, item.peer - one.rank, item.tag)
                receives.setdefault(key, []).append(item)
    pairs = _Pairs(owner, receives)
    for one in ends:
        for item in one.items:
            if item.op == "Send":
                pairs.send(one, item)
    lost = [*pairs.lost, *_left_over(ends, owner, pairs.taken)]
    made = tuple(_transfer(key, *members) for key, members in pairs.groups().items())
    ordered = sorted(made, key=lambda one: (one.from_stage, one.to_stage, one.direction))
    return Transfers(tuple(ordered), tuple(lost), sum(transfer.count for transfer in made))


_Kind = tuple[int, int, Direction, "tuple[int, ...] | None", "str | None"]
"""Stages, direction, shape and type."""


class _Pairs:
    """Sends with the Receives that take them, by classes of senders and of receivers."""

    def __init__(
        self, owner: Mapping[int, Ends], receives: Mapping[_Key, Sequence[Collective]]
    ) -> None:
        self.owner = owner
        self.receives = receives
        self.lost: list[Unmatched] = []
        self.taken: set[tuple[int, int]] = set()
        """Classes of senders (by their representative) and Receives (by identity) they feed."""
        self._next: dict[tuple[int, int, int, object], int] = {}
        self._by_classes: dict[tuple[int, int], dict[_Kind, list[Collective]]] = {}
        self._ends: dict[tuple[int, int], tuple[int, int]] = {}

    def send(self, one: Ends, item: Collective) -> None:
        """Find the Receives of one Send: one in each class of its receivers."""
        peer = item.peer
        if peer is None or peer not in self.owner:
            self.lost.append(_missing(one, item))
            return
        offset = peer - one.rank
        takers: dict[int, tuple[int, Ends]] = {}
        for rank in one.ranks:
            taker = self.owner.get(rank + offset)
            if taker is not None:
                takers.setdefault(taker.rank, (rank, taker))
        for rank, taker in takers.values():
            self._pair(one, rank, item, taker, offset)

    def _pair(self, one: Ends, rank: int, item: Collective, taker: Ends, offset: int) -> None:
        waiting = self.receives.get((taker.rank, -offset, item.tag), ())
        key = (one.rank, taker.rank, offset, item.tag)
        place = self._next.get(key, 0)
        peer = rank + offset
        if place >= len(waiting):
            self.lost.append(Unmatched(rank, one.stage, item, peer, "no Receive", True))
            return
        self._next[key] = place + 1
        received = waiting[place]
        self.taken.add((one.rank, id(received)))
        if (received.shape, received.dtype) != (item.shape, item.dtype):
            why = f"rank {peer} receives {received.dtype}{list(received.shape or ())}"
            self.lost.append(Unmatched(rank, one.stage, item, peer, why, True))
            return
        direction: Direction = "backward" if item.is_gradient else "forward"
        kind: _Kind = (one.stage, taker.stage, direction, item.shape, item.dtype)
        classes = (one.rank, taker.rank)
        self._ends.setdefault(classes, (rank, peer))
        self._by_classes.setdefault(classes, {}).setdefault(kind, []).append(item)

    def groups(self) -> dict[_Kind, tuple[list[Collective], tuple[int, int]]]:
        """Equal transfers of two stages, as the first pair of their classes has them."""
        groups: dict[_Kind, tuple[list[Collective], tuple[int, int]]] = {}
        for classes, kinds in self._by_classes.items():
            for kind, items in kinds.items():
                groups.setdefault(kind, (items, self._ends[classes]))
        return groups


def _missing(one: Ends, item: Collective) -> Unmatched:
    why = "the other end is not known" if item.peer is None else f"no dump of rank {item.peer}"
    return Unmatched(one.rank, one.stage, item, item.peer, why, False)


def _left_over(
    ends: Sequence[Ends], owner: Mapping[int, Ends], taken: Set[tuple[int, int]]
) -> list[Unmatched]:
    """Receives that no Send was for."""
    unmatched: list[Unmatched] = []
    for one in ends:
        for item in one.items:
            if item.op != "Receive":
                continue
            if item.peer is None or item.peer not in owner:
                unmatched.append(_missing(one, item))
                continue
            offset = item.peer - one.rank
            for rank in one.ranks:
                sender = owner.get(rank + offset)
                if sender is not None and (sender.rank, id(item)) not in taken:
                    peer = rank + offset
                    unmatched.append(Unmatched(rank, one.stage, item, peer, "no Send", True))
                    break
    return unmatched


def _transfer(kind: _Kind, collectives: Sequence[Collective], ranks: tuple[int, int]) -> Transfer:
    from_stage, to_stage, direction, shape, dtype = kind
    sizes = [one.bytes for one in collectives]
    total = sum(size for size in sizes if size is not None) if None not in sizes else None
    return Transfer(from_stage, to_stage, direction, len(collectives), total, shape, dtype, ranks)
