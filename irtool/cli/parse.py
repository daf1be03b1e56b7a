"""``irtool parse``: what is in this dump?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Annotated, Any

import typer

from irtool.cli import options
from irtool.cli.inputs import input_size, inputs_for, pass_name, read_input
from irtool.cli.output import Output
from irtool.cli.parse_formats import TAKERS, Request, Writer, writer_for
from irtool.cli.report import Failure, report, report_problems
from irtool.cli.work import WorkerDied, processes_for, run_all
from irtool.cluster.summary import Summary
from irtool.ir.problem import Problem
from irtool.ir.run import InputFile
from irtool.syntax.query import QueryError, field, query
from irtool.syntax.run_classes import Fingerprints
from irtool.syntax.source import DumpError, read_content


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    ndjson = "ndjson"
    csv = "csv"
    parquet = "parquet"
    ir = "ir"


def command(
    paths: options.Paths,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people; ir prints back.")
    ] = Format.table,
    where: options.Where = None,
    group_by: Annotated[
        str | None,
        typer.Option(metavar="FIELD[,FIELD]", help="Count nodes and bytes by fields: op,phase."),
    ] = None,
    limit: options.Limit = None,
    rank: options.Rank = None,
    graph: options.GraphNumber = None,
    jobs: options.Jobs = None,
    output_file: options.OutputFile = None,
) -> int:
    """What is in this dump?

    One dump in detail, many in a line each; --where lists nodes, --group-by counts them.
    """
    request = Request(format.value, where, _fields(group_by), limit)
    _check(request)
    output = Output(output_file)
    files = inputs_for(paths, rank, graph)
    writer = writer_for(request, output)
    status = _parse(files, request, writer, jobs, bar=not output.terminal)
    output.close()
    return status


def _fields(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _check(request: Request) -> None:
    """Find mistakes in queries and fields before anything is read."""
    for option, texts, make in (
        ("--where", (request.where,), query),
        ("--group-by", request.group_by, field),
    ):
        for text in texts:
            if text is None:
                continue
            try:
                make(text)
            except QueryError as error:
                raise Failure(
                    error.message,
                    f"{option}:1:{error.column}",
                    error.column,
                    error.text,
                    error.hint,
                    "QRY001",
                ) from None
    if request.format == "ir" and request.group_by:
        raise Failure("groups cannot be printed as ir", hint="leave out --group-by")


# -- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    """What came of one file."""

    content: Any
    problems: tuple[Problem, ...]


def _take(file: InputFile, request: Request, whole: bool) -> _Taken:
    """Read one file and take from it what the format needs.

    ``whole`` makes streams into lists, so that they can travel between processes.
    """
    dump = read_input(file)
    content = TAKERS[request.kind](dump, file, request)
    if whole and isinstance(content, Iterator):
        content = list(content)
    return _Taken(content, dump.problems)


def _parse(
    files: Sequence[InputFile],
    request: Request,
    writer: Writer,
    jobs: int | None,
    bar: bool,
) -> int:
    """Read every file, write every result; the exit status."""
    classes: Sequence[tuple[InputFile, tuple[int, ...]]] = [(file, ()) for file in files]
    if request.kind == "summary":
        classes = fold_ranks(files)
    chosen = [file for file, _ in classes]
    processes = processes_for([input_size(file) for file in chosen], jobs)
    take: Callable[[InputFile], _Taken] = partial(_take, request=request, whole=processes > 1)
    problems: list[Problem] = []
    unread: list[Failure] = []
    for (file, ranks), outcome in zip(
        classes, run_all(take, chosen, processes, bar=bar), strict=True
    ):
        try:
            taken = outcome.get()
        except (DumpError, WorkerDied, MemoryError) as error:
            failure = _failure(file, error)
            unread.append(failure)
            writer.unread(file.path, failure.message, failure.hint)
            continue
        problems += taken.problems
        content = taken.content
        if isinstance(content, Summary) and ranks:
            content = replace(content, equal_ranks=ranks)
        writer.add(content)
    for failure in unread:
        report(failure.place, "error", failure.code, failure.message, hint=failure.hint)
    report_problems(problems)
    if len(unread) == len(files):
        return 2
    writer.end()
    return 1 if problems or unread else 0


def _failure(file: InputFile, error: Exception) -> Failure:
    if isinstance(error, DumpError):
        return Failure(error.message, error.path, hint=error.hint, code="SYN000")
    message = "not enough memory to read it" if isinstance(error, MemoryError) else str(error)
    return Failure(message, file.path, hint="try --jobs 1, or fewer files", code="SYN000")


# -- equal ranks -------------------------------------------------------------------------------


def fold_ranks(files: Sequence[InputFile]) -> list[tuple[InputFile, tuple[int, ...]]]:
    """One file for all ranks whose dumps are equal up to what depends on the rank.

    The text tells, so that only one rank of each class is parsed.  A file that stands for itself
    alone comes with no ranks.
    """
    if len({file.rank for file in files} - {None}) < 2:
        return [(file, ()) for file in files]
    fingerprints = Fingerprints()
    classes: dict[object, list[InputFile]] = {}
    for index, file in enumerate(files):
        key: object = index
        if file.rank is not None:
            key = _class_key(file, fingerprints) or index
        classes.setdefault(key, []).append(file)
    return [
        (members[0], tuple(sorted({m.rank for m in members if m.rank is not None})))
        if len(members) > 1
        else (members[0], ())
        for members in classes.values()
    ]


def _class_key(file: InputFile, fingerprints: Fingerprints) -> tuple[object, ...] | None:
    try:
        data = read_content(file.path).data
    except DumpError:
        return None
    text = data.decode("utf-8", "surrogateescape")
    return file.run, pass_name(file), fingerprints.of(text, file.rank or 0)
