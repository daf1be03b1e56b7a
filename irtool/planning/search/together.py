"""Results with several users, looked at together: what they want alike is paid for once.

Tables of a model are over two operators each, and there each user of a result pays a part of the
price that holds whatever others want (``shared_results``).  Where that part is
less than what is paid in the end, the least sum is below the optimum.  Then the result and all of
its users get one table of what they pay together.  Few results need one: where the best choices pay
less than they should, and those that lie alike in other layers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from math import prod

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats, Table
from irtool.planning.search.link_tables import PricedLink
from irtool.planning.search.paid_once import paid_once
from irtool.planning.search.tables import Model

MOST_ENTRIES = 12_000_000
"""Entries of a table of a result and its users, at most."""
MISSING = 1e-9
"""Part of a price that may be missing."""


@dataclass(eq=False, slots=True)
class Kind:
    """Results that are wanted alike: their tables are the same, and so are orders of variables.

    Attributes:
        items: the links of the first of these results, one a user.
        results: by result the links of its users, as numbers of the model's.
        values: what all pay together, over the variables in ascending order; empty until made.
        known: how many prices were known when it was made.
    """

    items: tuple[PricedLink, ...]
    results: list[tuple[int, ...]]
    values: Floats = field(default_factory=lambda: np.zeros(0))
    known: int = -1

    @property
    def size(self) -> int:
        """Entries of a table of all variables."""
        counts = {item.source: len(item.table.sources.which) for item in self.items}
        counts.update({item.target: len(item.table.targets.which) for item in self.items})
        return prod(counts.values())

    def renew(self) -> None:
        """Take over prices that were asked for since."""
        known = sum(int(np.count_nonzero(item.table.exact)) for item in self.items)
        if known != self.known:
            self.known, self.values = known, paid_once(self.items).values


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
            users.setdefault(item.result, []).append(number)
        for alone in self.model.alone:
            users.pop(alone.result, None)
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
            kinds.setdefault(key, Kind(tuple(items), [])).results.append(tuple(numbers))
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
        kept = [pair for number, pair in enumerate(pairs) if number not in gone]
        for kind in self.paid:
            kind.renew()
            kept += [Table(self.variables(result), kind.values) for result in kind.results]
        return sizes, numbers, kept

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
        widened: list[Kind] = []
        for kind in self.kinds:
            if kind in self.paid or kind.size > MOST_ENTRIES:
                continue
            for result in kind.results:
                items = [lowered.links[number] for number in result]
                part = sum(float(i.table.values[choices[i.source], choices[i.target]])
                           for i in items)  # fmt: skip
                if part < self._paid_for(result, choices) * (1 - MISSING):
                    widened.append(kind)
                    break
        self.paid += widened
        return bool(widened)

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
