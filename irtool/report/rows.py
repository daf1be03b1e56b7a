"""Nodes as rows: one flat record a node, the same in ndjson, csv and parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from msgspec.structs import asdict

from irtool.ir.graph import Node
from irtool.report.csv import csv_lines, harmless
from irtool.report.dump_json import DumpNode, dump_node
from irtool.report.json import json_text
from irtool.report.text import escape

Record = dict[str, Any]
"""A record has the same keys in every format; nested values are lists and dictionaries."""

COLUMNS = ("file", "pass", "rank", "graph", *DumpNode.__struct_fields__)
_INTEGERS = frozenset(("rank", "output_bytes", "line", "count", "bytes"))
_MOST = 1 << 63
"""Sizes from here on do not fit into a column of whole numbers."""
_LISTS = frozenset(("inputs", "callees", "input_types"))


def node_record(node: Node, path: str, pass_name: str | None, rank: int | None) -> Record:
    """A node as a record.

    Args:
        node: of a dump.
        path: of the dump.
        pass_name: what it was taken after; None where the name does not tell.
        rank: whose it is; None where nobody says.
    """
    graph = node.graph.name if node.graph else None
    return {
        "file": path,
        "pass": pass_name,
        "rank": rank,
        "graph": graph,
        **asdict(dump_node(node)),
    }


def ndjson_text(records: Iterable[Record]) -> str:
    """One JSON object a line.

    Args:
        records: plain data.
    """
    return "".join(f"{json_text(record)}\n" for record in records)


def csv_text(records: Iterable[Record], columns: Sequence[str], header: bool) -> str:
    """Comma-separated values after RFC 4180; nested values stand as JSON.

    Texts that a spreadsheet would run as a formula begin with an apostrophe; numbers never do.

    Args:
        records: one a line.
        columns: keys, in the order of the line; what a record lacks is empty.
        header: whether the first line names the columns.
    """
    rows = ([_csv_cell(record.get(column)) for column in columns] for record in records)
    return csv_lines(chain([columns], rows) if header else rows)


def _csv_cell(value: object) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, str):
        return harmless(escape(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return json_text(value)
    return value


def arrow_table(records: Sequence[Record], columns: Sequence[str]) -> Any:
    """A pyarrow table; nested values other than lists of texts stand as JSON.

    Args:
        records: one a row; integers that 64 bits don't hold become null.
        columns: keys, in the order of the table.

    Raises:
        ImportError: pyarrow is not installed.
    """
    pa: Any = import_module("pyarrow")
    kinds: list[tuple[str, Any]] = [(column, _arrow_type(pa, column)) for column in columns]
    arrays = {
        column: pa.array([_arrow_cell(record.get(column), column) for record in records], kind)
        for column, kind in kinds
    }
    return pa.table(arrays, schema=pa.schema(kinds))


def _arrow_type(pa: Any, column: str) -> Any:
    if column in _INTEGERS:
        return pa.int64()
    return pa.list_(pa.string()) if column in _LISTS else pa.string()


def _arrow_cell(value: object, column: str) -> object:
    if isinstance(value, int) and column in _INTEGERS:
        return value if -_MOST <= value < _MOST else None
    if value is None:
        return value
    if column in _LISTS and isinstance(value, list):
        return [None if item is None else _utf8(item) for item in value]  # type: ignore[misc]  # items of any type
    return _utf8(value) if isinstance(value, str) else json_text(value)


def _utf8(text: str) -> str:
    """Bytes that were no text become escapes: Arrow takes valid UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
