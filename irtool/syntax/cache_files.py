"""The user's folder for caches: files by key, whole or not there, within a bound of bytes.

Everything in it can be made again, and may be deleted at any time.  A file holds data, a digest of
it and the form it has; one that was cut off, changed, or written by another irtool is not there.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b

from irtool.ir.version import VERSION
from irtool.syntax.grammar_files import grammar_folder

FOLDER_VARIABLE = "IRTOOL_CACHE_DIR"
LEAST_KEPT = 256 << 10
"""Bytes of the smallest dump whose model is kept; smaller ones are read as quickly."""
MOST_KEPT = 1 << 30
"""Bytes that all files of one kind take; those that were not asked for the longest go first."""
_MARK = b"irtool kept 1\n"
_DIGEST_SIZE = 16


def cache_folder() -> str:
    """``IRTOOL_CACHE_DIR``, else ``irtool`` in the user's folder for caches."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return chosen
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "irtool")


def digest(*parts: bytes | str) -> bytes:
    """A key made of several parts, of which the boundaries count, too.

    Args:
        parts: bytes, or text, which may hold surrogates.

    Returns:
        20 bytes.
    """
    made = blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.digest()


@lru_cache(maxsize=1)
def program_digest() -> bytes:
    """Of irtool itself: its version, and size and time of its files (for who changes them)."""
    package = os.path.dirname(os.path.dirname(__file__))
    return digest(VERSION, *states_of_files(package, grammar_folder()))


def states_of_files(*folders: str) -> list[str]:
    """Path, size and time of every file below some folders, sorted; what Python compiled is not.

    Args:
        folders: that can be listed; folders below them count.

    Returns:
        Lines of path, bytes and time of change in nanoseconds.
    """
    seen: set[str] = set()
    waiting = list(folders)
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if not entry.is_dir():
                    status = entry.stat()
                    seen.add(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif entry.name != "__pycache__":
                    waiting.append(entry.path)
    return sorted(seen)


class KeptFiles:
    """Files of one kind, by key.

    Args:
        kind: the folder below the user's folder for caches.
        most: bytes that they take together, at most.
    """

    def __init__(self, kind: str, most: int = MOST_KEPT) -> None:
        self._folder = os.path.join(cache_folder(), kind)
        self._most = most

    def get(self, key: bytes) -> bytes | None:
        """What was put there, None where there is nothing, or something damaged."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        start = len(_MARK) + _DIGEST_SIZE
        if not data.startswith(_MARK) or _sum(key, data[start:]) != data[len(_MARK) : start]:
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(OSError):
            os.utime(path)  # it was asked for: others go first
        return data[start:]

    def put(self, key: bytes, data: bytes) -> None:
        """Keep data, written beside and renamed; where that can't be done, nothing is kept."""
        if len(data) > self._most:
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            number, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(_MARK + _sum(key, data))
                    file.write(data)
                os.replace(name, self._path(key))
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
            self._make_room()
        except OSError:
            return

    def _path(self, key: bytes) -> str:
        return os.path.join(self._folder, key.hex())

    def _make_room(self) -> None:
        with os.scandir(self._folder) as entries:
            files = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
        total = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: (file[0].st_mtime_ns, file[1])):
            if total <= self._most:
                return
            with suppress(OSError):
                os.unlink(path)
            total -= status.st_size


def _sum(key: bytes, data: bytes) -> bytes:
    made = blake2b(key, digest_size=_DIGEST_SIZE)
    made.update(data)
    return made.digest()
