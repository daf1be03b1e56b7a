"""Values as they stand in operands and attributes.

MindSpore prints the same value in two styles: *typed* (``I64(1)``, ``"text"``) for operands and
top-level attribute values, and *bare* (``1``, ``text``) inside tuples and lists of attributes and
everywhere before 2.1.  Each class keeps what the printer needs to write it back exactly;
:func:`python_value` gives the plain Python value that a person means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.limits import MAX_DIGITS

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)\Z")
_WORDS: dict[str, object] = {"true": True, "false": False, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A typed scalar: ``I64(3)``, ``Bool(1)``, ``F32(1e-07)``."""

    type: str
    text: str

    @property
    def value(self) -> bool | int | float | str:
        """The number meant; a scalar whose text is no number gives its text."""
        if self.type == "Bool":
            return self.text in ("1", "true", "True")
        return number(self.text)


@dataclass(frozen=True, slots=True)
class String:
    """A string in double quotes, printed raw: MindSpore escapes nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Word:
    """Text without quotes or type: ``4``, ``true``, ``NCHW``, ``Float32``, ``None``."""

    text: str

    @property
    def value(self) -> object:
        """The number, boolean, None or text that the word stands for."""
        if self.text in ("None", "null", "Null"):
            return None
        if self.text in _WORDS:
            return _WORDS[self.text]
        return number(self.text)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple ``(a, b)`` or list ``[a, b]``; a 1-tuple has no trailing comma.

    ``is_bare``: a list of numbers that was printed without brackets, as some attributes are.
    """

    items: tuple[Value, ...]
    is_list: bool = False
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Dictionary:
    """``{'key': value}``; ``quote`` is the quotation mark around keys, which varies by place."""

    entries: tuple[tuple[str, Value], ...]
    quote: str = "'"


@dataclass(frozen=True, slots=True)
class TensorLiteral:
    """``Tensor(shape=[2, 3], dtype=Float32, value=...)``; ``data`` is the printed payload."""

    shape: tuple[int, ...]
    dtype: str
    data: str
    name: str | None = None

    @property
    def values(self) -> tuple[float, ...] | None:
        """The elements in row-major order, or None where the dump elides or lacks them."""
        if "..." in self.data or "<" in self.data:
            return None
        words = re.sub(r"[\[\]\s]+", " ", self.data).split()
        try:
            return tuple(float({"True": "1", "False": "0"}.get(word, word)) for word in words)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class SliceLiteral:
    """``Slice[start : stop : step]``."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, slots=True)
class Tagged:
    """A kind with bracketed free text: ``UMonad[U]``, ``Tensor(F32)``, ``ClassType[class 'x']``."""

    tag: str
    body: str

    @property
    def text(self) -> str:
        """The text between the brackets."""
        return self.body[1:-1]


@dataclass(frozen=True, slots=True)
class SymbolicKey:
    """Key operand of EnvironGet and EnvironSet: ``[Key][Parameter]layer.weight``."""

    text: str


@dataclass(frozen=True, slots=True)
class PrimitiveLiteral:
    """A primitive used as a value.

    With a signature it prints as ``Name[key: value]``; a plain one prints only its blocks, not
    its name, and may even be the empty text (``name`` is then empty).
    """

    name: str
    arguments: Attributes | None = None
    instance_name: str | None = None
    attributes: Attributes | None = None


@dataclass(frozen=True, slots=True)
class NodeReference:
    """``%12``: a node of the same graph, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class ParameterReference:
    """``%para3_x``; the number identifies it, the label may differ between definition and use."""

    number: int | None
    label: str | None


@dataclass(frozen=True, slots=True)
class ForeignNode:
    """``$(@G:name)``: a node of an enclosing graph by debug name, which need not be unique."""

    graph: str
    name: str
    at: str = "@"


@dataclass(frozen=True, slots=True)
class ForeignParameter:
    """``$(@G:para3_x)``: a parameter of an enclosing graph."""

    graph: str
    number: int | None
    label: str
    at: str = "@"


@dataclass(frozen=True, slots=True)
class GraphReference:
    """``@G``: a subgraph used as a value."""

    name: str


class Attributes(MappingABC[str, object]):
    """An attribute block, in printed order; as a mapping it gives plain Python values.

    ``label`` is what stands before the braces (``primitive_attrs``, or nothing in 1.0/1.1 and
    around strategies); ``separator`` stands between key and value; ``spaced`` blocks have a blank
    inside each brace.
    """

    __slots__ = ("entries", "label", "separator", "spaced")
    entries: tuple[tuple[str, Value], ...]
    label: str
    separator: str
    spaced: bool

    def __init__(
        self,
        entries: tuple[tuple[str, Value], ...],
        label: str = "",
        separator: str = ": ",
        spaced: bool = False,
    ) -> None:
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "separator", separator)
        object.__setattr__(self, "spaced", spaced)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Attributes is immutable; cannot set {name!r}")

    def __getitem__(self, key: str) -> object:
        return python_value(self.literal(key))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for key, _ in self.entries))

    def __len__(self) -> int:
        return len(dict(self.entries))

    def __contains__(self, key: object) -> bool:
        return any(key == name for name, _ in self.entries)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Attributes):
            return self._key() == other._key()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Attributes({dict(self)!r})"

    def __reduce__(self) -> tuple[type[Attributes], tuple[object, ...]]:
        return Attributes, self._key()

    def _key(self) -> tuple[object, ...]:
        return (self.entries, self.label, self.separator, self.spaced)

    def literal(self, key: str) -> Value:
        """The value as printed (a :class:`Scalar`, :class:`Sequence`, …).

        Args:
            key: the attribute's name.

        Raises:
            KeyError: there is no such attribute.
        """
        for name, value in self.entries:
            if name == key:
                return value
        raise KeyError(key)


Reference: TypeAlias = (
    NodeReference | ParameterReference | ForeignNode | ForeignParameter | GraphReference
)
Value: TypeAlias = (
    Scalar
    | String
    | Word
    | Sequence
    | Dictionary
    | TensorLiteral
    | SliceLiteral
    | Tagged
    | SymbolicKey
    | PrimitiveLiteral
    | Reference
)


def number(text: str) -> int | float | str:
    """``text`` as an int or float where it is one, else unchanged.

    Args:
        text: from an operand, an attribute or a table.
    """
    if not _NUMBER.match(text):
        return text
    if len(text) > MAX_DIGITS:
        return float(text)
    try:
        return int(text)
    except ValueError:
        return float(text)


def python_value(value: Value) -> object:
    """The plain Python value of a literal; references and literals without one give themselves.

    Args:
        value: of an operand or attribute.
    """
    match value:
        case Scalar() | Word():
            return value.value
        case String():
            return value.text
        case Sequence():
            items = [python_value(item) for item in value.items]
            return items if value.is_list else tuple(items)
        case Dictionary():
            return {key: python_value(item) for key, item in value.entries}
        case SliceLiteral():
            return slice(
                python_value(value.start), python_value(value.stop), python_value(value.step)
            )
        case _:
            return value
