"""Profiles of MindSpore up to 2.2, as MindInsight read them (folder ``profiler``).

Formats: test data of mindspore-ai/mindinsight, written on Ascend, and what MindInsight makes of
them.  Times are milliseconds there, but for ``step_trace_raw_*``, which counts in 10 ns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from irtool.artefacts.damage import Damage
from irtool.artefacts.json_files import table_of
from irtool.artefacts.kernels import KindStatistic, StepTime
from irtool.artefacts.profile import Profile
from irtool.artefacts.tables import Row, rows
from irtool.ir.dataclass import dataclass
from irtool.syntax.reading import JsonError, parse_json

_AVERAGE = "-"
_TICK = 1e-2
"""Microseconds of a unit of ``step_trace_raw_*``."""


@dataclass(frozen=True, slots=True)
class LegacyKernel:
    """A row of ``aicore_intermediate_<device>_detail.csv``.

    ``duration``: microseconds of one run; ``runs``: in a step.
    """

    line: int
    name: str
    duration: float
    runs: int


def legacy_kernels(path: str, damage: Damage) -> Iterator[LegacyKernel]:
    """``full_kernel_time,execution_time,execution_frequency``: the first is the full *name*.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("full_kernel_time", "execution_time"), damage):
        name, time = row.text("full_kernel_time"), row.number("execution_time")
        if time is None or time < 0 or not name:
            damage.add(row.line, "an operator without its time", text=name)
            continue
        yield LegacyKernel(row.line, name, time * 1e3, row.integer("execution_frequency") or 1)


def legacy_profile(path: str, damage: Damage) -> Profile:
    """The profile of ``aicore_intermediate_<device>_detail.csv``: one step, made of averages.

    Args:
        path: the file.
        damage: collects the rows without a name or a time.

    Returns:
        A profile without totals of steps: the table doesn't say when what ran.

    Raises:
        ArtefactError: it is no such table.
    """
    by_step: dict[str, list[float]] = {}
    for kernel in legacy_kernels(path, damage):
        total = kernel.duration * kernel.runs
        by_step[kernel.name] = [by_step.get(kernel.name, [0.0])[0] + total]
    seconds = {name: microseconds[0] / 1e6 for name, microseconds in by_step.items()}
    return Profile(path, (), seconds, frozenset(), (0, 0.0), (), by_step)


def legacy_kinds(path: str, damage: Damage) -> Iterator[KindStatistic]:
    """What each kind of operators took in all, by ``aicore_intermediate_<device>_type.csv``.

    Args:
        path: the file.
        damage: collects the rows without a count or a time, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("op_type", "total_time", "execution_frequency"), damage):
        count, total = row.integer("execution_frequency"), row.number("total_time")
        if count is None or total is None:
            damage.add(row.line, "no count or no time", text=row.text("op_type"))
            continue
        percent = row.number("percent")
        share = None if percent is None else percent / 100
        yield KindStatistic(row.text("op_type"), "", count, total * 1e3, share)


@dataclass(frozen=True, slots=True)
class LegacyTask:
    """A row of ``framework_raw_<device>.csv``: which node a task of the device runs."""

    line: int
    task: int
    stream: int
    name: str
    kind: str


def legacy_tasks(path: str, damage: Damage) -> Iterator[LegacyTask]:
    """The tasks that a device was given, by ``framework_raw_<device>.csv``.

    Args:
        path: the file.
        damage: collects the rows without a task or a stream, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("task_id", "stream_id", ("full_kernel_name", "op_name")), damage):
        task, stream = row.integer("task_id"), row.integer("stream_id")
        if task is None or stream is None:
            damage.add(row.line, "no task or no stream", text=row.text("full_kernel_name"))
            continue
        name = row.text("full_kernel_name", "op_name")
        yield LegacyTask(row.line, task, stream, name, row.text("kernel_type"))


