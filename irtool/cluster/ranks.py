"""What every rank of a run communicates, in launch order, with equal ranks held once.

A :class:`Program` is what one dump communicates.  Ranks whose graphs are equal up to what depends
on the rank share one program, so that only one dump of them is parsed; what each rank has for
itself (names and members of its groups, its peers) is read off the text of its own dump, at places
that the parsed dump shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from irtool.cluster.context.shown import listed_world
from irtool.cluster.launch_order import call_waits, launches
from irtool.ir.collectives import Collective, collective, is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.group_names import WORLD_GROUPS, search
from irtool.ir.limits import bounded_int
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT
from irtool.ir.whole import Whole, WholeNode
from irtool.ir.worked_out import once
from irtool.sharding.network.context import FEW_DEVICES, NODE_DEVICES


@dataclass(frozen=True, slots=True)
class Step:
    """One communication at its place in launch order.

    Attributes:
        collective: what is communicated, as the dump that was parsed has it.
        after: places of other steps whose results it needs, directly or through operators; of
            steps on the same stream only the last.
        stream: the stream that MindSpore puts it on (``multi_stream`` is ``group``): one a group,
            numbered from 1 in launch order; 0 is the compute stream.
        conditional: whether it stands behind control flow, so that nobody knows if it runs.
    """

    collective: Collective
    after: tuple[int, ...]
    stream: int
    conditional: bool = False


@dataclass(frozen=True, eq=False)
class Program:
    """What one dump communicates, in launch order; ``operators`` counts all that is launched."""

    steps: tuple[Step, ...]
    dump: Dump
    operators: int

    @cached_property
    def nodes(self) -> dict[Node, int]:
        """The nodes that communicate, numbered in printed order."""
        ordered = sorted(self.dump.nodes(where=is_collective), key=lambda node: node.line)
        return {node: place for place, node in enumerate(ordered)}


@dataclass(frozen=True, slots=True)
class Party:
    """What one rank has for itself of a communication: its group's name, members, and peer."""

    group: str | None
    ranks: tuple[int, ...] | None
    peer: int | None


@dataclass(frozen=True, eq=False, slots=True)
class RankProgram:
    """What one rank communicates: ``parties`` has an entry a step of the program."""

    rank: int
    program: Program
    parties: tuple[Party, ...]
    path: str


