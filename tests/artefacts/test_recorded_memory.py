"""The most memory that a rank recorded, from each kind of record.

The record of the CPU's pool is a real one.  Rows of ``memory_block.csv`` and ``memory_record.csv``
are written here after their headers: no real ones were seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.artefacts.damage import Damage
from irtool.artefacts.recorded_memory import (
    RecordedMemory,
    peak_of_blocks,
    peak_of_cpu_pool,
    peak_of_log,
    peak_of_operators,
    peak_of_pool,
)

RUN = Path(__file__).parents[2] / "samples/artefacts/run"
HEADER = (RUN / "memory_tracker/memory_block.csv").read_text("utf-8").splitlines()[0]
NEVER = (1 << 63) - 1


def block(
    start: int, end: int, size: int, kind: str = "Kernel", task: str = "", pool: str = "Default",
    peak: int = 0,
) -> str:  # fmt: skip
    """A row under MindSpore 2.7.0's header, which ends every line with a comma."""
    cells = [start, end, "0x1", 0, pool, size, peak, "a.cc", 1, kind, start, task, "", "", "{}", ""]
    return ",".join(map(str, cells)) + ",,"


def peak_of(tmp_path: Path, *rows: str) -> RecordedMemory:
    path = tmp_path / "memory_block.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    damage = Damage(str(path))
    found = peak_of_blocks(str(path), damage)
    assert found is not None
    assert not damage.count
    return found


def test_a_block_is_held_until_it_is_freed(tmp_path: Path) -> None:
    """The second one takes the place of the first; a weight is never freed."""
    found = peak_of(
        tmp_path,
        block(1, NEVER, 1000, "Weight"),
        block(2, 5, 300, task="7_Default/a-A/MatMul-op0"),
        block(5, 9, 200),
        block(6, 8, 50, "WorkSpace", peak=2048),
    )
    assert found.allocated == 1300
    assert found.by_kind == {"Weight": 1000, "Kernel": 300}
    assert found.alive[1].full_name == "Default/a-A/MatMul-op0"
    assert found.workspace == 0
    assert found.pool == 2048
    assert found.fragments == 748


def test_work_space_that_makes_the_peak(tmp_path: Path) -> None:
    found = peak_of(tmp_path, block(1, 9, 300), block(5, 6, 700, "WorkSpace"), block(6, 9, 600))
    assert found.allocated == 1000
    assert found.workspace == 700


def test_what_lies_in_a_block_of_somas_counts_once(tmp_path: Path) -> None:
    found = peak_of(tmp_path, block(1, 9, 800, "Somas"), block(-1, -1, 500, "SomasOutput"))
    assert found.allocated == 800
    assert [each.kind for each in found.alive] == ["Somas"]


def test_pools_are_not_added_up(tmp_path: Path) -> None:
    found = peak_of(tmp_path, block(1, 9, 800), block(2, 9, 100, pool="Host"))
    assert found.allocated == 800
    assert found.others == {"Host": 100}


def test_a_cpu_tracks_nothing() -> None:
    """The real file is a header alone, which is no memory of zero."""
    path = str(RUN / "memory_tracker/memory_block.csv")
    assert peak_of_blocks(path, Damage(path)) is None


def test_the_pool_of_a_cpu() -> None:
    path = str(RUN / "profiler/cpu_ms_memory_record_0.txt")
    found = peak_of_cpu_pool(path, Damage(path))
    assert found is not None
    assert found.allocated == 1_320_448
    assert not found.holds_static


def test_the_pool_of_a_device_counts_mb_of_1024000_bytes(tmp_path: Path) -> None:
    path = tmp_path / "memory_record.csv"
    path.write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),"
        "Device Type\n"
        "MindSpore,1,10.5,20,10,NPU:0\nMindSpore+GE,1,11,21,10,NPU:0\nAPP,2,0,64000,0,NPU:0\n"
        "MindSpore,3,x,20,10,NPU:0\n",
        encoding="utf-8",
    )
    damage = Damage(str(path))
    found = peak_of_pool(str(path), damage)
    assert found is not None
    assert (found.allocated, found.pool) == (11 * 1_024_000, 21 * 1_024_000)
    assert damage.count == 1


@pytest.mark.parametrize("prefix", ["", "[INFO] DEVICE(1,2,python):2025 [a.cc:1] Show] "])
def test_peaks_in_a_log(tmp_path: Path, prefix: str) -> None:
    """As MindSpore's guide to dry runs prints them."""
    path = tmp_path / "worker_0.log"
    path.write_text(
        "Device MOC memory size: 65536M\n"
        f"{prefix}Used peak memory usage (without fragments): 23716M\n"
        f"{prefix}Actual peak memory usage (with fragments): 26244M\n",
        encoding="utf-8",
    )
    found = peak_of_log(str(path))
    assert found is not None
    assert (found.allocated, found.pool) == (23716 << 20, 26244 << 20)
    assert found.fragments == (26244 - 23716) << 20


def test_a_log_without_them_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("peak memory usage\n" * 3, encoding="utf-8")
    assert peak_of_log(str(path)) is None


def test_the_profilers_tensors_tell_who_held_the_peak(tmp_path: Path) -> None:
    """KB are KiB, MB MiB; what was freed outside of the profile has no time."""
    path = tmp_path / "operator_memory.csv"
    columns = (
        "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),"
        "Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
        "Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
        "Release Total Active(MB),Stream Ptr,Device Type"
    )
    lines = [
        "first,1024,10.5,20.0,20,1,1,1,4,1,0,4,0,0,NPU:0",
        "second,2048,12.25,N/A,N/A,N/A,N/A,3,6,3,N/A,N/A,N/A,0,NPU:0",
        "third,512,21.0,22.0,22,1,1,2.5,6,2.5,2,6,2,0,NPU:0",
        "torn,soon,21.0,22.0,22,1,1,9,6,2.5,2,6,2,0,NPU:0",
    ]
    path.write_text("\n".join([columns, *lines]) + "\n", encoding="utf-8")
    damage = Damage(str(path))
    found = peak_of_operators(str(path), damage)
    assert found is not None
    assert (found.allocated, found.pool, found.workspace) == (3 << 20, 6 << 20, None)
    assert [(block.task, block.size) for block in found.alive] == [
        ("second", 2 << 20), ("first", 1 << 20),
    ]  # fmt: skip
    assert damage.count == 1
