"""A predicted step as Chrome trace events, which Perfetto and MindStudio Insight open.

Format: "Trace Event Format" of the Chromium project; times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from irtool.planning.plans.cost_report import StepCost
from irtool.planning.plans.timeline import Span, timeline
from irtool.report.places import place_text

STREAMS = {"compute": 1, "communication": 2}
"""Lanes of a stage, by what runs on them."""


def trace_pieces(stages: Sequence[tuple[int, StepCost]]) -> Iterator[str]:
    """The trace as text: a process a stage, with a lane for each stream.

    Args:
        stages: number and cost of each stage.
    """
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    first = True
    for stage, cost in stages:
        for event in _events(stage, cost):
            yield ("" if first else ",\n") + json.dumps(event)
            first = False
    yield "\n]}\n"


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
    node = span.item.node
    return {
        "ph": "X",
        "name": span.name,
        "cat": span.phase,
        "pid": stage,
        "tid": STREAMS[span.stream],
        "ts": span.start * 1e6,
        "dur": span.seconds * 1e6,
        "args": {
            "node": None if node is None else node.id,
            "scope": None if node is None else node.scope,
            "source": place_text(node),
            "phase": span.phase,
        },
    }
