"""The answer of ``irtool doctor`` for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from irtool.cluster.context.model import RunContext
from irtool.diagnosis.diagnosis import Diagnosis, NotJudged, Task
from irtool.diagnosis.examine import Examination
from irtool.diagnosis.figures import Figures
from irtool.ir.finding import Severity
from irtool.report.answer import AnswerObject, doc
from irtool.report.findings.answer import EditGain, FindingEdit, edit_gain, finding_edit
from irtool.report.run_answer import RunAnswer, context_fields


class PythonPlace(AnswerObject, frozen=True, kw_only=True):
    """A line of the user's code."""

    file: str
    line: int


class DoctorFinding(AnswerObject, frozen=True, kw_only=True):
    """One thing that is wrong, or that could be better."""

    task: Task
    severity: Annotated[
        Severity,
        doc("error: it stops the run or makes it wrong; warning: it costs; info: a chance"),
    ]
    cause: str
    since: Annotated[str | None, doc("the step or pass from which on it is there")]
    rank: Annotated[int | None, doc("the first that has it; null: it is the whole run's")]
    ranks: Annotated[Sequence[int], doc("all that have it")]
    node: str | None
    file: Annotated[str | None, doc("the dump or log that shows it")]
    line: Annotated[int | None, doc("in that file")]
    source: PythonPlace | None
    edit: Annotated[FindingEdit | None, doc("what to change; null: irtool does not know")]
    no_edit: Annotated[str | None, doc("why there is no edit, where one would be expected")]
    gain: EditGain | None
    command: Annotated[list[str], doc("that shows more, as arguments")]


class UnjudgedTask(AnswerObject, frozen=True, kw_only=True):
    """A task that nothing can be said about."""

    task: Task
    why: str


class RunFigures(AnswerObject, frozen=True, kw_only=True):
    """What is known of the run; null: not known."""

    devices: int | None
    ranks: Annotated[Sequence[int], doc("that left anything")]
    stages: int | None
    axes: Annotated[Sequence[int], doc("sizes of the device matrix that most operators use")]
    parameters: Annotated[int | None, doc("elements of the weights of the first rank's stage")]
    step_seconds: Annotated[float | None, doc("of a step as predicted, nothing hidden")]
    seconds: Annotated[dict[str, float], doc("of a step, by cause")]
    communication_share: float | None
    peak_bytes: Annotated[int | None, doc("of the rank that holds most")]
    machine: Annotated[str, doc("that seconds are of")]


class DoctorAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.doctor/1"):
    """What is wrong with a run, ranked; and what nothing could be said about."""

    path: str
    healthy: Annotated[
        bool | None,
        doc(
            "no finding is graver than an info; `null`: so far as could be judged, which is not all"
        ),
    ]
    findings: Annotated[list[DoctorFinding], doc("the gravest first")]
    not_judged: list[UnjudgedTask]
    figures: RunFigures


def doctor_answer(examination: Examination, context: RunContext) -> DoctorAnswer:
    """The answer of ``irtool doctor`` for scripts.

    Args:
        examination: findings ranked, what was not judged, and the figures of the run.
        context: of the run, with origins.
    """
    return DoctorAnswer(
        path=examination.path,
        healthy=examination.is_healthy,
        findings=[_finding(item) for item in examination.findings],
        not_judged=[_unjudged(item) for item in examination.not_judged],
        figures=_figures(examination.figures),
        **context_fields(context),
    )


def _finding(item: Diagnosis) -> DoctorFinding:
    source = item.source
    return DoctorFinding(
        task=item.task,
        severity=item.severity,
        cause=item.message,
        since=item.since or None,
        rank=item.rank,
        ranks=item.ranks,
        node=item.node,
        file=item.file or None,
        line=item.line or None,
        source=None if source is None else PythonPlace(file=source.path, line=source.line),
        edit=finding_edit(item.edit),
        no_edit=item.no_edit or None,
        gain=edit_gain(item.gain),
        command=list(item.arguments),
    )


def _unjudged(item: NotJudged) -> UnjudgedTask:
    return UnjudgedTask(task=item.task, why=item.why)


def _figures(figures: Figures) -> RunFigures:
    return RunFigures(
        devices=figures.devices,
        ranks=figures.ranks,
        stages=figures.stages,
        axes=figures.axes,
        parameters=figures.parameters,
        step_seconds=figures.step,
        seconds=figures.seconds,
        communication_share=figures.communication,
        peak_bytes=figures.peak,
        machine=figures.target,
    )
