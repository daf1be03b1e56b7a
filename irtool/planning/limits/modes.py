"""The modes to run operators beside their strategies, and what a choice of all of them takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats
from irtool.planning.search.tables import Model


@dataclass(frozen=True, eq=False)
class Modes:
    """The modes to run an operator under each candidate: seconds and bytes, one array a mode.

    Most have one; optimizer parallel and recomputation are further ones.
    """

    seconds: tuple[Floats, ...]
    held: tuple[Floats, ...]

    def priced(self, price: float) -> Floats:
        """The least of each candidate at a price of a byte."""
        least = self.seconds[0] + price * self.held[0]
        for seconds, held in zip(self.seconds[1:], self.held[1:], strict=True):
            least = np.minimum(least, seconds + price * held)
        return least

    def chosen(self, choice: int, price: float) -> int:
        """The mode that is cheapest for a candidate; of equal ones that with the fewest bytes."""
        return min(
            range(len(self.seconds)),
            key=lambda mode: (
                float(self.seconds[mode][choice] + price * self.held[mode][choice]),
                float(self.held[mode][choice]),
            ),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate and a mode for every operator, what they take, and a bound."""

    choices: tuple[int, ...]
    modes: tuple[int, ...]
    seconds: float
    held: float
    bound: float = -inf


class Overhead(Protocol):
    """Bytes that no operator holds alone: those that the largest recomputed layer makes anew.

    A share of what an operator makes anew is part of what it holds, so that bounds know of it.
    """

    def above(self, choices: Sequence[int], modes: Sequence[int]) -> float:
        """Bytes above the shares that operators hold, by candidates and modes."""
        ...

    def made(self, variable: int, choice: int, mode: int) -> float:
        """Bytes that an operator makes anew."""
        ...

    def layer(self, variable: int) -> str:
        """The layer of an operator."""
        ...

    def share(self, variable: int) -> float:
        """The share of what an operator makes anew that it holds."""
        ...


def choice_of(
    model: Model,
    modes: Sequence[Modes],
    choices: Sequence[int],
    picked: Sequence[int],
    bound: float = -inf,
) -> Choice:
    """What some candidates and modes take, constants included.

    Args:
        model: the tables of the network.
        modes: by variable, the modes to run it.
        choices: a candidate for every variable.
        picked: a mode for every variable.
        bound: seconds that no other choice is below.
    """
    seconds, held = model.constant, model.constant_memory
    for own, choice, which in zip(modes, choices, picked, strict=True):
        seconds += float(own.seconds[which][choice])
        held += float(own.held[which][choice])
    for item in model.links:
        seconds += float(item.table.values[choices[item.source], choices[item.target]])
    for table in model.equal:
        seconds += float(table.values[tuple(choices[variable] for variable in table.variables)])
    return Choice(tuple(choices), tuple(picked), seconds, held, bound)


def plain_modes(model: Model, more: Sequence[Floats] | None = None) -> list[Modes]:
    """One mode for each operator: without optimizer parallel or recomputation to decide on.

    Args:
        model: the tables of the network.
        more: seconds beside the model's own, by candidate of each variable; None: none.
    """
    known: dict[tuple[int, int, int], Modes] = {}
    modes: list[Modes] = []
    for variable, (seconds, held) in enumerate(zip(model.unary, model.memory, strict=True)):
        extra = more[variable] if more is not None else None
        key = (id(seconds), id(held), id(extra))
        if key not in known:
            known[key] = Modes((seconds if extra is None else seconds + extra,), (held,))
        modes.append(known[key])
    return modes
