"""A failure of shapes whose wrong operand may come from the dataset rather than from its line.

MindSpore compiles for the whole input: a slice as it is fed, each dimension times the parts that
``dataset_strategy`` (or ``full_batch=False``) names.  A wrong number of parts makes the input a
whole number of times too large or too small, and fails wherever a size first has to fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from irtool.ir.limits import bounded_int

_RESHAPE = re.compile(r"but got x_shape: \{([\d, ]+)\}, and out_shape: \{([\d, ]+)\}")
_BROADCAST = re.compile(r"need to broadcast|cannot be broadcast")
_PRODUCT = re.compile(r"'x1_col': (\d+) and 'x2_row': (\d+)")
_SHAPE = re.compile(r"^[A-Z]\w*\[([\d,]*)\]$")


def sliced_input(message: str, operands: Sequence[str], inputs: Sequence[str]) -> str:
    """What in the sizes of a failure points to the slices of the dataset.

    Args:
        message: what MindSpore says.
        operands: types of the failing statement's operands (``Float32[16,32]``).
        inputs: types of the network's inputs.

    Returns:
        "" where the sizes say nothing of the kind.
    """
    shapes = [shape for tensor_type in inputs if (shape := _shape(tensor_type))]
    reshaped = _RESHAPE.search(message)
    if reshaped is not None:
        have, want = _numbers(reshaped[1]), _numbers(reshaped[2])
        return _told(prod(have), prod(want), [size for size in have if size > 1], shapes)
    multiplied = _PRODUCT.search(message)
    if multiplied is not None:
        left, right = bounded_int(multiplied[1]), bounded_int(multiplied[2])
        fits = len(operands) > 1 and _shape(operands[1])[-1:] == (left,)  # if transposed
        return "" if fits else _told(left, right, (left,), shapes)
    if _BROADCAST.search(message):
        both = [shape for tensor_type in operands if (shape := _shape(tensor_type))]
        if len(both) == 2:
            pairs = zip(reversed(both[0]), reversed(both[1]), strict=False)
            unequal = [pair for pair in pairs if pair[0] != pair[1] and 1 not in pair]
            firsts = [shape[:1] for shape in shapes]
            if len(unequal) == 1:
                left, right = unequal[0]
                return _told(left, right, (left,), firsts) or _told(right, left, (right,), firsts)
    return ""


def _told(have: int, want: int, sizes: Sequence[int], inputs: Sequence[tuple[int, ...]]) -> str:
    """Where an input's dimension is among ``sizes``, and the elements are so many times wrong."""
    low, high = sorted((have, want))
    if low <= 0 or low == high or high % low:
        return ""
    times = high // low
    dimension = next(
        (
            size
            for shape in inputs
            for size in shape
            if size in sizes and (have < want or size % times == 0)
        ),
        None,
    )
    if dimension is None:
        return ""
    than = "more" if have > want else "fewer"
    return (
        f"there are {times} times {than} elements than fit, and the dimension of {dimension} is an "
        "input's: if the dataset is cut, dataset_strategy (or full_batch) may name the wrong "
        "number of slices; if not, the shape is wrong"
    )


def _shape(text: str) -> tuple[int, ...]:
    match = _SHAPE.match(text)
    return () if match is None else _numbers(match[1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(bounded_int(number) for number in re.findall(r"\d+", text))
