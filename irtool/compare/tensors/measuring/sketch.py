"""Sums that stand for a tensor: how far two tensors are apart, without moving either.

The elements are divided over :data:`WIDTH` sums with signs that look random and are the same
everywhere.  The squared distance of two sketches is on average that of the tensors (Charikar, Chen
and Farach-Colton 2002), with a spread of about 1/sqrt(WIDTH / 2): a fourth to either side.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

WIDTH = 32
_PERIOD = 1 << 16


class Sketcher:
    """Sketches a tensor that comes in blocks; all but the last hold whole periods of 65,536."""

    def __init__(self) -> None:
        import numpy as np

        self._totals: Numbers = np.zeros(WIDTH)
        self._part = 0

    def add(self, block: Numbers) -> None:
        """The next finite elements, in C order."""
        import numpy as np

        signs = _signs()
        for start in range(0, block.size, _PERIOD):
            part = block[start : start + _PERIOD]
            # Other sums and signs from part to part, so that equal rows do not cancel.
            first = _PERIOD - 37 * self._part % _PERIOD
            signed = part * signs[first : first + part.size]
            full = signed.size - signed.size % WIDTH
            sums = np.sum(np.reshape(signed[:full], (-1, WIDTH)), axis=0)
            sums[: signed.size - full] += signed[full:]
            self._totals += np.roll(sums, self._part)
            self._part += 1

    def sums(self) -> tuple[float, ...]:
        """The sketch of what has come."""
        return tuple(self._totals.tolist())


def sketch(flat: Numbers) -> tuple[float, ...]:
    """The sums of a tensor's elements in C order, in double precision.

    Args:
        flat: all elements, in C order.
    """
    sketcher = Sketcher()
    sketcher.add(flat)
    return sketcher.sums()


def distance(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    """The estimated L2 norm of the difference of the tensors that two sketches stand for.

    Args:
        left: one sketch.
        right: another with equally many sums.
    """
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(left, right, strict=True)))


@lru_cache(maxsize=1)
def _signs() -> Numbers:
    """+1 and -1 by a generator that is the same on every machine (splitmix64), twice over."""
    import numpy as np

    state = np.arange(1, _PERIOD + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    signs = 1.0 - 2.0 * (state & np.uint64(1)).astype(np.float64)
    return np.concatenate([signs, signs])
