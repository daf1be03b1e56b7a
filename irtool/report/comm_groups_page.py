"""The group matrix and the page of ``irtool comm groups``."""

from __future__ import annotations

from collections import Counter

from irtool.cluster.groups import GroupReport
from irtool.ir.units import ranks_text
from irtool.report.comm_groups import (
    GroupsView,
    answer,
    facts,
    groups_document,
    kind_row,
    wrong_transfers,
)
from irtool.report.model import Answer, Column, Picture, Report, Table
from irtool.report.page.charts import heat_map

MOST_RANKS = 64
"""Most ranks of a group matrix; more are put together."""


def groups_svg(report: GroupReport) -> str:
    """The group matrix: bytes that two ranks share in collectives or send each other."""
    names, values = group_matrix(report)
    return heat_map(names, names, values, "bytes")


def group_matrix(report: GroupReport) -> tuple[list[str], list[list[float | None]]]:
    """Names and values of the matrix: ranks, or runs of ranks where there are too many."""
    step = -(-report.devices // MOST_RANKS)
    count = -(-report.devices // step)
    names = [str(start * step) if step == 1 else f"{start * step}-" for start in range(count)]
    sums = [[0.0] * count for _ in range(count)]
    for group in report.groups:
        if group.ranks is None or len(group.ranks) < 2 or group.axes == ("pipeline",):
            continue
        share = group.bytes / len(group.ranks)
        members = Counter(rank // step for rank in group.ranks)
        for one, here in members.items():
            for other, there in members.items():
                pairs = here * there - (here if one == other else 0)
                sums[one][other] += share * pairs
    for item in report.transfers:
        place = item.send or item.receive
        if item.sender is not None and item.receiver is not None and place is not None:
            size = place.collective.bytes or 0
            sums[item.sender // step][item.receiver // step] += size
    return names, [[value or None for value in row] for row in sums]


def groups_page(view: GroupsView) -> Report:
    """The page: answer, matrix, all tables."""
    report = view.report
    problems = report.disagreements or wrong_transfers(report)
    tone = "bad" if problems else "unknown" if report.missing else "good"
    details = [f"{name}: {value}" for name, value in facts(view)]
    picture = Picture(
        "Who talks to whom",
        groups_svg(report),
        "A matrix of ranks; a field is darker the more bytes two ranks exchange.",
    )
    tables = [block for block in groups_document(view).blocks[2:] if isinstance(block, Table)]
    sections = [section for section in tables if section.title not in ("The dearest", "Groups")]
    return Report(
        f"comm groups: {view.path}",
        Answer(answer(report), tone, details),
        (picture, *sections, _page_kinds(view), _page_groups(report)),
    )


def _page_kinds(view: GroupsView) -> Table:
    columns = [
        Column("rank", "number"),
        *map(Column, ("operator", "axis", "phase", "ranks", "link", "tensor")),
        Column("count", "number"),
        Column("bytes", "bytes"),
        Column("time", "seconds"),
        Column("first line", "number"),
    ]
    rows = [
        [*kind_row(kind)[:8], kind.bytes, kind.seconds, kind.first.collective.node.line]
        for kind in view.report.kinds
        if view.chosen(kind.first.collective.node)
    ]
    return Table("The dearest", columns, rows)


def _page_groups(report: GroupReport) -> Table:
    columns = [
        *map(Column, ("group", "ranks", "axes", "link")),
        Column("count", "number"),
        Column("bytes", "bytes"),
    ]
    rows = [
        [one.name, ranks_text(one.ranks), ", ".join(one.axes), one.level, one.count, one.bytes]
        for one in report.groups
    ]
    return Table("Groups", columns, rows)
