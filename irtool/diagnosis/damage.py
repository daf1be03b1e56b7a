"""Dumps of a run that lack a part: each is told, and nothing is concluded from what it lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, diagnosis
from irtool.diagnosis.subject import Subject
from irtool.ir.finding import Finding
from irtool.ir.run import PassFile
from irtool.ir.units import numbered_text
from irtool.syntax.reading import opened
from irtool.syntax.run.names import parse_name

_TAIL = 4096
"""Bytes in which a dump ends: a closed graph, and lines of ``#`` behind it."""


def look_at_ends(subject: Subject, names: Iterable[str]) -> None:
    """Read dumps of ranks that nobody read, if their ends look cut off.

    Args:
        subject: the run, whose ``damage`` is filled.
        names: of passes.
    """
    with suppress(CannotJudge):
        for name in names:
            for compilation in subject.compilations.values():
                file = compilation.file(name)
                if file is not None and file.path not in subject.dumps and not _is_closed(file):
                    with suppress(CannotJudge):
                        subject.read(compilation, file)


def _is_closed(file: PassFile) -> bool:
    """Whether a dump ends as whole ones do; what is packed is not looked into."""
    if file.path.endswith((".gz", ".xz")):
        return True
    try:
        with opened(file.path) as content:
            content.seek(max(0, file.size - _TAIL))
            lines = content.read().splitlines()
    except OSError:
        return True  # whoever reads it says why it can't be read
    closing = (line for line in reversed(lines) if line.strip() and not line.startswith(b"#"))
    return next(closing, b"") == b"}"


def damaged(subject: Subject, damage: Mapping[str, Finding]) -> Iterator[Diagnosis]:
    """An error for each pass whose dumps lack a part, on whatever ranks.

    A rank that left nothing behind it may have stopped while it was written.

    Args:
        subject: the run.
        damage: what tells it, by the dump's path.
    """
    alike: dict[tuple[str, str, bool], list[str]] = {}
    for path, problem in sorted(damage.items()):
        name = parse_name(os.path.basename(path)).name
        alike.setdefault((name, problem.code, _is_last(subject, path)), []).append(path)
    for (_, code, is_last), paths in alike.items():
        first, problem = paths[0], damage[paths[0]]
        held = {rank for path in paths for rank in _ranks(subject, path)}
        ranks = tuple(sorted(held))
        of = f" of {numbered_text('rank', ranks)}" if ranks else ""
        hint = "" if is_last else "; later dumps are there: copy it again"
        yield diagnosis(
            "failed-node" if is_last else "lint",
            "error",
            f"the dump {os.path.basename(first)}{of} is damaged ({code}): {problem.message}{hint}",
            ("irtool", "lint", first, "--select", "SYN"),
            rank=subject.rank_of(first),
            ranks=ranks,
            file=first,
            line=problem.line,
        )


def _ranks(subject: Subject, path: str) -> tuple[int, ...]:
    """The ranks whose dumps are equal to this one."""
    rank = subject.rank_of(path)
    classes = subject.run.classes(subject.graph)
    groups = (one.ranks for one in classes if one.file is not None and one.file.path == path)
    return next(groups, () if rank is None else (rank,))


def _is_last(subject: Subject, path: str) -> bool:
    """Whether a compilation left no dump behind this one."""
    for compilation in subject.run.compilations:
        names = [file.path for file in compilation.passes]
        if path in names:
            return names.index(path) == len(names) - 1
    return False
