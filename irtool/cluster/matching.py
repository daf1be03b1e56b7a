"""Whether ranks agree: the members of every group on what they do in it, Sends with Receives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from irtool.cluster.ranks import Cluster, Party, RankProgram
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import WORLD_GROUPS, group_name
from irtool.ir.operators import POINT_TO_POINT

DisagreementKind: TypeAlias = Literal[
    "operator", "reduction", "count", "dtype", "shape", "members", "not a member", "name", "order"
]
"""What differs; ``count`` is how many collectives a member has in the group."""

FATAL = frozenset(("operator", "reduction", "count", "shape", "dtype", "members", "not a member"))
"""Disagreements that a backend refuses (HCCL: EI0005), hangs in, or corrupts memory by."""


@dataclass(frozen=True, slots=True)
class Place:
    """One communication of one rank; ``step`` is its place in launch order."""

    rank: int
    step: int
    collective: Collective
    party: Party
    path: str

    @property
    def op(self) -> str:
        """The name of the collective that runs there."""
        return self.collective.op

    @property
    def line(self) -> int:
        """The line of the dump that the communication stands in."""
        return self.collective.node.line


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where two members of a group part: the first place, ``index`` counted inside the group.

    ``right`` is None where the other member has nothing there.
    """

    kind: DisagreementKind
    group: str
    index: int
    left: Place
    right: Place | None
    right_rank: int
    message: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """A Send with its Receive; one end is None where it is missing.

    ``known`` is False where the other end's rank left no dump, or is not known.
    """

    sender: int | None
    receiver: int | None
    tag: int | None
    send: Place | None
    receive: Place | None
    known: bool = True

    @property
    def matched(self) -> bool:
        """Whether both ends are there."""
        return self.send is not None and self.receive is not None

    @property
    def mismatch(self) -> str:
        """How the two ends differ in type or shape; empty where they agree."""
        if self.send is None or self.receive is None:
            return ""
        left, right = self.send.collective, self.receive.collective
        if left.dtype != right.dtype:
            return f"{left.dtype} is sent, {right.dtype} expected"
        if left.shape != right.shape:
            return f"{shape_text(left.shape)} is sent, {shape_text(right.shape)} expected"
        return ""


def shape_text(shape: tuple[int, ...] | None) -> str:
    """A shape as ``[4,64]``; ``[?]`` where it is not known.

    Args:
        shape: of a tensor.
    """
    return "[?]" if shape is None else f"[{','.join(map(str, shape))}]"


def place(one: RankProgram, step: int) -> Place:
    """A communication of a rank, with what the rank has for itself of it.

    Args:
        one: the rank.
        step: place of the communication in the rank's launch order, from 0.
    """
    return Place(one.rank, step, one.program.steps[step].collective, one.parties[step], one.path)


# -- collectives ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Member:
    """What one rank does in one group: places of its steps there."""

    one: RankProgram
    steps: tuple[int, ...]

    @cached_property
    def signature(self) -> tuple[tuple[object, ...], ...]:
        """What has to be the same on all members."""
        return tuple(signature(self.one.program.steps[step].collective) for step in self.steps)


def signature(item: Collective) -> tuple[object, ...]:
    """What all members of a group have to do alike: operator, reduction, element type and shape.

    Args:
        item: what one of them does.
    """
    return (item.op, item.reduction, item.dtype, item.shape)


def disagreements(cluster: Cluster) -> tuple[Disagreement, ...]:
    """The first place of each group where two members differ, and groups that make no sense.

    Args:
        cluster: the programs of all ranks.
    """
    differing: list[Disagreement] = list(_own_groups(cluster))
    for name, members in _members(cluster).items():
        differing += _differences(name, members)
    differing += _orders(cluster)
    return tuple(differing)


def _members(cluster: Cluster) -> dict[str, list[_Member]]:
    """Who does what in each group, by its name; point-to-point is matched by itself."""
    groups: dict[str, list[_Member]] = {}
    for one in cluster.ranks.values():
        own: dict[str, list[int]] = {}
        for number, (step, party) in enumerate(zip(one.program.steps, one.parties, strict=True)):
            if party.group is not None and step.collective.op not in POINT_TO_POINT:
                own.setdefault(party.group, []).append(number)
        for name, steps in own.items():
            groups.setdefault(name, []).append(_Member(one, tuple(steps)))
    return groups


