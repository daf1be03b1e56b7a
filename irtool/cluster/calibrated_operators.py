"""Operators of a machine as a profile measured them: rooflines by kind, and what each took.

Seconds of a kind are fitted to ``launch + operations / flops + bytes / bandwidth``, by least
squares of relative errors, none of the three below zero.  A kind of which only one size was
measured takes that of all operators, times one factor.  The error is told on what was held back:
operators of one kind and size are predicted by a fit of all others, so that equal layers do not
predict each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from irtool.cluster.flops_seconds import work_of
from irtool.cluster.liveness import renames
from irtool.cluster.machine import ANY_KIND, Machine, MeasuredTime, Roofline, slices_key
from irtool.cluster.measured import MeasuredStep
from irtool.ir.collectives import is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.ties.model import forward_place

_GRADIENTS = "Gradients/"
_LEAST_KINDS = 2
"""Sizes of all operators together, below which no roofline is fitted."""

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimedOperator:
    """An operator that was measured: what it did, and seconds of a step."""

    op: str
    operations: int
    bytes: int
    seconds: float

    @property
    def size(self) -> tuple[int, int]:
        """Operations and bytes: equal ones are one size."""
        return self.operations, self.bytes


@dataclass(frozen=True, slots=True)
class KindFit:
    """Operators of one kind as measured.

    Attributes:
        op: the kind.
        roofline: that was fitted.
        operators: that it was fitted to, and ``sizes``: of how many sizes.
        seconds: of a step that all of them take.
        error: the median of the relative errors of sizes that were held back; None: nothing was
            left to predict them from.
        worst: the largest of them.
    """

    op: str
    roofline: Roofline
    operators: int
    sizes: int
    seconds: float
    error: float | None
    worst: float | None


@dataclass(frozen=True, eq=False)
class OperatorCalibration:
    """Rooflines by kind, the dearest first, and what operators of each slices took."""

    kinds: tuple[KindFit, ...]
    rooflines: Mapping[str, Roofline]
    measured: Mapping[str, MeasuredTime]

    @property
    def error(self) -> float | None:
        """The median error of kinds, each by its part of the step; None: nothing was held back."""
        known = [(fit.error, fit.seconds) for fit in self.kinds if fit.error is not None]
        half = sum(seconds for _, seconds in known) / 2
        passed = 0.0
        for error, seconds in sorted(known):
            passed += seconds
            if passed >= half:
                return error
        return None


def calibrated_operators(steps: Sequence[MeasuredStep]) -> OperatorCalibration | None:
    """Rooflines of what profiles measured; None where there is too little.

    Args:
        steps: profiles of one machine, joined with the dumps of what ran.
    """
    timed = [operator for step in steps for operator in timed_operators(step)]
    if len({operator.size for operator in timed}) < _LEAST_KINDS:
        return None
    rooflines = fitted_rooflines(timed)
    if ANY_KIND not in rooflines:
        return None
    by_kind: dict[str, list[TimedOperator]] = {}
    for operator in timed:
        by_kind.setdefault(operator.op, []).append(operator)
    held_back = _held_back(timed)
    kinds = [
        KindFit(
            op,
            rooflines[op],
            len(those),
            len({operator.size for operator in those}),
            sum(operator.seconds for operator in those),
            median(errors) if (errors := held_back.get(op, ())) else None,
            max(errors, default=None),
        )
        for op, those in by_kind.items()
    ]
    kinds.sort(key=lambda fit: (-fit.seconds, fit.op))
    return OperatorCalibration(tuple(kinds), rooflines, measured_times(steps))


def with_operators(machine: Machine, calibration: OperatorCalibration) -> Machine:
    """A machine whose operators take what a profile measured.

    Args:
        machine: of which all else stays; what it knew of the same operators is replaced.
        calibration: rooflines by kind, and what was measured itself.
    """
    source = f"operators: fitted to {sum(fit.operators for fit in calibration.kinds)} of a profile"
    return replace(
        machine,
        rooflines={**machine.rooflines, **calibration.rooflines},
        measured={**machine.measured, **calibration.measured},
        sources=(source, *machine.sources),
    )


def timed_operators(step: MeasuredStep) -> Iterator[TimedOperator]:
    """What a profile measured of operators that compute."""
    for operator in step.operators:
        node = operator.node
        if operator.seconds > 0 and not is_collective(node) and not renames(node.op):
            yield TimedOperator(node.op, *work_of(node), operator.seconds)


# -- rooflines -------------------------------------------------------------------------------------


def fitted_rooflines(timed: Iterable[TimedOperator]) -> dict[str, Roofline]:
    """A roofline for each kind, and one for all others."""
    rows = list(timed)
    every = _fitted(rows)
    if every is None:
        return {}
    by_kind: dict[str, list[TimedOperator]] = {}
    for row in rows:
        by_kind.setdefault(row.op, []).append(row)
    rooflines = {op: _of_kind(those, every) for op, those in by_kind.items()}
    return {**rooflines, ANY_KIND: every}


def _of_kind(rows: Sequence[TimedOperator], every: Roofline) -> Roofline:
    """The roofline of a kind; of one size alone, that of all operators times a factor."""
    fitted = _fitted(rows) if len({row.size for row in rows}) > 1 else None
    if fitted is not None:
        return fitted
    expected = [every.seconds(*row.size) for row in rows]
    factor = median(row.seconds / modelled for row, modelled in zip(rows, expected, strict=True))
    return Roofline(every.launch * factor, every.flops / factor, every.bandwidth / factor)


def _fitted(rows: Sequence[TimedOperator]) -> Roofline | None:
    """By least squares of relative errors, over all sets of figures that are not zero."""
    seconds = np.array([row.seconds for row in rows])
    table = np.array([(1.0, row.operations, row.bytes) for row in rows]) / seconds[:, None]
    # Operations and bytes are of quite different sizes: columns of one size keep the figures exact.
    scale = np.abs(table).max(axis=0)
    best: tuple[float, Roofline] | None = None
    usable = [column for column in range(3) if scale[column] > 0]
    for count in range(1, len(usable) + 1):
        for columns in map(list, combinations(usable, count)):
            part = table[:, columns] / scale[columns]
            values = _least_squares(part)
            if (values <= 0).any():
                continue
            error = float(((part @ values - 1) ** 2).sum())
            if best is None or error < best[0] * (1 - 1e-9):
                figures = {
                    column: float(value / scale[column])
                    for column, value in zip(columns, values, strict=True)
                }
                best = error, _roofline(figures)
    return None if best is None else best[1]


def _least_squares(table: Floats) -> Floats:
    """What each column is multiplied by so that the rows add up to one, as nearly as can be."""
    solution = cast("tuple[Floats, ...]", np.linalg.lstsq(table, np.ones(len(table)), rcond=None))
    return solution[0]


def _roofline(figures: Mapping[int, float]) -> Roofline:
    launch, operation, byte = (float(figures.get(column, 0.0)) for column in range(3))
    return Roofline(launch, 1 / operation if operation else 0.0, 1 / byte if byte else 0.0)


def _held_back(timed: Sequence[TimedOperator]) -> dict[str, list[float]]:
    """By kind the relative errors of each size under a fit of everything else."""
    errors: dict[str, list[float]] = {}
    for op, size in dict.fromkeys((row.op, row.size) for row in timed):
        others = [row for row in timed if (row.op, row.size) != (op, size)]
        every = _fitted(others)
        if every is None:
            continue
        kin = [row for row in others if row.op == op]
        fitted = _of_kind(kin, every) if kin else every
        those = [row.seconds for row in timed if (row.op, row.size) == (op, size)]
        errors.setdefault(op, []).append(abs(fitted.seconds(*size) / median(those) - 1))
    return errors


# -- what operators took ---------------------------------------------------------------------------


def measured_times(steps: Iterable[MeasuredStep]) -> dict[str, MeasuredTime]:
    """What forward operators of each slices took, and their gradients.

    A gradient's operators say by their scope of which kind of operator they are
    (``…/Grad_MatMul``), but not of which: MindSpore gives those of equal cells the scope of one.
    So operators have parts of their kind's gradients, in proportion to what they took themselves.
    """
    forward: dict[str, list[float]] = {}
    kinds: dict[str, str] = {}
    seconds: defaultdict[str, float] = defaultdict(float)
    gradients: defaultdict[str, float] = defaultdict(float)
    for operator in (one for step in steps for one in step.operators):
        if is_collective(operator.node):
            continue
        if (operator.node.scope or "").startswith(_GRADIENTS):
            gradients[forward_place(operator.node)[1]] += operator.seconds
            continue
        seconds[operator.node.op] += operator.seconds
        key = _key(operator.node)
        if key is not None:
            kinds[key] = operator.node.op
            forward.setdefault(key, []).append(operator.seconds)
    return {
        key: MeasuredTime(
            median(those),
            median(those) * gradients[op] / seconds[op] if gradients[op] and seconds[op] else None,
        )
        for key, those in forward.items()
        for op in [kinds[key]]
    }


def _key(node: Node) -> str | None:
    """Of a node's slices; None where one is not known, or nothing is a tensor."""
    tensors = [
        tensor for item in node.input_types if item is not None for tensor in item.each_tensor()
    ]
    if not tensors or any(size < 0 for _, shape in tensors for size in shape):
        return None
    return slices_key(node.op, tensors[0][0] or "", [shape for _, shape in tensors])


# -- what computing hides --------------------------------------------------------------------------


def measured_overlap(steps: Sequence[tuple[float, float]]) -> float | None:
    """What part of communication computing hid; None where nothing was communicated.

    The median of the steps, without the first one where there are three or more.  What could not
    be hidden counts as not hidden, so that it is rather too small.

    Args:
        steps: of each the time of communication that was exposed, and of what was hidden.
    """
    later = steps[1:] if len(steps) > 2 else steps
    parts = [hidden / (exposed + hidden) for exposed, hidden in later if exposed + hidden > 0]
    return min(1.0, max(0.0, median(parts))) if parts else None
