"""Which layouts a Reshape in the propagation turns into which.

Before the propagation begins, MindSpore prices every pair of a layout that the producer of a
Reshape may leave and one that a user may take. Like other prices they are remembered by device
matrices and tensor maps alone, so that the first Reshape with a pair decides for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain, product

from irtool.ir.dataclass import dataclass
from irtool.operators.layout import TensorLayout
from irtool.planning.propagation.choices import Choice, all_splits, plain_layout
from irtool.planning.propagation.network import Vertex
from irtool.planning.propagation.prices import Price, Prices, standard
from irtool.planning.propagation.unstable_sort import first_of_sorted

Pair = tuple[TensorLayout, TensorLayout]


@dataclass(frozen=True, slots=True)
class Reshape:
    """Layouts that one Reshape may come from and go to, in MindSpore's order.

    ``own``: every split of its operand, with a whole result; MindSpore lists these pairs first.
    """

    own: tuple[Pair, ...]
    sources: tuple[TensorLayout, ...]
    targets: tuple[TensorLayout, ...]
    element: int
    by_source: dict[object, TensorLayout]
    by_target: dict[object, TensorLayout]


@dataclass(slots=True)
class Reshapes:
    """All of a network, in order."""

    prices: Prices
    devices: int
    known: dict[Vertex, Reshape] = field(default_factory=dict[Vertex, Reshape])
    priced: dict[object, Price | None] = field(default_factory=dict[object, Price | None])

    def add(self, vertex: Vertex, offered: Callable[[Vertex], Sequence[Choice]]) -> None:
        """Learn of a Reshape; ``offered``: what its neighbours may be given."""
        sources = tuple(
            choice.outputs[edge.output]
            for edge in vertex.before[:1]
            if edge.source.op != "Reshape"
            for choice in offered(edge.source)
            if edge.output < len(choice.outputs)
        )
        targets = tuple(
            choice.inputs[edge.tensor]
            for edge in vertex.behind
            if edge.target.op != "Reshape"
            for choice in offered(edge.target)
            if edge.tensor < len(choice.inputs)
        )
        element = vertex.before[0].element if vertex.before else 4
        own = tuple(self._own(vertex))
        self.known[vertex] = Reshape(
            own,
            sources,
            targets,
            element,
            _by_standard([*(source for source, _ in own), *sources]),
            _by_standard([*(target for _, target in own), *targets]),
        )

    def _own(self, vertex: Vertex) -> Iterator[Pair]:
        if vertex.call is None or not vertex.call.call.tensors or not vertex.call.call.results:
            return
        before = vertex.call.call.tensors[0].shape or ()
        after = vertex.call.call.results[0].shape or ()
        unsplit = plain_layout(after, (1,) * len(after), self.devices)
        for splits in sorted(all_splits(before, self.devices)):
            yield plain_layout(before, splits, self.devices), unsplit

    def onward(self, vertex: Vertex, layout: TensorLayout) -> Pair | None:
        """The pair for a layout that the producer leaves."""
        return self._cheapest(pair for pair in self._pairs(vertex) if equal(pair[0], layout))

    def backward(self, vertex: Vertex, layout: TensorLayout) -> Pair | None:
        """The pair for a layout that a user takes."""
        return self._cheapest(pair for pair in self._pairs(vertex) if equal(pair[1], layout))

    def _pairs(self, vertex: Vertex) -> Iterator[Pair]:
        reshape = self.known[vertex]
        return chain(reshape.own, product(reshape.sources, reshape.targets))

    def _cheapest(self, pairs: Iterable[Pair]) -> Pair | None:
        """The least computation of those without communication, else the least communication."""
        priced = [(pair, price) for pair in pairs if (price := self._price(pair)) is not None]
        free = [candidate for candidate in priced if candidate[1].communication == 0]
        if free:
            return free[first_of_sorted([price.computation for _, price in free])][0]
        if not priced:
            return None
        return priced[first_of_sorted([price.communication for _, price in priced])][0]

    def _price(self, pair: Pair) -> Price | None:
        key = (standard(pair[0]), standard(pair[1]))
        if key not in self.priced:
            first = next(
                reshape
                for reshape in self.known.values()
                if key[0] in reshape.by_source and key[1] in reshape.by_target
            )
            source, target = first.by_source[key[0]], first.by_target[key[1]]
            self.priced[key] = self.prices.reshaped(
                source, target, first.element, source.splits[:1] == (self.devices,)
            )
        return self.priced[key]


def equal(one: TensorLayout, other: TensorLayout) -> bool:
    """Whether MindSpore takes two layouts for the same: device matrices count, but for ones.

    Args:
        one: a layout.
        other: one that may be of another tensor; then they are not equal.
    """
    return one.tensor_shape == other.tensor_shape and standard(one) == standard(other)


def _by_standard(layouts: Sequence[TensorLayout]) -> dict[object, TensorLayout]:
    """The first layout of each device matrix and tensor map."""
    return {standard(layout): layout for layout in reversed(layouts)}
