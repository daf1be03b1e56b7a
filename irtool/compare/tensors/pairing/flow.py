"""What flows through the calls of one run: values, who makes them, who reads them.

A dump names calls, not tensors.  Tensors that have the same extremes and the same norm are one
value, so views, transposes and other layouts of a tensor are the same value as the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.measuring.measure import complete
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.ir.dataclass import dataclass

_SAME_NORM = 1e-5
"""Relative difference of norms that adding up in another order makes."""
_NO_VALUE = (0.0, 1.0, -1.0)
"""Numbers that are everywhere."""
_REPEATS = frozenset(("broadcastto", "broadcast_to", "expand", "tile", "repeat", "expand_as"))
"""Operators that hand on what they read, several times over."""
_Key: TypeAlias = tuple[bool, int, float, float]
"""Whether it is a gradient, elements, largest, smallest: what is the same in any order."""


@dataclass(slots=True)
class Value:
    """One value of a run.

    Attributes:
        number: its place among the values of the run.
        size: elements.
        figures: norm, largest, smallest element.
        unit: unit roundoff of its type.
        is_gradient: it is the gradient of a call; of graphs nobody says, so it is not set there.
        places: its tensors in the columns of the run, in the order of calls.
        maker: the call that puts it out and does not read it; None for what comes from outside.
        made: which of that call's tensors it is, -1 without a maker.
        readers: calls that read it and make something else of it.
    """

    number: int
    size: int
    figures: tuple[float, float, float]
    unit: float
    is_gradient: bool
    places: list[int] = field(default_factory=list[int])
    maker: Op | None = None
    made: int = -1
    readers: list[Op] = field(default_factory=list[Op])


class Flow:
    """The values of one run.

    Attributes:
        columns: of the run.
        values: in the order in which they first appear.
        calls: calls that compute something, in order: no modules, no optimizer, no views.
        gradient_calls: gradients by the name of their forward call.
        forward: places in the order of execution of those calls that the forward pass makes.
    """

    def __init__(self, run: TensorRun) -> None:
        self.columns: Columns = run.columns
        self.values: list[Value] = []
        self.calls: list[Op] = []
        self.gradient_calls: dict[str, Op] = {}
        self._number: dict[int, Value] = {}
        self._known: dict[_Key, list[tuple[float, Value]]] = {}
        self.is_graph = not any(op.call for op in run.ops)
        for op in run.ops:
            if op.type != "Parameter" and op.phase != "optimizer" and not op.is_module:
                self._add(op)
        self.forward = frozenset(self._forward())

    def inputs(self, op: Op) -> Iterator[Value]:
        """Values that a call reads, each once."""
        yield from self._distinct(op.inputs)
        yield from self.scalars(op)

    def scalars(self, op: Op) -> Iterator[Value]:
        """Numbers among what a graph's operator reads, where another one has made them."""
        if not self.is_graph:
            return
        for number in op.attributes.values():
            if isinstance(number, float) and number not in _NO_VALUE:
                for _, value in self._known.get((False, 1, number, number), ()):
                    if value.maker is not None and value.maker.index < op.index:
                        yield value

    def outputs(self, op: Op) -> Iterator[Value]:
        """Values that a call makes, each once."""
        for value in self._distinct(op.outputs):
            if value.maker is op:
                yield value

    def value(self, place: int) -> Value | None:
        """The value of a tensor, if it can be told from others."""
        return self._number.get(place)

    def at(self, place: int, is_gradient: bool = False) -> Value | None:
        """The value of a tensor of any call, module or optimizer."""
        return self.value(place) or self.find(place, is_gradient)

    def forward_readers(self, value: Value) -> list[Op]:
        """Calls of the forward pass that read a value."""
        return [op for op in value.readers if op.index in self.forward]

    def _distinct(self, places: Iterable[int]) -> Iterator[Value]:
        seen: set[int] = set()
        for place in places:
            value = self.value(place)
            if value is not None and value.number not in seen:
                seen.add(value.number)
                yield value

    def _add(self, op: Op) -> None:
        is_gradient = op.phase == "backward" and not self.is_graph
        if is_gradient and op.call:
            self.gradient_calls.setdefault(op.call, op)
        read = [self._find(place, is_gradient) for place in op.inputs]
        numbers = {value.number for value in read if value is not None}
        if len(numbers) == 1 and op.type.lower() in _REPEATS:
            self._repeat(next(value for value in read if value is not None), op, is_gradient)
            return
        made = [self._find(place, is_gradient) for place in op.outputs]
        if made and all(value is not None and value.number in numbers for value in made):
            return  # a view hands on what it reads
        self.calls.append(op)
        for place, value in zip(op.outputs, made, strict=True):
            if value is not None and value.places[0] == place:
                value.maker, value.made = op, place
        for value in read:
            if value is not None and op not in value.readers[-1:]:
                value.readers.append(op)

    def _repeat(self, value: Value, op: Op, is_gradient: bool) -> None:
        """What is only the same numbers several times over is the same value."""
        for place in op.outputs:
            figures = self._figures(place)
            if figures is not None:
                size, norm, most, least = figures
                key = is_gradient, size, most, least
                self._known.setdefault(key, []).append((norm, value))
                self._number[place] = value

    def find(self, place: int, is_gradient: bool = False) -> Value | None:
        """The value that a tensor has, which need not be one of a call."""
        figures = self._figures(place)
        if figures is None:
            return None
        size, norm, most, least = figures
        alike = self._known.get((is_gradient and not self.is_graph, size, most, least), ())
        return next((v for n, v in alike if math.isclose(n, norm, rel_tol=_SAME_NORM)), None)

    def _figures(self, place: int) -> tuple[int, float, float, float] | None:
        """Size, norm and extremes of a tensor; None where they do not tell it from others."""
        columns = self.columns
        if not is_float(columns.dtypes[place]):
            return None
        if math.isnan(columns.norm[place]) or math.isnan(columns.most[place]):
            complete(columns, place, False)
        norm, most, least = columns.norm[place], columns.most[place], columns.least[place]
        size = math.prod(columns.shapes[place])
        if math.isnan(norm) or math.isnan(most) or math.isinf(norm):
            return None
        if most == least and (size > 1 or most in _NO_VALUE):
            return None
        return size, norm, most, least

    def _find(self, place: int, is_gradient: bool) -> Value | None:
        """The value of a tensor of a call, a new one where nobody has had it yet."""
        value = self.find(place, is_gradient)
        if value is None:
            figures = self._figures(place)
            if figures is None:
                return None
            size, norm, most, least = figures
            unit = roundoff(self.columns.dtypes[place])
            value = Value(len(self.values), size, (norm, most, least), unit, is_gradient)
            self.values.append(value)
            self._known.setdefault((is_gradient, size, most, least), []).append((norm, value))
        value.places.append(place)
        self._number[place] = value
        return value

    def _forward(self) -> Iterator[int]:
        """Calls of the forward pass; of a graph what the loss is made of, whatever it is called."""
        loss = self.loss if self.is_graph else None
        if loss is None or loss.maker is None:
            yield from (op.index for op in self.calls if op.phase == "forward")
            return
        seen: set[int] = set()
        pending = [loss.maker]
        while pending:
            op = pending.pop()
            if op.index in seen:
                continue
            seen.add(op.index)
            yield op.index
            pending += [value.maker for value in self.inputs(op) if value.maker is not None]
        if 2 * len(seen) < sum(op.phase == "forward" for op in self.calls):  # no loss, it seems
            yield from (op.index for op in self.calls if op.phase == "forward")

    @property
    def loss(self) -> Value | None:
        """The last number that the forward pass makes."""
        for value in reversed(self.values):
            if value.size == 1 and value.maker is not None and value.maker.phase == "forward":
                return value
        return None
