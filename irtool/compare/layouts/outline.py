"""What shapes tensors of a run would have on one device, told by its own begin dump.

``step_parallel_begin`` is the network before anything is cut.  Its nodes are the forward operators
of the run: their shapes are whole.  A gradient has the shape of what it is the gradient of, a state
of the optimizer that of its parameter.  So a run that is cut can be put together without another
one of the same framework beside it; what nothing tells the shape of is left out.

The begin dump of a pipeline stage holds the operators of that stage, once a micro-batch.  Those of
the first micro-batch tell the shapes, with as many times the rows as there are micro-batches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias, cast

from irtool.compare.layouts.ranks import (
    is_accumulated,
    micro_of,
    node_ops,
    operand,
    parameter_of,
)
from irtool.compare.layouts.same_operators import HELPERS, MICRO_BATCH, same_operators
from irtool.compare.tensors.join import signature_shapes
from irtool.compare.tensors.model import Columns, Op, Shape, TensorRun
from irtool.compare.tensors.semantics import family, is_reshape
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.values import python_value
from irtool.operators.table import operator_of

_NO_KERNELS = frozenset(
    ("TupleGetItem", "MakeTuple", "Return", "call", "Depend", "Load", "UpdateState", "J", "Partial")
)
_PLACE = "-op0"


Place: TypeAlias = tuple[int, str]
"""Index of an operator, and the label of one of its tensors."""


class Whole(NamedTuple):
    """A tensor before it is cut: its shape, and the axis that micro-batches cut, if they do."""

    shape: Shape
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A run on one device that never ran: shapes without values.

    Attributes:
        run: operators of the lowest rank, each at its own index, with whole shapes where known.
        rows: axes that micro-batches cut, by place of a tensor in it.
        origins: forward tensors that a gradient is cut as, by operator and label: those of its
            forward operator with the same slices.
        pairs: indices of those whose shapes are known, to themselves.
        parameters: shapes of parameters and inputs by name.
        is_batch_whole: micro-batches are taken out of the whole batch, and ranks then cut each of
            them; else ranks cut the batch first.
    """

    run: TensorRun
    rows: Mapping[int, int]
    origins: Mapping[Place, Sequence[Place]]
    pairs: Mapping[int, int]
    parameters: Mapping[str, Shape]
    is_batch_whole: bool = True


@dataclass(slots=True)
class _Forward:
    """Operators of a begin dump, and which axis micro-batches cut, by place of a tensor."""

    run: TensorRun
    rows: dict[int, int | None] = field(default_factory=dict[int, int | None])


def takes_whole_batch(begin: Dump, lead: TensorRun) -> bool | None:
    """Whether micro-batches are taken out of the whole batch, not out of a rank's own rows.

    Args:
        begin: ``step_parallel_begin`` of the rank's pipeline stage.
        lead: the rank.

    Returns:
        None where the stage takes none out of anything.
    """
    local = {
        op.name: lead.columns.shapes[op.inputs[0]]
        for op in lead.ops
        if MICRO_BATCH in op.name and op.inputs
    }
    for graph in begin.graphs:
        for node in graph.nodes:
            if MICRO_BATCH in (node.scope or "") and operator_of(node.op).is_("cuts"):
                shape = local.get(_operator_name(node))
                if shape is not None:
                    return shape == signature_shapes(node)[0].get(0)
    return None


def outline_of(
    begin: Dump, lead: TensorRun, micros: int = 1, is_batch_whole: bool = True
) -> Outline:
    """The shapes that the operators of a rank have before anything is cut.

    Args:
        begin: ``step_parallel_begin`` of the run, or of the rank's pipeline stage.
        lead: the lowest rank, joined with its graph; of micro-batches what it does in the first.
        micros: number of micro-batches.
        is_batch_whole: whether they are taken out of the whole batch, not out of a rank's rows.
    """
    forward = _forward(begin, lead, micros)
    part = copy.copy(lead)
    part.ops = [op for op in lead.ops if op.phase == "forward" and op.node is not None]
    known = {b: forward.run.ops[a] for a, b in same_operators(forward.run, part).items()}
    parameters = _parameters(begin)
    shapes: dict[int, dict[str, Whole]] = {}
    columns = forward.run.columns
    for index, op in known.items():
        shapes[index] = {
            columns.labels[place]: Whole(columns.shapes[place], forward.rows.get(place))
            for place in op.tensors
        }
    places = {op.node.unique_id: index for index in known
              if (op := lead.ops[index]).node is not None and op.node.unique_id}  # fmt: skip
    makers = {node: op.index for node, op in node_ops(lead).items()}
    origins: dict[Place, list[Place]] = {}
    for op in lead.ops:
        if op.index in shapes or op.node is None or _is_helper(op):
            continue
        twin = places.get(op.node.forward_unique_id) if op.node.forward_unique_id else None
        by_label = dict(_of_parameters(op, lead, parameters))
        if twin is not None:
            of_twin = dict(_of_gradient(op, lead.ops[twin], shapes[twin], lead))
            by_label.update(of_twin)
            for label in of_twin:
                origins[op.index, label] = _same_slices(op, label, lead.ops[twin], lead)
        elif not by_label:
            source = operand(op.node, 0)
            given = None if source is None else shapes.get(makers.get(source[0], -1))
            full = None if given is None or source is None else given.get(f"output.{source[1]}")
            by_label = {} if full is None else dict(_of_reduction(op, full, lead))
        if by_label:
            shapes[op.index] = by_label
    run, rows = _with_shapes(lead, shapes)
    pairs = {index: index for index in shapes}
    return Outline(run, rows, origins, pairs, parameters, is_batch_whole)


