"""A profile as steps of runs of operators, whichever of its files is there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from statistics import median
from typing import TypeAlias

from irtool.artefacts.cpu_profile import launched_shapes, node_launches
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.kernels import kernel_rows
from irtool.ir.dataclass import dataclass
from irtool.syntax import file_facts


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a kernel: ``start`` in ns since 1970, ``duration`` in µs, ``name`` of its node."""

    start: int
    duration: float
    communicates: bool = False
    name: str = ""

    @property
    def end(self) -> float:
        """When the run ended, in nanoseconds since 1970."""
        return self.start + self.duration * 1e3


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Where one step went, in microseconds.

    Attributes:
        name: of the step.
        wall: from its first run to the end of its last.
        computing: while at least one kernel computes.
        communicating: while at least one collective runs.
        exposed: communication while nothing computes.
    """

    name: str
    wall: float
    computing: float
    communicating: float
    exposed: float

    @property
    def hidden(self) -> float:
        """Microseconds of communication behind computing."""
        return self.communicating - self.exposed

    @property
    def idle(self) -> float:
        """Microseconds in which the device neither computes nor communicates."""
        return max(0.0, self.wall - self.computing - self.exposed)


LaunchedAs: TypeAlias = tuple[str, tuple[tuple[int, ...], ...]]
"""``MatMul-op0``, and the shapes of the tensors that it was given."""


@dataclass(frozen=True, eq=False)
class UsualStep:
    """The runs of a step that took as long as most: what a picture shows.

    Attributes:
        name: of the step.
        begin: when it began, in ns since 1970.
        runs: in order.
    """

    name: str
    begin: int
    runs: tuple[MeasuredRun, ...]


@dataclass(frozen=True, eq=False)
class Profile:
    """What a profiler measured of the steps of a rank.

    Attributes:
        path: the file.
        steps: where each went, in order.
        seconds: of a step, by the full name of a node: the median of the steps, without the first
            one where there are three or more, since it also warms up.
        communicating: names among these that communicate.
        unnamed: kernels that bear no node's name: how many runs, and their microseconds in all.
        uneven: names that run another number of times than there are steps.
        by_step: microseconds of each step, by the full name of a node; of ``uneven`` ones of
            those steps in which it ran.
        usual: the runs of one step; None where no file says when what ran.
        launched: operators without their scope, and the shapes of the tensors that they were given:
            each once; empty where no file says it.
    """

    path: str
    steps: tuple[StepTotals, ...]
    seconds: Mapping[str, float]
    communicating: frozenset[str]
    unnamed: tuple[int, float]
    uneven: tuple[str, ...]
    by_step: Mapping[str, Sequence[float]] = field(default_factory=dict[str, "Sequence[float]"])
    usual: UsualStep | None = None
    launched: frozenset[LaunchedAs] = frozenset()


def cpu_profile(path: str, damage: Damage) -> Profile:
    """The profile of ``cpu_op_execute_timestamp_0.txt``, whose launches are divided into steps.

    The file names no steps: there are as many as most nodes have launches.  A node whose launches
    do
    not divide evenly into these is listed as ``uneven``.

    Args:
        path: the file; shapes are taken from ``cpu_framework_0.txt`` beside it.
        damage: collects what can't be read of both.

    Raises:
        ArtefactError: it can't be opened.
    """
    nodes = list(node_launches(path, damage))
    counts = Counter(len(node.launches) for node in nodes)
    steps = counts.most_common(1)[0][0] if counts else 0
    runs: list[list[MeasuredRun]] = [[] for _ in range(steps)]
    by_name: dict[str, list[float]] = {}
    uneven: list[str] = []
    for node in nodes:
        if not steps or len(node.launches) % steps:
            uneven.append(node.name)
            continue
        size = len(node.launches) // steps
        for step in range(steps):
            part = node.launches[step * size : (step + 1) * size]
            runs[step] += [MeasuredRun(one.start, one.duration, name=node.name) for one in part]
            by_name.setdefault(node.name, []).append(sum(one.duration for one in part))
    totals = tuple(step_totals(str(number), measured) for number, measured in enumerate(runs))
    return Profile(
        path, totals, usual_seconds(by_name), frozenset(), (0, 0.0), tuple(uneven), by_name,
        None if (place := usual_place(totals)) is None else usual_step(totals[place], runs[place]),
        _launched_beside(path, damage),
    )  # fmt: skip


def _launched_beside(path: str, damage: Damage) -> frozenset[LaunchedAs]:
    """What ``cpu_framework_<n>.txt`` beside a CPU's timestamps says of shapes."""
    name = os.path.basename(path).replace("cpu_op_execute_timestamp", "cpu_framework")
    file = os.path.join(os.path.dirname(path), name)
    if file == path or not file_facts.is_file(file):
        return frozenset()
    own = Damage(file)
    try:
        launched = frozenset(
            (row.name, tuple(shape for shape in row.inputs if shape is not None))
            for row in launched_shapes(file, own)
        )
    except ArtefactError as error:
        damage.add(1, f"{name} beside it: {error.message}")
        return frozenset()
    return launched if not own.count else frozenset()


