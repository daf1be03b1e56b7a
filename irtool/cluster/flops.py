"""Floating-point operations of operators, from the shapes of their tensors.

How many an operator does is data: a line of ``flops.rules`` beside this module, or of a rules file
that ``irtool.toml`` names, so that custom operators can be counted too.  An operator without a
line, or with a tensor of unknown shape, gives None: it is counted as unknown, never as 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from typing import Any

from lark import Token, Tree
from lark.exceptions import LarkError

from irtool.cluster.launch_order import LAUNCHES_NOTHING
from irtool.ir.node import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.types import BITS, Abstract, ScalarType
from irtool.ir.values import python_value
from irtool.operators.notation import rule_parser

Shape = tuple[int, ...]
Size = Callable[["Tensors"], Fraction | None]
"""What an expression of a line stands for; None where it cannot be known."""

_QUANTITY = re.compile(r"(input|output)(\d*)\Z|inputs\Z|outputs\Z|contracted\Z|keys\Z|head\Z")


class FlopsError(ValueError):
    """A line that makes no sense; ``line`` and ``column`` count from 1, 0 where unknown."""

    def __init__(self, message: str, source: str = "", line: int = 0, column: int = 0) -> None:
        self.message = message
        self.line = line
        self.column = column
        super().__init__(f"{self.place(source)}: {message}" if source else message)

    def place(self, path: str) -> str:
        """``FILE:LINE:COLUMN``."""
        return f"{path}:{self.line}:{self.column}" if self.line else path


@dataclass(frozen=True, slots=True)
class Tensors:
    """Shapes of one operator call.

    ``inputs`` has an entry an operand: its tensors, none for what is no tensor, several for a
    tuple of them.  ``attribute`` finds an attribute by name, or a constant operand by its place.
    """

    inputs: Sequence[Sequence[Shape]]
    outputs: Sequence[Shape]
    attribute: Callable[[str | int], object] = lambda key: None


@dataclass(frozen=True, slots=True)
class Flops:
    """How many operations some nodes do; ``unknown`` counts, by operator, those nobody knows."""

    operations: int
    unknown: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Whether every operator was counted."""
        return not self.unknown


def flops(node: Node) -> int | None:
    """Operations of one node: a multiplication and an addition are two.

    Returns:
        0 for what moves, orders or communicates; None for an operator that no line describes, or
        with a tensor of unknown shape.
    """
    tensors = Tensors(
        [_shapes(item) for item in node.input_types], _shapes(node.output_type), _attributes(node)
    )
    return flops_of(node.op, tensors)


def flops_of(op: str, tensors: Tensors) -> int | None:
    """Operations of an operator on tensors of given shapes (slices, say); None if unknown."""
    rule = None if op in LAUNCHES_NOTHING else _extra.get(op) or _shipped().get(op)
    if rule is None:
        nothing = op in LAUNCHES_NOTHING or op in COMMUNICATION or op in VIRTUAL or op in PLUMBING
        return 0 if nothing else None
    count = rule(tensors)
    return None if count is None else max(0, math.floor(count))


def total_flops(nodes: Iterable[Node]) -> Flops:
    """Operations of many nodes, and which operators could not be counted."""
    total = 0
    unknown: dict[str, int] = {}
    for node in nodes:
        count = flops(node)
        if count is None:
            unknown[node.op] = unknown.get(node.op, 0) + 1
        else:
            total += count
    return Flops(total, unknown)


# -- lines ---------------------------------------------------------------------------------------

_extra: dict[str, Size] = {}


def load_flops(text: str, source: str = "") -> tuple[str, ...]:
    """Add the ``flops`` lines of a rules text; they go before those of irtool.

    Returns:
        The operators that they are for.

    Raises:
        FlopsError: a line uses a word that means nothing.
    """
    added = _read(text, source)
    _extra.update(added)
    return tuple(added)


def unload_flops() -> None:
    """Forget what :func:`load_flops` added."""
    _extra.clear()


def counted_operators() -> tuple[str, ...]:
    """Every operator with a line, in alphabetical order."""
    return tuple(sorted({**_shipped(), **_extra}))


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Size]:
    name = "flops.rules"
    text = (resources.files(__package__ or "irtool.cluster") / name).read_text(encoding="utf-8")
    return _read(text, name)


def _read(text: str, source: str) -> dict[str, Size]:
    try:
        tree: Tree[Token] = rule_parser().parse(text)  # pyright: ignore[reportUnknownMemberType] # lark
    except LarkError as error:
        raise FlopsError(str(error), source) from error
    found: dict[str, Size] = {}
    for line in tree.children:
        if isinstance(line, Tree) and line.data == "flops":
            names, expression = line.children
            size = _size(expression, source)
            for name in names.children if isinstance(names, Tree) else ():
                found[str(name)] = size
    return found


def _size(tree: Any, source: str) -> Size:
    """An expression as a function of the tensors."""
    match tree.data:
        case "integer":
            number = Fraction(int(tree.children[0]))
            return lambda tensors: number
        case "quantity":
            return _quantity(tree.children[0], source)
        case "dimension":
            name, index = tree.children
            return _dimension(name, index, source)
        case operator:
            left, right = (_size(child, source) for child in tree.children)
            return _combined(str(operator), left, right)


