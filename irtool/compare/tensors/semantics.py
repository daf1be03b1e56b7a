"""What belongs to an operator numerically: how long it adds up, which inputs are parameters.

The table of operators says it, of MindSpore's primitives and of PyTorch's functions and modules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from irtool.compare.tensors.model import Shape
from irtool.operators.facts import Computation
from irtool.operators.table import operator_called

Family: TypeAlias = Computation

_RANDOM = re.compile(
    r"dropout|^rand|random|bernoulli|multinomial|^normal_?$|uniform|standardnormal|gumbel|"
    r"exponential_|poisson|gamma"
)


def is_unwritten(type_: str, label: str) -> bool:
    """Whether a result of a MindSpore operator may be memory that nobody has written.

    Args:
        type_: of the operator.
        label: of the result, as ``output.1``.
    """
    return any(label == f"output.{place}" for place in operator_called(type_).unwritten)


@lru_cache(maxsize=8192)
def is_random(type_: str) -> bool:
    """Whether an operator puts out other numbers at every run, by intention.

    Of what the table does not know (modules of a network) the name tells it.

    Args:
        type_: of the operator.
    """
    entry = operator_called(type_)
    return entry.is_("random") if entry.name else bool(_RANDOM.search(type_.lower()))


@lru_cache(maxsize=8192)
def jumps(type_: str, phase: str) -> bool:
    """Whether a small error of the inputs may come out as a large one of a few elements.

    A share of the elements in proportion to the error falls on the other side of the jump, so the
    relative error of the result grows as the square root of that of the inputs.

    Args:
        type_: of the operator.
        phase: of the step; ``backward``: it is a gradient of that operator.
    """
    entry = operator_called(type_)
    if entry.computes == "optimizer" or entry.is_("jumps"):
        return True  # of an optimizer: a first step from zero moments is a sign
    is_gradient = phase == "backward" or type_.lower().strip("_").endswith("grad")
    return is_gradient and entry.is_("gradient_jumps")


@lru_cache(maxsize=8192)
def family(type_: str) -> Family:
    """The family of an operator of either framework; ``unknown`` of one that the table lacks.

    Args:
        type_: of the operator, as a dump has it.
    """
    entry = operator_called(type_)
    if entry.computes == "unknown" and "allreduce" in type_.lower():
        return "collective"
    return entry.computes


@lru_cache(maxsize=8192)
def is_reshape(type_: str) -> bool:
    """Whether an operator gives its first input in a shape that it takes: its rows stay rows.

    Args:
        type_: of the operator.
    """
    entry = operator_called(type_)
    return entry.is_("renames") and entry.is_("shape_taker")


@lru_cache(maxsize=8192)
def parameter_places(type_: str) -> tuple[int, ...]:
    """Which inputs of an operator are parameters of the network, by its name alone.

    Args:
        type_: of the operator.

    Returns:
        Positions among the inputs, from 0.
    """
    return operator_called(type_).weights


def reduction_length(
    family_: Family, phase: str, inputs: Sequence[Shape], output: Shape, opaque: bool
) -> float:
    """How many terms one element of an output adds up; 4 for what works element by element.

    Args:
        family_: of the operator.
        phase: in a backward operator each output has a length of its own.
        inputs: shapes of its tensor inputs (of a backward operator, those of the forward one too).
        output: shape of the output in question.
        opaque: it is a module, or unknown: several operators in one, so the longest guess counts.
    """
    return _reduction_length(family_, phase, tuple(inputs), output, opaque)


@lru_cache(maxsize=8192)  # layers are alike
def _reduction_length(
    family_: Family, phase: str, inputs: tuple[Shape, ...], output: Shape, opaque: bool
) -> float:
    elements = [math.prod(shape) for shape in inputs]
    largest = max(elements, default=1)
    dims = [size for shape in inputs for size in shape]
    rows = [shape[-1] for shape in inputs if shape]
    count = math.prod(output) or 1
    if opaque:
        return float(max(4, *dims, largest // count) * (4 if len(dims) > 4 else 2))
    if family_ in ("matmul", "attention"):
        if phase == "backward":
            return float(max(4, *dims, largest // count))
        return float(max(4, _inner(inputs, count)))
    if family_ == "convolution":
        return float(max(4, largest // count, *_kernel(inputs)))
    if family_ in ("norm", "softmax"):
        return float(max(4, *rows, largest // count))
    if family_ in ("reduce", "bias gradient", "loss"):
        return float(max(4, largest // count, *(rows if family_ == "loss" else ())))
    if family_ == "scatter":
        longest = max(inputs, key=math.prod, default=())  # indices have no rows
        return float(max(4, math.prod(longest[:-1])))
    if family_ == "unknown":
        return float(max(16, *dims, largest // count))
    if family_ == "collective":
        return 64.0
    if count < largest and phase == "backward":  # gradient of something that was broadcast
        return float(max(4, largest // count))
    return 4.0


def _inner(inputs: Sequence[Shape], count: int) -> int:
    """The dimension that a product of matrices adds over."""
    if len(inputs) < 2 or not inputs[0] or not inputs[1]:
        return max((size for shape in inputs for size in shape), default=0)
    left, right = math.prod(inputs[0]), math.prod(inputs[1])
    batch = 1
    if len(inputs[0]) == len(inputs[1]):
        batch = math.prod(inputs[0][:-2]) or 1
    # (b m k)(b k n) -> (b m n): left · right / (b · count) is k².
    return round(math.sqrt(left * right / batch / count))


def _kernel(inputs: Sequence[Shape]) -> list[int]:
    return [math.prod(shape[1:]) for shape in inputs[1:2] if len(shape) > 2]
