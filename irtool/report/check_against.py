"""What ``irtool check --against`` tells: where a later dump is not what the strategies promise."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import part_text, plural
from irtool.report.check_tables import shown
from irtool.report.check_why import location_text, node_place
from irtool.report.model import Block, Facts, Heading, Note, Table, number_column, text_column
from irtool.sharding.against import Comparison, Difference, Unmatched

MOST_DIFFERENCES = 20
_MOST_IDS = 8


def against_blocks(found: Comparison, begin: str, actual: str, limit: int | None) -> list[Block]:
    """Differences with their causes, then what was explained and what could not be compared."""
    verdict = plural(len(found.differences), "difference") if found.differences else "as predicted"
    compared = f"{part_text(found.matched, found.total)} of the operators compared"
    blocks: list[Block] = [Heading(f"against {actual}: {verdict}, {compared}")]
    count = shown(len(found.differences), limit, MOST_DIFFERENCES)
    blocks += [Facts(_facts(item, begin, actual)) for item in found.differences[:count]]
    if len(found.differences) > count:
        rest = plural(len(found.differences) - count, "more difference")
        blocks.append(Note(f"… {rest} (--limit 0 shows all)"))
    if found.explained:
        columns = (number_column("collectives"), text_column("what became of them"))
        rows = [(item.count, item.cause) for item in found.explained]
        blocks.append(Table("No difference, but not one to one", columns, rows))
    if found.unmatched:
        groups = _grouped(found.unmatched)
        most = shown(len(groups), limit, MOST_DIFFERENCES)
        columns = (
            number_column("count"), text_column("what"), text_column("nodes"), text_column("why"),
        )  # fmt: skip
        rows = [(len(ids), what, _few(ids), why) for what, why, ids in groups[:most]]
        blocks.append(Table("Not compared", columns, rows, len(groups) - most))
    return blocks


def _grouped(items: Sequence[Unmatched]) -> list[tuple[str, str, list[str]]]:
    """By operator and reason, with the numbers of nodes; the most frequent first."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        node = item.begin or item.node
        what = item.what if node is None else node.op
        found.setdefault((what, item.why), []).append(node.id if node is not None else "")
    groups = [(what, why, ids) for (what, why), ids in found.items()]
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
            facts.append(("at", f"{path}:{node.line} {node.id} {node.op}"))
    location = item.begin.location if item.begin is not None else None
    if source := location_text(location):
        facts.append(("source", source))
    return facts


def against_object(found: Comparison, actual: str) -> dict[str, object]:
    """The same for scripts."""
    return {
        "path": actual,
        "agrees": found.agrees,
        "matched": found.matched,
        "total": found.total,
        "differences": [
            {
                "kind": item.kind,
                "message": item.message,
                "predicted": item.predicted,
                "actual": item.actual,
                "cause": item.cause,
                "begin": node_place(item.begin),
                "node": node_place(item.node),
                "parameter": item.parameter,
            }
            for item in found.differences
        ],
        "explained": [{"cause": item.cause, "count": item.count} for item in found.explained],
        "unmatched": [
            {
                "what": item.what,
                "why": item.why,
                "begin": node_place(item.begin),
                "node": node_place(item.node),
            }
            for item in found.unmatched
        ],
    }
