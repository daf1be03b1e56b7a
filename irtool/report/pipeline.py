"""Pipelines for people: a document of facts and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irtool.cluster.machine import Machine
from irtool.cluster.pipeline import Pipeline, Stage
from irtool.cluster.schedule import Schedule
from irtool.ir.units import bytes_text, plural, ranks_text, share_text
from irtool.report.model import (
    Cell,
    Column,
    Document,
    Facts,
    Heading,
    Note,
    Table,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.text import shortened

USUAL_ROWS = 20
_TASKS_SHOWN = 18


@dataclass(frozen=True, eq=False)
class PipelineView:
    """What to show of a pipeline; times are those of ``machine``."""

    path: str
    pipeline: Pipeline
    machine: Machine
    rows: int | None = None


def pipeline_document(view: PipelineView) -> Document:
    """Everything that a view shows."""
    pipeline = view.pipeline
    document = Document()
    document.add(Heading(f"{view.path}: {answer_text(pipeline)}"), Facts(list(_facts(view))))
    document.add(*(Note(f"note: {text}") for text in pipeline.limits))
    document.add(first_rows(stages_table(pipeline), view.rows, USUAL_ROWS))
    if any(stage.schedule for stage in pipeline.stages):
        document.add(first_rows(schedules_table(pipeline), view.rows, USUAL_ROWS))
    if pipeline.bubbles:
        document.add(first_rows(bubbles_table(pipeline), view.rows, USUAL_ROWS))
    if pipeline.transfers.items:
        document.add(first_rows(transfers_table(pipeline), view.rows, USUAL_ROWS))
    if any(item.is_certain for item in pipeline.transfers.unmatched):
        document.add(first_rows(unmatched_table(pipeline), view.rows, USUAL_ROWS))
    if pipeline.cut is not None:
        document.add(first_rows(cut_table(pipeline), view.rows, USUAL_ROWS))
    if pipeline.advice:
        document.add(first_rows(advice_table(pipeline), view.rows, USUAL_ROWS))
    return document


def answer_text(pipeline: Pipeline) -> str:
    """``4 stages, 8 micro-batches, 1f1b: idle 32 % of the time``."""
    if pipeline.stage_count < 2:
        return "no pipeline: one stage"
    names = {stage.schedule_name for stage in pipeline.stages if stage.schedule}
    schedule = f", {' and '.join(sorted(names))}" if names else ""
    micro = plural(pipeline.micro_batches, "micro-batch").replace("batchs", "batches")
    text = f"{pipeline.stage_count} stages, {micro}{schedule}"
    first = pipeline.bubbles[0] if pipeline.bubbles else None
    if first is not None and first.share is not None:
        return f"{text}; idle {share_text(first.share)} of the time"
    if first is not None:
        return f"{text}; idle {share_text(first.ideal)} of work with equal stages"
    return text


def _facts(view: PipelineView) -> Iterator[tuple[str, str]]:
    pipeline = view.pipeline
    moved = pipeline.transfers
    if pipeline.stage_count > 1:
        unknown = sum(not item.is_certain for item in moved.unmatched)
        lost = len(moved.unmatched) - unknown
        text = f"{plural(moved.matched, 'Send')} matched with a Receive"
        text += f", {lost} not" if lost else ""
        text += f", {unknown} to ranks without a dump" if unknown else ""
        yield "between stages", text
    if pipeline.imbalance is not None:
        yield "balance", f"slowest stage {share_text(pipeline.imbalance)} above the mean"
    yield "times", f"modelled for {view.machine.name}; only their ratios mean something"


# -- tables ------------------------------------------------------------------------------------


def stages_table(pipeline: Pipeline) -> Table:
    """One line a stage: its work and memory."""
    columns = [number_column("stage"), Column("ranks"), number_column("operators")]
    columns += [number_column("forward FLOP"), number_column("backward FLOP")]
    columns += [number_column("F ms"), number_column("B ms"), number_column("weights")]
    columns += [number_column("stays"), number_column("activations"), text_column("layers")]
    return Table(
        "Stages (FLOP of a step; ms of one micro-batch)",
        columns,
        [_stage_row(stage) for stage in pipeline.stages],
    )


def _stage_row(stage: Stage) -> list[Cell]:
    work = stage.work
    names = [layer.name for layer in stage.layers]
    layers = ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]} ({len(names)})"
    unknown = " +?" if work.unknown else ""
    return [
        stage.index,
        ranks_text(stage.ranks),
        sum(stage.operators.values()),
        f"{work.forward:,}{unknown}",
        f"{work.backward + work.recompute:,}{unknown}",
        f"{1000 * work.seconds.forward:.4g}",
        f"{1000 * work.seconds.backward:.4g}",
        bytes_text(stage.parameters),
        bytes_text(stage.static),
        bytes_text(stage.activations),
        layers,
    ]


def schedules_table(pipeline: Pipeline) -> Table:
    """The schedule of each stage, as the dumps have it."""
    columns = [number_column("stage"), Column("schedule"), number_column("warm-up")]
    columns += [number_column("in flight"), text_column("tasks")]
    rows: list[list[Cell]] = [
        [
            stage.index,
            stage.schedule_name,
            stage.schedule.warm_up,
            stage.schedule.in_flight,
            tasks_text(stage.schedule),
        ]
        for stage in pipeline.stages
        if stage.schedule is not None
    ]
    return Table("Schedule (F: forward, B: backward of a micro-batch)", columns, rows)


def tasks_text(schedule: Schedule, most: int = _TASKS_SHOWN) -> str:
    """``F0 F1 B0 …``."""
    tasks = [str(task) for task in schedule.tasks]
    return " ".join(tasks[:most]) + (f" … ({len(tasks)} tasks)" if len(tasks) > most else "")


def bubbles_table(pipeline: Pipeline) -> Table:
    """Idle time of the dumps' own schedule and of others."""
    columns = [Column("schedule"), number_column("equal stages"), number_column("these stages")]
    columns += [number_column("share of time"), number_column("ms a step")]
    rows: list[list[Cell]] = [
        [
            one.schedule,
            share_text(one.ideal),
            share_text(one.ratio),
            share_text(one.share),
            "?" if one.seconds is None else f"{1000 * one.seconds:.4g}",
        ]
        for one in pipeline.bubbles
    ]
    return Table("Idle time, over working time", columns, rows)


