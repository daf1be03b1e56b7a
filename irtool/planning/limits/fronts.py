"""Pairs of seconds and bytes by state, of which none is beaten by another in both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class TooMany(Exception):
    """There are more labels than may be kept."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Seconds and bytes at a price must not be more than ``most``."""

    price: float
    most: float

    def is_below(self, seconds: Floats, held: Floats) -> Bools:
        """Which labels take no more than ``most``."""
        return seconds + self.price * held <= self.most


@dataclass(slots=True)
class Loss:
    """What may be lost because seconds that are about the same count as one.

    Attributes:
        most: labels that a step may make.
        work: labels that all steps may make.
        lost: seconds that may have been lost by the end.
        step: seconds that count as one in each step.
        left: seconds that may be lost besides.
    """

    most: int
    work: int
    lost: float
    step: float
    left: float

    def take(self, seconds: float) -> None:
        """Count seconds that may have been lost.

        Raises:
            TooMany: that is too much.
        """
        if seconds > self.left:
            raise TooMany
        self.lost += seconds
        self.left -= seconds


@dataclass(slots=True)
class Kept:
    """Labels in the order of their states; ``start``: where those of each state begin."""

    start: Ints
    seconds: Floats
    held: Floats
    marks: list[Ints]


@dataclass(slots=True)
class Front:
    """Labels by state, with marks of how they came about."""

    state: Ints
    seconds: Floats
    held: Floats
    marks: list[Ints]

    @classmethod
    def together(cls, fronts: Sequence[Front]) -> Front:
        """Labels of several fronts that are marked alike."""
        marks = zip(*(front.marks for front in fronts), strict=True)
        return cls(
            np.concatenate([front.state for front in fronts]),
            np.concatenate([front.seconds for front in fronts]),
            np.concatenate([front.held for front in fronts]),
            [np.concatenate(mark) for mark in marks],
        )

    def joined(self, other: Kept, places: Ints, needed: Floats, bar: Bar, loss: Loss) -> Front:
        """Each label with each of another bucket that has the same state.

        Args:
            other: labels of the other bucket.
            places: by state, that of the other bucket.
            needed: by state, seconds and priced bytes that the rest takes at least.
            bar: what all of it has to be below.
            loss: what may be lost.

        Raises:
            TooMany: there are too many labels, and no more may be lost.
        """
        front, step = self, 2 * loss.step
        while True:
            first = other.start[places[front.state]]
            count = other.start[places[front.state] + 1] - first
            total = int(count.sum())
            if total <= loss.most:
                loss.work -= total
                if loss.work < 0:
                    raise TooMany
                return front._joined(other, first, count, needed, bar).pruned(loss.step)
            loss.take(step)
            front = front.pruned(step)
            step *= 2

    def _joined(self, other: Kept, first: Ints, count: Ints, needed: Floats, bar: Bar) -> Front:
        which = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        taken = first[which] + place
        seconds = self.seconds[which] + other.seconds[taken]
        held = self.held[which] + other.held[taken]
        keep = bar.is_below(seconds + needed[self.state[which]], held)
        which = which[keep]
        marks = [mark[which] for mark in self.marks]
        return Front(self.state[which], seconds[keep], held[keep], [*marks, taken[keep]])

    def pruned(self, step: float) -> Front:
        """Labels that are not beaten in seconds (in steps of so many) and bytes; ordered."""
        if not len(self.state):
            return self
        order = np.lexsort((self.seconds, self.held, self.state))
        state = self.state[order]
        steps = np.floor(self.seconds[order] / step).astype(np.int64)
        steps -= steps.min()
        group = np.cumsum(np.diff(state, prepend=state[0]) != 0)
        value = steps - group * (int(steps.max()) + 1)  # each group is below all before it
        keep = np.ones(len(order), dtype=np.bool_)
        keep[1:] = value[1:] < np.minimum.accumulate(value)[:-1]
        kept = order[keep]
        marks = [mark[kept] for mark in self.marks]
        return Front(self.state[kept], self.seconds[kept], self.held[kept], marks)

    def kept(self, states: int) -> Kept:
        """The labels, found by state; they are ordered."""
        start = np.searchsorted(self.state, np.arange(states + 1)).astype(np.int64)
        return Kept(start, self.seconds, self.held, self.marks)
