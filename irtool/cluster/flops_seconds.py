"""Seconds of an operator on a machine: its arithmetic or its memory traffic, whichever is longer.

The usual roofline; a launch takes a while even if it does nothing.  Only ratios mean something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.cluster.flops import flops
from irtool.cluster.liveness import renames
from irtool.cluster.machine import Amount, Machine
from irtool.ir.graph import Node
from irtool.operators.table import operator_of

LAUNCH_SECONDS = 2e-6
"""Least time of an operator, an assumption: about what accelerators need from launch to launch."""


def touched(op: str, inputs: Sequence[int], outputs: Sequence[int]) -> int:
    """Bytes that an operator reads and writes, of those of its tensors.

    Args:
        op: the operator.
        inputs: bytes of each input.
        outputs: bytes of its results.
    """
    written = sum(outputs)
    if operator_of(op).is_("picks") and inputs:
        return min(inputs[0], written) + sum(inputs[1:]) + written
    return sum(inputs) + written


def roofline_seconds(
    op: str, dtype: str | None, operations: Amount, size: Amount, machine: Machine
) -> Amount:
    """Seconds of an operator by what it does: as measured of its kind, else by the roofline.

    Args:
        op: the operator, whose kind may have been measured.
        dtype: element type that decides the rate of arithmetic.
        operations: what it computes.
        size: bytes that it reads and writes.
        machine: what these cost.
    """
    fitted = machine.roofline(op)
    if fitted is not None:
        return fitted.seconds(operations, size)
    return _larger(_busy_seconds(dtype, operations, size, machine), LAUNCH_SECONDS)


def _busy_seconds(dtype: str | None, operations: Amount, size: Amount, machine: Machine) -> Amount:
    """Arithmetic or memory traffic, whichever takes longer."""
    arithmetic = operations / machine.rate(dtype) if machine.flops else operations * 0.0
    traffic = size / machine.memory_bandwidth if machine.memory_bandwidth else size * 0.0
    return _larger(arithmetic, traffic)


def _larger(one: Any, other: Any) -> Any:
    return max(one, other) if isinstance(one, float | int) else one.clip(other)


def work_of(node: Node) -> tuple[int, int]:
    """Operations of an operator, and bytes that it reads and writes; what nobody knows is 0.

    Args:
        node: an operator that does not communicate.

    Returns:
        Operations (a multiplication and an addition are two), then bytes.
    """
    output = node.output_type
    sizes = [item.size or 0 for item in node.input_types if item is not None]
    written = [output.size or 0] if output is not None else []
    return flops(node) or 0, touched(node.op, sizes, written)


def operator_seconds(node: Node, machine: Machine) -> float:
    """Modelled seconds of one operator that does not communicate: a roofline, and its start.

    Args:
        node: of any dump.
        machine: what arithmetic and memory traffic take.
    """
    if renames(node.op):
        return 0.0
    output = node.output_type
    return roofline_seconds(node.op, output.dtype if output else None, *work_of(node), machine)


def busy_seconds(node: Node, machine: Machine) -> float:
    """Modelled seconds of an operator without the time that starting it takes.

    This part grows with its tensors; 0 where its result is its input.

    Args:
        node: of any dump.
        machine: what arithmetic and memory traffic take.
    """
    if renames(node.op):
        return 0.0
    output = node.output_type
    return _busy_seconds(output.dtype if output else None, *work_of(node), machine)
