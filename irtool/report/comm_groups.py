"""What ``irtool comm groups`` shows: the dearest collectives, totals, groups, disagreements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.groups import Group, GroupReport, Kind, Row, Total
from irtool.cluster.matching import Transfer
from irtool.ir.node import Node
from irtool.ir.units import bytes_text, count_text, plural, ranks_text, seconds_text
from irtool.report.comm_pieces import (
    MOST_ROWS,
    devices_text,
    disagreement_object,
    disagreements_table,
    machine_text,
    missing_text,
    pieces,
    shown,
    source_text,
    transfer_object,
    type_text,
    unmatched_table,
)
from irtool.report.model import Column, Document, Facts, Heading, Table, number_column
from irtool.report.model import text_column as wide

SCHEMA = "irtool.comm.groups/1"


@dataclass(frozen=True, slots=True)
class GroupsView:
    """A report with what was asked of it: which nodes, how many rows."""

    path: str
    report: GroupReport
    chosen: Callable[[Node], bool]
    listed: bool = False
    limit: int | None = None

    @property
    def rows(self) -> list[Row]:
        """Communications that ``--where`` chose."""
        return [row for row in self.report.rows if self.chosen(row.collective.node)]


def groups_document(view: GroupsView) -> Document:
    """What a run communicates."""
    report = view.report
    document = Document([Heading(f"{view.path}: {answer(report)}"), Facts(facts(view))])
    if report.by_axis:
        document.add(_totals_table(report))
    if view.listed:
        document.add(rows_table(view))
    elif report.kinds:
        document.add(_kinds_table(view))
    if report.groups:
        document.add(_groups_table(report.groups, view.limit))
    if report.disagreements:
        document.add(disagreements_table(report.disagreements, view.limit))
    wrong = wrong_transfers(report)
    if wrong:
        document.add(unmatched_table(wrong, view.limit))
    return document


def answer(report: GroupReport) -> str:
    """How much is communicated, and whether ranks agree."""
    if not report.rows:
        return f"nothing is communicated{' yet' if report.partial else ''}"
    total = Total(
        sum(total.count for total in report.by_axis.values()),
        sum(total.bytes for total in report.by_axis.values()),
    )
    ranks = "" if len(report.ranks) == 1 else f" of {plural(len(report.ranks), 'rank')}"
    text = f"{plural(total.count, 'communication')}{ranks} in {plural(len(report.groups), 'group')}"
    problems = len(report.disagreements) + len(wrong_transfers(report))
    return f"{text}, {bytes_text(total.bytes)}" + (
        f"; {plural(problems, 'place')} where ranks do not agree" if problems else ""
    )


def wrong_transfers(report: GroupReport) -> list[Transfer]:
    """Transfers without another end, or with one that does not fit."""
    return [item for item in report.transfers if item.mismatch or (item.known and not item.matched)]


def facts(view: GroupsView) -> list[tuple[str, str]]:
    """What one has to know besides: ranks, machine, transfers, what is missing."""
    report = view.report
    ranks = f"{ranks_text(report.ranks)} of {devices_text(report.devices, report.is_exact)}"
    distinct = len({row.rank for row in report.rows})
    if len(report.ranks) > max(distinct, 1):
        ranks += f"; {distinct} distinct, equal ones shown once"
    facts = [("ranks", ranks), ("machine", machine_text(report.machine))]
    matched = sum(item.matched for item in report.transfers)
    if report.transfers:
        known = sum(item.known for item in report.transfers)
        text = f"{count_text(matched)} of {count_text(known)} matched"
        unknown = len(report.transfers) - known
        if unknown:
            text += f"; of {count_text(unknown)} the other end left no dump"
        facts.append(("transfers", text))
    if report.missing and len(report.ranks) > 1:
        facts.append(("missing", missing_text(report.missing, report.devices)))
    if report.partial:
        text = f"{report.partial} does not hold all communications yet: validate does"
        facts.append(("limits", text))
    return facts


def _totals_table(report: GroupReport) -> Table:
    rows = [
        (axis, level, *_total_cells(total))
        for (axis, level), total in report.by_axis_and_level.items()
    ]
    columns = (Column("axis"), Column("link"), *_TOTAL_COLUMNS)
    several = " of all ranks" if len(report.ranks) > 1 else ""
    return Table(f"By axis and link{several}", columns, rows)


_TOTAL_COLUMNS = (number_column("count"), number_column("bytes"), number_column("time"))


def _total_cells(total: Total) -> tuple[int, str, str]:
    size = bytes_text(total.bytes)
    if total.unknown:
        size += f" + {total.unknown} unknown"
    return total.count, size, seconds_text(total.seconds)


def _kinds_table(view: GroupsView) -> Table:
    kinds = [kind for kind in view.report.kinds if view.chosen(kind.first.collective.node)]
    count = shown(len(kinds), view.limit)
    columns = (
        number_column("rank"),
        Column("operator"),
        Column("axis"),
        Column("phase"),
        wide("ranks"),
        Column("link"),
        Column("tensor"),
        number_column("count"),
        number_column("bytes"),
        number_column("time"),
        number_column("first line"),
    )
    rows = [kind_row(kind) for kind in kinds[:count]]
    return Table("The dearest", columns, rows, len(kinds) - count, "kind")


def kind_row(kind: Kind) -> tuple[str | int | None, ...]:
    """A line of the list of the dearest."""
    return (
        kind.first.rank,
        kind.op,
        kind.axis,
        kind.phase,
        ranks_text(kind.ranks),
        kind.level,
        type_text(kind.dtype, kind.shape),
        kind.count,
        bytes_text(kind.bytes),
        seconds_text(kind.seconds),
        kind.first.collective.node.line,
    )


def rows_table(view: GroupsView) -> Table:
    """One line a communication."""
    rows = view.rows
    count = shown(len(rows), view.limit, 10 * MOST_ROWS)
    columns = (
        number_column("rank"),
        number_column("line"),
        Column("node"),
        Column("operator"),
        Column("tensor"),
        number_column("bytes"),
        wide("ranks"),
        Column("axis"),
        Column("phase"),
        number_column("fusion"),
        number_column("stream"),
        Column("link"),
        wide("source"),
    )
    lines = [
        (
            row.rank,
            row.collective.node.line,
            row.collective.node.id,
            row.collective.op,
            type_text(row.collective.dtype, row.collective.shape),
            bytes_text(row.collective.bytes),
            _parties(row),
            row.axis,
            row.phase,
            row.collective.fusion,
            row.stream,
            row.level,
            source_text(row.collective.node),
        )
        for row in rows[:count]
    ]
    return Table("In launch order", columns, lines, len(rows) - count, "communication")


def _parties(row: Row) -> str:
    party = row.party
    if party.peer is not None:
        arrow = "→" if row.collective.op == "Send" else "←"
        tag = "" if row.collective.tag is None else f" tag {row.collective.tag}"
        return f"{row.rank} {arrow} {party.peer}{tag}"
    return ranks_text(party.ranks)


def _groups_table(groups: Sequence[Group], limit: int | None) -> Table:
    count = shown(len(groups), limit)
    columns = (
        Column("group"),
        wide("ranks"),
        Column("known from"),
        wide("axes"),
        Column("link"),
        number_column("count"),
        number_column("bytes"),
    )
    rows = [
        (
            group.name,
            ranks_text(group.ranks),
            group.ranks_from or ("all devices" if group.ranks else "nothing"),
            ", ".join(group.axes),
            group.level,
            group.count,
            bytes_text(group.bytes),
        )
        for group in groups[:count]
    ]
    return Table("Groups", columns, rows, len(groups) - count, "group")


# -- JSON ----------------------------------------------------------------------------------------


def groups_pieces(view: GroupsView) -> Iterator[str]:
    """``irtool.comm.groups/1``."""
    report = view.report
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "devices": report.devices,
        "devices_exact": report.is_exact,
        "partial": report.partial or None,
        "ranks": list(report.ranks),
        "missing_ranks": list(report.missing),
        "machine": report.machine.name,
        "totals": {
            "axis": {name: _total_object(total) for name, total in report.by_axis.items()},
            "level": {name: _total_object(total) for name, total in report.by_level.items()},
            "axis_and_level": [
                {"axis": axis, "level": level, **_total_object(total)}
                for (axis, level), total in report.by_axis_and_level.items()
            ],
        },
    }
    most = view.limit or None
    chosen = [kind for kind in report.kinds if view.chosen(kind.first.collective.node)][:most]
    lists = {
        "collectives": [row_object(row) for row in view.rows[:most]],
        "dearest": [_kind_object(kind) for kind in chosen],
        "groups": [_group_object(group) for group in report.groups],
        "disagreements": [disagreement_object(item) for item in report.disagreements],
        "transfers": [transfer_object(item) for item in report.transfers],
    }
    return pieces(head, lists)


def _total_object(total: Total) -> dict[str, object]:
    return {
        "count": total.count,
        "bytes": total.bytes,
        "seconds": total.seconds,
        "unknown": total.unknown,
    }


def row_object(row: Row) -> dict[str, object]:
    """One communication of the first rank of a class."""
    item, party = row.collective, row.party
    return {
        "rank": row.rank,
        "equal_ranks": row.alike,
        "node": item.node.id,
        "op": item.op,
        "dtype": item.dtype,
        "shape": None if item.shape is None else list(item.shape),
        "bytes": item.bytes,
        "ranks": None if party.ranks is None else list(party.ranks),
        "group": party.group,
        "axis": row.axis,
        "phase": row.phase,
        "fusion": item.fusion,
        "stream": row.stream,
        "level": row.level,
        "seconds": row.seconds,
        "reduction": item.reduction,
        "why": item.origin,
        "parameter": item.parameter,
        "peer": party.peer,
        "tag": item.tag,
        "conditional": row.conditional,
        "line": item.node.line,
        "source": source_text(item.node),
    }


def _kind_object(kind: Kind) -> dict[str, object]:
    return {
        "rank": kind.first.rank,
        "op": kind.op,
        "axis": kind.axis,
        "phase": kind.phase,
        "ranks": None if kind.ranks is None else list(kind.ranks),
        "level": kind.level,
        "dtype": kind.dtype,
        "shape": None if kind.shape is None else list(kind.shape),
        "count": kind.count,
        "bytes": kind.bytes,
        "seconds": kind.seconds,
        "line": kind.first.collective.node.line,
    }


def _group_object(group: Group) -> dict[str, object]:
    return {
        "name": group.name,
        "ranks": None if group.ranks is None else list(group.ranks),
        "known_from": group.ranks_from,
        "axes": list(group.axes),
        "level": group.level,
        "count": group.count,
        "bytes": group.bytes,
    }
