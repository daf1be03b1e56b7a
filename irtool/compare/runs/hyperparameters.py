"""Hyperparameters of two runs side by side, as graphs, dumps, logs and contexts really have them.

What a run was told differently is looked at before any tensor is accused: a learning rate that
differs makes every later tensor differ, and no operator is at fault.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field

from irtool.compare.losses.series import LossRun
from irtool.compare.runs.torch_optimizer import told_by_calls
from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.limits import bounded_int
from irtool.ir.types import Shape
from irtool.ir.values import TensorLiteral, python_value
from irtool.operators.table import operator_of

Values = dict[str, dict[str, str]]
"""Name → value as text → where it was seen."""

_SCALARS = {
    "learning_rate": "learning rate", "beta1": "beta1", "beta2": "beta2",
    "epsilon": "optimizer epsilon", "weight_decay": "weight decay", "momentum": "momentum",
}  # fmt: skip
"""What an optimizer's scalars are called, by the name that the table of operators has for them."""

_ATTRIBUTES = {
    "keep_prob": "dropout keep probability", "drop_prob": "dropout", "p": "dropout",
    "weight_decay": "weight decay", "momentum": "momentum", "loss_scale": "loss scale",
}  # fmt: skip
_LOGGED = {
    "learning_rate": "learning rate",
    "loss_scale": "loss scale",
    "global_batch_size": "global batch",
}
"""What logs tell; it may change from step to step, so only the first value counts, and what graphs
and tensors say comes first."""
_CONTEXT = {
    "gradients_mean": "gradients", "device_num": "devices", "pipeline_stages": "pipeline stages",
    "global_batch_size": "global batch", "loss_scale": "loss scale",
    "enable_parallel_optimizer": "optimizer parallel", "micro_batch": "micro batches",
    "gradient_fp32_sync": "gradients summed in Float32",
}  # fmt: skip
_ORDER = (
    "learning rate", "step size", "weight decay", "decay factor", "beta1", "beta2",
    "optimizer epsilon", "momentum", "dropout", "loss scale", "global batch", "batch", "devices",
    "gradients", "label smoothing", "norm epsilon", "initial weights",
)  # fmt: skip
_SAME = 2e-5
_FIRST = "first of"


@dataclass(frozen=True, slots=True)
class Row:
    """One hyperparameter.

    ``same`` is None where only one side says something, or what is known is no proof.
    """

    name: str
    left: str
    right: str
    same: bool | None
    where: str = ""


@dataclass(slots=True)
class Evidence:
    """What one side has that tells hyperparameters; any part may be missing.

    Attributes:
        dump: its graphs.
        tensors: one step.
        losses: its log.
        context: of its configuration.
        joined: places of tensors that were put together of those of several ranks; None where
            no rank has a part.
    """

    dump: Dump | None = None
    tensors: TensorRun | None = None
    losses: LossRun | None = None
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    joined: Container[int] | None = None


def hyperparameters(left: Evidence, right: Evidence, more: Sequence[Row] = ()) -> list[Row]:
    """All that either side tells, the usual order first.

    Args:
        left: one side.
        right: the other.
        more: rows that only the comparison of tensors can tell.
    """
    sides = [_values(side) for side in (left, right)]
    rows: list[Row] = []
    for name in dict.fromkeys((*sides[0], *sides[1])):
        ours, theirs = sides[0].get(name, {}), sides[1].get(name, {})
        same = _same(list(ours), list(theirs)) if ours and theirs else None
        if same is False and _is_logged(ours) != _is_logged(theirs):
            same = None  # a schedule may lie between what was told and the first line of a log
        where = next(iter((*ours.values(), *theirs.values())), "")
        rows.append(Row(name, _text(ours), _text(theirs), same, where))
    return sorted((*rows, *more), key=_rank)


def _is_logged(values: Mapping[str, str]) -> bool:
    return any(where.startswith(_FIRST) for where in values.values())


def _rank(row: Row) -> tuple[int, str]:
    place = next((n for n, name in enumerate(_ORDER) if row.name.startswith(name)), len(_ORDER))
    return place, row.name


def _text(values: Mapping[str, str]) -> str:
    shown = list(values)[:4]
    return ", ".join(shown) + (" …" if len(values) > 4 else "") if values else "(not known)"


def _same(left: Sequence[str], right: Sequence[str]) -> bool:
    if set(left) == set(right):
        return True
    try:
        ours, theirs = sorted(map(float, left)), sorted(map(float, right))
    except ValueError:
        return False
    return len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=_SAME, abs_tol=1e-12) for a, b in zip(ours, theirs, strict=True)
    )


def _values(evidence: Evidence) -> Values:
    values: Values = {}

    def say(name: str, value: object, where: str) -> None:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        values.setdefault(name, {}).setdefault(text, where)

    if evidence.tensors is not None:
        for name, value, where in _of_tensors(evidence.tensors, evidence.joined):
            say(name, value, where)
    if evidence.dump is not None:
        seen_in_tensors = frozenset(values)
        for name, value, where in _of_graph(evidence.dump):
            if name not in seen_in_tensors or where.startswith("@"):
                say(name, value, where.lstrip("@"))
    if evidence.losses is not None:
        for key, series in evidence.losses.others.items():
            if key in _LOGGED and series.values:
                name, first = _LOGGED[key], series.values[series.steps[0]]
                if name not in values:
                    say(name, first, f"{_FIRST} {evidence.losses.path}")
    if "global batch" not in values:
        for value, where in _global_batch(evidence, values.get("batch of a rank", {})):
            say("global batch", value, where)
    for key, name in _CONTEXT.items():
        if key in evidence.context:
            value = evidence.context[key]
            if key == "gradients_mean":
                value = "mean" if value else "sum"
            say(name, value, "context")
    return values


