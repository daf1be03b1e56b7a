"""A dump as a table: one row a node, for data frames, csv and the like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from irtool.ir.collectives import collective
from irtool.ir.graph import DumpModel, Node
from irtool.ir.phases import phases
from irtool.ir.statement import nested_references
from irtool.ir.values import (
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    Reference,
    Value,
)

COLUMNS: dict[str, str] = {
    "graph": "string",
    "id": "string",
    "name": "string",
    "op": "string",
    "instance_name": "string",
    "scope": "string",
    "phase": "string",
    "inputs": "strings",
    "input_types": "strings",
    "output_type": "string",
    "dtype": "string",
    "shape": "integers",
    "output_bytes": "integer",
    "in_strategy": "string",
    "user_strategy": "string",
    "out_strategy": "string",
    "micro": "integer",
    "stage": "integer",
    "unique_id": "string",
    "forward_unique_id": "string",
    "collective": "string",
    "group": "string",
    "ranks": "integers",
    "peer": "integer",
    "communicated_bytes": "integer",
    "origin": "string",
    "parameter": "string",
    "callees": "strings",
    "line": "integer",
    "source_file": "string",
    "source_line": "integer",
}
"""Columns in order, each with the kind of its values; any value may be missing (None).

``inputs`` are ``%4`` for nodes, ``%para2`` for parameters, ``@G`` for graphs and ``@G:out`` or
``@G:%para3`` for what belongs to another graph; constants are left out.  Strategies
are JSON text.  Columns keep their names and meaning from version to version; new ones are added
at the end.
"""


class ArrowMissingError(ImportError):
    """A table was asked for in Arrow's form, and pyarrow is not installed."""

    def __init__(self) -> None:
        needs = "to_arrow() needs pyarrow: pip install 'irtool[arrow]'"
        super().__init__(needs, name="pyarrow")

    def __reduce__(self) -> tuple[type[ArrowMissingError], tuple[()]]:
        return ArrowMissingError, ()


def rows(dump: DumpModel) -> Iterator[dict[str, Any]]:
    """One dictionary a node, in printed order.

    Args:
        dump: any.

    Yields:
        Dictionaries with the keys of :data:`COLUMNS`; sizes are in bytes.
    """
    stages = phases(dump)
    for graph in dump.graphs:
        for node in graph.nodes:
            yield _row(node, graph.name, stages[node])


def to_arrow(dump: DumpModel) -> Any:
    """The rows as a pyarrow table; its schema is the same for every dump.

    Args:
        dump: any.

    Raises:
        ArrowMissingError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise ArrowMissingError from None
    arrow: Any = pa
    kinds = {
        "string": arrow.string(),
        "integer": arrow.int64(),
        "strings": arrow.list_(arrow.string()),
        "integers": arrow.list_(arrow.int64()),
    }
    schema = arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows(dump):
        for name, value in row.items():
            columns[name].append(_clean(value))
    return arrow.table(columns, schema=schema)


def _row(node: Node, graph: str, stage: str) -> dict[str, Any]:
    output = node.output_type
    communication = collective(node)
    place = node.location
    return {
        "graph": graph,
        "id": node.id,
        "name": node.name,
        "op": node.op,
        "instance_name": node.instance_name,
        "scope": node.scope,
        "phase": stage,
        "inputs": [text for operand in node.operands for text in _references(operand)],
        "input_types": [item.short() if item else None for item in node.input_types],
        "output_type": output.short() if output else None,
        "dtype": output.dtype if output else None,
        "shape": list(output.dimensions) if output and output.dimensions is not None else None,
        "output_bytes": node.output_bytes,
        "in_strategy": _json(node.written_strategy()),
        "user_strategy": _json(node.written_strategy("user_strategy")),
        "out_strategy": _json(node.written_strategy("out_strategy")),
        "micro": node.micro,
        "stage": node.stage,
        "unique_id": node.unique_id,
        "forward_unique_id": node.forward_unique_id,
        "collective": communication.op if communication else None,
        "group": communication.group if communication else None,
        "ranks": list(communication.ranks)
        if communication and communication.ranks is not None
        else None,
        "peer": communication.peer if communication else None,
        "communicated_bytes": communication.bytes if communication else None,
        "origin": communication.origin if communication else None,
        "parameter": communication.parameter if communication else None,
        "callees": list(node.callees),
        "line": node.line,
        "source_file": place.path if place else None,
        "source_line": place.line if place else None,
    }


def _references(operand: Value) -> Iterator[str]:
    for reference in nested_references(operand):
        if isinstance(reference, NodeReference):
            yield f"%{reference.number}"
        elif isinstance(reference, ParameterReference):
            yield f"%para{'' if reference.number is None else reference.number}"
        else:
            yield _outside(reference)


def _outside(reference: Reference) -> str:
    """A graph, or a node or parameter of another graph: ``@G``, ``@G:out``, ``@G:%para3``."""
    if isinstance(reference, ForeignParameter):
        return f"@{reference.graph}:%para{'' if reference.number is None else reference.number}"
    if isinstance(reference, ForeignNode):
        return f"@{reference.graph}:{reference.name}"
    return f"@{reference.name}" if isinstance(reference, GraphReference) else ""


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, default=str)


def _clean(value: Any) -> Any:
    """A value that a column can hold; bytes that are not UTF-8 are shown by their code."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return None  # a number that no column can hold
    return value
