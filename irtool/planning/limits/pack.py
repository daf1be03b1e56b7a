"""Which operators run again, strategies given: knapsacks of all layers under one common size.

Recomputation frees what an operator keeps, but the largest layer is held while it is made anew.
So sizes of the largest layer are tried; under each, operators are taken by the seconds that a freed
byte costs, as long as their layer stays below it, until everything fits.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from irtool.planning.limits.ways import Choice, Overhead, Ways, choice_of
from irtool.planning.search.tables import Model

_SIZES = 48
"""Sizes of the largest layer that are tried."""


@dataclass(slots=True)
class _Item:
    """An operator: its layer, and by way seconds, bytes without any share, and bytes made anew."""

    layer: str
    ways: list[tuple[float, float, float]]
    fastest: int


@dataclass(slots=True)
class _Knapsack:
    items: list[_Item]
    picked: list[int] = field(default_factory=list[int])
    held: float = 0.0
    layers: dict[str, float] = field(default_factory=dict[str, float])

    def start(self) -> None:
        """The fastest way of each."""
        self.picked, self.held, self.layers = [0] * len(self.items), 0.0, {}
        for at, item in enumerate(self.items):
            self.picked[at] = item.fastest
            _, held, made = item.ways[item.fastest]
            self.held += held
            self.layers[item.layer] = self.layers.get(item.layer, 0.0) + made

    def take(self, at: int, way: int) -> None:
        """Another way for one."""
        item = self.items[at]
        _, held, made = item.ways[self.picked[at]]
        _, new_held, new_made = item.ways[way]
        self.held += new_held - held
        self.layers[item.layer] += new_made - made
        self.picked[at] = way

    def all_bytes(self) -> float:
        """With the largest layer."""
        return self.held + max(self.layers.values(), default=0.0)

    def largest(self) -> float:
        """The most that a layer can make anew."""
        most: dict[str, float] = {}
        for item in self.items:
            most[item.layer] = most.get(item.layer, 0.0) + max(made for _, _, made in item.ways)
        return max(most.values(), default=0.0)

    def moves(self) -> list[list[list[tuple[float, int]]]]:
        """By operator and way it has now: ways with fewer bytes, and what a saved byte costs."""
        found: list[list[list[tuple[float, int]]]] = []
        for item in self.items:
            rows: list[list[tuple[float, int]]] = []
            for seconds, held, _ in item.ways:
                rows.append(
                    sorted(
                        ((other - seconds) / (held - less), way)
                        for way, (other, less, _) in enumerate(item.ways)
                        if other < inf and less < held and seconds < inf
                    )
                )
            found.append(rows)
        return found

    def fill(
        self, moves: Sequence[Sequence[Sequence[tuple[float, int]]]], largest: float, room: float
    ) -> bool:
        """Take what is cheapest until all fits; whether it does."""
        self.start()
        queue = [
            (rows[self.picked[at]][0][0], at, self.picked[at], 0)
            for at, rows in enumerate(moves)
            if rows[self.picked[at]]
        ]
        heapq.heapify(queue)
        taken: list[tuple[int, int]] = []
        while queue and self.all_bytes() > room:
            _, at, now, place = heapq.heappop(queue)
            item, way = self.items[at], moves[at][now][place][1]
            more = item.ways[way][2] - item.ways[now][2]
            if self.layers[item.layer] + more <= largest:
                taken.append((at, now))
                self.take(at, way)
                now, place = way, -1
            if place + 1 < len(moves[at][now]):
                heapq.heappush(queue, (moves[at][now][place + 1][0], at, now, place + 1))
        if self.all_bytes() > room:
            return False
        for at, way in reversed(taken):  # what turned out not to be needed
            now = self.picked[at]
            if self.items[at].ways[way][0] < self.items[at].ways[now][0]:
                self.take(at, way)
                if self.all_bytes() > room:
                    self.take(at, now)
        return True


def packed(
    model: Model, ways: Sequence[Ways], overhead: Overhead, choice: Choice, room: float
) -> Choice | None:
    """The candidates of a choice with the ways that are about cheapest and fit; None: none fit."""
    sack = _knapsack(ways, overhead, choice)
    moves, largest = sack.moves(), sack.largest()
    best: Choice | None = None
    for step in range(_SIZES + 1):
        if not sack.fill(moves, largest * step / _SIZES, room - model.constant_memory):
            continue
        found = choice_of(model, ways, choice.choices, sack.picked)
        if best is None or found.seconds < best.seconds:
            best = found
    return best


def smallest(model: Model, ways: Sequence[Ways], overhead: Overhead, choice: Choice) -> Choice:
    """The candidates of a choice with the ways that take about the fewest bytes."""
    sack = _knapsack(ways, overhead, choice)
    moves, largest = sack.moves(), sack.largest()
    found: list[tuple[float, list[int]]] = []
    for step in range(_SIZES + 1):
        sack.fill(moves, largest * step / _SIZES, 0.0)
        found.append((sack.all_bytes(), sack.picked))
    return choice_of(model, ways, choice.choices, min(found)[1])


def _knapsack(ways: Sequence[Ways], overhead: Overhead, choice: Choice) -> _Knapsack:
    items: list[_Item] = []
    for at, (own, candidate) in enumerate(zip(ways, choice.choices, strict=True)):
        rows: list[tuple[float, float, float]] = []
        for way, (seconds, held) in enumerate(zip(own.seconds, own.held, strict=True)):
            made = overhead.made(at, candidate, way)
            alone = float(held[candidate]) - overhead.share(at) * made
            rows.append((float(seconds[candidate]), alone, made))
        fastest = min(range(len(rows)), key=lambda way: rows[way][:2])
        items.append(_Item(overhead.layer(at), rows, fastest))
    return _Knapsack(items)
