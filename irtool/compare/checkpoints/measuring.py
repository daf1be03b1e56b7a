"""How two parameters differ: bit by bit, by sums over all elements, and as wholes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from irtool.compare.checkpoints.joining import Whole
from irtool.compare.checkpoints.read import Array
from irtool.compare.tensors.dtypes import is_float, numpy_code, roundoff
from irtool.compare.tensors.formats.payload import numbers
from irtool.ir.dataclass import dataclass

Verdict: TypeAlias = Literal[
    "equal", "rounded", "scaled", "exchanged", "transposed", "reordered", "differs", "shape",
    "unreadable",
]  # fmt: skip
"""Equal to the bit; of another type, and one is the other rounded; a multiple of the other; what
another parameter is on the left; the other transposed; the same values in another order; other
values; another shape; not readable."""

ALIKE: frozenset[Verdict] = frozenset(("equal", "rounded"))
"""What is nothing to see: the same numbers, as far as their types can hold them."""
_NEAR = 2.0**-16
"""Rest by the sums up to which it is measured element by element."""
MOST_SORTED = 1 << 24
"""Elements up to which it is looked whether values only stand in another order."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What two parameters have to do with each other.

    Attributes:
        verdict: in a word.
        unequal: elements whose bits (of two types: numbers) are not the same.
        largest: the largest absolute difference of finite elements.
        relative: L2 norm of the difference over that of the left one.
        factor: by which the left one comes nearest to the right one, ⟨l, r⟩ / ⟨l, l⟩.
        rest: relative difference that is left behind this factor.
        broken_left, broken_right: NaN and infinite elements.
        note: why it could not be said, which types, or whose values it holds.
    """

    verdict: Verdict
    unequal: int = 0
    largest: float = 0.0
    relative: float = 0.0
    factor: float = 1.0
    rest: float = 0.0
    broken_left: int = 0
    broken_right: int = 0
    note: str = ""


@dataclass(slots=True)
class _Sums:
    """Sums over pairs of elements, in double precision."""

    unequal: int = 0
    largest: float = 0.0
    left: float = 0.0
    right: float = 0.0
    product: float = 0.0
    apart: float = 0.0
    broken_left: int = 0
    broken_right: int = 0

    def add(self, left: Array, right: Array) -> None:
        """Add a block of numbers."""
        import numpy as np

        wide = np.complex128 if left.dtype.kind == "c" else np.float64
        ours, theirs = left.astype(wide), right.astype(wide)
        finite: tuple[Array, Array] = np.isfinite(ours), np.isfinite(theirs)
        self.broken_left += int(ours.size - np.count_nonzero(finite[0]))
        self.broken_right += int(theirs.size - np.count_nonzero(finite[1]))
        both: Array = finite[0] & finite[1]
        if not both.all():
            ours, theirs = ours[both], theirs[both]
        difference: Array = np.abs(ours - theirs)
        self.largest = max(self.largest, float(difference.max(initial=0.0)))
        dot: Callable[[Array, Array], Array] = np.vdot
        self.apart += float(dot(difference, difference).real)
        self.left += float(dot(ours, ours).real)
        self.right += float(dot(theirs, theirs).real)
        self.product += float(dot(ours, theirs).real)

    @property
    def factor(self) -> float:
        return self.product / self.left if self.left else math.nan

    @property
    def relative(self) -> float:
        if not self.apart:
            return 0.0
        return math.sqrt(self.apart / self.left) if self.left else math.inf

    @property
    def rest(self) -> float:
        """‖r − f l‖ / ‖r‖, out of the sums: r·r − (l·r)² / l·l."""
        if not self.left or not self.right:
            return 1.0
        return math.sqrt(max(0.0, 1 - self.product * self.product / (self.left * self.right)))


def difference_of(left: Whole, right: Whole) -> Difference:
    """How two parameters differ.

    A parameter counts as a multiple of the other where what is left behind the factor is below the
    rounding of its type (four units, as both were rounded).

    Args:
        left: one.
        right: the other; of as many elements in another shape their order decides.

    Raises:
        BadPayload: one can't be read.
    """
    if left.elements != right.elements:
        return Difference("shape")
    if len(left.shape) == 2 and left.shape != right.shape == left.shape[::-1]:
        return _turned(left, right)
    if _without_ones(left.shape) != _without_ones(right.shape):
        return Difference("shape")
    same_type = left.dtype == right.dtype
    sums = _sums_of(_pairs(left, right), left.dtype, right.dtype)
    if same_type and not sums.unequal:
        return Difference("equal")
    if not same_type and _is_rounded(left, right):
        return Difference("rounded", note=f"{left.dtype} and {right.dtype}")
    return _told(left, right, sums)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _pairs(left: Whole, right: Whole) -> Iterator[tuple[Array, Array]]:
    return zip(left.blocks(), right.blocks(), strict=True)


def _sums_of(pairs: Iterator[tuple[Array, Array]], left_type: str, right_type: str) -> _Sums:
    import numpy as np

    sums = _Sums()
    for ours, theirs in pairs:
        if left_type == right_type:
            width = f"u{ours.dtype.itemsize}" if ours.dtype.itemsize <= 8 else None
            if width is not None:
                unequal = int(np.count_nonzero(ours.view(width) != theirs.view(width)))
            else:
                unequal = int(np.count_nonzero(ours != theirs))
            sums.unequal += unequal
            if not unequal and not is_float(left_type):
                continue
            sums.add(numbers(left_type, ours), numbers(right_type, theirs))
            continue
        wide_left, wide_right = numbers(left_type, ours), numbers(right_type, theirs)
        sums.unequal += int(np.count_nonzero(wide_left != wide_right))
        sums.add(wide_left, wide_right)
    return sums


def _told(left: Whole, right: Whole, sums: _Sums) -> Difference:
    verdict: Verdict = "differs"
    unit = max(roundoff(left.dtype), roundoff(right.dtype))
    judged = unit and left.elements > 1 and not (sums.broken_left or sums.broken_right)
    rest = sums.rest
    if judged and rest <= max(_NEAR, 4 * unit) and abs(sums.factor - 1) > 8 * unit:
        rest = _rest(left, right, sums)
        if rest <= 4 * unit:
            verdict = "scaled"
    if verdict == "differs" and _is_transposed(left, right):
        verdict = "transposed"
    elif verdict == "differs" and _is_reordered(left, right):
        verdict = "reordered"
    return Difference(
        verdict,
        sums.unequal,
        sums.largest,
        sums.relative,
        sums.factor,
        rest,
        sums.broken_left,
        sums.broken_right,
    )


def _rest(left: Whole, right: Whole, sums: _Sums) -> float:
    """‖r − f l‖ / ‖r‖, element by element: the difference of nearly equal sums says less."""
    import numpy as np

    apart = 0.0
    for ours, theirs in _pairs(left, right):
        behind: Array = numbers(right.dtype, theirs).astype(np.float64)
        behind -= sums.factor * numbers(left.dtype, ours).astype(np.float64)
        apart += float(np.dot(behind, behind))
    return math.sqrt(apart / sums.right)


def _turned(left: Whole, right: Whole) -> Difference:
    """Of a matrix whose dimensions stand the other way round: is it the other, transposed?"""
    return Difference("transposed" if _is_transposed(left, right) else "shape")


def _is_transposed(left: Whole, right: Whole) -> bool:
    """Whether a matrix is the other one transposed, bit by bit; of two types, rounded besides."""
    import numpy as np

    if len(left.shape) != 2 or left.shape != right.shape[::-1]:
        return False
    if roundoff(left.dtype) > roundoff(right.dtype):
        left, right = right, left
    ours: Array = np.ascontiguousarray(left.array().T)
    theirs: Array = np.ascontiguousarray(right.array())
    if left.dtype == right.dtype:
        return np.array_equal(ours.view(np.uint8), theirs.view(np.uint8))
    if not (is_float(left.dtype) and is_float(right.dtype)):
        return False
    return bool((_rounded(ours, left.dtype, right.dtype) == theirs).all())


def _is_reordered(left: Whole, right: Whole) -> bool:
    import numpy as np

    if left.dtype != right.dtype or not 1 < left.elements <= MOST_SORTED:
        return False
    ours, theirs = left.array().reshape(-1), right.array().reshape(-1)
    return bool(np.array_equal(np.sort(ours), np.sort(theirs)))


def _is_rounded(left: Whole, right: Whole) -> bool:
    """Whether one holds the other's numbers, rounded to its own type."""
    if not (is_float(left.dtype) and is_float(right.dtype)):
        return False
    if roundoff(left.dtype) > roundoff(right.dtype):
        left, right = right, left
    return all(
        bool((_rounded(ours, left.dtype, right.dtype) == theirs).all())
        for ours, theirs in _pairs(left, right)
    )


def _rounded(values: Array, dtype: str, to: str) -> Array:
    """Numbers as a shorter type stores them, rounded to nearest, ties to even."""
    import numpy as np

    wide: Array = numbers(dtype, values)
    if to == "BFloat16":
        single: Array = wide.astype(np.float32)
        bits: Array = single.view(np.uint32)
        carried: Array = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return (carried >> np.uint32(16)).astype(np.uint16)
    with np.errstate(over="ignore"):
        return wide.astype(np.dtype(numpy_code(to) or "<f4"))