def transfers_table(pipeline: Pipeline) -> Table:
    """What stages hand to each other in a step."""
    columns = [number_column("from"), number_column("to"), Column("pass"), number_column("tensors")]
    columns += [Column("type"), number_column("bytes"), Column("ranks")]
    rows: list[list[Cell]] = [
        [
            one.from_stage,
            one.to_stage,
            one.direction,
            one.count,
            f"{one.dtype or '?'}{list(one.shape) if one.shape is not None else ''}",
            bytes_text(one.bytes),
            f"{one.ranks[0]} → {one.ranks[1]}",
        ]
        for one in pipeline.transfers.items
    ]
    return Table("Between stages, each step", columns, rows)


def unmatched_table(pipeline: Pipeline) -> Table:
    """Sends and Receives that nothing answers."""
    columns = [number_column("rank"), Column("node"), Column("operator"), number_column("peer")]
    columns += [number_column("tag"), number_column("line"), text_column("why")]
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
        for one in pipeline.transfers.unmatched
        if one.is_certain
    ]
    return Table("Without an answer: the run would hang", columns, rows)


def cut_table(pipeline: Pipeline) -> Table:
    """The stages as they are beside the best cut of the same layers."""
    cut = pipeline.cut
    columns = [number_column("stage"), number_column("now ms"), number_column("best ms")]
    columns.append(text_column("layers of the best cut"))
    rows: list[list[Cell]] = []
    for stage, cost, names in zip(
        pipeline.stages, cut.costs if cut else (), cut.stages if cut else (), strict=False
    ):
        now = sum(layer.cost for layer in stage.layers)
        run = ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]} ({len(names)})"
        rows.append([stage.index, f"{1000 * now:.4g}", f"{1000 * cost:.4g}", shortened(run, 60)])
    return Table("Best cut of the same layers (ms of one micro-batch)", columns, rows)


def advice_table(pipeline: Pipeline) -> Table:
    """What to change."""
    columns = [text_column("what"), text_column("to"), text_column("brings"), text_column("costs")]
    rows: list[list[Cell]] = [
        [one.switch, one.value, one.gain, one.price] for one in pipeline.advice
    ]
    return Table("Worth trying", columns, rows)
