"""What it costs that a result lies one way where it is made and another where it is wanted."""

from __future__ import annotations

from dataclasses import field
from math import inf

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import likeliest
from irtool.operators.judgement import Judgement
from irtool.planning.cost.structure import Link, Ref
from irtool.planning.search.candidate_layouts import Layouts
from irtool.planning.search.chains import Chains, Want
from irtool.planning.search.exact import Floats


@dataclass(eq=False, slots=True)
class LinkTable:
    """Prices of a redistribution for all candidates at both ends; lower bounds until asked for.

    ``share``: by layout that is wanted, which part of the price one user pays: what users of one
    result want alike is made once.
    """

    sources: Layouts
    targets: Layouts
    want: Want
    prices: Floats
    exact: npt.NDArray[np.bool_]
    share: Floats
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    flipped: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    known: int = -1

    def __post_init__(self) -> None:
        self.renew()

    def is_exact(self, first: int, second: int) -> bool:
        """Whether the price of a pair of candidates is known."""
        return bool(self.exact[self.sources.which[first], self.targets.which[second]])

    def refine(self, chains: Chains, first: int, second: int, also: int = 0) -> None:
        """Ask for the exact price of one pair of candidates.

        ``also``: of how many others, at most, that share one end and promise to be cheaper.
        """
        a, b = int(self.sources.which[first]), int(self.targets.which[second])
        self._ask(chains, a, b)
        if not also:
            return
        price = self.prices[a, b]
        rows = [
            other for other in np.argsort(self.prices[:, b])[:also] if self.prices[other, b] < price
        ]
        columns = [
            other for other in np.argsort(self.prices[a])[:also] if self.prices[a, other] < price
        ]
        for other in rows:
            self._ask(chains, int(other), b)
        for other in columns:
            self._ask(chains, a, int(other))

    def _ask(self, chains: Chains, a: int, b: int) -> None:
        if not self.exact[a, b]:
            ends = self.sources.layout(a), self.targets.layout(b)
            self.prices[a, b] = chains.seconds(*ends, self.want)
            self.exact[a, b] = True

    def with_share(self, share: Floats) -> LinkTable:
        """A table of these prices, those asked for later included, shared in another way.

        Args:
            share: by layout that is wanted, which part of the price one user pays.
        """
        return LinkTable(self.sources, self.targets, self.want, self.prices, self.exact, share)

    def renew(self) -> None:
        """Put refined prices into new tables: results are kept by a table's identity."""
        known = int(np.count_nonzero(self.exact))
        if known == self.known:
            return
        self.known = known
        prices = self.prices * self.share[None, :]
        self.values = prices[np.ix_(self.sources.which, self.targets.which)]
        self.flipped = np.ascontiguousarray(np.transpose(self.values))


@dataclass(frozen=True, eq=False, slots=True)
class PricedLink:
    """A link between two variables, in the order of the tensor's way.

    ``result``: equal for links that bring one result alike (:func:`result_of`).
    """

    link: Link
    source: int
    target: int
    table: LinkTable
    result: object


@dataclass(frozen=True, eq=False, slots=True)
class PaidAlone:
    """A link of which one variable decides everything, with what it adds to that one's numbers."""

    result: object
    variable: int
    seconds: Floats


def result_of(link: Link) -> object:
    """Equal for links that bring one result alike: what they redistribute is made once.

    Args:
        link: an edge, or a Reshape, whose result is its own.
    """
    if link.keep_reshape:
        return id(link)
    edge = link.edge
    holder, position = (edge.tie, edge.item) if edge.tie else (edge.consumer, edge.position)
    return id(likeliest(holder.inputs[position])), link.source, want_of(link)


def end_of(ref: Ref) -> tuple[str, int]:
    """Which tensor of an operator.

    Args:
        ref: a tensor whose layout the operator decides.

    Returns:
        ``input`` or ``output``, and its number.
    """
    return ref.side, ref.index


def want_of(link: Link) -> Want:
    """What a link moves.

    Args:
        link: an edge, or a Reshape.
    """
    return Want(link.element, link.gradient, link.keep_reshape, link.is_bool, link.runs)


def price_of(
    chains: Chains, link: Link, first: Judgement | None, second: Judgement | None
) -> float:
    """Seconds of a link between operators that are judged like this; infinite where unknown.

    Args:
        chains: prices of redistributions.
        link: an edge, or a Reshape.
        first: judgement of the operator at its source; None: nobody decides how that end lies.
        second: of the one at its target.
    """
    source, target = link.source.of(first), link.target.of(second)
    if source is None or target is None:
        return inf
    return chains.seconds(source.standard(), target.standard(), want_of(link))
