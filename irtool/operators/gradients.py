"""What an operator's gradient reads of the forward pass, measured.

``gradients.tsv`` lists it, made by ``benchmarks/record_operators/gradients.py`` of what the real
compiler makes of networks of one operator.  A value that a gradient reads is kept for the backward
pass, or computed again there where its cell is recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from irtool.ir.dataclass import dataclass

FILE = "gradients.tsv"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one operand: which operands and results it is computed from.

    Attributes:
        of: the operand's place in the call.
        operands: places of the operands whose values it reads (shapes don't count).
        results: indices of the results whose values it reads.
    """

    of: int
    operands: tuple[int, ...] = ()
    results: tuple[int, ...] = ()


def measured_gradients(op: str) -> tuple[Gradient, ...] | None:
    """The operands of an operator that have a gradient, each with what that reads.

    Args:
        op: the primitive's name, as the table has it.

    Returns:
        None for an operator that was not measured; an empty tuple for one through which no gradient
        comes back.
    """
    line = _lines().get(op)
    return None if line is None else tuple(map(_gradient, line.split("\t")[1:]))


@lru_cache(maxsize=1)
def _lines() -> Mapping[str, str]:
    """The line of each operator that was measured."""
    text = (resources.files("irtool.operators") / FILE).read_text(encoding="utf-8")
    return {line.partition("\t")[0]: line for line in text.splitlines()}


def _gradient(text: str) -> Gradient:
    """``0<1 =0``: the gradient of operand 0 reads operand 1 and result 0."""
    place, _, read = text.partition("<")
    words = read.split()
    return Gradient(
        int(place),
        tuple(int(word) for word in words if not word.startswith("=")),
        tuple(int(word.removeprefix("=")) for word in words if word.startswith("=")),
    )
