"""Which layouts a Reshape in the propagation turns into which.

Before the propagation begins, MindSpore prices every pair of a layout that the producer of a
Reshape may leave and one that a user may take. Like other prices they are remembered by device
matrices and tensor maps alone, so that the first Reshape with a pair decides for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from irtool.planning.propagation.choices import Choice
from irtool.planning.propagation.network import Vertex
from irtool.planning.propagation.prices import Price, Prices, standard
from irtool.sharding.layout import TensorLayout

Pair = tuple[TensorLayout, TensorLayout]


@dataclass(frozen=True, slots=True)
class Reshape:
    """Layouts that one Reshape may come from and go to, in MindSpore's order."""

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
        self.known[vertex] = Reshape(
            sources, targets, element, _by_standard(sources), _by_standard(targets)
        )

    def onward(self, vertex: Vertex, layout: TensorLayout) -> Pair | None:
        """The pair for a layout that the producer leaves."""
        reshape = self.known[vertex]
        return self._cheapest(
            (source, target)
            for source in reshape.sources
            if equal(source, layout)
            for target in reshape.targets
        )

    def backward(self, vertex: Vertex, layout: TensorLayout) -> Pair | None:
        """The pair for a layout that a user takes."""
        reshape = self.known[vertex]
        return self._cheapest(
            (source, target)
            for source in reshape.sources
            for target in reshape.targets
            if equal(target, layout)
        )

    def _cheapest(self, pairs: Iterable[Pair]) -> Pair | None:
        """The least computation of those without communication, else the least communication."""
        priced = [(pair, price) for pair in pairs if (price := self._price(pair)) is not None]
        free = [each for each in priced if each[1].communication == 0]
        if free:
            return min(free, key=lambda each: each[1].computation)[0]
        return min(priced, key=lambda each: each[1].communication)[0] if priced else None

    def _price(self, pair: Pair) -> Price | None:
        key = (standard(pair[0]), standard(pair[1]))
        if key not in self.priced:
            first = next(
                each
                for each in self.known.values()
                if key[0] in each.by_source and key[1] in each.by_target
            )
            source, target = first.by_source[key[0]], first.by_target[key[1]]
            self.priced[key] = self.prices.reshaped(
                source, target, first.element, source.splits[:1] == (self.devices,)
            )
        return self.priced[key]


def equal(one: TensorLayout, other: TensorLayout) -> bool:
    """Whether MindSpore takes two layouts for the same: device matrices count, but for ones."""
    return one.tensor_shape == other.tensor_shape and standard(one) == standard(other)


def _by_standard(layouts: Sequence[TensorLayout]) -> dict[object, TensorLayout]:
    """The first layout of each device matrix and tensor map."""
    return {standard(layout): layout for layout in reversed(layouts)}
