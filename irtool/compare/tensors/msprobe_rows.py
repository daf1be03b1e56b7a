"""A comparison as rows of msprobe's result table: one of each tensor, under its column names.

What the columns mean was read off results of ``msprobe compare`` 26.2 on the same dumps.  Only the
result is irtool's own: ``error`` where the operator introduces error, ``warning`` where its
arguments or its precision differ, ``pass`` for everything else.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import complete, has_figures
from irtool.compare.tensors.model import Columns, Op, Places, TensorRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAMES = ("Name", "Dtype", "Tensor Shape", "Requires_grad")
_VALUES = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
           "Five Thousandths Err Ratio")  # fmt: skip
_FIGURES = ("Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
            "MeanRelativeErr", "NormRelativeErr")  # fmt: skip
_STATED = ("max", "min", "mean", "l2norm")
_RESULT = ("Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info")
_SIDES = ("NPU", "Bench")
_ABSENT = "N/A"
_WARNINGS = ("attribute differs", "lower precision, explained")

Row = list[str]


def header(has_values: bool) -> Row:
    """The columns, in msprobe's order.

    Args:
        has_values: tensors were compared, not figures.
    """
    names = [f"{side} {name}" for name in _NAMES for side in _SIDES]
    stated = [f"{side} {name}" for side in _SIDES for name in _STATED]
    kept = ["Data_name"] if has_values else []
    return [*names, *(_VALUES if has_values else _FIGURES), *stated, *_RESULT, *kept]


def rows(comparison: TensorComparison, has_values: bool) -> Iterator[Row]:
    """The rows, operators in the order of the left run; then what only one run has.

    Args:
        comparison: of one step of one rank.
        has_values: tensors were compared, not figures.
    """
    for item in comparison.judged:
        for places in (*item.slots.inputs, *item.slots.outputs):
            yield _row(comparison, item, places, has_values)
    for which, ops in enumerate((comparison.only_left, comparison.only_right)):
        for op in ops:
            for place in op.tensors:
                yield _lone(comparison, which, op, place, has_values)


def _row(comparison: TensorComparison, item: Judged, places: Places, has_values: bool) -> Row:
    runs = (comparison.left, comparison.right)
    ops = (item.pair.left, item.pair.right)
    sides = [_described(runs[n], ops[n], places[n]) for n in (0, 1)]
    stated = [_stated(runs[n].columns, places[n]) for n in (0, 1)]
    if has_values:
        metrics = _of_values(runs, places)
    else:
        metrics = _of_figures(stated[0], stated[1])
    result, message = _result(item, places)
    outcome = [
        _ABSENT, result, json.dumps(message, ensure_ascii=False),
        json.dumps([ops[0].source]) if ops[0].source else _ABSENT,
    ]  # fmt: skip
    files = [os.path.basename(runs[n].columns.files[places[n]]) or "-1" for n in (0, 1)]
    kept = [str(files)] if has_values else []
    names = [text for pair in zip(*sides, strict=True) for text in pair]
    return [*names, *metrics, *map(_number, (*stated[0], *stated[1])), *outcome, *kept]


def _lone(comparison: TensorComparison, which: int, op: Op, place: int, has_values: bool) -> Row:
    run = (comparison.left, comparison.right)[which]
    sides = [[_ABSENT] * 4, [_ABSENT] * 4]
    sides[which] = _described(run, op, place)
    stated: list[list[str]] = [[_ABSENT] * 4, [_ABSENT] * 4]
    stated[which] = [_number(value) for value in _stated(run.columns, place)]
    names = [text for pair in zip(*sides, strict=True) for text in pair]
    metrics = [_ABSENT] * len(_VALUES if has_values else _FIGURES)
    message = json.dumps(["no operator of the other run is its partner"])
    kept = [_ABSENT] if has_values else []
    return [*names, *metrics, *stated[0], *stated[1], _ABSENT, "pass", message, _ABSENT, *kept]


def _described(run: TensorRun, op: Op, place: int) -> list[str]:
    columns = run.columns
    label = columns.labels[place]
    if op.is_module and place in op.parameters:
        label = f"parameters.{label}"
    if ".parameters_grad" in op.name:
        label = label.partition(".grad")[0]
    dtype = columns.dtypes[place]
    if run.framework == "pytorch":
        dtype = f"torch.{dtype.lower()}"
    return [f"{op.name}.{label}", dtype, str(list(columns.shapes[place])), _ABSENT]


def _stated(columns: Columns, place: int) -> tuple[float, float, float, float]:
    if not has_figures(columns, place) and columns.files[place]:
        complete(columns, place, False)
    return columns.most[place], columns.least[place], columns.mean[place], columns.norm[place]


def _result(item: Judged, places: Places) -> tuple[str, list[str]]:
    """What irtool says of the operator, at the tensor that it says it of."""
    if item.verdict == "introduces error" and item.output in (None, places):
        return "error", [f"error: {item.entered or item.why or 'introduces error of its own'}"]
    if item.verdict in _WARNINGS and (item.output in (None, places)):
        text = "; ".join(map(str, item.attributes[:4])) or item.verdict
        return "warning", [f"warning: {text}"]
    if item.lowered and places == item.slots.inputs[0]:
        return "warning", [f"warning: {item.lowered}"]
    return "pass", []


def _of_values(runs: tuple[TensorRun, TensorRun], places: Places) -> Row:
    columns = [run.columns for run in runs]
    if not all(columns[n].files[places[n]] for n in (0, 1)):
        return ["unsupported"] * len(_VALUES)
    try:
        left, right = (read_array(columns[n].files[places[n]], columns[n].dtypes[places[n]])
                       for n in (0, 1))  # fmt: skip
    except BadPayload:
        return ["unsupported"] * len(_VALUES)
    if left.size != right.size or left.size == 0:
        return ["unsupported"] * len(_VALUES)
    return value_metrics(left, right)


def value_metrics(left: NDArray[Any], right: NDArray[Any]) -> Row:
    """Cosine, distance, largest absolute and relative error, shares below 1 and 5 thousandths.

    Args:
        left: what msprobe calls the NPU's tensor.
        right: the bench's.
    """
    import numpy as np

    a = left.astype(np.float64).ravel()
    b = right.astype(np.float64).ravel()
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        alike = ~np.isfinite(a) & ((a == b) | (np.isnan(a) & np.isnan(b)))
        a, b = np.where(alike, 0.0, a), np.where(alike, 0.0, b)
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return [_ABSENT] * len(_VALUES)
    apart = np.abs(a - b)
    kind = np.float32 if left.dtype.kind == "f" else np.float64
    base = np.where(b == 0, np.finfo(kind).eps, b)
    relative = np.abs(np.where(b == 0, a, a - b) / base)
    relative = np.where((a == 0) & (b == 0), 0.0, relative)
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if 0 in norms:
        cosine = 1.0 if norms == (0.0, 0.0) else 0.0
    else:
        cosine = min(1.0, float(a @ b) / norms[0] / norms[1])
    shares = [float((relative < limit).mean()) for limit in (1e-3, 5e-3)]
    values = (cosine, float(np.linalg.norm(a - b)), float(apart.max()), float(relative.max()))
    made = [_number(round(value, 12)) for value in (*values, *shares)]
    if left.ndim == 0:  # of a scalar only the two largest errors are stated
        return [made[n] if n in (2, 3) else "unsupported" for n in range(len(made))]
    return made


def _of_figures(left: Sequence[float], right: Sequence[float]) -> Row:
    differences: Row = []
    relative: Row = []
    for a, b in zip(left, right, strict=True):
        if math.isnan(a) or math.isnan(b):
            is_alike = math.isnan(a) and math.isnan(b)  # of whole numbers no mean is stated
            differences.append("0" if is_alike else _ABSENT)
            relative.append("0" if is_alike else _ABSENT)
            continue
        differences.append(_number(a - b) if math.isfinite(a - b) else "0")
        if a == b:
            relative.append("0")
        else:
            relative.append(f"{abs((a - b) / b) * 100}%" if b else "inf")
    return [*differences, *relative]


def is_of_values(comparison: TensorComparison) -> bool:
    """Whether both runs have tensors, so that msprobe would compare these.

    Args:
        comparison: of two tensor dumps.
    """
    return comparison.left.level == comparison.right.level == "tensors"


def _number(value: float) -> str:
    return "None" if math.isnan(value) else repr(float(value))
