"""A dump as JSON, a node at a time: the fixed keys that docs/json-parse.md describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.values import Attributes
from irtool.report.json import json_list, json_text, json_value, problem_object, type_text
from irtool.syntax import query_fields as fields
from irtool.syntax.printer import print_value

SCHEMA = "irtool.parse/1"


def node_object(node: Node) -> dict[str, object]:
    """A node with everything it says."""
    return {
        "id": node.id,
        "name": node.name,
        "op": node.op,
        "inputs": [print_value(operand) for operand in node.operands],
        "callees": list(node.callees),
        "in_strategy": json_value(node.in_strategy),
        "user_strategy": json_value(node.user_strategy),
        "out_strategy": json_value(node.out_strategy),
        "in_layout": json_value(node.in_layout),
        "out_layout": json_value(node.out_layout),
        "input_types": [type_text(each) for each in node.input_types],
        "output_type": type_text(node.output_type),
        "output_bytes": node.output_bytes,
        "attributes": {
            "primitive": _attributes(node.primitive_attributes),
            "cnode": _attributes(node.node_attributes),
            "primal": _attributes(node.primal_attributes),
        },
        "instance_name": node.instance_name,
        "scope": node.scope,
        "phase": fields.phase(node),
        "group": fields.group(node),
        "ranks": json_value(fields.ranks(node)),
        "origin": fields.origin(node),
        "source": fields.source(node),
        "line": node.line,
    }


def _attributes(block: Attributes | None) -> dict[str, object]:
    return {} if block is None else {key: json_value(block[key]) for key in block}


def _parameter(parameter: GraphParameter) -> dict[str, object]:
    declared = parameter.declaration
    number = "" if parameter.number is None else parameter.number
    return {
        "id": f"%para{number}",
        "name": parameter.name,
        "type": type_text(parameter.type),
        "bytes": parameter.type.size if parameter.type else None,
        "weight": bool(declared and declared.is_weight),
        "line": declared.line if declared else None,
    }


def dump_pieces(
    dump: Dump,
    pass_name: str | None,
    rank: int | None,
    where: Callable[[Node], bool] | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """One entry of ``files``, in pieces to be written one after the other."""
    head = {
        "path": dump.path,
        "pass": pass_name,
        "dialect": dump.dialect,
        "rank": rank,
        "entry": dump.entry.name if dump.entry else None,
        "problems": [problem_object(problem) for problem in dump.problems],
    }
    yield f'{json_text(head)[:-1]}, "graphs": '
    nodes = dump.nodes(where=where)
    chosen = None
    if where is not None or limit is not None:
        chosen = {id(node) for node in islice(nodes, limit)}
    yield from json_list((_graph_pieces(graph, chosen) for graph in dump.graphs), "  ")
    yield "}"


def _graph_pieces(graph: Graph, chosen: set[int] | None) -> Iterator[str]:
    head = {
        "name": graph.name,
        "line": graph.line,
        "parent": graph.parent,
        "parameters": [_parameter(parameter) for parameter in graph.parameters],
    }
    yield f'{json_text(head)[:-1]}, "nodes": '
    nodes = (node for node in graph.nodes if chosen is None or id(node) in chosen)
    yield from json_list(([json_text(node_object(node))] for node in nodes), "   ")
    yield "}"


def unread_text(problem: Finding) -> str:
    """The entry of a file that could not be read at all."""
    facts = dict.fromkeys(("pass", "dialect", "rank", "entry"))
    problems = [problem_object(problem)]
    return json_text({"path": problem.file, **facts, "problems": problems, "graphs": []})
