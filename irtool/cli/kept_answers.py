"""The same question again: its answer was kept, and is given where nothing it rests on changed.

What an answer rests on is what was seen of files while it was made
(:mod:`irtool.syntax.file_facts`), the words of the command line, the environment, the terminal, and
irtool itself.  All of these are looked at again; contents of files count by their digest.  Answers
that rest on anything else (standard input, a cluster) or did anything but write are not kept.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence

import msgspec

from irtool.cli import report
from irtool.cli.output import NotedOutput, Output, Written, noting_output
from irtool.syntax import file_facts
from irtool.syntax.cache_files import LEAST_KEPT, KeptFiles, digest, program_digest
from irtool.syntax.file_facts import Fact, FileFacts
from irtool.syntax.reading import inputs, note_input, note_input_folder

_MOST_KEPT = 256 << 20
"""Bytes that all kept answers take."""
_NEVER = frozenset(("--no-cache", "--open", "-"))
_OF_THE_SHELL = frozenset(("_", "SHLVL", "OLDPWD", "PWD"))
"""Variables of the environment that differ from one call to the next, and that nothing reads."""


class _Kept(msgspec.Struct, array_like=True):
    """An answer: what it rests on, which files no output may replace, and all that was written."""

    facts: list[Fact]
    files: list[str]
    folders: list[str]
    said: list[str]
    written: list[Written]
    status: int


def answered(words: Sequence[str], answer: Callable[[], object]) -> object:
    """The exit status of a command: what was kept of the same question, or what is made now.

    Args:
        words: the command line behind ``irtool``.
        answer: runs the command.

    Raises:
        Failure: as of ``answer``, or a kept answer can't be written where it shall be.
    """
    if not _can_be_kept(words):
        return answer()
    files = KeptFiles("answers", _MOST_KEPT)
    key = _key(words)
    if (kept := _kept(files, key)) is not None:
        return _told_again(kept)
    with file_facts.noting_facts() as facts, noting_output() as written, report.noting() as said:
        status = answer()
    if isinstance(status, int) and status in (0, 1) and not written.open:
        _keep(files, key, facts, said, written, status)
    return status


def _can_be_kept(words: Sequence[str]) -> bool:
    return _NEVER.isdisjoint(words)


def _key(words: Sequence[str]) -> bytes:
    environment = [(k, v) for k, v in sorted(os.environ.items()) if k not in _OF_THE_SHELL]
    streams = [
        (stream.isatty(), getattr(stream, "encoding", "")) for stream in (sys.stdout, sys.stderr)
    ]
    seen = (list(words), _folder(), environment, streams, tuple(shutil.get_terminal_size()))
    return digest(program_digest(), sys.version, repr(seen))


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was taken away
        return ""


def _kept(files: KeptFiles, key: bytes) -> _Kept | None:
    data = files.get(key)
    if data is None:
        return None
    try:
        kept = msgspec.msgpack.decode(data, type=_Kept)
        return kept if file_facts.are_still(kept.facts) else None
    except (msgspec.DecodeError, LookupError):
        return None


def _told_again(kept: _Kept) -> int:
    for path in kept.files:
        note_input(path)
    for path in kept.folders:
        note_input_folder(path)
    for text in kept.said:
        report.say(text)
    for path, data in kept.written:
        output = Output(path)
        output.binary().write(data)
        output.close()
    return kept.status


def _keep(
    files: KeptFiles,
    key: bytes,
    facts: FileFacts,
    said: list[str],
    output: NotedOutput,
    status: int,
) -> None:
    if output.is_long or facts.bytes_read < LEAST_KEPT or not facts.is_complete:
        return
    rests_on = facts.taken()
    if not facts.is_complete:
        return
    known = inputs()
    kept = _Kept(rests_on, list(known.files), list(known.folders), said, output.written, status)
    files.put(key, msgspec.msgpack.encode(kept))
