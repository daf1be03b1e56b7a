"""Strategies for the operators that were not cut: taken over from neighbours, pass by pass.

A pass goes once through all operators that have no strategy yet, from the other end each time. The
first passes take over only what uses all devices, later ones what uses half of them, and so on.

Source: the order of "assigned strategies" in MindSpore's log, and strategies in dumps after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.operators.call import Strategy
from irtool.operators.guard import asking
from irtool.operators.layout import Shape
from irtool.planning.recursive.elimination import Vertex
from irtool.planning.recursive.fitting import Devices, fitted
from irtool.planning.recursive.inserted import DATASET
from irtool.planning.recursive.kinds import NotSearchable
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.sources import row_from_producer, row_from_user
from irtool.planning.recursive.tensors import pieces

STOPS = frozenset({"Gather", "Assign", "ExpandDims"})
"""Operators that nothing is taken over from."""


@dataclass(slots=True)
class Spread:
    """The state: strategies so far, and the operators still without, in the order of the pass.

    ``users``: by place of a producer, every use of its result as (user, operand).
    """

    operators: Sequence[Operator]
    vertices: Mapping[int, Vertex]
    devices: Devices
    strategies: dict[int, Strategy]
    open: list[int]
    users: dict[int, list[tuple[int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.users = {}
        for operator in self.operators:
            for operand, producer in enumerate(operator.producers):
                if producer is not None:
                    self.users.setdefault(producer, []).append((operator.index, operand))

    def forward(self, least: int = 1) -> int:
        """One pass from producers to users; returns how many operators got a strategy."""
        return self._pass(least, self._from_producer)

    def backward(self, least: int = 1) -> int:
        """One pass from users to producers."""
        return self._pass(least, self._from_user)

    def to_the_end(self) -> None:
        """Take over whatever there is; what is still open then stays whole, as far as it can."""
        before = -1
        while before != len(self.open):
            before = len(self.open)
            self.forward()
            self.backward()
        for index in self.open:
            rank = max((len(shape) for shape in self.operators[index].inputs), default=0)
            self.give(index, (1,) * rank)

    def give(self, index: int, row: Shape) -> None:
        """Set the strategy that follows from a row."""
        self.strategies[index] = fitted(self.operators[index], row, self.devices)

    def _pass(self, least: int, source: Callable[[int], Shape]) -> int:
        left: list[int] = []
        for index in reversed(self.open):
            with asking(self.operators[index].op, NotSearchable):
                row = source(index)
                if row and pieces(row) >= least:
                    self.give(index, row)
                else:
                    left.append(index)
        changed = len(self.open) - len(left)
        self.open = left
        return changed

    def _from_producer(self, index: int) -> Shape:
        """Of the first producer that is split at all, else of the last one there is."""
        chosen: int | None = None
        for producer in self.operators[index].producers:
            if producer is not None:
                chosen = producer
            if chosen is not None and _is_split(self.strategies.get(chosen, ())):
                break
        if chosen is None or self.operators[chosen].op in (DATASET, *STOPS):
            return ()
        return row_from_producer(
            self.operators, self.vertices, self.strategies, index, chosen, self.devices.stage
        )

    def _from_user(self, index: int) -> Shape:
        """Of the first user in the list that has a strategy."""
        for user, operand in self.users.get(index, ()):
            if not self.strategies.get(user):
                continue
            if self.operators[user].op in STOPS:
                return ()
            tensors = len(self.operators[user].inputs)
            return row_from_user(
                self.operators, self.strategies, index, user, min(operand, tensors - 1),
                self.devices.stage,
            )  # fmt: skip
        return ()


def _is_split(strategy: Strategy) -> bool:
    return any(split != 1 for row in strategy for split in row)
