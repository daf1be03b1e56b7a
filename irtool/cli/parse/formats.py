"""The output formats of ``irtool parse``: what to take from each dump, and how to write it.

Every format has two halves.  ``take`` runs where the dump is read, possibly in another process,
and returns something small or a stream of text; ``add`` and ``end`` run here, in order of the
files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from irtool.cli.inputs.dumps import pass_name
from irtool.cli.output import Output
from irtool.cli.report import Failure
from irtool.cluster.summary import GroupCount, Summary, group_nodes, merge_groups, summarize
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.run import InputFile
from irtool.report import rows
from irtool.report.answer import answer_pieces
from irtool.report.dump_json import GroupsAnswer, dump_pieces, files_text, unread_text
from irtool.report.json import json_value
from irtool.report.run_answer import no_context
from irtool.report.summary import (
    NodeRow,
    groups_report,
    node_row,
    nodes_report,
    summary_report,
)
from irtool.syntax.printer import dumps, node_lines


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; travels to other processes."""

    format: str
    where: str | None = None
    group_by: tuple[str, ...] = ()
    limit: int | None = None
    detailed: bool = True

    @property
    def kind(self) -> str:
        """Which pair of halves serves it."""
        if self.group_by:
            return "groups"
        if self.format == "table":
            return "summary" if self.where is None else "nodes"
        return "records" if self.format in ("ndjson", "csv", "parquet") else self.format

    @property
    def most(self) -> int | None:
        """Most nodes of a dump that scripts asked for; None for all."""
        return self.limit or None

    def predicate(self) -> Callable[[Node], bool] | None:
        """The query as a function."""
        if self.where is None:
            return None
        from irtool.syntax.query import query

        return query(self.where)


Taker = Callable[[Dump, InputFile, Request], Any]


def _take_summary(dump: Dump, file: InputFile, request: Request) -> Summary:
    return summarize(
        dump, pass_name(file), file.rank, request.predicate(), with_ties=request.detailed
    )


def _take_nodes(dump: Dump, file: InputFile, request: Request) -> list[NodeRow]:
    return [node_row(node, dump.path) for node in dump.nodes(where=request.predicate())]


def _take_groups(dump: Dump, file: InputFile, request: Request) -> Sequence[GroupCount]:
    from irtool.syntax.query import field

    getters = [field(name) for name in request.group_by]
    return group_nodes(dump.nodes(where=request.predicate()), getters)


def _take_json(dump: Dump, file: InputFile, request: Request) -> Iterator[str]:
    return dump_pieces(dump, pass_name(file), file.rank, request.predicate(), request.most)


def _take_records(dump: Dump, file: InputFile, request: Request) -> Any:
    name = pass_name(file)
    nodes = islice(dump.nodes(where=request.predicate()), request.most)
    records = (rows.node_record(node, dump.path, name, file.rank) for node in nodes)
    return _encoded(records, rows.COLUMNS, request.format)


def _encoded(records: Iterable[rows.Record], columns: Sequence[str], format: str) -> Any:
    """Records as pieces of text, or as a table of pyarrow."""
    if format == "parquet":
        return rows.arrow_table(list(records), columns)
    if format == "csv":
        return (rows.csv_text([record], columns, header=False) for record in records)
    return (rows.ndjson_text([record]) for record in records)


def _take_ir(dump: Dump, file: InputFile, request: Request) -> Iterable[str]:
    if request.where is None and request.most is None:
        return [dumps(dump)]
    nodes = islice(dump.nodes(where=request.predicate()), request.most)
    return (f"{line}\n" for node in nodes for line in node_lines(node))


TAKERS: dict[str, Taker] = {
    "summary": _take_summary,
    "nodes": _take_nodes,
    "groups": _take_groups,
    "json": _take_json,
    "records": _take_records,
    "ir": _take_ir,
}


class Writer(Protocol):
    """The second half of a format."""

    def add(self, taken: Any) -> None:
        """Take in what was taken from the next dump."""

    def unread(self, problem: Finding) -> None:
        """Note that the next file could not be read."""

    def end(self) -> None:
        """Write what is left to write."""


