"""Search: nodes by a query of ``--where``, or by a part of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsprotocol.types import Location, SymbolInformation, SymbolKind

from irtool.editor.document import Document
from irtool.ir.graph import Node
from irtool.operators.near import near_note
from irtool.report.text import escape
from irtool.syntax.query import QueryError, operators_named, query

MOST_FOUND = 1000
"""Of one document."""


def search(document: Document, text: str) -> list[SymbolInformation]:
    """The nodes that a query chooses; a text that is no query is looked for in names.

    Args:
        document: the dump.
        text: such as ``op == "MatMul" and shape[0] >= 1024``, or ``MatMul``, ``%12``, a part of a
            scope or of a parameter's name; empty finds nothing.
    """
    chosen = _chosen(text.strip())
    symbols: list[SymbolInformation] = []
    for node in document.dump.nodes():
        if len(symbols) >= MOST_FOUND:
            break
        try:
            if chosen(node):
                symbols.append(_symbol(document, node))
        except QueryError:
            return []
    return symbols


def query_error(text: str) -> str:
    """Why a text is no query; "" if it is one.

    Args:
        text: in the language of ``--where``.
    """
    try:
        query(text)
    except QueryError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return f"{error.message} (column {error.column}){hint}"
    return ""


def query_note(text: str) -> str:
    """Which operators in a query nobody knows, and those written like them; "" where none.

    Args:
        text: in the language of ``--where``; of what is no query there is nothing to say.
    """
    try:
        return "; ".join(filter(None, map(near_note, operators_named(text))))
    except QueryError:
        return ""


def _chosen(text: str) -> Callable[[Node], bool]:
    if not text:
        return lambda node: False
    try:
        return query(text)
    except QueryError:
        small = text.lower()
        return lambda node: any(small in part.lower() for part in _names(node))


def _names(node: Node) -> Iterator[str]:
    yield node.id
    yield node.op
    for name in (node.name, node.scope, node.instance_name):
        if name:
            yield name


def _symbol(document: Document, node: Node) -> SymbolInformation:
    where = Location(document.uri, document.text.line_range(node.line))
    name = f"{node.id} {escape(node.op)}"
    container = escape(node.scope or (node.graph.name if node.graph is not None else ""))
    return SymbolInformation(where, name, SymbolKind.Method, container_name=container)
