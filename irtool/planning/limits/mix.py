"""Choices between two that tie: layers of one and of the other, and changes of single operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from irtool.planning.limits.ways import Choice, Ways, choice_of
from irtool.planning.search.exact import Floats
from irtool.planning.search.search import Search
from irtool.planning.search.tables import Model

_SWEEPS = 20
"""Passes over all operators that look for a cheaper single change."""


@dataclass(eq=False)
class Mix:
    """Mixes of choices of one model.

    Attributes:
        search: of the model.
        ways: by variable.
    """

    search: Search
    ways: Sequence[Ways]

    @property
    def model(self) -> Model:
        """The model that is searched."""
        return self.search.model

    def _choice(self, choices: Sequence[int], picked: Sequence[int]) -> Choice:
        return choice_of(self.model, self.ways, choices, picked)

    def mixed(self, first: Choice, then: Choice, room: float) -> Choice | None:
        """The fastest mix that fits: ``first`` up to some operator, ``then`` from there on."""
        order = self._order()
        beside = self._beside()
        choices, picked = list(then.choices), list(then.ways)
        seconds, held = then.seconds, then.held
        best: tuple[float, int] | None = None
        for count, at in enumerate(order, 1):
            seconds -= self._local(at, choices, picked, beside)
            held -= float(self.ways[at].held[picked[at]][choices[at]])
            choices[at], picked[at] = first.choices[at], first.ways[at]
            seconds += self._local(at, choices, picked, beside)
            held += float(self.ways[at].held[picked[at]][choices[at]])
            if held <= room and (best is None or seconds < best[0]):
                best = seconds, count
        if best is None or best[0] == inf:
            return None
        inside = set(order[: best[1]])
        mixed = [(first if at in inside else then).choices[at] for at in range(len(first.choices))]
        ways = [(first if at in inside else then).ways[at] for at in range(len(first.ways))]
        if self.search.refuse(tuple(mixed)):
            return None
        if self.search.refine(tuple(mixed)):
            found = self._choice(mixed, ways)
            return found if found.held <= room else None
        return self._choice(mixed, ways)

    def polished(self, start: Choice, room: float) -> Choice:
        """Changes of one operator at a time that make the sum less and still fit."""
        beside = self._beside()
        choices, picked = list(start.choices), list(start.ways)
        held = start.held
        for _ in range(_SWEEPS):
            changed = False
            for at, ways in enumerate(self.ways):
                around = self._around(at, choices, beside)
                refused = self.search.refused.get(id(self.model.candidates[at]))
                if refused is not None:
                    around = around + refused
                own = float(ways.held[picked[at]][choices[at]])
                now = float(around[choices[at]] + ways.seconds[picked[at]][choices[at]])
                best = now - 1e-12
                for which, (seconds, size) in enumerate(zip(ways.seconds, ways.held, strict=True)):
                    total = np.where(held - own + size <= room, around + seconds, inf)
                    choice = int(np.argmin(total))
                    if total[choice] < best:
                        best = float(total[choice])
                        held += float(size[choice]) - own
                        own = float(size[choice])
                        choices[at], picked[at] = choice, which
                        changed = True
            new = self.search.refuse(tuple(choices))
            if self.search.refine(tuple(choices)) or new:
                continue
            if not changed:
                break
        found = self._choice(choices, picked)
        if self.search.refuse(found.choices):
            return start
        return found if found.seconds < start.seconds and found.held <= room else start

    def _order(self) -> list[int]:
        """Variables in the order of their statements."""
        nodes = self.model.nodes
        return sorted(range(len(nodes)), key=lambda at: nodes[at].line)

    def _beside(self) -> list[list[tuple[int, Callable[[], Floats]]]]:
        """By variable its neighbours, with tables whose rows are the variable's candidates."""
        found: list[list[tuple[int, Callable[[], Floats]]]] = [[] for _ in self.model.nodes]
        for item in self.model.links:
            table = item.table
            found[item.source].append((item.target, lambda table=table: table.values))
            found[item.target].append((item.source, lambda table=table: table.flipped))
        for same in self.model.equal:
            first, second = same.variables
            found[first].append((second, lambda same=same: same.values))
            found[second].append((first, lambda same=same: np.transpose(same.values)))
        return found

    def _around(
        self,
        at: int,
        choices: Sequence[int],
        beside: Sequence[Sequence[tuple[int, Callable[[], Floats]]]],
    ) -> Floats:
        total = np.zeros(len(self.model.candidates[at]))
        for other, table in beside[at]:
            total = total + table()[:, choices[other]]
        return total

    def _local(
        self,
        at: int,
        choices: Sequence[int],
        picked: Sequence[int],
        beside: Sequence[Sequence[tuple[int, Callable[[], Floats]]]],
    ) -> float:
        """Seconds of one operator and of its edges."""
        own = float(self.ways[at].seconds[picked[at]][choices[at]])
        return own + sum(float(table()[choices[at], choices[other]]) for other, table in beside[at])
