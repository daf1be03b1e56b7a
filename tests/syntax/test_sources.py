"""Where a dump may come from: files, pipes, streams, bytes, compressed or not."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

import irtool
from irtool.ir import limits
from irtool.syntax import reading, source, unpacking
from tests.syntax.damaged import DUMP, NODES, codes, count

# ---- places from which nothing can be read -------------------------------------------------------


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(irtool.DumpError, match="is a folder"):
        irtool.load(tmp_path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(irtool.DumpError, match="no such file"):
        irtool.load(tmp_path / "none.ir")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
)
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "closed.ir"
    path.write_text(DUMP)
    path.chmod(0)
    with pytest.raises(irtool.DumpError, match="permission denied"):
        irtool.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = DUMP.encode() * 100  # more than a pipe holds
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    read = irtool.load(path)
    writer.join()
    assert count(read) == 100 * NODES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_into_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WRITER_PATIENCE", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(irtool.DumpError, match="nobody writes"):
        irtool.load(path)


# ---- compressed ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_dumps_are_read(tmp_path: Path, suffix: str, compress: object) -> None:
    path = tmp_path / f"dump.ir{suffix}"
    path.write_bytes(compress(DUMP.encode()))  # type: ignore[operator]
    read = irtool.load(path)
    assert read.problems == ()
    assert irtool.dumps(read) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compression_is_told_by_content_not_by_name(tmp_path: Path, compress: object) -> None:
    path = tmp_path / "dump.ir"
    path.write_bytes(compress(DUMP.encode()))  # type: ignore[operator]
    assert count(irtool.load(path)) == NODES


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_parts_one_after_the_other_are_read(compress: object) -> None:
    half = len(DUMP) // 2
    parts = [compress(part.encode()) for part in (DUMP[:half], DUMP[half:])]  # type: ignore[operator]
    assert irtool.dumps(irtool.load(b"".join(parts))) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_compressed_dump_may_be_truncated_anywhere(compress: object) -> None:
    data = compress(DUMP.encode())  # type: ignore[operator]
    for end in range(6, len(data)):
        read = irtool.load(data[:end])
        assert "SYN003" in codes(read)
        assert DUMP.startswith(irtool.dumps(read))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_compressed_dump_may_be_damaged_anywhere(compress: object) -> None:
    data = compress(DUMP.encode())  # type: ignore[operator]
    for at in range(6, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        read = irtool.load(bytes(damaged))
        assert read.problems or irtool.dumps(read) == DUMP


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_before_it_fills_memory(
    monkeypatch: pytest.MonkeyPatch, compress: object
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_UNPACKED", 4 << 20)
    bomb = compress(bytes(64 << 20))  # type: ignore[operator]
    tracemalloc.start()
    try:
        with pytest.raises(irtool.DumpError, match=r"unpacks to \d+ times its size") as raised:
            irtool.load(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20
    assert "IRTOOL_MAX_UNPACKED" in raised.value.hint


def packed(size: int, ratio: float) -> bytes:
    """A gzip file of zeros that is padded, so that it unpacks to ``ratio`` times its own size."""
    data = gzip.compress(bytes(size))
    return data + bytes(round(size / ratio) - len(data))


@pytest.mark.parametrize(("ratio", "is_refused"), [(249, False), (251, True)])
def test_a_dump_may_unpack_to_250_times_its_size(
    monkeypatch: pytest.MonkeyPatch, ratio: float, is_refused: bool
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_UNPACKED", 0)
    pieces = unpacking.unpacked([packed(8 << 20, ratio)], "gzip")
    if is_refused:
        with pytest.raises(unpacking.UnpacksTooFar):
            list(pieces)
    else:
        assert sum(map(len, pieces)) == 8 << 20


@pytest.mark.parametrize(("allowed", "is_refused"), [("8M", False), ("8388607", True)])
def test_the_environment_states_how_far_a_file_may_unpack(
    monkeypatch: pytest.MonkeyPatch, allowed: str, is_refused: bool
) -> None:
    monkeypatch.setenv("IRTOOL_MAX_UNPACKED", allowed)
    pieces = unpacking.unpacked([gzip.compress(bytes(8 << 20))], "gzip")
    if is_refused:
        with pytest.raises(unpacking.UnpacksTooFar):
            list(pieces)
    else:
        assert sum(map(len, pieces)) == 8 << 20


def test_a_limit_that_is_no_size_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRTOOL_MAX_UNPACKED", "much")
    with pytest.raises(irtool.DumpError, match="IRTOOL_MAX_UNPACKED is no size"):
        irtool.load(gzip.compress(DUMP.encode()))


def test_an_xz_file_may_not_ask_for_gibibytes_of_memory() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    data = bytearray(lzma.compress(DUMP.encode(), check=lzma.CHECK_NONE, filters=filters))
    size = (data[12] + 1) * 4
    assert data[14] == 0x21  # LZMA2; behind it the size of its properties and the dictionary's
    data[16] = 40  # 4 GiB
    data[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(data[12 : 12 + size - 4]))
    with pytest.raises(unpacking.Damaged, match=r"[Mm]emory"):
        list(unpacking.unpacked([bytes(data)], "xz"))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_pieces_of_any_size_unpack_to_the_same(compress: object) -> None:
    data = os.urandom(3 << 20) + bytes(3 << 20)
    made: bytes = compress(data) + compress(b"end")  # type: ignore[operator]
    kind = unpacking.packed_as(made)
    for size in (len(made), 1 << 16, 4093):
        pieces = [made[at : at + size] for at in range(0, len(made), size)]
        assert b"".join(unpacking.unpacked(pieces, kind)) == data + b"end"


@pytest.mark.parametrize(
    ("memory", "most"), [(24 << 30, 4 << 30), (6 << 30, 1 << 30), (1 << 30, 1 << 30), (0, 1 << 30)]
)
def test_memory_alone_bounds_dumps_beyond_1_gib(
    memory: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "memory_bytes", lambda: memory)
    assert limits.max_dump.__wrapped__() == most


def test_a_container_has_its_own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = limits.memory_bytes()
    (tmp_path / "bound").write_text("1000000\n")
    (tmp_path / "none").write_text("max\n")
    paths = (str(tmp_path / "none"), str(tmp_path / "absent"))
    monkeypatch.setattr(limits, "_CONTAINER_BOUNDS", paths)
    unbounded = limits.memory_bytes()
    assert unbounded >= machine
    monkeypatch.setattr(limits, "_CONTAINER_BOUNDS", (*paths, str(tmp_path / "bound")))
    assert limits.memory_bytes() == (1_000_000 if unbounded else 0)


@pytest.mark.parametrize("packed", [False, True])
def test_a_dump_of_the_most_bytes_is_read_and_one_more_is_not(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DUMP.encode()
    given = gzip.compress(data) if packed else data
    monkeypatch.setattr(source, "max_dump", lambda: len(data))
    assert irtool.load(io.BytesIO(given)).problems == ()
    monkeypatch.setattr(source, "max_dump", lambda: len(data) - 1)
    with pytest.raises(irtool.DumpError, match=r"larger than|expands to more"):
        irtool.load(io.BytesIO(given))


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "max_dump", lambda: 100)
    with pytest.raises(irtool.DumpError, match="larger than"):
        irtool.load(io.BytesIO(DUMP.encode()))


def test_a_gzip_header_without_content_is_a_problem() -> None:
    header = b"\x1f\x8b\x08\0" + struct.pack("<I", 0) + b"\0\xff"
    assert "SYN003" in codes(irtool.load(header))
    assert "SYN003" in codes(irtool.load(header + zlib.compress(b"x")[2:]))


# ---- what may be given instead of a path ---------------------------------------------------------


def test_bytes_are_read() -> None:
    assert irtool.load(DUMP.encode()).problems == ()
    assert irtool.load(bytearray(DUMP.encode())).problems == ()  # type: ignore[arg-type]


def test_a_binary_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.ir"
    path.write_text(DUMP, encoding="utf-8")
    with path.open("rb") as file:
        read = irtool.load(file)
    assert read.path == str(path)
    assert count(read) == NODES


def test_a_stream_without_name_is_read() -> None:
    read = irtool.load(io.BytesIO(DUMP.encode()))
    assert read.path == "<stream>"
    assert count(read) == NODES


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    path = tmp_path / "dump.ir"
    path.write_text(DUMP, encoding="utf-8")
    assert irtool.load(str(path)).path == str(path)


def test_a_name_may_be_given_for_messages() -> None:
    read = irtool.load(b"x", name="pasted")
    assert str(read.problems[0]).startswith("pasted:1:1: error[SYN005]: ")
