"""Groups that would fit into one node and reach over several: what another order of axes saves.

Links inside a node are several times as fast as those between nodes.  Which ranks are neighbours,
the order of a device matrix's axes decides: those that differ in the last one alone are next to
each other.  Every layer waits for collectives of tensor parallelism, so their axis belongs there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from irtool.cluster.machine import Machine
from irtool.cluster.ranks import RankProgram
from irtool.ir.collectives import Collective, Origin
from irtool.ir.dataclass import dataclass

IN_LAYERS: tuple[Origin, ...] = ("forward reduction", "redistribution", "operator")
"""Why a collective that every layer waits for is there."""
_OF_WEIGHTS: tuple[Origin, ...] = ("mirror", "optimizer parallel")


@dataclass(frozen=True, slots=True)
class SpreadGroup:
    """A group over several nodes that would fit into one.

    Attributes:
        ranks: its members.
        nodes: how many nodes they are on.
        collectives: those of layers that run in it.
        before: seconds of all collectives of a step, as ranks lie now.
        after: the same with this group's axis last, so that its members are neighbours.
    """

    ranks: tuple[int, ...]
    nodes: int
    collectives: tuple[Collective, ...]
    before: float
    after: float

    @property
    def saved(self) -> float:
        """Seconds a step; below 0 where what then lies apart costs more."""
        return self.before - self.after


def spread_groups(one: RankProgram, machine: Machine) -> tuple[SpreadGroup, ...]:
    """Groups of one rank's layers that lie across nodes without need, the dearest first.

    Args:
        one: what the rank communicates.
        machine: whose links price it.

    Returns:
        None of groups whose ranks are not evenly apart: no order of axes makes these neighbours.
    """
    size = machine.node_devices
    if size is None:
        return ()
    spread: dict[tuple[int, ...], list[Collective]] = defaultdict(list)
    run: list[tuple[Collective, tuple[int, ...]]] = []
    for step, party in zip(one.program.steps, one.parties, strict=True):
        ranks = party.ranks
        if ranks is None or step.collective.bytes is None:
            continue
        run.append((step.collective, ranks))
        crosses = len({rank // size for rank in ranks}) > 1
        if step.collective.origin in IN_LAYERS and crosses and len(ranks) <= size:
            spread[ranks].append(step.collective)
    groups = [
        SpreadGroup(
            ranks,
            len({rank // size for rank in ranks}),
            tuple(items),
            _seconds(run, machine),
            _seconds(((item, _moved(members, ranks)) for item, members in run), machine),
        )
        for ranks, items in spread.items()
        if _stride(ranks)
    ]
    return tuple(sorted(groups, key=lambda item: -item.saved))


def _stride(ranks: Sequence[int]) -> int:
    """How far neighbours of a group are apart; 0 where that is not the same for all."""
    steps = {after - before for before, after in pairwise(ranks)}
    return steps.pop() if len(steps) == 1 else 0


def _moved(members: Iterable[int], group: Sequence[int]) -> tuple[int, ...]:
    """Where ranks lie once the axis of a group is the last of the device matrix."""
    stride, count = _stride(group), len(group)
    places: list[int] = []
    for rank in members:
        outer, inner = divmod(rank, stride * count)
        along, across = divmod(inner, stride)
        places.append(outer * stride * count + across * count + along)
    return tuple(sorted(places))


def _seconds(run: Iterable[tuple[Collective, tuple[int, ...]]], machine: Machine) -> float:
    """Of all collectives; those of weights and gradients start as one a group."""
    total = 0.0
    together: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    for item, ranks in run:
        if item.origin in _OF_WEIGHTS:
            together[item.op, ranks] += item.bytes or 0
        else:
            total += machine.seconds(item.op, item.bytes or 0, ranks)
    return total + sum(machine.seconds(op, size, ranks) for (op, ranks), size in together.items())