def _same_slices(op: Op, label: str, twin: Op, lead: TensorRun) -> list[Place]:
    """Tensors of a forward operator whose slices have the shape of one of its gradient's."""
    columns = lead.columns
    shape = next(columns.shapes[p] for p in op.tensors if columns.labels[p] == label)
    return [(twin.index, columns.labels[p]) for p in twin.tensors if columns.shapes[p] == shape]


def _is_helper(op: Op) -> bool:
    """Whether the cut alone brings an operator in."""
    return family(op.type) == "collective" or any(word in op.name for word in HELPERS)


def _forward(begin: Dump, lead: TensorRun, micros: int) -> _Forward:
    """The nodes of the begin dump as operators of a dump, named as the executed ones."""
    run = copy.copy(lead)
    run.columns, run.ops, run.casts = Columns(), [], None
    forward = _Forward(run)
    for graph in begin.graphs:
        rows = _Rows(graph.nodes, micros)
        for node in graph.nodes:
            if node.op in _NO_KERNELS or not node.scope or not rows.is_first(node):
                continue
            if any(is_accumulated(parameter_of(node, n)) for n in range(len(node.inputs))):
                continue  # it changes while micro-batches add theirs up
            inputs, outputs = rows.wholes(node)
            given: list[int] = []
            made: list[int] = []
            name = _operator_name(node)
            op = Op(len(run.ops), name, node.op, "forward", given, made, node=node)
            for direction, places, tensors in (
                ("input", given, inputs), ("output", made, outputs),
            ):  # fmt: skip
                for number, tensor in tensors.items():
                    place = run.columns.add(f"{direction}.{number}", "", tensor.shape)
                    places.append(place)
                    forward.rows[place] = tensor.rows
            run.ops.append(op)
    return forward


def _operator_name(node: Node) -> str:
    """What the dump calls the first operator of a node's kind in its scope."""
    return f"{node.scope}/{node.op}".translate(str.maketrans("/\\. ", "____")) + _PLACE


