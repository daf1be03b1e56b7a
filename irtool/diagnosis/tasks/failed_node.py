"""Did a rank or its machine fail, so that the others waited for it?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.failures import logged_causes
from irtool.diagnosis.subject import BEGIN, VALIDATE, Reads, Subject
from irtool.ir.units import ranks_text

TASK: Task = "failed-node"
READS: Reads = "validate"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error where a log tells of a device or peer that is gone, or a rank stopped half-way.

    Args:
        subject: the run.

    Raises:
        CannotJudge: there is no compilation; or no log, in a run of one rank.
    """
    yield from _stopped(subject)
    try:
        yield from logged_causes(subject, TASK)
    except CannotJudge:
        if len(subject.run.ranks) < 2:
            raise


def _stopped(subject: Subject) -> Iterator[Diagnosis]:
    """Ranks that began to compile and left no validate dump, where others did."""
    finished = {rank for rank, one in subject.compilations.items() if one.file(VALIDATE)}
    begun = {rank for rank, one in subject.compilations.items() if one.file(BEGIN)}
    empty = {rank for rank in subject.run.ranks if not subject.run.rank(rank).compilations}
    empty.update(subject.run.empty_ranks)
    stopped = sorted((begun - finished) | empty)
    if not finished or not stopped:
        return
    rank = stopped[0]
    compilation = subject.compilations.get(rank)
    last = compilation.passes[-1] if compilation is not None and compilation.passes else None
    failed = compilation is not None and compilation.file("analyze_fail") is not None
    if failed:
        return  # why is told by what it left
    word = "rank" if len(stopped) == 1 else "ranks"
    text = f"{word} {ranks_text(stopped)} did not finish compiling"
    after = f" (the last dump is {last.base})" if last is not None else ", and left no dump at all"
    yield diagnosis(
        TASK,
        "error",
        f"{text}{after}; the others wait for what it would send",
        ("irtool", "parse", subject.path),
        rank=rank,
        ranks=tuple(stopped),
        file=last.path if last is not None else "",
        since=last.name if last is not None else "",
    )
