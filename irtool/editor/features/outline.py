"""The outline: graphs, in them phases and scopes, in these the statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from lsprotocol.types import DocumentSymbol, Range, SymbolKind

from irtool.editor.document import Document
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, Node
from irtool.ir.units import plural
from irtool.report.page.graph.tree import scope_path
from irtool.report.text import escape
from irtool.syntax.query_fields import phase

MOST_STATEMENTS = 20_000
"""Of a dump whose outline has a line for each statement; larger ones show scopes alone."""
_MOST_DETAIL = 80


@dataclass(slots=True)
class _Scope:
    """A scope with the statements that stand in it directly."""

    name: str
    nodes: list[Node] = field(default_factory=list[Node])
    scopes: dict[str, _Scope] = field(default_factory=dict[str, "_Scope"])

    def every(self) -> Iterator[Node]:
        """All statements in the scope and in those inside it."""
        yield from self.nodes
        for scope in self.scopes.values():
            yield from scope.every()


def outline(document: Document) -> list[DocumentSymbol]:
    """What editors list beside the text.

    Args:
        document: the dump; of one with more than ``MOST_STATEMENTS`` the statements are left out.

    Returns:
        the parameters, where there are any, and each graph that has a line.
    """
    graphs = document.dump.graphs
    shows_nodes = sum(len(graph.nodes) for graph in graphs) <= MOST_STATEMENTS
    symbols = [_parameters(document)] if document.dump.parameters else []
    symbols += [_graph(document, graph, shows_nodes) for graph in graphs if graph.line]
    return symbols


def _parameters(document: Document) -> DocumentSymbol:
    children: list[DocumentSymbol] = []
    for item in document.dump.parameters:
        kind = SymbolKind.Field if item.is_weight else SymbolKind.Variable
        where = document.text.line_range(item.line)
        detail = item.type.short() if item.type is not None else None
        children.append(DocumentSymbol(_shown(item.name), kind, where, where, detail))
    where = Range(children[0].range.start, children[-1].range.end)
    detail = plural(len(children), "parameter")
    return DocumentSymbol(
        "parameters", SymbolKind.Struct, where, children[0].range, detail, children=children
    )


def _graph(document: Document, graph: Graph, shows_nodes: bool) -> DocumentSymbol:
    root = _Scope("")
    for node in graph.nodes:
        scope = root
        for part in () if node.is_return else scope_path(node, phase(node)):
            scope = scope.scopes.setdefault(part, _Scope(part))
        scope.nodes.append(node)
    own = document.definition(graph) or document.text.line_range(graph.line)
    last = graph.close.line if graph.close is not None else last_line(document, graph.nodes)
    end = document.text.line_range(max(last, graph.line)).end
    return DocumentSymbol(
        f"@{_shown(graph.name)}",
        SymbolKind.Function,
        Range(document.text.line_range(graph.line).start, end),
        own,
        plural(len(graph.nodes), "statement"),
        children=_inside(document, root, shows_nodes),
    )


def _inside(document: Document, scope: _Scope, shows_nodes: bool) -> list[DocumentSymbol]:
    symbols = [_scope(document, inner, shows_nodes) for inner in scope.scopes.values()]
    if shows_nodes:
        symbols += [_node(document, node) for node in scope.nodes]
    return sorted(symbols, key=lambda symbol: symbol.selection_range.start.line)


def _scope(document: Document, scope: _Scope, shows_nodes: bool) -> DocumentSymbol:
    """A scope; those that hold one other scope and nothing else are one line with it."""
    name = scope.name
    while len(scope.scopes) == 1 and not scope.nodes:
        (scope,) = scope.scopes.values()
        name += f"/{scope.name}"
    nodes = sorted(scope.every(), key=lambda node: node.line)
    first = document.text.line_range(nodes[0].line)
    end = document.text.line_range(last_line(document, nodes)).end
    return DocumentSymbol(
        _shown(name),
        SymbolKind.Namespace,
        Range(first.start, end),
        first,
        plural(len(nodes), "statement"),
        children=_inside(document, scope, shows_nodes),
    )


def _node(document: Document, node: Node) -> DocumentSymbol:
    where = document.text.line_range(node.line)
    kind = SymbolKind.Function if node.callees else SymbolKind.Method
    detail = node.output_type.short() if node.output_type is not None else ""
    title = "Return" if node.is_return else f"{node.id} {_shown(node.op)}"
    return DocumentSymbol(title, kind, where, where, _shown(detail))


def last_line(document: Document, nodes: Sequence[Node]) -> int:
    """The last line of the last of some statements in the order of lines.

    Args:
        document: the dump.
        nodes: of it, in the order of lines.

    Returns:
        the line (from 1) before the next item; 0 for no statement.
    """
    if not nodes:
        return 0
    following = document.after(nodes[-1].line)
    return following.line - 1 if following is not None else document.text.line_count


def _shown(text: str) -> str:
    """A name as editors list it; theirs must not be empty."""
    safe = escape(text)
    return (safe if len(safe) <= _MOST_DETAIL else f"{safe[:_MOST_DETAIL]}…") or "(no name)"
