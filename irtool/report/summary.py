"""What ``irtool parse`` shows to people: one dump in detail, or many in a line each."""

from __future__ import annotations

import os
from collections.abc import Sequence

from irtool.cluster.summary import GroupCount, Summary
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text, count_text, part_text, plural, ranks_text, tuple_text
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Column,
    Element,
    Facts,
    Note,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.text import shortened
from irtool.syntax import query_fields as fields

_MOST_OPERATORS = 15
_MOST_COLLECTIVES = 20
_MOST_GRAPHS = 10
_MOST_NODES = 100
_NAME_WIDTH = 72


def summary_report(summaries: Sequence[Summary], limit: int | None) -> Report:
    """One dump in detail, or a table of many.

    Args:
        summaries: one or more.
        limit: rows of each list that text shows: None the usual number, 0 all.
    """
    if len(summaries) == 1:
        return _one(summaries[0], limit)
    return _many(summaries, limit)


# -- one dump ----------------------------------------------------------------------------------


def _one(summary: Summary, limit: int | None) -> Report:
    elements: list[Element] = [Facts(_facts(summary))]
    if summary.operators:
        elements.append(_operators(summary, limit))
    if summary.collectives:
        elements.append(_collectives(summary, limit))
    if len(summary.graphs) > 1:
        elements.append(_graphs(summary, limit))
    return Report(f"parse: {summary.path}", Answer(summary.path), elements)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    facts = [
        ("pass", summary.pass_name or "not known"),
        ("MindSpore", summary.dialect),
        ("entry", shortened(f"@{summary.entry}", _NAME_WIDTH) if summary.entry else "none"),
    ]
    if summary.equal_ranks:
        facts.append(("ranks", f"{ranks_text(summary.equal_ranks)} (equal)"))
    elif summary.rank is not None:
        facts.append(("rank", str(summary.rank)))
    facts += [
        ("nodes", _nodes(summary)),
        ("phases", _phases(summary)),
    ]
    if summary.backward_tied and summary.backward_tied[1]:
        share = part_text(*summary.backward_tied)
        facts.append(("ties", f"{share} backward operators have their forward operator"))
    facts += [
        ("strategies", f"{part_text(summary.with_strategy, summary.nodes)} of the nodes have any"),
        ("devices", _devices(summary)),
        ("parameters", _parameters(summary)),
        ("problems", problems_text(summary)),
    ]
    return facts


def _nodes(summary: Summary) -> str:
    passing = f"; {count_text(summary.passing)} only pass values on" if summary.passing else ""
    return f"{count_text(summary.nodes)} in {plural(len(summary.graphs), 'graph')}{passing}"


def _phases(summary: Summary) -> str:
    parts = [
        f"{count_text(summary.phases[name])} {name}"
        for name in ("forward", "backward", "recompute", "optimizer", "other")
        if summary.phases.get(name)
    ]
    return ", ".join(parts) or "none"


def _devices(summary: Summary) -> str:
    seen = summary.devices.ranks
    if not seen:
        return "no group with ranks"
    groups = len({row.ranks for row in summary.collectives if row.ranks})
    return f"{_world(summary)}: ranks {ranks_text(seen)} seen in {plural(groups, 'group')}"


def _world(summary: Summary) -> str:
    if not summary.devices.ranks:
        return ""
    world = count_text(summary.devices.world)
    return world if summary.devices.is_exact else f"≥ {world}"


def _parameters(summary: Summary) -> str:
    nouns = {
        "input": "input",
        "weight": "weight",
        "state": "optimizer state",
        "accumulated gradient": "accumulated gradient",
        "other": "other parameter",
    }
    parts = [
        f"{plural(row.count, nouns[row.kind])} {bytes_text(row.bytes)}"
        + (f" + {row.unknown} of unknown size" if row.unknown else "")
        for row in summary.parameters
    ]
    return ", ".join(parts) or "none"


def problems_text(summary: Summary) -> str:
    """How many problems of which severity."""
    if not summary.problems:
        return "none"
    counts: dict[str, int] = {}
    for problem in summary.problems:
        counts[problem.severity] = counts.get(problem.severity, 0) + 1
    return ", ".join(plural(count, severity) for severity, count in counts.items())


