"""Turns the paths of a command line into files: the one place where folders are opened."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.groups import is_rank
from irtool.ir.run import InputFile
from irtool.syntax import file_facts
from irtool.syntax.near_path import path_hint
from irtool.syntax.run import Run, all_files, load_run
from irtool.syntax.run.context import context_beside
from irtool.syntax.run.folders import folder_rank_of, natural
from irtool.syntax.run.names import is_dump, parse_name
from irtool.syntax.source import DumpError

STDIN = "-"
_MAGIC = frozenset("*?[")
_MOST_MATCHES = 1_000_000


@dataclass(frozen=True, slots=True)
class Expansion:
    """Files to read in the order given, the runs of folders, and what could not be opened."""

    files: tuple[InputFile, ...]
    runs: tuple[Run, ...] = ()
    problems: tuple[Finding, ...] = ()


def expand(paths: Sequence[str]) -> Expansion:
    """Find the files that command-line paths mean.

    A path is a dump (whatever its name), ``-`` for standard input, a folder, a run folder, or a
    glob that the shell did not expand.  In folders, and among what a glob finds, only files that
    are dumps by their names count.  Nothing is read but ``case.json`` files.

    Args:
        paths: as they were written.

    Returns:
        Files in the order of the paths, each once, runs, and a problem for each path that leads
        nowhere.
    """
    files: dict[str, InputFile] = {}
    runs: list[Run] = []
    problems: list[Finding] = []
    for path in paths:
        before = len(files) + len(problems)
        if path == STDIN:
            files.setdefault(path, InputFile(path))
        elif file_facts.is_there(path):
            _add(path, files, runs, problems)
        elif _MAGIC & set(path):
            _add_matches(path, files, runs, problems)
            if len(files) + len(problems) == before:
                problems.append(_problem("RUN011", path, "nothing matches", "check the path"))
        else:
            hint = path_hint(path)
            problems.append(_problem("RUN010", path, "no such file or folder", hint))
    return Expansion(tuple(files.values()), tuple(runs), tuple(problems))


def _add(path: str, files: dict[str, InputFile], runs: list[Run], problems: list[Finding]) -> None:
    """Add one path that is there."""
    try:
        os.stat(path)
    except OSError as error:
        file_facts.cannot_repeat()
        reason = (error.strerror or str(error)).lower()
        problems.append(_problem("RUN010", path, reason, "check the path"))
        return
    if file_facts.is_folder(path):
        _add_folder(path, files, runs, problems)
    elif _readable(path, problems):
        files.setdefault(path, _single(path))


def _readable(path: str, problems: list[Finding]) -> bool:
    if file_facts.is_readable(path):
        return True
    hint = "MindSpore writes dumps readable by their owner only"
    problems.append(_problem("RUN012", path, "permission denied", hint))
    return False


def _add_folder(
    path: str, files: dict[str, InputFile], runs: list[Run], problems: list[Finding]
) -> None:
    try:
        run = load_run(path)
    except DumpError as error:
        problems.append(_problem("RUN012", path, error.message, error.hint))
        return
    problems += run.problems
    runs.append(run)
    has_dumps = False
    for compilation, file in all_files(run):
        has_dumps = True
        if _readable(file.path, problems):
            made = InputFile(file.path, file.rank, compilation.index, file.name, path)
            files.setdefault(file.path, made)
    if not has_dumps:
        problems.append(_problem("RUN013", path, "no dumps in this folder", _hint(run)))


def _hint(run: Run) -> str:
    """What to do about a folder without dumps, by what else is in it."""
    if run.tensor_dumps or run.msprobe or run.losses:
        return "it holds tensor dumps, losses or logs only: `irtool diff` compares these"
    return (
        "dumps end with .ir (.gz, .xz); MindSpore writes them with MS_DEV_SAVE_GRAPHS=1 to "
        "MS_DEV_SAVE_GRAPHS_PATH"
    )


def _single(path: str) -> InputFile:
    """A file that was named itself: its rank is what its folders or its ``case.json`` say."""
    rank = folder_rank_of(path)
    if rank is None:
        global_rank = (context_beside(path) or {}).get("global_rank")
        rank = global_rank if isinstance(global_rank, int) and is_rank(global_rank) else None
    return InputFile(path, rank, None, parse_name(os.path.basename(path)).name)


def _add_matches(
    pattern: str, files: dict[str, InputFile], runs: list[Run], problems: list[Finding]
) -> None:
    matches = sorted(_matches(pattern, problems), key=natural)
    wanted = [
        path for path in matches if file_facts.is_folder(path) or is_dump(os.path.basename(path))
    ]
    folders = [path for path in wanted if file_facts.is_folder(path)]
    # A pattern that means other files (``*.dat``) says so; folders without dumps are no mistake
    # of somebody who wrote ``*``, as long as there is anything to read.
    others = [] if wanted else matches
    for path in [path for path in wanted if path not in set(folders)] + others:
        _add(path, files, runs, problems)
    for path in folders:
        complaints: list[Finding] = []
        _add(path, files, runs, complaints)
        problems += [item for item in complaints if item.code != "RUN013"]


def _matches(pattern: str, problems: list[Finding]) -> Iterator[str]:
    """Paths that match; ``**`` stands for any folders, and loops of links end."""
    drive, rest = os.path.splitdrive(pattern)
    start = drive + os.sep if rest.startswith(os.sep) else drive
    parts = [part for part in rest.split(os.sep) if part]
    for count, path in enumerate(_below(start, parts, set())):
        if count == _MOST_MATCHES:
            problems.append(_problem("RUN002", pattern, "too many matches: the rest is left out"))
            return
        yield path


def _below(folder: str, parts: Sequence[str], seen: set[tuple[int, int, int]]) -> Iterator[str]:
    if not parts:
        yield folder
        return
    head, rest = parts[0], parts[1:]
    if not _MAGIC & set(head):
        path = os.path.join(folder, head)
        if file_facts.is_there(path):
            yield from _below(path, rest, seen)
        return
    try:
        status = os.stat(folder or os.curdir)
        place = (status.st_dev, status.st_ino, len(parts))
        if place in seen:
            return
        seen.add(place)
        names = sorted(file_facts.names_in(folder or os.curdir))
    except OSError:
        return
    if head == "**":
        yield from _below(folder, rest, seen)
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith(".") and not head.startswith("."):
            continue
        if head == "**":
            if file_facts.is_folder(path):
                yield from _below(path, parts, seen)
            elif not rest:
                yield path
        elif fnmatch.fnmatchcase(name, head) and (not rest or file_facts.is_folder(path)):
            yield from _below(path, rest, seen)


def _problem(code: str, path: str, message: str, hint: str = "") -> Finding:
    severity = "warning" if code == "RUN002" else "error"
    return Finding(code, severity, message, path, 1, hint=hint)
