"""Seconds that no strategies are below, told without looking at any: arithmetic and updates alone.

The devices together do no less than all of an operator's arithmetic, and each holds at least its
part of every tensor, so that no strategy is faster than work and bytes divided evenly; what is
communicated and redistributed counts nothing. The prices of both grow with them
(:func:`irtool.cluster.flops_seconds.roofline_seconds`). Times that were measured of slices need
not: with a machine that has such, operators count nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from irtool.cluster.flops_seconds import roofline_seconds, touched
from irtool.cluster.machine import Machine
from irtool.ir.graph import Node
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.judgement import Judgement
from irtool.operators.layout import Shape
from irtool.planning.cost.costs import BACKWARD_WORK, item_bytes, operations_of, update_seconds
from irtool.planning.cost.structure import Structure
from irtool.planning.search.operator_candidates import kind_of


def least_arithmetic(
    structure: Structure, machine: Machine, nodes: Collection[Node] | None = None
) -> float:
    """Seconds of a step that no plan of a network is below.

    Args:
        structure: the network.
        machine: what things cost.
        nodes: which operators count, with the weights that lie as they want; None: all.
    """
    devices = structure.operators.stage_size
    known: dict[object, float] = {}
    total = 0.0
    for node, judged in structure.calls.items():
        if nodes is not None and node not in nodes:
            continue
        key = kind_of(judged), node in structure.with_gradient
        if key not in known:
            once = least_of(judged.call.call, machine, devices)
            known[key] = once * (1 + BACKWARD_WORK) if node in structure.with_gradient else once
        total += structure.runs(node) * known[key]
    for weight in structure.parameters:
        owner = None if weight.owner is None else weight.owner.node
        if weight.trained and (nodes is None or owner in nodes):
            elements = prod(weight.weight.shape) / devices
            sizes = int(elements * weight.element), int(elements * weight.states)
            total += update_seconds(*sizes, machine) / structure.micro_batches
    return total


def least_of(call: OperatorCall, machine: Machine, devices: int) -> float:
    """Seconds of an operator, forward, that no strategy is below."""
    inputs, outputs = _shapes(call.tensors), _shapes(call.results)
    if machine.measured or inputs is None or outputs is None:
        return 0.0
    whole = Judgement("legal", (), raw_inputs=inputs, raw_outputs=outputs)
    dtype = call.tensors[0].dtype if call.tensors else ""
    read, written = (
        [prod(shape) * item_bytes(tensor.dtype) // devices for shape, tensor in pairs]
        for pairs in (
            zip(inputs, call.tensors, strict=True),
            zip(outputs, call.results, strict=True),
        )
    )
    operations = operations_of(call, whole) / devices
    return roofline_seconds(call.op, dtype, operations, touched(call.op, read, written), machine)


def _shapes(tensors: Sequence[Operand]) -> tuple[Shape, ...] | None:
    """Shapes of tensors; None: one has no size."""
    shapes = [tensor.shape for tensor in tensors]
    if any(shape is None or min(shape, default=0) < 0 for shape in shapes):
        return None
    return tuple(shape for shape in shapes if shape is not None)
