"""Tensors of two frameworks that are the same by their values, whatever they are called."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.model import Columns, TensorRun

TOLERANCE = 1e-4
"""Relative difference of norm and extremes up to which Float32 tensors may be the same; shorter
types get as many roundings more."""


def partners(left: TensorRun, right: TensorRun) -> Mapping[str, tuple[int, int]]:
    """How many distinct tensors of each phase have a partner by element count and figures.

    Tensors with the same figures are one tensor that several operators read; parameters are left
    out, since equal initial weights say nothing about the operators.

    Args:
        left: the dump whose tensors are counted.
        right: where partners are looked for.

    Returns:
        By phase: tensors with a partner, and all.
    """
    theirs: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for phase, _, figures, size, _ in _distinct(right):
        theirs.setdefault((phase, size), []).append(figures)
    for rows in theirs.values():
        rows.sort()
    counts: dict[str, list[int]] = {}
    for phase, _, figures, size, unit in _distinct(left):
        tally = counts.setdefault(phase, [0, 0])
        tally[1] += 1
        tolerance = max(TOLERANCE, 8 * unit)
        rows = theirs.get((phase, size), [])
        norm = figures[0]
        first = bisect_left(rows, (norm * (1 - tolerance), -math.inf, -math.inf))
        last = bisect_right(rows, (norm / (1 - tolerance), math.inf, math.inf))
        tally[0] += any(_close(figures, other, tolerance) for other in rows[first:last])
    return {phase: (alike, total) for phase, (alike, total) in counts.items()}


def _distinct(
    run: TensorRun,
) -> Iterator[tuple[str, int, tuple[float, float, float], int, float]]:
    columns = run.columns
    seen: set[tuple[str, int, tuple[float, float, float]]] = set()
    for op in run.ops:
        phase = "backward" if op.phase == "backward" else "forward"
        if op.phase == "optimizer":
            continue
        for place in op.tensors:
            if not is_float(columns.dtypes[place]):
                continue
            figures = _figures(columns, place)
            if figures is None:
                continue
            size = math.prod(columns.shapes[place])
            key = (phase, size, figures)
            if key not in seen:
                seen.add(key)
                yield phase, place, figures, size, roundoff(columns.dtypes[place])


def _figures(columns: Columns, place: int) -> tuple[float, float, float] | None:
    figures = columns.norm[place], columns.most[place], columns.least[place]
    return None if any(map(math.isnan, figures)) else figures


def _close(
    left: tuple[float, float, float], right: tuple[float, float, float], tolerance: float
) -> bool:
    norm = max(abs(left[0]), abs(right[0]))
    extreme = max(abs(left[1]), abs(left[2]), abs(right[1]), abs(right[2]))
    return abs(left[0] - right[0]) <= tolerance * norm and all(
        abs(a - b) <= tolerance * extreme for a, b in zip(left[1:], right[1:], strict=True)
    )