def _global_batch(evidence: Evidence, batch: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Batch of a rank times the slices of the dataset times accumulated steps, where all is known.

    With ``full_batch`` every rank is given the whole batch: before MindSpore has sliced the graph,
    its input is the global batch; afterwards the number of slices does not show.
    """
    context = evidence.context
    devices, stages = _whole(context, "device_num"), _whole(context, "pipeline_stages") or 1
    if len(batch) != 1 or devices is None:
        return
    size = int(next(iter(batch)))
    strategy = context.get("dataset_strategy")
    mode = str(context.get("parallel_mode", ""))
    if mode in ("data_parallel", "hybrid_parallel") or strategy == "data_parallel":
        slices = devices // stages
    elif mode in ("stand_alone", "") and devices == 1:
        slices = 1
    elif isinstance(strategy, list | tuple) and strategy:
        first: object = strategy[0]  # pyright: ignore[reportUnknownVariableType]  # as written
        slices = first[0] if isinstance(first, list | tuple) and first else None  # pyright: ignore[reportUnknownVariableType]  # as written
    else:
        return
    if not isinstance(slices, int):
        return
    steps = _whole(context, "grad_accumulation_step") or 1
    text = f"{size} a rank, {slices} slices" + (f", {steps} steps" if steps > 1 else "")
    yield size * slices * steps, text


def _whole(context: Mapping[str, object], key: str) -> int | None:
    text = str(context.get(key, ""))
    return bounded_int(text) if text.isdecimal() else None


# -- tensor dumps --------------------------------------------------------------------------------


def _scalar_places(op: str) -> dict[int, str]:
    """Places of an optimizer's scalars among its inputs, with what they are called."""
    entry = operator_of(op)
    if entry.computes != "optimizer":
        return {}
    return {
        attribute.position: _SCALARS[attribute.name]
        for attribute in entry.attributes
        if attribute.position is not None and attribute.name in _SCALARS
    }


def _of_tensors(run: TensorRun, joined: Container[int] | None) -> Iterator[tuple[str, object, str]]:
    yield from told_by_calls(run)
    for op in run.ops:
        places = _scalar_places(op.type)
        if places:
            for place, name in places.items():
                value = _scalar(run, op, place)
                if value is not None:
                    yield name, value, op.name
        elif "dropout" in op.type.lower():
            value = op.attributes.get("input.p", op.attributes.get("input.1"))
            if isinstance(value, float):
                yield "dropout", value, op.name
        elif op.type == "cross_entropy" and "input.label_smoothing" in op.attributes:
            yield "label smoothing", op.attributes["input.label_smoothing"], op.name
    batch = _batch(run, joined)
    if batch is not None:
        yield "batch of a rank", batch, "first input"


def _scalar(run: TensorRun, op: Op, place: int) -> float | None:
    label = f"input.{place}"
    value = op.attributes.get(label)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    columns = run.columns
    for tensor in op.inputs:
        if columns.labels[tensor] == label and math.prod(columns.shapes[tensor]) == 1:
            if columns.files[tensor]:
                from irtool.compare.tensors.formats.payload import BadPayload, read_array

                try:
                    return float(read_array(columns.files[tensor]).item(0))
                except BadPayload:
                    return None
            return None if math.isnan(columns.most[tensor]) else columns.most[tensor]
    return None


def _batch(run: TensorRun, joined: Container[int] | None) -> int | None:
    """The first dimension of the first whole-number input: token ids, labels, no masks."""
    for op in run.ops[:50]:
        for place in op.inputs if joined is None else filter(joined.__contains__, op.inputs):
            shape = run.columns.shapes[place]
            dtype = run.columns.dtypes[place]
            if len(shape) >= 2 and not is_float(dtype) and dtype != "Bool":
                return shape[0]
    return None


# -- graphs --------------------------------------------------------------------------------------


def _of_graph(dump: Dump) -> Iterator[tuple[str, object, str]]:
    for graph in dump.graphs:
        for node in graph.nodes:
            places = _scalar_places(node.op)
            if places:
                for place, name in places.items():
                    value = _constant(node, place)
                    if value is not None:
                        yield name, value, f"{node.id} {node.op}"
            elif "Dropout" in node.op and "Grad" not in node.op and "GenMask" not in node.op:
                for key in ("keep_prob", "drop_prob", "p"):
                    value = node.attribute(key)
                    if isinstance(value, float | int):
                        yield _ATTRIBUTES[key], float(value), f"{node.id} {node.op}"
            elif node.op.startswith("_Mirror"):
                mean = node.attribute("mean_flag")
                if mean is not None:
                    yield "gradients", "mean" if mean else "sum", f"@{node.id} {node.op}"
            elif _normalises(node.op):
                value = node.attribute("epsilon")
                if isinstance(value, float | int):
                    yield "norm epsilon", float(value), f"{node.id} {node.op}"
    for item in dump.parameters:
        if item.type is None or item.type.ref_key or not isinstance(item.type.shape, Shape):
            continue
        dimensions = item.type.shape.dimensions
        if len(dimensions) >= 2:
            if dimensions[0] < 0:
                break  # dynamic
            yield "batch of a rank", dimensions[0], item.name
            break


def _normalises(op: str) -> bool:
    entry = operator_of(op)
    return entry.computes == "norm" and not entry.gradient_of


def _constant(node: Node, place: int) -> float | None:
    inputs = node.inputs
    if place >= len(inputs):
        return None
    source = inputs[place]
    if isinstance(source, TensorLiteral):
        values = source.values
        return float(values[0]) if values and len(values) == 1 else None
    if isinstance(source, Node | GraphParameter):
        return None
    value = python_value(source)  # type: ignore[arg-type]  # whatever is no node is a value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
