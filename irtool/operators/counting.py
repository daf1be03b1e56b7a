"""How many operations an operator does: expressions over the sizes of its tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from irtool.ir.dataclass import dataclass

Shape: TypeAlias = tuple[int, ...]
Expression: TypeAlias = tuple[Any, ...]
"""A word (integer, quantity, dimension, add, subtract, multiply, divide) and what it is of."""
Size = Callable[["Tensors"], Fraction | None]
"""What an expression stands for; None where it cannot be known."""

QUANTITY = re.compile(r"(input|output)(\d*)\Z|inputs\Z|outputs\Z|contracted\Z|keys\Z|head\Z")
"""Names of numbers of elements, and of sizes that have a meaning."""
TENSOR = re.compile(r"(input|output)(\d*)\Z")
"""Names of tensors: the first one's number may be left out."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """Shapes of one operator call.

    ``inputs`` has an entry an operand: its tensors, none for what is no tensor, several for a
    tuple of them.  ``attribute`` finds an attribute by name, or a constant operand by its place.
    """

    inputs: Sequence[Sequence[Shape]]
    outputs: Sequence[Shape]
    attribute: Callable[[str | int], object] = lambda key: None


@lru_cache(maxsize=4096)
def size_of(expression: Expression) -> Size:
    """An expression as a function of the tensors.

    Args:
        expression: as the notation's reader makes it: arithmetic on sizes, attributes and numbers.

    Returns:
        A function that gives the exact number for the tensors of a call, or None where one is
        unknown.
    """
    match expression:
        case ("integer", int(value)):
            number = Fraction(value)
            return lambda tensors: number
        case ("quantity", str(name)):
            return _quantity(name)
        case ("dimension", str(name), int(index)):
            side, place = _side(name)
            return lambda tensors: _axis(_tensor(tensors, side, place), index)
        case _:
            operator, left, right = expression
            return _combined(operator, size_of(left), size_of(right))


def _side(name: str) -> tuple[str, int]:
    match = TENSOR.match(name)
    assert match is not None  # the notation takes no other names
    return match[1], int(match[2] or 0)


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


def _quantity(name: str) -> Size:
    match name:
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
            side, place = _side(name)
            return lambda tensors: _elements(_tensor(tensors, side, place))


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
    value = tensors.attribute(name)
    gradient = len(tensors.inputs) > _GRADIENT_INPUTS
    return tensors.attribute(place + 5 * gradient) if value is None else value


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
