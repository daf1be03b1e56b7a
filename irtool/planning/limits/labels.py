"""The cheapest choice that fits into a memory, by keeping what is not beaten in both.

Elimination as in ``bucket_tree``, but of every entry all pairs of seconds and
bytes are kept that no other is better than in both (labels of the constrained shortest path,
Hansen 1980).  Those that cannot become part of anything cheap enough are dropped: at some price of
a byte it is known of each entry what the rest takes at least (bounds of Lagrange prune the labels;
Dumitrescu and Boland 2003).  Labels whose seconds are about the same count as one, so that what is
found is the optimum but for a part that is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import inf, prod

import numpy as np

from irtool.ir.dataclass import dataclass
from irtool.planning.limits.bucket_tree import Bucket, Tree, scope_of
from irtool.planning.limits.fronts import Bar, Front, Ints, Kept, Loss, TooMany
from irtool.planning.search.exact import Floats

MOST_IN_ALL = 2_000_000
"""Labels that all steps may make."""
MOST_LABELS = 600_000
"""Labels that one step may make."""
FEWER_LABELS = 300_000
"""The same where labels are joined until there are so few."""
SLACK = 2e-4
"""Part of the sum that may be lost because seconds that are about the same count as one."""
MORE_SLACK = 4e-3
"""What may be lost besides where there are too many labels."""


@dataclass(frozen=True, slots=True)
class Best:
    """What was found: by variable choice and mode (empty: nothing), and what nothing is below."""

    choices: tuple[int, ...]
    modes: tuple[int, ...]
    bound: float


@dataclass(slots=True)
class Labelling:
    """A search for the cheapest choice of a tree that fits.

    Attributes:
        tree: of numbers that are seconds and priced bytes.
        seconds: by variable, seconds of each mode.
        held: by variable, bytes of each mode.
        price: of a byte in the tree's numbers.
        room: bytes that there are.
        enough: seconds that what is found has to be below.
        made: labels that were made, a measure of the effort.
    """

    tree: Tree
    seconds: Sequence[Sequence[Floats]]
    held: Sequence[Sequence[Floats]]
    price: float
    room: float
    enough: float
    made: int = 0
    _bar: Bar = field(init=False)
    _loss: Loss = field(init=False)

    def run(self) -> Best:
        """The cheapest choice of the tree that fits.

        Raises:
            TooMany: the labels are too many.
        """
        try:
            return self._run(0.0, MOST_LABELS)
        except TooMany:
            self.made += MOST_IN_ALL - self._loss.work
        return self._run(MORE_SLACK, FEWER_LABELS)

    def _run(self, more: float, most: int) -> Best:
        tree = self.tree
        steps = sum(1 + len(bucket.children) for bucket in tree.buckets) + len(tree.roots)
        enough = self.enough
        self._loss = Loss(most, MOST_IN_ALL, SLACK * enough, SLACK * enough / steps, more * enough)
        self._bar = Bar(self.price, enough * (1 + SLACK + more) + self.price * self.room)
        kept: list[Kept] = []
        for bucket in tree.buckets:
            kept.append(self._bucket(bucket, kept))
        self.made += MOST_IN_ALL - self._loss.work
        return self._ended(kept)

    def _bucket(self, bucket: Bucket, kept: Sequence[Kept]) -> Kept:
        """The labels of a bucket by what is beside it."""
        tree, scope = self.tree, scope_of(bucket)
        needed = self._needed(bucket)
        now = self._first(bucket, needed[0])
        for number, child in enumerate(bucket.children, 1):
            places = _places(tree, scope, tree.buckets[child].beside)
            now = now.joined(kept[child], places, needed[number], self._bar, self._loss)
        choice = _places(tree, scope, (bucket.variable,))[now.state]
        left = _places(tree, scope, bucket.beside)[now.state]
        last = Front(left, now.seconds, now.held, [choice, *now.marks]).pruned(self._loss.step)
        count = prod(tree.sizes[v] for v in bucket.beside)
        return last.kept(count)

    def _needed(self, bucket: Bucket) -> list[Floats]:
        """By state what the rest takes at least: before any child came in, one, two, ..., all."""
        tree, scope = self.tree, scope_of(bucket)
        nothing = np.zeros([tree.sizes[v] for v in scope])
        least = [nothing + tree.spread(bucket.rest, bucket.beside, scope)]
        for child in reversed(bucket.children):
            other = tree.buckets[child]
            least.append(least[-1] + tree.spread(other.least, other.beside, scope))
        return [np.ravel(table) for table in reversed(least)]

    def _first(self, bucket: Bucket, needed: Floats) -> Front:
        """Labels of the bucket's own numbers, one a state and mode."""
        variable = bucket.variable
        between = np.ravel(self.tree.between(bucket))
        own = _places(self.tree, scope_of(bucket), (variable,))
        fronts: list[Front] = []
        for mode, (more, size) in enumerate(
            zip(self.seconds[variable], self.held[variable], strict=True)
        ):
            seconds, held = between + more[own], size[own]
            (states,) = np.nonzero(self._bar.is_below(seconds + needed, held))
            marks = [np.full(len(states), mode, dtype=np.int64)]
            fronts.append(Front(states, seconds[states], held[states], marks))
        return Front.together(fronts)

    def _ended(self, kept: Sequence[Kept]) -> Best:
        """Join the parts that have nothing to do with each other, and read the choices."""
        tree = self.tree
        places = [index for index, bucket in enumerate(tree.buckets) if not bucket.beside]
        nowhere = np.zeros(1, dtype=np.int64)
        now = Front(nowhere, np.zeros(1), np.zeros(1), [])
        for number, index in enumerate(places, 1):
            rest = sum(float(tree.buckets[other].least) for other in places[number:])
            now = now.joined(kept[index], nowhere, np.full(1, rest), self._bar, self._loss)
        fits = np.where(now.held <= self.room, now.seconds, inf)
        if not (fits < self.enough).any():
            return Best((), (), self.enough)
        label = int(np.argmin(fits))
        taken = [(index, int(mark[label])) for index, mark in zip(places, now.marks, strict=True)]
        choices, modes = self._read(kept, taken)
        return Best(choices, modes, min(self.enough, float(fits[label]) - self._loss.lost))

    def _read(
        self, kept: Sequence[Kept], taken: list[tuple[int, int]]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Choices and modes behind labels of some buckets."""
        choices, modes = [0] * len(self.tree.sizes), [0] * len(self.tree.sizes)
        while taken:
            index, label = taken.pop()
            bucket, labels = self.tree.buckets[index], kept[index]
            choice, mode, *children = (int(mark[label]) for mark in labels.marks)
            choices[bucket.variable], modes[bucket.variable] = choice, mode
            taken += zip(bucket.children, children, strict=True)
        return tuple(choices), tuple(modes)


def _places(tree: Tree, scope: tuple[int, ...], some: tuple[int, ...]) -> Ints:
    """By state of a scope, the state of some of its variables."""
    states = np.zeros([tree.sizes[v] for v in scope], dtype=np.int64)
    stride = 1
    for v in reversed(some):
        shape = [tree.sizes[other] if other == v else 1 for other in scope]
        states += np.reshape(np.arange(tree.sizes[v], dtype=np.int64) * stride, shape)
        stride *= tree.sizes[v]
    return np.ravel(states)
