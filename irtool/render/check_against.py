"""What ``irtool check --against`` tells: where a later dump is not what the strategies promise."""

from __future__ import annotations

from collections import Counter

from irtool.render.check_tables import shown
from irtool.render.check_why import location_text, node_place
from irtool.render.tables import Block, Facts, Heading, Note, Table, number_column, text_column
from irtool.render.text import plural, share_text
from irtool.sharding.against import Comparison, Difference

MOST_DIFFERENCES = 20


def against_blocks(found: Comparison, begin: str, actual: str, limit: int | None) -> list[Block]:
    """Differences with their causes, then what was explained and what could not be compared."""
    verdict = plural(len(found.differences), "difference") if found.differences else "as predicted"
    compared = f"{share_text(found.matched, found.total)} of the operators compared"
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
        counts = Counter((item.what, item.why) for item in found.unmatched).most_common()
        most = shown(len(counts), limit, MOST_DIFFERENCES)
        columns = (number_column("count"), text_column("what"), text_column("why"))
        rows = [(number, what, why) for (what, why), number in counts[:most]]
        blocks.append(Table("Not compared", columns, rows, len(counts) - most))
    return blocks


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
