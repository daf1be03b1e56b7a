"""A predicted step as a timeline: what each device computes and communicates, and when.

Operators of the forward pass follow each other, those of the backward pass in the opposite order,
then the optimizer.  What an operator or an edge communicates is waited for; sums of gradients and
gathers of weights run on a stream of their own, one after the other, as soon as the backward pass
comes to their operator, and the optimizer waits for the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from irtool.ir.dataclass import dataclass
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import StepCost

Stream = Literal["compute", "communication"]


@dataclass(frozen=True, slots=True)
class Span:
    """Something that takes time: seconds from the beginning of the step."""

    name: str
    stream: Stream
    phase: str
    start: float
    seconds: float
    item: CostItem


def timeline(cost: StepCost) -> tuple[Span, ...]:
    """The predicted step of one device.

    Args:
        cost: of the step.

    Returns:
        spans of computing and of communication, in seconds from the beginning of the step.
    """
    return tuple(_Clock(cost).spans())


class _Clock:
    def __init__(self, cost: StepCost) -> None:
        self._operators = [item for item in cost.items if item.kind == "operator"]
        self._edges = [item for item in cost.items if item.kind == "edge"]
        self._weights = [item for item in cost.items if item.kind == "weight"]
        self._now = 0.0
        self._free = 0.0

    def spans(self) -> Iterator[Span]:
        """All spans: forward, backward, optimizer."""
        edges: dict[object, list[CostItem]] = {}
        for edge in self._edges:
            edges.setdefault(edge.node, []).append(edge)
        weights: dict[object, list[CostItem]] = {}
        for weight in self._weights:
            weights.setdefault(weight.node, []).append(weight)
        for item in self._operators:
            for edge in edges.get(item.node, ()):
                yield from self._waited(edge, "forward")
                yield from self._rearranged(edge)
            yield from self._computed(item, "forward")
            yield from self._waited(item, "forward")
        known = {item.node for item in self._operators}
        loose = [edge for edge in self._edges if edge.node not in known]
        for phase in ("forward", "backward"):  # into what is no operator: a result, a call
            for edge in loose:
                yield from self._waited(edge, phase)
        for edge in loose:
            yield from self._rearranged(edge)
        for item in reversed(self._operators):
            yield from self._computed(item, "backward")
            yield from self._waited(item, "backward")
            for edge in edges.get(item.node, ()):
                yield from self._waited(edge, "backward")
            for weight in weights.pop(item.node, ()):
                yield from self._behind(weight)
        for rest in weights.values():
            for weight in rest:
                yield from self._behind(weight)
        self._now = max(self._now, self._free)
        for weight in self._weights:
            seconds = weight.seconds.get("optimizer", 0.0)
            if seconds:
                yield self._step(f"update {weight.name}", "compute", "optimizer", seconds, weight)

    def _computed(self, item: CostItem, phase: str) -> Iterator[Span]:
        seconds = item.seconds.get("compute", 0.0)
        seconds = item.backward if phase == "backward" else seconds - item.backward
        if seconds > 0:
            yield self._step(item.name, "compute", phase, seconds, item)

    def _waited(self, item: CostItem, phase: str) -> Iterator[Span]:
        for communication in item.communications:
            if (communication.phase == "backward") == (
                phase == "backward"
            ) and communication.seconds:
                name = f"{communication.op} of {item.name}"
                yield self._step(name, "communication", phase, communication.seconds, item)

    def _rearranged(self, edge: CostItem) -> Iterator[Span]:
        """What a redistribution does beside communicating: slices and joins, of both directions."""
        communicated = sum(communication.seconds for communication in edge.communications)
        seconds = edge.seconds.get("redistribution", 0.0) - communicated
        if seconds > 1e-12:
            yield self._step(f"rearrange for {edge.name}", "compute", "forward", seconds, edge)

    def _behind(self, item: CostItem) -> Iterator[Span]:
        for communication in item.communications:
            if communication.seconds:
                start = max(self._now, self._free)
                self._free = start + communication.seconds
                name = f"{communication.op} of {item.name}"
                yield Span(
                    name, "communication", communication.phase, start, communication.seconds, item
                )

    def _step(self, name: str, stream: Stream, phase: str, seconds: float, item: CostItem) -> Span:
        start = max(self._now, self._free) if stream == "communication" else self._now
        self._now = start + seconds
        if stream == "communication":
            self._free = self._now
        return Span(name, stream, phase, start, seconds, item)
