"""Sums that stand for a tensor: how far two tensors are apart, without moving either.

The elements are divided over :data:`WIDTH` sums with signs that look random and are the same
everywhere.  The squared distance of two sketches is on average that of the tensors (Charikar, Chen
and Farach-Colton 2002), with a spread of about 1/sqrt(WIDTH / 2): a fourth to either side.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 32
_PERIOD = 1 << 16


def sketch(flat: NDArray[Any]) -> tuple[float, ...]:
    """The sums of a tensor's elements in C order, in double precision."""
    import numpy as np

    totals = np.zeros(WIDTH)
    signs = _signs()
    for part, start in enumerate(range(0, flat.size, _PERIOD)):
        block = flat[start : start + _PERIOD].astype(np.float64)
        # Other sums and signs from block to block, so that equal rows do not cancel.
        signed = block * np.roll(signs, 37 * part)[: block.size]
        padded = np.zeros(-(-block.size // WIDTH) * WIDTH)
        padded[: block.size] = signed
        totals += np.roll(padded.reshape(-1, WIDTH).sum(axis=0), part)
    return tuple(float(total) for total in totals)


def distance(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    """The estimated L2 norm of the difference of the tensors that two sketches stand for."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(left, right, strict=True)))


@lru_cache(maxsize=1)
def _signs() -> Any:
    """+1 and -1 by a generator that is the same on every machine (splitmix64)."""
    import numpy as np

    state = np.arange(1, _PERIOD + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return 1.0 - 2.0 * (state & np.uint64(1)).astype(np.float64)
