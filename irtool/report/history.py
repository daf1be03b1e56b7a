"""``irtool parse --history``: what each pass made of a node, for scripts and for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from irtool.cluster.context.model import RunContext
from irtool.ir.units import plural
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import Answer, Cell, Report, Table, text_column
from irtool.report.run_answer import RunAnswer, context_fields

if TYPE_CHECKING:
    from irtool.compare.history import Event, Moment
    from irtool.ir.graph import Node

_MOST_NODES = 4


class MomentNode(AnswerObject, frozen=True, kw_only=True):
    """A node in one dump."""

    node: str
    name: str | None
    op: str
    graph: str | None
    line: int
    type: str | None


class HistoryMoment(AnswerObject, frozen=True, kw_only=True):
    """What a pass did to the node that was asked for."""

    dump: Annotated[str, doc("file of the dump that was taken after it")]
    event: Annotated[
        str,
        doc("`present` in the first dump, `added`, `copied`, `merged`, `changed`, `replaced`, "
            "`removed` or `unchanged`"),
    ]  # fmt: skip
    details: Annotated[Sequence[str], doc("what changed, from and to")]
    nodes: Annotated[list[MomentNode], doc("in this dump; of `removed` those of the dump before")]


class HistoryAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.parse.history/1"
):
    """A node's history over the passes of one compilation."""

    path: str
    node: Annotated[str, doc("what was asked for")]
    moments: list[HistoryMoment]


def history_answer(
    path: str, asked: str, moments: Sequence[Moment], context: RunContext
) -> HistoryAnswer:
    """What each pass did to a node, for scripts.

    Args:
        path: of the dump or run folder.
        asked: the node, as it was asked for.
        moments: what each pass did.
        context: that the compilation was made for.
    """
    return HistoryAnswer(
        **context_fields(context),
        path=path,
        node=asked,
        moments=[
            HistoryMoment(
                dump=moment.name,
                event=moment.event,
                details=moment.details,
                nodes=[_node(node) for node in moment.nodes],
            )
            for moment in moments
        ],
    )


def _node(node: Node) -> MomentNode:
    return MomentNode(
        node=node.id,
        name=node.name,
        op=node.op,
        graph=node.graph.name if node.graph is not None else None,
        line=node.line,
        type=node.output_type.short() if node.output_type else None,
    )


def history_report(path: str, asked: str, moments: Sequence[Moment], limit: int | None) -> Report:
    """A history, for people; passes that did nothing to the node are one line.

    Args:
        path: of the run.
        asked: what was asked for.
        moments: one a dump.
        limit: rows that text shows; None and 0 are all.
    """
    columns = (
        text_column("dump"), text_column("event"), text_column("nodes", 1), text_column("type", 2),
        text_column("what", 1),
    )  # fmt: skip
    rows = list(_rows(moments))
    table = Table("", columns, rows, noun="row", most=limit or None)
    return Report(f"parse --history {asked}: {path}", Answer(_headline(moments)), [table])


def _headline(moments: Sequence[Moment]) -> str:
    first, last = moments[0], moments[-1]
    op = first.nodes[0].op
    if first.event == "added":
        begins = f"{op} is added in {first.name}"
        begins += f" ({first.details[0]})" if first.details else ""
    else:
        begins = f"{op} is there from the first dump on ({first.name})"
    changed = sum(moment.event not in ("unchanged", "present", "added") for moment in moments)
    removed = last.event == "removed"
    passes = f"{plural(changed - removed, 'later pass')} changed it"
    ends = f"; {last.name} has it no more" if removed else ""
    return f"{begins}; {passes}{ends}"


def _rows(moments: Sequence[Moment]) -> Iterator[list[Cell]]:
    def is_idle(moment: Moment) -> bool:
        return moment.event == "unchanged"

    for idle, group in groupby(moments, is_idle):
        members = list(group)
        if idle:
            names = f"{members[0].name} to {members[-1].name}" if len(members) > 1 else ""
            yield [names or members[0].name, "unchanged", _ids(members[-1].nodes), "", ""]
            continue
        for moment in members:
            event: Event = moment.event
            kept = moment.nodes[0].output_type
            what = "; ".join(moment.details)
            yield [moment.name, event, _ids(moment.nodes), kept.short() if kept else "", what]


def _ids(nodes: Sequence[Node]) -> str:
    """``%12 MatMul, %14 MatMul, 3 more``."""
    shown = ", ".join(f"{node.id} {node.op}" for node in nodes[:_MOST_NODES])
    more = len(nodes) - _MOST_NODES
    return f"{shown}, {more} more" if more > 0 else shown