# -- steps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LegacyStep:
    """A row of ``step_trace_raw_<device>_detail_time.csv``; microseconds.

    Attributes:
        interval: between the last step's end and this one's first operator.
        computing: forward and backward.
        tail: after the backward part: update, and communication that nothing hides.
        collectives: by column, ``stream_10_parallel_0``.
    """

    line: int
    step: str
    total: float
    interval: float
    computing: float
    tail: float
    collectives: tuple[tuple[str, float], ...]


def legacy_steps(path: str, damage: Damage) -> Iterator[LegacyStep]:
    """``step_trace_raw_<device>_detail_time.csv``, without the average in its last row.

    Raises:
        ArtefactError: it is no such table.
    """
    needed = ("step_num", "total", "iteration_interval", "fp_and_bp", "tail")
    for row in rows(path, needed, damage):
        if row.text("step_num") == _AVERAGE:
            continue
        numbers = [row.number(name) for name in needed[1:]]
        if any(number is None for number in numbers):
            damage.add(row.line, "a step without its times", text=row.text("step_num"))
            continue
        total, interval, computing, tail = (cast("float", ticks) * _TICK for ticks in numbers)
        yield LegacyStep(
            row.line, row.text("step_num"), total, interval, computing, tail, _collectives(row)
        )


def _collectives(row: Row) -> tuple[tuple[str, float], ...]:
    names = [
        name for name in row.cells if name.startswith("stream_") and not name.endswith("_point")
    ]
    return tuple(
        (name, number * _TICK) for name in names if (number := row.number(name)) is not None
    )


def legacy_stages(path: str, damage: Damage) -> Iterator[StepTime]:
    """``ascend_cluster_analyse_<mode>-parallel_<stages>_<ranks>_<rank>.csv``, without the average.

    ``receive_alone_time`` is the bubble: waiting for another stage while nothing else runs.

    Args:
        path: the file.
        damage: collects the rows without their times.

    Returns:
        A step each, numbered from 1, its times (ms in the file) in microseconds.

    Raises:
        ArtefactError: it is no such table.
    """
    needed = ("computation_time", "communication_alone_time")
    steps: list[StepTime] = []
    for row in rows(path, needed, damage):
        computing, exposed = (row.number(name) for name in needed)
        if computing is None or exposed is None:
            damage.add(row.line, "a step without its times", text=row.text("computation_time"))
            continue
        stage, bubble = row.number("stage_time"), row.number("receive_alone_time")
        steps.append(
            StepTime(
                row.line, str(len(steps) + 1), computing * 1e3, exposed * 1e3, 0.0, 0.0,
                None if stage is None else stage * 1e3, None if bubble is None else bubble * 1e3,
            )
        )  # fmt: skip
    yield from steps[:-1] if len(steps) > 1 else steps


# -- communication ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LegacyCollective:
    """An operation of a step in ``hccl_raw_<rank>.csv``; microseconds, without and with waiting.

    ``name``: ``stream_41_0_AllReduce-op4582``; the node's own part of it is behind ``_0_``.
    """

    line: int
    step: str
    name: str
    cost: float
    wait: float


def legacy_collectives(path: str, damage: Damage) -> Iterator[LegacyCollective]:
    """``hccl_raw_<rank>.csv``, without the average in its last row.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("step_num", "communication_operator_cost"), damage):
        if row.text("step_num") == _AVERAGE:
            continue
        try:
            cell = parse_json(row.text("communication_operator_cost").replace("'", '"').encode())
        except JsonError as error:
            damage.add(row.line, f"its operators are no JSON: {error.message}")
            continue
        for name, values in table_of(cell).items():
            collective = _collective(row, name, values)
            if collective is None:
                damage.add(row.line, "an operation without its times", text=name)
            else:
                yield collective


def _collective(row: Row, name: str, values: object) -> LegacyCollective | None:
    """``[step, cost, wait, links]``."""
    if not isinstance(values, list) or len(cast("list[Any]", values)) < 3:
        return None
    cost, wait = cast("list[Any]", values)[1:3]
    if not isinstance(cost, int | float) or not isinstance(wait, int | float):
        return None
    return LegacyCollective(row.line, row.text("step_num"), name, cost * 1e3, wait * 1e3)
