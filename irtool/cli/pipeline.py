"""``irtool pipeline``: stages, their work, their schedule, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.kernels import StepTime, step_times
from irtool.artefacts.legacy import legacy_stages
from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.context import ContextArguments, context_command
from irtool.cli.declared import with_options
from irtool.cli.failing import fails
from irtool.cli.inputs.memory import (
    Layout,
    RankDump,
    layout_of,
    placed,
    read_ranks,
    sizes_of,
    target_of,
    with_sizes,
)
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.question import Question, RunOptions, question_of
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.machine import default_machine
from irtool.cluster.memory import memory
from irtool.cluster.pipeline import Pipeline, StageInput, pipeline
from irtool.cluster.pipeline.measured import MeasuredStage, measured_stage
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.report.pipeline import PipelineView, pipeline_answer, pipeline_report
from irtool.syntax import file_facts
from irtool.syntax.run import load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.source import DumpError


@dataclass(frozen=True, slots=True)
class PipelineOptions(RunOptions):
    """What the command line asks of a pipeline, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    bind: shared.Bind = None
    machine: shared.MachineName = None
    limit: shared.Limit = None
    allow_unknown: shared.AllowUnknown = False


PipelineQuestion: TypeAlias = "Question[Sequence[str | Dump], PipelineOptions]"


@with_options(PipelineOptions)
def _pipeline(
    paths: shared.Paths,
    options: PipelineOptions,
    *,
    context: ContextArguments,
) -> int:
    """Stages: their work and memory, schedule, waiting, balance, transfers; what to change.

    Reads a run folder with a validate dump of each stage; with fewer it says what it cannot know.
    Exit status: 0 fine; 1 a Send or Receive has no answer, or a part is unknown.
    """
    asked = question_of(paths, options, context)
    return tell(
        pipeline_answered(asked), Output(options.output_file), options.format, options.assumptions
    )


command = context_command("pipeline", _pipeline)


def pipeline_answered(asked: PipelineQuestion) -> Answered[PipelineView]:
    """The stages of a run, and how long they wait.

    Args:
        asked: about a run folder, or dumps of its stages.

    Raises:
        Failure: nothing can be read, or nobody says how many stages there are.
    """
    options, sizes = asked.options, sizes_of(asked.options.bind or ())
    ranks = read_ranks(asked.source, asked.context.rank, options.graph)
    ranks = [with_sizes(one, sizes) for one in ranks]
    named = named_machine(options.machine)
    layout = layout_of(ranks, asked.context, asked.configuration, named)
    model = named or default_machine(target_of(layout.context))
    result = pipeline(_inputs(ranks, layout), layout.stages or 1, layout.devices or 1, model)
    first = asked.source[0]
    name = ranks[0].path if isinstance(first, Dump) or first == STDIN else first
    more = len(asked.source) - 1
    path = f"{name} and {more} more" if more else name
    view = PipelineView(path, result, model, options.limit, _measured(first, layout))
    problems = [problem for one in ranks for problem in one.dump.problems]
    return Answered(
        view,
        lambda: pipeline_answer(view, model, layout.context),
        lambda is_page: pipeline_report(view, is_page),
        layout.context,
        status=fails(
            options.fail_on,
            "warning" if layout.context.contradictions else None,
            "error" if _hangs(result) else None,
            "info" if _is_unknown(result) and not options.allow_unknown else None,
            those=(problem.severity for problem in problems),
        ),
    )


def _inputs(dumps: Sequence[RankDump], layout: Layout) -> list[StageInput]:
    """The dumps with their ranks; where nobody says the rank of a single one, it is taken as 0.

    Raises:
        Failure: nobody says how many stages there are, or whose dumps these are.
    """
    if layout.stages is None or (layout.stages > 1 and layout.devices is None):
        raise Failure(
            "how many devices and stages are there? Neither the dumps nor their folder say it",
            hint="--devices 16 --stages 4, and --rank for a single dump",
        )
    if len(dumps) > 1 and any(one.rank is None for one in dumps):
        one = next(one for one in dumps if one.rank is None)
        hint = "put each dump into a folder rank_N, or give one and --rank"
        raise Failure("whose dump is this?", one.path, hint=hint)
    dumps = placed(dumps, layout)
    if dumps[0].rank is None and layout.stages > 1:
        note(f"{dumps[0].path}: taken as rank 0; --rank says whose it is")
    return [
        StageInput(one.rank or 0, one.ranks or (one.rank or 0,), memory(one.dump)) for one in dumps
    ]


def _measured(source: str | Dump, layout: Layout) -> tuple[MeasuredStage, ...]:
    """What ranks of a run folder measured of their steps (``step_trace_time.csv``)."""
    if not isinstance(source, str) or not file_facts.is_folder(source):
        return ()
    try:
        run = load_run(source)
    except DumpError:
        return ()
    stages: list[MeasuredStage] = []
    for rank, one in run.by_rank.items():
        path, read = one.artefact("steps"), step_times
        if path is None:
            path, read = one.artefact("legacy stages"), legacy_stages
        if path is None:
            continue
        damage = Damage(path)
        steps: list[StepTime] = []
        try:
            steps += read(path, damage)
        except ArtefactError as error:
            damage.add(error.line or 1, error.message, hint=error.hint)
        report_problems(damage.problems)
        if steps:
            stages.append(measured_stage(rank, layout.stage_of(rank), path, steps))
    return tuple(stages)


def _hangs(result: Pipeline) -> bool:
    """Whether a Send or Receive has no answer, or the schedule waits for ever."""
    return bool(result.transfers.lost) or bool(result.played is not None and result.played.waits)


def _is_unknown(result: Pipeline) -> bool:
    unknown = bool(result.missing) or any(stage.work.unknown for stage in result.stages)
    return unknown and result.stage_count > 1
