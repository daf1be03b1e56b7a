"""How far two tensors are apart, by their values.

Values are read one pair and one block at a time, so memory grows neither with the dump nor with
the size of a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from irtool.compare.tensors.formats.payload import (
    BadPayload,
    Stored,
    numbers,
    read_stored,
    stored_array,
)
from irtool.compare.tensors.formats.window import Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 1 << 18
"""Elements that are widened to double precision at a time."""
_SAME_NUMBERS = {"BFloat16": "Float32", "Float8E4M3FN": "Float32", "Float8E5M2": "Float32"}


class Measure(NamedTuple):
    """What two tensors have to do with each other.

    Attributes:
        error: L2 norm of the difference over the larger of the two norms; of stated figures the
            largest relative difference of norm, extremes (over the absolute largest) and mean
            (over the root mean square).  NaN where nothing can be said.
        left, right: L2 norms of the finite elements.
        equal: every bit, or every stated figure, is the same.
        broken_left, broken_right: NaN and infinite elements; -1 where nobody counted.
        exact: from values or a sketch, not from figures.
        note: why nothing can be said.
    """

    error: float
    left: float
    right: float
    equal: bool
    broken_left: int = 0
    broken_right: int = 0
    exact: bool = True
    note: str = ""

    @property
    def is_checksum(self) -> bool:
        """Whether checksums alone were compared: no figure was there."""
        return not self.exact and math.isnan(self.left)

    @property
    def distance(self) -> float:
        """The L2 norm of the difference."""
        return self.error * max(self.left, self.right)


_HUGE = 1e8
"""Squared distance from which one side may mask with a large number, the other with infinity."""
MASKED, MASKING = -9.5e3, -6e4
"""Two elements are masked if neither is larger than the first, and one not than the second: masks
that are added to scores are as small as -1e4, and the least of Float16 is -65504."""
OTHER_SIZE = " elements"
"""The end of the note of a pair of which both sides can be read, and are of two sizes."""
LEFT, RIGHT = "left: ", "right: "
"""Begin the note of a pair of which one side cannot be read."""
UNKNOWN = Measure(math.nan, math.nan, math.nan, False, -1, -1, False, "no values")


class Files(NamedTuple):
    """Two files to be measured, with the types that the dumps declare."""

    left: str
    right: str
    left_dtype: str
    right_dtype: str


def measure_files(pairs: Sequence[Files]) -> list[Measure]:
    """How far the tensors of pairs of files are apart.

    Args:
        pairs: with the types that the dumps declare.

    Returns:
        One measure a pair; of what cannot be read its note says why.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):  # infinity minus infinity, of masks
        return [_measure_pair(pair) for pair in pairs]


def _measure_pair(pair: Files) -> Measure:
    side = LEFT
    try:
        left = read_stored(pair.left, pair.left_dtype)
        side = RIGHT
        right = read_stored(pair.right, pair.right_dtype)
        return measure_stored(left, right)
    except BadPayload as error:
        if error.file and pair.left.startswith(error.file):
            side = LEFT  # it became shorter while both were read
        return UNKNOWN._replace(note=f"{side}{error}")


