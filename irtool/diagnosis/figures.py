"""What a person wants to know of a run first: devices, axes, stages, size, time, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import prod
from typing import TypeVar

from irtool.diagnosis.diagnosis import CannotJudge
from irtool.diagnosis.subject import Subject
from irtool.ir.dataclass import dataclass

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a run; None where it is not known.

    Attributes:
        devices: how many.
        ranks: whose dumps there are.
        stages: of the pipeline.
        stage: the one whose step is predicted.
        micro_batches: of a step.
        axes: sizes of the device matrix that most operators use.
        parameters: elements of all trained weights of the first rank's stage.
        seconds: of a predicted step, by cause.
        step: all of them.
        communication: part of the step that is communication.
        peak: bytes that a device holds at most; the rank that holds most.
        communicators: bytes of these that are buffers of its communicators.
        target: the machine that seconds are of.
    """

    devices: int | None = None
    ranks: tuple[int, ...] = ()
    stages: int | None = None
    stage: int | None = None
    micro_batches: int | None = None
    axes: tuple[int, ...] = ()
    parameters: int | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    step: float | None = None
    communication: float | None = None
    peak: int | None = None
    communicators: int = 0
    target: str = ""


def figures_of_begin(subject: Subject) -> Figures:
    """What the dump before the parallel pass tells.

    Args:
        subject: the run; its lowest rank's begin dump is checked and priced.

    Returns:
        all figures but those of memory; None for each that the run does not tell, and for what only
        a damaged dump tells.
    """
    context = _try(lambda: subject.parallel)
    cost = _try(lambda: subject.cost)
    checked = _try(lambda: subject.checked)
    shares = {} if cost is None else {k: v for k, v in cost.shares.items() if v}
    total = None if cost is None else cost.seconds
    moved = sum(seconds for cause, seconds in shares.items() if cause not in _LOCAL)
    axes: dict[tuple[int, ...], int] = {}
    parameters: int | None = None
    if checked is not None:
        for item in checked.report.operators:
            sizes = tuple(size for size in item.device_matrix if size > 1)
            axes[sizes] = axes.get(sizes, 0) + 1
        parameters = sum(
            prod(item.shape) for item in checked.report.parameters
            if item.role == "weight"
        )  # fmt: skip
    return Figures(
        devices=None if context is None or _is_guess(subject, "device_num") else context.devices,
        ranks=subject.run.ranks,
        stages=None if context is None or _is_guess(subject, "pipeline_stages") else context.stages,
        stage=None if context is None else context.stage,
        axes=max(axes, key=lambda one: axes[one], default=()),
        parameters=parameters,
        seconds=shares,
        step=total,
        communication=moved / total if total else None,
        target=subject.machine.name if context is not None else "",
    )


def _is_guess(subject: Subject, key: str) -> bool:
    """Whether only a dump that lacks a part tells a key of the context."""
    entry = subject.context.entries.get(key)
    return entry is not None and entry.origin.path in subject.damage


def peak(subject: Subject) -> tuple[int, int] | None:
    """Bytes of the rank that holds most, and those of them that its communicators take.

    Args:
        subject: the run; its whole validate dumps are counted.

    Returns:
        both as the lower estimate; None where there is no such dump.
    """
    memories = _try(lambda: subject.memories)
    if not memories:
        return None
    memory = memories[0].memory
    return memory.device_bytes.low, memory.communicators.bytes.low


_LOCAL = frozenset(("compute", "optimizer"))
"""Causes of seconds that are spent on a device alone."""


def _try(ask: Callable[[], _T]) -> _T | None:
    try:
        return ask()
    except (CannotJudge, ValueError, LookupError):
        return None
