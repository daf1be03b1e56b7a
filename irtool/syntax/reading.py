"""Reading of files: within bounds, without waiting for ever, and noted as inputs.

Whatever irtool reads apart from tensors goes through here.  Failures are :class:`OSError` with a
text for people in ``strerror``, so that a caller need not tell too large from not there.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, NoReturn, cast

from irtool.ir.limits import MAX_DEPTH, MAX_DOCUMENT, MAX_SETTINGS, max_dump
from irtool.syntax import file_facts

_CHUNK = 1 << 20
_WRITER_PATIENCE = 2.0
"""Seconds that a named pipe may have no writer."""

# -- what was read -----------------------------------------------------------------------------


class Inputs:
    """Files and folders that were read, which no output may replace."""

    def __init__(self) -> None:
        self._files: dict[str, None] = {}
        self._folders: dict[str, None] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """Files that are or will be read."""
        return tuple(self._files)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders all of whose files are inputs."""
        return tuple(self._folders)

    def add(self, path: str) -> None:
        """A file that is or will be read."""
        self._files[path] = None

    def add_folder(self, path: str) -> None:
        """A folder all of whose files are inputs (a tensor dump)."""
        self._folders[path] = None

    def same_as(self, path: str) -> str | None:
        """The input that is the same file as ``path``, whatever links lead there.

        ``path`` may lead through folders that are not there: what is written is put where it leads
        without them.
        """
        try:
            status = os.stat(os.path.realpath(path))
        except (OSError, ValueError):
            return None
        folder = os.path.dirname(os.path.realpath(path))
        for known in self._folders:
            if os.path.realpath(known) == folder:
                return path
        return next((file for file in self._files if _is_same(file, status)), None)


def _is_same(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), status)
    except (OSError, ValueError):
        return False


_inputs: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextmanager
def noted_inputs() -> Generator[Inputs]:
    """Note what is read from here on."""
    made = Inputs()
    token = _inputs.set(made)
    try:
        yield made
    finally:
        _inputs.reset(token)


def inputs() -> Inputs:
    """What was read so far; nothing where nobody asked for it to be noted."""
    return _inputs.get() or Inputs()


def note_input(path: str) -> None:
    """Say that a file is read, where that does not happen here.

    Args:
        path: of the file.
    """
    if (known := _inputs.get()) is not None:
        known.add(path)


def note_input_folder(path: str) -> None:
    """Say that the files of a folder are read.

    Args:
        path: of the folder.
    """
    if (known := _inputs.get()) is not None:
        known.add_folder(path)


# -- bytes and text ----------------------------------------------------------------------------


def opened(path: str) -> BinaryIO:
    """A file, opened for reading; of a named pipe all that is written into it.

    Args:
        path: of the file; the caller closes what comes.

    Raises:
        OSError: it can't be read; also where the name can't be one.
    """
    note_input(path)
    file_facts.note_stream(path)
    try:
        if (data := _special_bytes(path, max_dump())) is not None:
            return io.BytesIO(data)
        return open(path, "rb")  # the caller closes it
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name", path) from None


def read_bytes(path: str, most: int = MAX_DOCUMENT) -> bytes:
    """All bytes of a file.

    Args:
        path: of the file, or of a named pipe.
        most: bytes that are accepted.

    Raises:
        OSError: it can't be read, is larger than ``most`` bytes, is a pipe without a writer or a
            device that isn't empty.
    """
    note_input(path)
    try:
        if (data := _special_bytes(path, most)) is not None:
            return data
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size > most:  # not known of what isn't on a disk
                raise _too_large(path, most)
            data = read_stream(lambda: file.read(_CHUNK), path, most)
    except OSError:
        file_facts.note_unread(path)
        raise
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name", path) from None
    file_facts.note_content(path, data)
    return data


def read_text(path: str, most: int = MAX_SETTINGS, errors: str = "strict") -> str:
    """All text of a file in UTF-8, with or without a byte order mark; line ends become line feeds.

    Args:
        path: of the file.
        most: bytes that are accepted.
        errors: what Python's decoder does with bytes that are not UTF-8.

    Raises:
        OSError: as of :func:`read_bytes`, or it is no text in UTF-8.
    """
    try:
        text = read_bytes(path, most).decode("utf-8", errors)
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "is no text in UTF-8", path) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def read_stream(read: Callable[[], bytes | None], path: str, most: int = MAX_DOCUMENT) -> bytes:
    """All that ``read`` gives, a piece a call.

    Args:
        read: called until it gives nothing.
        path: that the message names.
        most: bytes that are accepted.

    Raises:
        OSError: it is more than ``most`` bytes.
    """
    chunks: list[bytes] = []
    size = 0
    while chunk := read():
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise _too_large(path, most)
    return b"".join(chunks)


