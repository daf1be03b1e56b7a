"""Memory as JSON; docs/json-memory.md describes it."""

from __future__ import annotations

from irtool.cluster.memory import AliveTensor, Interval, Memory
from irtool.cluster.memory_plan import MemoryPlan
from irtool.cluster.what_if import Combination, Option, Saving
from irtool.report.json import json_value
from irtool.report.memory import MemoryView, RankMemory

SCHEMA = "irtool.memory/1"


def memory_object(view: MemoryView) -> dict[str, object]:
    """All of a view; the keys at the top are those of the worst rank."""
    worst = view.worst
    found: dict[str, object] = {
        "schema": SCHEMA,
        "path": worst.memory.path,
        "rank": worst.rank,
        "stage": worst.stage,
        "limit": view.limit,
        "fits": None if view.limit is None else worst.memory.fits(view.limit),
        **_memory_object(worst.memory),
    }
    if worst.plan is not None:
        found |= _plan_object(worst.plan)
    found["ranks"] = [_rank_object(one, view.limit) for one in view.ranks]
    value = json_value(found)
    return value if isinstance(value, dict) else {}  # type: ignore[return-value]  # of one


def _memory_object(memory: Memory) -> dict[str, object]:
    static = memory.static_bytes
    return {
        "static": {
            "bytes": static,
            "by_cause": dict(memory.static_by_cause),
            "host_bytes": memory.host_bytes,
            "tensors": [
                {
                    "name": item.name,
                    "cause": item.cause,
                    "parameter": item.parameter,
                    "layer": item.layer,
                    "bytes": item.bytes,
                    "dtype": item.dtype,
                    "shape": item.shape,
                    "on_host": item.on_host,
                    "line": item.line,
                }
                for item in memory.static
            ],
        },
        "peak": _peak_object(memory),
        "curve": [
            {"launch": place, "node": item.node.id, "op": item.op, "bytes": static + size}
            for place, (item, size) in enumerate(zip(memory.launched, memory.curve, strict=True))
        ],
        "alive_at_peak": [_alive_object(item) for item in memory.alive],
        "communicators": {
            "groups": memory.communicators.groups,
            **_interval(memory.communicators.bytes),
        },
        "workspace": _interval(memory.workspace),
        "fusion": _interval(memory.fusion),
        "device": _interval(memory.device_bytes),
        "complete": memory.is_complete,
        "unknown": memory.unknown,
        "notes": memory.notes,
        "rounding": memory.rounding,
    }


def _peak_object(memory: Memory) -> dict[str, object]:
    found: dict[str, object] = {
        "bytes": memory.peak_bytes,
        "static": memory.static_bytes,
        "dynamic": memory.dynamic_bytes,
        "by_cause": memory.alive_by_cause(),
        "launch": memory.peak_launch,
    }
    if memory.peak_launch is not None:
        node = memory.launched[memory.peak_launch].node
        found |= {"node": node.id, "op": node.op, "line": node.line}
    return found


def _interval(interval: Interval) -> dict[str, object]:
    return {"low": interval.low, "high": interval.high}


def _alive_object(item: AliveTensor) -> dict[str, object]:
    return {
        "node": item.node.id,
        "output": item.index,
        "op": item.node.op,
        "bytes": item.bytes,
        "cause": item.cause,
        "phase": item.phase,
        "layer": item.layer,
        "born": item.born,
        "dies": item.dies,
        "last_user": None if item.last_user is None else item.last_user.id,
        "scope": item.node.scope,
        "line": item.node.line,
    }


def _plan_object(plan: MemoryPlan) -> dict[str, object]:
    return {
        "options": [_saving_object(saving) for saving in plan.savings],
        "combinations": [_combination_object(one) for one in plan.combinations],
        "unshardable": [
            {"weight": weight.name, "bytes": weight.tensor.bytes, "why": why}
            for weight, why in plan.unshardable
        ],
        "servers": [
            {
                "weight": one.name,
                "bytes": one.bytes,
                "rows_only": one.is_table,
                "pushed": one.pushed,
                "pulled": one.pulled,
                "all_reduce": one.all_reduce,
            }
            for one in plan.served
        ],
        "micro_batches": plan.micro_batches,
    }


def _option_object(option: Option) -> dict[str, object]:
    return {
        "switch": option.switch,
        "target": option.target,
        "how": option.how,
        "flops": option.flops,
        "flops_unknown": option.flops_unknown,
        "traffic_bytes": option.traffic_bytes,
        "traffic": [
            {"link": item.link, "op": item.op, "bytes": item.bytes, "ranks": item.ranks}
            for item in option.traffic
        ],
        "note": option.note,
    }


def _saving_object(saving: Saving) -> dict[str, object]:
    return {
        **_option_object(saving.option),
        "saved": saving.saved,
        "seconds": saving.seconds,
        "saved_per_flop": saving.per_flop,
        "saved_per_byte": saving.per_byte,
    }


def _combination_object(one: Combination) -> dict[str, object]:
    return {
        "peak": one.peak,
        "seconds": one.seconds,
        "options": [
            {"switch": option.switch, "target": option.target, "how": option.how}
            for option in one.options
        ],
    }


def _rank_object(one: RankMemory, limit: int | None) -> dict[str, object]:
    memory = one.memory
    return {
        "rank": one.rank,
        "ranks": one.ranks,
        "stage": one.stage,
        "path": memory.path,
        "static": memory.static_bytes,
        "dynamic": memory.dynamic_bytes,
        "peak": memory.peak_bytes,
        "device": _interval(memory.device_bytes),
        "complete": memory.is_complete,
        "fits": None if limit is None else memory.fits(limit),
    }
