"""Nodes of a dump as the operator calls that sharding rules judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source, Unresolved
from irtool.ir.types import (
    Abstract,
    AnyShape,
    DynamicSequenceType,
    RefType,
    ScalarType,
    SequenceShape,
    SequenceType,
    Shape,
    TensorType,
    Type,
    element_type,
)
from irtool.ir.values import Sequence as SequenceLiteral
from irtool.ir.values import Tagged, TensorLiteral, Value, python_value
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.layout import DYNAMIC
from irtool.operators.table import operator_of
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.symbols import Sizes, fitting, sizes_of_inputs, sizes_of_output

MONADS = ("UMonad", "IOMonad")


@dataclass(frozen=True, slots=True)
class Slots:
    """Which tensor of a call each operand of its node is.

    ``first`` and ``count``: by position of an operand, the index of its first tensor and how many
    tensors it holds (none: a constant, a monad).
    """

    first: tuple[int, ...]
    count: tuple[int, ...]

    def tensor(self, position: int, item: int = 0) -> int | None:
        """Index of a tensor of the operand at ``position``, or None."""
        if 0 <= position < len(self.first) and 0 <= item < self.count[position]:
            return self.first[position] + item
        return None

    def operand(self, tensor: int) -> int | None:
        """Position of the operand that a tensor belongs to."""
        for position, (first, count) in enumerate(zip(self.first, self.count, strict=True)):
            if first <= tensor < first + count:
                return position
        return None


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node as a call. ``missing``: why its shapes are not all known ("": they are)."""

    node: Node
    call: OperatorCall
    slots: Slots
    missing: str = ""


def call_of(network: Network, node: Node) -> NodeCall:
    """A node's operands, results and attributes as the call that a sharding rule judges.

    Args:
        network: that resolves the node's operands.
        node: that applies a primitive.

    Returns:
        The call; its ``missing`` says why shapes are not all known, which raises nothing.
    """
    sources = network.inputs[node]
    types = node.input_types
    symbols = sizes_of_inputs(node)
    operands: list[Operand] = []
    first: list[int] = []
    count: list[int] = []
    tensors = 0
    missing = "" if node.signature is not None else "the dump does not print its types"
    for position, source in enumerate(sources):
        abstract = types[position] if position < len(types) else None
        if _is_monad(source, abstract):
            first.append(tensors)
            count.append(0)
            continue
        value = node.operands[position]
        operand = _operand(network, node, source, value, abstract)
        if operand is None:
            missing = missing or f"the type of operand {position} is not known"
            operand = Operand()
        known = symbols[position] if position < len(symbols) else ()
        operand = _with_sizes(operand, known)
        size = len(tuple(operand.tensors))
        operands.append(operand)
        first.append(tensors)
        count.append(size)
        tensors += size
    outputs = _outputs(node)
    if not outputs:
        missing = missing or "the type of its result is not known"
    call = OperatorCall(
        op=primitive(node),
        inputs=tuple(operands),
        outputs=outputs,
        attributes=node.primitive_attributes or {},
        instance_name=node.instance_name or "",
    )
    return NodeCall(node, call, Slots(tuple(first), tuple(count)), missing)


def _is_monad(source: Source, abstract: Abstract | None) -> bool:
    if isinstance(source, Tagged) and source.tag in MONADS:
        return True
    type = abstract.type if abstract else None
    return isinstance(type, ScalarType) and type.name in MONADS


def _operand(
    network: Network, node: Node, source: Source, value: Value, abstract: Abstract | None
) -> Operand | None:
    """One operand, or None where its type is needed and not known."""
    if isinstance(source, (Node, GraphParameter, Graph, Unresolved)):
        if isinstance(source, Node) and primitive(source) == "TensorToScalar":
            return Operand()
        if abstract is None:
            return None
        if isinstance(source, Node) and _gives_shape(node, source):
            return Operand()
        operand = computed(abstract.type, abstract.shape)
        if operand.shape is None:
            return operand
        return replace(operand, is_parameter=True) if _is_weight(network, source) else operand
    return _constant(value, abstract)


