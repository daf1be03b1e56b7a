"""Choices that fit into a memory: a price on bytes, a mix of what is tied there, and a proof.

With price ``p`` the least of ``seconds + p (bytes - limit)`` is a lower bound for everything that
fits (Lagrange; Everett 1963).  The price at which the bound is highest lies where a choice that
fits and one that does not cost the same; it is found by going to the price at which two known
choices tie, until no other is cheaper there.  What is left between bound and the choice that fits
is closed by mixing the two: the layers of one up to some operator, those of the other behind it
(operators in the order of the dump), then by changing single operators.  Where that is not close,
:mod:`irtool.planning.limits.layers` finds the optimum among the choices that may still be better.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from math import inf

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text
from irtool.planning.limits.layers import Closing, exact
from irtool.planning.limits.mix import Mix
from irtool.planning.limits.modes import Choice, Modes, Overhead, choice_of, plain_modes
from irtool.planning.limits.pack import packed, smallest
from irtool.planning.limits.proof import proved
from irtool.planning.search.exact import Floats, solve
from irtool.planning.search.paid_once import seconds_of_links
from irtool.planning.search.search import CLOSE, Search, Solution
from irtool.planning.search.shared_starts import Case, model_of_case, seconds_above, unpaid
from irtool.planning.search.tables import CannotPlan, Model

_PRICES = 40
"""Prices that are tried at most."""
_PARTS = 12
"""Parts of the choices that are searched apart where bound and choice are not close."""
_CLOSE = 8e-3
"""Part of the bound that is close."""


class Conflict(CannotPlan):
    """What is pinned does not fit together."""


class TooLittleMemory(CannotPlan):
    """Nothing fits into a limit.

    Attributes:
        limit: bytes that a device may hold.
        fewest: bytes of the smallest plan that was found.
        least: bytes that no plan is below.
        help: what would lower them.
    """

    def __init__(self, limit: int, fewest: float, least: float, help: tuple[str, ...]) -> None:
        self.limit, self.fewest, self.least, self.help = limit, fewest, least, help
        needed = f"a device holds {_size(fewest)} at least"
        if fewest > least * (1 + 1e-9):
            needed = (
                f"the least that was found for a device is {_size(fewest)}, and {_size(least)} is "
                "less than any plan takes"
            )
        super().__init__(
            f"no strategies fit into {bytes_text(limit)} a device: {needed}. "
            f"What would lower that: {', '.join(help)}"
        )

    def __reduce__(self) -> tuple[type[TooLittleMemory], tuple[object, ...]]:
        return type(self), (self.limit, self.fewest, self.least, self.help)


def _size(size: float) -> str:
    return f"{bytes_text(round(size))} ({size:,.0f} bytes)"


@dataclass(eq=False)
class Limited:
    """Searches of one model for choices that fit.

    Attributes:
        search: of the model.
        modes: by variable; equal operators share theirs.
        overhead: bytes beside those of operators and weights.
        seen: choices that were the best at some price.
    """

    search: Search
    modes: Sequence[Modes]
    overhead: Overhead | None = None
    seen: list[Choice] = field(default_factory=list[Choice])
    _priced: dict[tuple[int, float], Floats] = field(
        default_factory=dict[tuple[int, float], Floats]
    )

    @property
    def model(self) -> Model:
        """The model that is searched."""
        return self.search.model

    def at_price(self, price: float) -> Choice:
        """The best choice at a price; its ``bound`` is of seconds and priced bytes."""
        unary: list[Floats] = []
        for modes in self.modes:
            key = (id(modes), price)
            if key not in self._priced:
                self._priced[key] = modes.priced(price)
            unary.append(self._priced[key])
        choices, value, bound = self.search.best(tuple(unary))
        if value == inf or self.model.constant == inf:
            raise Conflict(_conflict(self.model))
        picked = tuple(
            own.chosen(choice, price) for own, choice in zip(self.modes, choices, strict=True)
        )
        best = self.choice(choices, picked, bound)
        if all(earlier.choices != best.choices for earlier in self.seen):
            self.seen.append(best)
        return best

    def choice(self, choices: Sequence[int], picked: Sequence[int], bound: float = -inf) -> Choice:
        """What some candidates and modes take, constants included."""
        return choice_of(self.model, self.modes, choices, picked, bound)

    def all_bytes(self, choice: Choice) -> float:
        """Bytes of one device, overhead included."""
        if self.overhead is None:
            return choice.held
        more = self.overhead.above(choice.choices, choice.modes)
        return choice.held + more

    def cheapest(self, limit: int | None) -> Choice:
        """The cheapest choice that fits; ``bound``: seconds that nothing which fits is below.

        Raises:
            CannotPlan: nothing fits; the message says how much is needed.
        """
        first = self.at_price(0.0)
        bound = first.bound + self.model.constant
        if first.bound >= self.search.enough:
            return _bounded(first, min(bound, first.seconds))
        if limit is None or self.all_bytes(first) <= limit:
            is_proof = self.search.close <= CLOSE
            return proved(self.search, self.modes, first, bound) if is_proof else first
        fits = self._fits_at_all(first, limit)
        bound, best = self._fitting(first, fits, limit, bound)
        return _bounded(best, min(bound, best.seconds))

    def _fits_at_all(self, first: Choice, limit: int) -> Choice:
        """Some choice that fits, cheap or not.

        Raises:
            CannotPlan: none was found.
        """
        least = self._smallest()
        tried = [least]
        overhead = self.overhead
        if overhead is not None:
            price = first.seconds / max(1.0, first.held)
            tried += [self.at_price(price * 4.0**step) for step in range(-3, 4)]
            tight = (packed(self.model, self.modes, overhead, choice, limit) for choice in tried)
            best = min(filter(None, tight), key=_seconds, default=None)
            if best is not None:
                return best
            tried += [smallest(self.model, self.modes, overhead, choice) for choice in tried]
        best = min(tried, key=self.all_bytes)
        if self.all_bytes(best) > limit:
            raise TooLittleMemory(limit, self.all_bytes(best), least.held, self._help())
        return best

    def _help(self) -> tuple[str, ...]:
        """What would lower the bytes of a device."""
        modes = max(len(own.seconds) for own in self.modes)
        is_cut = modes > (1 if self.overhead is None else 2)
        help_ = [] if self.overhead is not None else ["--recompute auto"]
        if not is_cut and not self.model.structure.context.parallel_optimizer:
            help_.append("--optimizer-parallel auto")
        return (*help_, "more devices", "pipeline stages (--to-stages)")

    def _fitting(
        self, first: Choice, fits: Choice, limit: int, bound: float
    ) -> tuple[float, Choice]:
        """A bound, and the best choice that fits with all that operators do not hold alone."""
        small = min(
            (choice for choice in self.seen if choice.held <= limit), key=_held, default=fits
        )
        fitting, reached, price, ends = self._within(first, small, limit)
        best = min(
            (self._exact(choice) for choice in (fits, *self._fits(fitting, limit))), key=_seconds
        )
        closing = Closing(self.search, self.modes, self.overhead, limit, best, max(bound, reached))
        if not closing.is_close:
            closing.run(price)
        if closing.best.seconds <= closing.bound * (1 + _CLOSE) or ends[0] is ends[1]:
            return closing.bound, closing.best
        return self._parted(ends, limit, closing.best, closing.bound)

    def _parted(
        self, ends: tuple[Choice, Choice], limit: int, best: Choice, bound: float
    ) -> tuple[float, Choice]:
        """Branch and bound: what differs most in bytes between two choices that tie is divided.

        Either few bytes there, or many: each part has a price of its own.
        """
        number, closed = 0, inf
        queue: list[tuple[float, int, Limited, tuple[Choice, Choice]]] = [(bound, 0, self, ends)]
        while queue and number < _PARTS and best.seconds > min(closed, queue[0][0]) * (1 + _CLOSE):
            above, _, limited, ends = heapq.heappop(queue)
            for part in limited._halves(ends):
                number += 1
                reached, best, ties = part._part(limit, best)
                reached = max(above, reached)
                if ties is None or ties[0] is ties[1] or reached >= best.seconds:
                    closed = min(closed, reached)
                else:
                    heapq.heappush(queue, (reached, number, part, ties))
        open_ = queue[0][0] if queue else inf
        return max(bound, min(closed, open_, best.seconds)), best

    def _part(self, limit: int, best: Choice) -> tuple[float, Choice, tuple[Choice, Choice] | None]:
        """The bound of a part, the best choice known then, and the two that tie in the part."""
        try:
            first, small = self.at_price(0.0), self._smallest()
        except CannotPlan:
            return inf, best, None
        reached = first.bound + self.model.constant
        if small.held > limit or small.seconds == inf:
            return inf, best, None
        if reached >= best.seconds:
            return reached, best, None
        ends, fitting, price = (first, first), first, 0.0
        if first.held > limit:
            fitting, reached, price, ends = self._within(first, small, limit)
        for choice in self._fits(fitting, limit):
            best = min(best, self._exact(choice), key=_seconds)
        closing = Closing(self.search, self.modes, self.overhead, limit, best, reached)
        if price and best.seconds > reached * (1 + _CLOSE):
            closing.run(price, with_ranges=False)
        return closing.bound, closing.best, ends

    def _halves(self, ends: tuple[Choice, Choice]) -> Iterator[Limited]:
        """Two searches in the place of this one: with few bytes for one operator, and with many.

        The operator is the one whose bytes differ most between the two choices; the border lies in
        the middle.
        """

        def bytes_of(choice: Choice, variable: int) -> float:
            return float(
                self.modes[variable].held[choice.modes[variable]][choice.choices[variable]]
            )

        first, then = ends
        variables = range(len(self.modes))
        widest = max(variables, key=lambda v: abs(bytes_of(first, v) - bytes_of(then, v)))
        edge = (bytes_of(first, widest) + bytes_of(then, widest)) / 2
        own = self.modes[widest]
        for few in (True, False):
            seconds = tuple(
                np.where((held <= edge) == few, spent, inf)
                for spent, held in zip(own.seconds, own.held, strict=True)
            )
            modes = [Modes(seconds, own.held) if v == widest else self.modes[v] for v in variables]
            yield Limited(self.search, modes, self.overhead)

    def _fits(self, choice: Choice, limit: int) -> Iterator[Choice]:
        """What fits of a choice, and of those that were the best at some price."""
        if self.all_bytes(choice) <= limit:
            yield choice
        yield from self._packed(choice, limit)

    def _exact(self, choice: Choice) -> Choice:
        return exact(self.search, self.modes, choice)

    def _packed(self, choice: Choice, limit: int) -> Iterator[Choice]:
        """What fits of a choice, and of those that were the best at some price."""
        for other in (choice, *self.seen):
            if self.overhead is not None:
                tight = packed(self.model, self.modes, self.overhead, other, limit)
                if tight is not None:
                    yield tight

    def _smallest(self) -> Choice:
        """The choice with the fewest bytes."""
        held: dict[int, Floats] = {}
        for modes in self.modes:
            if id(modes) not in held:
                sizes = [
                    np.where(np.isinf(s), inf, h)
                    for s, h in zip(modes.seconds, modes.held, strict=True)
                ]
                held[id(modes)] = np.min(np.stack(sizes), axis=0)
        counts = [len(candidates) for candidates in self.model.candidates]
        while True:
            unary = self.search.allowed(tuple(held[id(modes)] for modes in self.modes))
            choices = solve(counts, unary, self.model.equal).choices
            if not self.search.refuse(choices):
                break
        self.search.refine(choices)
        picked = tuple(
            min(
                range(len(modes.held)),
                key=lambda mode, modes=modes, choice=choice: (
                    bool(np.isinf(modes.seconds[mode][choice])),
                    float(modes.held[mode][choice]),
                ),
            )
            for modes, choice in zip(self.modes, choices, strict=True)
        )
        return self.choice(choices, picked)

    def _within(
        self, over: Choice, under: Choice, room: float
    ) -> tuple[Choice, float, float, tuple[Choice, Choice]]:
        """A choice of at most so many bytes, a bound, its price of a byte, and two that tie there.

        Args:
            over: the fastest choice, too large.
            under: one that fits.
            room: bytes, overhead left out.
        """
        bound, best_price = -inf, 0.0
        seen: list[tuple[Choice, Choice]] = []
        best = under
        for _ in range(_PRICES):
            if over.held <= room:
                best = min(best, over, key=lambda choice: choice.seconds)
                break
            price = max(0.0, (under.seconds - over.seconds) / (over.held - under.held))
            between = self.at_price(price)
            reached = between.bound + self.model.constant
            reached -= price * (room - self.model.constant_memory)
            bound, best_price = max((bound, best_price), (reached, price))
            seen.append((over, under))
            line = over.seconds + price * (over.held - room)
            if between.seconds + price * (between.held - room) >= line - 1e-9 * abs(line):
                break
            if between.held <= room:
                under = between
                best = min(best, between, key=lambda choice: choice.seconds)
            else:
                over = between
        mix = Mix(self.search, self.modes)
        for large, small in reversed(seen[-3:]):
            if best.seconds <= bound * (1 + 1e-6):
                break
            for mixed in (mix.mixed(large, small, room), mix.mixed(small, large, room)):
                if mixed is not None and mixed.seconds < best.seconds:
                    best = mixed
        if best.seconds > bound * (1 + 1e-6):
            best = mix.polished(best, room)
        return best, bound, best_price, (over, under)


_MOST_CASES = 16
"""Searches with buckets of fused collectives opened and closed, at most."""
_CLOSE_CASES = 1e-5
"""Part of a step that is not worth another search."""


def search(model: Model, limit: int | None, most_cases: int = _MOST_CASES) -> Solution:
    """The cheapest choices that fit into a limit.

    Args:
        model: what is searched.
        limit: bytes of a device.
        most_cases: searches with buckets of fused collectives opened and closed; one: what buckets
            share of their starts is told from the tables alone.

    Raises:
        CannotPlan: there are none.
    """
    first = _first(model, limit)
    close = max(_CLOSE_CASES, first.search.close)
    best, bound, rounds = first.choice, first.bound, first.search.rounds
    seconds = total_seconds(model, best.choices)
    cases, looked = [first], 1
    settled = inf  # the least bound of cases that are not divided further
    while cases and looked < most_cases:
        cases.sort(key=lambda searched: searched.bound)
        bound = min(cases[0].bound, seconds)
        if seconds <= bound * (1 + close):
            break
        cut = cases.pop(0)
        key = unpaid(model, cut.choice.choices, cut.case)
        if key is None:  # all is paid for: no others of the case are below what its search proved
            settled = min(settled, cut.bound)
            continue
        for case in (
            replace(cut.case, opened=cut.case.opened | {key}),
            replace(cut.case, closed=cut.case.closed | {key}),
        ):
            looked += 1
            try:
                searched = _case(model, limit, case, first.search, seconds)
            except CannotPlan:
                continue
            rounds += searched.search.rounds
            total = total_seconds(model, searched.choice.choices)
            if total < seconds:
                best, seconds = searched.choice, total
            cases.append(replace(searched, bound=max(searched.bound, cut.bound)))
    bound = min([seconds, settled, *(searched.bound for searched in cases)])
    own = model.own
    if own is not None and _fits(model, own, limit) and total_seconds(model, own) < seconds:
        return Solution(own, bound, rounds)
    return Solution(best.choices, bound, rounds)


def _fits(model: Model, choices: Sequence[int], limit: int | None) -> bool:
    """Whether weights lie as all their users want them, and a device holds everything."""
    agree = all(weight.agrees(choices) for weight in model.shared)
    return agree and (limit is None or model.memory_of(choices) <= limit)


@dataclass(frozen=True, slots=True)
class _Searched:
    """The cheapest choices of a case, and seconds that no others of it are below."""

    case: Case
    choice: Choice
    bound: float
    search: Search


def _first(model: Model, limit: int | None) -> _Searched:
    """The search of all plans, which is made once."""
    found = model.found.get(limit)
    if not isinstance(found, _Searched):
        found = model.found[limit] = _case(model, limit, Case())
    return found


def _case(
    model: Model,
    limit: int | None,
    case: Case,
    first: Search | None = None,
    seconds: float = inf,
) -> _Searched:
    """Search the plans of a case.

    Args:
        model: with what no case changes.
        limit: bytes of a device.
        case: which plans.
        first: a search of all plans.
        seconds: of the best that is known: no case matters whose bound is not below.

    Raises:
        CannotPlan: there are none.
    """
    if first is None:
        own = Search.of(model)
    else:
        changed = model_of_case(model, case)
        enough = seconds - changed.constant if limit is None else inf
        own = first.with_numbers(changed, enough)
    if own.model.constant == inf:
        raise CannotPlan("weights that no choice changes are in a bucket that is closed")
    choice = Limited(own, plain_modes(own.model)).cheapest(limit)
    return _Searched(case, choice, choice.bound, own)


def total_seconds(model: Model, choices: Sequence[int]) -> float:
    """What choices cost, with all starts.

    Args:
        model: the tables of the network.
        choices: a candidate for every variable.

    Returns:
        seconds, each redistributed result paid for once.
    """
    unary = sum(
        float(seconds[choice]) for seconds, choice in zip(model.unary, choices, strict=True)
    )
    between = seconds_of_links(model, choices)
    return model.constant + unary + between + seconds_above(model, choices)


def _seconds(choice: Choice) -> float:
    return choice.seconds


def _held(choice: Choice) -> float:
    return choice.held


def _bounded(choice: Choice, bound: float) -> Choice:
    return replace(choice, bound=bound)


def _conflict(model: Model) -> str:
    """Which operators do not fit together, where two alone show it."""
    for parameter in model.structure.parameters:
        users = {ref.node for ref in parameter.users}
        for table in model.equal:
            ends = [model.nodes[variable] for variable in table.variables]
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
