"""Which values of a run are gradients, and of what: by names of calls, or by what is updated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.model import TensorRun
from irtool.compare.tensors.pairing.flow import Flow, Value
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.limits import bounded_int

_LOADS = 8
"""Nodes in line that only hand a parameter on, at most."""


def gradients_of(flow: Flow, run: TensorRun) -> Mapping[int, int]:
    """Where the gradients of values stand in the columns of a run.

    Args:
        flow: the values of the run.
        run: the dump.

    Returns:
        Places by the number of the value.
    """
    if flow.is_graph:
        return dict(_updates(flow, run))
    gradients = dict(_parameter_gradients(flow, run))
    for value in flow.values:
        if value.is_gradient or value.number in gradients:
            continue
        place = _of_result(flow, value) if value.maker is not None else _of_operand(flow, value)
        if place is not None:
            gradients[value.number] = place
    return gradients


def _updates(flow: Flow, run: TensorRun) -> Iterator[tuple[int, int]]:
    """Gradients of parameters as the optimizer of a graph reads them; no others are known."""
    parameters: dict[str, Value] = {}
    for op in run.ops:
        if op.node is None:
            continue
        if op.phase != "optimizer":
            for tensor in op.inputs:
                number = run.columns.labels[tensor].rpartition(".")[2]
                name = _parameter(op.node, bounded_int(number)) if number.isdecimal() else ""
                value = flow.value(tensor) if name else None
                if value is not None and value.maker is None:
                    parameters.setdefault(name, value)
        elif family(op.type) == "optimizer":
            names = (_parameter(op.node, place) for place in range(len(op.node.inputs)))
            value = next((parameters[name] for name in names if name in parameters), None)
            if value is not None:
                places = [tensor for tensor in op.inputs if _size(flow, tensor) == value.size]
                if len(places) == 1:
                    yield value.number, places[0]


def _parameter(node: Node, place: int) -> str:
    """The parameter that a node reads at a place, empty for anything else."""
    source = node.inputs[place] if place < len(node.inputs) else None
    for _ in range(_LOADS):
        if not isinstance(source, Node) or source.op not in ("Load", "Depend"):
            break
        source = source.inputs[0] if source.inputs else None
    return source.name if isinstance(source, GraphParameter) else ""


def _of_result(flow: Flow, value: Value) -> int | None:
    """The gradient of what a call made: what the gradient of that call is given."""
    assert value.maker is not None
    gradient = flow.gradient_calls.get(value.maker.call)
    if gradient is None:
        return None
    labels = flow.columns.labels
    wanted = labels[value.made].replace("output", "input", 1)
    place = next((operand for operand in gradient.inputs if labels[operand] == wanted), None)
    return place if place is not None and _size(flow, place) == value.size else None


def _of_operand(flow: Flow, value: Value) -> int | None:
    """The gradient of a parameter that one call reads: what the gradient of that call puts out."""
    readers = flow.forward_readers(value)
    gradient = flow.gradient_calls.get(readers[0].call) if len(readers) == 1 else None
    if gradient is None or family(readers[0].type) == "view":
        return None
    shapes = flow.columns.shapes
    read = [operand for operand in readers[0].inputs if is_float(flow.columns.dtypes[operand])]
    places = [n for n, operand in enumerate(read) if flow.value(operand) is value]
    made = gradient.outputs
    if [shapes[operand] for operand in made] == [shapes[operand] for operand in read]:
        place = made[places[0]] if len(places) == 1 else None
    else:
        sized = (
            [operand for operand in made if shapes[operand] == shapes[read[places[0]]]]
            if places
            else []
        )
        alike = (
            [operand for operand in read if shapes[operand] == shapes[read[places[0]]]]
            if places
            else []
        )
        place = sized[0] if len(sized) == len(alike) == 1 else None
    if place is None or _size(flow, place) != value.size:
        return None
    if family(readers[0].type) != "sum":  # others that hand on what they are given state too little
        given = [flow.value(operand) for operand in gradient.inputs]
        return None if flow.value(place) is not None and flow.value(place) in given else place
    return place


def _parameter_gradients(flow: Flow, run: TensorRun) -> Iterator[tuple[int, int]]:
    """Gradients of parameters as modules state them."""
    parameters: dict[tuple[str, str], int] = {}
    for op in run.ops:
        if not op.is_module:
            continue
        if op.phase == "forward":
            for parameter in op.parameters:
                parameters[op.owner, run.columns.labels[parameter]] = parameter
        elif ".parameters_grad" in op.name:
            for place in op.outputs:
                name = run.columns.labels[place].partition(".grad")[0]
                parameter = parameters.get((op.owner, name))
                value = flow.find(parameter) if parameter is not None else None
                if value is not None:
                    yield value.number, place


def _size(flow: Flow, place: int) -> int:
    return math.prod(flow.columns.shapes[place])
