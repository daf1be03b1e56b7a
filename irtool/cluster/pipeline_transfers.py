"""Transfers between stages: every Send with the Receive that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from irtool.ir.collectives import Collective

Direction: TypeAlias = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Equal tensors handed from one stage to another in a step, all micro-batches together.

    ``ranks`` are one pair of sender and receiver; other pairs of the two stages do the same.
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


_Key = tuple[int, int, object]


def transfers(ends: Sequence[Ends]) -> Transfers:
    """Pair Sends with Receives by sender, receiver and tag; the k-th with the k-th.

    Ranks with equal graphs are represented by one: what it sends ``d`` ranks ahead is received by
    the representative of the receiver's class from ``d`` ranks behind.
    """
    owner: dict[int, Ends] = {rank: one for one in ends for rank in one.ranks}
    receives: dict[tuple[int, int, object], list[Collective]] = {}
    for one in ends:
        for item in one.items:
            if item.op == "Receive" and item.peer is not None:
                key = (one.rank, item.peer - one.rank, item.tag)
                receives.setdefault(key, []).append(item)
    groups: dict[tuple[object, ...], list[tuple[Collective, tuple[int, int]]]] = {}
    lost: list[Unmatched] = []
    for one in ends:
        for item in one.items:
            if item.op != "Send":
                continue
            taker = owner.get(item.peer) if item.peer is not None else None
            if taker is None:
                lost.append(_missing(one, item))
                continue
            offset = (item.peer or 0) - one.rank
            waiting = receives.get((taker.rank, -offset, item.tag), [])
            if not waiting:
                lost.append(Unmatched(one.rank, one.stage, item, item.peer, "no Receive", True))
                continue
            received = waiting.pop(0)
            if (received.shape, received.dtype) != (item.shape, item.dtype):
                why = f"rank {item.peer} receives {received.dtype}{list(received.shape or ())}"
                lost.append(Unmatched(one.rank, one.stage, item, item.peer, why, True))
                continue
            direction: Direction = "backward" if item.is_gradient else "forward"
            shape = (one.stage, taker.stage, direction, item.shape, item.dtype)
            groups.setdefault(shape, []).append((item, (one.rank, item.peer or 0)))
    lost += _left_over(ends, owner, receives)
    made = tuple(_transfer(key, found) for key, found in groups.items())
    ordered = sorted(made, key=lambda one: (one.from_stage, one.to_stage, one.direction))
    return Transfers(tuple(ordered), tuple(lost), sum(len(found) for found in groups.values()))


def _missing(one: Ends, item: Collective) -> Unmatched:
    why = "the other end is not known" if item.peer is None else f"no dump of rank {item.peer}"
    return Unmatched(one.rank, one.stage, item, item.peer, why, False)


def _left_over(
    ends: Sequence[Ends], owner: Mapping[int, Ends], receives: Mapping[_Key, list[Collective]]
) -> list[Unmatched]:
    """Receives that no Send was for."""
    found: list[Unmatched] = []
    left = {id(item) for waiting in receives.values() for item in waiting}
    for one in ends:
        for item in one.items:
            if item.op != "Receive" or (item.peer is not None and id(item) not in left):
                continue
            if item.peer is None or item.peer not in owner:
                found.append(_missing(one, item))
            else:
                found.append(Unmatched(one.rank, one.stage, item, item.peer, "no Send", True))
    return found


def _transfer(
    key: tuple[object, ...], found: Sequence[tuple[Collective, tuple[int, int]]]
) -> Transfer:
    item, ranks = found[0]
    sizes = [one.bytes for one, _ in found]
    total = sum(size for size in sizes if size is not None) if None not in sizes else None
    from_stage, to_stage, direction = key[:3]
    return Transfer(
        from_stage,  # type: ignore[arg-type]  # keys are made above
        to_stage,  # type: ignore[arg-type]  # as above
        direction,  # type: ignore[arg-type]  # as above
        len(found),
        total,
        item.shape,
        item.dtype,
        ranks,
    )