def _differences(name: str, members: Sequence[_Member]) -> Iterator[Disagreement]:
    first = members[0]
    for other in members[1:]:
        same = other.one.program is first.one.program and other.steps == first.steps
        ranks = [member.one.parties[member.steps[0]].ranks for member in (first, other)]
        if ranks[0] != ranks[1] and None not in ranks:
            message = (
                f"the group has ranks {ranks[0]} on rank {first.one.rank} and {ranks[1]} on rank "
                f"{other.one.rank}"
            )
            yield _between("members", name, 0, first, other, message)
            return
        if same or first.signature == other.signature:
            continue
        yield _first_difference(name, first, other)
        return


def _first_difference(name: str, left: _Member, right: _Member) -> Disagreement:
    pairs = zip(left.signature, right.signature, strict=False)
    index = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
    if index is None:
        index = min(len(left.steps), len(right.steps))
        longer, shorter = sorted((left, right), key=lambda one: -len(one.steps))
        message = (
            f"rank {longer.one.rank} has {len(longer.steps)} collectives in the group, rank "
            f"{shorter.one.rank} has {len(shorter.steps)}"
        )
        return _between("count", name, index, longer, shorter, message)
    kinds: tuple[DisagreementKind, ...] = ("operator", "reduction", "dtype", "shape")
    a, b = left.signature[index], right.signature[index]
    differing = next(place for place, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
    kind, one, two = kinds[differing], a[differing], b[differing]
    texts = [shape_text(x) if isinstance(x, tuple) else str(x) for x in (one, two)]  # type: ignore[arg-type]  # a shape
    message = (
        f"collective {index + 1} of the group is {a[0]} with {kind} {texts[0]} on rank "
        f"{left.one.rank}, {b[0]} with {kind} {texts[1]} on rank {right.one.rank}"
    )
    if kind == "operator":
        message = (
            f"collective {index + 1} of the group is {texts[0]} on rank {left.one.rank}, "
            f"{texts[1]} on rank {right.one.rank}"
        )
    return _between(kind, name, index, left, right, message)


def _between(
    kind: DisagreementKind, name: str, index: int, left: _Member, right: _Member, message: str
) -> Disagreement:
    there = index < len(right.steps)
    return Disagreement(
        kind,
        name,
        index,
        place(left.one, left.steps[min(index, len(left.steps) - 1)]),
        place(right.one, right.steps[index]) if there else None,
        right.one.rank,
        message,
    )


def _own_groups(cluster: Cluster) -> Iterator[Disagreement]:
    """Groups that contradict themselves: the rank is no member, or the name is another group's."""
    checked: dict[tuple[str, int], _Checked] = {}
    reported: set[tuple[int, str]] = set()
    for one in cluster.ranks.values():
        for number, party in enumerate(one.parties):
            name, ranks = party.group, party.ranks
            if name is None or ranks is None or (one.rank, name) in reported:
                continue
            kind: DisagreementKind | None = None
            message = ""
            known = checked.get((name, id(ranks)))
            if known is None:
                known = _Checked(ranks, frozenset(ranks), _named_right(name, ranks))
                checked[name, id(ranks)] = known
            if one.rank not in known.members:
                kind = "not a member"
                message = f"rank {one.rank} communicates in a group of ranks {ranks}"
            elif not known.named_right:
                kind = "name"
                message = f"the group's name is not that of ranks {ranks}"
            if kind is not None:
                reported.add((one.rank, name))
                yield Disagreement(kind, name, 0, place(one, number), None, one.rank, message)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A group that was looked at: it is found by the identity of its ranks, which are held."""

    ranks: tuple[int, ...]
    members: frozenset[int]
    named_right: bool


@lru_cache(maxsize=4096)
def _named_right(name: str, ranks: tuple[int, ...]) -> bool:
    """Whether a name of the form ``<size>-<hash>`` is that of these ranks; others always are."""
    size, _, digits = name.partition("-")
    hashed = size.isdecimal() and digits.isdecimal() and len(digits) > 10
    return not hashed or name.startswith(WORLD_GROUPS) or name == group_name(ranks)


# -- Sends and Receives --------------------------------------------------------------------------


def transfers(cluster: Cluster) -> tuple[Transfer, ...]:
    """Every Send with its Receive: the k-th of a route and tag with the k-th.

    Args:
        cluster: the programs of all ranks.

    Returns:
        Pairs by route, then ends of which nobody knows the peer.
    """
    sends: dict[tuple[int, int, int | None], list[Place]] = {}
    receives: dict[tuple[int, int, int | None], list[Place]] = {}
    astray: list[Transfer] = []
    for one in cluster.ranks.values():
        for number, (step, party) in enumerate(zip(one.program.steps, one.parties, strict=True)):
            item = step.collective
            if item.op not in POINT_TO_POINT:
                continue
            here = place(one, number)
            sending = item.op == "Send"
            if party.peer is None:
                ends = (one.rank, None) if sending else (None, one.rank)
                send, receive = (here, None) if sending else (None, here)
                astray.append(Transfer(*ends, item.tag, send, receive, known=False))
            elif sending:
                sends.setdefault((one.rank, party.peer, item.tag), []).append(here)
            else:
                receives.setdefault((party.peer, one.rank, item.tag), []).append(here)
    paired: list[Transfer] = []
    for route in dict.fromkeys((*sends, *receives)):
        left, right = sends.get(route, []), receives.get(route, [])
        both = route[0] in cluster.ranks and route[1] in cluster.ranks
        for number in range(max(len(left), len(right))):
            send = left[number] if number < len(left) else None
            receive = right[number] if number < len(right) else None
            paired.append(Transfer(*route, send, receive, known=both))
    return (*paired, *astray)


def shifted_tags(unmatched: Iterable[Transfer]) -> tuple[tuple[int, int, int], ...]:
    """Routes on which every tag of the receiver is that of the sender plus one number.

    MindSpore counts tags through a process: dumps of different compilations look so.

    Args:
        unmatched: Sends and Receives without another end.

    Returns:
        Sender, receiver, and by how much the receiver's tags are larger.
    """
    routes: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for item in unmatched:
        if item.sender is None or item.receiver is None or item.tag is None:
            continue
        sides = routes.setdefault((item.sender, item.receiver), ([], []))
        sides[0 if item.send is not None else 1].append(item.tag)
    shifted: list[tuple[int, int, int]] = []
    for (sender, receiver), (sent, received) in routes.items():
        gaps = {b - a for a, b in zip(sorted(sent), sorted(received), strict=False)}
        if len(sent) == len(received) > 1 and len(gaps) == 1:
            shifted.append((sender, receiver, gaps.pop()))
    return tuple(shifted)


def _orders(cluster: Cluster) -> Iterator[Disagreement]:
    """Routes on which the tags are sent in another order than they are received.

    HCCL and NCCL hand over what comes first: the tag is not looked at.
    """
    routes: dict[tuple[int, int, str | None], tuple[list[Place], list[Place]]] = {}
    for one in cluster.ranks.values():
        for number, (step, party) in enumerate(zip(one.program.steps, one.parties, strict=True)):
            op = step.collective.op
            if op not in POINT_TO_POINT or party.peer is None:
                continue
            sending = op == "Send"
            route = (one.rank, party.peer) if sending else (party.peer, one.rank)
            ends = routes.setdefault((*route, party.group), ([], []))
            ends[0 if sending else 1].append(place(one, number))
    for (sender, receiver, group), (sent, received) in routes.items():
        if sender not in cluster.ranks or receiver not in cluster.ranks:
            continue
        tags = [[item.collective.tag for item in side] for side in (sent, received)]
        if tags[0] == tags[1] or sorted(map(str, tags[0])) != sorted(map(str, tags[1])):
            continue  # one that is missing is told of by the pairs
        index = next(n for n, (a, b) in enumerate(zip(*tags, strict=True)) if a != b)
        message = (
            f"rank {sender} sends tag {tags[0][index]} to rank {receiver} where that expects tag "
            f"{tags[1][index]}"
        )
        left, right = sent[index], received[index]
        yield Disagreement("order", group or "", index, left, right, receiver, message)
