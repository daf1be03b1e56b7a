"""The memory tracker's files: ``task.csv``, ``memory_block.csv``, ``tracker_graph.ir``.

``MS_ALLOC_CONF=memory_tracker:True`` writes them when the process ends.  Formats: files that
MindSpore 2.7.0 and 2.10.0 wrote on a CPU, where no memory is tracked (``memory_block.csv`` is a
header alone), and a ``tracker_graph.ir`` of MindSpore on Ascend (mindspore-ai/toolkits,
KernelGraphIdentity).  Rows of ``memory_block.csv`` were never seen: its columns are, and what they
mean is told by the C++ that writes them (``mem_tracker.cc``) and by public readers of files from
Ascend (the memory viewer of mindspore-ai/hyper-parallel, the peak tracker of toolkits).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irtool.artefacts.damage import Damage
from irtool.artefacts.names import full_name_of_task
from irtool.artefacts.tables import rows, text_lines
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """A task that the runtime launched.

    ``node``: the full name of its node; None of what is no kernel (``SyncTensorData``).
    """

    line: int
    stamp: int
    name: str
    node: str | None
    graph: str
    source: str


def tasks(path: str, damage: Damage) -> Iterator[Task]:
    """The tasks of ``task.csv``, in launch order.

    Args:
        path: the file.
        damage: collects the rows without a time stamp.
    """
    for row in rows(path, ("time_stamp", "task_name", "node_name", "graph_name"), damage):
        stamp = row.integer("time_stamp")
        if stamp is None:
            damage.add(row.line, "no time stamp", text=row.text("task_name"))
            continue
        name, graph = row.text("task_name"), row.text("graph_name")
        node = full_name_of_task(name) if graph else None
        yield Task(row.line, stamp, name, node, graph, row.text("python_stack"))


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """A block of device memory, as the memory tracker followed it.

    Attributes:
        line: in the table.
        start: stamp of its allocation; stamps are shared with those of tasks.
        end: stamp at which it was freed; None: never.
        size: bytes that were asked for, aligned.
        peak: the most that its pool had taken by then, with what fragments leave unused.
        kind: ``Weight``, ``Kernel``, ``WorkSpace``, ``Somas``, …
        task: name of the task that it was made for, and ``node`` of that task's node.
        pool: name of the pool; empty where the table has no such column.
        is_inside: whether it lies in another block that is counted (Somas plans one for all).
    """

    line: int
    start: int
    end: int | None
    size: int
    peak: int | None
    kind: str
    task: str
    node: str
    pool: str = ""
    is_inside: bool = False

    def is_alive(self, stamp: int) -> bool:
        """Whether it is held at a stamp."""
        if self.is_inside:
            return False
        return self.start <= stamp and (self.end is None or stamp < self.end)

    @property
    def full_name(self) -> str | None:
        """Of the node that it was made for; None where a task is no kernel."""
        name = full_name_of_task(self.task)
        return name if "-op" in name else None


_NEVER = (1 << 63) - 1
_INSIDE = -1
"""Both stamps of a block that lies in one of Somas."""


def memory_blocks(path: str, damage: Damage) -> Iterator[MemoryBlock]:
    """The blocks of ``memory_block.csv``, in the file's order.

    Args:
        path: the file.
        damage: collects the rows without a start or a size, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("start_time_stamp", "end_time_stamp", "size", "type"), damage):
        start, end = row.integer("start_time_stamp"), row.integer("end_time_stamp")
        size = row.integer("size")
        if start is None or size is None or not 0 <= size < _NEVER or not _INSIDE <= start < _NEVER:
            damage.add(row.line, "no start or no size", text=row.text("node_name"))
            continue
        if end is not None and (end >= _NEVER or end < start):
            end = None
        yield MemoryBlock(
            row.line,
            start,
            end,
            size,
            row.integer("actual_peak_memory"),
            row.text("type"),
            row.text("task_name"),
            row.text("node_name"),
            row.text("pool_type"),
            start == _INSIDE,
        )


_STATEMENT = re.compile(
    r"\((?P<out>[^()]*)\) = (?P<name>.*?)\((?P<in>[^()]*)\), task_info: (?P<stamp>\d{1,18}), attrs"
)
_TENSOR = re.compile(r"(?P<dtype>[A-Za-z]\w*):\[(?P<shape>[\d, -]*)\]")


@dataclass(frozen=True, slots=True)
class TrackedStatement:
    """A task of ``tracker_graph.ir``: memory blocks (not values) that it reads and writes."""

    line: int
    name: str
    node: str | None
    stamp: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


def tracked_statements(path: str, damage: Damage) -> Iterator[TrackedStatement]:
    """The tasks of ``tracker_graph.ir``, each with its blocks and types: three lines a task.

    Args:
        path: the file.
        damage: collects what can't be read.

    Raises:
        ArtefactError: it can't be opened.
    """
    pending: tuple[int, re.Match[str]] | None = None
    with text_lines(path) as stream:
        for line, text in enumerate(stream, 1):
            match = _STATEMENT.match(text)
            if match is not None:
                if pending is not None:
                    damage.add(pending[0], "a task without its types")
                pending = (line, match)
            elif pending is not None and "<-" in text:
                yield _statement(*pending, text)
                pending = None
            elif text.strip() and not text.lstrip().startswith("#"):
                damage.add(line, "no task of the tracker", text=text.strip())
    if pending is not None:
        damage.add(pending[0], "ends within a task")


def _statement(line: int, match: re.Match[str], types: str) -> TrackedStatement:
    outputs, _, inputs = types.partition("<-")
    name = match["name"].strip()
    return TrackedStatement(
        line,
        name,
        name if "-op" in name else None,
        int(match["stamp"]),
        _blocks(match["in"]),
        _blocks(match["out"]),
        _tensors(inputs),
        _tensors(outputs),
    )


def _blocks(text: str) -> tuple[str, ...]:
    return tuple(block.strip() for block in text.split(",") if block.strip())


def _tensors(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(
        (
            match["dtype"],
            tuple(int(size) for size in match["shape"].split(",") if size.strip(" -").isdecimal()),
        )
        for match in _TENSOR.finditer(text)
    )
