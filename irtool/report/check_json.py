"""``irtool check --format json``: the keys that docs/json-check.md describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.report.check import CheckView
from irtool.report.check_counts import collective_rows, is_group, parameter_bytes, step_bytes
from irtool.report.json import json_list, json_text
from irtool.sharding.network.communications import StepCommunication
from irtool.sharding.network.report import (
    CheckFinding,
    DatasetReport,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)

SCHEMA = "irtool.check/1"


def check_pieces(view: CheckView, more: Mapping[str, object] | None = None) -> Iterator[str]:
    """One object, in pieces to be written one after the other; ``more`` are keys at its end."""
    report, context = view.report, view.report.context
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "accepted": report.accepted,
        "devices": report.devices,
        "stages": context.stages,
        "rank": context.rank,
        "mode": context.mode,
        "target": context.target,
        "soc": context.soc,
    }
    yield f"{json_text(head)[:-1]}"
    most = view.limit or None
    lists = (
        ("findings", [finding_object(view, item) for item in report.findings]),
        ("operators", [operator_object(item) for item in view.operators[:most]]),
        ("redistributions", [edge_object(item) for item in view.redistributions[:most]]),
        ("parameters", [parameter_object(item) for item in report.parameters]),
        ("dataset", [dataset_object(item) for item in report.dataset]),
        ("collectives", _totals(view)),
        ("communications", [communication_object(item) for item in report.communications]),
    )
    for name, items in lists:
        yield f',\n "{name}": '
        yield from json_list(([json_text(item)] for item in items), " ")
    for name, value in (more or {}).items():
        yield f',\n "{name}": {json_text(value)}'
    yield "}\n"


def communication_object(item: StepCommunication) -> dict[str, object]:
    """Equal communications of a step."""
    return {
        "op": item.op,
        "ranks": item.ranks,
        "bytes": item.bytes,
        "phase": item.phase,
        "count": item.count,
        "why": item.why,
    }


def finding_object(view: CheckView, item: CheckFinding) -> dict[str, object]:
    """One reason with its place."""
    node = item.node
    location = node.location if node is not None else None
    return {
        "code": item.code,
        "severity": item.severity,
        "message": item.message,
        "file": item.file,
        "line": item.line or None,
        "node": node.id if node is not None else None,
        "op": item.op,
        "graph": node.graph.name if node is not None and node.graph is not None else None,
        "scope": node.scope if node is not None else None,
        "source": f"{location.path}:{location.line}" if location is not None else None,
        "check": item.check,
        "instead": view.instead.strategies.get(item, ()),
        "instead_layouts": [
            [
                {
                    "device_matrix": layout.device_matrix,
                    "tensor_map": layout.tensor_map,
                    "alias_name": layout.alias_name,
                }
                for layout in layouts
            ]
            for layouts in view.instead.layouts.get(item, ())
        ],
    }


def operator_object(item: OperatorReport) -> dict[str, object]:
    """One operator; what follows from its strategy is null where that is not legal."""
    judgement = item.judgement
    legal = item.verdict == "legal"
    return {
        "node": item.node.id,
        "graph": item.graph,
        "line": item.node.line,
        "op": item.op,
        "strategy": item.strategy,
        "out_strategy": item.out_strategy,
        "verdict": item.verdict,
        "why": "; ".join(finding.message for finding in judgement.findings),
        "generated": judgement.generated,
        "device_matrix": item.device_matrix if legal else None,
        "input_maps": item.input_maps if legal else None,
        "output_maps": item.output_maps if legal else None,
        "input_slices": item.input_slices if legal else None,
        "output_slices": item.output_slices if legal else None,
        "repeated": judgement.repeats,
        "loss_divisor": item.loss_divisor,
        "collectives": [
            {
                "op": each.op,
                "ranks": each.ranks,
                "group": each.group,
                "bytes": each.bytes,
                "why": each.why,
                "reduce": each.reduce or None,
                "count": each.count,
            }
            for each in item.collectives
        ],
    }


def edge_object(item: RedistributionReport) -> dict[str, object]:
    """One edge on which something is inserted; ``operators`` is null where it is not known."""
    steps = item.operators
    producer, consumer = item.producer, item.consumer
    return {
        "from": producer.id,
        "to": consumer.id,
        "input": item.input,
        "item": item.item,
        "from_op": producer.op,
        "to_op": consumer.op,
        "from_graph": producer.graph.name if producer.graph is not None else None,
        "to_graph": consumer.graph.name if consumer.graph is not None else None,
        "from_split": item.source.splits if item.source is not None else None,
        "to_split": item.target.splits if item.target is not None else None,
        "replaces": item.replaces,
        "why": item.why,
        "operators": None
        if steps is None
        else [
            {
                "op": step.op,
                "ranks": step.ranks,
                "axis": step.axis,
                "concat_axis": step.concat_axis,
                "input_shape": step.input_shape,
                "output_shape": step.output_shape,
                "bytes": step_bytes(item, step) if step.is_collective else 0,
            }
            for step in steps
        ],
    }


def parameter_object(item: ParameterReport) -> dict[str, object]:
    """One parameter; a list of ranks is empty where nobody communicates, null where not known."""
    known = item.slice is not None

    def ranks(found: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return found if is_group(found) else () if known else None

    return {
        "name": item.name,
        "shape": item.shape,
        "slice": item.slice,
        "base_slice": item.base,
        "bytes": parameter_bytes(item)[1],
        "mirror_ranks": ranks(item.mirror_ranks),
        "gather_ranks": ranks(item.gather_ranks),
        "scatter_ranks": ranks(item.scatter_ranks),
        "user": item.user.id if item.user is not None else None,
        "why": item.why,
    }


def dataset_object(item: DatasetReport) -> dict[str, object]:
    """What the rank reads of one dataset input."""
    return {
        "input": item.input,
        "shape": item.shape,
        "slice": item.slice,
        "offset": item.offset,
    }


def _totals(view: CheckView) -> list[dict[str, object]]:
    if view.report.accepted is False:
        return []
    return [
        {
            "op": row.op,
            "ranks": row.ranks,
            "group": row.group,
            "count": row.count,
            "bytes": None if row.unknown else row.bytes,
            "why": row.why,
        }
        for row in collective_rows(view.report)
    ]
