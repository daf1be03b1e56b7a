"""What the communications of a step take: the one price that every command asks for.

A step is a list of launches: which collective, how many bytes, among which ranks, with which fusion
id.  :meth:`irtool.cluster.machine.Machine.seconds` says what one launch takes; here is what several
take together:

* **Fusion.** Launches that the backend makes one of start once.  It goes by operator, group,
  reduction, element type and fusion id (0 is never fused), and keeps apart what depends on each
  other (``zone``); source: MindSpore 2.7's pass ``communication_op_fusion``, see
  :mod:`irtool.cluster.fuse`.  Each member has its own bytes' part of the price, and an equal part
  of the one start, so that parts add up to the price of the whole.
* **Hiding.** Sums of gradients go on while the rest of the backward pass is computed, and gathers
  of weights while what comes before their first use is.  Each bucket goes when its last member is
  ready and the bucket before it is through: ``end(k) = max(end(k - 1), ready(k)) + seconds(k)``;
  what ends after the computing that could hide it is exposed.

Whatever a command knows a step from (a begin dump's predicted communications, a validate dump's
nodes, a plan), equal launches on an equal machine have equal seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass

FUSIBLE = ("AllReduce", "AllGather", "ReduceScatter")
"""Collectives that the backend may make one of."""

DEFAULT_FUSION = 1
"""The fusion id that MindSpore 2.7 gives sums of gradients, and what optimizer parallel gathers and
scatters, unless a parameter's ``comm_fusion`` or the context's says another (seen in validate dumps
of 2.7.0)."""

BucketKey: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One communication of a step as one rank sees it, before any is fused.

    Attributes:
        op: the collective (``AllReduce``, …).
        size: bytes of the whole tensor on one rank, the larger of input and output.
        ranks: who takes part; of a Send or Receive both ends.
        fusion: fusion id; 0: never fused.
        dtype: element type; reduction: ``sum``, ``max``, … where it reduces.
        zone: how many fusible ones of its operator lie on the longest way to the end of the graph.
        group: the group's name, where nobody knows its ranks.
    """

    op: str
    size: int
    ranks: tuple[int, ...]
    fusion: int = 0
    dtype: str | None = None
    reduction: str | None = None
    zone: int = 0
    group: str | None = None


def bucket_key(launch: Launch) -> BucketKey | None:
    """What is equal for launches that the backend makes one of.

    Args:
        launch: before any is fused.

    Returns:
        None for one that stays alone.
    """
    if launch.op not in FUSIBLE or not launch.fusion:
        return None
    return (
        launch.op, launch.ranks or launch.group, launch.fusion, launch.dtype, launch.reduction,
        launch.zone,
    )  # fmt: skip


def buckets(launches: Sequence[Launch]) -> list[tuple[int, ...]]:
    """Which launches go together, as places in the sequence, in the order of their first member.

    Args:
        launches: of a step.

    Returns:
        By bucket the places of its members, from 0.
    """
    by_bucket: dict[object, list[int]] = {}
    for place, launch in enumerate(launches):
        key = bucket_key(launch)
        by_bucket.setdefault(place if key is None else key, []).append(place)
    return [tuple(places) for places in by_bucket.values()]


def bucket_seconds(op: str, sizes: Iterable[int], ranks: Sequence[int], machine: Machine) -> float:
    """Seconds of launches of one operator and group that start together; of one by itself, too."""
    return machine.seconds(op, sum(sizes), ranks)


def step_seconds(launches: Sequence[Launch], machine: Machine) -> list[float]:
    """Seconds of each launch of a step; members of a bucket share its one start.

    The sum is what all take one after another.

    Args:
        launches: of a step.
        machine: what each of them costs.

    Returns:
        In the order of the launches.
    """
    seconds = [0.0] * len(launches)
    for places in buckets(launches):
        first = launches[places[0]]
        if len(places) == 1:
            seconds[places[0]] = machine.seconds(first.op, first.size, first.ranks)
            continue
        start, per_byte = machine.line(first.op, first.ranks)
        for place in places:
            seconds[place] = start / len(places) + launches[place].size * per_byte
    return seconds


def seconds_within(launch: Launch, machine: Machine, members: int) -> float:
    """Seconds of a launch whose bucket has so many members: at least that, if it has fewer.

    What a search can add up launch by launch before it knows which of them go together: with the
    largest number of members that a bucket may have, the sum is never above
    :func:`step_seconds`, and equal where all of them do share one bucket.

    Args:
        launch: before any is fused.
        machine: what it costs.
        members: the most that its bucket may have.
    """
    if bucket_key(launch) is None:
        return machine.seconds(launch.op, launch.size, launch.ranks)
    start, per_byte = machine.line(launch.op, launch.ranks)
    return start / max(1, members) + launch.size * per_byte


# -- what computing hides --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Queued:
    """A bucket that computing may hide: its seconds, and when its last member is ready."""

    seconds: float
    ready: float


def end_of(queue: Iterable[Queued]) -> float:
    """When the last bucket is through: each goes when it is ready and the links are free.

    Args:
        queue: in any order.

    Returns:
        Seconds on the clock that ``ready`` is told by; 0 without buckets.
    """
    end = 0.0
    for bucket in sorted(queue, key=lambda one: one.ready):
        end = max(end, bucket.ready) + bucket.seconds
    return end


def exposed_seconds(queue: Iterable[Queued], horizon: float) -> float:
    """Seconds that communication goes on after the computing that could hide it.

    Args:
        queue: buckets with when they are ready, in seconds of computing that waits for nothing.
            Gathers are the same read backwards: how long before the end they are needed.
        horizon: when that computing is through.
    """
    return max(0.0, end_of(queue) - horizon)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What of a step's communication computing can hide.

    Attributes:
        hideable: seconds of the buckets that may be hidden, if nothing hides them.
        exposed: seconds of them that nothing hides.
    """

    hideable: float = 0.0
    exposed: float = 0.0

    @property
    def hidden(self) -> float:
        """Seconds that computing hides."""
        return max(0.0, self.hideable - self.exposed)


def overlap(
    launches: Sequence[Launch],
    ready: Mapping[int, float],
    horizon: float,
    machine: Machine,
) -> Overlap:
    """What computing hides of launches that share the links, one bucket at a time.

    Args:
        launches: of a step.
        ready: when each launch that may be hidden is ready, by place among the launches; the others
            are waited for.
        horizon: when the computing that could hide them is through.
        machine: the machine.
    """
    queue: list[Queued] = []
    for places in buckets(launches):
        if any(place not in ready for place in places):
            continue
        first = launches[places[0]]
        sizes = [launches[place].size for place in places]
        seconds = bucket_seconds(first.op, sizes, first.ranks, machine)
        queue.append(Queued(seconds, max(ready[place] for place in places)))
    return Overlap(sum(bucket.seconds for bucket in queue), exposed_seconds(queue, horizon))
