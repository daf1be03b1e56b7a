"""How pages name the nodes of a dump: tables, findings and the graph must agree."""

from __future__ import annotations

from irtool.ir.graph import Graph, GraphParameter, Node


def node_key(node: Node, source: str = "") -> str:
    """Key of a node: its line and id, after the name of the dump where a page shows several.

    Args:
        node: of a dump.
        source: name of the dump on the page; "" where it is the only one.
    """
    return f"{source}:{node.line}:{node.id}" if source else f"{node.line}:{node.id}"


def parameter_key(parameter: GraphParameter, graph: Graph, source: str = "") -> str:
    """Key of a parameter of a graph.

    Args:
        parameter: of the graph.
        graph: its line tells graphs of one name apart.
        source: name of the dump on the page; "" where it is the only one.
    """
    name = f"{graph.line}:p{parameter.number}:{parameter.label or parameter.name}"
    return f"{source}:{name}" if source else name
