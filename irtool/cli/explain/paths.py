"""``irtool explain PATH``: what a failed run left, and what to type next."""

from __future__ import annotations

import glob
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import BinaryIO, cast

from irtool.cli.answering import DocumentForm, write_answer
from irtool.cli.failing import FailLevel, fails
from irtool.cli.inputs.begin import BEGIN
from irtool.cli.inputs.dumps import STDIN_NAME
from irtool.cli.output import Output
from irtool.cli.report import Failure, report
from irtool.ir.dataclass import dataclass
from irtool.ir.limits import max_dump
from irtool.linting.failure.fail_dump import explain_dump, with_rank
from irtool.linting.failure.finding import Explained
from irtool.linting.failure.log import LogReader
from irtool.linting.failure.report import Place, report_of
from irtool.report.explain import explain_answer, explain_report
from irtool.syntax.lines import MOST_LINE, chunks_of, lines_in
from irtool.syntax.load import load
from irtool.syntax.printer import dumps
from irtool.syntax.reading import opened, read_json
from irtool.syntax.run import Run, load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.folders import folder_rank, natural
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError
from irtool.syntax.unpacking import Damaged, UnpacksTooFar

_PEEK = 1 << 16
_MOST_ODD = 0.3
_DUMP = re.compile(rb"^# ?IR entry ?:|last analyze fail log message|^subgraph @", re.MULTILINE)
_WORKER = re.compile(r"(?:worker|rank)[_.\-]?(\d{1,7})\b.*")
_DAMAGE = (Damaged, UnpacksTooFar)


@dataclass(frozen=True, slots=True)
class _File:
    """A file to explain, its rank, and where its run stands."""

    path: str
    rank: int | None
    place: Place


def explain_paths(
    paths: Sequence[str],
    format: DocumentForm,
    output: Output,
    fail_on: FailLevel = FailLevel.warning,
) -> int:
    """Explain logs, ``analyze_fail.ir`` and run folders; the exit status.

    Args:
        paths: logs, dumps, folders, or ``-``; ``.gz`` and ``.xz`` as they are.
        format: any but Markdown.
        output: where to write.
        fail_on: from which severity on it counts.

    Returns:
        1 where errors or warnings were found, 0 where none were.

    Raises:
        Failure: nothing could be read, or there is no such format of a failure.
    """
    if format is DocumentForm.markdown:
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
    for part, _ in explained:
        if part.damage:
            report(part.path, "warning", "RUN020", part.damage)
    explanation = report_of(explained)
    read = {part.path for part, _ in explained} | set(paths)
    findings = tuple(
        replace(finding, command=_helpful(finding.command, read))
        for finding in explanation.findings
    )
    explanation = replace(explanation, findings=findings)
    write_answer(
        output,
        format,
        answer=lambda: explain_answer(explanation),
        report=lambda _: explain_report(explanation),
    )
    if failures:
        return 2
    damaged = any(part.damage for part, _ in explained)
    return fails(
        fail_on,
        "warning" if damaged else None,
        those=(finding.severity for finding in explanation.findings),
    )


def _helpful(command: str, read: Set[str]) -> str:
    """A command to type next; none that names a file which is not there, or was just explained."""
    words = shlex.split(command)
    if words[:2] != ["irtool", "explain"] or len(words) < 3:
        return command
    return command if os.path.exists(words[2]) and words[2] not in read else ""


def _expanded(paths: Sequence[str]) -> Iterator[str]:
    """The paths, each once; patterns that the shell did not expand stand for what they match."""
    seen: set[str] = set()
    for path in paths:
        names = [path]
        if path != STDIN and not os.path.lexists(path) and set(path) & set("*?["):
            names = sorted(glob.glob(path, recursive=True), key=natural) or [path]
        for name in names:
            if name not in seen:
                seen.add(name)
                yield name


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
        raise Failure("no log or dump of a failed run in this folder", path, hint=hint)
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
    try:
        case = read_json(path)
    except (OSError, ValueError):
        return None
    if not isinstance(case, dict):
        return None
    case = cast("dict[str, object]", case)
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
    match = _WORKER.fullmatch(parts[-1])
    return int(match[1]) if match else folder_rank(tuple(parts[:-1]))


# -- files --------------------------------------------------------------------------------------


def _one(file: _File) -> tuple[Explained, Place]:
    name = STDIN_NAME if file.path == STDIN else file.path
    try:
        if file.path == STDIN:
            return _read(cast("BinaryIO", sys.stdin.buffer), name, file), file.place
        with opened(file.path) as stream:
            return _read(stream, name, file), file.place
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read: {reason}", name, hint="check the path") from None
    except ValueError as error:
        raise Failure(str(error), name) from None


def _read(raw: BinaryIO, name: str, file: _File) -> Explained:
    stream = _Peeked(chunks_of(raw))
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
    size = 0
    try:
        for chunk in stream:
            chunks.append(chunk)
            size += len(chunk)
            if size > max_dump():
                raise Failure(f"is larger than {max_dump() >> 30} GiB", name)
    except _DAMAGE as error:
        damage = f"{error}, the rest is not read"
    dump = load(b"".join(chunks), name)
    explained = with_rank(explain_dump(dump, dumps(dump).splitlines()), file.rank)
    if dump.problems and not damage:
        first = dump.problems[0]
        damage = f"line {first.line}: {first.message}" if not explained.findings else ""
    return Explained(
        name,
        explained.kind,
        explained.lines,
        explained.rank,
        explained.findings,
        explained.left_out,
        damage,
    )


def _log(stream: _Peeked, name: str, file: _File) -> Explained:
    reader = LogReader(name, file.rank)
    damage = ""
    number = 0
    try:
        for number, line in enumerate(lines_in(stream), 1):
            reader.feed(number, line.decode("utf-8", "surrogateescape"))
    except _DAMAGE as error:
        damage = f"{error}, what follows line {number:,} is not read"
    return reader.finish(damage)


class _Peeked:
    """Pieces of a file whose beginning can be looked at; what precedes a damage is not lost."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ahead: list[bytes] = []
        self._damage: Exception | None = None

    def peek(self) -> bytes:
        """The first bytes of the stream, which whoever reads it gets again."""
        size = 0
        while size < _PEEK and self._damage is None:
            try:
                piece = next(self._pieces, b"")
            except _DAMAGE as error:
                self._damage = error
                break
            if not piece:
                break
            self._ahead.append(piece)
            size += len(piece)
        return b"".join(self._ahead)[:_PEEK]

    def __iter__(self) -> Iterator[bytes]:
        yield from self._ahead
        self._ahead.clear()
        if self._damage is not None:
            raise self._damage
        yield from self._pieces
