"""Which operator makes NaN or infinity, and which introduces error, compared with the other run?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.compare.tensors.plain_files import holds_plain
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task
from irtool.diagnosis.subject import Reads, Subject

TASK: Task = "precision"
READS: Reads = "others"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error for the first NaN or infinity, and for the first operator with an error of its own.

    An info where this run computes in half precision what the other does not.

    Args:
        subject: the run, and in ``against`` the one that its tensors are held against.

    Raises:
        CannotJudge: there is no other run, one of them left no tensors, or they are cut over
            different numbers of devices.
    """
    run = subject.run
    has_tensors = bool(run.tensor_dumps or run.msprobe) or holds_plain(run.path)
    if subject.against is None and not has_tensors:
        raise CannotJudge("there is nothing to compare with (--against RUN)")
    # Readers of tensors are many modules, which most runs have no need of.
    from irtool.diagnosis.tensors import tensor_diagnoses

    yield from tensor_diagnoses(subject)
