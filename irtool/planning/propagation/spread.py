"""The propagation itself: breadth first from each configured operator, never taken back.

Source: the order of "Set strategy" in MindSpore's log of the propagation, and strategies in dumps
after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.layout import TensorLayout
from irtool.planning.propagation.choices import Choice, Choices, holds
from irtool.planning.propagation.network import Edge, Vertex
from irtool.planning.propagation.prices import Price, Prices
from irtool.planning.propagation.reshapes import Reshapes, equal

DATASET = "_VirtualDataset"
ENDS = frozenset({"_VirtualOutput", "Concat"})
"""Behind a Reshape these are not given anything."""


@dataclass(slots=True)
class Spread:
    """The state of a propagation.

    Attributes:
        configured: what is given, by vertex; ``outs``: their ``out_strategy``.
        alone: operators that neither give nor take (stand-alone, nested operands).
        options: what each vertex may still be given.
        chosen: what it was given; ``reshaped``: layouts before and behind each Reshape.
        visited: vertices that were reached.
        met: of operators with several operands, edges from those that were reached.
        waiting: such operators, of which some operand was not reached yet.
    """

    vertices: Sequence[Vertex]
    choices: Choices
    prices: Prices
    configured: dict[Vertex, Choice]
    outs: Mapping[Vertex, Strategy]
    alone: frozenset[Vertex]
    reshapes: Reshapes
    options: dict[Vertex, list[Choice]] = field(default_factory=dict[Vertex, list[Choice]])
    chosen: dict[Vertex, Choice] = field(default_factory=dict[Vertex, Choice])
    reshaped: dict[Vertex, tuple[TensorLayout, TensorLayout]] = field(
        default_factory=dict[Vertex, tuple[TensorLayout, TensorLayout]]
    )
    visited: set[Vertex] = field(default_factory=set[Vertex])
    met: dict[Vertex, list[Edge]] = field(default_factory=dict[Vertex, list[Edge]])
    waiting: set[Vertex] = field(default_factory=set[Vertex])

    def run(self) -> None:
        """Propagate, then give the rest what splits nothing."""
        for vertex in self.vertices:
            given = self.configured.get(vertex)
            if vertex.op != "Reshape":
                self.options[vertex] = [given] if given else list(self.choices.of(vertex))
        self._configure_casts()
        for vertex in sorted(self.vertices, key=lambda vertex: vertex.place):
            if vertex.op == "Reshape":
                self.reshapes.add(vertex, self._first)
        order = sorted(self.configured, key=lambda vertex: vertex.place)
        for index, vertex in enumerate(order):
            following = order[index + 1].place if index + 1 < len(order) else None
            self._from(vertex, following)
        _agree_on_weights(self)
        for vertex in self.vertices:
            if vertex not in self.chosen and self.options.get(vertex):
                self.chosen[vertex] = self.options[vertex][0]

    def _configure_casts(self) -> None:
        """A Cast before a configured operator counts as configured itself."""
        for vertex in self.vertices:
            for edge in vertex.before:
                source = edge.source
                if source.op != "Cast" or source in self.configured:
                    continue
                given = self.configured.get(vertex)
                if given is None or edge.tensor >= len(given.inputs):
                    continue
                choice = self.best_before(edge, given.inputs[edge.tensor])
                if choice is not None:
                    self.configured[source] = choice
                    self.options[source] = [choice]

    def _from(self, start: Vertex, following: int | None) -> None:
        """Breadth first from a configured vertex; ``following``: the place of the next one."""
        self.chosen[start] = self.configured[start]
        queue: deque[Vertex] = deque([start])
        while queue:
            current = queue.popleft()
            self.visited.add(current)
            for edge in current.behind:
                if self._forward(edge):
                    queue.append(edge.target)
            for edge in current.before:
                if self._backward(edge):
                    queue.append(edge.source)
            if not queue and self.waiting:
                first = min(self.waiting, key=lambda vertex: vertex.place)
                if first in self.visited or (following is not None and first.place > following):
                    continue
                choice = self._best_of_met(first)
                self.waiting.discard(first)
                if choice is not None:
                    self.give(first, choice)
                    queue.append(first)

    def give(self, vertex: Vertex, choice: Choice) -> None:
        """Settle what a vertex is given."""
        self.chosen[vertex] = choice
        self.options[vertex] = [choice]
        self.visited.add(vertex)

    # -- one edge ------------------------------------------------------------------------------

    def _forward(self, edge: Edge) -> bool:
        """Reach the user of a result; whether it was given something."""
        current, other = edge.source, edge.target
        if current in self.alone or other in self.alone:
            return False
        if other in self.visited or other in self.configured:
            self._ask(edge)
            return False
        if "Reshape" not in (current.op, other.op):
            self._adopt_forward(edge)
        if _operands(other) == 1:
            self._ask(edge)
        if other.op == "Reshape":
            return self._into_reshape(edge)
        if current.op == "Reshape":
            return self._out_of_reshape(edge)
        if current in self.outs:
            return self._after_scattered(edge)
        if _operands(other) > 1:
            if len(self.met.get(other, ())) < _operands(other):
                self.waiting.add(other)
                return False
            self.waiting.discard(other)
            choice = self._best_of_met(other)
            self.met.pop(other, None)
        else:
            choice = self.best_behind(edge, self.chosen[current].outputs[edge.output])
        if choice is None:
            return False
        self.give(other, choice)
        return True

    def _backward(self, edge: Edge) -> bool:
        """Reach the producer of an operand; whether it was given something."""
        current, other = edge.target, edge.source
        if current in self.alone or other in self.alone:
            return False
        if other in self.visited or other in self.configured:
            self._ask(edge)
            return False
        if other.op == "Reshape":
            return self._back_into_reshape(edge)
        if current.op == "Reshape":
            if current not in self.reshaped:
                return False
            wanted = self.reshaped[current][0]
            choice = next(
                (
                    option
                    for option in self.options[other]
                    if equal(option.outputs[edge.output], wanted)
                ),
                None,
            )
        else:
            wanted = self.chosen[current].inputs[edge.tensor]
            if _operands(other) == 1:
                self._adopt(other, 0, wanted)
            self._ask(edge)
            choice = self.best_before(edge, wanted)
        if choice is None:
            return False
        self.give(other, choice)
        return True

    def _after_scattered(self, edge: Edge) -> bool:
        """Behind an ``out_strategy`` the user takes its very numbers, if it may."""
        wanted = self.outs[edge.source][0]
        options = self.options[edge.target]
        matching = (option for option in options if option.strategy[edge.tensor] == wanted)
        choice = next(matching, options[0] if options else None)
        if choice is None:
            return False
        self.give(edge.target, choice)
        return True

    # -- Reshape -------------------------------------------------------------------------------

    def _into_reshape(self, edge: Edge) -> bool:
        """A Reshape behind a result: to a layout that its users may take, without moving data."""
        layout = self.chosen[edge.source].outputs[edge.output]
        return self._reshape(edge.target, self.reshapes.onward(edge.target, layout))

    def _back_into_reshape(self, edge: Edge) -> bool:
        """A Reshape before an operand: from a layout that its producer may leave."""
        if edge.target.op in ENDS or edge.target.op == "Reshape":
            if edge.target.op in ENDS:
                self.visited.add(edge.source)
            return False
        layout = self.chosen[edge.target].inputs[edge.tensor]
        return self._reshape(edge.source, self.reshapes.backward(edge.source, layout))

    def _out_of_reshape(self, edge: Edge) -> bool:
        if edge.target.op in ENDS:
            self.visited.add(edge.target)
            return False
        if edge.source not in self.reshaped:
            return False
        layout = self.reshaped[edge.source][1]
        options = self.options[edge.target]
        choice = next(
            (option for option in options if equal(option.inputs[edge.tensor], layout)), None
        )
        if choice is None:
            return False
        self.give(edge.target, choice)
        return True

    def _reshape(self, vertex: Vertex, pair: tuple[TensorLayout, TensorLayout] | None) -> bool:
        if pair is None:
            return False
        self.reshaped[vertex] = pair
        self.visited.add(vertex)
        return True

    def _first(self, vertex: Vertex) -> Sequence[Choice]:
        """What a vertex could be given before the propagation began."""
        given = self.configured.get(vertex)
        if given is not None:
            return (given,)
        return () if vertex.op == "Reshape" else self.choices.of(vertex)

    # -- choosing ------------------------------------------------------------------------------

    def _price(self, edge: Edge, source: TensorLayout, target: TensorLayout) -> Price | None:
        if edge.is_weight:
            return Price() if source.same_as(target) else None
        return self.prices.of(source, target, edge.element)

    def _ask(self, edge: Edge) -> None:
        """Ask for all prices of an edge: later ones may be answered with what is found now."""
        if edge.is_weight or "Reshape" in (edge.source.op, edge.target.op):
            return
        for choice in self.options[edge.source]:
            for user in self.options[edge.target]:
                if edge.output < len(choice.outputs) and edge.tensor < len(user.inputs):
                    source, target = choice.outputs[edge.output], user.inputs[edge.tensor]
                    self.prices.of(source, target, edge.element)

    def best_behind(self, edge: Edge, layout: TensorLayout) -> Choice | None:
        """What the user of a layout takes with the least cost on the edge."""
        priced = [
            (price, choice)
            for choice in self.options[edge.target]
            if edge.tensor < len(choice.inputs)
            and (price := self._price(edge, layout, choice.inputs[edge.tensor])) is not None
        ]
        return _least(priced)

    def best_before(self, edge: Edge, layout: TensorLayout) -> Choice | None:
        """What the producer of an operand leaves with the least cost on the edge."""
        priced = [
            (price, choice)
            for choice in self.options.get(edge.source, ())
            if edge.output < len(choice.outputs)
            and (price := self._price(edge, choice.outputs[edge.output], layout)) is not None
        ]
        return _least(priced)

    def _best_of_met(self, vertex: Vertex) -> Choice | None:
        """What an operator takes with the least cost over the operands that were reached."""
        best: Choice | None = None
        least: tuple[float, ...] | None = None
        for choice in self.options[vertex]:
            total = self._over_met(vertex, choice)
            if total is None:
                continue
            key = (*total, choice.computation, choice.forward)
            if least is None or key < least:
                best, least = choice, key
        return best

    def _over_met(self, vertex: Vertex, choice: Choice) -> tuple[float, float] | None:
        communication = computation = 0.0
        for edge in self.met.get(vertex, ()):
            if edge.tensor >= len(choice.inputs):
                return None
            source = self.chosen[edge.source].outputs[edge.output]
            price = self._price(edge, source, choice.inputs[edge.tensor])
            if price is None:
                return None
            communication += price.communication
            computation += price.computation
        return communication, computation

    # -- layouts that are taken over -----------------------------------------------------------

    def _adopt_forward(self, edge: Edge) -> None:
        """Add choices that lie on the device matrix of what was reached."""
        other = edge.target
        if _operands(other) == 1:
            self._adopt(other, edge.tensor, self.chosen[edge.source].outputs[edge.output])
            return
        met = self.met.setdefault(other, [])
        if not any(earlier is edge for earlier in met):
            met.append(edge)
        if len(met) < _operands(other) or other.call is None:
            return
        layouts: dict[int, TensorLayout] = {
            earlier.tensor: self.chosen[earlier.source].outputs[earlier.output] for earlier in met
        }
        if len({layout.device_matrix for layout in layouts.values()}) > 1:
            return
        given = [layouts.get(position) for position in range(_operands(other))]
        self._add(other, [layout for layout in given if layout is not None])

    def _adopt(self, vertex: Vertex, tensor: int, layout: TensorLayout) -> None:
        if tensor == 0:
            self._add(vertex, [layout])

    def _add(self, vertex: Vertex, layouts: Sequence[TensorLayout]) -> None:
        if vertex.call is not None and len(layouts) == _operands(vertex):
            options = self.options[vertex]
            options += self.choices.lying_as(vertex.call.call, options, layouts)


def _operands(vertex: Vertex) -> int:
    """How many tensors an operator takes."""
    return len(vertex.call.call.tensors) if vertex.call is not None else 1


def _least(priced: Sequence[tuple[Price, Choice]]) -> Choice | None:
    if not priced:
        return None
    return min(priced, key=lambda pair: (pair[0], pair[1].forward, pair[1].rank))[1]


def _agree_on_weights(spread: Spread) -> None:
    """Users of a weight that take it otherwise than the first one are given something else."""
    for vertex in spread.vertices:
        if vertex.weight is None or vertex not in spread.chosen or _agrees(spread, vertex):
            continue
        given = next((edge for edge in vertex.behind if edge.target in spread.configured), None)
        if given is not None:
            spread.options[vertex] = list(spread.choices.of(vertex))
            wanted = spread.configured[given.target].inputs[given.tensor]
            choice = spread.best_before(given, wanted)
            if choice is not None:
                spread.chosen[vertex] = choice
        for edge in vertex.behind:
            _follow(spread, vertex, edge)


def _agrees(spread: Spread, vertex: Vertex) -> bool:
    layout = spread.chosen[vertex].outputs[0]
    return all(
        edge.target not in spread.chosen
        or holds(spread.chosen[edge.target].inputs, edge.tensor, layout)
        for edge in vertex.behind
    )


def _follow(spread: Spread, vertex: Vertex, edge: Edge) -> None:
    user = edge.target
    layout = spread.chosen[vertex].outputs[0]
    if user in spread.configured or user not in spread.chosen:
        return
    if holds(spread.chosen[user].inputs, edge.tensor, layout):
        return
    spread.options[user] = list(spread.choices.of(user))
    choice = spread.best_behind(edge, layout)
    if choice is not None:
        spread.give(user, choice)
