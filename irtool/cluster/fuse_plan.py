"""Buckets for the fusion of collectives under an alpha-beta model, and what they would gain.

Gradients become ready one after the other while the backward pass goes on; the links of a group
carry one collective at a time.  With ``end(k) = max(end(k - 1), ready(k)) + t(bytes of k)`` the
partition into runs of neighbours in the order of readiness that ends first is found by dynamic
programming; of those that leave as little exposed the one of fewest buckets is taken.  Gathering of
weights is the same read backwards, from when each is needed.  Compute times come from operations
and bytes over the machine's rates, so figures are rough; their order is what counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise, repeat

from irtool.cluster.computing import Clock, clock_of, overlaps
from irtool.cluster.fuse import (
    Bucket,
    Tensor,
    buckets_of,
    fusion,
    ids_by_size,
    in_parameter_order,
)
from irtool.cluster.machine import Machine
from irtool.cluster.pricing import Overlap, Queued, end_of, exposed_seconds
from irtool.cluster.ranks import RankProgram
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown

_MOST_MB = 4096
_MOST_TENSORS = 4000
_MOST_STEPS = 10_000_000


@dataclass(frozen=True, slots=True)
class Channel:
    """Tensors that could share a bucket: one operator, group, type, reduction, and zone.

    Attributes:
        configured: the buckets that the dump's ids make.
        recommended: the best ones there are.
        exposed: seconds that communication goes on after the computation it could hide behind, as
            configured and as recommended.
        size: the value for mode ``size`` that comes nearest, in MB; None where none does better
            than what is configured.
        size_exposed: the same seconds with that value.
        reproduces: whether that value makes exactly the recommended buckets.
    """

    op: str
    group: str | None
    ranks: tuple[int, ...] | None
    dtype: str | None
    configured: tuple[Bucket, ...]
    recommended: tuple[Bucket, ...]
    exposed: tuple[float, float]
    size: int | None
    size_exposed: float | None
    reproduces: bool

    @property
    def gain(self) -> float:
        """Seconds that a step takes less."""
        return self.exposed[0] - self.exposed[1]


@dataclass(frozen=True, slots=True)
class FusionPlan(Shown):
    """The channels of one rank's graph, and when computing is through (seconds) on a machine.

    ``sums`` and ``gathers``: what computing hides of the sums of gradients and of the gathers of
    weights, as configured, all of them on the same links.
    """

    channels: tuple[Channel, ...]
    compute_seconds: float
    unknown_operators: int
    machine: Machine
    sums: Overlap
    gathers: Overlap

    @property
    def gain(self) -> float:
        """Seconds a step saved by all channels; they share links, so this is the most."""
        return sum(channel.gain for channel in self.channels)


def plan(one: RankProgram, machine: Machine) -> FusionPlan:
    """The best buckets for one rank's graph on a machine.

    Args:
        one: the rank, with its validate dump.
        machine: what a collective of a size takes.
    """
    clock = clock_of(one, machine)
    buckets = fusion(one).buckets
    members: dict[tuple[object, ...], list[Bucket]] = {}
    for bucket in buckets:
        key = (bucket.op, bucket.group, bucket.dtype, bucket.reduction, bucket.zone)
        members.setdefault(key, []).append(bucket)
    channels = [
        _channel(one, machine, clock, same)
        for same in members.values()
        if same[0].ranks is not None
    ]
    channels.sort(key=lambda channel: -channel.gain)
    both = overlaps(one, machine, clock)
    return FusionPlan(tuple(channels), clock.total, clock.unknown, machine, *both)


def _channel(
    one: RankProgram, machine: Machine, clock: Clock, configured: Sequence[Bucket]
) -> Channel:
    first = configured[0]
    gathers = first.op == "AllGather"
    tensors = [tensor for bucket in configured for tensor in bucket.tensors]
    times = {tensor.place: clock.when(tensor.collective.node, gathers) for tensor in tensors}
    ordered = sorted(tensors, key=lambda tensor: (times[tensor.place], tensor.place))
    price = _Price(machine, first, times, clock.horizon(gathers))
    best = _best_partition(ordered, price)
    ids = {tensor.collective.node: number for number, part in enumerate(best, 1) for tensor in part}
    recommended = buckets_of(ordered, ids)
    before = price.exposed([bucket.tensors for bucket in configured])
    after = price.exposed(best)
    size, size_exposed, same = _nearest_size(one, ordered, best, price, before)
    return Channel(
        *(first.op, first.group, first.ranks, first.dtype),
        tuple(configured),
        recommended,
        (before, after),
        size,
        size_exposed,
        same,
    )


class _Price:
    """What buckets of one channel cost, and how long they go on after the computing."""

    def __init__(
        self, machine: Machine, first: Bucket, times: Mapping[int, float], horizon: float
    ) -> None:
        self._machine = machine
        self._op = first.op
        self._ranks = first.ranks or ()
        self._times = times
        self.horizon = horizon
        self._known: dict[int, float] = {}

    def seconds(self, size: int) -> float:
        """One collective of so many bytes."""
        seconds = self._known.get(size)
        if seconds is None:
            seconds = self._known[size] = self._machine.seconds(self._op, size, self._ranks)
        return seconds

    def ready(self, tensor: Tensor) -> float:
        """When a tensor may go."""
        return self._times[tensor.place]

    def end(self, parts: Sequence[Sequence[Tensor]]) -> float:
        """When the last bucket is through, each going when all its members are ready."""
        return end_of(self._queue(parts))

    def exposed(self, parts: Sequence[Sequence[Tensor]]) -> float:
        """Seconds of communication that nothing hides."""
        return exposed_seconds(self._queue(parts), self.horizon)

    def _queue(self, parts: Sequence[Sequence[Tensor]]) -> list[Queued]:
        return [
            Queued(self.seconds(sum(tensor.bytes for tensor in part)), max(map(self.ready, part)))
            for part in parts
        ]


def _best_partition(ordered: Sequence[Tensor], price: _Price) -> list[tuple[Tensor, ...]]:
    """The fewest buckets of neighbours that leave as little exposed as any number of them."""
    count = len(ordered)
    if count > _MOST_TENSORS:
        return [tuple(ordered)]
    sums = list(accumulate((tensor.bytes for tensor in ordered), initial=0))
    ready = [price.ready(tensor) for tensor in ordered]
    ends = [0.0]
    cuts = [0]
    for stop in range(1, count + 1):
        end, cut = _soonest(ends, stop, ready, sums, price)
        ends.append(end)
        cuts.append(cut)
    # What ends before the computing does is hidden, whenever it ends.
    few = _fewest(max(ends[-1], price.horizon), ready, sums, price)
    places = few if few is not None else _places(repeat(cuts), count)
    return [tuple(ordered[start:stop]) for start, stop in pairwise(places)]


def _soonest(
    ends: Sequence[float], stop: int, ready: Sequence[float], sums: Sequence[int], price: _Price
) -> tuple[float, int]:
    """When the first ``stop`` tensors can be through, and where their last bucket begins.

    ``ends[start]`` is when those before ``start`` are; of equal ones the longest last bucket.
    """
    latest, total = ready[stop - 1], sums[stop]
    return min(
        (max(ends[start], latest) + price.seconds(total - sums[start]), start)
        for start in range(min(stop, len(ends)))
    )


def _fewest(
    deadline: float, ready: Sequence[float], sums: Sequence[int], price: _Price
) -> list[int] | None:
    """Where the buckets of the smallest number that meets a deadline begin and end.

    One bucket more at a time; None where that would take too long.
    """
    count = len(ready)
    ends = [0.0, *[math.inf] * count]
    cuts: list[list[int]] = []
    for _ in range(min(count, _MOST_STEPS // count**2)):
        made = [_soonest(ends, stop, ready, sums, price) for stop in range(1, count + 1)]
        ends = [math.inf, *(end for end, _ in made)]
        cuts.append([0, *(cut for _, cut in made)])
        if ends[-1] <= deadline * (1 + 1e-12):
            return _places(reversed(cuts), count)
    return None


def _places(cuts: Iterable[Sequence[int]], stop: int) -> list[int]:
    """The ends of buckets from the first to the last, followed back from the last.

    ``cuts`` has, bucket by bucket from the last one, where one that ends at each place begins.
    """
    ends = [stop]
    for row in cuts:
        if not ends[-1]:
            break
        ends.append(row[ends[-1]])
    return ends[::-1]


def _nearest_size(
    one: RankProgram,
    tensors: Sequence[Tensor],
    best: Sequence[Sequence[Tensor]],
    price: _Price,
    before: float,
) -> tuple[int | None, float | None, bool]:
    """The value of mode ``size`` whose buckets leave least exposed, and whether they are the best.

    Of values that do equally well the one with the fewest buckets.
    """
    ordered = in_parameter_order(one, tensors)
    elements = [tensor.elements for tensor in ordered]
    if None in elements or not ordered:
        return None, None, False
    wanted = {frozenset(tensor.place for tensor in part) for part in best}
    nearest: tuple[float, bool, int, int] | None = None  # exposed, others, buckets, MB
    seen: set[tuple[int, ...]] = set()
    for megabytes in _sizes([count or 0 for count in elements]):
        ids = ids_by_size([count or 0 for count in elements], megabytes)
        if tuple(ids) in seen:
            continue
        seen.add(tuple(ids))
        parts: dict[int, list[Tensor]] = {}
        for number, tensor in zip(ids, ordered, strict=True):
            parts.setdefault(number, []).append(tensor)
        same = {frozenset(item.place for item in part) for part in parts.values()} == wanted
        exposed = price.exposed(list(parts.values()))
        here = (exposed, not same, len(parts), megabytes)
        nearest = here if nearest is None else min(nearest, here)
    if nearest is None or (nearest[0] >= before and nearest[1]):
        return None, None, False
    exposed, others, _, megabytes = nearest
    return megabytes, exposed, not others


def _sizes(elements: Sequence[int]) -> Sequence[int]:
    """Values worth a try: all small ones, then those in even steps up to everything."""
    most = min(_MOST_MB, sum(elements) // 262_144 + 2)
    step = max(1, most // 512)
    return range(1, most + 1, step)
