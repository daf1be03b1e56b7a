"""Files that irtool writes: beside their place and renamed when whole, never over an input.

Whatever ends a command early (a full disk, Ctrl-C, a mistake found late) leaves the file that was
there as it was.  What is no plain file (a named pipe, a device) is written to as it is.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO, cast

from irtool.cli.report import Failure
from irtool.syntax.file_facts import cannot_repeat
from irtool.syntax.reading import inputs

CODE = "CLI003"
"""Of an output that can't be written."""
_STANDARD_OUTPUT = 1
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,6})")
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
_READER_PATIENCE = 10.0
"""Seconds that a named pipe may have no reader."""


class PipeClosed(Exception):
    """The reader of our output went away."""


def cannot_write(error: OSError, place: str) -> Failure:
    """Why an output can't be written.

    Args:
        error: what the system says.
        place: the file, or what stands for it.
    """
    reason = error.strerror or str(error)
    folder = os.path.dirname(place)
    hint = f"there is no folder {folder}" if folder and not os.path.isdir(folder) else ""
    if error.errno == errno.ENOSPC:
        hint = "the file that was there is as it was" if os.path.isfile(place) else ""
    return Failure(f"cannot write: {reason[:1].lower()}{reason[1:]}", place, hint=hint, code=CODE)


def descriptor_of(path: str) -> int | None:
    """The open file that a path such as ``/dev/stdout`` stands for."""
    match = _DESCRIPTOR.fullmatch(path)
    return int(match[1]) if match else _STANDARD.get(path)


def is_standard_output(path: str | None) -> bool:
    """Whether an output goes to standard output.

    Args:
        path: as it was given; None: no file is named.
    """
    return path is None or path == "-" or descriptor_of(path) == _STANDARD_OUTPUT


class Sink(io.RawIOBase):
    """A place for bytes that says in one line why it doesn't take them.

    Args:
        stream: what the bytes go to.
        place: what it is called.
    """

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self._stream = stream
        self._place = place
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes-like, always
        """Write all of some bytes.

        Raises:
            Failure: they can't be written.
            PipeClosed: the reader of a pipe went away.
        """
        with output_errors(self._place):
            self._stream.write(data)
        self._written += len(data)
        return len(data)

    def flush(self) -> None:
        # Nobody flushes what is closed but Python itself, when it takes the sink away.
        if not (self.closed or self._stream.closed):
            with output_errors(self._place):
                self._stream.flush()


@contextmanager
def output_errors(place: str) -> Generator[None]:
    """Turn what the system says of an output into what a person is told.

    Args:
        place: of the output, for the message.

    Raises:
        Failure: it can't be written.
        PipeClosed: its reader went away.
    """
    try:
        yield
    except OSError as error:
        # Windows knows no broken pipes: writing to one is an invalid argument.
        if error.errno == errno.EPIPE or (sys.platform == "win32" and error.errno == errno.EINVAL):
            raise PipeClosed from None
        raise cannot_write(error, place) from None


class NewFile:
    """A file that comes to be at its place when it is whole.

    Args:
        path: where; links are followed, so that what they lead to is replaced.

    ``over_input``: it may have been read (a file that is brought up to date).

    Raises:
        Failure: it can't be written there, or it was read.
    """

    def __init__(self, path: str, over_input: bool = False) -> None:
        self._path = path
        self._over_input = over_input
        self._refuse_input()
        self._beside = ""
        try:
            self._target = os.path.realpath(path)
            self._stream = self._opened()
        except ValueError:
            error = OSError(errno.EINVAL, "no file can have this name")
            raise cannot_write(error, path) from None
        except OSError as error:
            raise cannot_write(error, path) from None
        self.sink = Sink(self._stream, path)
        _begun[id(self)] = self

    def _opened(self) -> BinaryIO:
        descriptor = descriptor_of(self._path)
        if descriptor is not None:
            return os.fdopen(os.dup(descriptor), "wb")
        try:
            mode = os.stat(self._target).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if mode is not None and stat.S_ISFIFO(mode):
            return os.fdopen(_pipe(self._target), "wb")
        if mode is not None and not stat.S_ISREG(mode):
            return open(self._target, "wb")
        if mode is not None and not os.access(self._target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        beside = os.path.join(os.path.dirname(self._target), f".irtool-{os.urandom(8).hex()}")
        handle = os.open(
            beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
        )
        self._beside = beside
        if mode is not None:
            try:
                os.chmod(beside, stat.S_IMODE(mode))
            except OSError:  # a file system without modes
                pass
        return os.fdopen(handle, "wb")

    def _refuse_input(self) -> None:
        source = None if self._over_input else inputs().same_as(self._path)
        if source is not None:
            what = "it was read" if source == self._path else f"it is {source}, which was read"
            hint = "give the output another name"
            raise Failure(f"will not replace an input: {what}", self._path, hint=hint, code=CODE)

    def keep(self) -> None:
        """Put the file in its place: it is whole.

        Raises:
            Failure: it can't be written, or an input was found to be there.
            PipeClosed: the reader of a pipe went away.
        """
        try:
            with output_errors(self._path):
                self._stream.close()
                if self._beside:
                    self._refuse_input()
                    os.replace(self._beside, self._target)
                    self._beside = ""
        finally:
            self.discard()

    def discard(self) -> None:
        """Leave everything as it was, if :meth:`keep` was not called."""
        _begun.pop(id(self), None)
        try:
            self._stream.close()
        except OSError:
            pass
        if self._beside:
            try:
                os.unlink(self._beside)
            except OSError:
                pass
            self._beside = ""


_begun: dict[int, NewFile] = {}
"""Files that are being written."""


def discard_all() -> None:
    """Take away all that was begun and not finished."""
    for file in list(_begun.values()):
        file.discard()


def write_file(path: str, text: str, over_input: bool = False) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Args:
        path: where; links are followed.
        text: what the file will hold.
        over_input: it may be a file that was read (one that is brought up to date).

    Raises:
        Failure: it can't be written, or it is an input and may not be.
    """
    cannot_repeat()
    file = NewFile(path, over_input)
    file.sink.write(text.encode("utf-8", "backslashreplace"))
    file.keep()


def _pipe(path: str) -> int:
    """Open a named pipe without waiting for ever for somebody to read it."""
    deadline = time.monotonic() + _READER_PATIENCE
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, "is a pipe that nobody reads") from None
            time.sleep(0.02)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def standard_output() -> Sink:
    """Standard output for bytes, also where it takes only text (a notebook, a test)."""
    stream = getattr(sys.stdout, "buffer", None) or _Text()
    return Sink(cast("BinaryIO", stream), "standard output")


class _Text(io.RawIOBase):
    """Bytes for a standard output that takes only text."""

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes are all it gets
        sys.stdout.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)