def _operators(summary: Summary, limit: int | None) -> Table:
    rows = [(row.op, row.count, _size(row.bytes, row.unknown)) for row in summary.operators]
    columns = (text_column("operator"), number_column("nodes"), number_column("bytes", "bytes"))
    title = "Operators, by bytes of their results"
    return Table(title, columns, rows, noun="operator", most=rows_shown(limit, _MOST_OPERATORS))


def _size(size: int, unknown: int) -> Cell:
    """Bytes of several results, of which some sizes may not be known."""
    if unknown:
        text = f"{bytes_text(size)} + {unknown} unknown" if size else "unknown"
        return Amount(size or None, "bytes", text)
    return size or None


def _collectives(summary: Summary, limit: int | None) -> Table:
    rows = [
        (
            row.op,
            row.count,
            _size(row.bytes, row.unknown),
            ranks_text(row.ranks),
            row.group,
            row.origin,
            ", ".join(row.phases),
        )
        for row in summary.collectives
    ]
    columns = (
        text_column("collective"), number_column("nodes"), number_column("bytes", "bytes"),
        text_column("ranks"), text_column("group", 2), text_column("why", 1), text_column("phase"),
    )  # fmt: skip
    most = rows_shown(limit, _MOST_COLLECTIVES)
    return Table("Collectives, by group", columns, rows, most=most)


def _graphs(summary: Summary, limit: int | None) -> Table:
    columns = (text_column("graph"), number_column("nodes"))
    rows = [
        (shortened(f"@{name}", _NAME_WIDTH), count)
        for name, count in sorted(summary.graphs, key=lambda row: -row[1])
    ]
    return Table("Graphs", columns, rows, noun="graph", most=rows_shown(limit, _MOST_GRAPHS))


# -- many dumps --------------------------------------------------------------------------------


def _many(summaries: Sequence[Summary], limit: int | None) -> Report:
    folder = _common_folder([summary.path for summary in summaries])
    ranked = any(summary.equal_ranks or summary.rank is not None for summary in summaries)
    troubled = any(summary.problems for summary in summaries)
    columns = [
        text_column("dump"),
        *([Column("ranks")] if ranked else []),
        number_column("nodes"),
        number_column("backward", rank=2),
        number_column("sharded", rank=2),
        number_column("comm.", rank=1),
        number_column("bytes", "bytes", rank=1),
        number_column("devices", rank=1),
        number_column("weights", "bytes", rank=2),
        *([text_column("problems")] if troubled else []),
    ]
    rows = [_line(summary, folder, ranked, troubled) for summary in summaries]
    stand_for = sum(max(1, len(summary.equal_ranks)) for summary in summaries)
    title = plural(len(summaries), "dump") + (f" in {folder}" if folder else "")
    if stand_for > len(summaries):
        title += f", which represent {count_text(stand_for)} ranks: equal graphs are listed once"
    table = Table("", columns, rows, noun="dump", most=rows_shown(limit or 0))
    return Report("parse", Answer(title), [table, Facts(_totals(summaries))])


def _line(summary: Summary, folder: str, ranked: bool, troubled: bool) -> list[Cell]:
    name = os.path.relpath(summary.path, folder) if folder else summary.path
    ranks = summary.equal_ranks or (() if summary.rank is None else (summary.rank,))
    moved = sum(row.bytes for row in summary.collectives) if summary.collectives else None
    world = summary.devices.world if summary.devices.ranks else None
    return [
        name,
        *([ranks_text(ranks) if ranks else ""] if ranked else []),
        summary.nodes,
        summary.phases.get("backward", 0) or None,
        summary.with_strategy or None,
        sum(row.count for row in summary.collectives) or None,
        moved,
        world
        if world is None or summary.devices.is_exact
        else Amount(world, "number", _world(summary)),
        summary.weight_bytes or None,
        *([problems_text(summary) if summary.problems else ""] if troubled else []),
    ]


