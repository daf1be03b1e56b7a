"""What an answer rests on: all that was seen of files and folders while it was made.

Whoever asks the file system while a command runs asks here (a test keeps it so), so that the same
question can be answered again without asking anything but whether all of this is still so
(:mod:`irtool.cli.kept_answers`).  Contents count by their digest, never by their time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from hashlib import blake2b

Fact = tuple[str, str, str]
"""What was asked, of which path, and the answer."""
_CHUNK = 1 << 20
_SETTLED_NS = 2_000_000_000
"""After so long without a change, the next one shows in a file's time on any file system."""


class FileFacts:
    """What was seen since this was made.

    Attributes:
        bytes_read: of files that were read whole.
        is_complete: whether nothing else was looked at (standard input, what other machines read).
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], str] = {}
        self._streams: dict[str, tuple[int, ...]] = {}
        self.bytes_read = 0
        self.is_complete = True

    def note(self, question: str, path: str, answer: str) -> None:
        """An answer of the file system; two that differ are of files that change meanwhile."""
        if self._answers.setdefault((question, path), answer) != answer:
            self.is_complete = False

    def note_stream(self, path: str) -> None:
        """A file that is read piece by piece from now on: its digest is made at the end."""
        state = _state(path)
        if state and time.time_ns() - state[2] < _SETTLED_NS:
            state = ()
        if self._streams.setdefault(path, state) != state or not state:
            self.is_complete = False

    def add(self, facts: Iterable[Fact], bytes_read: int, is_complete: bool) -> None:
        """Take in what another process saw while it worked on the same answer."""
        for fact in facts:
            self.note(*fact)
        self.bytes_read += bytes_read
        self.is_complete = self.is_complete and is_complete

    def taken(self) -> list[Fact]:
        """All of it; files that were read in pieces are read once more for their digests."""
        for path, state in self._streams.items():
            self.note("bytes", path, _content(path))
            if _state(path) != state:
                self.is_complete = False
        return [(question, path, answer) for (question, path), answer in self._answers.items()]


_facts: FileFacts | None = None


@contextmanager
def noting_facts() -> Generator[FileFacts]:
    """Note what is seen until the end of a block, in whichever thread."""
    global _facts
    before, _facts = _facts, FileFacts()
    try:
        yield _facts
    finally:
        _facts = before


def noted_facts() -> FileFacts | None:
    """What was seen so far; None where nobody notes it."""
    return _facts


def cannot_repeat() -> None:
    """Say that the answer rests on something that can't be looked at again."""
    if _facts is not None:
        _facts.is_complete = False


def are_still(facts: Iterable[Fact]) -> bool:
    """Whether all that was seen of files is so now.

    Args:
        facts: each a question, a path, and the answer that was given then.
    """
    return all(_QUESTIONS[question](path) == answer for question, path, answer in facts)


# -- questions ---------------------------------------------------------------------------------


def is_file(path: str) -> bool:
    """Whether a path leads to a file.

    Args:
        path: links are followed.
    """
    return _asked("kind", path) == "file"


def is_folder(path: str) -> bool:
    """Whether a path leads to a folder.

    Args:
        path: links are followed.
    """
    return _asked("kind", path) == "folder"


def exists(path: str) -> bool:
    """Whether a path leads anywhere.

    Args:
        path: links are followed.
    """
    return _asked("kind", path) != ""


def is_there(path: str) -> bool:
    """Whether something is at a path, be it a link that leads nowhere.

    Args:
        path: whose own entry counts.
    """
    return _asked("there", path) != ""


def is_readable(path: str) -> bool:
    """Whether we may read what a path leads to.

    Args:
        path: links are followed.
    """
    return _asked("readable", path) != ""


def real_path(path: str) -> str:
    """The path without links.

    Args:
        path: relative to the working folder, or absolute; it need not exist.
    """
    return _asked("real", path)


def file_size(path: str) -> int:
    """Bytes of a file; 0 where there is none.

    Args:
        path: links are followed.
    """
    return int(_asked("size", path) or 0)


