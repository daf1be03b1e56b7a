"""Choices that fit into a memory: a price on bytes, and a mix of what is tied at that price.

With price ``p`` the least of ``seconds + p (bytes - limit)`` is a lower bound for everything that
fits (Lagrange; Everett 1963).  The price at which the bound is highest lies where a choice that
fits and one that does not cost the same; it is found by going to the price at which two known
choices tie, until no other is cheaper there.  What is left between bound and the choice that fits
is closed by mixing the two: the layers of one up to some operator, those of the other behind it
(operators in the order of the dump), then by changing single operators.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from irtool.planning.cost_tables import CannotPlan, Model
from irtool.planning.exact import Floats, solve
from irtool.planning.plan_search import Found, Search

_PRICES = 40
"""Prices that are tried at most."""
_BRANCHES = 60
"""Parts of the choices that are searched apart where bound and choice are not close."""
_CLOSE = 0.009
"""Part of the bound that is close."""
_ROOMS = 4
"""How often the bytes that no operator holds alone are taken off the limit."""
_SWEEPS = 20
"""Passes over all operators that look for a cheaper single change."""


class Conflict(CannotPlan):
    """What is pinned does not fit together."""


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to run an operator under each candidate: seconds and bytes, one array a way.

    Most have one; optimizer parallel and recomputation are further ones.
    """

    seconds: tuple[Floats, ...]
    held: tuple[Floats, ...]

    def priced(self, price: float) -> Floats:
        """The least of each candidate at a price of a byte."""
        found = self.seconds[0] + price * self.held[0]
        for seconds, held in zip(self.seconds[1:], self.held[1:], strict=True):
            found = np.minimum(found, seconds + price * held)
        return found

    def chosen(self, choice: int, price: float) -> int:
        """The way that is cheapest for a candidate; of equal ones that with the fewest bytes."""
        return min(
            range(len(self.seconds)),
            key=lambda way: (
                float(self.seconds[way][choice] + price * self.held[way][choice]),
                float(self.held[way][choice]),
            ),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate and a way for every operator, what they take, and a bound."""

    choices: tuple[int, ...]
    ways: tuple[int, ...]
    seconds: float
    held: float
    bound: float = -inf


Overhead = Callable[[Sequence[int], Sequence[int]], float]
"""Bytes that no operator holds alone, by candidates and ways."""


@dataclass(eq=False)
class Limited:
    """Searches of one model for choices that fit.

    Attributes:
        search: of the model.
        ways: by variable; equal operators share theirs.
        overhead: bytes beside those of operators and weights.
    """

    search: Search
    ways: Sequence[Ways]
    overhead: Overhead | None = None
    _priced: dict[tuple[int, float], Floats] = field(
        default_factory=dict[tuple[int, float], Floats]
    )

    @property
    def model(self) -> Model:
        """The model that is searched."""
        return self.search.model

    def at(self, price: float) -> Choice:
        """The best choice at a price; its ``bound`` is of seconds and priced bytes."""
        unary: list[Floats] = []
        for each in self.ways:
            key = (id(each), price)
            if key not in self._priced:
                self._priced[key] = each.priced(price)
            unary.append(self._priced[key])
        choices, value, bound = self.search.best(tuple(unary))
        if value == inf or self.model.constant == inf:
            raise Conflict(_conflict(self.model))
        picked = tuple(
            way.chosen(choice, price) for way, choice in zip(self.ways, choices, strict=True)
        )
        return self.choice(choices, picked, bound)

    def choice(self, choices: Sequence[int], picked: Sequence[int], bound: float = -inf) -> Choice:
        """What some candidates and ways take, constants included."""
        seconds, held = self.model.constant, self.model.constant_memory
        for way, choice, which in zip(self.ways, choices, picked, strict=True):
            seconds += float(way.seconds[which][choice])
            held += float(way.held[which][choice])
        for item in self.model.links:
            seconds += float(item.table.values[choices[item.source], choices[item.target]])
        for table in self.model.equal:
            seconds += float(table.values[tuple(choices[at] for at in table.variables)])
        return Choice(tuple(choices), tuple(picked), seconds, held, bound)

    def all_bytes(self, choice: Choice) -> float:
        """Bytes of one device, overhead included."""
        more = self.overhead(choice.choices, choice.ways) if self.overhead is not None else 0.0
        return choice.held + more

    def cheapest(self, limit: int | None) -> Choice:
        """The cheapest choice that fits; ``bound``: seconds that nothing which fits is below.

        Raises:
            CannotPlan: nothing fits; the message says how much is needed.
        """
        first = self.at(0.0)
        bound = first.bound + self.model.constant
        if limit is None or self.all_bytes(first) <= limit:
            return _bounded(first, bound)
        smallest = self._smallest()
        price = first.seconds / max(1.0, first.held)
        tried = [smallest, *(self.at(price * 4.0**step) for step in range(-3, 4))
                 ] if self.overhead is not None else [smallest]  # fmt: skip
        smallest = min(tried, key=self.all_bytes)
        if self.all_bytes(smallest) > limit:
            raise CannotPlan(
                f"no strategies fit into {limit:,} bytes a device: weights, gradients, states "
                f"and results take {self.all_bytes(smallest):,.0f} bytes at least. More "
                "devices, --optimizer-parallel auto or --recompute auto would be needed"
            )
        room = float(limit)
        best: Choice | None = None
        for _ in range(_ROOMS):
            found, reached = self._searched(first, smallest, room)
            bound = max(bound, reached) if room == limit else bound
            more = self.all_bytes(found) - found.held
            if found.held + more <= limit and (best is None or found.seconds < best.seconds):
                best = found
            if room == limit - more or limit - more < smallest.held:
                break
            room = limit - more
        best = best or smallest
        return _bounded(best, min(bound, best.seconds))

    def _searched(self, over: Choice, under: Choice, room: float) -> tuple[Choice, float]:
        """A choice of at most so many bytes, and a bound: branch and bound around ``_within``.

        What differs most in bytes between the two choices that tie is divided: either few bytes
        there, or many.
        """
        best, bound, ends = self._within(over, under, room)
        number = 0
        queue: list[tuple[float, int, Limited, tuple[Choice, Choice]]] = [(bound, 0, self, ends)]
        while queue and number < _BRANCHES:
            bound = queue[0][0]
            if best.seconds <= bound * (1 + _CLOSE):
                break
            _, _, node, ends = heapq.heappop(queue)
            for part in node.halves(ends):
                number += 1
                try:
                    first, smallest = part.at(0.0), part._smallest()
                except CannotPlan:
                    continue
                if smallest.held > room or not smallest.seconds < inf:
                    continue
                if first.held <= room:
                    found, reached, ties = first, first.bound + self.model.constant, (first, first)
                else:
                    found, reached, ties = part._within(first, smallest, room)
                best = min(best, found, key=lambda each: each.seconds)
                if reached < best.seconds * (1 - 1e-9) and ties[0] is not ties[1]:
                    heapq.heappush(queue, (max(bound, reached), number, part, ties))
        if not queue:
            return best, best.seconds
        return best, min(best.seconds, queue[0][0])

    def halves(self, ends: tuple[Choice, Choice]) -> Iterator[Limited]:
        """The same search with few bytes for one operator, and with many."""
        over, under = ends

        def bytes_of(each: Choice, at: int) -> float:
            return float(self.ways[at].held[each.ways[at]][each.choices[at]])

        at = max(
            range(len(self.ways)), key=lambda at: abs(bytes_of(over, at) - bytes_of(under, at))
        )
        edge = (bytes_of(over, at) + bytes_of(under, at)) / 2
        own = self.ways[at]
        for keep in (True, False):
            seconds = tuple(
                np.where((held <= edge) == keep, each, inf)
                for each, held in zip(own.seconds, own.held, strict=True)
            )
            ways = list(self.ways)
            ways[at] = Ways(seconds, own.held)
            yield Limited(self.search, ways, self.overhead)

    def _smallest(self) -> Choice:
        """The choice with the fewest bytes."""
        held: dict[int, Floats] = {}
        for each in self.ways:
            if id(each) not in held:
                sizes = [
                    np.where(np.isinf(s), inf, h)
                    for s, h in zip(each.seconds, each.held, strict=True)
                ]
                held[id(each)] = np.min(np.stack(sizes), axis=0)
        counts = [len(each) for each in self.model.candidates]
        while True:
            unary = self.search.allowed(tuple(held[id(each)] for each in self.ways))
            choices = solve(counts, unary, self.model.equal).choices
            if not self.search.refuse(choices):
                break
        self.search.refine(choices)
        picked = tuple(
            min(
                range(len(each.held)),
                key=lambda way, each=each, choice=choice: (
                    bool(np.isinf(each.seconds[way][choice])),
                    float(each.held[way][choice]),
                ),
            )
            for each, choice in zip(self.ways, choices, strict=True)
        )
        return self.choice(choices, picked)

    def _within(
        self, over: Choice, under: Choice, room: float
    ) -> tuple[Choice, float, tuple[Choice, Choice]]:
        """A choice of at most so many bytes, a bound, and the two choices that tie there.

        Args:
            over: the fastest choice, too large.
            under: one that fits.
            room: bytes, overhead left out.
        """
        bound = -inf
        seen: list[tuple[Choice, Choice]] = []
        best = under
        for _ in range(_PRICES):
            if over.held <= room:
                best = min(best, over, key=lambda each: each.seconds)
                break
            price = max(0.0, (under.seconds - over.seconds) / (over.held - under.held))
            found = self.at(price)
            reached = found.bound + self.model.constant
            reached -= price * (room - self.model.constant_memory)
            bound = max(bound, reached)
            seen.append((over, under))
            line = over.seconds + price * (over.held - room)
            if found.seconds + price * (found.held - room) >= line - 1e-9 * abs(line):
                break
            if found.held <= room:
                under = found
                best = min(best, found, key=lambda each: each.seconds)
            else:
                over = found
        for large, small in reversed(seen[-3:]):
            if best.seconds <= bound * (1 + 1e-6):
                break
            for mixed in (self._mixed(large, small, room), self._mixed(small, large, room)):
                if mixed is not None and mixed.seconds < best.seconds:
                    best = mixed
        if best.seconds > bound * (1 + 1e-6):
            best = self._polished(best, room)
        return best, bound, (over, under)

    # -- closing the gap -----------------------------------------------------------------------

    def _mixed(self, first: Choice, then: Choice, room: float) -> Choice | None:
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
            found = self.choice(mixed, ways)
            return found if found.held <= room else None
        return self.choice(mixed, ways)

    def _polished(self, start: Choice, room: float) -> Choice:
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
        found = self.choice(choices, picked)
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


def search(model: Model, limit: int | None) -> Found:
    """The cheapest choices that fit into a limit (bytes of a device).

    Raises:
        CannotPlan: there are none.
    """
    own = Search(model)
    found = Limited(own, plain_ways(model)).cheapest(limit)
    return Found(found.choices, found.bound, own.rounds)


def plain_ways(model: Model, more: Sequence[Floats] | None = None) -> list[Ways]:
    """One way for each operator; ``more``: seconds beside the model's own, by variable."""
    known: dict[tuple[int, int, int], Ways] = {}
    found: list[Ways] = []
    for at, (seconds, held) in enumerate(zip(model.unary, model.memory, strict=True)):
        extra = more[at] if more is not None else None
        key = (id(seconds), id(held), id(extra))
        if key not in known:
            known[key] = Ways((seconds if extra is None else seconds + extra,), (held,))
        found.append(known[key])
    return found


def _bounded(choice: Choice, bound: float) -> Choice:
    return Choice(choice.choices, choice.ways, choice.seconds, choice.held, bound)


def _conflict(model: Model) -> str:
    """Which operators do not fit together, where two alone show it."""
    for parameter in model.structure.parameters:
        users = {ref.node for ref in parameter.users}
        for table in model.equal:
            ends = [model.nodes[at] for at in table.variables]
            if users.issuperset(ends) and not np.isfinite(table.values).any():
                first, second = (
                    f"{node.id} {node.op} (line {node.line})"
                    + (", which is pinned" if node in model.pinned else "")
                    for node in ends
                )
                return (
                    f"weight {parameter.name} cannot lie as both its users want it: {first}, and "
                    f"{second}"
                )
    return (
        "no choice of strategies fits together: the users of some weight, or the ends of some "
        "edge, allow no common layout under what is pinned"
    )