@dataclass(frozen=True, eq=False)
class Cluster:
    """All ranks that there are dumps of.

    Attributes:
        ranks: what each communicates.
        classes: ranks that share a program.
        devices: how many there are in all, as far as anything tells.
        exact: whether somebody says so, rather than the ranks that groups hold.
        partial: the pass of the dumps where they are not validate; empty for validate.
    """

    ranks: Mapping[int, RankProgram]
    classes: tuple[tuple[int, ...], ...]
    devices: int
    exact: bool = False
    partial: str = ""

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Ranks that take part but left no dump."""
        seen = set(range(self.devices)) if self.exact else set[int]()
        parties = [party for one in self.ranks.values() for party in one.parties]
        seen.update(*_lists(parties), (party.peer for party in parties if party.peer is not None))
        return tuple(sorted(seen - self.ranks.keys()))

    def without_dumps(self, paths: Container[str]) -> Cluster:
        """The ranks that are left when those that share one of these dumps count as missing.

        Args:
            paths: dumps that end early, so that nobody knows what else their ranks communicate.
        """
        left = tuple(
            alike for alike in self.classes if self.ranks[alike[0]].path not in paths
        )  # the first of a class is the one that was read
        if len(left) == len(self.classes):
            return self
        ranks = {rank: self.ranks[rank] for alike in left for rank in alike}
        return replace(self, ranks=dict(sorted(ranks.items())), classes=left)


def program(dump: Dump, devices: int | None = None, inlined: Whole | None = None) -> Program:
    """What a dump communicates, worked out once for a dump and a number of devices.

    Args:
        dump: one rank's; virtual operators before ``validate`` are left out.
        devices: how many there are, if known.
        inlined: the dump's whole view, where it was made already.
    """
    name = f"program of {devices or 'unknown'} devices"
    return once(dump, name, lambda: _program(dump, devices, inlined or dump.whole()))


def _program(dump: Dump, devices: int | None, inlined: Whole) -> Program:
    order = launches(inlined)
    places = [
        (item, communication)
        for item in order
        if is_collective(item.node)
        and (communication := collective(item.node, devices)) is not None
        and not communication.is_virtual
    ]
    streams = _streams(communication for _, communication in places)
    after = _after(inlined, [item for item, _ in places], streams)
    kept = {graph.name for call in inlined.kept_calls for graph in call.graphs}
    steps = tuple(
        Step(communication, after[item], streams[place], _root(item) in kept)
        for place, (item, communication) in enumerate(places)
    )
    return Program(steps, dump, len(order))


def _root(item: WholeNode) -> str:
    node = item.path[0] if item.site is not None else item.node
    return node.graph.name if node.graph else ""


def _streams(collectives: Iterable[Collective]) -> list[int]:
    numbers: dict[str, int] = {}
    return [
        numbers.setdefault(item.group, len(numbers) + 1) if item.group is not None else 0
        for item in collectives
    ]


def _after(
    inlined: Whole, items: Sequence[WholeNode], streams: Sequence[int]
) -> dict[WholeNode, tuple[int, ...]]:
    """For each communication the last ones before it, of each stream, that it depends on.

    Point-to-point ones keep a line for each peer and direction, since they may pass each other.
    """
    place = {item: number for number, item in enumerate(items)}
    lanes = {item: _lane(item, streams[number]) for number, item in enumerate(items)}
    behind: dict[WholeNode, dict[object, int]] = {}
    before: dict[WholeNode, tuple[int, ...]] = {}
    waits = call_waits(inlined.nodes)
    for item in inlined.nodes:
        last: dict[object, int] | None = None
        shared = True
        for producer in (*item.producers, *waits.get(item, ())):
            one = behind.get(producer)
            if not one:
                continue
            if last is None:
                last = one
            elif one is not last:
                if shared:
                    last, shared = dict(last), False
                for lane, number in one.items():
                    if number > last.get(lane, -1):
                        last[lane] = number
        if item in place:
            before[item] = tuple(sorted((last or {}).values()))
            last = {**(last or {}), lanes[item]: place[item]}
        if last:
            behind[item] = last
    return before


def _lane(item: WholeNode, stream: int) -> object:
    if COMMUNICATION[item.op].base not in POINT_TO_POINT:
        return stream
    communication = collective(item.node)
    return (item.op, communication.peer if communication else None)


# -- ranks -------------------------------------------------------------------------------------


def single(dump: Dump, rank: int, devices: int | None = None) -> Cluster:
    """A cluster of which there is one rank's dump.

    Args:
        dump: of that rank.
        rank: whose it is.
        devices: of the run; None: as far as groups show them.
    """
    return cluster_of({rank: dump}, devices)


def cluster_of(dumps: Mapping[int, Dump], devices: int | None = None) -> Cluster:
    """A cluster from parsed dumps of all its ranks, none folded.

    Args:
        dumps: by rank.
        devices: how many there are in all, if known.
    """
    ranks = {
        rank: _own(rank, program(dump, devices), dump.path) for rank, dump in sorted(dumps.items())
    }
    return _cluster(ranks, [(rank,) for rank in ranks], devices)


def cluster_of_classes(
    classes: Iterable[tuple[tuple[int, ...], Dump]],
    text: Callable[[int], tuple[str, str]],
    load: Callable[[int], Dump],
    devices: int | None = None,
    inline: Callable[[Dump], Whole] = Dump.whole,
) -> Cluster:
    """A cluster from one parsed dump a class of equal ranks.

    Args:
        classes: ranks with equal graphs, and the dump of the first of them.
        text: path and text of a rank's dump.
        load: reads a rank's dump, where its text does not have the same statements after all.
        devices: how many there are in all, if known.
        inline: makes the whole view of a dump.
    """
    ranks: dict[int, RankProgram] = {}
    members: list[tuple[int, ...]] = []
    lines = _Lines()
    for alike, dump in classes:
        shared = program(dump, devices, inline(dump))
        members.append(alike)
        for rank in alike:
            if rank == alike[0]:
                ranks[rank] = _own(rank, shared, dump.path)
                continue
            path, content = text(rank)
            parties = _parties(shared, content, lines, devices)
            if parties is None:
                ranks[rank] = _own(rank, program(load(rank), devices), path)
            else:
                ranks[rank] = RankProgram(rank, shared, parties, path)
    return _cluster(dict(sorted(ranks.items())), members, devices)


def _own(rank: int, shared: Program, path: str) -> RankProgram:
    parties = (
        Party(step.collective.group, step.collective.ranks, step.collective.peer)
        for step in shared.steps
    )
    return RankProgram(rank, shared, tuple(parties), path)


def _cluster(
    ranks: dict[int, RankProgram], classes: Iterable[tuple[int, ...]], devices: int | None
) -> Cluster:
    """Fill in what only several dumps together tell: how many devices, who is in the world."""
    parties = [party for one in ranks.values() for party in one.parties]
    exact = devices is not None or any(party.ranks and _is_world(party.group) for party in parties)
    highest = (max(listed) for listed in _lists(parties))
    seen = max((*ranks, *highest, *(party.peer or 0 for party in parties)), default=0)
    listed = max((_listed_world(one.program) for one in ranks.values()), default=0)
    exact = exact or listed > 0
    count = max(devices or 0, listed, seen + 1)
    # Between stages groups hold some stages only: they tell nothing of how many there are.
    if not exact and all(party.peer is None for party in parties):
        count = max(count, *map(least_world, _lists(parties)), 1)
    world = _everybody(count)
    for rank, one in ranks.items():
        if any(party.ranks is None and _is_world(party.group) for party in one.parties):
            filled = (
                replace(party, ranks=world)
                if party.ranks is None and _is_world(party.group)
                else party
                for party in one.parties
            )
            ranks[rank] = RankProgram(rank, one.program, tuple(filled), one.path)
    return Cluster(ranks, tuple(classes), count, exact)


def least_world(ranks: Sequence[int]) -> int:
    """The fewest devices on which a group can be.

    MindSpore's groups lie along axes of a device matrix, whose product are all devices: every
    second rank from 0 to 6 takes eight.  A group that lies otherwise, or in blocks of which no
    cluster is made, takes as many as its highest rank says.

    Args:
        ranks: the group's, in any order.
    """
    listed = sorted(set(ranks))
    rest, block = [rank - listed[0] for rank in listed], 1
    while len(rest) > 1:
        stride = rest[1]
        count = next((at for at, rank in enumerate(rest) if rank != stride * at), len(rest))
        heads = rest[::count]
        regular = [head + stride * at for head in heads for at in range(count)]
        if stride % block or rest != regular:
            return listed[-1] + 1
        rest, block = heads, stride * count
    crosses = listed[0] // block != listed[-1] // block
    if crosses or (block not in FEW_DEVICES and block % NODE_DEVICES):
        return listed[-1] + 1
    return (listed[-1] // block + 1) * block


@lru_cache(maxsize=1024)
def _listed_world(shared: Program) -> int:
    """How many ranks the steps in the group of all devices list; 0 for none."""
    transfers = (step.collective.node for step in shared.steps)
    return max(
        (listed_world(node) or 0 for node in transfers if node.op in POINT_TO_POINT), default=0
    )


@lru_cache(maxsize=8)
def _everybody(devices: int) -> tuple[int, ...]:
    """All ranks: one tuple for all who name the group of all, or each rank would hold all ranks."""
    return tuple(range(devices))


def _lists(parties: Iterable[Party]) -> Collection[tuple[int, ...]]:
    """The members of groups, each list once: the same groups stand in many ranks."""
    return {id(party.ranks): party.ranks for party in parties if party.ranks}.values()


def _is_world(group: str | None) -> bool:
    return (group or "").startswith(WORLD_GROUPS)


# -- what a rank has for itself, from its text ---------------------------------------------------

_STATEMENT = re.compile(
    r"\) = (?:PrimFunc_|S_Prim_|S-Prim-)?("  # begins with what stands in statements alone: quick
    + "|".join(sorted(map(re.escape, COMMUNICATION), key=len, reverse=True))
    + r")\([^\n]*"
)
_NAMED = re.compile(r"[ \t]*%\d+\([^()\n]*")
_GROUP = re.compile(r"\bgroup: \"([^\"]*)\"")
_LISTS = tuple(
    (key, re.compile(rf"\b{key}: (?:\(([\d, ]+)\)|\"([\d-]+)\"|I64\((\d+)\))"))
    for key in ("rank_list", "group_rank_ids", "group_ranks")
)
_PEERS = {
    "Send": re.compile(r"\b(dst_global_rank|dest_rank): I64\((\d+)\)"),
    "Receive": re.compile(r"\b(src_global_rank|src_rank): I64\((\d+)\)"),
}


class _Lines:
    """Statements already looked at: ranks share most of theirs."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, Party, str | None]] = {}

    def party(self, line: str, op: str) -> tuple[str, Party, str | None]:
        """Operator, group, members and peer that a statement prints, and what the peer counts."""
        printed = self.known.get(line)
        if printed is None:
            printed = self.known[line] = _printed(line, op)
        return printed


