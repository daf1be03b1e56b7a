"""``irtool diff``: two dumps, the passes of one compilation, the ranks of one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from irtool.cli.inputs import inputs_for, read_statements
from irtool.cli.output import Output
from irtool.cli.report import Failure, note, report_problems
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.compare.timeline import Snapshot, timeline
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.report.diff import DiffView, diff_document, timeline_document
from irtool.report.diff_json import diff_object, ranks_object, timeline_object
from irtool.report.diff_ranks import RankDifference, ranks_document
from irtool.report.json import json_text
from irtool.report.model import Document
from irtool.syntax.load import loads
from irtool.syntax.query import Predicate
from irtool.syntax.run import Compilation, Run, load_run
from irtool.syntax.run_classes import Fingerprints
from irtool.syntax.source import DumpError, read_content


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for; ``file`` is that of -o, if there is one."""

    format: str
    output: Output
    wanted: Predicate | None = None
    limit: int | None = None
    rank: int | None = None
    graph: int | None = None
    file: str | None = None


# -- two dumps -----------------------------------------------------------------------------------


def tell_dumps(paths: list[str], asked: Asked) -> int:
    """Compare two dumps and write; the exit status."""
    left, right = (_dump(asked, path) for path in _same_pass(paths, asked))
    status = _tell(asked, diff_graphs(left, right))
    asked.output.close()
    return 1 if left.problems or right.problems else status


def _same_pass(paths: list[str], asked: Asked) -> list[InputFile]:
    """The two files; of run folders the dumps of the last pass that both have."""
    if not all(os.path.isdir(path) for path in paths):
        return [_file(path, asked) for path in paths]
    sides = [_compilation(path, asked) for path in paths]
    names = [{file.name for file in side.passes} for side in sides]
    common = [file.name for file in sides[0].passes if file.name in names[1]]
    chosen = "validate" if "validate" in common else common[-1] if common else None
    files = [side.main if chosen is None else side.file(chosen) or side.main for side in sides]
    for file in files:
        note(f"compares {file.path}")
    return [InputFile(file.path, file.rank, None, file.name) for file in files]


def _file(path: str, asked: Asked) -> InputFile:
    if os.path.isdir(path):
        main = _compilation(path, asked).main
        note(f"compares {main.path}")
        return InputFile(main.path, main.rank, None, main.name)
    files, problems = inputs_for([path], asked.rank, asked.graph)
    if not files:
        problem = problems[0]
        raise Failure(problem.message, problem.path, hint=problem.hint, code=problem.code)
    if len(files) > 1:
        raise Failure(f"{len(files)} files match, and one is compared", path)
    return files[0]


def _compilation(path: str, asked: Asked) -> Compilation:
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


def _dump(asked: Asked, file: InputFile) -> Dump:
    dump = read_statements(file)
    report_problems(dump.problems)
    return dump


def _tell(asked: Asked, diff: GraphDiff) -> int:
    wanted = asked.wanted
    patterns = diff.patterns
    if wanted is not None:
        patterns = tuple(
            pattern
            for pattern in patterns
            if any(wanted(node) for edit in pattern.edits for node in (*edit.left, *edit.right))
        )
    view = DiffView(diff, patterns, asked.limit)
    if asked.format == "json":
        asked.output.write(json_text(diff_object(diff, patterns, wanted)) + "\n")
    elif asked.format == "html":
        from irtool.report.diff_page import diff_page
        from irtool.report.page.write import render_page

        asked.output.write(render_page(diff_page(view)))
    elif asked.format == "model-explorer":
        _write_explorer(asked, diff)
    else:
        asked.output.show(diff_document(view))
    return 0 if diff.is_identical else 1


def _write_explorer(asked: Asked, diff: GraphDiff) -> None:
    """Both graphs, and beside them the mapping between their nodes."""
    from irtool.report.diff_explorer import diff_explorer

    graphs, mapping = diff_explorer(diff)
    asked.output.write(json_text(graphs) + "\n")
    if asked.file is None or asked.file == "-":
        note("the mapping between the two graphs is written beside the file of -o FILE")
        return
    path = f"{os.path.splitext(asked.file)[0]}.mapping.json"
    beside = Output(path)
    beside.write(json_text(mapping) + "\n")
    beside.close()
    note(f"model-explorer {asked.file}: two panes, left and right; upload {path} to sync them")


# -- one run -------------------------------------------------------------------------------------


def tell_passes(path: str, asked: Asked) -> int:
    """What each pass of a compilation changed."""
    steps = list(timeline(_snapshots(_compilation(path, asked))))
    if not steps:
        raise Failure("a timeline takes two dumps of one compilation at least", path)
    _write_series(asked, timeline_object(steps), lambda: timeline_document(steps, asked.limit))
    return 0 if all(step.is_identical for step in steps) else 1


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


def tell_ranks(path: str, asked: Asked) -> int:
    """How the graphs of a run's ranks differ."""
    run = _run(path)
    try:
        compilations = run.across_ranks(asked.graph)
        classes = run.classes(asked.graph)
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    if all(item.file is None for item in classes):
        raise Failure("no rank has a dump that can be read", path)
    dumps = [
        compilations[item.representative].read(item.file) if item.file is not None else None
        for item in classes
    ]
    first = next(dump for dump in dumps if dump is not None)
    found = [
        RankDifference(
            item.ranks,
            dump is not None,
            None if dump is None or dump is first else diff_graphs(first, dump),
        )
        for item, dump in zip(classes, dumps, strict=True)
    ]
    _write_series(asked, ranks_object(found), lambda: ranks_document(found, asked.limit))
    return 0 if len(classes) == 1 else 1


def _write_series(asked: Asked, made: dict[str, object], document: Callable[[], Document]) -> None:
    if asked.format == "json":
        asked.output.write(json_text(made) + "\n")
    elif asked.format == "html":
        from irtool.report.diff_page import series_page
        from irtool.report.page.write import render_page

        asked.output.write(render_page(series_page(document())))
    else:
        asked.output.show(document())
    asked.output.close()
