"""Bytes of a dump, from wherever they come: file, gzip, xz, pipe, bytes or binary file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import BinaryIO, Union

from irtool.ir.dataclass import dataclass
from irtool.ir.limits import max_dump
from irtool.syntax import file_facts
from irtool.syntax.near_path import path_hint
from irtool.syntax.reading import read_bytes, read_stream, refuse_device
from irtool.syntax.unpacking import Damaged, UnpacksTooFar, packed_as, unpacked

_CHUNK = 1 << 20
NO_MEMORY_HINT = "a machine with more memory reads larger dumps"


class DumpError(Exception):
    """A dump that cannot be read at all; the message says which and why."""

    def __init__(self, path: str, message: str, hint: str = "") -> None:
        super().__init__(path, message, hint)
        self.path = path
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Content:
    """What was read; ``damage`` says why it ends early, empty if it does not."""

    data: bytes
    path: str
    damage: str = ""


PathLike = Union[str, "os.PathLike[str]"]


def read_content(source: PathLike | bytes | BinaryIO, name: str | None = None) -> Content:
    """Read a dump's bytes, decompressing gzip and xz by their first bytes.

    Args:
        source: a path, a dump's bytes, or a binary file at the place where reading begins.
        name: what messages call it; None: its path, or what the file says.

    Raises:
        DumpError: there is no such file, no permission, it is a folder, or too large.
    """
    if isinstance(source, bytes | bytearray):
        return _decompressed(bytes(source), name or "<bytes>")
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return _decompressed(_file_bytes(path), name or path)
    label = name or str(getattr(source, "name", "<stream>"))
    try:
        refuse_device(source, label)
        data = read_stream(lambda: source.read(_CHUNK), label, max_dump())
    except (OSError, ValueError) as error:  # ValueError: the file was closed
        reason = str(getattr(error, "strerror", None) or error)
        raise DumpError(label, reason[:1].lower() + reason[1:]) from None
    return _decompressed(data, label)


def _file_bytes(path: str) -> bytes:
    try:
        return read_bytes(path, max_dump())
    except IsADirectoryError:
        raise DumpError(path, "is a folder, not a dump", "load_run() reads folders") from None
    except OSError as error:
        hints = {
            errno.EFBIG: NO_MEMORY_HINT,
            errno.ENOENT: path_hint(path),
            errno.EACCES: "MindSpore writes dumps readable by their owner only",
        }
        if file_facts.is_folder(path):  # Windows has no error of its own for these
            raise DumpError(path, "is a folder, not a dump", "load_run() reads folders") from None
        reason = error.strerror or str(error)
        raise DumpError(
            path, reason[:1].lower() + reason[1:], hints.get(error.errno or 0, "")
        ) from None


def _decompressed(data: bytes, path: str) -> Content:
    """Expand all members, stopping at damage or at the size limit and saying which."""
    kind = packed_as(data)
    if not kind:
        return Content(data, path)
    made: list[bytes] = []
    size = 0
    damage = ""
    try:
        for chunk in unpacked(_pieces(data), kind):
            made.append(chunk)
            size += len(chunk)
            if size > max_dump():
                raise DumpError(
                    path, f"expands to more than {max_dump() >> 30} GiB", NO_MEMORY_HINT
                )
    except Damaged as error:
        damage = str(error)
    except UnpacksTooFar as error:
        raise DumpError(path, str(error), error.hint) from None
    except ValueError as error:
        raise DumpError(path, str(error)) from None
    return Content(b"".join(made), path, damage)


def _pieces(data: bytes) -> Iterator[bytes]:
    """All bytes in one piece: proportions are those of the whole file."""
    yield data
