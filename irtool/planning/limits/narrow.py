"""Choices that may still be part of something cheaper than what is known.

At some price of a byte it is known of each choice what everything takes at least with it
(``bucket_tree``).  Where that is more than a plan that is known, the choice need
not be looked at again (fixing of variables by reduced costs; Dantzig, Fulkerson and Johnson 1954).
Few choices are left then, and their costs can be exact: what several users want of one result
alike is paid for once, whoever they are.  The cheapest of them is found by
:mod:`irtool.planning.limits.labels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import inf, prod

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.planning.limits.bucket_tree import Tree, loose_tree_of, tree_of
from irtool.planning.limits.fronts import TooMany
from irtool.planning.limits.labels import Labelling
from irtool.planning.limits.modes import Modes, Overhead
from irtool.planning.search.exact import Floats, Table
from irtool.planning.search.paid_once import paid_once
from irtool.planning.search.search import Search
from irtool.planning.search.tables import Model

Ints = npt.NDArray[np.int64]

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Prices of a byte that are tried, over the one that is good for everything."""
_FAR = 0.1
"""Part of the seconds by which a bound may be below them, so that a search is worth while."""
_WORK_OF_A_CHOICE = 100
"""Labels that are about as much work as a choice that is looked at."""
_ROUNDS = 100
"""How often prices that turn out to be used are asked for."""
_MOST_SHARED = 200_000
"""Entries of a table of all users of a result, at most."""


@dataclass(frozen=True, slots=True)
class Within:
    """Which of the choices are looked at.

    Attributes:
        room: bytes of a device for what is counted.
        enough: seconds that what is found has to be below.
        weight: how much of the bytes that recomputed layers make anew is counted: that part of
            their mean, 1 for all of it.
        most: bytes that a layer may make anew.
        prices: seconds of a byte that a layer makes anew above that; 0 for others.
        is_part: whether the price of a byte may have to be another one.
    """

    room: float
    enough: float
    weight: float = 1.0
    most: float = inf
    prices: Mapping[str, float] = field(default_factory=dict[str, float])
    is_part: bool = False

    @property
    def refund(self) -> float:
        """What layers pay for all that they may make anew."""
        return sum(self.prices.values()) * self.most if self.prices else 0.0


@dataclass(frozen=True, slots=True)
class Narrowed:
    """By variable a candidate and a mode (None: nothing is cheap enough); what nothing is below."""

    choices: tuple[tuple[int, ...], tuple[int, ...]] | None
    bound: float


@dataclass(slots=True)
class _Numbers:
    """By variable and mode the seconds and bytes of the choices that are left."""

    seconds: list[list[Floats]] = field(default_factory=list[list[Floats]])
    held: list[list[Floats]] = field(default_factory=list[list[Floats]])


