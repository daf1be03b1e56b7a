"""What would save memory: each of MindSpore's own switches, tried on the tensors of a dump.

An option is a set of changes to the curve of a step and to what stays: tensors that die earlier,
are born again later, shrink, or move to the host.  So any set of options can be put together and
its peak counted, and what it costs (operations again, bytes over links) adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import accumulate, combinations
from typing import Literal, TypeAlias

from irtool.cluster.memory import Memory
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

Link: TypeAlias = Literal["group", "host", "stage"]
"""Over what an option moves bytes: a collective's group, the host's bus, between stages."""


@dataclass(frozen=True, slots=True)
class Change:
    """``bytes`` more (or less) from launch ``first`` to launch ``last``, both included."""

    first: int
    last: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one rank moves more each step (fewer, if negative), and with whom.

    Attributes:
        link: over what they are moved; ``stage``: between stages.
        bytes: of one rank.
        op: the collective or copy.
        ranks: who takes part, where that is known.
        fusion: the fusion id of what serves a weight, which starts together with others; 0: it
            starts alone.
    """

    link: Link
    bytes: int
    op: str = ""
    ranks: tuple[int, ...] = ()
    fusion: int = 0


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to change.

    Attributes:
        switch: MindSpore's own name of it (``recompute``, ``parallel_optimizer_threshold``).
        target: what it is applied to: a cell, a parameter; empty for the whole network.
        how: the lines to write.
        changes: to the curve of a step.
        static: bytes more (less) that stay.
        flops: operations more each step; ``flops_unknown`` operators could not be counted.
        again: the nodes that run once more, where the operations are theirs.
        traffic: bytes moved more each step.
        excludes: switches on the same target that it cannot be put together with.
        note: what to know besides.
    """

    switch: str
    target: str
    how: str
    changes: tuple[Change, ...] = ()
    static: int = 0
    flops: int = 0
    flops_unknown: int = 0
    again: tuple[Node, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    excludes: frozenset[str] = frozenset()
    note: str = ""

    @property
    def traffic_bytes(self) -> int:
        """Bytes moved more each step, over all links."""
        return sum(item.bytes for item in self.traffic)


@dataclass(frozen=True, slots=True)
class Saving:
    """An option with its effect: ``saved`` bytes of the peak for ``seconds`` more each step."""

    option: Option
    saved: int
    seconds: float

    @property
    def per_flop(self) -> float | None:
        """Bytes saved for each operation added; None where it adds none."""
        return self.saved / self.option.flops if self.option.flops > 0 else None

    @property
    def per_byte(self) -> float | None:
        """Bytes saved for each byte moved more; None where it moves none more."""
        moved = self.option.traffic_bytes
        return self.saved / moved if moved > 0 else None


@dataclass(frozen=True, slots=True)
class Combination:
    """Options that together stay below the limit; ``peak`` is the device's with all of them."""

    options: tuple[Option, ...]
    peak: int
    seconds: float


Price: TypeAlias = Callable[[Option], float]
"""Seconds that an option adds to a step: operations and traffic under some machine."""


@dataclass(slots=True)
class Trial:
    """Counts the peak with options applied."""

    memory: Memory
    steps: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        before = 0
        for bytes_alive in self.memory.curve:
            self.steps.append(bytes_alive - before)
            before = bytes_alive

    def peak(self, options: Iterable[Option]) -> int:
        """Static and dynamic bytes at the peak with these options."""
        steps = list(self.steps)
        steps.append(0)
        static = self.memory.static_bytes
        for option in options:
            static += option.static
            for change in option.changes:
                if change.first <= change.last:
                    steps[change.first] += change.bytes
                    steps[change.last + 1] -= change.bytes
        return static + max(accumulate(steps[:-1]), default=0)


