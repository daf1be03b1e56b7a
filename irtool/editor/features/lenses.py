"""Code lenses: the group of each collective, and why it is there; users of graphs."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import CodeLens, Command, Location

from irtool.editor.document import Document
from irtool.editor.features.hover import cause_facts
from irtool.ir.collectives import Collective, collectives
from irtool.ir.graph import Graph, Node
from irtool.ir.units import bytes_text, plural, ranks_text
from irtool.report.text import escape

WHY = "irtool.why"
"""The command behind "why is this here": arguments are the URI and the line, from 0."""
PLACES = "irtool.places"
"""The command behind a group or graph: arguments are the URI and the line, from 0."""
_MOST_REASON = 100


def lenses(document: Document) -> list[CodeLens]:
    """All lenses of a dump: of graphs, groups and reasons.

    Args:
        document: the dump, with the answers of the analyses so far.
    """
    return [*_graphs(document), *_groups(document), *_reasons(document)]


def _graphs(document: Document) -> Iterator[CodeLens]:
    for graph in document.dump.graphs:
        if graph.head is not None:
            users = len(document.dump.graph_users(graph.name))
            text = plural(len(graph.nodes), "statement")
            text += f", used in {plural(users, 'graph')}" if users else ""
            yield _lens(document, graph.head.line, text, PLACES)


def _groups(document: Document) -> Iterator[CodeLens]:
    communications = _collectives(document)
    sizes: dict[tuple[str | None, tuple[int, ...] | None], int] = {}
    for collective in communications:
        sizes[collective.group, collective.ranks] = (
            sizes.get((collective.group, collective.ranks), 0) + 1
        )
    for collective in communications:
        over = (
            "unknown ranks" if collective.ranks is None else f"ranks {ranks_text(collective.ranks)}"
        )
        text = f"{collective.op} over {over}"
        text += f" in {escape(collective.group)}" if collective.group else ""
        text += f", {bytes_text(collective.bytes)}"
        others = sizes[collective.group, collective.ranks] - 1
        text += f", {plural(others, 'other')} in this group" if others else ""
        yield _lens(document, collective.node.line, text, PLACES)


def _collectives(document: Document) -> tuple[Collective, ...]:
    context = document.answers.context
    return collectives(document.dump, context.devices if context is not None else None)


def _reasons(document: Document) -> Iterator[CodeLens]:
    for node, cause in document.answers.causes.items():
        reason = escape(cause.message)
        if len(reason) > _MOST_REASON:
            reason = f"{reason[:_MOST_REASON]}…"
        yield _lens(document, node.line, f"why is this here: {reason}", WHY)


def _lens(document: Document, line: int, title: str, command: str) -> CodeLens:
    where = document.text.line_range(line)
    return CodeLens(where, Command(title, command, arguments=[document.uri, where.start.line]))


# -- what the commands answer ----------------------------------------------------------------------


def why(document: Document, line: int) -> str:
    """The whole reason of a statement, in words; "" where none is known.

    Args:
        document: a dump taken after the parallel pass.
        line: of the protocol, from 0.
    """
    node = _node(document, line)
    cause = document.answers.causes.get(node) if node is not None else None
    if node is None or cause is None:
        return ""
    facts = [f"{label}: {text}" for label, text in cause_facts(cause)]
    return "\n".join((f"{node.id} {node.op}", *map(escape, facts)))


def places(document: Document, line: int) -> list[Location]:
    """The other collectives of a collective's group; where a graph is used.

    Args:
        document: any dump.
        line: of the protocol, from 0.
    """
    thing = _node(document, line) or _graph(document, line)
    if isinstance(thing, Graph):
        users = (document.dump.graph(name) for name in document.dump.graph_users(thing.name))
        nodes = [
            node
            for graph in users
            if graph is not None
            for node in graph.nodes
            if thing in graph.called(node) or thing in node.inputs
        ]
    else:
        communications = _collectives(document)
        own = next((collective for collective in communications if collective.node is thing), None)
        key = (own.group, own.ranks) if own is not None else None
        nodes = [
            collective.node
            for collective in communications
            if (collective.group, collective.ranks) == key
        ]
    return [Location(document.uri, document.text.line_range(node.line)) for node in nodes]


def _node(document: Document, line: int) -> Node | None:
    owner = document.owner_of_row(line)
    return owner.item if owner is not None and isinstance(owner.item, Node) else None


def _graph(document: Document, line: int) -> Graph | None:
    owner = document.owner_of_row(line)
    return owner.graph if owner is not None else None
