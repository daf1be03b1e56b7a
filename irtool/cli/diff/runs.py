"""``irtool diff RUN_A RUN_B``: tensors, graphs, losses and hyperparameters of two runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irtool.cli.answering import Answered, tell
from irtool.cli.diff.layout import layouts_at
from irtool.cli.diff.names import maps_of
from irtool.cli.diff.options import DiffOptions
from irtool.cli.output import Output
from irtool.cli.report import Failure, note
from irtool.ir.dump import Dump
from irtool.syntax import file_facts
from irtool.syntax.collector import CollectorPause
from irtool.syntax.run import Run, load_run
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.compare.runs.sides import RunSide
    from irtool.compare.tensors.measuring.measure import Scheduler
    from irtool.report.diff.runs.answer import RunsView

MANY_OBJECTS = 1 << 20
"""Objects up to which the collector need not look for garbage."""


def is_for_runs(paths: Sequence[str]) -> bool:
    """Whether two paths are to be compared as runs: one holds tensors, or both are run folders.

    Args:
        paths: as they were given.
    """
    return any(holds_tensors(path) for path in paths) or all(file_facts.is_folder(p) for p in paths)


def holds_tensors(path: str) -> bool:
    """Whether a path is a digest, a file of tensors, or a folder with tensors somewhere."""
    if file_facts.is_file(path):
        from irtool.compare.tensors.formats.plain import SUFFIXES

        if path.endswith((".ir", ".ir.gz", ".ir.xz")):
            return False
        from irtool.compare.tensors.digest import is_digest

        return path.endswith(SUFFIXES) or is_digest(path)
    if not file_facts.is_folder(path):
        return False
    run = _run(path)
    if run.tensor_dumps or run.msprobe:
        return True
    from irtool.compare.tensors.plain_files import holds_plain

    return not run.compilations and holds_plain(path)


def tell_runs(paths: list[str], asked: DiffOptions, output: Output) -> int:
    """Compare two runs and write the answer.

    Args:
        paths: run folders, tensor dumps or digests.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side can't be read, or the sides have nothing in common.
    """
    return tell(runs_answered(paths, asked), output, asked.answer_form)


def runs_answered(
    paths: Sequence[str], asked: DiffOptions, keeps_all: bool = False
) -> Answered[RunsView]:
    """What differs between two runs: tensors, graphs, losses and hyperparameters.

    Args:
        paths: run folders, tensor dumps or digests.
        asked: how to compare.
        keeps_all: the tensors of all steps and ranks stay in memory, not of one.

    Raises:
        Failure: a side can't be read, or the sides have nothing in common.
    """
    calm_numpy()
    with CollectorPause.over(MANY_OBJECTS):  # an object or more a tensor, and hardly any garbage
        return _runs_answered(paths, asked, keeps_all)


def _runs_answered(paths: Sequence[str], asked: DiffOptions, keeps_all: bool) -> Answered[RunsView]:
    from irtool.cli.diff.graphs import contexts_of
    from irtool.compare.runs.comparison import compare_runs, first_case
    from irtool.compare.runs.units import Settings
    from irtool.report.diff.runs.answer import RunsView, runs_answer
    from irtool.report.diff.runs.report import runs_report

    sides = [side_of(path, asked) for path in paths]
    repeats = [side_of(path, asked) for path in asked.repeat or ()]
    schedule, close = schedule_of(asked)
    try:
        names = maps_of(asked.map_file)
        layouts = layouts_at(asked.layout)
        settings = Settings(
            names, schedule, asked.rank, asked.step, note, repeats, layouts, keeps_all
        )
        comparison = compare_runs(sides[0], sides[1], settings)
    finally:
        close()
    if not comparison.units and comparison.graphs is None and comparison.losses is None:
        reasons = [*comparison.missing, *comparison.left.complaints, *comparison.right.complaints]
        hint = "tensor dumps, dumps (*.ir) or losses are needed on both sides"
        raise Failure(f"nothing to compare: {'; '.join(reasons)}", paths[1], hint=hint)
    if not any(unit.pairs for unit in comparison.units) and not (
        comparison.graphs or comparison.losses
    ):
        hint = "are these runs of one network? --map FILE pairs operators by name"
        raise Failure("no operator of one run has a partner in the other", paths[1], hint=hint)
    for side in (*sides, *repeats):
        for complaint in side.complaints[:5]:
            note(complaint)
    view = RunsView(
        comparison, first_case(comparison), asked.limit, asked.strict, tuple(asked.repeat or ())
    )
    differs = asked.strict and not comparison.is_identical
    graphs = comparison.graphs
    # Tensors that can't be read (cut off, or shorter than when they were listed) are something
    # to see, however equal the others are.
    unread = any(side.complaints for side in sides)
    return Answered(
        view,
        lambda: runs_answer(view, () if graphs is None else contexts_of(graphs.left, graphs.right)),
        lambda is_page: runs_report(view, is_page),
        status=asked.status(comparison.is_suspicious or unread or differs),
    )


def side_of(path: str, asked: DiffOptions) -> RunSide:
    """What one path has to be compared: graphs, tensors, losses, settings.

    Args:
        path: a run folder, or a file of tensors.
        asked: which rank and compilation of a run.

    Raises:
        Failure: it can't be read, or holds nothing of these.
    """
    from irtool.cli.diff.losses import run_loss
    from irtool.compare.runs.sides import side_of_file, side_of_run
    from irtool.compare.tensors.model import NoTensors

    if not file_facts.is_folder(path):
        try:
            return side_of_file(path)
        except NoTensors as error:
            raise Failure(str(error), path) from None
    run = _run(path)
    side = side_of_run(run, run_loss(run))
    side.dump = _dump(run, asked)
    return side


def _dump(run: Run, asked: DiffOptions) -> Dump | None:
    """The dump that tells most of the network; None where the run has none."""
    try:
        compilation = run.compilation(asked.graph, asked.rank)
    except LookupError:
        return None
    if compilation.chosen:
        note(f"{run.path}: {compilation.chosen}")
    try:
        return compilation.read(compilation.main)
    except DumpError as error:
        note(f"{error.path}: {error.message}")
        return None


def _run(path: str) -> Run:
    try:
        return load_run(path)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None


def calm_numpy() -> None:
    """Keep numpy to one thread, unless the environment says otherwise."""
    # Sums over tensors wait for memory, and there are --jobs for more: threads only spin.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def schedule_of(asked: DiffOptions) -> tuple[Scheduler | None, Callable[[], None]]:
    """Where tensors are measured, and what ends that; None measures here.

    Args:
        asked: with ``--scheduler`` (a Dask cluster) or ``--jobs`` (processes of this machine).

    Returns:
        What measures, and a function to call when all is measured.

    Raises:
        Failure: there is no Dask.
    """
    if asked.scheduler is not None:
        from irtool.compare.tensors.measuring.cluster import Cluster, NoDask

        try:
            cluster = Cluster(asked.scheduler, note)
        except NoDask as error:
            raise Failure(str(error), hint=error.hint) from None
        return cluster, cluster.close
    if asked.jobs is not None and asked.jobs > 1:
        from irtool.compare.tensors.measuring.schedule import Processes

        processes = Processes(asked.jobs, note)
        return processes, processes.close
    return None, lambda: None
