"""``irtool explain PATH``: what a failed run left, and what to type next."""

from __future__ import annotations

import glob
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from irtool.cli.begin import BEGIN
from irtool.cli.inputs import STDIN_NAME
from irtool.cli.output import Output
from irtool.cli.report import Failure, report
from irtool.lint.failure.fail_dump import explain_dump, with_rank
from irtool.lint.failure.finding import Explained
from irtool.lint.failure.log import LogReader
from irtool.lint.failure.report import Place, report_of
from irtool.render.explain import explain_document, explain_object
from irtool.render.json import json_text
from irtool.syntax.load import load
from irtool.syntax.printer import dumps
from irtool.syntax.run import Run, load_run
from irtool.syntax.run_expand import STDIN
from irtool.syntax.run_names import parse_name
from irtool.syntax.run_walk import folder_rank, natural
from irtool.syntax.source import DumpError, read_content

MOST_LINE = 1 << 16
"""Most characters of a line that are looked at; the rest is read over."""
_CHUNK = 1 << 20
_PEEK = 1 << 16
_MOST_ODD = 0.3
_DUMP = re.compile(rb"^# ?IR entry ?:|last analyze fail log message|^subgraph @", re.MULTILINE)
_WORKER = re.compile(r"(?:worker|rank)[_.\-]?(\d{1,7})\b.*")
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@dataclass(frozen=True, slots=True)
class _File:
    """A file to explain, its rank, and where its run stands."""

    path: str
    rank: int | None
    place: Place


def explain_paths(paths: Sequence[str], format: str, output: Output) -> int:
    """Explain logs, ``analyze_fail.ir`` and run folders; the exit status.

    Args:
        paths: logs, dumps, folders, or ``-``; ``.gz`` and ``.xz`` as they are.
        format: ``json``, or ``table`` for people.
        output: where to write.

    Returns:
        1 where something was found, 0 where nothing was.

    Raises:
        Failure: nothing could be read, or there is no such format of a failure.
    """
    if format == "markdown":
        raise Failure("--format markdown is for codes", hint="json is for scripts")
    explained: list[tuple[Explained, Place]] = []
    failures: list[Failure] = []
    for path in _expanded(paths):
        try:
            explained += _explained(path)
        except Failure as failure:
            failures.append(failure)
    if not explained:
        raise failures[0] if failures else Failure("give a log, an analyze_fail.ir or a run folder")
    for failure in failures:
        report(failure.place, "error", failure.code, failure.message, hint=failure.hint)
    for each, _ in explained:
        if each.damage:
            report(each.path, "warning", "RUN020", each.damage)
    found = report_of(explained)
    if format == "json":
        output.write(f"{json_text(explain_object(found))}\n")
    else:
        output.show(explain_document(found))
    output.close()
    if failures:
        return 2
    return 1 if found.findings or any(each.damage for each, _ in explained) else 0


def _expanded(paths: Sequence[str]) -> Iterator[str]:
    """The paths, each once; patterns that the shell did not expand stand for what they match."""
    seen: set[str] = set()
    for path in paths:
        found = [path]
        if path != STDIN and not os.path.lexists(path) and set(path) & set("*?["):
            found = sorted(glob.glob(path, recursive=True), key=natural) or [path]
        for each in found:
            if each not in seen:
                seen.add(each)
                yield each


def _explained(path: str) -> Iterator[tuple[Explained, Place]]:
    if os.path.isdir(path):
        yield from _folder(path)
    else:
        rank = _rank_of(path) if path != STDIN else None
        folder = os.path.dirname(path) or "."
        dumps = folder if path != STDIN and _has_dumps(folder) else ""
        yield _one(_File(path, rank, Place(dumps, folder)))


def _has_dumps(folder: str) -> bool:
    """Whether dumps to check stand beside a log."""
    try:
        with os.scandir(folder) as entries:
            return any(parse_name(entry.name).name == BEGIN for entry in entries)
    except OSError:
        return False


# -- folders ------------------------------------------------------------------------------------


def _folder(path: str) -> Iterator[tuple[Explained, Place]]:
    """Logs and ``analyze_fail.ir`` of a run folder; a ``case.json`` may hold a log too."""
    try:
        run = load_run(path)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    files = list(_files(run))
    case = _case_log(path)
    if not files and case is None:
        hint = "looked for *.log, log_output/*/rank.N/stdout and analyze_fail.ir"
        if any(compilation.passes for compilation in run.compilations):
            hint += f"; it holds dumps: irtool check {path}"
        raise Failure("nothing of a failure in this folder", path, hint=hint)
    for file in files:
        yield _one(file)
    if case is not None:
        yield case, Place(path, path)


def _files(run: Run) -> Iterator[_File]:
    has_dumps = any(one.file("step_parallel_begin") for one in run.compilations)
    place = Place(run.path if has_dumps else "", run.path)
    for compilation in run.compilations:
        for file in compilation.passes:
            if file.kind == "failure":
                yield _File(file.path, compilation.rank, place)
    for log in run.logs:
        yield _File(log.path, log.rank if log.rank is not None else _rank_of(log.path), place)


