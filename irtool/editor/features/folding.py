"""Folding: graphs, the layers in them, and the comments below each statement."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import FoldingRange, FoldingRangeKind

from irtool.editor.document import Document
from irtool.editor.features.outline import last_line
from irtool.ir.graph import Graph, Node

_LEAST_STATEMENTS = 2


def folding(document: Document, most: int | None = None) -> list[FoldingRange]:
    """What can be folded; neighbours of one scope are a layer.

    Args:
        document: the dump.
        most: ranges that the client takes; the largest ones are given then.
    """
    ranges = sorted(_ranges(document), key=lambda fold: fold.start_line - fold.end_line)
    distinct: dict[int, FoldingRange] = {}
    for fold in ranges:  # editors show one range a line: the largest
        distinct.setdefault(fold.start_line, fold)
    chosen = list(distinct.values())[:most]
    return sorted(chosen, key=lambda fold: fold.start_line)


def _ranges(document: Document) -> Iterator[FoldingRange]:
    parameters = document.dump.parameters
    if len(parameters) > 1:
        yield _range(document, parameters[0].line, parameters[-1].line)
    for graph in document.dump.graphs:
        nodes = graph.nodes
        if not nodes:
            continue
        if graph.head is not None:
            last = graph.close.line - 1 if graph.close is not None else last_line(document, nodes)
            yield _range(document, graph.head.line, last)
        yield from _layers(document, graph)
        for node in nodes:
            first = node.line + (node.signature is not None)
            last = last_line(document, (node,))
            if last > first:
                yield _range(document, first, last, FoldingRangeKind.Comment)


def _layers(document: Document, graph: Graph) -> Iterator[FoldingRange]:
    """Runs of statements that share a scope, nested as scopes are."""
    open_: list[tuple[str, list[Node]]] = []
    for node in (*graph.nodes, None):
        parts = (node.scope or "").split("/") if node is not None and not node.is_return else []
        shared = 0
        while shared < min(len(parts), len(open_)) and open_[shared][0] == parts[shared]:
            shared += 1
        while len(open_) > shared:
            _, members = open_.pop()
            if len(members) >= _LEAST_STATEMENTS:
                yield _range(document, members[0].line, last_line(document, members))
        open_ += [(part, []) for part in parts[shared:]]
        for _, members in open_ if node is not None else ():
            members.append(node)  # type: ignore[arg-type]  # it is a node here


def _range(
    document: Document, first: int, last: int, kind: FoldingRangeKind | None = None
) -> FoldingRange:
    start = document.text.position(document.text.start_of(first)).line
    end = document.text.position(document.text.end_of(last)).line
    return FoldingRange(start, end, kind=kind)
