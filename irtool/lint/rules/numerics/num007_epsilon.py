"""NUM007: an epsilon that its type cannot hold."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.values import Scalar, TensorLiteral, Value, python_value
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import NodeRule
from irtool.lint.rules.numerics.half import HALF, NEAREST, half_type
from irtool.operators.table import operator_of

_MOST = 1e-3
"""A constant above this is no epsilon."""


class Epsilon(NodeRule):
    """A small constant beside half-precision tensors that is rounded to nothing."""

    code = "NUM007"
    name = "epsilon-too-small"
    severity = "warning"
    summary = "An epsilon is below what its type can hold"
    explanation = """
        An epsilon keeps a division or a root away from 0. The smallest positive float16 is 6·10⁻⁸:
        what is smaller than half of that becomes 0, and the guard is gone without a word. Between
        that and 6·10⁻⁵ it is subnormal, which many devices flush to 0 as well. bfloat16 has the
        range of float32, so it is no problem there.

        Normalisations and optimizers often compute inside in float32; of them only an epsilon that
        float16 would round to 0 is told.
        """
    hint = "use an epsilon of at least 1e-4 in float16, or compute this in float32"
    bad = """
        %8(a) = PrimFunc_Add(%7, F16(1e-08))
            : (<Tensor[Float16], (8, 16)>, …) -> (<Tensor[Float16], (8, 16)>)
        """
    good = """
        %8(a) = PrimFunc_Add(%7, F16(0.0001))
            : (<Tensor[Float16], (8, 16)>, …) -> (<Tensor[Float16], (8, 16)>)
        """
    dumps = NEAREST

    def looks_at(self, op: str) -> bool:
        entry = operator_of(op)
        return entry.is_("guard") or entry.is_("epsilon")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_recomputed or not node.input_types:
            return
        dtype = next((found for each in node.input_types if (found := half_type(each))), None)
        if dtype is None:
            return
        for value in _constants(node):
            if not 0 < abs(value) < _MOST:
                continue
            vanishes = abs(value) <= HALF[dtype].least
            if vanishes or (
                operator_of(node.op).is_("guard") and abs(value) < HALF[dtype].least_normal
            ):
                what = "is rounded to 0" if vanishes else "is subnormal, which devices flush to 0"
                yield self.finding(f"{value:g} in {node.op} {what} in {dtype.lower()}", node)


def _constants(node: Node) -> Iterator[float]:
    """Floating-point constants among the operands, and attributes that are called epsilon."""
    for operand in node.operands:
        value = _number(operand)
        if value is not None:
            yield value
    for key in ("epsilon", "eps"):
        value = node.attribute(key)
        if isinstance(value, float):
            yield value


def _number(operand: Value) -> float | None:
    if isinstance(operand, TensorLiteral):
        values = operand.values
        return values[0] if values is not None and len(values) == 1 else None
    if isinstance(operand, Scalar) and operand.type.startswith(("F", "BF")):
        value = python_value(operand)
        return float(value) if isinstance(value, int | float) else None
    return None
