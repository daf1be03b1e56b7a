"""When what is computed in a step: the clock by which communication is ready, needed, and hidden.

Computing is taken as one queue in launch order that waits for no communication.  What waits for
sums of gradients (the optimizer's updates, norms of all gradients) comes after them, so it hides
none of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from irtool.cluster.flops import flops
from irtool.cluster.flops_seconds import operator_seconds
from irtool.cluster.fuse import launch_of, zones
from irtool.cluster.launch_order import launches
from irtool.cluster.machine import Machine
from irtool.cluster.pricing import Launch, Overlap, overlap
from irtool.cluster.ranks import RankProgram
from irtool.ir.collectives import Collective, is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.whole import WholeNode

_STEPWISE = ("mirror", "optimizer parallel")
"""Why a collective is there that serves a weight, and so may go on behind computing."""


def is_gather(item: Collective) -> bool:
    """Whether a collective brings a weight together, before it is used."""
    return item.op == "AllGather" and item.origin == "optimizer parallel"


def is_gradient_sum(item: Collective) -> bool:
    """Whether a collective sums a weight's gradient, after it was made."""
    return item.origin in _STEPWISE and not is_gather(item)


@dataclass(frozen=True, eq=False)
class Clock:
    """When communication of one rank is ready and needed, in seconds of computing.

    Attributes:
        total: seconds of computing in a step.
        before_updates: seconds of what waits for no sum of gradients.
        unknown: operators whose operations nobody knows; their bytes alone are priced.
    """

    total: float
    before_updates: float
    unknown: int
    _ready: Mapping[Node, float]
    _needed: Mapping[Node, float]

    def when(self, node: Node, gathers: bool) -> float:
        """When a collective may go; of a gather, counted back from the end of the step."""
        if gathers:
            return self.total - self._needed.get(node, 0.0)
        return self._ready.get(node, 0.0)

    def horizon(self, gathers: bool) -> float:
        """When the computing is through that could hide it."""
        return self.total if gathers else self.before_updates


def clock_of(one: RankProgram, machine: Machine) -> Clock:
    """The clock of one rank's graph on a machine.

    Args:
        one: the rank, with a dump that holds the whole step.
        machine: what operations and bytes cost.
    """
    inlined = one.program.dump.whole()
    sums = {step.collective.node for step in one.program.steps if is_gradient_sum(step.collective)}
    late = _behind(inlined.nodes, sums)
    order = launches(inlined)
    known: dict[Node, float] = {}
    starts: dict[WholeNode, float] = {}
    ends: dict[WholeNode, float] = {}
    unknown = 0
    now = 0.0
    before_updates = 0.0
    for updates in (False, True):
        for item in order:
            if (item in late) is not updates or is_collective(item.node):
                continue
            if item.node not in known:
                known[item.node] = operator_seconds(item.node, machine)
            unknown += flops(item.node) is None
            starts[item] = now
            now += known[item.node]
            ends[item] = now
        before_updates = before_updates if updates else now
    return Clock(
        now,
        before_updates,
        unknown,
        _ready(inlined.nodes, ends),
        _needed(inlined.nodes, starts, now),
    )


def _behind(nodes: tuple[WholeNode, ...], sums: set[Node]) -> set[WholeNode]:
    """Everything that waits for some collectives."""
    behind: set[WholeNode] = set()
    for item in nodes:
        if any(producer in behind or producer.node in sums for producer in item.producers):
            behind.add(item)
    return behind


def _ready(nodes: tuple[WholeNode, ...], ends: Mapping[WholeNode, float]) -> dict[Node, float]:
    """When what each collective sends is made; of one that runs several times, the last time."""
    done: dict[WholeNode, float] = {}
    ready: dict[Node, float] = {}
    for item in nodes:
        inputs = max(
            (done[producer] for producer in item.producers if producer in done), default=0.0
        )
        done[item] = ends.get(item, inputs)
        if is_collective(item.node):
            ready[item.node] = max(inputs, ready.get(item.node, 0.0))
    return ready


def _needed(
    nodes: tuple[WholeNode, ...], starts: Mapping[WholeNode, float], end: float
) -> dict[Node, float]:
    """When what each collective brings is first used."""
    need: dict[WholeNode, float] = {}
    first_use: dict[Node, float] = {}
    for item in reversed(nodes):
        users = min((need[user] for user in item.users if user in need), default=end)
        need[item] = min(starts.get(item, users), users)
        if is_collective(item.node):
            first_use[item.node] = min(users, first_use.get(item.node, end))
    return first_use


# -- what it hides ---------------------------------------------------------------------------------


def overlaps(one: RankProgram, machine: Machine, clock: Clock) -> tuple[Overlap, Overlap]:
    """What computing hides of the sums of gradients, and of the gathers of weights.

    Args:
        one: the rank, with a dump that holds the whole step.
        machine: what communication costs.
        clock: of that rank on that machine.

    Returns:
        Of the sums, then of the gathers, in seconds; collectives of unknown size or ranks count
        nothing.
    """
    zone_of = zones(one)
    hidden: list[Overlap] = []
    for gathers in (False, True):
        picked: list[Launch] = []
        ready: dict[int, float] = {}
        for step, party in zip(one.program.steps, one.parties, strict=True):
            item = step.collective
            wanted = is_gather(item) if gathers else is_gradient_sum(item)
            if not wanted or item.bytes is None or party.ranks is None:
                continue
            ready[len(picked)] = clock.when(item.node, gathers)
            picked.append(launch_of(item, party.ranks, zone_of.get(item.node, 0)))
        hidden.append(overlap(picked, ready, clock.horizon(gathers), machine))
    return hidden[0], hidden[1]
