"""Did the compilation fail, and why?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.diagnosis.diagnosis import Diagnosis, Task
from irtool.diagnosis.failures import logged_causes
from irtool.diagnosis.subject import BEGIN, Reads, Subject
from irtool.diagnosis.tasks.strategy import edit_of_refused
from irtool.ir.finding import Edit, SourceLine
from irtool.linting.failure.finding import LoggedFinding

TASK: Task = "compile-failure"
READS: Reads = "logs"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for each cause that logs and failure dumps tell.

    Args:
        subject: the run.

    Raises:
        CannotJudge: there is no log and no failure dump.
    """

    def edit_of(item: LoggedFinding, source: SourceLine | None) -> Edit | None:
        """Of a strategy that the parallel pass refused, what it takes instead."""
        has_begin = any(one.file(BEGIN) for one in subject.run.compilations)
        return edit_of_refused(subject, item.op, source) if item.op and has_begin else None

    yield from logged_causes(subject, TASK, edit_of)
