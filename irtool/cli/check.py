"""``irtool check``: is each strategy legal, and what will be sliced and communicated?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import combinations, product
from math import log2, prod
from typing import Annotated, cast

import typer

from irtool.cli import options
from irtool.cli.configuration import load_custom_rules, read_configuration
from irtool.cli.context import (
    ContextArguments,
    Resolved,
    context_command,
    context_of,
    find_begin,
)
from irtool.cli.inputs import STDIN_NAME, read_input
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.ir.run import InputFile
from irtool.render.check import CheckView, check_document
from irtool.render.check_json import check_pieces
from irtool.sharding.check import check
from irtool.sharding.judge import judge
from irtool.sharding.network.report import CheckFinding, OperatorReport, Report
from irtool.sharding.operator import Strategy
from irtool.syntax.query import QueryError, query
from irtool.syntax.run_expand import STDIN
from irtool.syntax.source import DumpError


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"


def _check(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A begin dump, a run folder, or -.", show_default=False
        ),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people.")
    ] = Format.table,
    operators: Annotated[
        bool, typer.Option("--operators", help="A line for every operator.")
    ] = False,
    redistributions: Annotated[
        bool, typer.Option("--redistributions", help="A line for every edge with operators on it.")
    ] = False,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="A line for every parameter.")
    ] = False,
    where: options.Where = None,
    limit: options.Limit = None,
    graph: options.GraphNumber = None,
    allow_unknown: options.AllowUnknown = False,
    config: options.Config = None,
    output_file: options.OutputFile = None,
    *,
    context: ContextArguments,
) -> int:
    """Is each strategy legal; what will be sliced and communicated?

    Reads a dump taken before MindSpore's parallel pass (step_parallel_begin), and says what that
    pass will say. Exit status: 0 accepted; 1 there are findings, or a part is unknown.
    """
    chosen = _predicate(where)
    configuration = read_configuration(config)
    load_custom_rules(configuration)
    output = Output(output_file)
    file = find_begin(path, context.rank, graph)
    dump = _read(file)
    resolved = context_of(file, context, configuration)
    report_problems(dump.problems)
    report = _with_problems(check(dump, resolved.context), dump)
    lists = {"operators": operators or where is not None, "redistributions": redistributions}
    view = CheckView(
        path=dump.path,
        report=report,
        operators=sorted(
            (item for item in report.operators if chosen(item.node)), key=lambda it: it.node.line
        ),
        redistributions=sorted(
            (
                edge
                for edge in report.redistributions
                if edge.operators != () and (chosen(edge.producer) or chosen(edge.consumer))
            ),
            key=lambda edge: edge.consumer.line,
        ),
        origin=_origin(resolved),
        instead=legal_instead(report),
        lists=frozenset(
            name for name, wanted in {**lists, "parameters": parameters}.items() if wanted
        ),
        limit=limit,
    )
    if format is Format.json:
        for piece in check_pieces(view):
            output.write(piece)
    else:
        output.show(check_document(view))
    output.close()
    return _status(report, dump, allow_unknown)


command = context_command("check", _check)


def _predicate(where: str | None) -> Callable[[Node], bool]:
    try:
        return query(where) if where is not None else lambda node: True
    except QueryError as error:
        place = f"--where:1:{error.column}"
        raise Failure(
            error.message, place, error.column, error.text, error.hint, "QRY001"
        ) from None


def _with_problems(report: Report, dump: Dump) -> Report:
    """What could not be read is a part of which nothing is known."""
    unread = [problem for problem in dump.problems if problem.severity == "error"]
    if not unread:
        return report
    message = f"statements could not be read, the first in line {unread[0].line}"
    finding = CheckFinding("unread", "warning", message, "", "", None, dump.path)
    accepted = None if report.accepted else report.accepted
    return replace(report, accepted=accepted, findings=(*report.findings, finding))


def _status(report: Report, dump: Dump, allow_unknown: bool) -> int:
    if dump.problems or report.accepted is False:
        return 1
    return 1 if report.findings and not allow_unknown else 0


def _origin(resolved: Resolved) -> str:
    files = {origin for origin in resolved.origins.values() if os.sep in origin or "." in origin}
    return ", ".join(sorted(files))


def _read(file: InputFile) -> Dump:
    try:
        dump = read_input(file)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    if not any(True for _ in dump.nodes()):
        report_problems(dump.problems)
        place = STDIN_NAME if file.path == STDIN else file.path
        raise Failure("there is no statement in this dump", place, code="SYN000")
    return dump


# -- what would be legal -----------------------------------------------------------------------

_MOST_TRIED = 400
_MOST_FOUND = 3
_MOST_ASKED = 50


def legal_instead(report: Report) -> dict[CheckFinding, tuple[Strategy, ...]]:
    """For illegal strategies the nearest legal ones, found by trying."""
    found: dict[CheckFinding, tuple[Strategy, ...]] = {}
    known: dict[object, tuple[Strategy, ...]] = {}
    for finding in report.findings:
        operator = report.operator(finding.node) if finding.node is not None else None
        if operator is None or operator.verdict != "illegal" or not _by_strategy(operator):
            continue
        shapes = tuple(tensor.shape for tensor in operator.call.call.tensors)
        key = (operator.op, operator.strategy, operator.out_strategy, shapes, finding.code)
        if key not in known and len(known) < _MOST_ASKED:
            known[key] = tuple(_nearest(report, operator))
        found[finding] = known.get(key, ())
    return found


def _by_strategy(operator: OperatorReport) -> bool:
    """Whether it was given a strategy of one row a tensor (and not layouts, or nested rows)."""
    node = operator.node
    given = node.in_strategy
    if not operator.strategy or node.in_layout is not None or not isinstance(given, tuple):
        return False
    rows = cast("tuple[tuple[object, ...], ...]", given)
    return not any(isinstance(item, tuple) for row in rows for item in row)


def _nearest(report: Report, operator: OperatorReport) -> Iterator[Strategy]:
    call = operator.call.call
    context = report.context.for_operators(dynamic=call.is_dynamic, accumulates=False)
    count = 0
    for strategy in _variants(report, operator):
        if judge(call, strategy, context).verdict == "legal":
            yield strategy
            count += 1
            if count == _MOST_FOUND:
                return


def _variants(report: Report, operator: OperatorReport) -> Iterable[Strategy]:
    """Strategies near an illegal one: first those that differ least, at most so many."""
    given = operator.strategy or ()
    shapes = [tensor.divisible_shape for tensor in operator.call.call.tensors]
    if len(given) != len(shapes):
        given = tuple(given[i] if i < len(given) else () for i in range(len(shapes)))
    rows = [
        tuple(row[i] if i < len(row) else 1 for i in range(len(shape)))
        for row, shape in zip(given, shapes, strict=True)
    ]
    flat = [value for row in rows for value in row]
    allowed = [_allowed(size, report.context.stage_size) for shape in shapes for size in shape]
    fixed = [
        value if value in values else max((v for v in values if v <= value), default=1)
        for value, values in zip(flat, allowed, strict=True)
    ]
    ends = [sum(map(len, rows[: i + 1])) for i in range(len(rows))]
    made: dict[Strategy, float] = {}
    for changed in _changed(fixed, allowed):
        strategy = tuple(
            tuple(changed[end - len(row) : end]) for row, end in zip(rows, ends, strict=True)
        )
        made.setdefault(strategy, _distance(flat, changed))
    if operator.out_strategy is None:
        made.pop(operator.strategy or (), None)
    return sorted(made, key=lambda each: made[each])[:_MOST_TRIED]


def _allowed(size: int, devices: int) -> list[int]:
    """Into how many slices a dimension may be cut."""
    return [n for n in range(1, devices + 1) if devices % n == 0 and (size < 0 or size % n == 0)]


def _changed(base: Sequence[int], allowed: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The values themselves, and with one or two of them changed."""
    yield list(base)
    for places in (*combinations(range(len(base)), 1), *combinations(range(len(base)), 2)):
        for values in product(*(allowed[place] for place in places)):
            made = list(base)
            for place, value in zip(places, values, strict=True):
                made[place] = value
            yield made


def _distance(before: Sequence[int], after: Sequence[int]) -> float:
    """How far apart: values changed, how much, and how many devices less are used."""
    changes = [
        abs(log2(max(new, 1) / max(old, 1)))
        for old, new in zip(before, after, strict=True)
        if old != new
    ]
    less = log2(max(prod(before), 1) / max(prod(after), 1))
    return len(changes) + sum(changes) + max(less, 0) / 4
