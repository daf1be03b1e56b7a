"""``irtool parse``: what is in this dump?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from irtool.cli import options as shared
from irtool.cli.declared import with_options
from irtool.cli.inputs.dumps import input_size, inputs_for, pass_name, read_input
from irtool.cli.output import Output
from irtool.cli.parse.formats import TAKERS, Request, Writer, writer_for
from irtool.cli.parse.options import ParseOptions
from irtool.cli.report import Failure, report_problems
from irtool.cli.work import WorkerDied, processes_for, run_all
from irtool.cluster.summary import Summary
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.run import InputFile
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.source import DumpError, read_content


@with_options(ParseOptions)
def command(paths: shared.Paths, options: ParseOptions) -> int:
    """What is in this dump?

    One dump in detail, many in a line each; --where lists nodes, --group-by counts them.
    """
    request = Request(options.format.value, options.where, options.fields, options.limit)
    _check(request)
    if options.reduce is not None or options.redact:
        # What is rarely asked for, and imports much, is imported when asked for.
        from irtool.cli.parse.excerpt import tell_excerpt

        return tell_excerpt(paths, options)
    output = Output(options.output_file)
    if options.history is not None:
        from irtool.cli.parse.history import tell_history

        return tell_history(_only(paths, "--history"), options.history, options, output)
    files, problems = inputs_for(paths, options.rank, options.graph)
    writer = writer_for(request, output)
    reading = _Reading(request, writer, list(problems))
    reading.read(files, options.jobs, bar=not output.terminal)
    status = reading.finish()
    if status != 2:
        output.close()
    return status


def _only(paths: Sequence[str], option: str) -> str:
    if len(paths) != 1:
        raise Failure(f"{option} is about one dump or run folder")
    return paths[0]


def _check(request: Request) -> None:
    """Find mistakes in queries and fields before anything is read."""
    if request.where is not None or request.group_by:
        _check_queries(request)
    if request.format == "ir" and request.group_by:
        raise Failure("groups cannot be printed as ir", hint="leave out --group-by")


def _check_queries(request: Request) -> None:
    # They need Lark and the table of operators, which a dump that was read before does not.
    from irtool.cli.where import of_query, read_query
    from irtool.syntax.query import QueryError, field

    if request.where is not None:
        read_query("--where", request.where)
    for text in request.group_by:
        try:
            field(text)
        except QueryError as error:
            raise of_query("--group-by", error) from None


# -- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    """What came of one file."""

    content: Any
    problems: tuple[Finding, ...]


def _take(file: InputFile, request: Request, as_list: bool) -> _Taken:
    """Read one file and take from it what the format needs.

    ``as_list`` makes streams into lists, so that they can travel between processes.
    """
    dump = read_input(file)
    content = TAKERS[request.kind](dump, file, request)
    if as_list and isinstance(content, Iterator):
        content = list(cast("Iterator[object]", content))
    return _Taken(content, dump.problems)


class _Reading:
    """Reads every file and hands what was taken to the writer; collects problems on the way."""

    def __init__(self, request: Request, writer: Writer, problems: list[Finding]) -> None:
        self.request = request
        self.writer = writer
        self.problems = problems
        self.was_read = 0
        for problem in problems:
            if problem.severity == "error":
                writer.unread(problem)

    def read(self, files: Sequence[InputFile], jobs: int | None, bar: bool) -> None:
        """Read files, in this process or in several."""
        classes: Sequence[tuple[InputFile, tuple[int, ...]]] = [(file, ()) for file in files]
        if self.request.kind == "summary":
            classes = fold_ranks(files)
        chosen = [file for file, _ in classes]
        processes = processes_for([input_size(file) for file in chosen], jobs)
        request = replace(self.request, detailed=len(chosen) == 1)
        take = partial(_take, request=request, as_list=processes > 1)
        outcomes = run_all(take, chosen, processes, bar=bar)
        for (file, ranks), outcome in zip(classes, outcomes, strict=True):
            try:
                self._add(outcome.get(), ranks)
            except (DumpError, WorkerDied, MemoryError) as error:
                problem = _unreadable(file, error)
                self.problems.append(problem)
                self.writer.unread(problem)

    def _add(self, taken: _Taken, ranks: tuple[int, ...]) -> None:
        self.was_read += 1
        self.problems += taken.problems
        content = taken.content
        if isinstance(content, Summary) and ranks:
            content = replace(content, equal_ranks=ranks)
        self.writer.add(content)

    def finish(self) -> int:
        """Report problems and write what is left; the exit status."""
        report_problems(self.problems)
        if not self.was_read:
            return 2
        self.writer.end()
        return 1 if self.problems else 0


def _unreadable(file: InputFile, error: Exception) -> Finding:
    if isinstance(error, DumpError):
        return Finding("SYN000", "error", error.message, error.path, 1, hint=error.hint)
    message = "not enough memory to read it" if isinstance(error, MemoryError) else str(error)
    hint = "try --jobs 1, or fewer files at a time"
    return Finding("SYN000", "error", message, file.path, 1, hint=hint)


# -- equal ranks -------------------------------------------------------------------------------


def fold_ranks(files: Sequence[InputFile]) -> list[tuple[InputFile, tuple[int, ...]]]:
    """One file for all ranks whose dumps are equal up to what depends on the rank.

    The text tells, so that only one rank of each class is parsed.  A file that stands for itself
    alone comes with no ranks.
    """
    alike: dict[tuple[object, ...], list[InputFile]] = {}
    for index, file in enumerate(files):
        place = (file.run, file.compilation, pass_name(file)) if file.run else (index,)
        alike.setdefault(place, []).append(file)
    fingerprints = Fingerprints()
    classes: dict[InputFile, dict[int | None, InputFile]] = {}
    for members in alike.values():
        for made in _classes(members, fingerprints):
            classes[next(iter(made.values()))] = made
    order = [file for file in files if file in classes]
    return [(file, _ranks(classes[file])) for file in order]


def _ranks(members: dict[int | None, InputFile]) -> tuple[int, ...]:
    return tuple(sorted(rank for rank in members if rank is not None)) if len(members) > 1 else ()


def _classes(
    files: Sequence[InputFile], fingerprints: Fingerprints
) -> list[dict[int | None, InputFile]]:
    """Classes of one pass of one compilation: files by rank, each rank once."""
    if len({file.rank for file in files}) < 2:
        return [{file.rank: file} for file in files]
    by_fingerprint: dict[str, list[dict[int | None, InputFile]]] = {}
    for file in files:
        known = by_fingerprint.setdefault(_fingerprint(file, fingerprints), [])
        for members in known:
            if file.rank not in members:
                members[file.rank] = file
                break
        else:
            known.append({file.rank: file})
    return [members for known in by_fingerprint.values() for members in known]


def _fingerprint(file: InputFile, fingerprints: Fingerprints) -> str:
    try:
        data = read_content(file.path).data
    except DumpError:
        return file.path  # like no other; reading it again will say why
    return fingerprints.of(data.decode("utf-8", "surrogateescape"), file.rank or 0)