def _totals(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    facts = [
        ("nodes", count_text(sum(summary.nodes for summary in summaries))),
        ("read", bytes_text(sum(summary.characters for summary in summaries))),
    ]
    dialects = sorted({summary.dialect for summary in summaries})
    facts.append(("MindSpore", ", ".join(dialects)))
    bad = [summary for summary in summaries if summary.problems]
    count = sum(len(summary.problems) for summary in bad)
    facts.append(
        ("problems", f"{count_text(count)} in {plural(len(bad), 'dump')}" if bad else "none")
    )
    return facts


def _common_folder(paths: Sequence[str]) -> str:
    if any(path.startswith("<") for path in paths):
        return ""
    try:
        return os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:  # absolute and relative ones
        return ""


# -- nodes and groups --------------------------------------------------------------------------

NodeRow = tuple[str, int, str, str, str, str, str, str]


def node_row(node: Node, path: str) -> NodeRow:
    """What the list of chosen nodes shows of one.

    Args:
        node: of a dump.
        path: of the dump.

    Returns:
        path, line, id, operator, type of the result, strategy, line of Python and full name; "" for
        what the dump does not say.
    """
    kind = node.output_type.short() if node.output_type else ""
    place = node.full_name or node.scope or node.instance_name or ""
    location = node.location
    return (
        path,
        node.line,
        node.id,
        node.op,
        kind,
        tuple_text(fields.plain_value(node.written_strategy())),
        f"{location.path}:{location.line}" if location else "",
        place,
    )


def nodes_report(rows: Sequence[NodeRow], limit: int | None, brief: bool = False) -> Report:
    """A table of chosen nodes.

    Args:
        rows: what :func:`node_row` gave.
        limit: most rows; None for the usual number, 0 for all.
        brief: leave out what all paths and all names begin with (a terminal is narrow).
    """
    paths = {row[0] for row in rows}
    most = rows_shown(limit, _MOST_NODES)
    columns = [
        number_column("line"),
        Column("node"),
        Column("operator"),
        text_column("result"),
        text_column("strategy"),
        text_column("source"),
        text_column("name or scope", rank=1),
    ]
    below = _common_scope([row[-1] for row in rows[:most]]) if brief else ""
    folder = _common_folder(list(paths)) if brief else ""
    cells: list[tuple[str | int, ...]] = []
    for path, line, *rest, name in rows:
        short = os.path.relpath(path, folder) if folder else path
        place = line if len(paths) == 1 else f"{short}:{line}"
        cells.append((place, *rest, name[len(below) :]))
    if len(paths) > 1:
        columns[0] = text_column("where")
    # What no node here has is not worth a column.
    kept = [i for i in range(len(columns)) if i == 0 or any(row[i] for row in cells)]
    columns = [columns[i] for i in kept]
    cells = [tuple(row[i] for i in kept) for row in cells]
    where = next(iter(paths)) if len(paths) == 1 else plural(len(paths), "dump")
    elements: list[Element] = []
    if folder and len(paths) > 1:
        elements.append(Note(f"dumps in {folder}"))
    if below:
        elements.append(Note(f"names below {below}"))
    if rows:
        elements.append(Table("", columns, cells, noun="node", most=most))
    return Report("parse", Answer(f"{plural(len(rows), 'node')} in {where}"), elements)


def _common_scope(names: Sequence[str]) -> str:
    """The scope that all names lie in, with the slash behind it; empty if there is none."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
    )
    scope, slash, _ = first[:same].rpartition("/")
    return scope + slash


def groups_report(names: Sequence[str], rows: Sequence[GroupCount], limit: int | None) -> Report:
    """A table of groups of nodes.

    Args:
        names: what nodes are grouped by, a column each.
        rows: groups in the order of the table; bytes are those of their results.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = [
        *(text_column(name) for name in names),
        number_column("nodes"),
        number_column("bytes", "bytes"),
    ]
    cells: list[list[Cell]] = [
        [*(tuple_text(value) for value in row.key), row.count, row.bytes] for row in rows
    ]
    total = sum(row.count for row in rows)
    title = f"{plural(total, 'node')} in {plural(len(rows), 'group')}, by {', '.join(names)}"
    table = Table("", columns, cells, noun="group", most=rows_shown(limit, _MOST_NODES))
    return Report("parse", Answer(title), [table])