def _too_large(path: str, most: int) -> OSError:
    bound = f"{most >> 30} GiB" if most >> 30 else f"{most >> 20} MiB"
    return OSError(errno.EFBIG, f"is larger than {bound}", path)


def _special_bytes(path: str, most: int) -> bytes | None:
    """What a pipe or an empty device holds; None of what is read as a file."""
    mode = os.stat(path).st_mode
    if stat.S_ISFIFO(mode):
        file_facts.cannot_repeat()
        return _pipe_bytes(path, most)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        file_facts.cannot_repeat()
        return _device_bytes(path)
    return None


def _device_bytes(path: str) -> bytes:
    """Nothing, which is all that ``/dev/null`` holds: others need not end, or wait for somebody."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        is_empty = not os.read(descriptor, 1)
    except BlockingIOError:
        is_empty = False
    finally:
        os.close(descriptor)
    if not is_empty:
        raise _is_device(path)
    return b""


def refuse_device(file: BinaryIO, label: str) -> None:
    """Make sure that an open file is no device such as ``/dev/zero``, which never ends.

    Args:
        file: standard input, say. Terminals are read as they are: somebody ends what they type.
        label: that the message names.

    Raises:
        OSError: it is one, and isn't empty.
    """
    try:
        descriptor = file.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, AttributeError):  # bytes in memory
        return
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not os.isatty(descriptor) and file.read(1):
        raise _is_device(label)


def _is_device(path: str) -> OSError:
    return OSError(errno.EINVAL, "is a device, not a file", path)


def _pipe_bytes(path: str, most: int) -> bytes:
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
                raise OSError(errno.ENXIO, "is a pipe that nobody writes into", path)
            time.sleep(0.02)

    try:
        return read_stream(read, path, most)
    finally:
        os.close(descriptor)


# -- JSON --------------------------------------------------------------------------------------


class JsonError(ValueError):
    """A text that is no JSON, or nothing that irtool takes as such; with line and column."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def parse_json(text: str | bytes, *, special: bool = False) -> object:
    """The value of a JSON text.

    Args:
        text: in UTF-8.
        special: take ``NaN`` and ``Infinity``, which are no JSON but which Python writes.

    Raises:
        JsonError: it is none, nested too deeply, or holds a number that no computer keeps.
    """
    if special:
        options: dict[str, Any] = {}
    else:
        options = {"parse_constant": _refused, "parse_float": _finite}
    if not hasattr(sys, "get_int_max_str_digits"):  # before 3.10.7 nothing bounds them
        options["parse_int"] = _whole
    try:
        value: object = json.loads(text, **options)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except UnicodeDecodeError:
        raise JsonError("is no text in UTF-8") from None
    except ValueError as error:
        is_long = "digits" in str(error)
        raise JsonError("a number of thousands of digits" if is_long else str(error)) from None
    _check_depth(value)
    return value


def read_json(path: str, most: int = MAX_SETTINGS, *, special: bool = False) -> object:
    """The value in a JSON file.

    Args:
        path: of the file.
        most: bytes that are accepted.
        special: whether NaN and Infinity are numbers.

    Raises:
        OSError: as of :func:`read_bytes`.
        JsonError: as of :func:`parse_json`.
    """
    return parse_json(read_bytes(path, most), special=special)


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def _whole(text: str) -> int:
    if len(text) > 4300:
        raise ValueError("too many digits")
    return int(text)


def _check_depth(value: object) -> None:
    """Make sure that functions which call themselves can walk a value."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [below for item in level for below in _members(item)]
        if not level:
            return
    raise JsonError("nested too deeply")


def _members(value: object) -> list[object]:
    """What a list or table of JSON holds that may hold something itself."""
    if isinstance(value, dict):
        value = list(cast("dict[str, object]", value).values())
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[object]", value) if isinstance(item, dict | list)]
