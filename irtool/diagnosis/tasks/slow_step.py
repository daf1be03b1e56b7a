"""Where does a step go, if not into computing?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.units import seconds_text, share_text

TASK: Task = "slow-step"
READS: Reads = "begin"
_MUCH = 0.6
"""Part of a step that communication has to take to be told of."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An info where most of the step is communication: no more than a model says it."""
    cost = subject.cost
    if not cost.seconds or subject.parallel.stage_size < 2:
        return
    shares = {
        cause: seconds
        for cause, seconds in cost.shares.items()
        if cause not in ("compute", "optimizer")
    }
    share = sum(shares.values()) / cost.seconds
    if share < _MUCH:
        return
    largest = max(shares, key=lambda cause: shares[cause])
    yield diagnosis(
        TASK,
        "info",
        f"{share_text(share)} of the predicted step of {seconds_text(cost.seconds)} is "
        f"communication, most of it {largest} ({seconds_text(shares[largest])})",
        subject.command("cost", "RUN"),
        rank=subject.picked.rank,
        file=subject.checked.dump.path,
    )
