"""Tables whose cells lead into the graph of their page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from irtool.ir.graph import Node
from irtool.report.model import Cell, Element, Link, Table
from irtool.report.page.keys import node_key


def with_node_links(
    elements: Iterable[Element], nodes: Iterable[Node], source: str = ""
) -> list[Element]:
    """Elements whose tables lead into the graph: what stands in a column "node" becomes a link.

    Args:
        elements: of a report with a graph.
        nodes: that the tables are about; an id that two of them have leads nowhere.
        source: name of the dump, where the page shows several.
    """
    keys: dict[str, set[str]] = {}
    for node in nodes:
        keys.setdefault(node.id, set()).add(node_key(node, source))
    linked: list[Element] = []
    for element in elements:
        titles = [c.title for c in element.columns] if isinstance(element, Table) else []
        if isinstance(element, Table) and "node" in titles:
            place = titles.index("node")
            rows = [
                [*row[:place], _linked(row[place], keys), *row[place + 1 :]] for row in element.rows
            ]
            element = replace(element, rows=rows)
        linked.append(element)
    return linked


def _linked(cell: Cell, keys: Mapping[str, set[str]]) -> Cell:
    meant = keys.get(cell, set()) if isinstance(cell, str) else set[str]()
    return Link(str(cell), next(iter(meant))) if len(meant) == 1 else cell
