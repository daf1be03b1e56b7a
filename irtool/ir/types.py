"""Types and shapes of operands and outputs, as printed between ``<`` and ``>``.

Shapes are in elements; ``-1`` is an unknown dimension, ``(-2)`` an unknown rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from irtool.ir.dataclass import dataclass

BITS = {
    "Bool": 8, "Int4": 4, "Int8": 8, "UInt8": 8, "Int16": 16, "UInt16": 16, "Int32": 32,
    "UInt32": 32, "Int64": 64, "UInt64": 64, "Float16": 16, "BFloat16": 16, "Float32": 32,
    "Float64": 64, "Complex64": 64, "Complex128": 128, "Float8E4M3FN": 8, "Float8E5M2": 8,
    "HiFloat8": 8,
}  # fmt: skip
"""Bits of one element of each scalar type."""
LARGEST_SIZE = (1 << 63) - 1
"""Most elements of a dimension, and most bytes of a tensor: MindSpore counts in 64 bits."""
MOST_UNFOLDED = 100_000
"""Items of a tuple's type that are unfolded at most: ``Int64*300000000`` takes no more memory."""
_MOST_SHOWN = 1000
"""Equal neighbours of a tuple's type that are written one by one for people."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A type without arguments: ``Float32``, ``Int64``, ``String``, ``Func``, ``UMonad``."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorType:
    """``Tensor[Float32]``; ``kind`` may also be ``Any(Tensor)``, ``Undetermined``."""

    element: Type | None
    kind: str = "Tensor"


@dataclass(frozen=True, slots=True)
class RefType:
    """``Ref[Tensor[Float32]]``: a reference to a parameter or to a view of one."""

    target: Type
    brackets: str = "[]"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """``Tuple[Tensor[Float32]*2,Int64]``: runs of equal neighbours are kept folded."""

    kind: str
    runs: tuple[tuple[Type, int | None], ...] | None

    @property
    def elements(self) -> tuple[Type, ...]:
        """The element types, unfolded, but no more than :data:`MOST_UNFOLDED`."""
        return tuple(islice(unfold(self.runs or ()), MOST_UNFOLDED))

    @property
    def length(self) -> int:
        """How many elements there are."""
        return sum(count or 1 for _, count in self.runs or ())


@dataclass(frozen=True, slots=True)
class DynamicSequenceType:
    """``Dynamic Tuple[element: Tensor[Float32]]``: of unknown length."""

    kind: str
    element: Type


@dataclass(frozen=True, slots=True)
class FunctionType:
    """The type of a function: ``Func[(Int64), Float32]``."""

    arguments: tuple[Type, ...]
    result: Type | None


@dataclass(frozen=True, slots=True)
class DictionaryType:
    """The type of a dictionary: ``Dictionary[[a,b,],[Int64,Float32]]``."""

    keys: tuple[str, ...]
    runs: tuple[tuple[Type, int | None], ...]

    @property
    def values(self) -> tuple[Type, ...]:
        """The value types, unfolded, but no more than :data:`MOST_UNFOLDED`."""
        return tuple(islice(unfold(self.runs), MOST_UNFOLDED))


@dataclass(frozen=True, slots=True)
class OtherType:
    """Any other type with arguments: ``COOTensor[…]``, ``Slice[…]``, ``MapTensor[…]``, ….

    ``body`` is the text from the opening bracket to the closing one.
    """

    name: str
    body: str


Type: TypeAlias = (
    ScalarType
    | TensorType
    | RefType
    | SequenceType
    | DynamicSequenceType
    | FunctionType
    | DictionaryType
    | OtherType
)


@dataclass(frozen=True, slots=True)
class Shape:
    """``(64, 32)``; ``style`` is the spelling around it, which changed up to 1.4."""

    dimensions: tuple[int, ...]
    style: str = ", (%s)"

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return all(dimension >= 0 for dimension in self.dimensions)

    @property
    def elements(self) -> int | None:
        """Number of elements, None where a dimension is unknown."""
        return math.prod(self.dimensions) if self.is_static else None


@dataclass(frozen=True, slots=True)
class NamedShape:
    """A shape that is known by name alone: ``NoShape`` or ``DynamicSequenceShape``."""

    name: str


@dataclass(frozen=True, slots=True)
class SequenceShape:
    """``TupleShape((2, 2), NoShape)``, ``ListShape[(2), (3)]``."""

    kind: str
    items: tuple[AnyShape, ...]
    brackets: str = "()"


AnyShape: TypeAlias = Shape | NamedShape | SequenceShape


@dataclass(frozen=True, slots=True)
class Abstract:
    """What the compiler knows of one operand or output: ``<type, shape, …>``.

    ``ref_key`` names the parameter that a reference points at (``ref_key_mark`` is the colon that
    1.8 to 2.2 print before it).  ``notes`` are the flags in printed order: ``value=...`` for a
    constant, ``is_parameter``, ``is_view_input``, ``elements_use_flags={…}``, ….
    """

    type: Type
    shape: AnyShape | None = None
    notes: tuple[str, ...] = ()
    ref_key: str | None = None
    ref_key_mark: str = ""

    @property
    def is_constant(self) -> bool:
        """Whether the compiler knows the tensor's value."""
        return "value=..." in self.notes

    @property
    def is_parameter(self) -> bool:
        """Whether this is marked as a network parameter (2.7.0 and later)."""
        return "is_parameter" in self.notes

    @property
    def dtype(self) -> str | None:
        """Element type of a tensor or reference, name of a scalar type, else None."""
        return element_type(self.type)

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """Dimensions of a tensor; None where it has no shape of its own."""
        return self.shape.dimensions if isinstance(self.shape, Shape) else None

    @property
    def tensors(self) -> tuple[tuple[str | None, tuple[int, ...]], ...]:
        """Each tensor in it as (element type, dimensions); tuples are flattened."""
        return tuple(self.each_tensor())

    def each_tensor(self) -> Iterator[tuple[str | None, tuple[int, ...]]]:
        """Each tensor as in :attr:`tensors`, one after the other, for who need not see all."""
        return _tensors(self.type, self.shape)

    @property
    def size(self) -> int | None:
        """Bytes of all tensors in it; None where a dimension or type is unknown, or absurd."""
        total = 0
        for dtype, dimensions in self.tensors:
            bits = BITS.get(dtype or "")
            if bits is None or any(dimension < 0 for dimension in dimensions):
                return None
            total += (math.prod(dimensions) * bits + 7) // 8
        return total if total <= LARGEST_SIZE else None

    def short(self) -> str:
        """One word for people: ``Float32[256,784]``, ``Tuple[Float32[2],Int64]``."""
        return _short(self.type, self.shape)


