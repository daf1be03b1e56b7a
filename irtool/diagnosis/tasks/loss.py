"""Do the losses part from those of the other run?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from irtool.compare.losses.comparison import LossComparison, NothingInCommon, compare_losses
from irtool.compare.losses.read import read_loss
from irtool.compare.losses.series import LossRun, NoLoss
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.units import share_text
from irtool.syntax.run import Run

TASK: Task = "loss"
READS: Reads = "others"


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error where the loss is not finite, or leaves that of the run that it is held against.

    A warning where it jumps and comes back; an info where the two runs were given other data or
    weights, so that only large faults show.

    Args:
        subject: the run, and in ``against`` the other one; without it only a loss that is not
            finite is told.

    Raises:
        CannotJudge: there is no other run, one of them left no losses, or they have no step in
            common.
    """
    if subject.against is None:
        alone = _alone(subject)
        if alone is None:
            raise CannotJudge("there is nothing to compare with (--against RUN)")
        yield alone
        return
    left, right = _losses(subject.against), _losses(subject.run)
    try:
        comparison = compare_losses(left, right)
    except NothingInCommon as error:
        raise CannotJudge(str(error)) from None
    if not comparison.is_suspicious:
        if comparison.own_ways:
            yield _own_ways(subject, subject.against, comparison, right.path)
        return
    since = comparison.broken[0][0] if comparison.broken else comparison.change_step
    if comparison.spike_step is not None and not comparison.broken:
        yield diagnosis(
            TASK,
            "warning",
            f"the loss jumps at step {comparison.spike_step} alone, by "
            f"{share_text(comparison.worst[0])} of that of the other run, and comes back: a "
            "batch, or a gradient that overflowed",
            ("irtool", "diff", subject.against.path, subject.path, "--loss"),
            file=right.path,
            since=f"step {comparison.spike_step}",
        )
        return
    where = f" from step {since} on" if since is not None else ""
    if comparison.broken:
        cause = f"the loss is not finite{where}"
    else:
        cause = f"the loss leaves that of the other run{where}: {comparison.verdict}"
    yield diagnosis(
        TASK,
        "error",
        f"{cause}, by up to {comparison.worst[0]:.2%} (step {comparison.worst[1]})",
        ("irtool", "diff", subject.against.path, subject.path, "--loss"),
        file=right.path,
        since="" if since is None else f"step {since}",
    )


def _own_ways(subject: Subject, against: Run, comparison: LossComparison, path: str) -> Diagnosis:
    """An info that the runs are not of one kind, so that only large faults could be told."""
    step = comparison.steps[0]
    return diagnosis(
        TASK,
        "info",
        f"the losses go their own ways from step {step} on, where they are "
        f"{share_text(comparison.first)} apart: the runs were given other data or other weights "
        "(a seed, an order of batches), and "
        "what is smaller than their scatter can't be told",
        ("irtool", "diff", against.path, subject.path, "--loss"),
        file=path,
        since=f"step {step}",
        share=min(1.0, comparison.first),
    )


def _alone(subject: Subject) -> Diagnosis | None:
    """What needs no other run to be wrong: a loss that is not finite."""
    try:
        curve = _losses(subject.run)
    except CannotJudge:
        return None
    values = curve.loss.values
    step = next((step for step in sorted(values) if not math.isfinite(values[step])), None)
    if step is None:
        return None
    kind = "NaN" if math.isnan(values[step]) else "infinite"
    last = max((earlier for earlier in values if earlier < step), default=None)
    before = "" if last is None else f"; that of step {last} is {values[last]:.4g}"
    return diagnosis(
        TASK,
        "error",
        f"the loss is not finite from step {step} on: it is {kind}{before}",
        subject.command("doctor", "RUN", "--task", "precision"),
        file=curve.path,
        since=f"step {step}",
    )


def _losses(run: Run) -> LossRun:
    for path in (*run.losses, *(log.path for log in run.logs)):
        try:
            curve = read_loss(path)
        except (NoLoss, OSError, ValueError):
            continue
        if len(curve.loss):
            return curve
    raise CannotJudge(f"{run.path} left no losses")
