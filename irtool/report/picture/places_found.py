"""Places that no scope tells: of gradients beside their forward operators, and of parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar

from irtool.report.picture.leaves import Leaf, Link

Item = TypeVar("Item")


def place_gradients(
    leaves: Sequence[Leaf], partners: Mapping[Leaf, Leaf], links: Iterable[Link]
) -> None:
    """Put backward operators where their forward operators are.

    The scopes of a backward pass often name another layer: the compiler makes the gradient of an
    operator once and uses it for all layers.  So a tie goes first; without one, an operator stands
    where what it takes, else what takes it, stands.

    Args:
        leaves: in topological order; their places and micro-batches are set.
        partners: forward leaf by backward leaf.
        links: between leaves.
    """
    backward = [leaf for leaf in leaves if leaf.lane == "backward"]
    for leaf in backward:
        partner = partners.get(leaf)
        if partner is not None:
            leaf.place = partner.place
            leaf.micro = partner.micro if leaf.micro is None else leaf.micro
    pairs = [
        (link.tail, link.head)
        for link in links
        if link.tail.lane == link.head.lane == "backward" and link.kind == "data"
    ]
    indices = {leaf: leaf.index for leaf in backward}
    for leaf, leader in leaders(indices, pairs, partners).items():
        leaf.place, leaf.micro = leader.place, leader.micro


def leaders(
    indices: Mapping[Item, int], pairs: Iterable[tuple[Item, Item]], tied: Container[Item]
) -> dict[Item, Item]:
    """For each item the tied one that it stands with: itself, else that of the nearest neighbour.

    Args:
        indices: place of each item in time, in topological order.
        pairs: tail and head of each value between two items.
        tied: items whose place is known.
    """
    leader_of = {item: item for item in indices if item in tied}
    if not leader_of:
        return leader_of
    known = set(leader_of)
    tails: dict[Item, list[Item]] = defaultdict(list)
    heads: dict[Item, list[Item]] = defaultdict(list)
    for tail, head in pairs:
        tails[head].append(tail)
        heads[tail].append(head)

    def follow(item: Item, others: Sequence[Item]) -> None:
        if item not in leader_of and others:
            nearest = min(others, key=lambda other: abs(indices[other] - indices[item]))
            leader_of[item] = leader_of[nearest]

    order = list(indices)
    # What a tie places is surer than what a neighbour of a neighbour does.
    for near in (tails, heads):
        for item in order:
            follow(item, [other for other in near[item] if other in known])
    for sequence, near in ((order, tails), (order[::-1], heads)):
        for item in sequence:
            follow(item, [other for other in near[item] if other in leader_of])
    return leader_of


def name_updates(leaves: Sequence[Leaf], links: Iterable[Link], names: dict[Leaf, str]) -> None:
    """Say of which parameter each statement of the optimizer is, by what it feeds or takes.

    Args:
        leaves: in topological order.
        links: between leaves.
        names: of the parameter by leaf, where a tie tells; gets the others.
    """
    heads: dict[Leaf, list[Leaf]] = defaultdict(list)
    tails: dict[Leaf, list[Leaf]] = defaultdict(list)
    for link in links:
        if link.tail.lane == link.head.lane == "optimizer" and link.kind == "data":
            heads[link.tail].append(link.head)
            tails[link.head].append(link.tail)
    for order, near in ((leaves[::-1], heads), (leaves, tails)):
        for leaf in order:
            candidates = {names[other] for other in near[leaf] if other in names}
            if leaf.lane == "optimizer" and leaf not in names and len(candidates) == 1:
                names[leaf] = candidates.pop()


def place_parameter(leaf: Leaf, users: Sequence[Leaf]) -> None:
    """A parameter stands where the forward pass uses it: in the scope that all its users share.

    Args:
        leaf: the parameter; its lane, stage, micro-batch and place are set.
        users: what takes it; where there is none in the forward pass, those of the first phase
            count that uses it.
    """
    for lane in ("forward", "recompute", "backward", "optimizer", "other"):
        there = [user for user in users if user.lane == lane]
        if not there:
            continue
        leaf.lane = there[0].lane
        leaf.micro = _common([user.micro for user in there], None)
        leaf.graphs = _shared([user.graphs for user in there])
        leaf.stage = _common([user.stage for user in there], leaf.stage)
        leaf.place = _shared([user.place for user in there])
        return


def _common(values: Sequence[int | None], otherwise: int | None) -> int | None:
    return values[0] if len(set(values)) == 1 else otherwise


def _shared(places: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The beginning that all places have in common."""
    shortest, longest = min(places), max(places)
    same = 0
    while same < len(shortest) and shortest[same] == longest[same]:
        same += 1
    return shortest[:same]
