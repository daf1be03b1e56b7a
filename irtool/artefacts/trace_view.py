"""``trace_view.json``: a profile as Chrome events, read event by event in bounded memory.

A bare JSON array, or an object with ``traceEvents``; a run that was interrupted leaves it without
its end.  Seen: what MindSpore 2.7.0 wrote on a CPU.  Lanes there: 2 ``CPU OP``, 3 ``Scope Layer``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.kernels import nanoseconds
from irtool.artefacts.tables import text_lines
from irtool.ir.dataclass import dataclass

_CHUNK = 1 << 20
_LONGEST_EVENT = 1 << 24
"""Characters of the longest event."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """A complete event (``ph`` X): ``start`` in ns since 1970, ``duration`` in µs."""

    name: str
    lane: str
    start: int
    duration: float


def trace_events(path: str, damage: Damage) -> Iterator[TraceEvent]:
    """The complete events, in the file's order; ``lane`` is the name of their process.

    Names of processes stand in events of their own, which come first in files seen; where one
    comes later, the lane is the process's number.

    Args:
        path: the file.
        damage: collects the events without times, which are left out.

    Raises:
        ArtefactError: it can't be opened, or is no list of events.
    """
    lanes: dict[object, str] = {}
    for event in _objects(path, damage):
        kind = event.get("ph")
        if kind == "M" and event.get("name") == "process_name":
            arguments = event.get("args")
            if isinstance(arguments, dict):
                lanes[event.get("pid")] = str(cast("dict[str, Any]", arguments).get("name", ""))
        elif kind == "X":
            start, duration = nanoseconds(str(event.get("ts"))), _microseconds(event.get("dur"))
            if start is None or duration is None:
                damage.add(1, f"an event without times: {str(event.get('name'))[:80]}")
                continue
            lane = lanes.get(event.get("pid"), str(event.get("pid", "")))
            yield TraceEvent(str(event.get("name", "")), lane, start, duration)


def _microseconds(value: object) -> float | None:
    try:
        return float(cast("Any", value))
    except (TypeError, ValueError):
        return None


def _objects(path: str, damage: Damage) -> Iterator[dict[str, Any]]:
    """The objects of a list, one after the other, whether or not the list ends."""
    decode = json.JSONDecoder().raw_decode
    with text_lines(path) as stream:
        text, place = stream.read(_CHUNK), 0
        place = _start(text, path)
        line = text.count("\n", 0, place) + 1
        while True:
            while place < len(text) and text[place] in ", \t\r\n":
                line += text[place] == "\n"
                place += 1
            if place < len(text) and text[place] == "]":
                return
            try:
                if place >= len(text):
                    raise ValueError
                event, end = decode(text, place)
            except (ValueError, RecursionError):
                more = stream.read(_CHUNK)
                text, place = text[place:] + more, 0
                if more and len(text) <= _LONGEST_EVENT:
                    continue
                if text.strip():
                    damage.add(line, "ends within an event", text=text[:80])
                elif not more:
                    damage.add(line, "ends without a bracket: the run was interrupted")
                return
            line += text.count("\n", place, end)
            place = end
            if isinstance(event, dict):
                yield cast("dict[str, Any]", event)


def _start(text: str, path: str) -> int:
    """Where the list of events begins."""
    place = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if text[place : place + 1] == "[":
        return place + 1
    start = text.find('"traceEvents"')
    if text[place : place + 1] == "{" and start >= 0:
        bracket = text.find("[", start)
        if bracket >= 0:
            return bracket + 1
    raise ArtefactError(path, "is no list of trace events", 1)
