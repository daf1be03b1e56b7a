"""How a tensor is cut over ranks: which rank holds which part of each axis.

Shapes say into how many parts each axis is cut.  Which rank holds which part, the matrix of devices
says: a part's number is made of digits of the rank.  With one split axis over all ranks there is
one natural way; where there are several, the one is taken under which the parts agree best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_CUTS = 120
_NOTHING = 0.5
"""Relative error from which on no way of putting parts together agrees."""
_CLEAR = 1e-3
"""Relative error from which down a way to put parts together is surely the right one."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part of a whole tensor each rank holds.

    Attributes:
        whole: dimensions of the whole.
        parts: by rank, for each axis the number of its part.
        counts: for each axis, how many parts there are.
    """

    whole: tuple[int, ...]
    counts: tuple[int, ...]
    parts: Mapping[int, tuple[int, ...]]

    def window(self, rank: int) -> tuple[slice, ...]:
        """Where a rank's part lies in the whole."""
        sizes = [size // count for size, count in zip(self.whole, self.counts, strict=True)]
        places = zip(self.parts[rank], sizes, strict=True)
        return tuple(slice(part * size, (part + 1) * size) for part, size in places)

    def replicas(self) -> list[list[int]]:
        """Ranks that hold the same part, ascending, part by part."""
        holders: dict[tuple[int, ...], list[int]] = {}
        for rank in sorted(self.parts):
            holders.setdefault(self.parts[rank], []).append(rank)
        return list(holders.values())

    def joined(
        self, values: Mapping[int, NDArray[Any]], groups: Mapping[int, frozenset[int]] | None = None
    ) -> NDArray[Any]:
        """The whole tensor, each part from the lowest rank that holds it.

        Args:
            values: the tensor of each rank.
            groups: of a partial sum, over which ranks it is added up: those that hold the part.
        """
        import numpy as np

        first = next(iter(values.values()))
        full = np.empty(self.whole, first.dtype)
        for ranks in self.replicas():
            group = (groups or {}).get(ranks[0], frozenset[int]())
            terms = [rank for rank in ranks if rank in group] or ranks[:1]
            part = values[terms[0]]
            if len(terms) > 1:
                wide = [values[rank].astype(np.float64) for rank in terms]
                part = np.sum(wide, axis=0).astype(first.dtype)
            full[self.window(ranks[0])] = part
        return full


def counts_of(full_shape: Sequence[int], part: Sequence[int]) -> tuple[int, ...] | None:
    """Into how many parts each axis is cut; None where the sizes do not go into each other.

    Args:
        full_shape: of the whole tensor.
        part: the shape of what one rank holds.
    """
    if len(full_shape) != len(part):
        return None
    counts: list[int] = []
    for size, piece in zip(full_shape, part, strict=True):
        if piece == size:
            counts.append(1)
        elif piece and size % piece == 0:
            counts.append(size // piece)
        else:
            return None
    return tuple(counts)


def cuts(full_shape: Sequence[int], counts: Sequence[int], ranks: Sequence[int]) -> Iterator[Cut]:
    """All ways in which ranks may hold the parts, the most usual first.

    Args:
        full_shape: dimensions of the whole tensor.
        counts: into how many parts each axis is cut.
        ranks: all of them, ascending.
    """
    digits = _digits(len(ranks))
    wanted = [_primes(count) for count in counts]
    total = sum(map(len, wanted))
    if total > len(digits):
        return
    chosen = permutations(range(len(digits)), total)
    for order in islice(chosen, _MOST_CUTS * 50):
        parts: dict[int, tuple[int, ...]] = {}
        rest = iter(order)
        axes = [[next(rest) for _ in primes] for primes in wanted]
        if any(
            digits[digit][1] != prime
            for axis, primes in zip(axes, wanted, strict=True)
            for digit, prime in zip(axis, primes, strict=True)
        ):
            continue
        for place, rank in enumerate(ranks):
            numbers: list[int] = []
            for axis in axes:
                number = 0
                for digit in axis:
                    stride, base = digits[digit]
                    number = number * base + place // stride % base
                numbers.append(number)
            parts[rank] = tuple(numbers)
        yield Cut(tuple(full_shape), tuple(counts), parts)


def best_cut(
    candidates: Sequence[Cut],
    error: Callable[[Cut], float],
    likely: Cut | None = None,
    apart: Callable[[Cut], float] | None = None,
) -> Cut:
    """The way under which the parts agree best with the other run.

    Where none agrees at all (gradients whose terms cancel are rounding alone), the way under which
    ranks that hold the same part agree best with each other.

    Permuting parts explains no fault of a rank: whichever way is taken, all of its values count.

    Args:
        candidates: at least one.
        error: how far the joined tensor is from the other run's.
        likely: is looked at first: how others of these sizes are cut.
        apart: how far ranks are from each other that hold the same part.
    """
    if len(candidates) == 1:
        return candidates[0]
    first = next(
        (cut for cut in candidates if likely is not None and cut.parts == likely.parts),
        candidates[0],
    )
    best, least = first, error(first)
    for cut in candidates:
        if least <= _CLEAR:
            break
        if cut is not first and (distance := error(cut)) < least:
            best, least = cut, distance
    if apart is not None and not least < _NOTHING:
        return min((best, *candidates), key=apart)
    return best


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    divisor = 2
    while count > 1:
        while count % divisor == 0:
            primes.append(divisor)
            count //= divisor
        divisor += 1
    return primes


def _digits(count: int) -> list[tuple[int, int]]:
    """Stride and base of each digit of a rank's number, the highest first."""
    digits: list[tuple[int, int]] = []
    stride = 1
    for base in reversed(_primes(count)):
        digits.append((stride, base))
        stride *= base
    return digits[::-1]
