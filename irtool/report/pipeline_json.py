"""A pipeline as JSON; docs/json-pipeline.md describes it."""

from __future__ import annotations

from irtool.cluster.pipeline import Pipeline, Stage
from irtool.cluster.pipeline_transfers import Transfers
from irtool.report.json import json_value
from irtool.report.pipeline import PipelineView

SCHEMA = "irtool.pipeline/1"


def pipeline_object(view: PipelineView) -> dict[str, object]:
    """All of a view."""
    pipeline = view.pipeline
    found: dict[str, object] = {
        "schema": SCHEMA,
        "path": view.path,
        "machine": view.machine.name,
        "stage_count": pipeline.stage_count,
        "missing_stages": pipeline.missing,
        "micro_batches": pipeline.micro_batches,
        "stages": [_stage_object(stage) for stage in pipeline.stages],
        "bubble": _bubble_object(pipeline),
        "imbalance": pipeline.imbalance,
        **_transfers_object(pipeline.transfers),
        "best_cut": _cut_object(pipeline),
        "timeline": _timeline_object(pipeline),
        "advice": [
            {"switch": one.switch, "value": one.value, "gain": one.gain, "price": one.price}
            for one in pipeline.advice
        ],
        "limits": pipeline.limits,
    }
    value = json_value(found)
    return value if isinstance(value, dict) else {}  # type: ignore[return-value]  # of one


def _stage_object(stage: Stage) -> dict[str, object]:
    schedule = stage.schedule
    return {
        "stage": stage.index,
        "rank": stage.rank,
        "ranks": stage.ranks,
        "path": stage.path,
        "operators": dict(stage.operators),
        "flops": {
            "forward": stage.work.forward,
            "backward": stage.work.backward,
            "recompute": stage.work.recompute,
            "unknown": dict(stage.work.unknown),
        },
        "seconds": {
            "forward": stage.work.seconds.forward,
            "backward": stage.work.seconds.backward,
            "send": stage.work.seconds.send,
        },
        "parameter_bytes": stage.parameters,
        "static_bytes": stage.static,
        "activation_bytes": stage.activations,
        "schedule": None
        if schedule is None
        else {
            "name": stage.schedule_name,
            "tasks": [str(task) for task in schedule.tasks],
            "warm_up": schedule.warm_up,
            "in_flight": schedule.in_flight,
        },
        "layers": [
            {"name": layer.name, "seconds": layer.cost, "static_bytes": layer.static}
            for layer in stage.layers
        ],
    }


def _bubble_object(pipeline: Pipeline) -> dict[str, object]:
    return {
        one.schedule: {
            "ideal": one.ideal,
            "ratio": one.ratio,
            "share": one.share,
            "seconds": one.seconds,
        }
        for one in pipeline.bubbles
    }


def _transfers_object(transfers: Transfers) -> dict[str, object]:
    return {
        "transfers": [
            {
                "from_stage": one.from_stage,
                "to_stage": one.to_stage,
                "direction": one.direction,
                "count": one.count,
                "bytes": one.bytes,
                "shape": one.shape,
                "dtype": one.dtype,
                "ranks": one.ranks,
            }
            for one in transfers.items
        ],
        "matched": transfers.matched,
        "unmatched": [
            {
                "rank": one.rank,
                "stage": one.stage,
                "node": one.item.node.id,
                "op": one.item.op,
                "peer": one.peer,
                "tag": one.item.tag,
                "line": one.item.node.line,
                "why": one.why,
                "certain": one.is_certain,
            }
            for one in transfers.unmatched
        ],
    }


def _cut_object(pipeline: Pipeline) -> dict[str, object] | None:
    cut = pipeline.cut
    if cut is None:
        return None
    return {
        "stages": [
            {"layers": names, "seconds": cost}
            for names, cost in zip(cut.stages, cut.costs, strict=True)
        ],
        "imbalance": cut.imbalance,
    }


def _timeline_object(pipeline: Pipeline) -> list[object] | None:
    if pipeline.played is None:
        return None
    return [
        [{"task": str(one.task), "start": one.start, "end": one.end} for one in stage]
        for stage in pipeline.played.stages
    ]
