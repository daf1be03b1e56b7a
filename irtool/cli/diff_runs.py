"""``irtool diff RUN_A RUN_B``: tensors, graphs, losses and hyperparameters of two runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from irtool.cli.diff_options import RunOptions
from irtool.cli.report import Failure, note
from irtool.ir.dump import Dump
from irtool.report.json import json_text
from irtool.syntax.collector import CollectorPause
from irtool.syntax.reading import parse_json, read_text
from irtool.syntax.run import Run, load_run
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.compare.run_sides import RunSide
    from irtool.compare.tensors.measure import Scheduler
    from irtool.compare.tensors.model import TensorRun

_MANY = 1 << 20


def is_for_runs(paths: list[str]) -> bool:
    """Whether two paths are to be compared as runs: one holds tensors, or both are run folders."""
    return any(holds_tensors(path) for path in paths) or all(os.path.isdir(p) for p in paths)


def holds_tensors(path: str) -> bool:
    """Whether a path is a digest, a file of tensors, or a folder with tensors somewhere."""
    if os.path.isfile(path):
        from irtool.compare.tensors.plain import SUFFIXES

        if path.endswith((".ir", ".ir.gz", ".ir.xz")):
            return False
        from irtool.compare.tensors.digest import is_digest

        return path.endswith(SUFFIXES) or is_digest(path)
    if not os.path.isdir(path):
        return False
    run = _run(path)
    if run.tensor_dumps or run.msprobe:
        return True
    from irtool.compare.tensors.open import holds_plain

    return not run.compilations and holds_plain(path)


def tell_runs(paths: list[str], options: RunOptions) -> int:
    """Compare and write; the exit status."""
    _calm_numpy()
    with CollectorPause.over(_MANY):  # an object or more a tensor, and hardly any garbage
        return _tell_runs(paths, options)


def _tell_runs(paths: list[str], options: RunOptions) -> int:
    from irtool.compare.run_tensors import Settings
    from irtool.compare.runs import compare_runs
    from irtool.compare.tensors.report import case_of

    sides = [_side(path, options) for path in paths]
    schedule, close = _schedule(options)
    try:
        settings = Settings(_names(options.map_file), schedule, options.rank, options.step, note)
        found = compare_runs(sides[0], sides[1], settings)
    finally:
        close()
    if not found.units and found.graphs is None and found.losses is None:
        reasons = [*found.missing, *found.left.complaints, *found.right.complaints]
        hint = "tensor dumps, dumps (*.ir) or losses are needed on both sides"
        raise Failure(f"nothing to compare: {'; '.join(reasons)}", paths[1], hint=hint)
    if not any(unit.pairs for unit in found.units) and not (found.graphs or found.losses):
        hint = "are these runs of one network? --map FILE pairs operators by name"
        raise Failure("no operator of one run has a partner in the other", paths[1], hint=hint)
    for side in sides:
        for complaint in side.complaints[:5]:
            note(complaint)
    shown = found.shown
    case = None
    if found.first is not None and shown is not None and shown.comparison is not None:
        case = case_of(shown.comparison, found.first)
    if options.format == "json":
        from irtool.report.runs_json import runs_object

        options.output.write(json_text(runs_object(found, case)) + "\n")
    elif options.format == "html":
        from irtool.report.page.write import render_page
        from irtool.report.runs_page import runs_page

        options.output.write(render_page(runs_page(found, case)))
    else:
        from irtool.report.runs import runs_document

        options.output.show(runs_document(found, case, options.limit))
    options.output.close()
    # Tensors that can't be read (cut off, or shorter than when they were listed) are something
    # to see, however equal the others are.
    unread = any(side.complaints for side in sides)
    return 1 if found.is_suspicious or unread else 0


def _side(path: str, options: RunOptions) -> RunSide:
    from irtool.cli.diff_losses import run_loss
    from irtool.compare.run_sides import side_of_file, side_of_run
    from irtool.compare.tensors.model import NoTensors

    if not os.path.isdir(path):
        try:
            return side_of_file(path)
        except NoTensors as error:
            raise Failure(str(error), path) from None
    run = _run(path)
    side = side_of_run(run, run_loss(run))
    side.dump = _dump(run, options)
    return side


def _dump(run: Run, options: RunOptions) -> Dump | None:
    """The dump that tells most of the network; None where the run has none."""
    try:
        compilation = run.compilation(options.graph, options.rank)
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


def _calm_numpy() -> None:
    # Sums over tensors wait for memory, and there are --jobs for more: threads only spin.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def _names(path: str | None) -> Mapping[str, str]:
    """The map of names: JSON (an object), or one ``left = right`` a line.

    Raises:
        Failure: it cannot be read.
    """
    if path is None:
        return {}
    try:
        text = read_text(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read the map: {reason}", path) from None
    if text.lstrip().startswith("{"):
        return _json_names(text, path)
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        left, mark, right = line.partition("=")
        if not mark or not left.strip() or not right.strip():
            hint = "one pair a line: name on the left = name on the right"
            raise Failure("not a pair of names", f"{path}:{number}:1", text=line, hint=hint)
        found[left.strip()] = right.strip()
    return found


def _json_names(text: str, path: str) -> Mapping[str, str]:
    try:
        document: Any = parse_json(text)
    except ValueError as error:
        raise Failure(f"the map is not JSON: {error}", path) from None
    if not isinstance(document, dict) or not all(
        isinstance(value, str)
        for value in document.values()  # pyright: ignore[reportUnknownVariableType]  # JSON
    ):
        raise Failure("the map is no object of texts", path, hint='{"left name": "right name"}')
    return document  # pyright: ignore[reportUnknownVariableType]  # checked just above


def _schedule(options: RunOptions) -> tuple[Scheduler | None, Any]:
    if options.scheduler is not None:
        from irtool.compare.tensors.cluster import Cluster, NoDask

        try:
            cluster = Cluster(options.scheduler, note)
        except NoDask as error:
            raise Failure(str(error), hint=error.hint) from None
        return cluster, cluster.close
    if options.jobs is not None and options.jobs > 1:
        from irtool.compare.tensors.schedule import Processes

        processes = Processes(options.jobs, note)
        return processes, processes.close
    return None, lambda: None


# -- digest --------------------------------------------------------------------------------------


def write_digest(path: str, options: RunOptions, output_file: str | None) -> int:
    """``--digest``: a run's statistics, to be compared later."""
    _calm_numpy()
    from irtool.compare.tensors import digest

    side = _side(path, options)
    losses: Mapping[int, float] = side.losses.loss.values if side.losses is not None else {}
    facts: dict[str, object] = {
        "losses": {str(step): value for step, value in losses.items() if value == value},
        "context": {key: str(value) for key, value in side.context.items()},
    }
    packed = bool(output_file) and str(output_file).endswith(".gz")
    schedule, close = _schedule(options)
    try:
        with CollectorPause.over(_MANY):
            runs = _filled(side, options, schedule)
            first = next(runs, None)
            if first is None:
                raise Failure("no tensors to make a digest of", path)
            stream = options.output.binary()
            digest.write_digest(stream, path, chain([first], runs), facts, packed)
    finally:
        close()
    options.output.close()
    return 0


def _filled(side: RunSide, options: RunOptions, schedule: Scheduler | None) -> Iterator[TensorRun]:
    """The units that are asked for, with the figures of all their tensors."""
    from irtool.compare.run_graphs import join_graph
    from irtool.compare.run_tensors import read_unit
    from irtool.compare.tensors import digest
    from irtool.compare.tensors.model import NoTensors

    for (rank, step, *_), unit in side.units.items():
        if options.rank not in (None, rank) or options.step not in (None, step):
            continue
        try:
            tensors = read_unit(unit)
        except NoTensors as error:
            note(f"{unit.path}: {error}")
            continue
        digest.fill(tensors, schedule)
        join_graph(side, tensors)
        for problem in tensors.problems:
            note(f"{tensors.path}: {problem}")
        note(f"{len(tensors.ops):,} operators of rank {tensors.rank}, step {tensors.step}")
        yield tensors
