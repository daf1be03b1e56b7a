"""Sizes for unknown dimensions: a dump with symbols gets numbers, so that bytes can be counted.

MindSpore prints symbols beside types (``S:[s4<[8,inf]|8N>, 4, 64]``): their range, what divides
them, and how some follow from others (``=s4/4``).  Without numbers for those that nothing follows
from, sizes stay unknown; they are never taken to be 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import Parameter
from irtool.ir.types import Abstract, AnyShape, SequenceShape, Shape, Signature

_SYMBOL = re.compile(r"(s\d+)<\[(-?\w+), ?(\w+)\]((?:\|[^|>=]*)*?)(?:\|?=([^>]*))?>")
_DIVISOR = re.compile(r"\|(\d+)N(?:\+(\d+))?")
_TERM = re.compile(r"\s*(s\d+|\d+|[-+*/()])")


class BindingError(ValueError):
    """A size that a dimension cannot have, or a name that means no dimension."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An unknown dimension: its range, what divides it, and how it follows from others.

    ``divisor`` divides it after ``remainder`` is taken off; where ``follows`` is None, its size
    has to be given.  ``places`` are the inputs that have it: name and dimension, ``inputs0[0]``.
    """

    name: str
    least: int
    most: int | None
    divisor: int
    remainder: int
    follows: str | None
    places: tuple[str, ...] = ()

    def check(self, size: int) -> None:
        """Raise BindingError where the dimension cannot be ``size``."""
        if size < max(0, self.least) or (self.most is not None and size > self.most):
            most = "any number" if self.most is None else self.most
            raise BindingError(f"{self.name} is from {max(0, self.least)} to {most}, not {size}")
        if self.divisor > 1 and size % self.divisor != self.remainder % self.divisor:
            of = f" and {self.remainder}" if self.remainder else ""
            raise BindingError(f"{self.name} is a multiple of {self.divisor}{of}, not {size}")


def symbols(dump: Dump) -> tuple[Symbol, ...]:
    """Every symbol of a dump, in order of first appearance.

    Args:
        dump: with the symbolic lines that dynamic shapes have; none without them.
    """
    places: dict[str, list[str]] = {}
    by_name: dict[str, Symbol] = {}
    for item in dump.parameters:
        if not item.symbolic:
            continue
        for dimension, text in enumerate(_split(item.symbolic.strip().strip(":").strip("[] "))):
            match = _SYMBOL.search(text)
            if match:
                places.setdefault(match[1], []).append(f"{item.name}[{dimension}]")
    for text in _texts(dump):
        for match in _SYMBOL.finditer(text):
            by_name.setdefault(match[1], _symbol(match))
    return tuple(
        replace(symbol, places=tuple(places.get(name, ()))) for name, symbol in by_name.items()
    )


def has_unknown_sizes(dump: Dump) -> bool:
    """Whether an input of the network has a dimension that the dump does not know."""
    return any(
        dimension < 0
        for item in dump.parameters
        if item.type is not None
        for _, dimensions in item.type.tensors
        for dimension in dimensions
    )


def demanded(dump: Dump) -> tuple[Symbol, ...]:
    """The symbols that have to be given: those of inputs that follow from nothing.

    Args:
        dump: with the symbolic lines that dynamic shapes have.
    """
    return tuple(one for one in symbols(dump) if one.follows is None and one.places)


def bound(dump: Dump, sizes: Mapping[str, int]) -> Dump:
    """The dump with numbers for its symbols, wherever they are known then.

    Args:
        dump: a dump with symbolic shapes.
        sizes: numbers by symbol (``s4``) or by input and dimension (``inputs0[0]``).

    Raises:
        BindingError: a name means nothing here, or a size is outside of the symbol's range.
    """
    table = {symbol.name: symbol for symbol in symbols(dump)}
    by_place = {place: symbol.name for symbol in table.values() for place in symbol.places}
    values: dict[str, int] = {}
    for name, size in sizes.items():
        symbol = table.get(by_place.get(name, name))
        if symbol is None:
            names = [*table, *by_place]
            there = ", ".join(names[:8]) or "none: this dump prints no symbols"
            raise BindingError(f"{name} is no unknown dimension (there are: {there})")
        symbol.check(size)
        values[symbol.name] = size
    _resolve(table, values)
    items = tuple(_bound_item(item, values) for item in dump.items)
    return replace(dump, items=items)


def _resolve(table: Mapping[str, Symbol], values: dict[str, int]) -> None:
    """Work out what follows from the given sizes, until nothing more does."""
    for _ in range(len(table)):
        before = len(values)
        for symbol in table.values():
            if symbol.follows and symbol.name not in values:
                size = _evaluate(symbol.follows, values)
                if size is not None:
                    values[symbol.name] = size
        if len(values) == before:
            return


def _texts(dump: Dump) -> Iterator[str]:
    for item in dump.parameters:
        if item.symbolic:
            yield item.symbolic
    for node in dump.nodes():
        for line in node.text_signatures:
            if line.kind == "symbolic":
                yield from line.inputs
                yield from line.outputs or ()


def _symbol(match: re.Match[str]) -> Symbol:
    least = int(match[2]) if re.fullmatch(r"-?\d+", match[2]) else 0
    most = int(match[3]) if match[3].isdecimal() else None
    divisor = _DIVISOR.search(match[4] or "")
    return Symbol(
        match[1],
        least,
        most,
        int(divisor[1]) if divisor else 1,
        int(divisor[2] or 0) if divisor else 0,
        (match[5] or "").strip() or None,
    )


def _split(text: str) -> list[str]:
    """Parts of a symbolic shape at its own commas: ``s4<[8,inf]|8N>, 4, 64``."""
    parts: list[str] = []
    depth = start = 0
    for place, char in enumerate(text):
        depth += char in "<[("
        depth -= char in ">])"
        if char == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return parts


def _evaluate(text: str, values: Mapping[str, int]) -> int | None:
    """A relation of symbols (``s4/4``, ``s5*4``) as a number; None where a part is unknown."""
    tokens = _TERM.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        return None
    number, rest = _sum(tokens, values)
    return int(number) if number is not None and not rest and number.denominator == 1 else None


def _sum(tokens: list[str], values: Mapping[str, int]) -> tuple[Fraction | None, list[str]]:
    total, rest = _product(tokens, values)
    while rest and rest[0] in "+-":
        sign = 1 if rest[0] == "+" else -1
        other, rest = _product(rest[1:], values)
        total = None if total is None or other is None else total + sign * other
    return total, rest


def _product(tokens: list[str], values: Mapping[str, int]) -> tuple[Fraction | None, list[str]]:
    total, rest = _atom(tokens, values)
    while rest and rest[0] in "*/":
        divide = rest[0] == "/"
        other, rest = _atom(rest[1:], values)
        if total is None or other is None or (divide and not other):
            total = None
        else:
            total = total / other if divide else total * other
    return total, rest


def _atom(tokens: list[str], values: Mapping[str, int]) -> tuple[Fraction | None, list[str]]:
    if not tokens:
        return None, []
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        number, rest = _sum(rest, values)
        return number, rest[1:]
    if first == "-":
        number, rest = _atom(rest, values)
        return None if number is None else -number, rest
    if first.isdecimal():
        return Fraction(int(first)), rest
    size = values.get(first)
    return None if size is None else Fraction(size), rest


# -- the same dump with numbers -------------------------------------------------------------------


def _bound_item(item: Item | Graph, values: Mapping[str, int]) -> Item | Graph:
    if isinstance(item, Graph):
        items = tuple(_bound_item(one, values) for one in item.items)
        return replace(item, items=items, dump=None)  # type: ignore[arg-type]  # of items only
    if isinstance(item, Parameter):
        if item.type is None or item.symbolic is None:
            return item
        return replace(item, type=_with_sizes(item.type, item.symbolic, values))
    return _bound_node(item, values) if isinstance(item, Node) else item


def _bound_node(node: Node, values: Mapping[str, int]) -> Node:
    line = next((one for one in node.text_signatures if one.kind == "symbolic"), None)
    old = node.signature
    if line is None or old is None:
        return node if node.graph is None else replace(node, graph=None)
    inputs = _all_with_sizes(old.inputs, line.inputs, values)
    outputs = old.outputs
    if outputs is not None and line.outputs is not None:
        outputs = _all_with_sizes(outputs, line.outputs, values)
    made = Signature(inputs, outputs, old.lead, old.arrow, old.null)
    return replace(node, signature=made, graph=None)


def _all_with_sizes(
    types: tuple[Abstract | None, ...], texts: tuple[str, ...], values: Mapping[str, int]
) -> tuple[Abstract | None, ...]:
    if len(types) != len(texts):
        return types
    return tuple(
        None if type is None else _with_sizes(type, text, values)
        for type, text in zip(types, texts, strict=True)
    )


def _with_sizes(type: Abstract, text: str, values: Mapping[str, int]) -> Abstract:
    """A type with numbers for the dimensions whose symbols are known."""
    if type.shape is None or not re.search(r"\bs\d+", text):
        return type
    shape = _shape_with_sizes(type.shape, text.partition(":")[2] or text, values)
    return replace(type, shape=shape)


def _shape_with_sizes(shape: AnyShape, text: str, values: Mapping[str, int]) -> AnyShape:
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    parts = _split(inner)
    if isinstance(shape, SequenceShape):
        if len(parts) != len(shape.items):
            return shape
        items = tuple(
            _shape_with_sizes(one, part, values)
            for one, part in zip(shape.items, parts, strict=True)
        )
        return replace(shape, items=items)
    if not isinstance(shape, Shape) or len(parts) != len(shape.dimensions):
        return shape
    dimensions = tuple(
        _size(dimension, part, values)
        for dimension, part in zip(shape.dimensions, parts, strict=True)
    )
    return replace(shape, dimensions=dimensions)


def _size(dimension: int, part: str, values: Mapping[str, int]) -> int:
    if dimension >= 0:
        return dimension
    match = re.match(r"s\d+", part)
    return values.get(match[0], dimension) if match else dimension
