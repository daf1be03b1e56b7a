"""A loss curve: values by step, with what else the same lines say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from irtool.ir.dataclass import dataclass

_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one quantity by step.

    Attributes:
        values: by step; a step that was logged twice has its last value.
        quantum: the least difference that the log's digits can show, 0 for full precision.
    """

    values: Mapping[int, float]
    quantum: float = 0.0

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps in order."""
        return tuple(sorted(self.values))

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class LossRun:
    """What one file or folder says of a run's training.

    Attributes:
        path: where it was read.
        kind: the format that was recognised.
        loss: the loss.
        others: other quantities by their usual names: ``grad_norm``, ``learning_rate``,
            ``loss_scale``, ``global_batch_size``.
        skipped: lines or rows that looked like steps and could not be read.
    """

    path: str
    kind: str
    loss: Series
    others: Mapping[str, Series] = field(default_factory=dict[str, Series])
    skipped: int = 0


class NoLoss(ValueError):
    """A file in which no loss was found; the message says what was looked for."""


def series(pairs: Iterable[tuple[int, str | float]]) -> Series:
    """A series of steps and values; of a step that comes twice the last value counts.

    Args:
        pairs: steps with values; texts tell how many digits were printed.

    Returns:
        With the quantum of what was printed, or of BFloat16 where all values fit it; values of
        1e100 or more are infinite.
    """
    values: dict[int, float] = {}
    quantum = 0.0
    for step, value in pairs:
        if isinstance(value, str):
            quantum = max(quantum, quantum_of(value))
            value = float(value)
        # No training prints such a number, and its square is none any more.
        values[step] = math.copysign(math.inf, value) if abs(value) >= _LARGEST else value
    return Series(values, quantum or _bfloat16_quantum(values.values()))


def _bfloat16_quantum(values: Iterable[float]) -> float:
    """The unit of a loss that was computed in BFloat16; 0 where one has more digits than that.

    Numbers that are short by themselves, as ``2.5`` is, say nothing.
    """
    numbers = finite(values)
    if any(math.frexp(value)[0] * 2**8 % 1 for value in numbers):
        return 0.0
    if not any(math.frexp(value)[0] * 2**5 % 1 for value in numbers):
        return 0.0
    return math.ldexp(1.0, max(math.frexp(value)[1] for value in numbers) - 8)


def quantum_of(text: str) -> float:
    """The weight of the last printed digit: ``0.001`` of ``2.345``, ``0.01`` of ``1.23E+00``.

    Numbers with twelve significant digits and more count as full precision.
    """
    mantissa, _, exponent = text.lower().partition("e")
    digits = mantissa.strip("+-").replace(".", "").lstrip("0")
    if len(digits) >= 12 or not digits.isdecimal():
        return 0.0
    decimals = len(mantissa.partition(".")[2])
    try:
        return 10.0 ** (int(exponent or 0) - decimals)
    except (ValueError, OverflowError):
        return 0.0


def finite(values: Iterable[float]) -> list[float]:
    """The numbers among some values that are neither infinite nor NaN.

    Args:
        values: any numbers.
    """
    return [value for value in values if math.isfinite(value)]
