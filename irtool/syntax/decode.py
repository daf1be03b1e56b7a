"""Decodes single tokens of a record; equal texts give the same immutable object."""

from __future__ import annotations

import math
import re
from typing import Any

from irtool.ir.statement import GraphTarget, PrimitiveTarget
from irtool.ir.types import (
    LARGEST_SIZE,
    Abstract,
    NamedShape,
    RefType,
    ScalarType,
    Shape,
    TensorType,
)
from irtool.ir.values import (
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    Scalar,
    Sequence,
    SliceLiteral,
    String,
    SymbolicKey,
    Tagged,
    TensorLiteral,
    Word,
)
from irtool.syntax.part import Memo


def integer(text: str) -> int:
    """An integer that prints back as it stands.

    Args:
        text: of digits, with or without a sign.

    Raises:
        ValueError: it is no number, or would print otherwise (leading zeros).
    """
    value = int(text)
    if str(value) != text:
        raise ValueError(f"unusual number {text!r}")
    return value


def _scalar(text: str) -> Scalar:
    kind, _, rest = text.partition("(")
    return Scalar(kind, rest[:-1])


def _parameter(text: str) -> ParameterReference:
    number, underscore, label = text[5:].partition("_")
    return ParameterReference(integer(number) if number else None, label if underscore else None)


_FOREIGN = re.compile(r"\$\((@?)([^\s:]+?):(?:para([0-9]*)_)?(.*)\)\Z", re.DOTALL)


def _foreign(text: str) -> ForeignNode | ForeignParameter:
    match = _FOREIGN.match(text)
    assert match is not None, text
    mark, graph, number, name = match.groups()
    if number is None:
        return ForeignNode(graph, name, mark)
    return ForeignParameter(graph, integer(number) if number else None, name, mark)


_TENSOR = re.compile(
    r"Tensor\(shape=\[(.*?)\], dtype=([^,]*), value=(.*?)(?:, name=([^()]*))?\)\Z", re.DOTALL
)


def _tensor(text: str) -> TensorLiteral | Tagged:
    match = _TENSOR.match(text)
    if match is None:
        return Tagged("Tensor", text[6:])
    shape, dtype, data, name = match.groups()
    sizes = tuple(integer(size) for size in shape.split(", ")) if shape else ()
    if _is_absurd(sizes):
        return Tagged("Tensor", text[6:])
    return TensorLiteral(sizes, dtype, data, name)


def _slice(text: str) -> SliceLiteral:
    start, stop, step = text[6:-1].split(" : ")
    return SliceLiteral(Word(start), Word(stop), Word(step))


def _tagged(text: str) -> Tagged:
    position = min(i for i in map(text.find, "([{") if i >= 0)
    return Tagged(text[:position], text[position:])


def _shape(text: str) -> Shape | NamedShape:
    """A shape; with a size that no tensor can have it is one that is not known."""
    if text.startswith("x[const"):
        inside = text[len("x[const vector][") : -1]
        style = "x[const vector][%s]"
    else:
        position = text.index("(")
        inside = text[position + 1 : -1]
        style = text[:position] + "(%s)"
    sizes = tuple(integer(size) for size in inside.split(", ")) if inside else ()
    if _is_absurd(sizes) and style in ("(%s)", ", (%s)"):
        return NamedShape(text.removeprefix(", "))
    return Shape(sizes, style)


def _is_absurd(sizes: tuple[int, ...]) -> bool:
    """Whether no tensor can have these dimensions, unknown ones counted as 1."""
    return math.prod(max(size, 1) for size in sizes) > LARGEST_SIZE


def _tensor_type(text: str) -> TensorType:
    kind, bracket, element = text.partition("[")
    return TensorType(ScalarType(element[:-1]) if bracket else None, kind)


def _ref_type(text: str) -> RefType:
    target = text[4:-1]
    if target.endswith("]"):
        return RefType(_tensor_type(target))
    return RefType(TensorType(ScalarType(target[7:-1])), "()")


def _simple_abstract(text: str) -> Abstract:
    type, _, shape = text[1:-1].partition(", ")
    if shape == "NoShape":
        return Abstract(ScalarType(type), _NO_SHAPE)
    return Abstract(_tensor_type(type), _shape(f", {shape}"))


def _dimensions(text: str) -> tuple[Shape | NamedShape, ...]:
    return tuple(_shape(f"({piece})") for piece in text[1:-1].split("), ("))


def _named_shapes(text: str) -> tuple[NamedShape, ...]:
    return tuple(NamedShape(name) for name in text.split(", "))


def _nodes(text: str) -> tuple[NodeReference, ...]:
    known = MEMOS["node_reference"]
    return tuple(known[piece] for piece in text.split(", "))


def _bare_numbers(text: str) -> Sequence:
    return Sequence(tuple(Word(piece) for piece in text.split(", ")), is_list=True, is_bare=True)


_NO_SHAPE = NamedShape("NoShape")


def _text(text: str) -> str:
    return text


MEMOS: dict[str, Memo[Any]] = {
    "node_reference": Memo(lambda text: NodeReference(integer(text[1:]))),
    "parameter_reference": Memo(_parameter),
    "foreign_reference": Memo(_foreign),
    "graph_reference": Memo(lambda text: GraphReference(text[1:])),
    "scalar": Memo(_scalar),
    "string": Memo(lambda text: String(text[1:-1])),
    "word": Memo(Word),
    "tensor": Memo(_tensor),
    "slice": Memo(_slice),
    "bare_numbers": Memo(_bare_numbers),
    "symbolic_key": Memo(lambda text: SymbolicKey(text)),
    "tagged": Memo(_tagged),
    "shape": Memo(_shape),
    "named_shape": Memo(lambda text: NamedShape(text.removeprefix(", "))),
    "simple_abstract": Memo(_simple_abstract),
    "inner_dimensions": Memo(_dimensions),
    "inner_named_shapes": Memo(_named_shapes),
    "node_references": Memo(_nodes),
    "tensor_type": Memo(_tensor_type),
    "ref_type": Memo(_ref_type),
    "scalar_type": Memo(ScalarType),
    "graph_target": Memo(lambda text: GraphTarget(text[5:].removeprefix("@"))),
    "primitive_target": Memo(PrimitiveTarget),
    "text": Memo(_text),
    "integer": Memo(integer),
}
