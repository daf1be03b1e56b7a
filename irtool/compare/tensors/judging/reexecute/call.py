"""One operator with its values at hand, and the table of functions that compute operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from irtool.compare.tensors.formats.payload import read_array
from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass

Array: TypeAlias = NDArray[np.float64]
Results: TypeAlias = dict[str, Array]
"""What an operator puts out, by label."""
Kernel: TypeAlias = Callable[["Call"], "Array | Results | None"]
"""Computes an operator: its first result, or several; None where it does not know how."""

MOST = 1 << 27
"""Elements of an operator's tensors beyond which nothing is computed again: 1 GiB a tensor."""

KERNELS: dict[str, Kernel] = {}
"""By the operator's name in lower letters, gradients of calls with ``.backward`` behind it."""


class Missing(LookupError):
    """A value that the dump does not hold."""


def computes(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a function as the one that computes some operators.

    Args:
        names: of the operators, in small letters.

    Returns:
        A decorator that gives the function back.
    """

    def add(kernel: Kernel) -> Kernel:
        for name in names:
            KERNELS[name] = kernel
        return kernel

    return add


@dataclass(slots=True)
class Call:
    """One operator with values at hand: ``call.tensor("input.0")``, ``call.number("input.4")``."""

    run: TensorRun
    op: Op
    forward: Op | None = None
    _arrays: dict[str, Array] = field(default_factory=dict[str, Array])

    def tensor(self, label: str) -> Array:
        """An input in double precision.

        Raises:
            Missing: it is not in the dump.
        """
        if label not in self._arrays:
            self._arrays[label] = self._read(self.op, label)
        return self._arrays[label]

    def integers(self, label: str) -> NDArray[np.int64]:
        """An input of whole numbers."""
        return self.tensor(label).astype(np.int64)

    def saved(self, label: str) -> Array:
        """A tensor of the forward call, for its gradient."""
        if self.forward is None:
            raise Missing(label)
        return self._read(self.forward, label)

    def has(self, label: str) -> bool:
        """Whether there is such an input."""
        columns = self.run.columns
        return any(columns.labels[place] == label for place in self.op.inputs)

    def is_float(self, label: str) -> bool:
        """Whether an input is of a float type."""
        columns = self.run.columns
        kinds = [
            columns.dtypes[place] for place in self.op.inputs if columns.labels[place] == label
        ]
        return any("loat" in kind for kind in kinds)

    def tensors(self) -> list[Array]:
        """All inputs with values, in order."""
        return [self.tensor(self.run.columns.labels[place]) for place in self.op.inputs]

    def number(self, *labels: str, default: float | None = None) -> float:
        """A scalar argument, or a scalar attribute of the node."""
        for label in labels:
            for value in self._said(label):
                if isinstance(value, bool | int | float):
                    return float(value)
        if default is None:
            raise Missing(labels[0])
        return default

    def _said(self, label: str) -> list[object]:
        values: list[object] = [self.op.attributes.get(label)]
        if self.op.node is not None:
            value = self.op.node.attribute(label)
            values.append(value)
            if isinstance(value, tuple) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]  # attributes are plain data
                values.append(value[0])  # pyright: ignore[reportUnknownArgumentType]  # as above
        return values

    def operand(self, place: int) -> Array:
        """A tensor or scalar operand."""
        label = f"input.{place}"
        return self.tensor(label) if self.has(label) else np.float64(self.number(label)) * _ONE

    def one(self, place: int) -> float:
        """A scalar argument, be it dumped with a dimension or without."""
        label = f"input.{place}"
        return float(self.tensor(label).item(0)) if self.has(label) else self.number(label)

    def result_shape(self) -> tuple[int, ...]:
        """Of the first output, as it was dumped."""
        return self.run.columns.shapes[self.op.outputs[0]]

    def _read(self, op: Op, label: str) -> Array:
        columns = self.run.columns
        for place in (*op.inputs, *op.outputs):
            if columns.labels[place] == label and columns.files[place]:
                if math.prod(columns.shapes[place]) > MOST:
                    raise Missing(label)
                return read_array(columns.files[place], columns.dtypes[place]).astype(np.float64)
        raise Missing(label)


_ONE = np.ones((), np.float64)
