"""The profile of ``trace_view.json``, in bounded memory: sixteen bytes an event.

Events of lane ``CPU OP`` bear full names of nodes, as MindSpore 2.7.0 writes them on a CPU.  Of
lane ``Ascend Hardware`` those count whose name holds one as in ``kernel_details.csv``: *no trace of
MindSpore on Ascend was seen*.  All other lanes tell the same again, by scopes or of the host.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from irtool.artefacts.damage import Damage
from irtool.artefacts.names import full_name_of_kernel
from irtool.artefacts.profile import (
    MeasuredRun,
    Profile,
    StepTotals,
    usual_place,
    usual_seconds,
    usual_step,
)
from irtool.artefacts.trace_view import trace_events

_HOST = "CPU OP"
_DEVICE = "Ascend Hardware"
_COLLECTIVE = "hcom_"


class _Runs:
    """Runs of one name, as two columns."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.durations = array("d")

    def add(self, start: int, duration: float) -> None:
        self.starts.append(start)
        self.durations.append(duration)

    def in_order(self) -> None:
        """Sort them by when they began: a trace need not be in order."""
        starts = np.frombuffer(self.starts, np.int64)
        if (starts[1:] >= starts[:-1]).all():
            return
        order = np.argsort(starts, kind="stable")
        starts, durations = starts[order], np.frombuffer(self.durations, np.float64)[order]
        self.starts, self.durations = array("q", starts.tolist()), array("d", durations.tolist())

    def part(self, step: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends (ns) of a step's runs, where each has as many."""
        size = len(self.starts) // steps
        starts = np.frombuffer(self.starts, np.int64)[step * size : (step + 1) * size]
        durations = np.frombuffer(self.durations, np.float64)[step * size : (step + 1) * size]
        return starts, starts + np.round(durations * 1e3).astype(np.int64)


def trace_profile(path: str, damage: Damage) -> Profile:
    """The profile of ``trace_view.json``: what ran as often as most did is divided into steps.

    Args:
        path: the file.
        damage: collects the events without times.

    Raises:
        ArtefactError: it can't be opened, or is no list of events.
    """
    runs: dict[str, _Runs] = {}
    communicating: set[str] = set()
    count, unnamed = 0, 0.0
    for event in trace_events(path, damage):
        if event.lane == _HOST:
            name = event.name
        elif event.lane == _DEVICE:
            full_name = full_name_of_kernel(event.name)
            if full_name is None:
                count, unnamed = count + 1, unnamed + event.duration
                continue
            name = full_name
            if _COLLECTIVE in event.name:
                communicating.add(name)
        else:
            continue
        runs.setdefault(name, _Runs()).add(event.start, event.duration)
    for series in runs.values():
        series.in_order()
    counts = Counter(len(series.starts) for series in runs.values())
    steps = counts.most_common(1)[0][0] if counts else 0
    even = {
        name: series for name, series in runs.items() if steps and not len(series.starts) % steps
    }
    by_name = {
        name: array("d", (_sum(series, step, steps) for step in range(steps)))
        for name, series in even.items()
    }
    totals = tuple(_totals(step, steps, even, communicating) for step in range(steps))
    place = usual_place(totals)
    return Profile(
        path,
        totals,
        usual_seconds(by_name),
        frozenset(communicating & set(even)),
        (count, unnamed),
        tuple(name for name in runs if name not in even),
        by_name,
        None
        if place is None
        else usual_step(totals[place], list(_runs_of(place, steps, even, communicating))),
    )


def _runs_of(
    step: int, steps: int, runs: dict[str, _Runs], communicating: set[str]
) -> Iterator[MeasuredRun]:
    for name, series in runs.items():
        starts, ends = series.part(step, steps)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield MeasuredRun(start, (end - start) / 1e3, name in communicating, name)


def _sum(runs: _Runs, step: int, steps: int) -> float:
    """Microseconds of a step."""
    size = len(runs.durations) // steps
    return sum(runs.durations[step * size : (step + 1) * size])


def _totals(step: int, steps: int, runs: dict[str, _Runs], communicating: set[str]) -> StepTotals:
    """Where a step went: what runs at once counts once."""
    parts: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {False: [], True: []}
    for name, series in runs.items():
        parts[name in communicating].append(series.part(step, steps))
    computing, collectives = parts[False], parts[True]
    together = [*computing, *collectives]
    wall = max(int(end.max()) for _, end in together) - min(int(s.min()) for s, _ in together)
    busy = _union(computing)
    return StepTotals(
        str(step), wall / 1e3, busy / 1e3, _union(collectives) / 1e3,
        (_union(together) - busy) / 1e3,
    )  # fmt: skip


def _union(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Nanoseconds during which at least one runs."""
    if not parts:
        return 0
    starts = np.concatenate([start for start, _ in parts])
    ends = np.concatenate([end for _, end in parts])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    # A gap opens where a run begins after all before it have ended.
    gaps = np.maximum(starts[1:] - ends[:-1], 0).sum()
    return int(ends[-1] - starts[0] - gaps)
