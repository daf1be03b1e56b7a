"""``irtool doctor``: everything that a run's folder can be asked, ranked."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, TypeAlias

from irtool.cli import options as shared
from irtool.cli.answering import Answered, AnswerForm, tell
from irtool.cli.context import (
    ContextArguments,
    context_command,
    find,
    given_by,
    refused_value,
)
from irtool.cli.declared import with_options
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.help import OUTPUT
from irtool.cli.inputs.memory import size_of
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.prefetch import prefetch_classes
from irtool.cli.question import Question, RunOptions, question_of
from irtool.cli.report import Failure, note
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.given import ContextError
from irtool.cluster.context.model import RunContext
from irtool.ir.dataclass import dataclass
from irtool.syntax import file_facts
from irtool.syntax.run import Run, load_run
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from collections.abc import Generator

    from irtool.cluster.context.given import Given
    from irtool.diagnosis.diagnosis import Task
    from irtool.diagnosis.examine import Examination


@dataclass(frozen=True, slots=True)
class DoctorOptions(RunOptions):
    """What the command line asks of a run's examination, as it is typed."""

    format: shared.AnswerFormat = AnswerForm.table
    against: Annotated[
        str | None,
        Option(metavar="RUN", help="A healthy run, or one of another device."),
    ] = None
    only: Annotated[
        list[str] | None,
        Option("--task", metavar="TASK", help="Only this question (may be repeated)."),
    ] = None
    open_page: Annotated[
        bool,
        Option(
            "--open",
            help="Write a page with everything that it links, and show it in a browser.",
            group=OUTPUT,
        ),
    ] = False
    machine: shared.MachineName = None
    memory: Annotated[
        str | None, Option("--memory", metavar="SIZE", help="Of one device, 64GiB say.")
    ] = None
    jobs: shared.Jobs = None
    limit: shared.Limit = None
    fail_on: FailOn = FailLevel.warning


DoctorQuestion: TypeAlias = "Question[str, DoctorOptions]"


@with_options(DoctorOptions)
def _doctor(
    path: Annotated[str, Argument(metavar="RUN", help="A run folder.", show_default=False)],
    options: DoctorOptions,
    *,
    context: ContextArguments,
) -> int:
    """What is wrong with this run, ranked: cause, place, edit, gain, and what shows more.

    Exit status: 0 nothing is graver than an opportunity; 1 there are errors or warnings.
    """
    from irtool.report.doctor.report import commands_of

    asked, file = question_of(path, options, context), options.output_file
    pages: list[tuple[str, str]] = []
    with _progress() as progress, _no_full_collections():
        answered = doctor_answered(asked, progress, pages)
    if options.open_page and file is not None:
        pages += _pages(commands_of(answered.result), os.path.dirname(file) or os.curdir)
    return tell(answered, Output(file), options.format, options.assumptions)


command = context_command("doctor", _doctor)


def doctor_answered(
    asked: DoctorQuestion,
    progress: Callable[[str, int, int], None] | None = None,
    pages: Sequence[tuple[str, str]] = (),
) -> Answered[Examination]:
    """What is wrong with a run.

    Args:
        asked: the question.
        progress: told of each part that is done.
        pages: of single questions, that the page links to: what each asks, and its file.

    Raises:
        Failure: nothing of a run is there, or what is said of it makes no sense.
    """
    from irtool.diagnosis.diagnosis import CannotJudge
    from irtool.diagnosis.examine import examine
    from irtool.diagnosis.subject import Subject
    from irtool.report.doctor.answer import doctor_answer
    from irtool.report.doctor.report import doctor_report

    options = asked.options
    run = _run_at(asked.source)
    against = None if options.against is None else _run_at(options.against)
    tasks, machine = _tasks_named(options.only or ()), named_machine(options.machine)
    memory = None if options.memory is None else size_of(options.memory, "--memory")

    def given(dump: str) -> Given:
        return given_by(asked.context, asked.configuration, dump, run.path)

    subject = Subject(run, given, machine, against, options.graph, memory)
    with suppress(LookupError, DumpError):  # examining says what of it can't be judged
        picked = run.compilation(options.graph)
        if picked.chosen:
            note(picked.chosen)
        prefetch_classes(run.classes(options.graph))
    # What makes no sense whatever was run is refused where there is nothing of a run, too.
    find(given_by(asked.context, asked.configuration, None), Evidence(), quiet=True)
    try:
        examination = examine(subject, tasks, options.jobs, progress)
    except ContextError as error:
        raise refused_value(error, asked.context.given) from None
    try:
        known = subject.context
    except CannotJudge:
        known = RunContext(None)
    return Answered(
        examination,
        lambda: doctor_answer(examination, known),
        lambda is_page: doctor_report(examination, options.limit, is_page, pages),
        known,
        status=fails(options.fail_on, those=(finding.severity for finding in examination.findings)),
    )


def _run_at(path: str) -> Run:
    """A run folder with something in it.

    Raises:
        Failure: there is none.
    """
    try:
        run = load_run(path)
    except DumpError as error:
        hint = error.hint
        if file_facts.is_file(path):
            folder = shlex.join(["irtool", "doctor", os.path.dirname(path) or os.curdir])
            hint = f"{folder} examines the folder, irtool parse a single dump"
        raise Failure(error.message, path, hint=hint) from None
    if not run.by_rank and not run.logs and not run.losses:
        hint = "a run folder holds rank_N/ with dumps (*.ir), logs, tensor dumps or losses"
        raise Failure("nothing of a run is in this folder", path, hint=hint)
    return run


def _tasks_named(names: Sequence[str]) -> tuple[Task, ...]:
    """Questions by their names.

    Raises:
        Failure: there is none of such a name.
    """
    from difflib import get_close_matches

    from irtool.diagnosis.diagnosis import TASKS

    known: dict[str, Task] = {str(task): task for task in TASKS}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
            raise Failure(f"there is no task {name}", "--task", hint=hint)
    return tuple(known[name] for name in names)


def _pages(commands: Sequence[tuple[str, ...]], folder: str) -> list[tuple[str, str]]:
    """Write the page of each question beside the first one: what it asks, and its file."""
    from concurrent.futures import ThreadPoolExecutor

    file_facts.cannot_repeat()  # other processes write these

    def written(file: str, command: tuple[str, ...]) -> bool:
        words = [sys.executable, "-m", "irtool", *command[1:], "--format", "html"]
        place = os.path.join(folder, file)
        done = subprocess.run([*words, "-o", place], capture_output=True, check=False)
        return done.returncode in (0, 1) and os.path.exists(place)

    files = [f"{number}.html" for number in range(1, len(commands) + 1)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(written, files, commands))
    pairs = zip(commands, files, made, strict=True)
    return [(shlex.join(command), file) for command, file, is_made in pairs if is_made]


@contextmanager
def _no_full_collections() -> Generator[None]:
    """The run's models live until all is asked: a full collection visits each object for nothing.

    What trials drop is young, and is collected as ever.
    """
    youngest, middle, oldest = gc.get_threshold()
    gc.set_threshold(youngest, middle, 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(youngest, middle, oldest)


@contextmanager
def _progress() -> Generator[Callable[[str, int, int], None] | None]:
    """A bar on a terminal's stderr; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    width = 24

    def show(name: str, done: int, count: int) -> None:
        bar = "█" * (width * done // count)
        sys.stderr.write(f"\r\x1b[K{bar:<{width}} {done}/{count} {name[:40]}")
        sys.stderr.flush()

    show("reading", 0, 1)
    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
