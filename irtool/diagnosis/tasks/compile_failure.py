"""Did the compilation fail, and why?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.diagnosis.diagnosis import Diagnosis, Task
from irtool.diagnosis.failures import told
from irtool.diagnosis.subject import Reads, Subject

TASK: Task = "compile-failure"
READS: Reads = "logs"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for each cause that logs and failure dumps tell."""
    yield from told(subject, TASK)