def _gives_shape(node: Node, source: Node) -> bool:
    """Whether an operand is a computed shape, which no strategy is about."""
    takes_shape = operator_of(primitive(node)).is_("shape_taker")
    return takes_shape and primitive(source) in ("MakeTuple", "Shape")


def _is_weight(network: Network, source: Source) -> bool:
    held: Source | None = source
    if isinstance(source, Node) and primitive(source) == "Load":
        held = network.first(source)
    return (
        isinstance(held, GraphParameter)
        and held.declaration is not None
        and held.declaration.is_weight
    )


def _constant(value: Value, abstract: Abstract | None) -> Operand:
    if isinstance(value, TensorLiteral):
        return Operand(value.shape, value.dtype, value=value, is_constant=True)
    if isinstance(value, SequenceLiteral) and value.items:
        parts = tuple(_constant(item, None) for item in value.items)
        if all(part.shape is not None for part in parts):
            return Operand(items=parts)
    dimensions = abstract.dimensions if abstract is not None else None
    if dimensions is not None and abstract is not None:
        return Operand(dimensions, abstract.dtype or "", value=value, is_constant=True)
    return Operand(value=python_value(value), is_constant=True)


@lru_cache(maxsize=4096)
def computed(type: Type, shape: AnyShape | None) -> Operand:
    """A value computed in the network: tensors, tuples of them, or numbers (shape ``()``).

    A tuple of numbers counts as one tensor of that length.

    Args:
        type: of the value.
        shape: its whole shape, as the dump prints it; None or of another kind than the type: not
            known.

    Returns:
        An operand with shape and element type; a tuple of unknown length has the shape ``(-1,)``.
    """
    if isinstance(type, (TensorType, RefType)) and isinstance(shape, Shape):
        return Operand(shape.dimensions, element_type(type) or "")
    if isinstance(type, SequenceType):
        elements = type.elements
        shapes: Sequence[AnyShape | None] = (
            shape.items if isinstance(shape, SequenceShape) else [None] * len(elements)
        )
        if not elements or isinstance(elements[0], ScalarType):
            return Operand((type.length,))
        parts = zip(elements, shapes, strict=False)
        return Operand(items=tuple(computed(element, part) for element, part in parts))
    if isinstance(type, DynamicSequenceType):
        return Operand((DYNAMIC,))
    return Operand((), element_type(type) or "")


def _with_sizes(operand: Operand, known: Sequence[Sizes]) -> Operand:
    """An operand with what the dump says of its dynamic sizes."""
    if not known:
        return operand
    if operand.items:
        tensors = enumerate(operand.items)
        return replace(
            operand, items=tuple(_with_sizes_of(item, known, index) for index, item in tensors)
        )
    return _with_sizes_of(operand, known, 0)


def _with_sizes_of(tensor: Operand, known: Sequence[Sizes], index: int) -> Operand:
    sizes = fitting(known, index, tensor.shape) if tensor.shape else None
    if sizes is None:
        return tensor
    return replace(tensor, divisors=sizes.divisors, symbols=sizes.symbols)


def _outputs(node: Node) -> tuple[Operand, ...]:
    abstract = node.output_type
    if abstract is None:
        return ()
    operand = _with_sizes(computed(abstract.type, abstract.shape), sizes_of_output(node))
    return operand.items or (operand,)


def literal_numbers(value: object) -> tuple[int, ...] | None:
    """A tuple of whole numbers, or None.

    Args:
        value: of a constant, in Python's terms; a list counts as a tuple.

    Returns:
        None of anything else, and of a tuple with one item that is no int.
    """
    if not isinstance(value, (tuple, list)):
        return None
    items = list(cast("Sequence[object]", value))
    if all(isinstance(item, int) for item in items):
        return tuple(cast("list[int]", items))
    return None
