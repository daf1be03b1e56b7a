"""Layouts that a user gives: whether they are any, before an operator's rule looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irtool.operators.call import Operand, OperatorCall
from irtool.operators.checks import TENSOR_LAYOUT
from irtool.operators.judgement import Reason
from irtool.operators.layout import UserLayout, entries_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.strategies import Wanted

EXTRACT = "step_parallel_utils.cc:ExtractUserConfigLayout"
INIT = "tensor_layout.cc:InitFromExtendVector"
VALID = "tensor_layout.cc:IsValidTensorLayout"


def layout_problem(
    call: OperatorCall, asked: Wanted, context: ParallelContext, *, nested: bool
) -> Reason | None:
    """Why the layouts given for an operator can't be layouts of its operands or results.

    Args:
        call: the operator with its operands and results.
        asked: the layouts given, in and out; None of either is no problem.
        context: that says on how many devices they are to lie.
        nested: whether layouts follow the operands, of which constants may have one, too; then a
            number of layouts that differs from that of tensors is passed over.

    Returns:
        The first reason found, in_layout before out_layout; None: they can be.
    """
    for layouts, operands, what in (
        (asked.in_layout, call.tensors, "in_layout"),
        (asked.out_layout, call.results, "out_layout"),
    ):
        if nested and len(layouts or ()) != len(operands):
            continue
        if layouts is not None:
            problem = _problem(layouts, operands, what, context)
            if problem is not None:
                return problem
    return None


def _problem(
    layouts: Sequence[UserLayout],
    operands: Sequence[Operand],
    what: str,
    context: ParallelContext,
) -> Reason | None:
    if len(layouts) != len(operands):
        message = f"{what} has {len(layouts)} layouts for {len(operands)} tensors"
        return Reason("layout", message, EXTRACT)
    for index, (layout, operand) in enumerate(zip(layouts, operands, strict=True)):
        problem = _one(layout, operand, f"{what} {index}", context.stage_size)
        if problem is not None:
            return problem
    return None


def _one(layout: UserLayout, operand: Operand, what: str, devices: int) -> Reason | None:
    matrix = layout.device_matrix[:-1] if layout.interleaved else layout.device_matrix
    if prod(matrix) != devices:
        message = f"{what}: the device matrix {matrix} is not that of {devices} devices"
        return Reason("layout", message, INIT)
    shape = operand.shape or ()
    if len(shape) != len(layout.tensor_map):
        message = f"{what}: the tensor map {layout.tensor_map} is not one of the shape {shape}"
        return Reason("layout", message, INIT)
    axes = [axis for entry in layout.tensor_map for axis in entries_of(entry)]
    if any(axis >= len(layout.device_matrix) for axis in axes):
        message = f"{what}: the tensor map {layout.tensor_map} has axes that the matrix lacks"
        return Reason("layout", message, VALID)
    problem = layout.tensor_layout(shape).problem()
    return Reason("layout", f"{what}: {problem}", TENSOR_LAYOUT) if problem else None
