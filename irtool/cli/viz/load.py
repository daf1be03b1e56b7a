"""What ``irtool viz`` draws: reads dumps and runs, asks ``check``, and reads overlays."""

from __future__ import annotations

import os
from collections.abc import Sequence

from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, parallel_of
from irtool.cli.inputs.begin import context_of, is_later
from irtool.cli.inputs.dumps import STDIN_NAME, inputs_for, read_statements
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.weigh import weighed
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump, dumps_of
from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.ir.run import InputFile
from irtool.ir.units import plural
from irtool.ir.whole import Whole
from irtool.report.context import context_lines
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.picture.overlay_json import OverlayError, read_overlays
from irtool.report.text import shortened
from irtool.sharding.check import check
from irtool.sharding.network.report import CheckResult
from irtool.syntax import file_facts
from irtool.syntax.reading import read_json
from irtool.syntax.run import load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError

_JUDGED = ("step_parallel_begin", "pre_auto_parallel", "pipeline_split")
_LARGEST_OVERLAY = 512 << 20


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn; ``report`` is there where ``check`` can judge it."""

    title: str
    dumps: tuple[Dump, ...]
    whole: Whole
    report: CheckResult | None = None
    problems: tuple[Finding, ...] = ()


def load_drawn(
    path: str,
    context: ContextArguments,
    configuration: Configuration,
    graph: int | None,
    *,
    whole: bool,
    judge: bool,
) -> Drawn:
    """Read the dump, or the whole run, that a path means, with what ``check`` says of it.

    Args:
        path: a dump, a run folder, or ``-``.
        context: what the command line says of the run.
        configuration: ``irtool.toml``.
        graph: number of the compilation; None: the largest training one.
        whole: all ranks of a run are drawn, not one dump.
        judge: ``check`` is asked, where the dump has strategies.

    Raises:
        Failure: there is nothing to draw.
    """
    if whole:
        return _whole_run(path, graph)
    file = _file(path, context.rank, graph)
    dump = read_statements(file)
    place = STDIN_NAME if file.path == STDIN else file.path
    report = _judged(file, dump, context, configuration) if judge else None
    return Drawn(_title(place), (dump,), dump.whole(), report, dump.problems)


def _title(path: str) -> str:
    """The last parts of a path, which tell the run, the rank and the pass."""
    return "/".join(os.path.normpath(path).split(os.sep)[-3:])


def _file(path: str, rank: int | None, graph: int | None) -> InputFile:
    if path != STDIN and file_facts.is_folder(path):
        return _main_of_run(path, rank, graph)
    files, problems = inputs_for([path], None, graph)
    if not files:
        problem = problems[0]
        raise Failure(problem.message, problem.file, hint=problem.hint, code=problem.code)
    report_problems(problems)
    if len(files) > 1:
        raise Failure(f"{len(files)} files match, and one is drawn at a time", path)
    return files[0]


def _main_of_run(path: str, rank: int | None, graph: int | None) -> InputFile:
    try:
        picked = load_run(path).compilation(graph, rank)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    main = picked.main
    note(f"draws {main.path}" + (f", {picked.chosen}" if picked.chosen else ""))
    return InputFile(main.path, picked.rank, picked.index, main.name, path)


def _whole_run(path: str, graph: int | None) -> Drawn:
    if not file_facts.is_folder(path):
        raise Failure("--whole joins the stages of a run", path, hint="give the run's folder")
    try:
        run = load_run(path)
        whole = run.whole(graph)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint) from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    ranks = list(dict.fromkeys(str(item.source) for item in whole.nodes))
    ranks.sort(key=lambda name: (len(name), name))
    joined = f"one of each stage, {plural(len(whole.transfers), 'transfer')}"
    how = joined if whole.transfers else "no stage sends to another"
    note(f"draws rank {', '.join(ranks)}: {how}")
    problems = tuple(problem for dump in whole.dumps for problem in dump.problems)
    return Drawn(_title(os.path.abspath(path)), dumps_of(whole), whole, None, problems)


# -- check -------------------------------------------------------------------------------------


def _judged(
    file: InputFile, dump: Dump, context: ContextArguments, configuration: Configuration
) -> CheckResult | None:
    """What ``check`` says of a dump taken before the parallel pass."""
    if file.path == STDIN or is_later(file.path):
        return None
    if parse_name(os.path.basename(file.path)).name not in _JUDGED:
        return None
    known = context_of(file, dump, context, configuration)
    if known.parallel is None:
        try:
            parallel_of(known, file.path)
        except Failure as failure:
            note(f"no slices on edges: {failure.message}")
        return None
    report = check(dump, known.parallel)
    for line in context_lines(weighed(known, report)):
        note(line)
    return report


# -- overlays ----------------------------------------------------------------------------------


def overlays_of(drawn: Drawn, paths: Sequence[str]) -> list[Overlay]:
    """Overlays of files, after those that ``check`` found just now.

    Args:
        drawn: what is drawn, with what ``check`` says of it.
        paths: of the files, in the order in which they were given.

    Returns:
        One a topic; of several files on one topic the last.

    Raises:
        Failure: a file cannot be read, or is no overlay.
    """
    overlays: list[Overlay] = []
    if drawn.report is not None:
        findings = findings_overlay(drawn.report)
        if findings.marks:
            overlays.append(findings)
    for path in paths:
        for overlay in _overlays(path, drawn.dumps):
            # What a file says goes before what was found on the way.
            overlays = [other for other in overlays if other.topic != overlay.topic]
            overlays.append(overlay)
    return overlays


def findings_overlay(report: CheckResult) -> Overlay:
    """The findings of ``check`` as marks of nodes.

    Args:
        report: of the dump that is drawn.

    Returns:
        A mark a node, of the first finding about it.
    """
    marks = {
        node: Mark(None, finding.severity, shortened(finding.message, 60))
        for finding in reversed(report.findings)
        if (node := node_of(finding)) is not None
    }
    return Overlay("findings", "findings of check", marks=marks)


def _overlays(path: str, dumps: Sequence[Dump]) -> list[Overlay]:
    try:
        data = read_json(path, _LARGEST_OVERLAY)
    except OSError as error:
        raise Failure(f"cannot read: {(error.strerror or str(error)).lower()}", path) from None
    except ValueError as error:
        message = f"no JSON: {error}"
        raise Failure(message, path, hint="--overlay takes what --format json writes") from None
    try:
        overlays = read_overlays(data, dumps)
    except OverlayError as error:
        raise Failure(str(error), path, hint=error.hint) from None
    if not overlays:
        note(f"{path}: says nothing of nodes of this dump")
    return overlays
