"""A predicted step as Chrome trace events, which Perfetto and MindStudio Insight open.

Format: "Trace Event Format" of the Chromium project; times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from irtool.cluster.measured import MeasuredStep
from irtool.cluster.modelled import ModelledStep
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.plans.step.report import StepCost
from irtool.planning.plans.timeline import Span, timeline
from irtool.report.measured_pictures import predicted_by_kernels
from irtool.report.places import place_text

STREAMS = {"compute": 1, "communication": 2}
"""Lanes of a stage, by what runs on them."""


def trace_pieces(stages: Sequence[tuple[int, StepCost]]) -> Iterator[str]:
    """The trace as text: a process a stage, with a lane for each stream.

    Args:
        stages: number and cost of each stage.
    """
    yield from _pieces(event for stage, cost in stages for event in _events(stage, cost))


def kernel_trace_pieces(modelled: ModelledStep, step: MeasuredStep | None) -> Iterator[str]:
    """The predicted step of a run on one device: its kernels one after the other.

    Args:
        modelled: what each takes.
        step: what was measured, where it was: then they follow each other as they really ran.
    """
    yield from _pieces(_kernel_events(modelled, step))


def _pieces(events: Iterable[dict[str, object]]) -> Iterator[str]:
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    first = True
    for event in events:
        yield ("" if first else ",\n") + json.dumps(event)
        first = False
    yield "\n]}\n"


def _kernel_events(
    modelled: ModelledStep, step: MeasuredStep | None
) -> Iterator[dict[str, object]]:
    yield _named("process_name", 0, 0, f"one device, predicted for {modelled.machine.name}")
    yield _named("thread_name", 0, STREAMS["compute"], "compute")
    for run in predicted_by_kernels(modelled, step):
        place = Place(0, STREAMS["compute"], run.start, run.seconds)
        yield _complete(run.name, run.series, place, run.node)


def _events(stage: int, cost: StepCost) -> Iterator[dict[str, object]]:
    name = f"stage {stage}, predicted for {cost.machine.name}"
    yield _named("process_name", stage, 0, name)
    for stream, lane in STREAMS.items():
        yield _named("thread_name", stage, lane, stream)
    for span in timeline(cost):
        yield _event(stage, span)


def _named(kind: str, stage: int, lane: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": stage, "tid": lane, "args": {"name": name}}


def _event(stage: int, span: Span) -> dict[str, object]:
    place = Place(stage, STREAMS[span.stream], span.start, span.seconds)
    return _complete(span.name, span.phase, place, span.item.node)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands: stage, lane, and seconds from the beginning of the step."""

    stage: int
    lane: int
    start: float
    seconds: float


def _complete(name: str, phase: str, place: Place, node: Node | None) -> dict[str, object]:
    return {
        "ph": "X",
        "name": name,
        "cat": phase,
        "pid": place.stage,
        "tid": place.lane,
        "ts": place.start * 1e6,
        "dur": place.seconds * 1e6,
        "args": {
            "node": None if node is None else node.id,
            "scope": None if node is None else node.scope,
            "source": place_text(node),
            "phase": phase,
        },
    }
