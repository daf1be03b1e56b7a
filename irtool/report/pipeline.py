"""``irtool pipeline``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.cluster.matching import shape_text
from irtool.cluster.pipeline import ONE_STAGE, Pipeline, Stage
from irtool.cluster.pipeline.advice import Advice
from irtool.cluster.pipeline.cut import Cut
from irtool.cluster.pipeline.measured import MeasuredStage
from irtool.cluster.pipeline.stage_transfers import Transfer, Unmatched
from irtool.cluster.schedule import Schedule, ScheduleName, StageTimes, TimedTask
from irtool.ir.dataclass import dataclass
from irtool.ir.units import operations_text, ranks_text, share_text
from irtool.ir.units import plural as counted
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.page.charts import Lane, Span, timeline
from irtool.report.run_answer import RunAnswer, context_fields
from irtool.report.text import shortened

USUAL_ROWS = 20
_TASKS_SHOWN = 18


@dataclass(frozen=True, eq=False)
class PipelineView:
    """What to show of a pipeline; times are those of ``machine``, but ``measured`` ones."""

    path: str
    pipeline: Pipeline
    machine: Machine | None = None
    rows: int | None = None
    measured: tuple[MeasuredStage, ...] = ()


# -- for scripts ---------------------------------------------------------------------------------


class StageOperations(AnswerObject, frozen=True, kw_only=True):
    """Operations of a step on one device (FLOP)."""

    forward: int
    backward: int
    recompute: int
    unknown: Annotated[dict[str, int], doc("operators that could not be counted")]


class StageSchedule(AnswerObject, frozen=True, kw_only=True):
    """In which order a stage runs its micro-batches."""

    name: ScheduleName
    tasks: Annotated[
        list[str],
        doc("`F3`: forward of micro-batch 3, `B3`: backward; with chunks `F3.1`; in launch order"),
    ]
    warm_up: Annotated[int, doc("forward passes before the first backward pass")]
    in_flight: Annotated[int, doc("micro-batches whose activations are held at once")]


class LayerOfStage(AnswerObject, frozen=True, kw_only=True):
    """A layer of a stage."""

    name: str
    seconds: Annotated[float, doc("of one micro-batch, modelled")]
    static_bytes: int


class PipelineStage(AnswerObject, frozen=True, kw_only=True):
    """A stage whose dump was read; sizes are those of one device."""

    stage: int
    rank: Annotated[int, doc("whose dump was read")]
    ranks: Annotated[Sequence[int], doc("of the stage, with an equal graph")]
    path: Annotated[str, doc("the dump")]
    operators: Annotated[dict[str, int], doc("launched nodes by phase")]
    flops: StageOperations
    seconds: StageTimes
    parameter_bytes: Annotated[int, doc("of weights")]
    static_bytes: Annotated[int, doc("that stay for the whole run")]
    activation_bytes: Annotated[int, doc("of a step's tensors at their peak")]
    schedule: Annotated[StageSchedule | None, doc("null: no operator names its micro-batch")]
    layers: list[LayerOfStage]


class IdleTime(AnswerObject, frozen=True, kw_only=True):
    """Idle time of a schedule."""

    ideal: Annotated[float, doc("over working time, with equal stages")]
    ratio: Annotated[float | None, doc("over working time, with these; null: stages are missing")]
    share: Annotated[float | None, doc("of the time of all stages")]
    seconds: Annotated[float | None, doc("of a step")]


class UnmatchedEnd(AnswerObject, frozen=True, kw_only=True):
    """A Send or Receive without a counterpart."""

    rank: int
    stage: int
    node: str
    op: str
    peer: int | None
    tag: int | None
    line: Annotated[int, doc("of the dump")]
    why: str
    certain: Annotated[bool, doc("the dump of the other end was read: the run would hang")]


class CutStage(AnswerObject, frozen=True, kw_only=True):
    """A stage of another cut."""

    layers: Sequence[str]
    seconds: Annotated[float, doc("of one micro-batch")]


class StageCut(AnswerObject, frozen=True, kw_only=True):
    """A cut of the layers into stages."""

    stages: list[CutStage]
    imbalance: Annotated[float, doc("by how much the slowest stage exceeds the mean")]


class TimelineTask(AnswerObject, frozen=True, kw_only=True):
    """When a stage runs a task, in seconds from the start of the step."""

    task: str
    start: float
    end: float


class PipelineAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.pipeline/1"
):
    """Stages of a pipeline: work, memory, schedule, idle time, transfers, and what to change."""

    path: Annotated[str, doc("what was read")]
    machine: Annotated[str, doc("name of the machine model, whose seconds these are")]
    stage_count: int
    missing_stages: Annotated[Sequence[int], doc("without a dump")]
    micro_batches: Annotated[int, doc("of a step")]
    stages: Annotated[list[PipelineStage], doc("whose dumps were read")]
    bubble: Annotated[
        dict[str, IdleTime], doc("by schedule; first `of the dumps`, where all stages are there")
    ]
    imbalance: Annotated[
        float | None,
        doc("by how much the slowest stage exceeds the mean; null: some are missing"),
    ]
    transfers: Sequence[Transfer]
    matched: Annotated[int, doc("Sends with their Receive")]
    unmatched: list[UnmatchedEnd]
    best_cut: Annotated[StageCut | None, doc("exact for these layers; null: stages are missing")]
    timeline: Annotated[list[list[TimelineTask]] | None, doc("tasks of each stage")]
    advice: Sequence[Advice]
    limits: Annotated[Sequence[str], doc("what could not be said, and why")]
    measured: Annotated[Sequence[MeasuredStage], doc("of ranks that left a `step_trace_time.csv`")]


def pipeline_answer(view: PipelineView, machine: Machine, context: RunContext) -> PipelineAnswer:
    """The answer of ``irtool pipeline`` for scripts.

    Args:
        view: what the stages do, and what was measured of them.
        machine: that its seconds are of.
        context: of the run, with origins.
    """
    pipeline = view.pipeline
    return PipelineAnswer(
        path=view.path,
        machine=machine.name,
        stage_count=pipeline.stage_count,
        missing_stages=pipeline.missing,
        micro_batches=pipeline.micro_batches,
        stages=[_stage(stage) for stage in pipeline.stages],
        bubble={
            one.schedule: IdleTime(
                ideal=one.ideal, ratio=one.ratio, share=one.share, seconds=one.seconds
            )
            for one in pipeline.bubbles
        },
        imbalance=pipeline.imbalance,
        transfers=pipeline.transfers.items,
        matched=pipeline.transfers.matched,
        unmatched=[_unmatched(one) for one in pipeline.transfers.unmatched],
        best_cut=None if pipeline.cut is None else _cut(pipeline.cut),
        timeline=None
        if pipeline.played is None
        else [[_task(task) for task in stage] for stage in pipeline.played.stages],
        advice=pipeline.advice,
        limits=pipeline.limits,
        measured=view.measured,
        **context_fields(context),
    )


def _stage(stage: Stage) -> PipelineStage:
    work = stage.work
    return PipelineStage(
        stage=stage.index,
        rank=stage.rank,
        ranks=stage.ranks,
        path=stage.path,
        operators={str(phase): count for phase, count in stage.operators.items()},
        flops=StageOperations(
            forward=work.forward,
            backward=work.backward,
            recompute=work.recompute,
            unknown=dict(work.unknown),
        ),
        seconds=work.seconds,
        parameter_bytes=stage.parameters,
        static_bytes=stage.static,
        activation_bytes=stage.activations,
        schedule=None
        if stage.schedule is None
        else StageSchedule(
            name=stage.schedule_name,
            tasks=[str(task) for task in stage.schedule.tasks],
            warm_up=stage.schedule.warm_up,
            in_flight=stage.schedule.in_flight,
        ),
        layers=[
            LayerOfStage(name=layer.name, seconds=layer.cost, static_bytes=layer.static)
            for layer in stage.layers
        ],
    )


def _unmatched(one: Unmatched) -> UnmatchedEnd:
    return UnmatchedEnd(
        rank=one.rank,
        stage=one.stage,
        node=one.item.node.id,
        op=one.item.op,
        peer=one.peer,
        tag=one.item.tag,
        line=one.item.node.line,
        why=one.why,
        certain=one.is_certain,
    )


def _cut(cut: Cut) -> StageCut:
    return StageCut(
        stages=[
            CutStage(layers=names, seconds=cost)
            for names, cost in zip(cut.stages, cut.costs, strict=True)
        ],
        imbalance=cut.imbalance,
    )


def _task(task: TimedTask) -> TimelineTask:
    return TimelineTask(task=str(task.task), start=task.start, end=task.end)


# -- for people ----------------------------------------------------------------------------------


def pipeline_report(view: PipelineView, is_page: bool = False) -> Report:
    """What a pipeline does; a page draws the step of all stages.

    Args:
        view: what the stages do, and how many rows of each list text shows.
        is_page: whether pictures are seen.
    """
    pipeline = view.pipeline
    elements: list[Element] = [Facts(list(_facts(view)))]
    if is_page and pipeline.stage_count > 1 and any(one.schedule for one in pipeline.stages):
        elements.append(_timeline_picture(pipeline))
    # that there is one stage alone is the headline
    notes = [text for text in pipeline.limits if text != ONE_STAGE]
    elements += [Note(f"note: {text}") for text in notes]
    elements += [first_rows(table, view.rows, USUAL_ROWS) for table in _tables(pipeline)]
    if view.measured:
        elements.append(first_rows(_measured_table(view.measured), view.rows, USUAL_ROWS))
    lost = pipeline.transfers.lost
    tone: Tone = "bad" if lost else "unknown" if pipeline.missing else "plain"
    answer = Answer(_answer_text(pipeline), tone)
    return Report(f"pipeline: {view.path}", answer, elements, view.path)


def _tables(pipeline: Pipeline) -> Iterator[Table]:
    yield _stages_table(pipeline)
    if any(stage.schedule for stage in pipeline.stages):
        yield _schedules_table(pipeline)
    if pipeline.bubbles:
        yield _bubbles_table(pipeline)
    if pipeline.transfers.items:
        yield _transfers_table(pipeline)
    if pipeline.transfers.lost:
        yield _lost_table(pipeline.transfers.lost)
    if pipeline.cut is not None:
        yield _cut_table(pipeline, pipeline.cut)
    if pipeline.advice:
        yield _advice_table(pipeline)


def _measured_table(stages: Sequence[MeasuredStage]) -> Table:
    columns = [
        number_column("stage"), number_column("rank"), number_column("steps", rank=1),
        *(
            number_column(name, "seconds")
            for name in ("a step", "computing", "exposed", "hidden", "free", "bubble")
        ),
        number_column("computes nothing", "share"),
    ]  # fmt: skip
    ranked = sorted(stages, key=lambda stage: (stage.stage is None, stage.stage or 0, stage.rank))
    rows: list[list[Cell]] = [
        [
            stage.stage, stage.rank, stage.steps, stage.total, stage.computing, stage.exposed,
            stage.hidden, stage.free, stage.bubble, stage.idle,
        ]
        for stage in ranked
    ]  # fmt: skip
    title = "Steps as measured (exposed: communication that nothing hides, waiting included)"
    return Table(title, columns, rows, noun="rank")


def _answer_text(pipeline: Pipeline) -> str:
    """``4 stages, 8 micro-batches, 1f1b: idle 32 % of the simulated step``."""
    if pipeline.stage_count < 2:
        return "no pipeline: one stage"
    names = {stage.schedule_name for stage in pipeline.stages if stage.schedule}
    schedule = f", {' and '.join(sorted(names))}" if names else ""
    micro = counted(pipeline.micro_batches, "micro-batch")
    text = f"{pipeline.stage_count} stages, {micro}{schedule}"
    first = pipeline.bubbles[0] if pipeline.bubbles else None
    if first is not None and first.share is not None:
        return f"{text}; idle {share_text(first.share)} of the simulated step"
    if first is not None:
        return f"{text}; idle {share_text(first.ideal)} of work with equal stages"
    return text


def _facts(view: PipelineView) -> Iterator[tuple[str, str]]:
    pipeline = view.pipeline
    moved = pipeline.transfers
    if pipeline.stage_count > 1:
        unknown = len(moved.unmatched) - len(moved.lost)
        text = f"{counted(moved.matched, 'Send')} matched with a Receive"
        text += f", {len(moved.lost)} not" if moved.lost else ""
        text += f", {unknown} to ranks without a dump" if unknown else ""
        yield "between stages", text
    if pipeline.imbalance is not None:
        yield "balance", f"slowest stage {share_text(pipeline.imbalance)} above the mean"
    if view.machine is not None:
        yield "times", f"modelled for {view.machine.name}; only their ratios mean something"


def _timeline_picture(pipeline: Pipeline) -> Picture:
    """When each stage runs which micro-batch; without times in turn, as far as stages are there."""
    lanes = [
        Lane(f"stage {index}", [_span(task) for task in tasks])
        for index, tasks in pipeline.timeline.items()
    ]
    return Picture(
        "One step",
        timeline(
            lanes, "number" if pipeline.played is None else "seconds", ("forward", "backward")
        ),
        "When each stage runs the forward and backward pass of which micro-batch.",
        "times are modelled",
    )


def _span(task: TimedTask) -> Span:
    return Span(task.start, task.end, str(task.task), 0 if task.task.kind == "F" else 1)


# -- tables --------------------------------------------------------------------------------------


def _stages_table(pipeline: Pipeline) -> Table:
    columns = [
        number_column("stage"), text_column("ranks"), number_column("operators", rank=3),
        number_column("forward", "operations", 1), number_column("backward", "operations", 1),
        number_column("forward time", "seconds"), number_column("backward time", "seconds"),
        number_column("weights", "bytes", 2), number_column("static", "bytes", 2),
        number_column("activations", "bytes", 2), text_column("layers", 1),
    ]  # fmt: skip
    title = "Stages (operations of a step; times of one micro-batch)"
    return Table(title, columns, [_stage_row(stage) for stage in pipeline.stages], noun="stage")


def _stage_row(stage: Stage) -> list[Cell]:
    work = stage.work
    return [
        stage.index,
        ranks_text(stage.ranks),
        stage.launches,
        _operations(work.forward, stage),
        _operations(work.all_backward, stage),
        work.seconds.forward,
        work.seconds.backward,
        stage.parameters,
        stage.static,
        stage.activations,
        _run_text([layer.name for layer in stage.layers], 4),
    ]


def _operations(operations: int, stage: Stage) -> Cell:
    if not stage.work.unknown:
        return operations
    return Amount(operations, "operations", f"{operations_text(operations)} + ?")


def _run_text(names: Sequence[str], most: int) -> str:
    """``bs.0, bs.1``; of more the first and the last."""
    return ", ".join(names) if len(names) <= most else f"{names[0]} … {names[-1]} ({len(names)})"


def _schedules_table(pipeline: Pipeline) -> Table:
    columns = [
        number_column("stage"), text_column("schedule"), number_column("warm-up"),
        number_column("in flight"), text_column("tasks"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            stage.index,
            stage.schedule_name,
            stage.schedule.warm_up,
            stage.schedule.in_flight,
            _tasks_text(stage.schedule),
        ]
        for stage in pipeline.stages
        if stage.schedule is not None
    ]
    title = "Schedule (F: forward, B: backward of a micro-batch)"
    return Table(title, columns, rows, noun="stage")


def _tasks_text(schedule: Schedule) -> str:
    """``F0 F1 B0 …``."""
    tasks = [str(task) for task in schedule.tasks]
    more = f" … ({len(tasks)} tasks)" if len(tasks) > _TASKS_SHOWN else ""
    return " ".join(tasks[:_TASKS_SHOWN]) + more


def _bubbles_table(pipeline: Pipeline) -> Table:
    """Idle time of the dumps' own schedule and of others."""
    columns = [
        text_column("schedule"), number_column("equal stages", "share"),
        number_column("these stages", "share"), number_column("share of time", "share"),
        number_column("of a step", "seconds"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.schedule,
            one.ideal,
            Amount(one.ratio, "share"),
            Amount(one.share, "share"),
            Amount(one.seconds, "seconds"),
        ]
        for one in pipeline.bubbles
    ]
    return Table("Idle time, over working time", columns, rows, noun="schedule")


