"""The search of a plan: the least sum of a model's tables, under exact prices."""

from __future__ import annotations

from copy import copy
from dataclasses import field
from math import inf

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats, Memo, solve, value_of
from irtool.planning.search.link_tables import LinkTable
from irtool.planning.search.shared_results import Lowered, lowered
from irtool.planning.search.tables import Model
from irtool.planning.search.together import Together

MOST_ROUNDS = 400
"""Rounds of asking for exact prices; beyond, what is left is a bound."""
CLOSE = 1e-9
"""Part of a bound by which choices may be above it, and are the best."""
ALSO_ASKED = 8
"""Other pairs whose price is asked for together with that of a pair in use."""
CLOSE_AMONG_FEW = 1e-2
"""The same where not all strategies are looked at: a look at others brings more."""
PATIENCE = 16
"""Rounds after which twice as many are."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Choices, and seconds that no others under the same constraints can be below."""

    choices: tuple[int, ...]
    bound: float
    rounds: int


@dataclass(slots=True)
class Search:
    """Searches of one model: what one eliminated, the next need not.

    ``enough``: seconds (of a bound) above which nobody wants to know more. ``close``: part of the
    bound by which choices may be above it, and are good enough.
    """

    model: Model
    memo: Memo = field(default_factory=Memo)
    rounds: int = 0
    shared: list[int] = field(default_factory=list[int])
    """Weights that must lie in one layout: the others do so by themselves, up to now."""
    refused: dict[int, Floats] = field(default_factory=dict[int, "Floats"])
    """By candidates what is added to their numbers: infinity where the rule refused one."""
    enough: float = inf
    close: float = CLOSE
    lowered: Lowered | None = field(init=False)
    """Prices that no plan is below, where those of the model are not such prices."""
    together: Together = field(init=False)
    """Results whose users are looked at together."""

    @classmethod
    def of(cls, model: Model) -> Search:
        """The search of a model; where not all strategies are in it, it need not prove anything."""
        return cls(model, close=CLOSE_AMONG_FEW if model.left_out else CLOSE)

    def __post_init__(self) -> None:
        self.lowered = lowered(self.model)
        self.together = Together(self.model)

    def with_numbers(self, model: Model, enough: float = inf) -> Search:
        """A search of the same tables with other numbers: what was learnt of tables counts there.

        Args:
            model: as the one that is searched here, but for ``unary`` and ``constant``.
            enough: see the class.
        """
        other = copy(self)
        other.model, other.enough, other.rounds = model, enough, 0
        return other

    def best(self, unary: tuple[Floats, ...]) -> tuple[tuple[int, ...], float, float]:
        """Choices with the least sum, the sum, and the bound; prices are exact at the end.

        A search that need not prove anything takes the prices of the model. Any other begins with
        prices that no plan is below; results whose users pay too little are then
        looked at with all of their users (:mod:`irtool.planning.search.together`), until none does.
        """
        if self.close > CLOSE:
            choices, _, bound = self._least(self.model, unary, together=False)
            value = self._seconds(choices, unary)
            return choices, value, min(bound, value)
        least = self.lowered.model if self.lowered is not None else self.model
        under = self.lowered.renewed(unary) if self.lowered is not None else unary
        best, value, bound = self._least(least, under)
        value = self._seconds(best, unary)
        while not value <= bound * (1 + self.close) and self.together.widen(least, best):
            if bound >= self.enough:
                return best, value, min(bound, value)
            choices, _, reached = self._least(least, under)
            seconds = self._seconds(choices, unary)
            bound = max(bound, reached)
            if seconds < value:
                best, value = choices, seconds
        if (
            self.lowered is not None
            and not value <= bound * (1 + self.close)
            and bound < self.enough
        ):
            choices, _, _ = self._least(self.model, unary, together=False)
            seconds = self._seconds(choices, unary)
            best, value = min((best, value), (choices, seconds), key=lambda pair: pair[1])
        return best, value, min(bound, value)

    def _seconds(self, choices: tuple[int, ...], unary: tuple[Floats, ...]) -> float:
        """What choices cost, each result paid for once."""
        if any(not weight.agrees(choices) for weight in self.model.shared):
            return inf
        own = sum(float(seconds[choice]) for seconds, choice in zip(unary, choices, strict=True))
        return own + self.together.seconds(choices)

    def _least(
        self, model: Model, unary: tuple[Floats, ...], *, together: bool = True
    ) -> tuple[tuple[int, ...], float, float]:
        """Choices with the least sum of a model's tables, the sum, and the bound."""
        best: tuple[int, ...] | None = None
        value, bound = inf, -inf
        for turn in range(MOST_ROUNDS):
            self.rounds += 1
            also = ALSO_ASKED << min(turn // PATIENCE, 8)
            allowed = self.allowed(unary)
            tables = model.tables(allowed, self.shared)
            if together:
                tables = self.together.tables(model, allowed, self.shared)
            solution = solve(*tables, self.memo, self.model.entries)
            choices = solution.choices[: len(unary)]
            bound = max(bound, solution.bound)
            new = self.refuse(choices) or self.refine(choices, model, also) or self.share(choices)
            if not new:
                reached = solution.value
            else:
                allowed = self.allowed(unary)
                ends = self.together.tables(model, allowed, ()) if together else None
                _, _, pairs = ends or model.tables(allowed, ())
                reached = value_of(choices, allowed, [*pairs, *model.equal])
            if best is None or reached < value:
                best, value = choices, reached
            if not new or value <= bound * (1 + self.close) or bound >= self.enough:
                break
        assert best is not None
        return best, value, min(bound, value)

    def allowed(self, unary: tuple[Floats, ...]) -> list[Floats]:
        """The numbers, infinite where the rule refused what its form took for legal."""
        allowed = list(unary)
        for variable, candidates in enumerate(self.model.candidates) if self.refused else ():
            refused = self.refused.get(id(candidates))
            if refused is not None:
                allowed[variable] = unary[variable] + refused
        return allowed

    def refuse(self, choices: tuple[int, ...]) -> bool:
        """Ask the rules whether choices are legal; whether any is not."""
        is_new = False
        for candidates, choice in zip(self.model.candidates, choices, strict=True):
            item = candidates.items[choice]
            if item.judgement.verdict == "legal":
                continue
            kept = self.refused.get(id(candidates), np.zeros(len(candidates)))
            is_new |= kept[choice] == 0
            self.refused[id(candidates)] = np.where(np.arange(len(kept)) == choice, inf, kept)
        return bool(is_new)

    def share(self, choices: tuple[int, ...]) -> bool:
        """Demand one layout of weights whose users disagree; whether there were any."""
        apart = [
            number
            for number, weight in enumerate(self.model.shared)
            if number not in self.shared and not weight.agrees(choices)
        ]
        self.shared += apart
        return bool(apart)

    def refine(
        self, choices: tuple[int, ...], model: Model | None = None, also: int = ALSO_ASKED
    ) -> bool:
        """Ask for the prices that some choices use; whether there were any to ask for."""
        model = model or self.model
        asked: dict[int, LinkTable] = {}
        for item in model.links:
            ends = choices[item.source], choices[item.target]
            if not item.table.is_exact(*ends):
                item.table.refine(model.chains, *ends, also=also)
                asked[id(item.table)] = item.table
        for table in asked.values():
            table.renew()
        if self.lowered is not None and asked:  # they share prices with those of the model
            self.lowered.renew_all()
        return bool(asked)
