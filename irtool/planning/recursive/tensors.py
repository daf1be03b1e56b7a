"""Tensors as the search sees them: always four dimensions, cut into powers of two.

Source: the search's own names for dimensions (N, C, H, W) in its log, and which strategies it
gives to tensors of fewer dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from struct import pack, unpack
from typing import TypeAlias

Four: TypeAlias = tuple[int, int, int, int]
"""One number for each of N, C, H, W: sizes, or into how many slices each is cut."""

N, C, H, W = range(4)
WHOLE: Four = (1, 1, 1, 1)


def four_sizes(shape: Sequence[int]) -> Four:
    """A shape as N, C, H, W: filled up with ones from the left; more dimensions than 4 are lost.

    Args:
        shape: of a tensor; of one with more than four dimensions all sizes are 1.
    """
    if len(shape) > 4:
        return WHOLE
    filled = (1,) * (4 - len(shape)) + tuple(shape)
    return (filled[0], filled[1], filled[2], filled[3])


def last_four(shape: Sequence[int]) -> list[int]:
    """The last four sizes, filled up with ones from the left.

    Args:
        shape: of a tensor.
    """
    last = list(shape)[-4:]
    return [1] * (4 - len(last)) + last


def turned(sizes: Four) -> Four:
    """Rows and columns exchanged.

    Args:
        sizes: sizes or cuts of a tensor as N, C, H, W.
    """
    return (sizes[N], sizes[C], sizes[W], sizes[H])


def local(sizes: Four, cuts: Four) -> Four:
    """The sizes of a slice; a size that does not divide is cut off, not rounded.

    Args:
        sizes: of the whole tensor.
        cuts: into how many slices each dimension is cut.
    """
    n, c, h, w = (size // cut for size, cut in zip(sizes, cuts, strict=True))
    return (n, c, h, w)


def elements(sizes: Four, cuts: Four) -> float:
    """How many elements a slice has, reckoned in single precision as the search does.

    Args:
        sizes: of the whole tensor.
        cuts: into how many slices each dimension is cut.
    """
    count = single(float(sizes[0]))
    factors: list[float] = [1 / cuts[0]]
    for size, cut in zip(sizes[1:], cuts[1:], strict=True):
        factors += [single(float(size)), 1 / cut]
    for factor in factors:
        count = single(count * factor)
    return count


def single(value: float) -> float:
    """A number rounded to single precision.

    Args:
        value: a double.
    """
    return unpack("f", pack("f", value))[0]


def halved(cuts: Four, *axes: int) -> Four:
    """Cut once more along these axes.

    Args:
        cuts: into how many slices each dimension is cut.
        *axes: of N, C, H, W.
    """
    n, c, h, w = (cut * 2 if axis in axes else cut for axis, cut in enumerate(cuts))
    return (n, c, h, w)


def ratio(cuts: Four, before: Four) -> Four:
    """What was cut since ``before``.

    Args:
        cuts: into how many slices each dimension is cut.
        before: cuts that divide these.
    """
    n, c, h, w = (now // was for now, was in zip(cuts, before, strict=True))
    return (n, c, h, w)


def row_of(cuts: Four, rank: int) -> tuple[int, ...]:
    """The strategy of a tensor of ``rank`` dimensions that is cut so.

    Args:
        cuts: of N, C, H, W.
        rank: four at most; the last dimensions count.
    """
    return cuts[4 - rank :]


def pieces(row: Sequence[int]) -> int:
    """Into how many slices a strategy cuts a tensor.

    Args:
        row: of one tensor.
    """
    return prod(row)