def unfold(runs: tuple[tuple[Type, int | None], ...]) -> Iterator[Type]:
    """Every type of a list whose runs of equal neighbours are folded, one after the other."""
    return (type for type, count in runs for _ in range(count or 1))


def element_type(type: Type) -> str | None:
    """Name of the scalar type inside a tensor or reference; a scalar type's own name.

    Args:
        type: of a value.
    """
    match type:
        case ScalarType():
            return type.name
        case TensorType():
            return element_type(type.element) if type.element else None
        case RefType():
            return element_type(type.target)
        case _:
            return None


def _tensors(type: Type, shape: AnyShape | None) -> Iterator[tuple[str | None, tuple[int, ...]]]:
    if isinstance(type, SequenceType) and isinstance(shape, SequenceShape):
        for inner, own in zip(unfold(type.runs or ()), shape.items, strict=False):
            yield from _tensors(inner, own)
    elif isinstance(type, TensorType | RefType) and isinstance(shape, Shape):
        yield element_type(type), shape.dimensions


def _short(type: Type, shape: AnyShape | None) -> str:
    if isinstance(type, SequenceType) and type.runs is not None:
        shapes = iter(shape.items if isinstance(shape, SequenceShape) else ())
        inner: list[str] = []
        for element, count in type.runs:
            shown = min(count or 1, _MOST_SHOWN)
            inner += (_short(element, next(shapes, None)) for _ in range(shown))
            if count is not None and count > shown:
                inner.append(f"{_short(element, None)}*{count - shown}")
        return f"{type.kind}[{','.join(inner)}]"
    name = element_type(type) or getattr(type, "kind", None) or getattr(type, "name", "Func")
    if isinstance(shape, Shape):
        return f"{name}[{','.join(map(str, shape.dimensions))}]"
    return str(name)


@dataclass(frozen=True, slots=True)
class Signature:
    """A type line: what each operand is and what comes out.

    ``outputs`` is None where the arrow is missing (Return).  ``lead`` is the text up to the first
    parenthesis, ``arrow`` what stands between the two lists.  An entry is None for ``<null>``.
    """

    inputs: tuple[Abstract | None, ...]
    outputs: tuple[Abstract | None, ...] | None
    lead: str = "      : "
    arrow: str = " -> "
    null: str = "<null>"


@dataclass(frozen=True, slots=True)
class TextSignature:
    """A second line of the look of a type line: symbolic shapes, kernel formats or object kinds.

    ``kind`` is ``symbolic``, ``kernel``, ``objects`` or ``scope``; entries are kept as printed.
    """

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None
    lead: str = "      : "
    arrow: str = " -> "
