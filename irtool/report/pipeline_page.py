"""A pipeline as pictures: the step of all stages, and an html page with everything."""

from __future__ import annotations

from irtool.cluster.pipeline import Pipeline
from irtool.cluster.schedule import TimedTask, in_turn
from irtool.report.model import Answer, Element, Picture, Report, Tone
from irtool.report.page.charts import Lane, Span, timeline
from irtool.report.pipeline import PipelineView, answer_text, pipeline_document

_NAMES = ("forward", "backward")


def pipeline_picture(view: PipelineView) -> str:
    """The stage timeline as svg: when each stage runs which micro-batch."""
    pipeline = view.pipeline
    if pipeline.played is not None:
        lanes = [
            Lane(f"stage {index}", [_span(task) for task in stage])
            for index, stage in enumerate(pipeline.played.stages)
        ]
        return timeline(lanes, "seconds", _NAMES)
    return timeline(_lanes_without_times(pipeline), "number", _NAMES)


def _lanes_without_times(pipeline: Pipeline) -> list[Lane]:
    """Tasks of the stages that are there, one after another: their times are not known."""
    lanes: list[Lane] = []
    for stage in pipeline.stages:
        if stage.schedule is not None:
            tasks = in_turn(stage.schedule)
            lanes.append(Lane(f"stage {stage.index}", [_span(task) for task in tasks]))
    return lanes


def _span(task: TimedTask) -> Span:
    return Span(task.start, task.end, str(task.task), 0 if task.task.kind == "F" else 1)


def pipeline_page(view: PipelineView) -> Report:
    """An html page of a view."""
    pipeline = view.pipeline
    sections: list[Element] = []
    if pipeline.stage_count > 1 and any(stage.schedule for stage in pipeline.stages):
        sections.append(
            Picture(
                "One step",
                pipeline_picture(view),
                "When each stage runs the forward and backward pass of which micro-batch.",
                "times are modelled",
            )
        )
    document = pipeline_document(PipelineView(view.path, pipeline, view.machine, rows=0))
    sections += document.blocks[1:]
    lost = any(item.is_certain for item in pipeline.transfers.unmatched)
    tone: Tone = "bad" if lost else "unknown" if pipeline.missing else "plain"
    answer = Answer(answer_text(pipeline), tone, list(pipeline.limits))
    return Report(f"pipeline: {view.path}", answer, sections)
