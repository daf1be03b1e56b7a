"""Bytes of a file, read when they are asked for.

Nothing is mapped into memory: where a file shrinks while a part of it is mapped (a run that is
still writing, a full quota), the next look at that part ends the process.  What is read here comes
or is missing, and a missing part is an error like any other.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator

_AT_ONCE = 1 << 17
"""Bytes up to which a file is read with one call."""


class BadPayload(ValueError):
    """A file whose tensor cannot be read, with the reason; ``file`` where it is known."""

    def __init__(self, reason: str, file: str = "") -> None:
        super().__init__(reason)
        self.file = file


def open_plain(path: str) -> int:
    """Open a plain file for reading, and nothing that may never give a byte.

    Args:
        path: of the file.

    Returns:
        A file descriptor, which the caller closes.

    Raises:
        OSError: there is none, it can't be read, or it is a folder, a pipe or a device.
    """
    return _opened(path)[0]


_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def _opened(path: str) -> tuple[int, int]:
    """A handle on a plain file, and how long the file is."""
    handle = os.open(path, _FLAGS)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no plain file", path)
    return handle, status.st_size


class _Open:
    """An open file; closed when nobody has a window on it any more."""

    __slots__ = ("_handle", "path")

    def __init__(self, handle: int, path: str) -> None:
        self._handle = handle
        self.path = path

    def __del__(self) -> None:
        try:
            os.close(self._handle)
        except OSError:
            pass

    def read(self, start: int, size: int) -> bytes:
        """So many bytes from a place.

        Raises:
            BadPayload: they are not there, or can't be read.
        """
        pieces: list[bytes] = []
        left = size
        try:
            while left and (piece := self._some(left, start + size - left)):
                pieces.append(piece)
                left -= len(piece)
        except OSError as error:
            raise BadPayload((error.strerror or str(error)).lower(), self.path) from None
        if left:
            raise BadPayload("the file became shorter while it was read", self.path)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _some(self, size: int, place: int) -> bytes:
        if sys.platform == "win32":
            os.lseek(self._handle, place, os.SEEK_SET)
            return os.read(self._handle, size)
        return os.pread(self._handle, size, place)


class Window:
    """Bytes that stand one after another in memory or in a file."""

    __slots__ = ("_length", "_source", "_start")

    def __init__(self, source: memoryview | _Open, start: int, length: int) -> None:
        self._source = source
        self._start = start
        self._length = length

    @classmethod
    def of_file(cls, path: str) -> Window:
        """A whole file.

        Raises:
            OSError: there is none, or it is no plain file.
        """
        handle, size = _opened(path)
        file = _Open(handle, path)
        if size < _AT_ONCE:
            return cls.of_bytes(os.read(handle, _AT_ONCE))
        return cls(file, 0, size)

    @classmethod
    def of_bytes(cls, data: bytes | memoryview) -> Window:
        """Bytes that were read already."""
        return cls(memoryview(data), 0, len(data))

    def __len__(self) -> int:
        return self._length

    @property
    def in_memory(self) -> bool:
        """Whether looking at the bytes costs nothing."""
        return isinstance(self._source, memoryview)

    def part(self, start: int, stop: int | None = None) -> Window:
        """The bytes from one place to another, which are cut to what is there as slices are."""
        start, stop, _ = slice(start, stop).indices(self._length)
        return Window(self._source, self._start + start, max(0, stop - start))

    def read(self, start: int = 0, stop: int | None = None) -> bytes | memoryview:
        """The bytes from one place to another in memory, cut to what is there as slices are.

        Raises:
            BadPayload: the file is shorter than it was, or can't be read.
        """
        start, stop, _ = slice(start, stop).indices(self._length)
        size = max(0, stop - start)
        if isinstance(self._source, memoryview):
            return self._source[self._start + start : self._start + start + size]
        return self._source.read(self._start + start, size)

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        """All bytes, so many at a time; raises as :meth:`read` does."""
        for start in range(0, self._length, size):
            yield self.read(start, start + size)