def _combined(operator: str, left: Size, right: Size) -> Size:
    def combined(tensors: Tensors) -> Fraction | None:
        a, b = left(tensors), right(tensors)
        if a is None or b is None:
            return None
        match operator:
            case "add":
                return a + b
            case "subtract":
                return a - b
            case "multiply":
                return a * b
            case _:
                return a / b if b else None

    return combined


def _quantity(name: Token, source: str) -> Size:
    found = _QUANTITY.match(name)
    if not found:
        raise FlopsError(f"{name} is no size of a tensor", source, name.line or 0, name.column or 0)
    match str(name):
        case "contracted":
            return _contracted
        case "keys":
            return lambda tensors: _of_layout(tensors, 1, "S")
        case "head":
            return _head_size
        case "inputs":
            return lambda tensors: _all_elements([one for some in tensors.inputs for one in some])
        case "outputs":
            return lambda tensors: _all_elements(tensors.outputs)
        case _:
            side, place = found[1], int(found[2] or 0)
            return lambda tensors: _elements(_tensor(tensors, side, place))


def _dimension(name: Token, index: Token, source: str) -> Size:
    found = re.match(r"(input|output)(\d*)\Z", name)
    if not found:
        raise FlopsError(f"{name} is no tensor", source, name.line or 0, name.column or 0)
    side, place = found[1], int(found[2] or 0)
    return lambda tensors: _axis(_tensor(tensors, side, place), int(index))


# -- what the words mean ---------------------------------------------------------------------------


def _tensor(tensors: Tensors, side: str, place: int) -> Shape | None:
    if side == "output":
        return tensors.outputs[place] if place < len(tensors.outputs) else None
    operand = tensors.inputs[place] if place < len(tensors.inputs) else ()
    return operand[0] if operand else None


def _elements(shape: Shape | None) -> Fraction | None:
    if shape is None or any(size < 0 for size in shape):
        return None
    return Fraction(math.prod(shape))


def _all_elements(shapes: Sequence[Shape]) -> Fraction | None:
    sizes = [_elements(shape) for shape in shapes]
    known = [size for size in sizes if size is not None]
    return sum(known, Fraction(0)) if known and len(known) == len(sizes) else None


def _axis(shape: Shape | None, index: int) -> Fraction | None:
    if shape is None or not -len(shape) <= index < len(shape) or shape[index] < 0:
        return None
    return Fraction(shape[index])


def _contracted(tensors: Tensors) -> Fraction | None:
    """The axis that a product of matrices sums up: the last of the first, unless transposed."""
    first = _tensor(tensors, "input", 0)
    flag = tensors.attribute("transpose_a")
    transposed = tensors.attribute(2) if flag is None else flag
    return _axis(first, -2 if transposed is True and first and len(first) > 1 else -1)


_LAYOUTS = {"BSH": "BSH", "SBH": "SBH", "BNSD": "BNSD", "BSND": "BSND", "TND": "SND", "TH": "SH"}


_NUMBERED_LAYOUTS = ("BSH", "BNSD", "SBH", "BSND", "TND", "TH")
"""Layouts by the numbers that dumps since 2.3 give for them."""
_GRADIENT_INPUTS = 20
"""More operands than this has an attention's gradient only."""


def _argument(tensors: Tensors, name: str, place: int) -> object:
    """An attribute of an attention, or the operand that it became: five later in its gradient."""
    found = tensors.attribute(name)
    gradient = len(tensors.inputs) > _GRADIENT_INPUTS
    return tensors.attribute(place + 5 * gradient) if found is None else found


def _of_layout(tensors: Tensors, place: int, letter: str) -> Fraction | None:
    """One axis of an attention's tensor; queries and keys are (batch, length, width) by default."""
    shape = _tensor(tensors, "input", place)
    said = _argument(tensors, "input_layout", 16)
    if isinstance(said, int) and 0 <= said < len(_NUMBERED_LAYOUTS):
        said = _NUMBERED_LAYOUTS[said]
    layout = _LAYOUTS.get(said if isinstance(said, str) else "")
    if layout is None or len(layout) != len(shape or ()):
        layout = {3: "BSH", 4: "BNSD"}.get(len(shape or ()), "")
    return _axis(shape, layout.index(letter)) if letter in layout else None


def _head_size(tensors: Tensors) -> Fraction | None:
    """Width of one head of an attention."""
    width = _of_layout(tensors, 0, "D")
    if width is not None:
        return width
    width, heads = _of_layout(tensors, 0, "H"), _argument(tensors, "head_num", 10)
    return width / heads if width is not None and isinstance(heads, int) and heads else None


def _shapes(abstract: Abstract | None) -> list[Shape]:
    """Shapes of the tensors in a type; a number counts as a tensor of one element."""
    if abstract is None:
        return []
    if isinstance(abstract.type, ScalarType) and abstract.type.name in BITS:
        return [()]
    return [shape for _, shape in abstract.tensors]


def _attributes(node: Node) -> Callable[[str | int], object]:
    def attribute(key: str | int) -> object:
        if isinstance(key, str):
            return node.attribute(key)
        return python_value(node.operands[key]) if key < len(node.operands) else None

    return attribute
