"""Do the stages of a pipeline do equally much, with enough micro-batches?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.cluster.pipeline import Pipeline, StageInput, pipeline
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import seconds_text

TASK: Task = "stage-balance"
READS: Reads = "validate"
_UNEVEN = 0.15
"""How much slower than the mean the slowest stage may be."""
_BETTER = 0.05
"""Part of the slowest stage that another cut has to save."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """A warning for an uneven cut, or for fewer micro-batches than stages."""
    stages = subject.parallel.stages
    if stages < 2:
        return
    inputs = [StageInput(one.ranks[0], one.ranks, one.memory) for one in subject.memories]
    found = pipeline(inputs, stages, subject.parallel.devices, subject.machine)
    if found.missing:
        raise CannotJudge(f"no dump of stage {', '.join(map(str, found.missing))}")
    yield from _cut(subject, found)
    if found.micro_batches < stages:
        yield diagnosis(
            TASK,
            "warning",
            f"{found.micro_batches} micro-batches for {stages} stages: stages are idle",
            subject.command("pipeline", "RUN"),
            edit=Edit(setting="micro_size", value=stages),
        )


def _cut(subject: Subject, found: Pipeline) -> Iterator[Diagnosis]:
    seconds = [stage.layer_seconds for stage in found.stages]
    slowest = max(seconds, default=0.0)
    if found.cut is None or not slowest or (found.imbalance or 0) <= _UNEVEN:
        return
    best = max(found.cut.costs)
    if slowest - best < _BETTER * slowest:
        return
    at = found.stages[seconds.index(slowest)]
    cut = "; ".join(
        f"{number}: {_run_text(layers)}" for number, layers in enumerate(found.cut.stages)
    )
    gain = (slowest - best) * found.micro_batches
    yield diagnosis(
        TASK,
        "warning",
        f"stage {at.index} takes {seconds_text(slowest)} a micro-batch, "
        f"{found.imbalance:.0%} more than the mean; the best cut of these layers ({cut}) "
        f"takes {seconds_text(best)}",
        subject.command("pipeline", "RUN"),
        rank=at.rank,
        ranks=at.ranks,
        file=at.path,
        edit=Edit(setting="pipeline_stage", value=cut),
        gain=Gain(seconds=gain),
        weight=gain,
    )


def _run_text(layers: Sequence[str]) -> str:
    """``layers.0 to layers.3``: the first and the last numbered layer of a stage."""
    numbered = [layer for layer in layers if any(char.isdigit() for char in layer)] or list(layers)
    return numbered[0] if len(numbered) == 1 else f"{numbered[0]} to {numbered[-1]}"
