"""How much a search looks at: all strategies of an operator, or those around the best of a few."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.cost.structure import Structure
from irtool.planning.search.candidates import MOST, count_of
from irtool.planning.search.exact import MOST_ENTRIES
from irtool.planning.search.operator_candidates import kind_of

EffortName = Literal["quick", "default", "full"]
"""How ``irtool plan --effort`` names them."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is looked at of operators' strategies.

    Attributes:
        pairs: pairs of strategies of neighbours; of a network that has no more, all strategies are
            looked at.
        few: of any other network, so many of an operator in one search, at most.
        bounds: whether a search of part of such a network bounds what all strategies could do; else
            arithmetic alone does.
        entries: of the largest table that a search makes; where strategies of many operators hang
            together, more would be needed, and what it finds is not proved.
    """

    pairs: float
    few: int
    bounds: bool = True
    entries: int = MOST_ENTRIES

    def most(self, structure: Structure) -> int:
        """Strategies up to which all of an operator's are looked at."""
        if self.pairs < inf and Sizes.of(structure).pairs() > self.pairs:
            return self.few
        return MOST


EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(pairs=1_000_000, few=150, bounds=False, entries=300_000),
    "default": Effort(pairs=1_000_000, few=150, entries=1_000_000),
    "full": Effort(pairs=inf, few=MOST),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the tables of a network are.

    Attributes:
        counts: strategies by operator.
        neighbours: kinds of operators, two by two, each pair once: a pair of operators of each.
    """

    counts: Mapping[Node, int]
    neighbours: Collection[tuple[Node, Node]]

    @classmethod
    def of(cls, structure: Structure) -> Sizes:
        """How large the tables of a network would be."""
        kinds = {node: kind_of(judged) for node, judged in structure.calls.items()}
        known: dict[object, int] = {}
        for node, kind in kinds.items():
            if kind not in known:
                call = structure.calls[node].call.call
                known[kind] = count_of(call, structure.operators)
        pairs: dict[object, tuple[Node, Node]] = {}
        for link in structure.links:
            first, second = link.source.node, link.target.node
            if first in kinds and second in kinds and first is not second:
                assert first is not None
                assert second is not None
                pairs.setdefault((kinds[first], kinds[second]), (first, second))
        return cls({node: known[kind] for node, kind in kinds.items()}, tuple(pairs.values()))

    def pairs(self, most: float = inf) -> int:
        """Pairs of strategies of neighbours that have no more than ``most`` each."""
        return sum(
            self.counts[first] * self.counts[second]
            for first, second in self.neighbours
            if max(self.counts[first], self.counts[second]) <= most
        )

    def widest(self, pairs: int) -> frozenset[Node]:
        """Operators with the most strategies, without which there are no more pairs than these."""
        for most in sorted(set(self.counts.values()), reverse=True):
            if self.pairs(most) <= pairs:
                return frozenset(node for node, count in self.counts.items() if count > most)
        return frozenset(self.counts)
