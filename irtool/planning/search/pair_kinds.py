"""Pairs of layouts between which the same has to be done: each kind is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.cost.layout_bits import Bools, Ints

DENSE = 1 << 15
"""Kinds that there may be before those that there are get new numbers."""
SPARSE = 64
"""Numbers over pairs up to which a table of all numbers is made; beyond, they are sorted."""


@dataclass(frozen=True, eq=False, slots=True)
class Kinds:
    """``place``: by kind the place of a pair of it, all in one row; ``which``: kinds of all."""

    place: Ints
    which: Ints


def kinds_of(shape: tuple[int, int], parts: Sequence[tuple[Ints, int]]) -> Kinds:
    """Pairs that agree in everything.

    Args:
        shape: how many layouts there are at both ends.
        parts: what they have to agree in, as numbers that broadcast to the shape, each with how
            many numbers there may be.
    """
    key, most = np.zeros(shape, dtype=np.int64), 1
    for numbers, count in parts:
        if most * count > DENSE:
            place, key = _numbered(key, most)
            most = len(place)
        key = key * count + numbers
        most *= count
    return Kinds(*_numbered(key, most))


def _numbered(key: Ints, most: int) -> tuple[Ints, Ints]:
    """Where each number stands that there is, and which of them stands where."""
    flat = np.ravel(key)
    if most > len(flat) * SPARSE:
        _, place, which = np.unique(flat, return_index=True, return_inverse=True)
        return place, np.reshape(which, key.shape)
    number = np.full(most, -1, dtype=np.int64)
    number[flat] = np.arange(len(flat), dtype=np.int64)
    used = np.flatnonzero(number >= 0)
    place = number[used]
    number[used] = np.arange(len(used), dtype=np.int64)
    return place, np.reshape(number[flat], key.shape)


def runs(mask: Ints, cuts: Ints, count: int) -> tuple[Ints, int]:
    """Which of ``count`` bits are set, and between which neighbours among them a cut lies.

    Args:
        mask: bits by pair of layouts.
        cuts: bits below which an axis of devices ends, in a shape that broadcasts to the masks.
        count: bits of a device's number.

    Returns:
        a number for each mask, equal where both are; and how many numbers there may be.
    """
    digits = _digits(count)
    return digits[mask] + digits[mask & (mask << 1) & cuts], 3**count


def row_kinds(*columns: Ints | Bools) -> tuple[Ints, int]:
    """Rows that agree in all columns, as numbers; how many kinds there are.

    Args:
        *columns: arrays of as many rows each.
    """
    table = np.ascontiguousarray(np.column_stack(columns))
    number: dict[bytes, int] = {}
    kinds = [number.setdefault(row.tobytes(), len(number)) for row in table]
    return np.array(kinds, dtype=np.int64), len(number)


@lru_cache(maxsize=32)
def _digits(count: int) -> Ints:
    """By mask the number that its bits give to base 3."""
    masks = np.arange(1 << count, dtype=np.int64)
    digits = np.zeros(len(masks), dtype=np.int64)
    for bit in range(count):
        digits += ((masks >> bit) & 1) * 3**bit
    return digits
