"""What MindSpore's profiler writes on a CPU: ``FRAMEWORK/cpu_*_0.*``.

Formats: files that MindSpore 2.7.0 and 2.10.0 wrote (graph mode, ``activities=[CPU]``).
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from irtool.artefacts.damage import Damage
from irtool.artefacts.tables import rows, text_lines
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a node: when it began (ns since 1970), and for how long it ran (µs)."""

    start: int
    duration: float


@dataclass(frozen=True, slots=True)
class NodeLaunches:
    """All runs of a node, in order: one a step. ``line``: of the file."""

    line: int
    name: str
    launches: tuple[Launch, ...]

    @property
    def usual(self) -> float:
        """Microseconds of a step: the median, since the first one also warms up."""
        return median(launch.duration for launch in self.launches)


def node_launches(path: str, damage: Damage) -> Iterator[NodeLaunches]:
    """``cpu_op_execute_timestamp_0.txt``: ``<full name>;HostCpuOps;<ns>,<ms>,<n> …``.

    Args:
        path: the file.
        damage: collects the launches that can't be read; the others of their line are kept.

    Returns:
        A line of the file each, its launches in the order of their start.

    Raises:
        ArtefactError: it can't be opened.
    """
    with text_lines(path) as stream:
        for line, text in enumerate(stream, 1):
            name, _, rest = text.rstrip("\r\n").partition(";")
            _, _, triples = rest.partition(";")
            launches: list[Launch] = []
            for triple in triples.split():
                start, _, others = triple.partition(",")
                try:
                    launch = Launch(int(start[:25]), float(others.partition(",")[0]) * 1e3)
                except ValueError:
                    damage.add(line, f"no run of an operator: {triple[:60]}", text=name)
                    continue
                launches.append(launch)
            if name and launches:
                yield NodeLaunches(line, name, tuple(sorted(launches, key=lambda run: run.start)))
            elif name.strip() and not triples:
                damage.add(line, "an operator without runs", text=name)


@dataclass(frozen=True, slots=True)
class NodeTotal:
    """A row of ``cpu_op_detail_info_0.csv``: all runs of a node; ``total`` in microseconds."""

    line: int
    name: str
    kind: str
    runs: int
    total: float


def node_totals(path: str, damage: Damage) -> Iterator[NodeTotal]:
    """What each operator took in all, by ``cpu_op_detail_info_0.csv``.

    Args:
        path: the file.
        damage: collects the rows without runs or a time, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    needed = ("op_type", "full_op_name", "op_occurrences", "op_total_time(ms)")
    for row in rows(path, needed, damage):
        runs, total = row.integer("op_occurrences"), row.number("op_total_time(ms)")
        if runs is None or total is None:
            damage.add(row.line, "no runs or no time", text=row.text("full_op_name"))
            continue
        name = row.text("full_op_name")
        yield NodeTotal(row.line, name, row.text("op_type"), runs, total * 1e3)


@dataclass(frozen=True, slots=True)
class KindTotal:
    """A row of ``cpu_op_type_info_0.csv``; ``total`` in microseconds."""

    kind: str
    count: int
    total: float


def kind_totals(path: str, damage: Damage) -> Iterator[KindTotal]:
    """What each kind of operators took in all, by ``cpu_op_type_info_0.csv``.

    Args:
        path: the file.
        damage: collects the rows without a count or a time, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("op_type", "type_occurrences", "total_compute_time"), damage):
        count, total = row.integer("type_occurrences"), row.number("total_compute_time")
        if count is None or total is None:
            damage.add(row.line, "no count or no time", text=row.text("op_type"))
            continue
        yield KindTotal(row.text("op_type"), count, total * 1e3)


@dataclass(frozen=True, slots=True)
class LaunchedShapes:
    """A line of ``cpu_framework_0.txt``: its name has no scope, so it names no node by itself."""

    line: int
    kind: str
    name: str
    inputs: tuple[tuple[int, ...] | None, ...]


def launched_shapes(path: str, damage: Damage) -> Iterator[LaunchedShapes]:
    """``cpu_framework_0.txt``: ``<type>;<name>;<constant>;input_1:[128, 64];input_2:NoShape;``.

    Args:
        path: the file.
        damage: collects the lines that describe no launch.

    Raises:
        ArtefactError: it can't be opened.
    """
    with text_lines(path) as stream:
        for line, text in enumerate(stream, 1):
            parts = text.strip().rstrip(";").split(";")
            if len(parts) < 3:
                if text.strip():
                    damage.add(line, "no launch of an operator", text=text.strip())
                continue
            inputs = tuple(_shape(part.partition(":")[2]) for part in parts[3:])
            yield LaunchedShapes(line, parts[0], parts[1], inputs)


def _shape(text: str) -> tuple[int, ...] | None:
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return None
    sizes = [size.strip() for size in inner[1:-1].split(",") if size.strip()]
    if not all(size.removeprefix("-").isdecimal() and len(size) < 20 for size in sizes):
        return None
    return tuple(map(int, sizes))


@dataclass(frozen=True, slots=True)
class MemorySample:
    """A row of ``cpu_ms_memory_record_0.txt``: ``time`` in ns, the rest in bytes."""

    time: int
    allocated: int
    reserved: int
    active: int


def memory_samples(path: str, damage: Damage) -> Iterator[MemorySample]:
    """``cpu_ms_memory_record_0.txt``: the memory pool each time it changes.

    Args:
        path: the file.
        damage: collects the rows without four whole numbers.

    Returns:
        Samples in the file's order: a time in nanoseconds, sizes in bytes.

    Raises:
        ArtefactError: it is no such table.
    """
    names = ("Timestamp(ns)", "Total Allocated(Byte)", "Total Reserved(Byte)", "Total Active(Byte)")
    for row in rows(path, names, damage):
        values = [row.integer(name) for name in names]
        time, allocated, reserved, active = values
        if time is None or allocated is None or reserved is None or active is None:
            damage.add(row.line, "not four whole numbers", text=row.text(names[0]))
            continue
        yield MemorySample(time, allocated, reserved, active)
