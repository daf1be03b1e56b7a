"""``irtool diff``: two dumps, the passes of one compilation, the ranks of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from irtool.cli.answering import Answered, tell, write_answer
from irtool.cli.configuration import Configuration
from irtool.cli.diff.options import DiffOptions
from irtool.cli.inputs.begin import context_of_any
from irtool.cli.inputs.dumps import inputs_for, read_statements
from irtool.cli.output import Output
from irtool.cli.prefetch import prefetch_classes
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.model import RunContext
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.compare.series import RankClass, Snapshot, timeline
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.report.diff.graphs import DiffView, diff_report, dumps_answer
from irtool.report.diff.series import passes_answer, passes_report, ranks_answer, ranks_report
from irtool.report.json import json_text
from irtool.syntax import file_facts
from irtool.syntax.load import loads
from irtool.syntax.run import Compilation, Run, load_run
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.source import DumpError, read_content

# -- two dumps -----------------------------------------------------------------------------------


def tell_dumps(paths: list[str], asked: DiffOptions, output: Output) -> int:
    """Compare two dumps and write the answer.

    Args:
        paths: of both; of run folders the last pass that both have is compared.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side can't be read.
    """
    answered = dumps_answered(paths, asked)
    if asked.form is None:
        _write_explorer(asked.output_file, output, answered.result.diff)
        return answered.status
    return tell(answered, output, asked.form)


def dumps_answered(sides: Sequence[str | Dump], asked: DiffOptions) -> Answered[DiffView]:
    """What differs between two dumps, and where that begins.

    Args:
        sides: dumps, or their paths; of run folders the last pass that both have is compared.
        asked: how to compare.

    Raises:
        Failure: a side can't be read.
    """
    left, right = _both(sides, asked)
    diff = diff_graphs(left, right)
    view = DiffView(diff, asked.limit, asked.wanted)
    return Answered(
        view,
        lambda: dumps_answer(view, contexts_of(left, right)),
        lambda is_page: diff_report(view, is_page),
        status=asked.status(not diff.is_identical, (*left.problems, *right.problems)),
    )


def _both(sides: Sequence[str | Dump], asked: DiffOptions) -> list[Dump]:
    paths = [side for side in sides if isinstance(side, str)]
    if len(paths) == len(sides):
        return [_dump(file) for file in _same_pass(paths, asked)]
    return [side if isinstance(side, Dump) else _dump(_file(side, asked)) for side in sides]


def contexts_of(*dumps: Dump) -> list[tuple[list[str], RunContext]]:
    """Dumps with the contexts that they were compiled with, as they and their folders say.

    Args:
        dumps: any number; nothing is given beside them.

    Returns:
        For each its path, alone in a list, and its context.
    """
    return [
        ([dump.path], context_of_any(InputFile(dump.path), Configuration(), dump)) for dump in dumps
    ]


def _same_pass(paths: Sequence[str], asked: DiffOptions) -> list[InputFile]:
    """The two files; of run folders the dumps of the last pass that both have."""
    if not all(file_facts.is_folder(path) for path in paths):
        return [_file(path, asked) for path in paths]
    sides = [_compilation(path, asked) for path in paths]
    names = [{file.name for file in side.passes} for side in sides]
    common = [file.name for file in sides[0].passes if file.name in names[1]]
    chosen = "validate" if "validate" in common else common[-1] if common else None
    files = [side.main if chosen is None else side.file(chosen) or side.main for side in sides]
    for file in files:
        note(f"compares {file.path}")
    return [InputFile(file.path, file.rank, None, file.name) for file in files]


def _file(path: str, asked: DiffOptions) -> InputFile:
    if file_facts.is_folder(path):
        main = _compilation(path, asked).main
        note(f"compares {main.path}")
        return InputFile(main.path, main.rank, None, main.name)
    files, problems = inputs_for([path], asked.rank, asked.graph)
    if not files:
        problem = problems[0]
        raise Failure(problem.message, problem.file, hint=problem.hint, code=problem.code)
    if len(files) > 1:
        raise Failure(f"{len(files)} files match, and a side of a comparison is one dump", path)
    return files[0]


def _compilation(path: str, asked: DiffOptions) -> Compilation:
    try:
        picked = _run(path).compilation(asked.graph, asked.rank)
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    if picked.chosen:
        note(f"{path}: {picked.chosen}")
    return picked


def _run(path: str) -> Run:
    try:
        return load_run(path)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None


def _dump(file: InputFile) -> Dump:
    try:
        dump = read_statements(file)
    except Failure:
        if not _holds_losses(file.path):
            raise
        hint = "irtool diff --loss LEFT RIGHT compares loss curves"
        raise Failure("is a loss curve, not a dump", file.path, hint=hint) from None
    report_problems(dump.problems)
    return dump


def _holds_losses(path: str) -> bool:
    from irtool.compare.losses.read import read_loss
    from irtool.compare.losses.series import NoLoss

    try:
        return len(read_loss(path).loss) > 0
    except (NoLoss, DumpError):
        return False


def _write_explorer(file: str | None, output: Output, diff: GraphDiff) -> None:
    """Both graphs, and beside them the mapping between their nodes."""
    from irtool.report.diff.explorer import diff_explorer

    graphs, mapping = diff_explorer(diff)
    output.write(json_text(graphs) + "\n")
    output.close()
    if file is None or file == "-":
        note("the mapping between the two graphs is written beside the file of -o FILE")
        return
    path = f"{os.path.splitext(file)[0]}.mapping.json"
    beside = Output(path)
    beside.write(json_text(mapping) + "\n")
    beside.close()
    note(f"model-explorer {file}: two panes, left and right; upload {path} to sync them")


# -- one run -------------------------------------------------------------------------------------


def tell_passes(path: str, asked: DiffOptions, output: Output) -> int:
    """Write what each pass of a compilation changed.

    Args:
        path: the run folder.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: there are not two dumps to compare.
    """
    compilation = _compilation(path, asked)
    steps = list(timeline(_snapshots(compilation)))
    if not steps:
        raise Failure("--passes needs two dumps of one compilation at least", path)
    write_answer(
        output,
        asked.answer_form,
        answer=lambda: passes_answer(
            steps, context_of_any(InputFile(compilation.main.path), Configuration())
        ),
        report=lambda is_page: passes_report(path, steps, asked.limit),
    )
    return asked.status(not all(step.is_identical for step in steps))


def _snapshots(compilation: Compilation) -> Iterator[Snapshot]:
    """The dumps of a compilation's passes; kernel graphs and actor sets are of another kind."""
    fingerprints = Fingerprints()
    for file in compilation.passes:
        if file.kind not in ("stage", "parallel", "pass"):
            continue
        try:
            text = read_content(file.path).data.decode("utf-8", "surrogateescape")
        except DumpError as error:
            note(f"{error.path}: {error.message}; left out")
            continue
        name = os.path.basename(file.path)
        yield Snapshot(name, fingerprints.of(text, 0), loads(text, file.path))


def tell_ranks(path: str, asked: DiffOptions, output: Output) -> int:
    """Write how the graphs of a run's ranks differ.

    Args:
        path: the run folder.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: no rank has a dump that can be read.
    """
    run = _run(path)
    try:
        compilations = run.across_ranks(asked.graph)
        classes = run.classes(asked.graph)
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    if all(item.file is None for item in classes):
        raise Failure("no rank has a dump that can be read", path)
    prefetch_classes(classes)
    dumps = [
        compilations[item.representative].read(item.file) if item.file is not None else None
        for item in classes
    ]
    first = next(dump for dump in dumps if dump is not None)
    differing = [
        RankClass(
            item.ranks,
            dump is not None,
            None if dump is None or dump is first else diff_graphs(first, dump),
        )
        for item, dump in zip(classes, dumps, strict=True)
    ]
    write_answer(
        output,
        asked.answer_form,
        answer=lambda: ranks_answer(differing, contexts_of(*filter(None, dumps))),
        report=lambda is_page: ranks_report(path, differing, asked.limit, is_page),
    )
    return asked.status(len(classes) > 1)
