"""The most memory that a rank held, as it recorded it.

Records, the one that says most first:

- ``memory_block.csv`` of the memory tracker: every block with its life and what it was for;
- ``operator_memory.csv`` of the profiler: tensors of operators, with the pool at each allocation;
- ``memory_record.csv`` (Ascend) and ``cpu_ms_memory_record_<n>.txt`` of the profiler: the pool
  each time it changes;
- lines of the log at the end of the process: ``Used peak memory usage (without fragments): 48874M``
  and ``Actual peak memory usage (with fragments): …`` (1M is 2^20 bytes).

A CPU's pool holds the tensors of a step alone, neither weights nor what is fed (as its record of a
network says that weighs as much as its tensors); on Ascend it holds both.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.artefacts.cpu_profile import memory_samples
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.kernels import nanoseconds
from irtool.artefacts.tables import Row, rows, text_lines
from irtool.artefacts.tracker import MemoryBlock, memory_blocks
from irtool.ir.dataclass import dataclass
from irtool.ir.run import ArtefactKind
from irtool.syntax.run import RankRun

MemoryRecord: TypeAlias = Literal["blocks", "operators", "pool", "cpu pool", "log"]
WORKSPACE = "WorkSpace"
"""Kind of a block in which a kernel works, and which nothing else reads."""

_POOL_MB = 1024 * 1000
"""Bytes of an "MB" in ``memory_record.csv``: its viewer divides KiB by 1000."""
_MIB = 1 << 20
_MOST_MB = 1e12
"""Above this a number is no size."""
_LONGEST_LINE = 1 << 16
_LOGGED = re.compile(r"(Used|Actual) peak memory usage \((?:without|with) fragments\): ?(\d{1,9})M")


@dataclass(frozen=True, slots=True)
class RecordedMemory:
    """The most that a rank held; sizes in bytes.

    Attributes:
        record: which kind of record says so.
        path: of the record.
        allocated: what was allocated at once, at most; None where a log says the pool's alone.
        pool: what the pool had taken, at most, with what fragments leave unused; None: not said.
        alive: blocks that were alive at that peak, the largest first; where the record has them.
        by_kind: their bytes by what they are for.
        others: peaks of other pools than the largest, by name.
    """

    record: MemoryRecord
    path: str
    allocated: int | None
    pool: int | None = None
    alive: tuple[MemoryBlock, ...] = ()
    by_kind: Mapping[str, int] = field(default_factory=dict[str, int])
    others: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def holds_static(self) -> bool:
        """Whether weights and inputs are in it."""
        return self.record != "cpu pool"

    @property
    def fragments(self) -> int | None:
        """What the pool had taken and could not use."""
        if self.pool is None or self.allocated is None:
            return None
        return max(0, self.pool - self.allocated)

    @property
    def workspace(self) -> int | None:
        """Of what was alive, what kernels worked in; None where the record has no blocks."""
        return self.by_kind.get(WORKSPACE, 0) if self.by_kind else None


def recorded_memory(rank: RankRun, damages: list[Damage]) -> RecordedMemory | None:
    """The most that a rank recorded; None where nothing did.

    Args:
        rank: whose artefacts and logs.
        damages: takes one for each record that was read.
    """
    for kind, read in _READERS:
        path = rank.artefact(kind)
        if path is None:
            continue
        damage = Damage(path)
        damages.append(damage)
        try:
            peak = read(path, damage)
        except ArtefactError as error:
            damage.add(error.line or 1, error.message, error.column, hint=error.hint)
            continue
        if peak is not None:
            return peak
    for log in reversed(rank.logs):
        try:
            peak = peak_of_log(log.path)
        except ArtefactError:
            continue
        if peak is not None:
            return peak
    return None


# -- blocks ----------------------------------------------------------------------------------------


def peak_of_blocks(path: str, damage: Damage) -> RecordedMemory | None:
    """The peak of ``memory_block.csv``; None where it tracked nothing, as on a CPU.

    The table is read twice, so that only three numbers a block are held.

    Raises:
        ArtefactError: it is no such table.
    """
    lives: dict[str, tuple[array[int], array[int], array[int]]] = {}
    most: int | None = None
    for block in memory_blocks(path, damage):
        if block.peak is not None:
            most = max(most or 0, block.peak)
        if not block.is_inside:
            starts, ends, sizes = lives.setdefault(block.pool, (array("q"), array("q"), array("q")))
            starts.append(block.start)
            ends.append(-1 if block.end is None else block.end)
            sizes.append(block.size)
    peaks = {pool: _peak(*life) for pool, life in lives.items()}
    if not peaks:
        return None
    main = max(peaks, key=lambda pool: peaks[pool][0])
    size, stamp = peaks[main]
    alive = [
        block
        for block in memory_blocks(path, Damage(path))
        if block.pool == main and block.is_alive(stamp)
    ]
    alive.sort(key=lambda block: (-block.size, block.line))
    others = {pool: peak for pool, (peak, _) in peaks.items() if pool != main}
    return RecordedMemory(
        "blocks", path, size, most, tuple(alive), _by_kind(alive), others
    )  # fmt: skip


def _peak(starts: Sequence[int], ends: Sequence[int], sizes: Sequence[int]) -> tuple[int, int]:
    """The most bytes alive at once, and the first stamp at which they are."""
    births = sorted(range(len(starts)), key=starts.__getitem__)
    deaths = sorted((place for place in births if ends[place] >= 0), key=ends.__getitem__)
    now = most = stamp = freed = 0
    for place in births:
        while freed < len(deaths) and ends[deaths[freed]] <= starts[place]:
            now -= sizes[deaths[freed]]
            freed += 1
        now += sizes[place]
        if now > most:
            most, stamp = now, starts[place]
    return most, stamp


def _by_kind(blocks: Iterable[MemoryBlock]) -> dict[str, int]:
    by_kind: dict[str, int] = {}
    for block in blocks:
        kind = block.kind or "unknown"
        by_kind[kind] = by_kind.get(kind, 0) + block.size
    return dict(sorted(by_kind.items(), key=lambda item: -item[1]))


def peak_of_operators(path: str, damage: Damage) -> RecordedMemory | None:
    """The peak of ``operator_memory.csv``: the allocation after which the pool held most.

    Columns and units (KiB, MiB): ``ascend_memory_viewer.py`` of MindSpore 2.7.0; no file was seen.

    Raises:
        ArtefactError: it is no such table.
    """
    needed = ("Name", "Size(KB)", "Allocation Time(us)", "Allocation Total Allocated(MB)")
    most, reserved, moment = 0.0, 0.0, 0
    for row in rows(path, needed, damage):
        held, time = row.number("Allocation Total Allocated(MB)"), _moment(row, "Allocation")
        if held is None or not 0 <= held < _MOST_MB or time is None or _size(row) is None:
            damage.add(row.line, "no size, no time or no total", text=row.text("Name"))
            continue
        taken = row.number("Allocation Total Reserved(MB)")
        reserved = max(reserved, taken if taken is not None and taken < _MOST_MB else 0.0)
        if held > most:
            most, moment = held, time
    if most <= 0:
        return None
    alive: list[MemoryBlock] = []
    for row in rows(path, needed, Damage(path)):
        begin, end, size = _moment(row, "Allocation"), _moment(row, "Release"), _size(row)
        if begin is not None and size and begin <= moment and (end is None or end > moment):
            name = row.text("Name")
            alive.append(MemoryBlock(row.line, begin, end, size, None, "", name, name, "", False))
    alive.sort(key=lambda block: (-block.size, block.line))
    pool = int(reserved * _MIB) or None
    return RecordedMemory("operators", path, int(most * _MIB), pool, tuple(alive))


def _moment(row: Row, event: str) -> int | None:
    """Nanoseconds of an event; None where it lies outside of what was profiled."""
    return nanoseconds(row.text(f"{event} Time(us)"))


def _size(row: Row) -> int | None:
    size = row.number("Size(KB)")
    return int(size * 1024) if size is not None and 0 <= size < _MOST_MB * 1024 else None


# -- pools and logs --------------------------------------------------------------------------------


def peak_of_cpu_pool(path: str, damage: Damage) -> RecordedMemory | None:
    """The peak of ``cpu_ms_memory_record_<n>.txt``; what a CPU's pool reserves means nothing.

    Raises:
        ArtefactError: it is no such table.
    """
    most = max((sample.allocated for sample in memory_samples(path, damage)), default=0)
    return RecordedMemory("cpu pool", path, most) if most > 0 else None


def peak_of_pool(path: str, damage: Damage) -> RecordedMemory | None:
    """The peak of ``memory_record.csv``: of MindSpore's pool, with GE's where it has one.

    Columns and units: ``ascend_memory_viewer.py`` of MindSpore 2.7.0; no file was seen.

    Raises:
        ArtefactError: it is no such table.
    """
    peaks: dict[str, tuple[float, float]] = {}
    needed = ("Component", "Total Allocated(MB)", "Total Reserved(MB)")
    for row in rows(path, needed, damage):
        allocated, reserved = row.number("Total Allocated(MB)"), row.number("Total Reserved(MB)")
        if allocated is None or reserved is None or not 0 <= allocated < 1e12 > reserved >= 0:
            damage.add(row.line, "no sizes", text=row.text("Component"))
            continue
        most = peaks.get(row.text("Component"), (0.0, 0.0))
        peaks[row.text("Component")] = max(most[0], allocated), max(most[1], reserved)
    for name in ("MindSpore+GE", "MindSpore", "GE"):
        if peaks.get(name, (0.0, 0.0))[0] > 0:
            allocated, reserved = (int(size * _POOL_MB) for size in peaks[name])
            return RecordedMemory("pool", path, allocated, reserved)
    return None


_READERS: tuple[tuple[ArtefactKind, Callable[[str, Damage], RecordedMemory | None]], ...] = (
    ("memory blocks", peak_of_blocks),
    ("operator memory", peak_of_operators),
    ("pool memory", peak_of_pool),
    ("cpu memory", peak_of_cpu_pool),
)
"""Who reads which record, the most telling first."""


def peak_of_log(path: str) -> RecordedMemory | None:
    """The peaks that MindSpore logs when it ends; the last ones of a log.

    Raises:
        ArtefactError: it can't be opened.
    """
    sizes: dict[str, int] = {}
    with text_lines(path) as stream:
        while text := stream.readline(_LONGEST_LINE):
            if "peak memory usage" in text and (match := _LOGGED.search(text)) is not None:
                sizes[match[1]] = int(match[2]) << 20
    if not sizes:
        return None
    return RecordedMemory("log", path, sizes.get("Used"), sizes.get("Actual"))
