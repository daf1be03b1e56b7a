"""Steps of a stage as a profiler measured them: real bubbles beside those of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from irtool.artefacts.kernels import StepTime
from irtool.ir.dataclass import dataclass

_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """Where steps of one rank went, in seconds: medians, without a first step of three or more.

    Attributes:
        rank: whose table it is.
        stage: of the pipeline; null: nobody says how many stages there are.
        path: of the table.
        steps: that count.
        total: of a step.
        computing: with or without communication beside it.
        exposed: communication that nothing hides, waiting for other stages included.
        hidden: communication behind computing.
        free: neither.
        bubble: waiting for other stages, as the profiler counts it; null where the table lacks it.
            A scoped ``Receive`` is not among what it counts, so that it may be too small.
    """

    rank: int
    stage: int | None
    path: str
    steps: int
    total: float
    computing: float
    exposed: float
    hidden: float
    free: float
    bubble: float | None

    @property
    def idle(self) -> float:
        """Part of a step in which the rank computes nothing."""
        return 1 - self.computing / self.total if self.total > 0 else 0.0


def measured_stage(
    rank: int, stage: int | None, path: str, steps: Sequence[StepTime]
) -> MeasuredStage:
    """The usual step of a rank.

    Args:
        rank: whose steps.
        stage: of the rank.
        path: of their table.
        steps: at least one, in order.
    """
    later = steps[1:] if len(steps) > 2 else steps
    bubbles = [step.bubble for step in later if step.bubble is not None]
    return MeasuredStage(
        rank,
        stage,
        path,
        len(later),
        median(step.total for step in later) * _MICRO,
        median(step.computing for step in later) * _MICRO,
        median(step.exposed for step in later) * _MICRO,
        median(step.hidden for step in later) * _MICRO,
        median(step.free for step in later) * _MICRO,
        median(bubbles) * _MICRO if bubbles else None,
    )
