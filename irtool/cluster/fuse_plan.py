"""Buckets for the fusion of collectives under an alpha-beta model, and what they would gain.

Gradients become ready one after the other while the backward pass goes on; the links of a group
carry one collective at a time.  With ``end(k) = max(end(k - 1), ready(k)) + t(bytes of k)`` the
partition into runs of neighbours in the order of readiness that ends first is found by dynamic
programming.  Gathering of weights is the same read backwards, from when each is needed.  Compute
times come from operations and bytes over the machine's rates, so figures are rough; their order
is what counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irtool.cluster.flops import flops
from irtool.cluster.fuse import (
    Bucket,
    Tensor,
    buckets_of,
    fusion,
    ids_by_size,
    in_parameter_order,
)
from irtool.cluster.launch_order import launches
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import RankProgram
from irtool.ir.collectives import is_collective
from irtool.ir.node import Node

_MOST_MB = 4096
_MOST_TENSORS = 4000


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
        """Seconds a step saved."""
        return self.exposed[0] - self.exposed[1]


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The channels of one rank's graph, and when computing is through (seconds)."""

    channels: tuple[Channel, ...]
    compute_seconds: float
    unknown_operators: int

    @property
    def gain(self) -> float:
        """Seconds a step saved by all channels; they share links, so this is the most."""
        return sum(channel.gain for channel in self.channels)


def plan(one: RankProgram, machine: Machine) -> FusionPlan:
    """The best buckets for one rank's graph on a machine."""
    clock = _Clock(one, machine)
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
    return FusionPlan(tuple(channels), clock.total, clock.unknown)


def _channel(
    one: RankProgram, machine: Machine, clock: _Clock, configured: Sequence[Bucket]
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
        found = self._known.get(size)
        if found is None:
            found = self._known[size] = self._machine.seconds(self._op, size, self._ranks)
        return found

    def ready(self, tensor: Tensor) -> float:
        """When a tensor may go."""
        return self._times[tensor.place]

    def end(self, parts: Sequence[Sequence[Tensor]]) -> float:
        """When the last bucket is through, each going when all its members are ready."""
        ordered = sorted(parts, key=lambda part: max(map(self.ready, part)))
        end = 0.0
        for part in ordered:
            ready = max(map(self.ready, part))
            end = max(end, ready) + self.seconds(sum(tensor.bytes for tensor in part))
        return end

    def exposed(self, parts: Sequence[Sequence[Tensor]]) -> float:
        """Seconds of communication that nothing hides."""
        return max(0.0, self.end(parts) - self.horizon)


def _best_partition(ordered: Sequence[Tensor], price: _Price) -> list[tuple[Tensor, ...]]:
    """The partition into neighbours that ends first; of equal ones, the one of fewest buckets."""
    count = len(ordered)
    if count > _MOST_TENSORS:
        return [tuple(ordered)]
    sums = [0]
    for tensor in ordered:
        sums.append(sums[-1] + tensor.bytes)
    ready = [price.ready(tensor) for tensor in ordered]
    ends: list[tuple[float, int]] = [(0.0, 0)]
    cuts = [0]
    for stop in range(1, count + 1):
        best: tuple[float, int] | None = None
        cut = 0
        for start in range(stop):
            end = max(ends[start][0], ready[stop - 1]) + price.seconds(sums[stop] - sums[start])
            here = (end, ends[start][1] + 1)
            if best is None or here < best:
                best, cut = here, start
        assert best is not None  # there is at least one tensor
        ends.append(best)
        cuts.append(cut)
    parts: list[tuple[Tensor, ...]] = []
    stop = count
    while stop:
        parts.append(tuple(ordered[cuts[stop] : stop]))
        stop = cuts[stop]
    return parts[::-1]


def _nearest_size(
    one: RankProgram,
    tensors: Sequence[Tensor],
    best: Sequence[Sequence[Tensor]],
    price: _Price,
    before: float,
) -> tuple[int | None, float | None, bool]:
    """The value of mode ``size`` whose buckets end first, and whether they are the best ones."""
    ordered = in_parameter_order(one, tensors)
    elements = [tensor.elements for tensor in ordered]
    if None in elements or not ordered:
        return None, None, False
    wanted = {frozenset(tensor.place for tensor in part) for part in best}
    found: tuple[float, int, bool] | None = None
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
        if found is None or (exposed, not same) < (found[0], not found[2]):
            found = (exposed, megabytes, same)
    if found is None or (found[0] >= before and not found[2]):
        return None, None, False
    return found[1], found[0], found[2]


def _sizes(elements: Sequence[int]) -> Sequence[int]:
    """Values worth a try: all small ones, then those in even steps up to everything."""
    most = min(_MOST_MB, sum(elements) // 262_144 + 2)
    step = max(1, most // 512)
    return range(1, most + 1, step)


# -- when what is ready --------------------------------------------------------------------------


class _Clock:
    """When each node of a graph starts, computing without ever waiting for communication."""

    def __init__(self, one: RankProgram, machine: Machine) -> None:
        self.unknown = 0
        self._starts: dict[Node, float] = {}
        self._needed: dict[Node, float] = {}
        now = 0.0
        seconds: dict[Node, float] = {}
        order = launches(one.program.dump.whole())
        for item in order:
            node = item.node
            self._starts.setdefault(node, now)
            if is_collective(node):
                continue
            if node not in seconds:
                seconds[node] = self._seconds(node, machine)
            now += seconds[node]
        self.total = now
        for item in order:
            users = [self._starts[user.node] for user in item.users if user.node in self._starts]
            if is_collective(item.node):
                self._needed[item.node] = min(users, default=self._starts[item.node])

    def when(self, node: Node, gathers: bool) -> float:
        """When a collective may go; of a gather, counted back from the end."""
        if gathers:
            return self.total - self._needed.get(node, 0.0)
        return self._starts.get(node, 0.0)

    def horizon(self, gathers: bool) -> float:
        """When computing is through: what goes on after it is exposed."""
        return self.total

    def _seconds(self, node: Node, machine: Machine) -> float:
        count = flops(node)
        output = node.output_type
        dtype = output.dtype if output is not None else None
        moved = sum(one.size or 0 for one in (*node.input_types, output) if one is not None)
        by_memory = moved / machine.memory_bandwidth if machine.memory_bandwidth else 0.0
        if count is None:
            self.unknown += 1
            return by_memory
        by_rate = count / machine.rate(dtype) if machine.flops else 0.0
        return max(by_rate, by_memory)