class _Collecting:
    """Keeps everything and shows one document at the end."""

    def __init__(self, output: Output, request: Request) -> None:
        self.output = output
        self.request = request
        self.taken: list[Any] = []

    def add(self, taken: Any) -> None:
        self.taken.append(taken)

    def unread(self, problem: Finding) -> None:
        pass

    def end(self) -> None:
        raise NotImplementedError


class _SummaryWriter(_Collecting):
    def end(self) -> None:
        self.output.show(summary_report(self.taken, self.request.limit))


class _NodesWriter(_Collecting):
    def end(self) -> None:
        shown = [row for taken in self.taken for row in taken]
        self.output.show(nodes_report(shown, self.request.limit, self.output.terminal))


class _GroupsWriter(_Collecting):
    def end(self) -> None:
        names = self.request.group_by
        groups = merge_groups(row for taken in self.taken for row in taken)
        if self.request.format == "table":
            self.output.show(groups_report(names, groups, self.request.limit))
            return
        columns = (*names, "count", "bytes")
        values = [(*row.key, row.count, row.bytes) for row in groups[: self.request.most]]
        records = [dict(zip(columns, map(json_value, row), strict=True)) for row in values]
        if self.request.format == "json":
            for piece in answer_pieces(GroupsAnswer(**no_context(), by=names, groups=records)):
                self.output.write(piece)
            return
        made = _RecordsWriter(self.output, self.request, columns)
        made.add(_encoded(records, columns, self.request.format))
        made.end()


class _JsonWriter(_Collecting):
    """``files`` is written an entry at a time."""

    def __init__(self, output: Output, request: Request) -> None:
        super().__init__(output, request)
        self._separator = f"{files_text()}[\n "
        self._held: list[str] = []

    def add(self, taken: Iterable[str]) -> None:
        for entry in self._held:
            self._entry([entry])
        self._held = []
        self._entry(taken)

    def unread(self, problem: Finding) -> None:
        # Held back: where nothing at all can be read, nothing is written.
        self._held.append(unread_text(problem))

    def _entry(self, pieces: Iterable[str]) -> None:
        self.output.write(self._separator)
        self._separator = ",\n "
        for piece in pieces:
            self.output.write(piece)

    def end(self) -> None:
        for entry in self._held:
            self._entry([entry])
        self.output.write("\n]}\n")


class _RecordsWriter(_Collecting):
    def __init__(
        self, output: Output, request: Request, columns: Sequence[str] = rows.COLUMNS
    ) -> None:
        super().__init__(output, request)
        self._parquet: Any = None
        self._columns = columns
        if request.format == "csv":
            output.write(rows.csv_text((), columns, header=True))

    def add(self, taken: Any) -> None:
        if self.request.format != "parquet":
            for piece in taken:
                self.output.write(piece)
            return
        if self._parquet is None:
            import pyarrow.parquet as pq

            self._parquet = pq.ParquetWriter(self.output.binary(), taken.schema, compression="zstd")
        self._parquet.write_table(taken)

    def end(self) -> None:
        if self._parquet is not None:
            self._parquet.close()


class _IrWriter(_Collecting):
    def add(self, taken: Iterable[str]) -> None:
        for piece in taken:
            self.output.write_dump(piece)

    def end(self) -> None:
        pass


_WRITERS: dict[str, type[_Collecting]] = {
    "summary": _SummaryWriter,
    "nodes": _NodesWriter,
    "groups": _GroupsWriter,
    "json": _JsonWriter,
    "records": _RecordsWriter,
    "ir": _IrWriter,
}


def writer_for(request: Request, output: Output) -> Writer:
    """The writer of a request.

    Args:
        request: what to take from each dump, and the format.
        output: where it goes.

    Raises:
        Failure: the format needs something that is missing, or cannot go to a terminal.
    """
    if request.format == "parquet":
        _check_parquet(output)
    return _WRITERS[request.kind](output, request)


def _check_parquet(output: Output) -> None:
    try:
        import pyarrow.parquet  # noqa: F401  # pyright: ignore[reportUnusedImport]  # only whether it is there
    except ImportError:
        hint = "pip install 'irtool[arrow]'"
        raise Failure("the format parquet needs pyarrow", hint=hint) from None
    if output.terminal:
        raise Failure("parquet is not for terminals", hint="write it to a file: -o FILE.parquet")