def names_in(folder: str) -> list[str]:
    """Names in a folder, in no order that means anything.

    Args:
        folder: to be listed.

    Raises:
        OSError: it can't be listed.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        if _facts is not None:
            _facts.note("names", folder, "")
        raise
    if _facts is not None:
        _facts.note("names", folder, _digest_of_names(names))
    return names


def note_entries(folder: str, entries: Iterable[os.DirEntry[str]]) -> None:
    """Note that a folder was listed, and what its entries are.

    Args:
        folder: the path.
        entries: as the operating system gave them.
    """
    if _facts is not None:
        _facts.note("entries", folder, _digest_of_entries(entries))


def note_no_entries(folder: str) -> None:
    """Note that a folder could not be listed.

    Args:
        folder: the path.
    """
    if _facts is not None:
        _facts.note("entries", folder, "")


def note_size(path: str, size: int) -> None:
    """Note that the answer rests on the size of a file, which was known already.

    Args:
        path: of the file.
        size: in bytes.
    """
    if _facts is not None:
        _facts.note("size", path, str(size))


def note_content(path: str, data: bytes) -> None:
    """Note that a file was read, and what it held.

    Args:
        path: of the file.
        data: all of its bytes, of which the digest is noted.
    """
    if _facts is not None:
        _facts.note("bytes", path, _digest(data))
        _facts.bytes_read += len(data)


def note_unread(path: str) -> None:
    """Note that a file could not be read.

    Args:
        path: of the file.
    """
    if _facts is not None:
        _facts.note("bytes", path, "")


def note_stream(path: str) -> None:
    """Note that a file is read piece by piece from now on; its digest is made at the end.

    Args:
        path: of the file.
    """
    if _facts is not None:
        _facts.note_stream(path)


# -- answers -----------------------------------------------------------------------------------


def _asked(question: str, path: str) -> str:
    answer = _QUESTIONS[question](path)
    if _facts is not None:
        _facts.note(question, path, answer)
    return answer


def _kind(path: str) -> str:
    if os.path.isfile(path):
        return "file"
    if os.path.isdir(path):
        return "folder"
    return "other" if os.path.exists(path) else ""


def _there(path: str) -> str:
    return "there" if os.path.lexists(path) else ""


def _readable(path: str) -> str:
    return "readable" if os.access(path, os.R_OK) else ""


def _size(path: str) -> str:
    try:
        return str(os.stat(path).st_size)
    except (OSError, ValueError):
        return ""


def _content(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""  # a named pipe can be read only once
        with open(path, "rb") as file:
            made = blake2b(digest_size=16)
            while chunk := file.read(_CHUNK):
                made.update(chunk)
            return made.hexdigest()
    except (OSError, ValueError):
        return ""


def _names(folder: str) -> str:
    try:
        return _digest_of_names(os.listdir(folder))
    except (OSError, ValueError):
        return ""


def _entries(folder: str) -> str:
    try:
        with os.scandir(folder) as entries:
            return _digest_of_entries(entries)
    except (OSError, ValueError):
        return ""


def _digest_of_names(names: Iterable[str]) -> str:
    return _digest("\0".join(sorted(names)).encode("utf-8", "surrogateescape"))


def _digest_of_entries(entries: Iterable[os.DirEntry[str]]) -> str:
    """Of names, of which entries are folders, and of where links lead."""
    lines = sorted(f"{entry.name}\0{_is_folder(entry)}\0{_target(entry)}" for entry in entries)
    return _digest("\0\0".join(lines).encode("utf-8", "surrogateescape"))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _target(entry: os.DirEntry[str]) -> str:
    try:
        return os.path.realpath(entry.path) if entry.is_symlink() else ""
    except OSError:
        return ""


def _state(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


_QUESTIONS: dict[str, Callable[[str], str]] = {
    "kind": _kind,
    "there": _there,
    "readable": _readable,
    "real": os.path.realpath,
    "size": _size,
    "names": _names,
    "entries": _entries,
    "bytes": _content,
}
"""In the order of their cost."""