def _case_log(folder: str) -> Explained | None:
    """``log`` and ``error`` of a ``case.json``: what MindSpore said of a compilation."""
    path = os.path.join(folder, "case.json")
    if not os.path.isfile(path):
        return None
    import json

    try:
        with open(path, encoding="utf-8") as file:
            case = cast("dict[str, object]", json.load(file))
    except (OSError, ValueError, RecursionError):
        return None
    log, error = case.get("log"), case.get("error")
    if not isinstance(log, list) or (not log and not error):
        return None
    lines = [str(line) for line in cast("list[object]", log)]
    text = "\n".join([*lines, *([f"RuntimeError: {error}"] if error else [])])
    reader = LogReader(path)
    for number, line in enumerate(text.split("\n"), 1):
        reader.feed(number, line[:MOST_LINE])
    return reader.finish()


def _rank_of(path: str) -> int | None:
    """The rank that a log's name or folder tells: ``worker_3.log``, ``rank.3/stdout.log``."""
    parts = os.path.abspath(path).split(os.sep)
    found = _WORKER.fullmatch(parts[-1])
    return int(found[1]) if found else folder_rank(tuple(parts[:-1]))


# -- files --------------------------------------------------------------------------------------


def _one(file: _File) -> tuple[Explained, Place]:
    name = STDIN_NAME if file.path == STDIN else file.path
    try:
        if file.path == STDIN:
            return _read(cast("BinaryIO", sys.stdin.buffer), name, file), file.place
        if stat.S_ISFIFO(os.stat(file.path).st_mode):
            return _read(io.BytesIO(read_content(file.path).data), name, file), file.place
        with open(file.path, "rb") as stream:
            return _read(stream, name, file), file.place
    except DumpError as error:
        raise Failure(error.message, name, hint=error.hint) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read: {reason}", name, hint="check the path") from None


def _read(raw: BinaryIO, name: str, file: _File) -> Explained:
    stream = _Peeked(raw)
    start = stream.peek()
    packed = {b"\x1f\x8b": gzip.open, b"\xfd7": lzma.open}.get(start[:2])
    if packed is not None:
        stream = _Peeked(cast("BinaryIO", packed(cast("io.BufferedReader", stream), "rb")))
        start = stream.peek()
    if _DUMP.search(start):
        return _dump(stream, name, file)
    if not _is_text(start):
        raise Failure("is no text: neither a log nor a dump", name)
    return _log(stream, name, file)


def _is_text(start: bytes) -> bool:
    """Whether a file can be a log: garbage has other bytes in it, and many of them."""
    text = start.decode("utf-8", "replace")
    odd = sum(char == "\ufffd" or (char < " " and char not in "\t\n\r\x1b") for char in text)
    return odd <= _MOST_ODD * len(text)


def _dump(stream: _Peeked, name: str, file: _File) -> Explained:
    damage = ""
    chunks: list[bytes] = []
    try:
        while chunk := stream.read(_CHUNK):
            chunks.append(chunk)
    except _DAMAGE as error:
        damage = f"the file is damaged, the rest is not read: {error}"
    dump = load(b"".join(chunks), name)
    found = with_rank(explain_dump(dump, dumps(dump).splitlines()), file.rank)
    if dump.problems and not damage:
        first = dump.problems[0]
        damage = f"line {first.line}: {first.message}" if not found.findings else ""
    return Explained(
        name, found.kind, found.lines, found.rank, found.findings, found.left_out, damage
    )


def _log(stream: _Peeked, name: str, file: _File) -> Explained:
    reader = LogReader(name, file.rank)
    damage = ""
    number = 0
    try:
        for number, line in enumerate(_lines(stream), 1):
            reader.feed(number, line)
    except _DAMAGE as error:
        damage = f"the file is damaged, what follows line {number:,} is not read: {error}"
    return reader.finish(damage)


def _lines(stream: _Peeked) -> Iterator[str]:
    """Lines without their ends, of which no more than :data:`MOST_LINE` bytes are kept."""
    begun = b""
    while chunk := stream.read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield _text(begun + line[: MOST_LINE - len(begun)])
            begun = b""
        begun = (begun + rest)[:MOST_LINE]
    if begun:
        yield _text(begun)


def _text(line: bytes) -> str:
    return line[:MOST_LINE].rstrip(b"\r").decode("utf-8", "surrogateescape")


class _Peeked(io.RawIOBase):
    """A stream whose beginning can be looked at; what stands before a damage is not lost."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ahead = b""
        self._damage: Exception | None = None

    def peek(self) -> bytes:
        """The first bytes."""
        while len(self._ahead) < _PEEK and (chunk := self._piece(_PEEK)):
            self._ahead += chunk
        return self._ahead

    def _piece(self, size: int) -> bytes:
        if self._damage is not None:
            return b""
        read = getattr(self._stream, "read1", self._stream.read)
        try:
            return read(size) or b""
        except _DAMAGE as error:
            self._damage = error
            return b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if not self._ahead:
            self._ahead = self._piece(_CHUNK if size < 0 else size)
        if not self._ahead and self._damage is not None:
            raise self._damage
        size = len(self._ahead) if size < 0 else size
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        return taken
