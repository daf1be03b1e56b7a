"""What shapes tensors of a run would have on one device, told by its own begin dump.

``step_parallel_begin`` is the network before anything is cut.  Its nodes are the forward operators
of the run: their shapes are whole.  A gradient has the shape of what it is the gradient of, a state
of the optimizer that of its parameter.  So a run that is cut can be put together without another
one of the same framework beside it; what nothing tells the shape of is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irtool.compare.layouts.ranks import node_ops, operand, parameter_of
from irtool.compare.layouts.same_operators import HELPERS, same_operators
from irtool.compare.tensors.join import signature_shapes
from irtool.compare.tensors.model import Columns, Op, Shape, TensorRun
from irtool.compare.tensors.semantics import family
from irtool.ir.dump import Dump

_NO_KERNELS = frozenset(
    ("TupleGetItem", "MakeTuple", "Return", "call", "Depend", "Load", "UpdateState", "J", "Partial")
)
_PLACE = "-op0"


@dataclass(frozen=True, slots=True)
class Outline:
    """A run on one device that never ran: shapes without values.

    Attributes:
        run: operators of the lowest rank, each at its own index, with whole shapes where known.
        pairs: indices of those whose shapes are known, to themselves.
        parameters: shapes of parameters and inputs by name.
    """

    run: TensorRun
    pairs: Mapping[int, int]
    parameters: Mapping[str, Shape]


def outline_of(begin: Dump, lead: TensorRun) -> Outline:
    """The shapes that the operators of a rank have before anything is cut.

    Args:
        begin: ``step_parallel_begin`` of the run.
        lead: its lowest rank, joined with its graph.
    """
    forward = _forward(begin, lead)
    part = copy.copy(lead)
    part.ops = [op for op in lead.ops if op.phase == "forward" and op.node is not None]
    known = {b: forward.ops[a] for a, b in same_operators(forward, part).items()}
    parameters = _parameters(begin)
    shapes: dict[int, dict[str, Shape]] = {}
    for index, op in known.items():
        shapes[index] = {
            forward.columns.labels[place]: forward.columns.shapes[place] for place in op.tensors
        }
    places = {op.node.unique_id: index for index in known
              if (op := lead.ops[index]).node is not None and op.node.unique_id}  # fmt: skip
    makers = {node: op.index for node, op in node_ops(lead).items()}
    for op in lead.ops:
        if op.index in shapes or op.node is None or _is_helper(op):
            continue
        twin = places.get(op.node.forward_unique_id) if op.node.forward_unique_id else None
        by_label = dict(_of_parameters(op, lead, parameters))
        if twin is not None:
            by_label.update(_of_gradient(op, lead.ops[twin], shapes[twin], lead))
        elif not by_label:
            source = operand(op.node, 0)
            given = None if source is None else shapes.get(makers.get(source[0], -1))
            full_shape = (
                None if given is None or source is None else given.get(f"output.{source[1]}")
            )
            by_label = {} if full_shape is None else dict(_of_reduction(op, full_shape, lead))
        if by_label:
            shapes[op.index] = by_label
    run = _with_shapes(lead, shapes)
    return Outline(run, {index: index for index in shapes}, parameters)


def _is_helper(op: Op) -> bool:
    """Whether the cut alone brings an operator in."""
    return family(op.type) == "collective" or any(word in op.name for word in HELPERS)


def _forward(begin: Dump, lead: TensorRun) -> TensorRun:
    """The nodes of the begin dump as operators of a dump, named as the executed ones."""
    run = copy.copy(lead)
    run.columns, run.ops, run.casts = Columns(), [], None
    for graph in begin.graphs:
        for node in graph.nodes:
            if node.op in _NO_KERNELS or not node.scope:
                continue
            inputs, outputs = signature_shapes(node)
            name = f"{node.scope}/{node.op}".translate(str.maketrans("/\\. ", "____")) + _PLACE
            op = Op(len(run.ops), name, node.op, "forward", [], [], node=node)
            op.inputs = [run.columns.add(f"input.{n}", "", shape) for n, shape in inputs.items()]
            op.outputs = [run.columns.add(f"output.{n}", "", shape) for n, shape in outputs.items()]
            run.ops.append(op)
    return run


def _parameters(begin: Dump) -> dict[str, Shape]:
    from irtool.ir.types import Shape as AbstractShape

    shapes: dict[str, Shape] = {}
    for graph in begin.graphs:
        for parameter in graph.parameters:
            shape = None if parameter.type is None else parameter.type.shape
            if isinstance(shape, AbstractShape):
                shapes.setdefault(str(parameter.name), tuple(shape.dimensions))
    return shapes


def _of_parameters(
    op: Op, lead: TensorRun, parameters: Mapping[str, Shape]
) -> Iterator[tuple[str, Shape]]:
    """Shapes of an operator's parameters, and of what has the shape of one of them (a state)."""
    assert op.node is not None
    columns = lead.columns
    wholes: dict[Shape, set[Shape]] = {}
    for place in op.tensors:
        direction, _, text = columns.labels[place].partition(".")
        if direction == "input" and text.isdecimal():
            parameter = parameter_of(op.node, int(text))
            full_shape = None if parameter is None else parameters.get(str(parameter.name))
            if full_shape is not None:
                wholes.setdefault(columns.shapes[place], set()).add(full_shape)
    if op.phase != "optimizer" and not op.node.is_backward:
        return
    yield from _by_slice(op, wholes, columns)


def _of_gradient(
    op: Op, twin: Op, by_label: Mapping[str, Shape], lead: TensorRun
) -> Iterator[tuple[str, Shape]]:
    """A gradient's tensors by those of its forward operator that have the same slices."""
    columns = lead.columns
    wholes: dict[Shape, set[Shape]] = {}
    for place in twin.tensors:
        shape = by_label.get(columns.labels[place])
        if shape is not None:
            wholes.setdefault(columns.shapes[place], set()).add(shape)
    yield from _by_slice(op, wholes, columns)


def _by_slice(
    op: Op, wholes: Mapping[Shape, set[Shape]], columns: Columns
) -> Iterator[tuple[str, Shape]]:
    for place in op.tensors:
        candidates = wholes.get(columns.shapes[place], set[Shape]())
        if len(candidates) == 1:
            yield columns.labels[place], next(iter(candidates))


def _of_reduction(op: Op, full_shape: Shape, lead: TensorRun) -> Iterator[tuple[str, Shape]]:
    """A sum over the leading axes, as the gradient of a bias is."""
    columns = lead.columns
    for place in op.tensors:
        label, shape = columns.labels[place], columns.shapes[place]
        if label == "input.0" and len(shape) == len(full_shape):
            yield label, full_shape
        elif label == "output.0" and op.type in ("ReduceSum", "SumExt"):
            given = columns.shapes[op.inputs[0]]
            if len(given) == len(full_shape) and shape == given[len(given) - len(shape) :]:
                yield label, full_shape[len(full_shape) - len(shape) :]


def _with_shapes(lead: TensorRun, shapes: Mapping[int, Mapping[str, Shape]]) -> TensorRun:
    run = copy.copy(lead)
    run.columns, run.ops, run.casts = Columns(), [], None
    for op in lead.ops:
        made = copy.copy(op)
        known = shapes.get(op.index, {})
        places: dict[int, int] = {}
        for place in op.tensors:
            label = lead.columns.labels[place]
            if label in known:
                places[place] = run.columns.add(label, lead.columns.dtypes[place], known[label])
        made.inputs = [places[place] for place in op.inputs if place in places]
        made.outputs = [places[place] for place in op.outputs if place in places]
        run.ops.append(made)
    return run