def measure_arrays(left: NDArray[Any], right: NDArray[Any]) -> Measure:
    """How far two arrays of equally many elements are apart.

    Args:
        left: of real or complex numbers.
        right: with as many elements, in the same order.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):
        return measure_stored(
            stored_array(str(left.dtype), left), stored_array(str(right.dtype), right)
        )


def measure_stored(left: Stored, right: Stored) -> Measure:
    """How far two tensors of equally many elements are apart.

    Args:
        left: one tensor.
        right: the other.

    Returns:
        The error is the norm of the difference over the larger of both norms; where one side has
        NaN or infinity and the other not, at least the root of the share of such elements.

    Raises:
        BadPayload: a file became shorter while it was read.
    """
    import numpy as np

    size = left.size
    if size != right.size:
        return UNKNOWN._replace(note=f"{size} against {right.size}{OTHER_SIZE}")
    dot = np.dot
    ours = theirs = apart = 0.0
    broken = [0, 0]
    tipped = 0
    equal = _SAME_NUMBERS.get(left.dtype, left.dtype) == _SAME_NUMBERS.get(right.dtype, right.dtype)
    is_fine = max(left.kind.itemsize, right.kind.itemsize) >= 8
    for x, y in zip(blocks(left), blocks(right), strict=True):
        delta = x - y
        square = float(dot(delta, delta))
        if not math.isfinite(square) or square > _HUGE:
            x, y = _masked_alike(x, y)
            good_x, good_y = np.isfinite(x), np.isfinite(y)
            broken[0] += int(x.size - good_x.sum())
            broken[1] += int(y.size - good_y.sum())
            good = good_x & good_y
            tipped += int((good_x != good_y).sum())
            x, y = x[good], y[good]
            delta = x - y
            square = float(dot(delta, delta))
        ours += float(dot(x, x))
        theirs += float(dot(y, y))
        apart += square
        # In double precision the square of a difference may be too small to be told from none.
        equal = equal and not square and not (is_fine and bool(delta.any()))
    equal = equal and not tipped and _are_same_integers(left, right)
    norms = math.sqrt(ours), math.sqrt(theirs)
    largest = max(norms)
    error = math.sqrt(apart) / largest if largest else 0.0
    if tipped:  # masked elsewhere: no less than as many elements that have nothing in common
        error = max(error, math.sqrt(tipped / size))
    return Measure(error, *norms, equal, broken[0], broken[1])


def _masked_alike(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Elements that both sides mask, with whatever number, as minus infinity on both."""
    import numpy as np

    masked = (np.maximum(left, right) <= MASKED) & (np.minimum(left, right) <= MASKING)
    masked &= left != right
    if not masked.any():
        return left, right
    return np.where(masked, -np.inf, left), np.where(masked, -np.inf, right)


def _are_same_integers(left: Stored, right: Stored) -> bool:
    """Whether integers that double precision cannot tell apart are the same."""
    if left.kind.kind not in "iu" or left.kind.itemsize < 8 or left.kind != right.kind:
        return True
    pairs = zip(number_blocks(left), number_blocks(right), strict=True)
    return all(bool((x == y).all()) for x, y in pairs)


def blocks(stored: Stored) -> Iterator[NDArray[np.float64]]:
    """Elements in C order in double precision, so many at a time; complex ones as two numbers.

    Args:
        stored: at hand or in a file.

    Raises:
        BadPayload: the file became shorter while it was read.
    """
    return map(widened, number_blocks(stored))


def number_blocks(stored: Stored) -> Iterator[NDArray[Any]]:
    """Elements in C order as numbers, so many at a time.

    Args:
        stored: at hand or in a file.

    Raises:
        BadPayload: the file became shorter while it was read.
    """
    import numpy as np

    dtype, kind, _, array = stored
    if isinstance(array, Window):
        for piece in array.pieces(BLOCK * kind.itemsize):
            yield numbers(dtype, np.frombuffer(piece, kind))
        return
    # The iterator of one that is not in order copies the slices that are asked for, no more.
    in_order = array.size <= BLOCK or array.flags.c_contiguous
    flat: Any = array.ravel() if in_order else cast("Any", array).flat
    is_pattern = dtype in _SAME_NUMBERS
    for start in range(0, array.size, BLOCK):
        block = flat[start : start + BLOCK]
        yield numbers(dtype, block) if is_pattern else block


def widened(block: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers in double precision; complex ones as two.

    Args:
        block: of one dimension.
    """
    import numpy as np

    if block.dtype.kind == "c":
        wide = block.astype(np.complex128)
        return np.ndarray(2 * wide.size, np.float64, wide.data)
    return block.astype(np.float64)