@dataclass(eq=False)
class Narrow:
    """The choices of a model that are good at some price of a byte.

    Attributes:
        search: of the model.
        modes: by variable; they hold a share of what they make anew.
        overhead: bytes beside those of operators and weights.
        price: of a byte.
        keep: by variable, the choices that are left.
        around: by variable, what each choice and all others take at least.
        work: labels that were made, or what is about as much work.
    """

    search: Search
    modes: Sequence[Modes]
    overhead: Overhead | None
    price: float
    keep: list[Ints] = field(default_factory=list[Ints])
    around: list[Floats] = field(default_factory=list[Floats])
    work: int = 0
    _made: dict[tuple[int, int], Floats] = field(default_factory=dict[tuple[int, int], Floats])

    @property
    def model(self) -> Model:
        """The model that is searched."""
        return self.search.model

    def start(self, within: Within) -> None:
        """Find out what each choice takes at least.

        Raises:
            TooWide: there is too much to look at.
        """
        self.keep = [np.arange(len(candidates)) for candidates in self.model.candidates]
        tables = self._tables()
        self.around = [np.zeros(0)] * len(self.keep)
        counts = [len(kept) for kept in self.keep]
        tree = loose_tree_of(counts, self._priced(self._numbers(within), self.price), tables)
        for bucket in tree.buckets:
            if bucket.variable < len(counts):
                self.around[bucket.variable] = tree.best_with(bucket)

    def _best_tree(
        self, within: Within, numbers: _Numbers, tables: list[Table]
    ) -> tuple[float, Tree, float]:
        """A price of a byte with a high bound, the tree at that price, and the bound."""
        counts = [len(kept) for kept in self.keep]
        best: tuple[float, Tree, float] | None = None
        room = within.room - self.model.constant_memory
        for factor in _FACTORS if within.is_part else (1.0,):
            price = self.price * factor
            tree = tree_of(counts, self._priced(numbers, price), tables)
            value = sum(float(root.least) for root in tree.roots) + self.model.constant
            value -= within.refund + price * room
            if best is None or value > best[2]:
                best = price, tree, value
        assert best is not None
        return best

    def restrict(self, within: Within) -> None:
        """Leave the choices that may be good enough, at exact costs.

        Raises:
            TooWide: there is too much to look at.
        """
        self.keep = [np.flatnonzero(least <= self._cut(within)) for least in self.around]
        tables = self._exact(self._tables())
        if all(len(kept) for kept in self.keep):
            for variable, numbers in self._least(tables, within):
                self.keep[variable] = self.keep[variable][numbers <= self._cut(within)]

    def _least(self, tables: list[Table], within: Within) -> Iterator[tuple[int, Floats]]:
        """By variable, what each choice that is left takes at least."""
        counts = [len(kept) for kept in self.keep]
        tree = tree_of(counts, self._priced(self._numbers(within), self.price), tables)
        for bucket in tree.buckets:
            yield bucket.variable, tree.best_with(bucket)

    def _cut(self, within: Within) -> float:
        """Seconds and priced bytes, constants left out, that are too many."""
        model = self.model
        room = self.price * (within.room - model.constant_memory)
        return within.enough + within.refund - model.constant + room

    def best(self, within: Within) -> Narrowed:
        """The cheapest of the choices that are left and fit, with a bound.

        A bound below ``within.enough`` and no choice: there was too much to look at.

        Raises:
            TooWide: there is far too much.
        """
        own, count = self.search, len(self.modes)
        lowest = -inf
        for _ in range(_ROUNDS):
            tables = self._exact(self._tables())
            counts = [len(kept) for kept in self.keep]
            if not all(counts):
                return Narrowed(None, within.enough)
            self.work += _WORK_OF_A_CHOICE * sum(counts)
            numbers = self._numbers(within)
            price, tree, value = self._best_tree(within, numbers, tables)
            lowest = max(lowest, min(value, within.enough))
            is_far = within.is_part and value < within.enough * (1 - _FAR)
            if is_far or value >= within.enough:
                return Narrowed(None, lowest)
            room = within.room - self.model.constant_memory
            paid = within.refund - self.model.constant
            labelled = Labelling(
                tree, numbers.seconds, numbers.held, price, room, within.enough + paid
            )  # fmt: skip
            try:
                best = labelled.run()
            except TooMany:
                return Narrowed(None, lowest)
            finally:
                self.work += labelled.made
            lowest = max(lowest, best.bound - paid)
            if not best.choices:
                return Narrowed(None, lowest)
            choices = tuple(
                int(self.keep[variable][best.choices[variable]]) for variable in range(count)
            )
            if not (own.refuse(choices) or own.refine(choices) or own.share(choices)):
                return Narrowed((choices, best.modes[:count]), lowest)
        return Narrowed(None, lowest)

    def _tables(self) -> list[Table]:
        """Tables that no plan is below, of all choices; layouts of weights are variables, too."""
        own, model = self.search, self.model
        if own.lowered is not None:
            own.lowered.renewed(model.unary)
            model = own.lowered.model
        sizes, _, pairs = model.tables(model.unary, own.shared)
        self.keep += [np.arange(size) for size in sizes[len(self.keep) :]]
        if all(len(left) == size for left, size in zip(self.keep, sizes, strict=True)):
            return pairs
        return [
            Table(table.variables, table.values[np.ix_(*(self.keep[v] for v in table.variables))])
            for table in pairs
        ]

    def _exact(self, tables: list[Table]) -> list[Table]:
        """The tables, exact where a result has several users: it is paid for once."""
        results: dict[object, list[int]] = {}
        for place, item in enumerate(self.model.links):
            results.setdefault(item.result, []).append(place)
        for alone in self.model.alone:
            results.pop(alone.result, None)
        exact: list[Table] = []
        paid: set[int] = set()
        for places in results.values():
            items = [self.model.links[place] for place in places]
            scope = {variable for item in items for variable in (item.source, item.target)}
            if (
                len(places) > 1
                and prod(len(self.keep[variable]) for variable in scope) <= _MOST_SHARED
            ):
                exact.append(paid_once(items, self.keep))
                paid.update(places)
        return [*exact, *(table for place, table in enumerate(tables) if place not in paid)]

    def _numbers(self, within: Within) -> _Numbers:
        """Seconds that no plan is below, and bytes, of what is left."""
        own, numbers = self.search, _Numbers()
        rebates = own.lowered.rebates if own.lowered is not None else {}
        for variable, (modes, left) in enumerate(zip(self.modes, self.keep, strict=False)):
            refused = own.refused.get(id(self.model.candidates[variable]))
            more = refused[left] if refused is not None else np.zeros(len(left))
            more = more - rebates[variable][left] if variable in rebates else more
            seconds: list[Floats] = []
            held: list[Floats] = []
            for mode, (spent, size) in enumerate(zip(modes.seconds, modes.held, strict=True)):
                taken = np.broadcast_to(size, spent.shape)[left]
                total = spent[left] + more
                if self.overhead is not None and len(modes.seconds) > 1:
                    made = self._made_anew(variable, mode)[left]
                    total = np.where(made > within.most, inf, total)
                    total = total + within.prices.get(self.overhead.layer(variable), 0.0) * made
                    taken = taken + (within.weight - 1) * self.overhead.share(variable) * made
                seconds.append(total)
                held.append(taken)
            numbers.seconds.append(seconds)
            numbers.held.append(held)
        for left in self.keep[len(self.modes) :]:
            numbers.seconds.append([np.zeros(len(left))])
            numbers.held.append([np.zeros(len(left))])
        return numbers

    def _made_anew(self, variable: int, mode: int) -> Floats:
        """By candidate the bytes that an operator makes anew; known of operators alike at once."""
        assert self.overhead is not None
        key = variable, mode
        if key not in self._made:
            count = len(self.model.candidates[variable])
            made = [self.overhead.made(variable, choice, mode) for choice in range(count)]
            self._made[key] = np.array(made, dtype=np.float64)
        return self._made[key]

    def _priced(self, numbers: _Numbers, price: float) -> list[Floats]:
        return [
            np.min(
                [spent + price * size for spent, size in zip(seconds, held, strict=True)], axis=0
            )
            for seconds, held in zip(numbers.seconds, numbers.held, strict=True)
        ]
