"""What ``irtool check --why`` tells: the cause of a collective, slice, concat or split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from irtool.cluster.sources import user_location
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text, plural, ranks_text, seconds_text, tuple_text
from irtool.report.answer import AnswerObject, Json, doc
from irtool.report.json import json_value
from irtool.report.model import (
    Answer,
    Element,
    Explorer,
    Facts,
    Note,
    Report,
    Tone,
    rows_shown,
)
from irtool.report.page.graph.data import graph_data
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.places import NodePlace, location_text, node_place
from irtool.sharding.why import Cause

if TYPE_CHECKING:
    from irtool.planning.plans.edits import CauseEdits, NetworkEdit

MOST_CAUSES = 20


class EditBeside(AnswerObject, frozen=True, kw_only=True):
    """Operators that change together with those of an edit."""

    node: str
    op: str
    source: Annotated[str | None, doc("the line of Python")]
    old: Json
    new: Json


class Alternative(AnswerObject, frozen=True, kw_only=True):
    """An edit that was checked on the whole network; of a strategy, or of a setting."""

    node: Annotated[str | None, doc("the first of its operators, before the parallel pass")]
    op: str | None
    operators: Annotated[int, doc("how many the line of Python makes")]
    source: Annotated[str | None, doc("the line of Python")]
    old: Annotated[Json, doc("their strategy")]
    new: Json
    setting: Annotated[str | None, doc("key of the parallel context")]
    value: Annotated[bool | None, doc("what to set it to")]
    seconds: Annotated[float, doc("that a step becomes shorter, nothing hidden; below 0: longer")]
    bytes: Annotated[int, doc("that a device receives less each step")]
    removes: Annotated[bool, doc("the collective in question goes; false: another one comes")]
    beside: Annotated[list[EditBeside], doc("what changes with it: the edit is all of these")]


class NodeCause(AnswerObject, frozen=True, kw_only=True):
    """Why a node of a later dump is there."""

    node: str
    op: str
    line: int
    graph: str | None
    kind: str
    message: str
    gradient: Annotated[bool, doc("whether it belongs to the backward pass")]
    recomputed: bool
    collective: str | None
    ranks: Annotated[Json, doc("null where they are not known")]
    group: str | None
    bytes: Annotated[int | None, doc("that one device puts in each time")]
    times: Annotated[int | None, doc("a step")]
    bytes_per_step: int | None
    operator: Annotated[NodePlace | None, doc("whose strategy is the cause")]
    consumer: NodePlace | None
    begin: Annotated[NodePlace | None, doc("in the dump before the parallel pass")]
    producer_begin: NodePlace | None
    from_split: Sequence[int] | None
    to_split: Sequence[int] | None
    parameter: str | None
    micro: Annotated[int | None, doc("the micro-batch")]
    source: Annotated[str | None, doc("the line of Python")]
    instead: Annotated[str | None, doc("what would make it go away")]
    checked: Annotated[bool, doc("`instead` was checked on the whole network")]
    no_edit: Annotated[str | None, doc("why no edit is proposed: what was tried")]
    alternatives: Annotated[
        list[Alternative],
        doc("edits that the whole network accepts and that shorten a step, the best first"),
    ]
    missing: Annotated[list[str], doc("what would have to be known to say more")]


def why_report(
    title: str,
    causes: Sequence[Cause],
    begin: str | None,
    limit: int | None,
    later: Dump,
    is_page: bool,
    found: CauseEdits | None = None,
) -> Report:
    """Why nodes are there: of each its cause, what it costs, and what would make it go away.

    Args:
        title: the question.
        causes: of each node.
        begin: path of the dump before the parallel pass.
        limit: nodes that text tells of.
        later: the dump that holds the nodes.
        is_page: whether its graph is shown, with all nodes.
        found: edits that the whole network accepts, and why there are none.
    """
    kinds = Counter(cause.kind for cause in causes)
    text = ", ".join(f"{count} × {kind}" if count > 1 else kind for kind, count in kinds.items())
    most = None if is_page else rows_shown(limit, MOST_CAUSES)
    elements: list[Element] = [
        Facts(_facts(cause, later.path, begin, found)) for cause in causes[:most]
    ]
    if len(causes) > len(elements):
        rest = plural(len(causes) - len(elements), "more node")
        elements.append(Note(f"… {rest} (--limit 0 shows all)"))
    if is_page:
        marks = {cause.node: Mark(None, "info", cause.message) for cause in causes}
        overlay = Overlay("findings", "why it is there", "", marks, "max")
        elements.append(Explorer("Graph", graph_data(later, None, [overlay])))
    tone: Tone = "unknown" if kinds["unknown"] else "plain"
    return Report(title, Answer(text, tone), elements, later.path)


def _facts(
    cause: Cause, path: str, begin: str | None, found: CauseEdits | None
) -> list[tuple[str, str]]:
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
    edits, why_none = _of(cause, found)
    for number, edit in enumerate(edits):
        facts.append(("or" if number else "instead", edit_text(edit)))
    if cause.remedy and not edits:
        facts.append(("instead", _unchecked(cause)))
    if why_none:
        facts.append(("tried", why_none))
    facts += [("missing", text) for text in cause.missing]
    return facts


def _of(cause: Cause, found: CauseEdits | None) -> tuple[Sequence[NetworkEdit], str]:
    """Edits of a cause, and why there are none."""
    if found is None:
        return (), ""
    return found.edits.get(cause.node, ()), found.why_none.get(cause.node, "")


_ADVICE = ("redistribution", "dataset", "forward reduction", "operator")
"""Causes whose remedy is another strategy."""


def _unchecked(cause: Cause) -> str:
    """A remedy that nobody tried."""
    note = "; not checked on the whole network" if cause.kind in _ADVICE else ""
    return f"{cause.remedy}{note}"


def _bytes(cause: Cause) -> str:
    text = f"{bytes_text(cause.bytes)} on a device"
    if cause.times is not None and cause.times > 1:
        return f"{text} each time, {bytes_text(cause.bytes_per_step)} in {cause.times} times a step"
    return f"{text} a step" if cause.times is not None else f"{text} each time"


def _alternative(edit: NetworkEdit) -> Alternative:
    node = edit.node
    return Alternative(
        node=None if node is None else node.id,
        op=None if node is None else node.op,
        operators=len(edit.nodes),
        source=_source(node),
        old=json_value(edit.old),
        new=json_value(edit.new),
        setting=edit.setting or None,
        value=True if edit.setting else None,
        seconds=edit.seconds,
        bytes=edit.bytes,
        removes=edit.removes,
        beside=[
            EditBeside(
                node=other.id, op=other.op, source=_source(other), old=json_value(old),
                new=json_value(new),
            )
            for other, old, new in edit.beside
        ],
    )  # fmt: skip


def _source(node: Node | None) -> str | None:
    location = None if node is None else user_location(node)
    return None if location is None else f"{location.path}:{location.line}"


def edit_text(edit: NetworkEdit) -> str:
    """What to write, how often it stands, and what it saves."""
    saved = f"saves {seconds_text(edit.seconds)} a step"
    if edit.seconds <= 0:
        saved = f"takes it away, and makes a step {seconds_text(-edit.seconds)} longer"
    if edit.bytes > 0:
        saved += f" and {bytes_text(edit.bytes)} to receive"
    if edit.moves:
        saved += "; another redistribution comes elsewhere"
    if edit.setting:
        return f"{edit.setting}=True {saved}"
    node = edit.node
    named = "" if node is None else f"{node.op} {node.id}"
    if len(edit.nodes) > 1:
        named += f" and {len(edit.nodes) - 1} alike"
    place = _source(node)
    where = f" ({place})" if place else ""
    more = "".join(
        f", {other.op} {other.id} {new} instead of {old}" for other, old, new in edit.beside
    )
    return f"give {named}{where} {edit.new} instead of {edit.old}{more}: {saved}"


def node_cause(cause: Cause, found: CauseEdits | None = None) -> NodeCause:
    """A cause for scripts, with edits that were tried on the network.

    Args:
        cause: why a collective, slice, concat or split of a later dump is there.
        found: edits that were tried for causes; None: none were tried.
    """
    edits, why_none = _of(cause, found)
    location = cause.location
    return NodeCause(
        node=cause.node.id,
        op=cause.node.op,
        line=cause.node.line,
        graph=cause.node.graph.name if cause.node.graph is not None else None,
        kind=cause.kind,
        message=cause.message,
        gradient=cause.is_gradient,
        recomputed=cause.is_recomputed,
        collective=cause.op or None,
        ranks=json_value(cause.ranks),
        group=cause.group,
        bytes=cause.bytes,
        times=cause.times,
        bytes_per_step=cause.bytes_per_step,
        operator=node_place(cause.operator),
        consumer=node_place(cause.consumer),
        begin=node_place(cause.begin),
        producer_begin=node_place(cause.producer_begin),
        from_split=cause.source.splits if cause.source is not None else None,
        to_split=cause.target.splits if cause.target is not None else None,
        parameter=cause.parameter,
        micro=cause.micro,
        source=f"{location.path}:{location.line}" if location is not None else None,
        instead=edit_text(edits[0]) if edits else _unchecked(cause) if cause.remedy else None,
        checked=bool(edits),
        no_edit=why_none or None,
        alternatives=[_alternative(edit) for edit in edits],
        missing=list(cause.missing),
    )