def kernel_profile(path: str, damage: Damage) -> Profile:
    """The profile of ``kernel_details.csv``: all kernels of a node count for it.

    Args:
        path: the file.
        damage: collects the rows that can't be read.

    Raises:
        ArtefactError: it is no such table.
    """
    runs: dict[str, list[MeasuredRun]] = {}
    by_step: dict[str, dict[str, float]] = {}
    communicating: set[str] = set()
    count, unnamed = 0, 0.0
    for row in kernel_rows(path, damage):
        run = MeasuredRun(row.start, row.duration, row.communicates, row.node or "")
        runs.setdefault(row.step, []).append(run)
        if row.node is None:
            count, unnamed = count + 1, unnamed + row.duration
            continue
        names = by_step.setdefault(row.step, {})
        names[row.node] = names.get(row.node, 0.0) + row.duration
        if row.communicates:
            communicating.add(row.node)
    by_name: dict[str, list[float]] = {}
    for step in sorted(by_step):
        for name, duration in by_step[step].items():
            by_name.setdefault(name, []).append(duration)
    totals = tuple(step_totals(step, runs[step]) for step in sorted(runs))
    uneven = tuple(name for name, per_step in by_name.items() if len(per_step) != len(by_step))
    return Profile(
        path, totals, usual_seconds(by_name), frozenset(communicating), (count, unnamed), uneven,
        by_name,
        None if (place := usual_place(totals)) is None
        else usual_step(totals[place], runs[totals[place].name]),
    )  # fmt: skip


def usual_place(steps: Sequence[StepTotals]) -> int | None:
    """The place of the step whose length is the median, without a first one of three or more.

    Args:
        steps: in order; the first of three or more also warms up.

    Returns:
        Its index; None where there are no steps.
    """
    first = 1 if len(steps) > 2 else 0
    places = sorted(range(first, len(steps)), key=lambda place: steps[place].wall)
    return places[(len(places) - 1) // 2] if places else None


def usual_step(step: StepTotals, runs: Sequence[MeasuredRun]) -> UsualStep | None:
    """The runs of a step in order; None of a step without any.

    Args:
        step: what its runs amount to.
        runs: of kernels, in any order.
    """
    ordered = tuple(sorted(runs, key=lambda run: run.start))
    return UsualStep(step.name, ordered[0].start, ordered) if ordered else None


def usual_seconds(by_name: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The seconds that a node takes in a step: the median, without the first of three or more.

    Args:
        by_name: microseconds of each step, at least one, by the node's full name.
    """
    return {
        name: median(durations[1:] if len(durations) > 2 else durations) / 1e6
        for name, durations in by_name.items()
    }


def step_totals(name: str, runs: Sequence[MeasuredRun]) -> StepTotals:
    """Where a step went: what runs at once counts once."""
    if not runs:
        return StepTotals(name, 0.0, 0.0, 0.0, 0.0)
    computing = _joined(run for run in runs if not run.communicates)
    communicating = _joined(run for run in runs if run.communicates)
    together = _joined(runs)
    wall = max(run.end for run in runs) - min(run.start for run in runs)
    busy = _length(computing)
    return StepTotals(
        name,
        wall / 1e3,
        busy / 1e3,
        _length(communicating) / 1e3,
        (_length(together) - busy) / 1e3,
    )


def _joined(runs: Iterable[MeasuredRun]) -> list[tuple[float, float]]:
    """Times during which at least one runs."""
    intervals: list[tuple[float, float]] = []
    for run in sorted(runs, key=lambda one: one.start):
        if intervals and run.start <= intervals[-1][1]:
            intervals[-1] = (intervals[-1][0], max(intervals[-1][1], run.end))
        else:
            intervals.append((run.start, run.end))
    return intervals


def _length(times: Sequence[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in times)
