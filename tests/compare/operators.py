"""Operators of tensor dumps with nothing but the figures that a test is about."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.compare.tensors.model import NAN, Columns, Op, Phase, Shape, TensorRun


def tensor(
    columns: Columns,
    label: str,
    shape: Shape = (4, 4),
    dtype: str = "Float32",
    norm: float = NAN,
    mean: float = NAN,
    extremes: tuple[float, float] = (NAN, NAN),
) -> int:
    """Put a tensor into columns; its place."""
    return columns.add(label, dtype, shape, (*extremes, mean, norm))


def operator(
    columns: Columns,
    type_: str,
    inputs: Sequence[tuple[Shape, float]],
    output: tuple[Shape, float],
    dtype: str = "Float32",
    phase: Phase = "forward",
    call: str = "",
    is_module: bool = False,
) -> Op:
    """An operator whose tensors have these shapes and norms."""
    places = [
        tensor(columns, f"input.{number}", shape, dtype, norm)
        for number, (shape, norm) in enumerate(inputs)
    ]
    made = tensor(columns, "output.0", output[0], dtype, output[1])
    return Op(0, type_, type_, phase, places, [made], call=call, is_module=is_module)


def run(columns: Columns, ops: Sequence[Op]) -> TensorRun:
    """A dump of these operators."""
    return TensorRun("run", "msprobe", "statistics", "pytorch", columns, list(ops))


def norm_of(values: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in values))
