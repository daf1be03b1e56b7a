"""The edit for an operator whose shapes, axis or index do not fit: the nearest that fits."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from math import prod

from irtool.ir.finding import Edit, SourceLine
from irtool.ir.limits import bounded_int
from irtool.ir.types import BITS
from irtool.linting.failure.casts import operands_in, parsed, span
from irtool.operators.table import operators

_SHAPE = re.compile(r"^[A-Z]\w*\[([\d,]*)\]$")
_AXIS = re.compile(r"\baxis\b.*? must be in \[-\d+, ?(\d+)\),? but got (-?\d+)")
_INDEX = re.compile(r"index should be in range\[-\d+, (\d+)\), but got (-?\d+)")
_RESHAPE = re.compile(r"but got x_shape: \{([\d, ]+)\}, and out_shape: \{([\d, ]+)\}")
_PRODUCT = re.compile(
    r"'x1_col': (\d+) and 'x2_row': (\d+)|row of the input 'y' should be same as"
    r"|shape1\[-1\] must be equal to shape2\[-2\]"
)
_BROADCAST = re.compile(r"need to broadcast|cannot be broadcast")
_VECTOR = re.compile(r"bias\[0\] shape should be equal|gamma or beta shape must match")
_DIVISOR = re.compile(r"x_shape\[\d+\] must be divisible by output_num = (\d+), but got (\d+)")
_KEY = re.compile(r"The key (\w+) does not exist in the dict:\{(.*)\}")
_ATTRIBUTE = re.compile(r"there is no attribute (\w+)|has no attribute '(\w+)'")
_PERM = re.compile(r"size of perm should equal to rank of x, but got (\d+) and (\d+)")
_TYPE = re.compile(r"expect a type, but got AbstractScalar\(Type: String, Value: (\w+),")

Shape = tuple[int, ...]
_MOST_AXES = 7


_SIZES = {"Dense": "in_channels", "LayerNorm": "normalized_shape"}
"""What has to be the last dimension of what one of MindSpore's own cells is given."""


def shape_edit(
    message: str, op: str, operands: Sequence[str], source: SourceLine | None, cell: str = ""
) -> Edit | None:
    """The smallest change of a line, of a weight or of an operator's argument that fits.

    Args:
        message: what MindSpore says.
        op: the operator that it says it of; "" if it names none.
        operands: types of the failing statement's operands (``Float32[16,32]``).
        source: the line of Python that makes it.
        cell: the class of MindSpore's own cell that the line calls and that fails inside.

    Returns:
        None where the message is about something else, or nothing near fits.
    """
    shapes = [_shape(operand) for operand in operands]
    failure = _Failure(message, op, shapes, source)
    if cell in _SIZES and (_PRODUCT.search(message) or _VECTOR.search(message)):
        return _cell_size(failure, _SIZES[cell])
    for pattern, make in _MAKERS:
        match = pattern.search(message)
        if match is not None:
            return make(failure, match)
    return None


class _Failure:
    """An operator, the shapes of its operands (None: no tensor), and the line that calls it."""

    def __init__(
        self, message: str, op: str, shapes: list[Shape | None], source: SourceLine | None
    ) -> None:
        self.message, self.op, self.shapes, self.source = message, op, shapes, source
        self.tree = None if source is None or not source.text else parsed(source.text)

    def replaced(self, node: ast.expr, new: str) -> Edit | None:
        """The line with a part of it written otherwise."""
        source = self.source
        place = None if source is None else span(node, source.text)
        if source is None or place is None:
            return None
        text = source.text
        new_text = text[: place[0]] + new + text[place[1] :]
        return Edit(file=source.path, line=source.line, old=text, new=new_text)

    def parts(self, kind: type[ast.expr]) -> Iterator[ast.expr]:
        """Parts of the line of one kind."""
        if self.tree is not None:
            yield from (node for node in ast.walk(self.tree) if isinstance(node, kind))

    def argument(self, place: int) -> ast.expr | None:
        """What stands for an operand in the line."""
        given = None
        if self.tree is not None:
            given = operands_in(self.tree, len(self.shapes), self.message)
        return None if given is None else given[place]

    def weight(self, place: int, shape: Shape) -> Edit | None:
        """Another shape for an operand that the cell holds."""
        node = self.argument(place)
        if isinstance(node, ast.Attribute) and self.source is not None:
            return Edit(setting=f"shape of {ast.unparse(node)}", value=str(shape))
        return None

    def numbers(self, wanted: Shape) -> ast.expr | None:
        """The tuple or list of the line that holds these numbers."""
        for kind in (ast.Tuple, ast.List):
            for node in self.parts(kind):
                if tuple(_number(item) for item in node.elts) == wanted:  # type: ignore[attr-defined]  # with items
                    return node
        return None

    def literal(self, value: int, new: int, what: str = "") -> Edit | None:
        """The number itself where it stands in the line once, else an argument of the operator."""
        places = [
            node
            for node in self.parts(ast.expr)
            if isinstance(node, (ast.Constant, ast.UnaryOp)) and _number(node) == value
        ]
        edit = self.replaced(places[0], str(new)) if len(places) == 1 else None
        if edit is not None or not what:
            return edit
        return Edit(setting=f"{what} of {self.op}" if self.op else what, value=new)