def savings(memory: Memory, options: Iterable[Option], price: Price) -> tuple[Saving, ...]:
    """Options with what each saves by itself, the cheapest byte first.

    Those that save nothing at the peak come last: another tensor is alive there instead.

    Args:
        memory: of the device, with its curve.
        options: to be tried, each by itself.
        price: seconds that an option adds to a step.

    Returns:
        Bytes at the peak that each saves; less than none where it takes more.
    """
    trial = Trial(memory)
    tried = [
        Saving(option, memory.peak_bytes - trial.peak((option,)), price(option))
        for option in options
    ]
    return tuple(sorted(tried, key=_rank))


def _rank(saving: Saving) -> tuple[bool, float, int]:
    """What costs nothing first, by bytes; then by seconds a byte; savings of nothing last."""
    if saving.saved <= 0:
        return True, 0.0, -saving.saved
    return False, max(0.0, saving.seconds) / saving.saved, -saving.saved


_MOST_GROUPS = 6


def combinations_within(
    memory: Memory, ranked: Sequence[Saving], limit: int, price: Price, most: int = 3
) -> tuple[Combination, ...]:
    """Sets of options that bring the device under a limit, the cheapest first.

    Options of one switch on several targets (``recompute`` by cell) are taken in the order of
    ``ranked``, no more of them than needed; of the others every subset is tried.  A set in which
    one option can be left out is not listed.

    Args:
        memory: the device.
        ranked: the options with their effect, as :func:`savings` gives them.
        limit: bytes for tensors: the device's, less what :class:`Memory` adds as an interval.
        price: what an option costs.
        most: how many sets to return.
    """
    trial = Trial(memory)
    serial: dict[str, list[Option]] = {}
    single: list[Option] = []
    for saving in ranked:
        if saving.saved < 0:
            continue
        if saving.option.target:
            serial.setdefault(saving.option.switch, []).append(saving.option)
        elif saving.saved > 0:
            single.append(saving.option)
    sets: dict[frozenset[tuple[str, str]], Combination] = {}
    for subset in _subsets(single[:_MOST_GROUPS]):
        for options in ([], *serial.values()):
            chosen = _enough(trial, subset, options, limit)
            if chosen is None:
                continue
            chosen = _pruned(trial, chosen, limit, price)
            key = frozenset((option.switch, option.target) for option in chosen)
            sets[key] = Combination(
                tuple(chosen), trial.peak(chosen), sum(price(option) for option in chosen)
            )
    ordered = sorted(sets.values(), key=lambda one: (one.seconds, len(one.options), one.peak))
    return tuple(ordered[:most])


def _subsets(options: Sequence[Option]) -> Iterable[list[Option]]:
    for count in range(len(options) + 1):
        for subset in combinations(options, count):
            if not _clash(subset):
                yield list(subset)


def _clash(options: Sequence[Option]) -> bool:
    return any(
        a.switch in b.excludes and (not a.target or not b.target or a.target == b.target)
        for a in options
        for b in options
        if a is not b
    )


def _enough(
    trial: Trial, subset: list[Option], series: Sequence[Option], limit: int
) -> list[Option] | None:
    """The subset with the fewest options of a series that stay below the limit."""
    series = [option for option in series if not _clash([*subset, option])]
    if trial.peak([*subset, *series]) > limit:
        return None
    low, high = 0, len(series)
    while low < high:
        middle = (low + high) // 2
        if trial.peak([*subset, *series[:middle]]) <= limit:
            high = middle
        else:
            low = middle + 1
    chosen = [*subset, *series[:low]]
    return chosen if trial.peak(chosen) <= limit else None


def _pruned(trial: Trial, options: list[Option], limit: int, price: Price) -> list[Option]:
    """Without the options that are not needed, the dearest left out first."""
    chosen = list(options)
    for option in sorted(options, key=price, reverse=True):
        rest = [one for one in chosen if one is not option]
        if price(option) >= 0 and trial.peak(rest) <= limit:
            chosen = rest
    return chosen