def _transfers_table(pipeline: Pipeline) -> Table:
    columns = [
        number_column("from"), number_column("to"), text_column("pass"), number_column("tensors"),
        text_column("type"), number_column("bytes", "bytes"), text_column("ranks"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.from_stage,
            one.to_stage,
            one.direction,
            one.count,
            f"{one.dtype or '?'}{shape_text(one.shape)}",
            Amount(one.bytes, "bytes"),
            f"{one.ranks[0]} → {one.ranks[1]}",
        ]
        for one in pipeline.transfers.items
    ]
    return Table("Between stages, in a step", columns, rows, noun="transfer")


def _lost_table(lost: Sequence[Unmatched]) -> Table:
    columns = [
        number_column("rank"), text_column("node"), text_column("operator"),
        number_column("peer"), number_column("tag"), number_column("line"), text_column("why"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.rank,
            one.item.node.id,
            one.item.op,
            one.peer,
            one.item.tag,
            one.item.node.line,
            one.why,
        ]
        for one in lost
    ]
    title = "Sends and Receives without a counterpart: the run would hang"
    return Table(title, columns, rows, noun="operator")


def _cut_table(pipeline: Pipeline, cut: Cut) -> Table:
    columns = [
        number_column("stage"), number_column("now", "seconds"), number_column("best", "seconds"),
        text_column("layers of the best cut"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [stage.index, stage.layer_seconds, cost, shortened(_run_text(names, 3), 60)]
        for stage, cost, names in zip(pipeline.stages, cut.costs, cut.stages, strict=False)
    ]
    title = "Best cut of the same layers (times of one micro-batch)"
    return Table(title, columns, rows, noun="stage")


def _advice_table(pipeline: Pipeline) -> Table:
    columns = [
        text_column("change"), text_column("to"), text_column("gain"), text_column("price", 1),
    ]  # fmt: skip
    rows = [[one.switch, one.value, one.gain, one.price] for one in pipeline.advice]
    return Table("Worth trying", columns, rows, noun="change")
