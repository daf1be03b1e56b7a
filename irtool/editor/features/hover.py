"""Hover: what a statement, parameter or graph is, and what the analyses say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind, Position
from pygls.uris import from_fs_path

from irtool.cluster.flops import flops
from irtool.editor.document import Document, Thing, key_of
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.units import bytes_text, count_text, operations_text, plural
from irtool.operators.table import rule_of
from irtool.report.page.graph.facts import Fact, node_facts, parameter_facts
from irtool.report.text import escape
from irtool.sharding.why import Cause
from irtool.syntax.query_fields import phase

_MOST_SHOWN = 8
_MOST_CHARACTERS = 400
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def hover(document: Document, position: Position) -> Hover | None:
    """What is known of the thing at a position; elsewhere in a statement, of the statement.

    Args:
        document: the dump.
        position: of the cursor.

    Returns:
        None outside of statements and names.
    """
    mention = document.mention_at(position)
    thing: Thing | None = mention.thing if mention is not None else document.node_at(position)
    if thing is None:
        return None
    where = None
    if mention is not None:
        where = document.text.range(mention.start, mention.end)
    return Hover(MarkupContent(MarkupKind.Markdown, thing_text(document, thing)), where)


def thing_text(document: Document, thing: Thing) -> str:
    """What is known of a thing, in Markdown.

    Args:
        document: the dump, with the answers of the analyses so far.
        thing: a node, parameter or graph of it.
    """
    if isinstance(thing, Node):
        return _node_text(document, thing)
    if isinstance(thing, GraphParameter):
        return _parameter_text(document, thing)
    return _graph_text(document, thing)


def _node_text(document: Document, node: Node) -> str:
    report = document.answers.report
    facts = [
        *node_facts(node, phase(node), report.operator(node) if report is not None else None),
        *_arithmetic(node),
        *_users(document, node.users),
        *_ties(document, node),
        *_why(document, node),
    ]
    title = f"**{node.id} {_plain(node.op)}**"
    if node.name is not None:
        title += f" ({_plain(node.name)})"
    return "\n\n".join(part for part in (title, _list(facts), _python(document, node)) if part)


def _arithmetic(node: Node) -> Iterator[Fact]:
    count = flops(node)
    yield "FLOPs", "not known" if count is None else operations_text(count)
    rule = rule_of(node.op)
    if rule is not None and rule.text:
        yield "rule", " ".join(rule.text.split())


def _users(document: Document, users: Iterable[Node]) -> Iterator[Fact]:
    nodes = list(users)
    if not nodes:
        return
    shown = ", ".join(f"{user.id} {user.op} (line {user.line})" for user in nodes[:_MOST_SHOWN])
    more = len(nodes) - _MOST_SHOWN
    yield "used by", shown + (f" and {count_text(more)} more" if more > 0 else "")


def _ties(document: Document, node: Node | GraphParameter) -> Iterator[Fact]:
    ties = document.answers.ties
    for tie in ties.of(node) if ties is not None else ():
        other = tie.right if tie.left is node or tie.left == node else tie.left
        if not isinstance(other, Node):
            continue
        label = {"gradient": "gradient", "recompute": "recomputed in", "parameter": "updated by"}
        name = label.get(tie.kind, tie.kind)
        if tie.right is node:
            name = {"gradient": "gradient of", "recompute": "copy of"}.get(tie.kind, name)
        yield name, f"{other.id} {other.op} (line {other.line}){'' if tie.certain else ', likely'}"


def _why(document: Document, node: Node) -> Iterator[Fact]:
    cause = document.answers.causes.get(node)
    if cause is not None:
        yield from cause_facts(cause)


def cause_facts(cause: Cause) -> Iterator[Fact]:
    """Why a node is there, and what would make it go away.

    Args:
        cause: what the analysis of a later dump says of a collective, slice, concat or split.

    Yields:
        a label and a text, only of what is known.
    """
    yield "why it is here", cause.message
    if cause.bytes is not None:
        yield "bytes each time", bytes_text(cause.bytes)
    if cause.remedy:
        yield "instead", cause.remedy
    for text in cause.missing:
        yield "missing", text


def _python(document: Document, node: Node) -> str:
    """A link to the line of Python, where the file is here."""
    place = node.location
    path = document.project.python_file(place.path) if place is not None else None
    uri = from_fs_path(path) if path is not None else None
    if place is None or uri is None:
        return ""
    return f"[{_plain(place.path)}:{place.line}]({uri}#L{place.line})"


def _parameter_text(document: Document, parameter: GraphParameter) -> str:
    report = document.answers.report
    judged = None
    if report is not None:
        key = key_of(parameter)
        judged = next(
            (entry for entry in report.parameters if key_of(entry.parameter) == key), None
        )
    owners = document.uses.get(key_of(parameter), [])
    users = [owner.item for owner in owners if isinstance(owner.item, Node)]
    facts = [
        *parameter_facts(parameter, parameter.graph, judged),
        *_users(document, users),
        *_ties(document, parameter),
    ]
    number = "" if parameter.number is None else parameter.number
    return f"**%para{number}** {_plain(parameter.name)}\n\n{_list(facts)}"


def _graph_text(document: Document, graph: Graph) -> str:
    result = graph.result
    facts = [
        ("nodes", count_text(len(graph.nodes))),
        ("parameters", ", ".join(parameter.name for parameter in graph.parameters) or "none"),
    ]
    if result is not None and result.output_type is not None:
        facts.append(("returns", result.output_type.short()))
    if graph.parent:
        facts.append(("inside", f"@{graph.parent}"))
    callers = document.dump.graph_users(graph.name)
    if callers:
        facts.append(("used in", ", ".join(f"@{name}" for name in callers[:_MOST_SHOWN])))
    if document.dump.entry is graph:
        facts.append(("entry", "the dump's entry graph"))
    title = f"**@{_plain(graph.name)}**: {plural(len(graph.nodes), 'statement')}"
    return f"{title}\n\n{_list(facts)}"


def _list(facts: Iterable[Fact]) -> str:
    shown = ((label.removesuffix(":"), value) for label, value in facts if value)
    return "\n".join(f"- {_plain(label)}: {_plain(value)}" for label, value in shown)


def _plain(text: str) -> str:
    """A text of a dump as Markdown that shows it as it is."""
    safe = escape(text).replace("\n", " ")
    if len(safe) > _MOST_CHARACTERS:
        safe = f"{safe[:_MOST_CHARACTERS]} …"
    return _MARKUP.sub(r"\\\1", safe)
