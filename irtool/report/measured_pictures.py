"""What was measured as pictures: the step beside the predicted one, memory over it, the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irtool.artefacts.cpu_profile import MemorySample
from irtool.artefacts.profile import UsualStep
from irtool.cluster.measured import MeasuredStep
from irtool.cluster.memory import Memory
from irtool.cluster.modelled import ModelledStep
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.phases import phases
from irtool.ir.units import bytes_text, seconds_text
from irtool.planning.plans.step.report import StepCost
from irtool.planning.plans.timeline import timeline as predicted_spans
from irtool.report.model import Explorer, Picture
from irtool.report.page.charts import Lane, Series, Span, line_chart, timeline
from irtool.report.page.graph.data import graph_data
from irtool.report.picture.overlay import Mark, Overlay

SERIES = ("forward", "backward", "recompute", "optimizer", "communication", "other")
"""Colours of the timeline."""
_FINEST = 1 / 700
"""Part of a picture's width below which neighbours of one colour are drawn as one."""


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """A stretch of a predicted step; seconds from its beginning, ``node`` what runs."""

    name: str
    series: str
    start: float
    seconds: float
    node: Node | None = None

    @property
    def communicates(self) -> bool:
        """Whether it stands in the lane of communication."""
        return self.series == "communication"


def predicted_by_cost(cost: StepCost) -> list[PredictedRun]:
    """The step as the planner's model lays it out.

    Args:
        cost: of a step.

    Returns:
        runs in seconds from the beginning of the step, those of communication as a series of their
        own.
    """
    return [
        PredictedRun(
            span.name,
            "communication" if span.stream == "communication" else span.phase,
            span.start,
            span.seconds,
        )
        for span in predicted_spans(cost)
    ]


def predicted_by_kernels(modelled: ModelledStep, step: MeasuredStep | None) -> list[PredictedRun]:
    """The kernels of one device one after the other.

    Args:
        modelled: what each takes.
        step: what was measured, where it was: then they follow each other as they really ran.
    """
    usual = None if step is None else step.profile.usual
    where = {node: place for place, node in enumerate(modelled.launched)}
    if step is not None and usual is not None:
        names = (step.joined.nodes.get(run.name) for run in usual.runs)
        where |= {node: place for place, node in enumerate(names) if node in where}
    phase = phases(modelled.dump)
    runs: list[PredictedRun] = []
    now = 0.0
    for node, seconds in sorted(
        modelled.operators, key=lambda pair: (where[pair[0]], pair[0].line)
    ):
        runs.append(PredictedRun(node.op, str(phase.get(node, "other")), now, seconds, node))
        now += seconds
    return runs


# -- a step --------------------------------------------------------------------------------------


def step_picture(step: MeasuredStep, predicted: Sequence[PredictedRun]) -> Iterator[Picture]:
    """A measured step above the predicted one, drawn to the same length.

    Args:
        step: a profile joined with the nodes of a dump.
        predicted: runs of the model, in seconds; none: the measured step stands alone.

    Yields:
        one picture; none where the profile has no usual step.
    """
    usual = step.profile.usual
    if usual is None:
        return
    measured = list(_measured_runs(step, usual))
    length = max(run.start + run.seconds for run in measured)
    foreseen = max((run.start + run.seconds for run in predicted), default=0.0)
    scale = length / foreseen if foreseen else 1.0
    scaled = [
        replace(run, start=run.start * scale, seconds=run.seconds * scale) for run in predicted
    ]
    lanes = [
        Lane(f"{name}{lane}", list(_drawn(own, length)))
        for name, runs in (("measured", measured), ("model", scaled))
        for lane, own in _by_lane(runs)
    ]
    note = f"step {usual.name} of {step.profile.path}, {seconds_text(length)}"
    if foreseen:
        note += f"; the model's {seconds_text(foreseen)} are drawn {scale:.3g} times as long"
    yield Picture(
        "A step, measured and predicted",
        timeline(lanes, "seconds", SERIES),
        "Runs of operators over the time of a step, by phase: as measured, and as predicted",
        note,
    )


def _measured_runs(step: MeasuredStep, usual: UsualStep) -> Iterator[PredictedRun]:
    """The runs of the usual step, in seconds from its beginning."""
    known = {operator.node: str(operator.phase or "other") for operator in step.operators}
    for run in usual.runs:
        node = step.joined.nodes.get(run.name)
        series = "communication" if run.communicates else "other"
        if node is not None and not run.communicates:
            series = known.get(node, "other")
        name = run.name.rpartition("/")[2] if node is None else node.op
        yield PredictedRun(name, series, (run.start - usual.begin) / 1e9, run.duration / 1e6)


