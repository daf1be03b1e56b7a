"""Results with several users, looked at together: what they want alike is paid for once.

Tables of a model are over two operators each, and there each user of a result pays a part of the
price that holds whatever others want (``shared_results``).  Where that part is
less than what is paid in the end, the least sum is below the optimum.  Then the result and all of
its users get one table of what they pay together.  Few results need one: where the best choices pay
less than they should, and those that lie alike in other layers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from irtool.planning.search.exact import Floats, Table
from irtool.planning.search.link_tables import LinkTable, result_of
from irtool.planning.search.shared_weights import Ints
from irtool.planning.search.tables import Model

MOST_ENTRIES = 12_000_000
"""Entries of a table of a result and its users, at most."""
MISSING = 1e-9
"""Part of a price that may be missing."""


@dataclass(eq=False, slots=True)
class Kind:
    """Results that are wanted alike: their tables are the same, and so are orders of variables.

    Attributes:
        tables: by user, those of the model.
        places: where the result stands among the variables, and where each user does.
        results: by result the links of its users, as numbers of the model's.
        values: what all pay together, over the variables in ascending order; empty until made.
        known: how many prices were known when it was made.
    """

    tables: tuple[LinkTable, ...]
    places: tuple[int, ...]
    results: list[tuple[int, ...]]
    values: Floats = field(default_factory=lambda: np.zeros(0))
    known: int = -1

    @property
    def shape(self) -> tuple[int, ...]:
        """By variable, how many choices it has."""
        found = [0] * (max(self.places) + 1)
        for at, table in zip(self.places[1:], self.tables, strict=True):
            found[self.places[0]] = len(table.sources.which)
            found[at] = len(table.targets.which)
        return tuple(found)

    def renew(self) -> None:
        """Take over prices that were asked for since."""
        known = sum(int(np.count_nonzero(table.exact)) for table in self.tables)
        if known != self.known:
            self.known, self.values = known, self._paid()

    def _paid(self) -> Floats:
        shape, source = self.shape, self.places[0]
        total = np.zeros(shape)
        before: list[tuple[int, Ints]] = []
        number: dict[object, int] = {}
        for at, table in zip(self.places[1:], self.tables, strict=True):
            keys = [number.setdefault(key, len(number)) for key in table.targets.keys]
            wanted = np.array(keys, dtype=np.int64)[table.targets.which]
            prices = table.prices[np.ix_(table.sources.which, table.targets.which)]
            paid = _over(prices, (source, at), shape)
            for other, others in before:
                same = wanted == others if other == at else wanted[:, None] == others[None, :]
                axes = (at,) if other == at else (at, other)
                paid = np.where(_over(same, axes, shape), 0.0, paid)
            before.append((at, wanted))
            total += paid
        return total


def _over(values: np.ndarray, axes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """A table over some axes, so that it broadcasts to all."""
    ordered = values if list(axes) == sorted(axes) else np.transpose(values)
    return np.reshape(ordered, [size if at in axes else 1 for at, size in enumerate(shape)])


@dataclass(eq=False)
class Together:
    """The results of a model that several users want.

    Attributes:
        model: the model, its prices those of one user.
        kinds: results by how they are wanted.
        paid: kinds whose users are looked at together.
    """

    model: Model
    kinds: list[Kind] = field(default_factory=list[Kind])
    paid: list[Kind] = field(default_factory=list[Kind])

    def __post_init__(self) -> None:
        users: dict[object, list[int]] = {}
        for number, item in enumerate(self.model.links):
            users.setdefault(result_of(item.link), []).append(number)
        for link, _, _ in self.model.alone:
            users.pop(result_of(link), None)
        kinds: dict[object, Kind] = {}
        for numbers in users.values():
            if len(numbers) < 2:
                continue
            items = [self.model.links[number] for number in numbers]
            variables = (items[0].source, *(item.target for item in items))
            scope = sorted(set(variables))
            places = tuple(scope.index(variable) for variable in variables)
            tables = tuple(item.table for item in items)
            key = places, tuple(id(table) for table in tables)
            kinds.setdefault(key, Kind(tables, places, [])).results.append(tuple(numbers))
        self.kinds = list(kinds.values())

    def variables(self, result: Sequence[int]) -> tuple[int, ...]:
        """Of a result and its users, ascending."""
        items = [self.model.links[number] for number in result]
        return tuple(sorted({items[0].source, *(item.target for item in items)}))

    def tables(
        self, lowered: Model, unary: Sequence[Floats], shared: Collection[int]
    ) -> tuple[list[int], list[Floats], list[Table]]:
        """Tables for a search, those of results that are paid for together among them."""
        sizes, numbers, pairs = lowered.tables(unary, shared)
        if not self.paid:
            return sizes, numbers, pairs
        gone = {number for kind in self.paid for result in kind.results for number in result}
        found = [pair for number, pair in enumerate(pairs) if number not in gone]
        for kind in self.paid:
            kind.renew()
            found += [Table(self.variables(result), kind.values) for result in kind.results]
        return sizes, numbers, found

    def seconds(self, choices: Sequence[int]) -> float:
        """What all links cost under some choices."""
        several = {number for kind in self.kinds for result in kind.results for number in result}
        total = 0.0
        for number, item in enumerate(self.model.links):
            if number not in several:
                total += float(item.table.values[choices[item.source], choices[item.target]])
        for kind in self.kinds:
            total += sum(self._paid_for(result, choices) for result in kind.results)
        return total

    def widen(self, lowered: Model, choices: Sequence[int]) -> bool:
        """Look at users together that pay too little; whether there are any."""
        found: list[Kind] = []
        for kind in self.kinds:
            if kind in self.paid or prod(kind.shape) > MOST_ENTRIES:
                continue
            for result in kind.results:
                items = [lowered.links[number] for number in result]
                part = sum(float(i.table.values[choices[i.source], choices[i.target]])
                           for i in items)  # fmt: skip
                if part < self._paid_for(result, choices) * (1 - MISSING):
                    found.append(kind)
                    break
        self.paid += found
        return bool(found)

    def _paid_for(self, result: Sequence[int], choices: Sequence[int]) -> float:
        """What the users of a result pay together under some choices."""
        total, made = 0.0, set[object]()
        for number in result:
            item = self.model.links[number]
            wanted = int(item.table.targets.which[choices[item.target]])
            key = item.table.targets.keys[wanted]
            if key not in made:
                made.add(key)
                source = int(item.table.sources.which[choices[item.source]])
                total += float(item.table.prices[source, wanted])
        return total
