"""The search of a plan: the least sum of a model's tables, under exact prices and within memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf

from irtool.planning.cost_tables import CannotPlan, LinkTable, Model
from irtool.planning.exact import Floats, Memo, solve, value_of

MOST_ROUNDS = 400
"""Rounds of asking for exact prices; beyond, what is left is a bound."""
ALSO_ASKED = 16
"""Other pairs whose price is asked for together with that of a pair in use."""
_PRICES = 24
"""Steps of the search for the price of memory."""


@dataclass(frozen=True, slots=True)
class Found:
    """Choices, and seconds that no others under the same constraints can be below."""

    choices: tuple[int, ...]
    bound: float
    rounds: int


@dataclass(slots=True)
class Search:
    """Searches of one model: what one eliminated, the next need not."""

    model: Model
    memo: Memo
    rounds: int = 0

    def best(self, unary: tuple[Floats, ...]) -> tuple[tuple[int, ...], float, float]:
        """Choices with the least sum, the sum, and the bound; prices are exact at the end."""
        model = self.model
        sizes = [len(each) for each in model.candidates]
        best: tuple[int, ...] | None = None
        value, bound = inf, -inf
        for _ in range(MOST_ROUNDS):
            self.rounds += 1
            solution = solve(sizes, unary, model.pairs(), self.memo)
            bound = max(bound, solution.bound)
            new = self.refine(solution.choices)
            reached = value_of(solution.choices, unary, model.pairs())
            if best is None or reached < value:
                best, value = solution.choices, reached
            if not new or value <= bound * (1 + 1e-9):
                break
        assert best is not None
        return best, value, min(bound, value)

    def refine(self, choices: tuple[int, ...]) -> bool:
        """Ask for the prices that some choices use; whether there were any to ask for."""
        model = self.model
        asked: dict[int, LinkTable] = {}
        for item in model.links:
            ends = choices[item.source], choices[item.target]
            if not item.table.is_exact(*ends):
                item.table.refine(model.chains, *ends, also=ALSO_ASKED)
                asked[id(item.table)] = item.table
        for table in asked.values():
            table.renew()
        return bool(asked)


def search(model: Model, limit: int | None) -> Found:
    """The cheapest choices that fit into a limit (bytes of a device).

    Raises:
        CannotPlan: there are none.
    """
    own = Search(model, Memo())
    choices, value, bound = own.best(model.unary)
    if isinf(value) or isinf(model.constant):
        raise CannotPlan(
            "no choice of strategies fits together: the users of some weight, or the ends of some "
            "edge, allow no common layout under what is pinned"
        )
    if limit is None or model.memory_of(choices) <= limit:
        return Found(choices, bound + model.constant, own.rounds)
    return _within(own, limit, bound)


def _within(search: Search, limit: int, bound: float) -> Found:
    """The cheapest plan that fits: a price on memory, raised until it does (Lagrange).

    With price ``p`` the least of ``seconds + p (memory - limit)`` is a lower bound for every plan
    that fits; the best of these bounds, and the best plan that fits, are what is left.
    """
    model = search.model
    least = model.memory_of([int(each.argmin()) for each in model.memory])
    if least > limit:
        raise CannotPlan(
            f"no strategies fit into {limit:,} bytes a device: weights, gradients, states and "
            f"results take {least:,.0f} bytes at least. More devices, optimizer parallel or "
            "recomputation would be needed"
        )
    low, high = 0.0, _first_price(model, bound, limit)
    best: tuple[int, ...] | None = None
    cheapest = inf
    for step in range(_PRICES):
        price = high if best is None else (low + high) / 2
        unary = tuple(
            seconds + price * held for seconds, held in zip(model.unary, model.memory, strict=True)
        )
        choices, _, reached = search.best(unary)
        bound = max(bound, reached - price * (limit - model.constant_memory))
        if model.memory_of(choices) <= limit:
            high = price
            value = value_of(choices, model.unary, model.pairs())
            if value < cheapest:
                best, cheapest = choices, value
        else:
            low = price
            if best is None:
                high = price * 8
        if best is not None and (cheapest <= bound * (1 + 1e-6) or step > _PRICES):
            break
    if best is None:
        raise CannotPlan(f"no plan that fits into {limit:,} bytes a device was found")
    return Found(best, min(bound, cheapest) + model.constant, search.rounds)


def _first_price(model: Model, seconds: float, limit: int) -> float:
    return seconds / max(1.0, float(limit))
