"""Which operators run again, strategies given: knapsacks of all layers under one common size.

Recomputation frees what an operator keeps, but the largest layer is held while it is made anew.
So sizes of the largest layer are tried; under each, operators are taken by the seconds that a freed
byte costs, as long as their layer stays below it, until everything fits.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import field
from math import inf

from irtool.ir.dataclass import dataclass
from irtool.planning.limits.modes import Choice, Modes, Overhead, choice_of
from irtool.planning.search.tables import Model

_SIZES = 48
"""Sizes of the largest layer that are tried."""


@dataclass(slots=True)
class _Item:
    """An operator: its layer, and by mode seconds, bytes without any share, and bytes made anew."""

    layer: str
    modes: list[tuple[float, float, float]]
    fastest: int


@dataclass(slots=True)
class _Knapsack:
    items: list[_Item]
    picked: list[int] = field(default_factory=list[int])
    held: float = 0.0
    layers: dict[str, float] = field(default_factory=dict[str, float])

    def start(self) -> None:
        """The fastest mode of each."""
        self.picked, self.held, self.layers = [0] * len(self.items), 0.0, {}
        for variable, item in enumerate(self.items):
            self.picked[variable] = item.fastest
            _, held, made = item.modes[item.fastest]
            self.held += held
            self.layers[item.layer] = self.layers.get(item.layer, 0.0) + made

    def take(self, variable: int, mode: int) -> None:
        """Give one operator another mode."""
        item = self.items[variable]
        _, held, made = item.modes[self.picked[variable]]
        _, new_held, new_made = item.modes[mode]
        self.held += new_held - held
        self.layers[item.layer] += new_made - made
        self.picked[variable] = mode

    def all_bytes(self) -> float:
        """Bytes of all operators, and those that the largest layer makes anew."""
        return self.held + max(self.layers.values(), default=0.0)

    def largest(self) -> float:
        """The most that a layer can make anew."""
        most: dict[str, float] = {}
        for item in self.items:
            most[item.layer] = most.get(item.layer, 0.0) + max(made for _, _, made in item.modes)
        return max(most.values(), default=0.0)

    def moves(self) -> list[list[list[tuple[float, int]]]]:
        """By operator and mode it has now: modes with fewer bytes, and what a saved byte costs."""
        moves: list[list[list[tuple[float, int]]]] = []
        for item in self.items:
            rows: list[list[tuple[float, int]]] = []
            for seconds, held, _ in item.modes:
                rows.append(
                    sorted(
                        ((other - seconds) / (held - less), mode)
                        for mode, (other, less, _) in enumerate(item.modes)
                        if other < inf and less < held and seconds < inf
                    )
                )
            moves.append(rows)
        return moves

    def fill(
        self, moves: Sequence[Sequence[Sequence[tuple[float, int]]]], largest: float, room: float
    ) -> bool:
        """Take what is cheapest until all fits; whether it does."""
        self.start()
        queue = [
            (rows[self.picked[variable]][0][0], variable, self.picked[variable], 0)
            for variable, rows in enumerate(moves)
            if rows[self.picked[variable]]
        ]
        heapq.heapify(queue)
        taken: list[tuple[int, int]] = []
        while queue and self.all_bytes() > room:
            _, variable, now, place = heapq.heappop(queue)
            item, mode = self.items[variable], moves[variable][now][place][1]
            more = item.modes[mode][2] - item.modes[now][2]
            if self.layers[item.layer] + more <= largest:
                taken.append((variable, now))
                self.take(variable, mode)
                now, place = mode, -1
            if place + 1 < len(moves[variable][now]):
                heapq.heappush(
                    queue, (moves[variable][now][place + 1][0], variable, now, place + 1)
                )
        if self.all_bytes() > room:
            return False
        for variable, mode in reversed(taken):  # what turned out not to be needed
            now = self.picked[variable]
            if self.items[variable].modes[mode][0] < self.items[variable].modes[now][0]:
                self.take(variable, mode)
                if self.all_bytes() > room:
                    self.take(variable, now)
        return True


def packed(
    model: Model, modes: Sequence[Modes], overhead: Overhead, choice: Choice, room: float
) -> Choice | None:
    """The candidates of a choice with the modes that are about cheapest and fit; None: none fit.

    Args:
        model: the tables of the network.
        modes: by variable, the modes to run it.
        overhead: bytes that the largest recomputed layer makes anew.
        choice: whose candidates are kept; its own modes are not looked at.
        room: bytes of a device.
    """
    sack = _knapsack(modes, overhead, choice)
    moves, largest = sack.moves(), sack.largest()
    best: Choice | None = None
    for step in range(_SIZES + 1):
        if not sack.fill(moves, largest * step / _SIZES, room - model.constant_memory):
            continue
        tried = choice_of(model, modes, choice.choices, sack.picked)
        if best is None or tried.seconds < best.seconds:
            best = tried
    return best


def smallest(model: Model, modes: Sequence[Modes], overhead: Overhead, choice: Choice) -> Choice:
    """The candidates of a choice with the modes that take about the fewest bytes.

    Args:
        model: the tables of the network.
        modes: by variable, the modes to run it.
        overhead: bytes that the largest recomputed layer makes anew.
        choice: whose candidates are kept.
    """
    sack = _knapsack(modes, overhead, choice)
    moves, largest = sack.moves(), sack.largest()
    tried: list[tuple[float, list[int]]] = []
    for step in range(_SIZES + 1):
        sack.fill(moves, largest * step / _SIZES, 0.0)
        tried.append((sack.all_bytes(), sack.picked))
    return choice_of(model, modes, choice.choices, min(tried)[1])


def _knapsack(modes: Sequence[Modes], overhead: Overhead, choice: Choice) -> _Knapsack:
    items: list[_Item] = []
    for variable, (own, candidate) in enumerate(zip(modes, choice.choices, strict=True)):
        rows: list[tuple[float, float, float]] = []
        for mode, (seconds, held) in enumerate(zip(own.seconds, own.held, strict=True)):
            made = overhead.made(variable, candidate, mode)
            alone = float(held[candidate]) - overhead.share(variable) * made
            rows.append((float(seconds[candidate]), alone, made))
        fastest = min(range(len(rows)), key=lambda mode: rows[mode][:2])
        items.append(_Item(overhead.layer(variable), rows, fastest))
    return _Knapsack(items)
