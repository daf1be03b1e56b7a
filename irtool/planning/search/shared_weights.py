"""What several operators must agree on: the layout of a weight, or one strategy for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.planning.search.candidate_layouts import Layouts
from irtool.planning.search.exact import Floats

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Shared:
    """A weight of several operators, all of which want it in one layout; or their one strategy.

    ``users``: variables with the number of the layout (or strategy) that each candidate wants (-1:
    one that not all can have); ``values``: for each of them a table of candidates and layouts, 0 or
    infinite; ``nothing``: a 0 for each layout.
    """

    users: tuple[tuple[int, Ints], ...]
    values: tuple[Floats, ...]
    nothing: Floats

    @property
    def count(self) -> int:
        """How many layouts there are."""
        return len(self.nothing)

    def agrees(self, choices: Sequence[int]) -> bool:
        """Whether all operators want the same layout under some choices."""
        layouts = {int(numbers[choices[variable]]) for variable, numbers in self.users}
        return len(layouts) == 1 and -1 not in layouts


Numbered: TypeAlias = tuple[tuple[Ints, ...], tuple[Floats, ...], Floats]


def numbered(users: Sequence[Layouts]) -> Numbered:
    """Layouts of a weight as numbers, by user and candidate: -1 where not all users can have it.

    And tables of candidates and numbers: 0 where they fit, infinity where not; and a 0 a number.

    Args:
        users: the weight's layouts under the candidates of each operator that uses it.
    """
    common = set(users[0].keys).intersection(*(user.keys for user in users[1:]))
    number = {
        key: index
        for index, key in enumerate(dict.fromkeys(k for k in users[0].keys if k in common))
    }
    count = max(1, len(number))
    made: dict[int, tuple[Ints, Floats]] = {}
    for user in users:
        if id(user) not in made:
            own = np.array([number.get(key, -1) for key in user.keys], dtype=np.int64)[user.which]
            fits = own[:, None] == np.arange(count, dtype=np.int64)[None, :]
            made[id(user)] = own, np.where(fits, 0.0, inf)
    ends = [made[id(user)] for user in users]
    return tuple(n for n, _ in ends), tuple(v for _, v in ends), np.zeros(count)


def alike_of(users: Sequence[tuple[int, Sequence[Hashable]]]) -> Shared:
    """Operators that must have one strategy.

    Args:
        users: variables with what tells each of their candidates.
    """
    keys = dict.fromkeys(users[0][1])
    common = {key for key in keys if all(key in set(own) for _, own in users)}
    number = {key: index for index, key in enumerate(key for key in keys if key in common)}
    count = max(1, len(number))
    numbers = [np.array([number.get(key, -1) for key in own], dtype=np.int64) for _, own in users]
    return Shared(
        tuple((variable, own) for (variable, _), own in zip(users, numbers, strict=True)),
        tuple(np.where(own[:, None] == np.arange(count)[None, :], 0.0, inf) for own in numbers),
        np.zeros(count),
    )