def _printed(line: str, op: str) -> tuple[str, Party, str | None]:
    _, _, rest = line.partition("primitive_attrs: {")
    attributes = rest.partition("} cnode_")[0]
    group = _GROUP.search(attributes)
    name = group[1] if group else None
    base = COMMUNICATION[op].base
    ranks: tuple[int, ...] | None = None
    for key, pattern in _LISTS:
        if key == "group_rank_ids" and base in POINT_TO_POINT and name in WORLD_GROUPS:
            continue  # the two ends, or everybody: not the group
        listed = pattern.search(attributes) if key in attributes else None
        if listed is not None:
            texts = re.findall(r"\d+", next(part for part in listed.groups() if part))
            ranks = tuple(sorted(map(bounded_int, texts)))
            break
    peer = counts = None
    if base in _PEERS:
        # The global rank goes before the one that counts inside the group.
        ends = {key: bounded_int(number) for key, number in _PEERS[base].findall(attributes)}
        counts = min(ends, key=lambda key: "global" not in key, default=None)
        peer = ends[counts] if counts is not None else None
    return op, Party(name, ranks, peer), counts


def _parties(
    shared: Program, text: str, lines: _Lines, devices: int | None
) -> tuple[Party, ...] | None:
    """The parties of a rank whose dump has the statements of a parsed one; None if it has not."""
    printed = [
        lines.party(statement[0], statement[1])
        for statement in _STATEMENT.finditer(text)
        if _NAMED.fullmatch(text, text.rfind("\n", 0, statement.start()) + 1, statement.start())
    ]
    nodes = shared.nodes
    if len(printed) != len(nodes) or any(
        node.op != op for node, (op, _, _) in zip(nodes, printed, strict=True)
    ):
        return None
    listed = {
        party.group: party.ranks
        for _, party, _ in printed
        if party.group is not None and party.ranks is not None
    }
    parties: list[Party] = []
    for step in shared.steps:
        _, party, counts = printed[nodes[step.collective.node]]
        ranks, peer = party.ranks, party.peer
        if ranks is None and party.group is not None and not _is_world(party.group):
            ranks = listed.get(party.group) or search(party.group, devices or 1)
        elif ranks is None and _is_world(party.group):
            ranks = listed.get(party.group or "") or (_everybody(devices) if devices else None)
        if peer is not None and "global" not in (counts or "") and not _is_world(party.group):
            peer = ranks[peer] if ranks is not None and peer < len(ranks) else None
        parties.append(Party(party.group, ranks, peer))
    return tuple(parties)