class _Rows:
    """Along which axis the results of a graph's nodes hold the rows of a micro-batch.

    ``_MicroBatch`` cuts the first axis; from there on it is followed.  None: a result holds no rows
    of a batch, or nobody knows where; those are told apart by ``micros``, which has both.
    """

    def __init__(self, nodes: Sequence[Node], count: int) -> None:
        self.count = count
        self.axes: dict[Node, int | None] = {}
        self.micros: dict[Node, int] = {}
        for node in nodes if count > 1 else ():
            self._follow(node)

    def is_first(self, node: Node) -> bool:
        """Whether a node belongs to the first micro-batch, or to none."""
        return not self.micros.get(node, 0)

    def wholes(self, node: Node) -> tuple[dict[int, Whole], dict[int, Whole]]:
        """A node's operands and results with the rows of all micro-batches, by place."""
        inputs, outputs = signature_shapes(node)
        given: dict[int, Whole] = {}
        for place, shape in inputs.items():
            source = operand(node, place)
            tensor = Whole(shape) if source is None else self._whole(source[0], shape)
            if tensor is not None:
                given[place] = tensor
        made = {place: self._whole(node, shape) for place, shape in outputs.items()}
        return given, {place: tensor for place, tensor in made.items() if tensor is not None}

    def _whole(self, maker: Node, shape: Shape) -> Whole | None:
        """None where rows are somewhere, and nobody knows where."""
        if maker not in self.micros or not shape:
            return Whole(shape)
        axis = self.axes[maker]
        if axis is None or axis >= len(shape):
            return None
        return Whole((*shape[:axis], shape[axis] * self.count, *shape[axis + 1 :]), axis)

    def _follow(self, node: Node) -> None:
        makers = [operand(node, place) for place in range(len(node.inputs))]
        known = [maker[0] for maker in makers if maker is not None and maker[0] in self.micros]
        own = micro_of(node) if node.micro is not None else None
        if known:
            self.micros[node] = own if own is not None else self.micros[known[0]]
            self.axes[node] = self._axis(node, known[0])
        elif own is not None:
            self.micros[node], self.axes[node] = own, 0

    def _axis(self, node: Node, maker: Node) -> int | None:
        axis = self.axes[maker]
        given, results = signature_shapes(maker)[1].get(0), signature_shapes(node)[1]
        made = results.get(0)
        if axis is None or given is None or made is None or axis >= len(given):
            return None
        if family(node.op) == "view" and "Transpose" in node.op:
            order = node.inputs[1] if len(node.inputs) > 1 else None
            places = None if order is None or isinstance(order, Node) else python_value(order)  # type: ignore[arg-type]  # no node is a value
            if not isinstance(places, tuple | list):
                return None
            return list(cast("Sequence[object]", places)).index(axis)
        if axis < len(made) and given[axis] == made[axis]:
            return axis
        return 0 if axis == 0 and made and is_reshape(node.op) else None


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
) -> Iterator[tuple[str, Whole]]:
    """Shapes of an operator's parameters, and of what has the shape of one of them (a state)."""
    assert op.node is not None
    columns = lead.columns
    wholes: dict[Shape, set[Whole]] = {}
    for place in op.tensors:
        direction, _, text = columns.labels[place].partition(".")
        if direction == "input" and text.isdecimal():
            parameter = parameter_of(op.node, int(text))
            if is_accumulated(parameter):
                return
            full_shape = None if parameter is None else parameters.get(str(parameter.name))
            if full_shape is not None:
                wholes.setdefault(columns.shapes[place], set()).add(Whole(full_shape))
    if op.phase != "optimizer" and not op.node.is_backward:
        return
    yield from _by_slice(op, wholes, columns)


def _of_gradient(
    op: Op, twin: Op, by_label: Mapping[str, Whole], lead: TensorRun
) -> Iterator[tuple[str, Whole]]:
    """A gradient's tensors by those of its forward operator that have the same slices."""
    columns = lead.columns
    wholes: dict[Shape, set[Whole]] = {}
    for place in twin.tensors:
        tensor = by_label.get(columns.labels[place])
        if tensor is not None:
            wholes.setdefault(columns.shapes[place], set()).add(tensor)
    yield from _by_slice(op, wholes, columns)


def _by_slice(
    op: Op, wholes: Mapping[Shape, set[Whole]], columns: Columns
) -> Iterator[tuple[str, Whole]]:
    for place in op.tensors:
        candidates = wholes.get(columns.shapes[place], set[Whole]())
        if len(candidates) == 1:
            yield columns.labels[place], next(iter(candidates))


def _of_reduction(op: Op, full: Whole, lead: TensorRun) -> Iterator[tuple[str, Whole]]:
    """A sum over the leading axes, as the gradient of a bias is."""
    columns = lead.columns
    for place in op.tensors:
        label, shape = columns.labels[place], columns.shapes[place]
        if label == "input.0" and len(shape) == len(full.shape):
            yield label, full
        elif label == "output.0" and op.type in ("ReduceSum", "SumExt"):
            given = columns.shapes[op.inputs[0]]
            gone = len(given) - len(shape)
            if len(given) == len(full.shape) and shape == given[gone:]:
                rows = None if full.rows is None or full.rows < gone else full.rows - gone
                yield label, Whole(full.shape[gone:], rows)


def _with_shapes(
    lead: TensorRun, shapes: Mapping[int, Mapping[str, Whole]]
) -> tuple[TensorRun, dict[int, int]]:
    """The lead's operators with these shapes, and the axes that micro-batches cut, by place."""
    run = copy.copy(lead)
    run.columns, run.ops, run.casts = Columns(), [], None
    rows: dict[int, int] = {}
    for op in lead.ops:
        made = copy.copy(op)
        known = shapes.get(op.index, {})
        places: dict[int, int] = {}
        for place in op.tensors:
            label = lead.columns.labels[place]
            if label in known:
                full = known[label]
                places[place] = run.columns.add(label, lead.columns.dtypes[place], full.shape)
                if full.rows is not None:
                    rows[places[place]] = full.rows
        made.inputs = [places[place] for place in op.inputs if place in places]
        made.outputs = [places[place] for place in op.outputs if place in places]
        run.ops.append(made)
    return run, rows
