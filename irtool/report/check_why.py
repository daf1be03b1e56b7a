"""What ``irtool check --why`` tells: the cause of a collective, slice, concat or split."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.comments import Location
from irtool.ir.node import Node
from irtool.ir.units import bytes_text, plural, ranks_text, tuple_text
from irtool.report.check_tables import shown
from irtool.report.json import json_value
from irtool.report.model import Document, Facts, Heading, Note
from irtool.sharding.why import Cause

MOST_CAUSES = 20


def why_document(
    causes: Sequence[Cause], path: str, begin: str | None, limit: int | None
) -> Document:
    """A story a node. ``path``: the dump that holds the nodes; ``begin``: the one before it."""
    document = Document()
    count = shown(len(causes), limit, MOST_CAUSES)
    if len(causes) > 1:
        document.add(Heading(f"{plural(len(causes), 'node')} in {path}"))
    document.add(*(Facts(_facts(cause, path, begin)) for cause in causes[:count]))
    if len(causes) > count:
        rest = plural(len(causes) - count, "more node")
        document.add(Note(f"… {rest} (--limit 0 shows all)"))
    return document


def _facts(cause: Cause, path: str, begin: str | None) -> list[tuple[str, str]]:
    node = cause.node
    facts = [
        ("node", f"{node.id} {node.op} at {path}:{node.line}"),
        ("why", cause.message),
    ]
    if cause.ranks is not None or cause.group is not None:
        ranks = f"{cause.op or node.op} over {ranks_text(cause.ranks)}"
        facts.append(("group", ranks + (f" in {cause.group}" if cause.group else "")))
    if cause.bytes is not None:
        facts.append(("bytes", _bytes(cause)))
    if cause.source is not None and cause.target is not None:
        facts.append(
            ("layouts", f"{tuple_text(cause.source.splits)} → {tuple_text(cause.target.splits)}")
        )
    for label, place in (("from", cause.producer_begin), ("begin", cause.begin)):
        if place is not None and begin is not None:
            facts.append((label, f"{place.id} {place.op} at {begin}:{place.line}"))
    if cause.parameter is not None:
        facts.append(("parameter", cause.parameter))
    if cause.micro is not None:
        facts.append(("micro-batch", str(cause.micro)))
    if source := location_text(cause.location):
        facts.append(("source", source))
    if cause.remedy:
        facts.append(("instead", cause.remedy))
    facts += [("missing", text) for text in cause.missing]
    return facts


def _bytes(cause: Cause) -> str:
    text = f"{bytes_text(cause.bytes)} on a device"
    if cause.times is not None and cause.times > 1:
        return f"{text} each time, {bytes_text(cause.bytes_per_step)} in {cause.times} times a step"
    return f"{text} a step" if cause.times is not None else f"{text} each time"


def location_text(location: Location | None) -> str:
    """``net.py:33: return self.matmul(x, w)``."""
    if location is None:
        return ""
    code = (location.source or "").strip().strip("/").strip()
    return f"{location.path}:{location.line}" + (f": {code}" if code else "")


def why_objects(causes: Sequence[Cause]) -> list[dict[str, object]]:
    """The same for scripts."""
    return [_object(cause) for cause in causes]


def _object(cause: Cause) -> dict[str, object]:
    location = cause.location
    return {
        "node": cause.node.id,
        "op": cause.node.op,
        "line": cause.node.line,
        "graph": cause.node.graph.name if cause.node.graph is not None else None,
        "kind": cause.kind,
        "message": cause.message,
        "gradient": cause.is_gradient,
        "recomputed": cause.is_recomputed,
        "collective": cause.op or None,
        "ranks": json_value(cause.ranks),
        "group": cause.group,
        "bytes": cause.bytes,
        "times": cause.times,
        "bytes_per_step": cause.bytes_per_step,
        "operator": node_place(cause.operator),
        "consumer": node_place(cause.consumer),
        "begin": node_place(cause.begin),
        "producer_begin": node_place(cause.producer_begin),
        "from_split": cause.source.splits if cause.source is not None else None,
        "to_split": cause.target.splits if cause.target is not None else None,
        "parameter": cause.parameter,
        "micro": cause.micro,
        "source": f"{location.path}:{location.line}" if location is not None else None,
        "instead": cause.remedy or None,
        "missing": list(cause.missing),
    }


def node_place(node: Node | None) -> dict[str, object] | None:
    """A node of a dump by number, operator and line."""
    return None if node is None else {"node": node.id, "op": node.op, "line": node.line}
