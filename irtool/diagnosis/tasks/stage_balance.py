"""Do the stages of a pipeline do equally much, with enough micro-batches?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.cluster.pipeline import Pipeline, StageInput, layer_times, pipeline
from irtool.cluster.pipeline.cut import Cut, best_cut
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import numbered_text, seconds_text, share_text

TASK: Task = "stage-balance"
READS: Reads = "validate"
_UNEVEN = 0.15
"""How much slower than the mean the slowest stage may be."""
_BETTER = 0.05
"""Part of the slowest stage that another cut has to save."""
_BETTER_BUSY = 0.1
"""The same of work alone, whose seconds are fewer."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """A warning for an uneven cut, or for fewer micro-batches than stages.

    Args:
        subject: the run; with one stage there is nothing to balance.

    Raises:
        CannotJudge: nobody says for how many devices, or no dump of a stage is whole.
    """
    stages = subject.parallel.stages
    if stages < 2:
        return
    inputs = [StageInput(one.ranks[0], one.ranks, one.memory) for one in subject.memories]
    balance = pipeline(inputs, stages, subject.parallel.devices, subject.machine)
    if balance.missing:
        raise CannotJudge(f"no dump of {numbered_text('stage', balance.missing)}")
    uneven = list(_cut(subject, balance)) or list(_uneven_work(subject, inputs, balance))
    yield from uneven
    if balance.micro_batches < stages:
        yield diagnosis(
            TASK,
            "warning",
            f"{balance.micro_batches} micro-batches for {stages} stages: stages are idle",
            subject.command("pipeline", "RUN"),
            edit=Edit(setting="micro_size", value=stages),
        )


def _cut(subject: Subject, balance: Pipeline) -> Iterator[Diagnosis]:
    seconds = [stage.layer_seconds for stage in balance.stages]
    slowest = max(seconds, default=0.0)
    if balance.cut is None or not slowest or (balance.imbalance or 0) <= _UNEVEN:
        return
    best = max(balance.cut.costs)
    if slowest - best < _BETTER * slowest:
        return
    bottleneck = balance.stages[seconds.index(slowest)]
    gain = (slowest - best) * balance.micro_batches
    yield diagnosis(
        TASK,
        "warning",
        f"stage {bottleneck.index} takes {seconds_text(slowest)} a micro-batch, "
        f"{share_text(balance.imbalance)} more than the mean; the best cut of these layers "
        f"({_cut_text(balance.cut)}) takes {seconds_text(best)}",
        subject.command("pipeline", "RUN"),
        rank=bottleneck.rank,
        ranks=bottleneck.ranks,
        file=bottleneck.path,
        edit=Edit(setting="pipeline_stage", value=_cut_text(balance.cut)),
        gain=Gain(seconds=gain),
        weight=gain,
    )


def _uneven_work(
    subject: Subject, inputs: Sequence[StageInput], balance: Pipeline
) -> Iterator[Diagnosis]:
    """Stages whose tensors need unequal time, which starting many small operators hides.

    How long a start takes is assumed, what each stage computes and moves is in its graph.
    """
    if balance.cut is None:
        return
    layers = layer_times(inputs, balance, subject.machine)
    work = [sum(layer.cost for layer in stage) for stage in layers]
    mean = sum(work) / len(work)
    cut = best_cut([layer for stage in layers for layer in stage], balance.stage_count)
    if cut is None or not mean or max(work) / mean - 1 <= _UNEVEN:
        return
    if max(work) - cut.slowest < _BETTER_BUSY * max(work):
        return
    bottleneck = balance.stages[work.index(max(work))]
    yield diagnosis(
        TASK,
        "warning",
        f"stage {bottleneck.index} computes and moves {share_text(max(work) / mean - 1)} more "
        f"than the mean ({seconds_text(max(work))} a micro-batch without the starts of its "
        "operators); starts "
        f"hide it as long as tensors are as small as these "
        f"({share_text(balance.imbalance or 0)} with them); "
        f"the best cut of this work ({_cut_text(cut)}) takes {seconds_text(cut.slowest)}",
        subject.command("pipeline", "RUN"),
        rank=bottleneck.rank,
        ranks=bottleneck.ranks,
        file=bottleneck.path,
        edit=Edit(setting="pipeline_stage", value=_cut_text(cut)),
        gain=Gain(seconds=(max(work) - cut.slowest) * balance.micro_batches),
    )


def _cut_text(cut: Cut) -> str:
    """The layers of each stage."""
    return "; ".join(f"{number}: {_run_text(layers)}" for number, layers in enumerate(cut.stages))


def _run_text(layers: Sequence[str]) -> str:
    """``layers.0 to layers.3``: the first and the last numbered layer of a stage."""
    numbered = [layer for layer in layers if any(char.isdigit() for char in layer)] or list(layers)
    return numbered[0] if len(numbered) == 1 else f"{numbered[0]} to {numbered[-1]}"
