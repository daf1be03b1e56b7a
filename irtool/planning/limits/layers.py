"""The best choice under a memory limit, proven close to what is possible.

Where layers are recomputed, the largest of them is held while it is.  A mean of all layers is at
most that: so something is known of all choices at once.  Where that is not close, how much the
largest layer makes anew is divided into ranges (branch and bound).  Between ``low`` and ``high``
bytes everything else has to fit into the limit less ``low``, and each layer pays for what it makes
anew above ``high`` (multipliers of Lagrange, changed by subgradients; Held and Karp 1971).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from irtool.planning.limits.bucket_tree import TooWide
from irtool.planning.limits.modes import Choice, Modes, Overhead, choice_of
from irtool.planning.limits.narrow import Narrow, Narrowed, Within
from irtool.planning.limits.pack import packed
from irtool.planning.search.paid_once import seconds_of_links
from irtool.planning.search.search import Search

CLOSE = 1e-3
"""Part of the bound that is close: nothing more is searched then."""
_CLOSE_ENOUGH = 8e-3
"""The same where ranges have to be looked at."""
_BETTER = 2e-4
"""Part of the seconds by which what is searched has to be better."""
_STEP = 5e-3
"""Part of the bound by which what is searched may be above it at first."""
_TRIES = 200
"""Searches after which no more ranges of the largest layer are looked at."""
_WORK = 12_000_000
"""Labels, or what is about as much work, after which nothing more is searched."""
_STEPS = 6
"""How often prices of what single layers make anew are changed in a range."""


_UNDER = 0.995
"""Ranges are parted a bit below what the largest layer makes anew in what was found."""


@dataclass(order=True, frozen=True, slots=True)
class _Range:
    """Bytes that the largest layer makes anew: a bound of it, and where to part it."""

    bound: float
    low: float
    high: float
    parted: float


@dataclass(eq=False)
class Closing:
    """A search for something cheaper than a known choice.

    Attributes:
        search: of the model.
        modes: by variable.
        overhead: bytes beside those of operators and weights.
        limit: bytes of a device.
        best: the best choice that is known to fit; its seconds are exact.
        bound: seconds that nothing which fits is below.
    """

    search: Search
    modes: Sequence[Modes]
    overhead: Overhead | None
    limit: float
    best: Choice
    bound: float
    _narrow: Narrow = field(init=False)
    _tries: int = 0

    def run(self, price: float, *, with_ranges: bool = True) -> None:
        """Make choice and bound better until they are close.

        Args:
            price: of a byte, at which the bound is about the highest.
            with_ranges: whether to look at ranges of the largest layer.
        """
        self._narrow = Narrow(self.search, self.modes, self.overhead, price)
        try:
            self._narrow.start(Within(self.limit, self.best.seconds))
            self._all()
            far = self.best.seconds > self.bound * (1 + _CLOSE_ENOUGH)
            if self.overhead is not None and far and with_ranges:
                self._narrow.restrict(Within(self.limit, self._enough(inf)))
                self._inward()
                self._ranges(self._most())
        except TooWide:
            return

    @property
    def is_close(self) -> bool:
        """Whether there is nothing more to win."""
        return self.best.seconds <= self.bound * (1 + CLOSE)

    def _enough(self, seconds: float) -> float:
        """Seconds below which something is searched."""
        return min(seconds, self.best.seconds * (1 - _BETTER))

    def _all(self) -> None:
        """The best choice where the mean layer counts for the largest, and the bound that it is."""
        part = _STEP
        while not self.is_close:
            within = Within(self.limit, self._enough(self.bound * (1 + part)))
            self._narrow.restrict(within)
            narrowed = self._tried(within)
            self.bound = max(self.bound, min(narrowed.bound, self.best.seconds))
            if narrowed.choices is not None or within.enough >= self._enough(inf):
                return
            part *= 1.5 if narrowed.bound >= within.enough else 0.25
            if part < CLOSE or self._is_tired:
                return

    @property
    def _is_tired(self) -> bool:
        """Whether enough was tried."""
        return self._tries >= _TRIES or self._narrow.work > _WORK

    def _inward(self) -> None:
        """Look for choices that fit with their largest layer, where less is left for the mean."""
        room = self.limit
        for _ in range(_STEPS):
            narrowed = self._tried(Within(room, self._enough(inf), is_part=True))
            if narrowed.choices is None:
                return
            choice = choice_of(self.search.model, self.modes, *narrowed.choices)
            excess = self._bytes(choice) - self.limit
            if excess <= 0:
                return
            room = min(room, choice.held) - excess

    def _ranges(self, most: float) -> None:
        """Branch and bound over how much the largest recomputed layer makes anew."""
        queue = [_Range(self.bound, 0.0, most, most / 2)]
        while not self._is_tired:
            parent = heapq.heappop(queue)
            if not parent.low < parent.parted < parent.high:
                parent = replace(parent, parted=(parent.low + parent.high) / 2)
            for low, high in ((parent.low, parent.parted), (parent.parted, parent.high)):
                heapq.heappush(queue, self._range(parent, low, high))
            self.bound = max(self.bound, min(queue[0].bound, self.best.seconds))
            if self.best.seconds <= self.bound * (1 + _CLOSE_ENOUGH):
                return

    def _range(self, parent: _Range, low: float, high: float) -> _Range:
        """A part of a range: the bound of one base, or that where layers pay besides."""
        enough = self._enough(parent.bound * (1 + 4 * _STEP))
        part = _Range(parent.bound, low, high, (low + high) / 2)
        best: tuple[float, float, Narrowed] | None = None
        for weight in (1.0, 0.0):
            tried = self._tried(self._part(low, high, weight, enough, {}))
            if best is None or tried.bound > best[0]:
                best = tried.bound, weight, tried
        assert best is not None
        _, weight, tried = best
        prices: dict[str, float] = {}
        for _ in range(_STEPS):
            part = replace(part, bound=max(part.bound, tried.bound))
            if part.bound >= enough or tried.choices is None:
                break
            layers = self._layers(*tried.choices)
            part = replace(part, parted=_UNDER * max(layers.values(), default=0.0))
            prices = _dearer(layers, high, prices, enough - tried.bound + enough * _BETTER)
            if not prices:
                break
            tried = self._tried(self._part(low, high, weight, enough, prices))
        return part

    def _part(
        self, low: float, high: float, weight: float, enough: float, prices: dict[str, float]
    ) -> Within:
        room = self.limit - (1 - weight) * low
        return Within(room, enough, weight, high, prices, is_part=True)

    def _layers(self, choices: Sequence[int], modes: Sequence[int]) -> dict[str, float]:
        """Bytes that each layer makes anew."""
        assert self.overhead is not None
        made: dict[str, float] = {}
        for variable, (choice, mode) in enumerate(zip(choices, modes, strict=True)):
            layer = self.overhead.layer(variable)
            made[layer] = made.get(layer, 0.0) + self.overhead.made(variable, choice, mode)
        return made

    def _tried(self, within: Within) -> Narrowed:
        """A search; what was found on the way is looked at."""
        self._tries += 1
        narrowed = self._narrow.best(within)
        if narrowed.choices is not None:
            model = self.search.model
            choice = choice_of(model, self.modes, *narrowed.choices)
            self.better(exact(self.search, self.modes, choice))
            if self.overhead is not None:
                tight = packed(model, self.modes, self.overhead, choice, self.limit)
                if tight is not None:
                    self.better(exact(self.search, self.modes, tight))
        return narrowed

    def better(self, choice: Choice) -> None:
        """Take a choice if it fits and is faster."""
        if choice.seconds >= self.best.seconds:
            return
        if self._bytes(choice) <= self.limit:
            self.best = choice

    def _bytes(self, choice: Choice) -> float:
        more = self.overhead.above(choice.choices, choice.modes) if self.overhead else 0.0
        return choice.held + more

    def _most(self) -> float:
        """Bytes that the largest layer can make anew at most."""
        overhead = self.overhead
        assert overhead is not None
        layers: dict[str, float] = {}
        for variable, (modes, left) in enumerate(zip(self.modes, self._narrow.keep, strict=False)):
            most = max(
                (overhead.made(variable, int(choice), mode)
                 for choice in left for mode in range(len(modes.seconds))),
                default=0.0,
            )  # fmt: skip
            layers[overhead.layer(variable)] = layers.get(overhead.layer(variable), 0.0) + most
        return min(self.limit, max(layers.values(), default=0.0))


def _dearer(
    layers: dict[str, float], high: float, prices: dict[str, float], seconds: float
) -> dict[str, float]:
    """Prices of what layers make anew, higher where it is above ``high``; empty: none is."""
    above = {layer: made - high for layer, made in layers.items() if made > high or layer in prices}
    length = sum(more * more for more in above.values())
    if not length:
        return {}
    changed = {
        layer: prices.get(layer, 0.0) + seconds / length * more for layer, more in above.items()
    }
    return {layer: price for layer, price in changed.items() if price > 0}


def exact(search: Search, modes: Sequence[Modes], choice: Choice) -> Choice:
    """A choice whose seconds are those of its exact prices, each result paid for once.

    Args:
        search: of the model; it asks for the exact prices that the choice uses.
        modes: by variable, the modes to run it.
        choice: a candidate and a mode for every operator.

    Returns:
        the same candidates and modes.
    """
    while search.refine(choice.choices):
        pass
    model = search.model
    seconds = model.constant + seconds_of_links(model, choice.choices)
    for own, candidate, mode in zip(modes, choice.choices, choice.modes, strict=True):
        seconds += float(own.seconds[mode][candidate])
    return replace(choice, seconds=seconds)
