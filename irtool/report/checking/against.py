"""What ``irtool check --against`` tells: where a later dump is not what the strategies promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from irtool.ir.units import part_text, plural
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Block,
    Facts,
    Heading,
    Note,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.places import NodePlace, location_text, node_place
from irtool.sharding.against import Comparison, Difference, Unmatched

MOST_DIFFERENCES = 20
_MOST_IDS = 8


class LaterDifference(AnswerObject, frozen=True, kw_only=True):
    """Where a later dump is not as predicted."""

    kind: str
    message: str
    predicted: str
    actual: str
    cause: str
    begin: NodePlace | None
    node: NodePlace | None
    parameter: str | None


class ExplainedCollectives(AnswerObject, frozen=True, kw_only=True):
    """Collectives that are no difference, but not one to one."""

    cause: str
    count: int


class NotCompared(AnswerObject, frozen=True, kw_only=True):
    """What could not be compared."""

    what: str
    why: str
    begin: NodePlace | None
    node: NodePlace | None


class AgainstLater(AnswerObject, frozen=True, kw_only=True):
    """What came of comparing with a later dump."""

    path: str
    agrees: bool
    matched: Annotated[int, doc("operators compared")]
    total: int
    differences: list[LaterDifference]
    explained: list[ExplainedCollectives]
    unmatched: list[NotCompared]


def against_answer(comparison: Comparison, path: str) -> AgainstLater:
    """A comparison with a later dump, for scripts.

    Args:
        comparison: what ``check`` predicts, held against the later dump.
        path: that of the later dump.
    """
    return AgainstLater(
        path=path,
        agrees=comparison.agrees,
        matched=comparison.matched,
        total=comparison.total,
        differences=[
            LaterDifference(
                kind=item.kind,
                message=item.message,
                predicted=item.predicted,
                actual=item.actual,
                cause=item.cause,
                begin=node_place(item.begin),
                node=node_place(item.node),
                parameter=item.parameter,
            )
            for item in comparison.differences
        ],
        explained=[
            ExplainedCollectives(cause=item.cause, count=item.count)
            for item in comparison.explained
        ],
        unmatched=[
            NotCompared(
                what=item.what,
                why=item.why,
                begin=node_place(item.begin),
                node=node_place(item.node),
            )
            for item in comparison.unmatched
        ],
    )


def against_blocks(
    comparison: Comparison, begin: str, actual: str, limit: int | None
) -> list[Block]:
    """Differences with their causes, then what was explained and what could not be compared.

    Args:
        comparison: what ``check`` predicts, held against the later dump.
        begin: path of the dump before the parallel pass.
        actual: path of the later dump.
        limit: differences and rows that are shown: None the usual number, 0 all.
    """
    differences = comparison.differences
    verdict = plural(len(differences), "difference") if differences else "as predicted"
    compared = f"{part_text(comparison.matched, comparison.total)} of the operators compared"
    blocks: list[Block] = [Heading(f"against {actual}: {verdict}, {compared}")]
    most = rows_shown(limit, MOST_DIFFERENCES)
    blocks += [Facts(_facts(item, begin, actual)) for item in differences[:most]]
    if most is not None and len(differences) > most:
        rest = plural(len(differences) - most, "more difference")
        blocks.append(Note(f"… {rest} (--limit 0 shows all)"))
    if comparison.explained:
        columns = (number_column("collectives"), text_column("what became of them"))
        rows = [(item.count, item.cause) for item in comparison.explained]
        blocks.append(Table("No difference, but not one to one", columns, rows))
    if comparison.unmatched:
        columns = (
            number_column("count"), text_column("what"), text_column("nodes", 1),
            text_column("why"),
        )  # fmt: skip
        groups = _grouped(comparison.unmatched)
        rows = [(len(ids), what, _few(ids), why) for what, why, ids in groups]
        blocks.append(Table("Not compared", columns, rows, most=most))
    return blocks


def _grouped(items: Sequence[Unmatched]) -> list[tuple[str, str, list[str]]]:
    """By operator and reason, with the numbers of nodes; the most frequent first."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for item in items:
        node = item.begin or item.node
        what = item.what if node is None else node.op
        by_reason.setdefault((what, item.why), []).append(node.id if node is not None else "")
    groups = [(what, why, ids) for (what, why), ids in by_reason.items()]
    return sorted(groups, key=lambda group: -len(group[2]))


def _few(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_MOST_IDS]) + (", …" if len(ids) > _MOST_IDS else "")


def _facts(item: Difference, begin: str, actual: str) -> list[tuple[str, str]]:
    facts = [
        (item.kind, item.message),
        ("predicted", item.predicted or "nothing"),
        ("actual", item.actual or "nothing"),
        ("cause", item.cause),
    ]
    if item.parameter is not None:
        facts.append(("parameter", item.parameter))
    for node, path in ((item.begin, begin), (item.node, actual)):
        if node is not None:
            facts.append(("where", f"{path}:{node.line} {node.id} {node.op}"))
    location = item.begin.location if item.begin is not None else None
    if source := location_text(location):
        facts.append(("source", source))
    return facts