def _by_lane(runs: Iterable[PredictedRun]) -> Iterator[tuple[str, list[PredictedRun]]]:
    lanes: dict[bool, list[PredictedRun]] = {False: [], True: []}
    for run in runs:
        lanes[run.communicates].append(run)
    yield ", computing", lanes[False]
    if lanes[True]:
        yield ", communicating", lanes[True]


def _drawn(runs: Sequence[PredictedRun], length: float) -> Iterator[Span]:
    """The runs as spans; what is too fine to be seen is joined with its neighbours."""
    finest = length * _FINEST
    pending: list[PredictedRun] = []
    for run in sorted(runs, key=lambda one: one.start):
        if pending and not _joins(pending, run, finest):
            yield _span(pending)
            pending = []
        pending.append(run)
    if pending:
        yield _span(pending)


def _joins(pending: Sequence[PredictedRun], run: PredictedRun, finest: float) -> bool:
    last = pending[-1]
    is_near = run.start - (last.start + last.seconds) < finest
    return is_near and run.series == last.series and max(last.seconds, run.seconds) < finest


def _span(runs: Sequence[PredictedRun]) -> Span:
    first = runs[0]
    end = max(run.start + run.seconds for run in runs)
    name = first.name if len(runs) == 1 else f"{first.name} and {len(runs) - 1} more"
    series = first.series if first.series in SERIES else "other"
    return Span(first.start, end, name, SERIES.index(series))


# -- memory --------------------------------------------------------------------------------------


def memory_picture(
    step: MeasuredStep, memory: Memory, recorded: Iterable[MemorySample]
) -> Iterator[Picture]:
    """Bytes of a step's tensors over the time at which their kernels really ran.

    Args:
        step: what was measured.
        memory: what is predicted for the dump that it was joined with.
        recorded: the pool as it was recorded, where it was.
    """
    usual = step.profile.usual
    if usual is None:
        return
    ran = {step.joined.nodes[run.name]: run for run in usual.runs if run.name in step.joined.nodes}
    points = sorted(
        ((ran[launch.node].start - usual.begin) / 1e6, float(size))
        for launch, size in zip(memory.launched, memory.curve, strict=True)
        if launch.node in ran
    )
    if not points:
        return
    end = max(run.end for run in usual.runs)
    series = [Series("predicted", points, step=True)]
    pool = [
        ((sample.time - usual.begin) / 1e6, float(sample.allocated))
        for sample in recorded
        if usual.begin <= sample.time <= end
    ]
    if pool:
        series.append(Series("the pool, as recorded", pool, step=True))
    yield Picture(
        "Memory over the measured step",
        line_chart(series, "ms of the step", "tensors of the step", "bytes"),
        "Bytes of a step's tensors as predicted, when their kernels ran, and of the recorded pool",
        f"predicted at most: {bytes_text(memory.dynamic_bytes)}",
    )


# -- the graph -----------------------------------------------------------------------------------


def measured_graph(step: MeasuredStep, memory: Memory | None) -> Explorer:
    """The graph that ran, with what was measured and predicted of each node laid over it.

    Args:
        step: a profile joined with the nodes of a dump; its modelled seconds are scaled to the
            step.
        memory: predicted memory of the same dump, laid over it too; None leaves it out.
    """
    measured: dict[Node, Mark] = {}
    modelled: dict[Node, Mark] = {}
    scale = step.scale
    for operator in step.operators:
        text = ""
        if scale and operator.modelled is not None:
            seconds = operator.modelled * scale
            text = f"model, scaled: {seconds_text(seconds)}"
            modelled[operator.node] = Mark(
                seconds, None, f"measured: {seconds_text(operator.seconds)}"
            )
        measured[operator.node] = Mark(operator.seconds, None, text)
    overlays = [
        Overlay("measured", "measured time of a step", "seconds", measured),
        Overlay("cost", "time by the model, scaled to the same step", "seconds", modelled),
    ]
    if memory is not None:
        overlays.append(_memory_overlay(memory))
    shown = [overlay for overlay in overlays if overlay.marks]
    return Explorer("Time and memory in the graph that ran", graph_data(step.dump, None, shown))


def _memory_overlay(memory: Memory) -> Overlay:
    """Bytes that are alive at the peak, at the nodes that made them."""
    held: dict[Node, float] = {}
    for tensor in memory.alive:
        if tensor.bytes:
            held[tensor.node] = held.get(tensor.node, 0.0) + tensor.bytes
    marks = {node: Mark(size) for node, size in held.items()}
    return Overlay("memory", "alive at the peak of memory, predicted", "bytes", marks)
