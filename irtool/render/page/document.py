"""The documents that commands show on a terminal, as sections of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from irtool.ir.node import Node
from irtool.render import tables
from irtool.render.page.keys import node_key
from irtool.render.page.page import (
    Cell,
    Column,
    FactsSection,
    Link,
    Ordered,
    Section,
    TableSection,
    TextSection,
)

_UNITS = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600,
    "%": 0.01, "": 1,
}  # fmt: skip
_NUMBER = re.compile(r"\s*([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([A-Za-zµ%]*)")


def document_sections(document: tables.Document) -> Iterator[Section]:
    """Sections for the blocks of a document; a heading is the title of what follows it."""
    title = ""
    for block in document.blocks:
        own = isinstance(block, tables.Heading) or (isinstance(block, tables.Table) and block.title)
        if title and own:
            yield TextSection(title, ())
        match block:
            case tables.Heading():
                title = block.text
                continue
            case tables.Facts():
                yield FactsSection(title, tuple(block.pairs))
            case tables.Note():
                yield TextSection(title, (block.text,))
            case tables.Table():
                yield table_section(block, title)
        title = ""
    if title:
        yield TextSection(title, ())


def with_node_links(
    sections: Iterable[Section], nodes: Iterable[Node], source: str = ""
) -> list[Section]:
    """Sections whose tables lead into the graph: what stands in a column "node" becomes a link.

    Args:
        sections: of a page with a graph.
        nodes: that the tables are about; an id that two of them have leads nowhere.
        source: name of the dump, where the page shows several.
    """
    keys: dict[str, set[str]] = {}
    for node in nodes:
        keys.setdefault(node.id, set()).add(node_key(node, source))
    found: list[Section] = []
    for section in sections:
        titles = [c.title for c in section.columns] if isinstance(section, TableSection) else []
        if not isinstance(section, TableSection) or "node" not in titles:
            found.append(section)
            continue
        at = titles.index("node")
        rows = [[*row[:at], _linked(row[at], keys), *row[at + 1 :]] for row in section.rows]
        found.append(replace(section, rows=rows))
    return found


def _linked(cell: Cell, keys: Mapping[str, set[str]]) -> Cell:
    meant = keys.get(cell, set()) if isinstance(cell, str) else set[str]()
    return Link(str(cell), next(iter(meant))) if len(meant) == 1 else cell


def table_section(table: tables.Table, title: str = "") -> TableSection:
    """A table of a terminal as one that sorts; ``1.5 MiB`` sorts by its bytes."""
    numeric = [column.align == "right" for column in table.columns]
    rows = [
        [_cell(cell, number) for cell, number in zip(row, numeric, strict=True)]
        for row in table.rows
    ]
    columns = [Column(column.title, "number" if column.align == "right" else "text")
               for column in table.columns]  # fmt: skip
    note = tables.left_out_text(table) if table.left_out else ""
    return TableSection(table.title or title, columns, rows, note)


def _cell(cell: tables.Cell, numeric: bool) -> Cell:
    if not numeric or not isinstance(cell, str):
        return cell
    found = _NUMBER.match(cell)
    if found is None or found[2] not in _UNITS:
        return cell
    return Ordered(cell, float(found[1].replace(",", "")) * _UNITS[found[2]])
