"""What the parts of a step share: the one start of what is fused, and the computing that hides it.

Prices are those of :mod:`irtool.cluster.pricing`; here the predicted step is laid before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from irtool.cluster.machine import Machine
from irtool.cluster.pricing import Launch, Overlap, overlap, step_seconds
from irtool.ir.dump import dump_of
from irtool.ir.graph import Node
from irtool.planning.cost.costs import Cause, Communication
from irtool.planning.plans.step.items import CostItem


def with_common_starts(items: Sequence[CostItem], machine: Machine) -> tuple[CostItem, ...]:
    """The items, what is fused among them priced together: each bucket starts once.

    Args:
        items: of a step, each with its communications.
        machine: whose links are used.
    """
    fused = [
        (item, communication)
        for item in items
        for communication in item.communications
        if communication.fusion
    ]
    launches = [communication.launch for _, communication in fused]
    seconds = iter(step_seconds(launches, machine))
    return tuple(
        _priced(
            item,
            [
                next(seconds) if communication.fusion else communication.seconds
                for communication in item.communications
            ],
        )
        for item in items
    )


def _priced(item: CostItem, seconds: Sequence[float]) -> CostItem:
    """An item whose communications take so long."""
    made = tuple(
        replace(communication, seconds=own)
        for communication, own in zip(item.communications, seconds, strict=True)
    )
    if made == item.communications:
        return item
    causes: dict[Cause, float] = dict(item.seconds)
    for old, new in zip(item.communications, made, strict=True):
        cause = cause_of(new)
        causes[cause] = causes.get(cause, 0.0) + new.seconds - old.seconds
    return replace(item, seconds=causes, communications=made)


def cause_of(item: Communication) -> Cause:
    """Why a weight's collective is there: its gradient's sum, or optimizer parallel.

    Args:
        item: a collective of a weight.
    """
    return "gradients" if item.op == "AllReduce" else "optimizer parallel"


# -- hiding ----------------------------------------------------------------------------------------


def overlaps(items: Sequence[CostItem], machine: Machine) -> tuple[Overlap, Overlap]:
    """What computing hides of the sums of gradients, and of the gathers of weights.

    Operators are computed in their order, then their gradients in the opposite one. A weight is
    needed by its first user, and its gradient is made when the gradient of that user is.

    Args:
        items: of a step, operators in their order.
        machine: whose links are used.

    Returns:
        that of the sums, and that of the gathers.
    """
    forward, backward = _computing(items)
    before = _sums_before(forward)
    after = _sums_before(dict(reversed(backward.items())))
    computing = sum(forward.values()) + sum(backward.values())
    gradients = sum(backward.values())
    sums: list[tuple[Launch, float]] = []
    gathers: list[tuple[Launch, float]] = []
    for item in items:
        users = [node for node in item.users if node in forward]
        if item.kind != "weight" or not item.communications:
            continue
        needed = min((before[node] for node in users), default=0.0)
        made = max((after[node] + backward[node] for node in users), default=gradients)
        for communication in item.communications:
            if communication.op == "AllGather":
                gathers.append((communication.launch, computing - needed))
            else:
                sums.append((communication.launch, made))
    return _overlap(sums, gradients, machine), _overlap(gathers, computing, machine)


def _computing(items: Sequence[CostItem]) -> tuple[dict[Node, float], dict[Node, float]]:
    """Seconds of computing by operator, in order: of the forward pass, and of the backward pass."""
    forward: dict[Node, float] = {}
    backward: dict[Node, float] = {}
    by_node = {item.node: item for item in items if item.kind == "operator"}
    for node in _as_run(node for node in by_node if node is not None):
        item = by_node[node]
        forward[node] = item.seconds.get("compute", 0.0) - item.backward
        backward[node] = item.backward
    return forward, backward


def _as_run(nodes: Iterable[Node]) -> list[Node]:
    """Nodes of a dump in an order in which they can run: graphs are printed in another one."""
    listed = list(nodes)
    dump = dump_of(listed[0]) if listed else None
    if dump is None:
        return listed
    place: dict[Node, int] = {}
    for number, item in enumerate(dump.whole().nodes):
        place.setdefault(item.node, number)
    return sorted(listed, key=lambda node: place.get(node, -1))


def _sums_before(seconds: Mapping[Node, float]) -> dict[Node, float]:
    sums: dict[Node, float] = {}
    now = 0.0
    for node, own in seconds.items():
        sums[node] = now
        now += own
    return sums


def _overlap(timed: Sequence[tuple[Launch, float]], horizon: float, machine: Machine) -> Overlap:
    ready = {place: when for place, (_, when) in enumerate(timed)}
    return overlap([launch for launch, _ in timed], ready, horizon, machine)
