"""``kernel_details.csv`` and the tables beside it: what Ascend's profiler measured.

Columns are those of CANN's op_summary under the names that MindSpore's viewer gives them
(``mindspore/profiler/analysis/viewer/ascend_kernel_details_viewer.py`` of 2.7.0); the set varies
with version and level.  Read against a table that torch_npu wrote, which shares the columns: no
table of MindSpore on a real Ascend machine was seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.artefacts.damage import Damage
from irtool.artefacts.names import full_name_of_kernel
from irtool.artefacts.tables import Row, rows
from irtool.ir.dataclass import dataclass

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel that ran on a device.

    Attributes:
        line: in the table.
        step: that the profiler counted; empty without a schedule.
        name: as the table has it.
        node: the full name of its node; None where the name bears none.
        kind: the kernel's type.
        core: ``AI_CORE``, ``AI_VECTOR_CORE``, ``HCCL``, …
        start: nanoseconds since 1970.
        duration: microseconds.
        wait: microseconds since the task before it.
        inputs: shapes of its inputs; empty where the level shows none.
        dtypes: of its inputs.
        outputs: shapes of its outputs.
        stream: the stream's number.
    """

    line: int
    step: str
    name: str
    node: str | None
    kind: str
    core: str
    start: int
    duration: float
    wait: float | None = None
    inputs: Shapes = ()
    dtypes: tuple[str, ...] = ()
    outputs: Shapes = ()
    stream: int | None = None

    @property
    def communicates(self) -> bool:
        """Whether it is a collective's, not a kernel that computes."""
        return self.core.upper() in ("HCCL", "COMMUNICATION") or self.kind.startswith("hcom_")


NEEDED = ("Name", "Type", "Start Time(us)", "Duration(us)")
"""Columns that every such table has."""


def kernel_rows(path: str, damage: Damage) -> Iterator[KernelRow]:
    """The rows of ``kernel_details.csv``.

    Args:
        path: the file.
        damage: collects the rows without a start or a duration, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, NEEDED, damage):
        start, duration = nanoseconds(row.text("Start Time(us)")), row.number("Duration(us)")
        if start is None or duration is None:
            damage.add(row.line, "no start or no duration", text=row.text("Name"))
            continue
        name = row.text("Name")
        yield KernelRow(
            row.line,
            row.text("Step ID", "Step Id"),
            name,
            full_name_of_kernel(name),
            row.text("Type"),
            row.text("Accelerator Core"),
            start,
            duration,
            row.number("Wait Time(us)"),
            shapes(row.text("Input Shapes")),
            _types(row.text("Input Data Types")),
            shapes(row.text("Output Shapes")),
            row.integer("Stream ID"),
        )


def nanoseconds(text: str) -> int | None:
    """Microseconds with decimals as whole nanoseconds: a float would lose some.

    Args:
        text: of microseconds, as profilers print it; what follows the third decimal is dropped.

    Returns:
        None where it is no such number, and for negative ones.
    """
    integer, _, part = text.strip().partition(".")
    digits = integer + (part + "000")[:3]
    if not (integer.isascii() and digits.isdecimal() and len(digits) < 25):
        return None
    return int(digits)


def shapes(text: str) -> Shapes:
    """``"81920,4096;8192,512"``: an empty one is a scalar's; ``N/A`` says nothing.

    Args:
        text: a cell of ``kernel_details.csv``: shapes parted by ``;``, sizes by ``,``.

    Returns:
        A shape for each tensor, in order; none at all where one of them can't be read.
    """
    inner = text.strip().strip('"')
    if not inner or inner == "N/A":
        return ()
    all_shapes: list[tuple[int, ...]] = []
    for shape in inner.split(";"):
        sizes = [size.strip() for size in shape.split(",") if size.strip()]
        if not all(size.removeprefix("-").isdecimal() and len(size) < 20 for size in sizes):
            return ()
        all_shapes.append(tuple(map(int, sizes)))
    return tuple(all_shapes)


def _types(text: str) -> tuple[str, ...]:
    return () if text in ("", "N/A") else tuple(text.strip('"').split(";"))


@dataclass(frozen=True, slots=True)
class KindStatistic:
    """A row of ``op_statistic.csv``: all kernels of one type."""

    kind: str
    core: str
    count: int
    total: float
    share: float | None


def kind_statistics(path: str, damage: Damage) -> Iterator[KindStatistic]:
    """``op_statistic.csv``, as CANN writes it (total in microseconds, share from 0 to 1).

    No file of MindSpore was seen: columns after the vendor's documentation.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("OP Type", "Count", "Total Time(us)"), damage):
        count, total = row.integer("Count"), row.number("Total Time(us)")
        if count is None or total is None:
            damage.add(row.line, "no count or no time", text=row.text("OP Type"))
            continue
        percent = row.number("Ratio(%)")
        share = None if percent is None else percent / 100
        yield KindStatistic(row.text("OP Type"), row.text("Core Type"), count, total, share)


@dataclass(frozen=True, slots=True)
class StepTime:
    """Where a step of a rank went, in microseconds.

    Attributes:
        step: empty or 0 without a schedule.
        rank: of a table of a cluster; ``stage`` likewise.
        computing: with or without communication beside it.
        exposed: communication that nothing hides.
        hidden: communication behind computing.
        free: neither.
        stage: from the first to the last communication, without the bubble.
        bubble: waiting for other pipeline stages.
        preparing: until the step's first kernel.
    """

    line: int
    step: str
    computing: float
    exposed: float
    hidden: float
    free: float
    stage: float | None = None
    bubble: float | None = None
    preparing: float | None = None
    index: str = ""

    @property
    def total(self) -> float:
        """Microseconds of the whole step."""
        return self.computing + self.exposed + self.free + (self.preparing or 0)


def step_times(path: str, damage: Damage) -> Iterator[StepTime]:
    """``step_trace_time.csv``, of a rank or of a cluster.

    Definitions: ``ascend_step_trace_time_viewer.py`` of MindSpore 2.7.0.  An event belongs to the
    step in which it starts.  Bubbles are those of events named ``hcom_send__…``, ``Receive-op…``
    at the name's beginning, so that a scoped ``Default/…/Receive-op3`` is not among them.

    Args:
        path: the file.
        damage: collects the rows without their times, which are left out.

    Raises:
        ArtefactError: it is no such table.
    """
    for row in rows(path, ("Step", "Computing", "Communication(Not Overlapped)", "Free"), damage):
        numbers = [
            row.number(name) for name in ("Computing", "Communication(Not Overlapped)", "Free")
        ]
        computing, exposed, free = numbers
        if computing is None or exposed is None or free is None:
            damage.add(row.line, "a step without its times", text=row.text("Step"))
            continue
        yield StepTime(
            row.line,
            row.text("Step"),
            computing,
            exposed,
            row.number("Overlapped") or 0.0,
            free,
            row.number("Stage"),
            row.number("Bubble"),
            row.number("Preparing"),
            _index(row),
        )


def _index(row: Row) -> str:
    kind = row.text("Type")
    return f"{kind} {row.text('Index')}" if kind else ""
