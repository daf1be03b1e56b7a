"""Which operators run again, strategies given: knapsacks of all layers under one common size.

Recomputation frees what an operator keeps, but the largest layer is held while it is made anew.
So sizes of the largest layer are tried; under each, operators are taken by the seconds that a freed
byte costs, as long as their layer stays below it, until everything fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from irtool.planning.cost_tables import Model
from irtool.planning.plan_ways import Choice, Overhead, Ways, choice_of

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

    def moves(self) -> list[tuple[int, int]]:
        """Operators and ways, by the seconds that a byte costs against the fastest way."""
        found: list[tuple[float, int, int]] = []
        for at, item in enumerate(self.items):
            base = item.ways[item.fastest]
            for way, (seconds, held, _) in enumerate(item.ways):
                if seconds < inf and held < base[1]:
                    found.append(((seconds - base[0]) / (base[1] - held), at, way))
        return [(at, way) for _, at, way in sorted(found)]

    def fill(self, moves: Sequence[tuple[int, int]], largest: float, room: float) -> bool:
        """Take what is cheapest until all fits; whether it does."""
        self.start()
        taken: list[tuple[int, int]] = []
        for at, way in moves:
            if self.all_bytes() <= room:
                break
            item = self.items[at]
            _, held, made = item.ways[way]
            _, now, before = item.ways[self.picked[at]]
            if held < now and self.layers[item.layer] + made - before <= largest:
                taken.append((at, self.picked[at]))
                self.take(at, way)
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
    items: list[_Item] = []
    for at, (own, candidate) in enumerate(zip(ways, choice.choices, strict=True)):
        rows: list[tuple[float, float, float]] = []
        for way, (seconds, held) in enumerate(zip(own.seconds, own.held, strict=True)):
            made = overhead.made(at, candidate, way)
            alone = float(held[candidate]) - overhead.share(at) * made
            rows.append((float(seconds[candidate]), alone, made))
        fastest = min(range(len(rows)), key=lambda way: rows[way][:2])
        items.append(_Item(overhead.layer(at), rows, fastest))
    sack = _Knapsack(items)
    moves = sack.moves()
    most: dict[str, float] = {}
    for item in items:
        most[item.layer] = most.get(item.layer, 0.0) + max(made for _, _, made in item.ways)
    largest = max(most.values(), default=0.0)
    best: Choice | None = None
    for step in range(_SIZES + 1):
        if not sack.fill(moves, largest * step / _SIZES, room - model.constant_memory):
            continue
        found = choice_of(model, ways, choice.choices, sack.picked)
        if best is None or found.seconds < best.seconds:
            best = found
    return best
