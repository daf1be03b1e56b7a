"""Choices between two that tie: layers of one and of the other, and changes of single operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.limits.modes import Choice, Modes, choice_of
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
        modes: by variable.
    """

    search: Search
    modes: Sequence[Modes]

    @property
    def model(self) -> Model:
        """The model that is searched."""
        return self.search.model

    def _choice(self, choices: Sequence[int], picked: Sequence[int]) -> Choice:
        return choice_of(self.model, self.modes, choices, picked)

    def mixed(self, first: Choice, then: Choice, room: float) -> Choice | None:
        """The fastest mix that fits: ``first`` up to some operator, ``then`` from there on."""
        order = self._order()
        beside = self._beside()
        choices, picked = list(then.choices), list(then.modes)
        seconds, held = then.seconds, then.held
        best: tuple[float, int] | None = None
        for count, variable in enumerate(order, 1):
            seconds -= self._local(variable, choices, picked, beside)
            held -= float(self.modes[variable].held[picked[variable]][choices[variable]])
            choices[variable], picked[variable] = first.choices[variable], first.modes[variable]
            seconds += self._local(variable, choices, picked, beside)
            held += float(self.modes[variable].held[picked[variable]][choices[variable]])
            if held <= room and (best is None or seconds < best[0]):
                best = seconds, count
        if best is None or best[0] == inf:
            return None
        inside = set(order[: best[1]])
        mixed = [
            (first if variable in inside else then).choices[variable]
            for variable in range(len(first.choices))
        ]
        modes = [
            (first if variable in inside else then).modes[variable]
            for variable in range(len(first.modes))
        ]
        if self.search.refuse(tuple(mixed)):
            return None
        if self.search.refine(tuple(mixed)):
            choice = self._choice(mixed, modes)
            return choice if choice.held <= room else None
        return self._choice(mixed, modes)

    def polished(self, start: Choice, room: float) -> Choice:
        """Changes of one operator at a time that make the sum less and still fit."""
        beside = self._beside()
        choices, picked = list(start.choices), list(start.modes)
        held = start.held
        for _ in range(_SWEEPS):
            changed = False
            for variable, modes in enumerate(self.modes):
                around = self._around(variable, choices, beside)
                refused = self.search.refused.get(id(self.model.candidates[variable]))
                if refused is not None:
                    around = around + refused
                own = float(modes.held[picked[variable]][choices[variable]])
                now = float(
                    around[choices[variable]] + modes.seconds[picked[variable]][choices[variable]]
                )
                best = now - 1e-12
                numbers = zip(modes.seconds, modes.held, strict=True)
                for mode, (seconds, size) in enumerate(numbers):
                    total = np.where(held - own + size <= room, around + seconds, inf)
                    choice = int(np.argmin(total))
                    if total[choice] < best:
                        best = float(total[choice])
                        held += float(size[choice]) - own
                        own = float(size[choice])
                        choices[variable], picked[variable] = choice, mode
                        changed = True
            new = self.search.refuse(tuple(choices))
            if self.search.refine(tuple(choices)) or new:
                continue
            if not changed:
                break
        polished = self._choice(choices, picked)
        if self.search.refuse(polished.choices):
            return start
        return polished if polished.seconds < start.seconds and polished.held <= room else start

    def _order(self) -> list[int]:
        """Variables in the order of their statements."""
        nodes = self.model.nodes
        return sorted(range(len(nodes)), key=lambda variable: nodes[variable].line)

    def _beside(self) -> list[list[tuple[int, Callable[[], Floats]]]]:
        """By variable its neighbours, with tables whose rows are the variable's candidates."""
        beside: list[list[tuple[int, Callable[[], Floats]]]] = [[] for _ in self.model.nodes]
        for item in self.model.links:
            table = item.table
            beside[item.source].append((item.target, lambda table=table: table.values))
            beside[item.target].append((item.source, lambda table=table: table.flipped))
        for same in self.model.equal:
            first, second = same.variables
            beside[first].append((second, lambda same=same: same.values))
            beside[second].append((first, lambda same=same: np.transpose(same.values)))
        return beside

    def _around(
        self,
        variable: int,
        choices: Sequence[int],
        beside: Sequence[Sequence[tuple[int, Callable[[], Floats]]]],
    ) -> Floats:
        total = np.zeros(len(self.model.candidates[variable]))
        for other, table in beside[variable]:
            total = total + table()[:, choices[other]]
        return total

    def _local(
        self,
        variable: int,
        choices: Sequence[int],
        picked: Sequence[int],
        beside: Sequence[Sequence[tuple[int, Callable[[], Floats]]]],
    ) -> float:
        """Seconds of one operator and of its edges."""
        own = float(self.modes[variable].seconds[picked[variable]][choices[variable]])
        return own + sum(
            float(table()[choices[variable], choices[other]]) for other, table in beside[variable]
        )
