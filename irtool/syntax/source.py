"""Bytes of a dump, from wherever they come: file, gzip, xz, pipe, bytes or binary file."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import select
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol, Union

MAX_BYTES = 1 << 30
"""Most bytes that one dump may have after decompression."""

_CHUNK = 1 << 20
_WRITER_PATIENCE = 2.0
"""Seconds that a named pipe may have no writer."""


class DumpError(Exception):
    """A dump that cannot be read at all; the message says which and why."""

    def __init__(self, path: str, message: str, hint: str = "") -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Content:
    """What was read; ``damage`` says why it ends early, empty if it does not."""

    data: bytes
    path: str
    damage: str = ""


PathLike = Union[str, "os.PathLike[str]"]


def read_content(source: PathLike | bytes | BinaryIO, name: str | None = None) -> Content:
    """Read a dump's bytes, decompressing gzip and xz by their first bytes.

    Raises:
        DumpError: there is no such file, no permission, or it is a folder.
    """
    if isinstance(source, bytes | bytearray):
        return _decompressed(bytes(source), name or "<bytes>")
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return _decompressed(_file_bytes(path), name or path)
    label = name or str(getattr(source, "name", "<stream>"))
    return _decompressed(_limited(lambda: source.read(_CHUNK), label), label)


def _file_bytes(path: str) -> bytes:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DumpError(path, "is a folder, not a dump", "load_run() reads folders")
        if stat.S_ISFIFO(mode):
            return _pipe_bytes(path)
        with open(path, "rb") as file:
            return _limited(lambda: file.read(_CHUNK), path)
    except OSError as error:
        hints = {
            errno.ENOENT: "check the path",
            errno.EACCES: "MindSpore writes dumps readable by their owner only",
        }
        reason = (error.strerror or str(error)).lower()
        raise DumpError(path, reason, hints.get(error.errno or 0, "")) from None


def _limited(read: Callable[[], bytes], path: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := read():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise DumpError(path, f"is larger than {MAX_BYTES >> 30} GiB")
    return b"".join(chunks)


def _pipe_bytes(path: str) -> bytes:
    """Read a named pipe without waiting for ever for somebody to write into it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    deadline = time.monotonic() + _WRITER_PATIENCE
    seen = False

    def read() -> bytes:
        nonlocal seen
        while True:
            select.select([descriptor], [], [], 0.1)
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                seen = True  # a writer holds it open and is slow
                continue
            if chunk or seen:
                seen = True
                return chunk
            if time.monotonic() > deadline:
                raise DumpError(path, "is a pipe that nobody writes into")
            time.sleep(0.02)

    try:
        return _limited(read, path)
    finally:
        os.close(descriptor)


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...

    @property
    def eof(self) -> bool: ...


def _decompressed(data: bytes, path: str) -> Content:
    if data[:2] == b"\x1f\x8b":
        return _expanded(data, path, "gzip", lambda: zlib.decompressobj(16 + zlib.MAX_WBITS))
    if data[:6] == b"\xfd7zXZ\x00":
        return _expanded(data, path, "xz", lzma.LZMADecompressor)
    return Content(data, path)


def _expanded(data: bytes, path: str, kind: str, make: Callable[[], _Decompressor]) -> Content:
    """Expand all members, stopping at damage or at the size limit and saying which."""
    made: list[bytes] = []
    size = 0
    damage = ""
    try:
        for chunk in _expand(data, make):
            made.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise DumpError(path, f"expands to more than {MAX_BYTES >> 30} GiB")
    except EOFError:
        damage = f"the {kind} file is truncated"
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        damage = f"the {kind} file is damaged: {error}"
    return Content(b"".join(made), path, damage)


def _expand(data: bytes, make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    while data:
        decompressor = make()
        pending = data
        while not decompressor.eof:
            chunk = decompressor.decompress(pending, _CHUNK)
            pending = getattr(decompressor, "unconsumed_tail", b"")
            if chunk:
                yield chunk
            elif not pending:
                if not decompressor.eof:
                    raise EOFError
                break
        data = getattr(decompressor, "unused_data", b"").lstrip(b"\0")