def _shape(operand: str) -> Shape | None:
    match = _SHAPE.match(operand)
    return None if match is None else _numbers(match[1])


def _numbers(text: str) -> Shape:
    return tuple(bounded_int(number) for number in re.findall(r"\d+", text))


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _axis(failure: _Failure, match: re.Match[str]) -> Edit | None:
    rank, got = bounded_int(match[1]), int(match[2])
    return failure.literal(got, -1 if got > 0 else -rank, "axis") if rank else None


def _index(failure: _Failure, match: re.Match[str]) -> Edit | None:
    count, got = bounded_int(match[1]), int(match[2])
    return failure.literal(got, count - 1 if got > 0 else -count) if count else None


def _reshape(failure: _Failure, match: re.Match[str]) -> Edit | None:
    """One dimension made what is left of the elements, the one that has to change least."""
    have, want = prod(_numbers(match[1])), _numbers(match[2])
    for place in range(len(want)):
        open_shape = (*want[:place], -1, *want[place + 1 :])
        if (node := failure.numbers(open_shape)) is not None:
            made = _divided(have, open_shape)
            return None if made is None else failure.replaced(node, str(made))
    fitting: list[tuple[float, Shape]] = []
    for place, size in enumerate(want):
        others = prod(want[:place]) * prod(want[place + 1 :])
        if others and have % others == 0:
            made = (*want[:place], have // others, *want[place + 1 :])
            fitting.append((max(size, made[place]) / max(1, min(size, made[place])), made))
    if not fitting:
        return None
    shape = min(fitting)[1]
    node = failure.numbers(want)
    if node is not None:
        return failure.replaced(node, str(shape))
    return Edit(setting=f"shape of {failure.op or 'Reshape'}", value=str(shape))


def _divided(have: int, shape: Shape) -> Shape | None:
    """A shape with -1 that divides what there is: the number changes that has to change least."""
    fitting: list[tuple[float, Shape]] = []
    for place, size in enumerate(shape):
        others = -prod(shape[:place]) * prod(shape[place + 1 :])
        if size < 1 or others < 1 or have % others:
            continue
        left = have // others
        near = min((n for n in range(1, 2 * size) if left % n == 0), key=lambda n: abs(n - size))
        fitting.append((abs(near - size) / size, (*shape[:place], near, *shape[place + 1 :])))
    return min(fitting)[1] if fitting else None


def _product(failure: _Failure, _: re.Match[str]) -> Edit | None:
    """The second factor transposed where that fits, else the weight with as many rows."""
    if len(failure.shapes) < 2 or failure.shapes[0] is None or failure.shapes[1] is None:
        return None
    left, right = failure.shapes[:2]
    if not left or not right or len(right) < 2:
        return None
    node = failure.argument(1)
    if right[-1] == left[-1] and node is not None:
        return failure.replaced(node, f"ops.swapaxes({ast.unparse(node)}, -1, -2)")
    return failure.weight(1, (*right[:-2], left[-1], right[-1]))


def _broadcast(failure: _Failure, _: re.Match[str]) -> Edit | None:
    """The smaller operand with a last dimension, where it lacks one; else the weight's shape."""
    tensors = [(n, shape) for n, shape in enumerate(failure.shapes) if shape]
    if len(tensors) < 2:
        return None
    place, small = min(tensors, key=lambda item: (len(item[1]), item[0]))
    large = max(tensors, key=lambda item: (len(item[1]), -item[0]))[1]
    node = failure.argument(place)
    if len(small) + 1 == len(large) and small == large[:-1] and node is not None:
        return failure.replaced(node, f"ops.expand_dims({ast.unparse(node)}, -1)")
    return failure.weight(place, large[len(large) - len(small) :])


def _vector(failure: _Failure, _: re.Match[str]) -> Edit | None:
    """Weights along the last dimension, as long as it is."""
    first = failure.shapes[0] if failure.shapes else None
    if not first:
        return None
    wrong = [
        place
        for place, shape in enumerate(failure.shapes)
        if place and shape and shape != first[-1:]
    ]
    edits = [failure.weight(place, first[-1:]) for place in wrong]
    known = [edit.setting.removeprefix("shape of ") for edit in edits if edit is not None]
    if not known or len(known) < len(wrong):
        return None
    return Edit(setting=f"shape of {', '.join(known)}", value=str(first[-1:]))


def _cell_size(failure: _Failure, argument: str) -> Edit | None:
    """The size that a cell was made for, of the only one that the line calls."""
    calls = [call.func for call in failure.parts(ast.Call) if isinstance(call, ast.Call)]
    called = [n for n in calls if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"]
    first = failure.shapes[0] if failure.shapes else None
    if len(called) != 1 or not first:
        return None
    value = first[-1] if argument == "in_channels" else str(first[-1:])
    return Edit(setting=f"{argument} of {ast.unparse(called[0])}", value=value)


def _perm(failure: _Failure, match: re.Match[str]) -> Edit | None:
    """As many axes as there are: the last ones, in the order asked for."""
    got, rank = bounded_int(match[1]), bounded_int(match[2])
    for order in itertools.permutations(range(got)) if got < _MOST_AXES else ():
        node = failure.numbers(order)
        if node is None:
            continue
        more = rank - got
        made = tuple(range(more)) + tuple(axis + more for axis in order if axis + more >= 0)
        if made == tuple(range(rank)):  # leaves all as it is: of two axes there is one other order
            made = (1, 0)
        return failure.replaced(node, str(made)) if len(made) == rank else None
    return None


def _divisor(failure: _Failure, match: re.Match[str]) -> Edit | None:
    parts, size = bounded_int(match[1]), bounded_int(match[2])
    fitting = [n for n in range(1, size + 1) if size % n == 0]
    near = min(fitting, key=lambda n: (abs(n - parts), n), default=None)
    return None if near is None else failure.literal(parts, near, "output_num")


def _key(failure: _Failure, match: re.Match[str]) -> Edit | None:
    keys = re.findall(r"'(\w+)':", match[2])
    near = keys if len(keys) == 1 else get_close_matches(match[1], keys, 1)
    return _text(failure, match[1], near)


def _type(failure: _Failure, match: re.Match[str]) -> Edit | None:
    """The type itself: no text is one."""
    near = get_close_matches(match[1], [name.lower() for name in BITS], 1)
    return _text(failure, match[1], [f"mindspore.{near[0]}"] if near else (), as_text=False)


def _attribute(failure: _Failure, match: re.Match[str]) -> Edit | None:
    """The operator whose name is near."""
    asked = match[1] or match[2]
    names = {op.lower() for op in operators()}
    names |= {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower() for op in operators()}
    near = get_close_matches(asked, sorted(names), 1, 0.8)
    places = [
        node
        for node in failure.parts(ast.Attribute)
        if node.attr == asked  # type: ignore[attr-defined]  # an attribute
    ]
    if not near or len(places) != 1:
        return None
    before = ast.unparse(places[0].value)  # type: ignore[attr-defined]  # an attribute
    return None if before == "self" else failure.replaced(places[0], f"{before}.{near[0]}")


def _text(failure: _Failure, old: str, near: Sequence[str], *, as_text: bool = True) -> Edit | None:
    """A text of the line written as what is near it."""
    places = [
        node
        for node in failure.parts(ast.Constant)
        if node.value == old  # type: ignore[attr-defined]  # a constant
    ]
    if not near or len(places) != 1:
        return None
    return failure.replaced(places[0], repr(near[0]) if as_text else near[0])


_MAKERS: tuple[
    tuple[re.Pattern[str], Callable[[_Failure, re.Match[str]], Edit | None]], ...
] = (
    (_AXIS, _axis),
    (_INDEX, _index),
    (_RESHAPE, _reshape),
    (_PERM, _perm),
    (_PRODUCT, _product),
    (_BROADCAST, _broadcast),
    (_VECTOR, _vector),
    (_DIVISOR, _divisor),
    (_KEY, _key),
    (_TYPE, _type),
    (_ATTRIBUTE, _attribute),
)  # fmt: skip
