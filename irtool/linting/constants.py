"""Constants that stand among an operator's operands and attributes."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.graph import Node
from irtool.ir.values import Scalar, TensorLiteral, Value, python_value
from irtool.operators.table import operator_of


def rates(node: Node) -> Iterator[tuple[str, float]]:
    """The floating-point constants of an operator, each with what it is called.

    Args:
        node: whose operands and attributes are asked.

    Returns:
        Operands first, by the operator's name for them or as ``operand 2``, then attributes.
    """
    for place, operand in enumerate(node.operands):
        value = number(operand)
        if value is not None:
            yield operator_of(node.op).operand_name(place) or f"operand {place + 1}", value
    attributes = node.primitive_attributes
    if attributes is not None:
        for name, value in attributes.items():
            if isinstance(value, float):
                yield name, value


def number(operand: Value) -> float | None:
    """The one float that an operand is; None for anything else.

    Args:
        operand: a scalar, or a tensor of one element.
    """
    if isinstance(operand, TensorLiteral):
        if not operand.dtype.startswith(("Float", "BFloat")):
            return None
        values = operand.values
        return float(values[0]) if values is not None and len(values) == 1 else None
    if isinstance(operand, Scalar) and operand.type.startswith(("F", "BF")):
        value = python_value(operand)
        return float(value) if isinstance(value, int | float) else None
    return None
