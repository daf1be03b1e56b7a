"""Where does a step go, if not into computing?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import seconds_text, share_text
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check

TASK: Task = "slow-step"
READS: Reads = "begin"
_MUCH = 0.6
"""Part of a step that something else than computing has to take to be told of."""
_SMALL_CHANCE = 0.1
"""Part of a step below which a chance is told behind the statement where most of the step goes."""
_UPDATES = 0.2
"""Part of a step that updates of weights have to take for optimizer parallel to be tried."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An info where most of the step is no computing: no more than a model says it.

    Args:
        subject: the run; the step that the begin dump of its lowest rank predicts is looked at.

    Raises:
        CannotJudge: there is no whole begin dump with a strategy, or nobody says for how many
            devices.
    """
    cost = subject.cost
    if not cost.seconds or subject.parallel.stage_size < 2:
        return
    rest = {cause: seconds for cause, seconds in cost.shares.items() if cause != "compute"}
    moved = sum(seconds for cause, seconds in rest.items() if cause != "optimizer")
    spent = sum(rest.values())
    if spent < _MUCH * cost.seconds:
        return
    largest = sorted(rest, key=lambda cause: -rest[cause])
    step = seconds_text(cost.seconds)
    if moved >= _MUCH * cost.seconds:
        text = (
            f"{share_text(moved / cost.seconds)} of the predicted step of {step} is communication, "
            f"most of it {largest[0]} ({seconds_text(rest[largest[0]])})"
        )
    else:
        parts = ", ".join(f"{cause} {seconds_text(rest[cause])}" for cause in largest[:2])
        text = (
            f"{share_text(spent / cost.seconds)} of the predicted step of {step} is spent on "
            f"weights and communication, not on computing: {parts}"
        )
    saved = _optimizer_parallel(subject) if rest["optimizer"] >= _UPDATES * cost.seconds else 0.0
    worth = saved >= _SMALL_CHANCE * cost.seconds
    more = f"; optimizer parallel saves {seconds_text(saved)}" if worth else ""
    yield diagnosis(
        TASK,
        "info",
        text + more,
        subject.command("cost", "RUN"),
        rank=subject.picked.rank,
        file=subject.checked.dump.path,
        edit=Edit(setting="enable_parallel_optimizer", value=True) if worth else None,
        gain=Gain(seconds=saved) if worth else None,
        share=max(_SMALL_CHANCE, saved / cost.seconds),
    )


def _optimizer_parallel(subject: Subject) -> float:
    """Seconds of a step that each device's updating a part of the weights would save."""
    context, dump = subject.checked.context, subject.checked.dump
    if context.parallel_optimizer:
        return 0.0
    other = subject.structure.under(parallel_optimizer=True)
    report = check(dump, other.context, network=subject.checked.network)
    if report.accepted is False:
        return 0.0
    return subject.cost.seconds - step_cost(other, report, subject.machine).seconds
