"""What a run communicates: every collective with its group, axis, phase, stream and link.

Answers ``irtool comm groups``: rows, totals by axis and by link, the dearest kinds, whether all
members of each group agree, and which ranks, operators and lines a group's name stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, TypeVar

from irtool.cluster.axes import Axis, axes
from irtool.cluster.fuse import launch_of, zones
from irtool.cluster.machine import Machine
from irtool.cluster.matching import Disagreement, Transfer, disagreements, transfers
from irtool.cluster.pricing import Launch, step_seconds
from irtool.cluster.ranks import Cluster, Party, RankProgram
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.group_names import WORLD_GROUPS, decode, search
from irtool.ir.groups import RanksFrom, plain_name
from irtool.ir.phases import Phase, phases

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Row:
    """One communication of the first rank of a class.

    ``alike`` is how many ranks have it, ``level`` the links that join its ranks, ``seconds`` what
    the machine model says (None where size or ranks are unknown; of fused ones a part, which add up
    to what all take together), ``conditional`` whether it stands behind control flow, so that
    nobody knows if it runs.
    """

    rank: int
    alike: int
    collective: Collective
    party: Party
    axis: Axis
    phase: Phase
    stream: int
    level: str | None
    seconds: float | None
    conditional: bool
    path: str


@dataclass(frozen=True, slots=True)
class Total:
    """Communications added up over all ranks; ``unknown`` of them have no known size."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """Communications alike in all but their place: what the list of the dearest shows."""

    op: str
    axis: Axis
    phase: Phase
    ranks: tuple[int, ...] | None
    level: str | None
    dtype: str | None
    shape: tuple[int, ...] | None
    count: int
    bytes: int | None
    seconds: float | None
    first: Row


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its name and members, what it is for, and how the members' names were found."""

    name: str
    ranks: tuple[int, ...] | None
    ranks_from: RanksFrom | None
    axes: tuple[Axis, ...]
    level: str | None
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class GroupReport(Shown):
    """What a run communicates.

    Attributes:
        rows: every communication of one rank of each class, in launch order.
        kinds: the same, equal ones together, the dearest first.
        groups: every group of every rank.
        by_axis: totals over all ranks.
        by_level: totals over all ranks, by links.
        disagreements: where members of a group differ, the first place of each group.
        transfers: Sends with their Receives, and those left over; none of dumps before validate.
        missing: ranks that take part and left no dump.
        devices: how many there are, as far as anything tells; at least so many if not
            ``is_exact``.
        partial: the pass of the dumps where it comes before all communications are there.
    """

    rows: tuple[Row, ...]
    kinds: tuple[Kind, ...]
    groups: tuple[Group, ...]
    by_axis: dict[Axis, Total]
    by_level: dict[str, Total]
    by_axis_and_level: dict[tuple[Axis, str], Total]
    disagreements: tuple[Disagreement, ...]
    transfers: tuple[Transfer, ...]
    missing: tuple[int, ...]
    devices: int
    ranks: tuple[int, ...]
    machine: Machine
    is_exact: bool
    partial: str = ""

    @property
    def total(self) -> Total:
        """All communications of all ranks."""
        parts = self.by_axis.values()
        return Total(
            sum(part.count for part in parts),
            sum(part.bytes for part in parts),
            sum(part.seconds for part in parts),
            sum(part.unknown for part in parts),
        )

    @property
    def unfit_transfers(self) -> list[Transfer]:
        """Transfers without another end, or with one that does not fit."""
        return [
            item for item in self.transfers if item.mismatch or (item.known and not item.matched)
        ]


def group_report(cluster: Cluster, machine: Machine) -> GroupReport:
    """What all ranks communicate, priced on a machine.

    Args:
        cluster: the ranks with their dumps.
        machine: links between ranks, and their prices.
    """
    rows: list[Row] = []
    totals = _Totals()
    groups = _Groups(machine)
    for alike in cluster.classes:
        first = cluster.ranks[alike[0]]
        made = _rows(first, len(alike), machine)
        rows += made
        for rank in alike:
            one = cluster.ranks[rank]
            same = one.program is first.program
            own = made if same else _rows(one, 1, machine)
            for row, party in zip(own, one.parties, strict=True):
                level = row.level if rank == row.rank else _level(party, machine, rank)
                totals.add(row, level)
                groups.add(row, party)
    return GroupReport(
        tuple(rows),
        _kinds(rows),
        groups.made(),
        totals.by(lambda axis, level: axis),
        totals.by(lambda axis, level: level),
        totals.by(lambda axis, level: (axis, level)),
        disagreements(cluster),
        # Before a pipeline is split, one dump holds the ends of all stages.
        () if cluster.partial else transfers(cluster),
        cluster.missing,
        cluster.devices,
        tuple(cluster.ranks),
        machine,
        cluster.exact,
        cluster.partial,
    )


def _rows(one: RankProgram, alike: int, machine: Machine) -> list[Row]:
    steps = one.program.steps
    axis_of = axes([step.collective for step in steps])
    phase_of = phases(one.program.dump)
    seconds = _seconds(one, machine)
    return [
        Row(
            one.rank,
            alike,
            step.collective,
            party,
            axis_of[step.collective.node],
            phase_of.get(step.collective.node, "other"),
            step.stream,
            _level(party, machine, one.rank),
            seconds[place],
            step.conditional,
            one.path,
        )
        for place, (step, party) in enumerate(zip(steps, one.parties, strict=True))
    ]


def _ends(party: Party, rank: int | None) -> tuple[int, ...] | None:
    """Between which ranks data moves: the two ends, or the group."""
    if party.peer is not None and rank is not None:
        return tuple(sorted((rank, party.peer)))
    return party.ranks


def _level(party: Party, machine: Machine, rank: int | None = None) -> str | None:
    ends = _ends(party, rank)
    return machine.level_of(ends).name if ends else None


def _seconds(one: RankProgram, machine: Machine) -> list[float | None]:
    """Seconds of each communication of a rank; None where its size or ranks are not known."""
    zone_of = zones(one)
    launches: list[Launch] = []
    places: list[int] = []
    for place, (step, party) in enumerate(zip(one.program.steps, one.parties, strict=True)):
        item, ends = step.collective, _ends(party, one.rank)
        if item.bytes is not None and ends is not None:
            launches.append(launch_of(item, ends, zone_of.get(item.node, 0)))
            places.append(place)
    priced: list[float | None] = [None] * len(one.program.steps)
    for place, seconds in zip(places, step_seconds(launches, machine), strict=True):
        priced[place] = seconds
    return priced


# -- totals --------------------------------------------------------------------------------------

_UNKNOWN = "unknown"


class _Totals:
    """Sums over all ranks by axis and link."""

    def __init__(self) -> None:
        self._sums: dict[tuple[Axis, str], list[float]] = {}

    def add(self, row: Row, level: str | None) -> None:
        key = (row.axis, level or _UNKNOWN)
        sums = self._sums.setdefault(key, [0, 0, 0.0, 0])
        sums[0] += 1
        sums[1] += row.collective.bytes or 0
        sums[2] += row.seconds or 0.0
        sums[3] += row.collective.bytes is None

    def by(self, key: Callable[[Axis, str], Key]) -> dict[Key, Total]:
        """Totals by what a key says of axis and link, the dearest first."""
        sums: dict[Key, list[float]] = {}
        for (axis, level), part in self._sums.items():
            total = sums.setdefault(key(axis, level), [0, 0, 0.0, 0])
            for place, number in enumerate(part):
                total[place] += number
        ordered = sorted(sums.items(), key=lambda pair: (-pair[1][2], -pair[1][1], str(pair[0])))
        return {name: Total(int(n), int(b), s, int(u)) for name, (n, b, s, u) in ordered}


@dataclass(slots=True)
class _OfGroup:
    """What rows say of one group: where its ranks are from, its axes, communications and bytes."""

    ranks_from: RanksFrom | None
    axes: dict[Axis, None] = field(default_factory=dict["Axis", None])
    count: int = 0
    bytes: int = 0


class _Groups:
    """Groups by name and members, over all ranks."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._sums: dict[tuple[str, tuple[int, ...] | None], _OfGroup] = {}
        self._by_object: dict[tuple[str, int], tuple[tuple[int, ...] | None, _OfGroup]] = {}
        """The same by the identity of the members, which are held so that it stays theirs: rows of
        thousands of ranks share them, and each hash of a tuple reads all of it."""

    def add(self, row: Row, party: Party) -> None:
        if party.group is None:
            return
        own = (party.group, id(party.ranks))
        known = self._by_object.get(own)
        if known is None:
            new = _OfGroup(row.collective.ranks_from)
            sums = self._sums.setdefault((party.group, party.ranks), new)
            known = self._by_object[own] = party.ranks, sums
        sums = known[1]
        sums.axes[row.axis] = None
        sums.count += 1
        sums.bytes += row.collective.bytes or 0

    def made(self) -> tuple[Group, ...]:
        """All groups, those with the most bytes first."""
        groups = (
            Group(
                *(name, ranks, sums.ranks_from, tuple(sums.axes)),
                self._machine.level_of(ranks).name if ranks else None,
                *(sums.count, sums.bytes),
            )
            for (name, ranks), sums in self._sums.items()
        )
        return tuple(sorted(groups, key=lambda one: (-one.bytes, one.ranks or (), one.name)))


def _kinds(rows: Iterable[Row]) -> tuple[Kind, ...]:
    members: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        item = row.collective
        key = (item.op, row.axis, row.phase, row.party.ranks, row.level, item.dtype, item.shape)
        members.setdefault((row.rank, *key), []).append(row)
    kinds = [_kind(same) for same in members.values()]
    return tuple(
        sorted(kinds, key=lambda kind: (-(kind.seconds or 0), -(kind.bytes or 0), kind.op))
    )


def _kind(same: Sequence[Row]) -> Kind:
    first = same[0]
    item = first.collective
    sizes = [row.collective.bytes for row in same]
    known = None not in sizes
    priced = all(row.seconds is not None for row in same)
    return Kind(
        *(item.op, first.axis, first.phase, first.party.ranks, first.level, item.dtype, item.shape),
        len(same),
        sum(size or 0 for size in sizes) if known else None,
        sum(row.seconds or 0.0 for row in same) if priced else None,
        first,
    )


# -- who exchanges with whom ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bytes that two ranks share in collectives or send each other.

    Attributes:
        names: of the rows and columns: a rank, or the first of a run of ranks (``8-``).
        bytes: by row and column; None where there are none.
    """

    names: tuple[str, ...]
    bytes: tuple[tuple[float | None, ...], ...]


def exchange(report: GroupReport, most: int = 64) -> Exchange:
    """Who exchanges how much with whom.

    Args:
        report: of all ranks.
        most: of more ranks than these, rows stand for runs of ranks.
    """
    step = -(-report.devices // most)
    count = -(-report.devices // step)
    names = tuple(str(start * step) if step == 1 else f"{start * step}-" for start in range(count))
    sums = [[0.0] * count for _ in range(count)]
    for group in report.groups:
        if group.ranks is None or len(group.ranks) < 2 or group.axes == ("pipeline",):
            continue
        share = group.bytes / len(group.ranks)
        members = Counter(rank // step for rank in group.ranks)
        for one, here in members.items():
            for other, there in members.items():
                pairs = here * there - (here if one == other else 0)
                sums[one][other] += share * pairs
    for item in report.transfers:
        place = item.send or item.receive
        if item.sender is not None and item.receiver is not None and place is not None:
            size = place.collective.bytes or 0
            sums[item.sender // step][item.receiver // step] += size
    return Exchange(names, tuple(tuple(value or None for value in row) for row in sums))


# -- one group by its name -----------------------------------------------------------------------


FoundBy: TypeAlias = Literal["dump", "world", "plain", "name", "nothing"]
"""How the members of a group were found."""


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """What a group's name stands for.

    ``found_by`` is ``dump`` where some node lists the members, ``world`` for the group of all
    devices, ``plain`` for a name that is the ranks themselves, ``name`` where the hash was
    searched, ``nothing``; ``rows`` are the communications of that group in the dumps, over all
    ranks' first of each class.  ``members`` are ranks whose dumps use the name.
    """

    name: str
    ranks: tuple[int, ...] | None
    found_by: FoundBy
    axes: tuple[Axis, ...]
    level: str | None
    rows: tuple[Row, ...]
    members: tuple[int, ...]
    disagreements: tuple[Disagreement, ...]


def named_group(
    report: GroupReport, cluster: Cluster, name: str, devices: int | None = None
) -> NamedGroup:
    """What a group's name, as HCCL's logs print it, stands for.

    Args:
        report: what the run communicates.
        cluster: the run.
        name: ``2-5004544844489628105``, ``hccl_world_group``; what MindSpore hangs on to a name
            (``…_all2all``) does not matter.
        devices: how many there are, for names that occur in no dump.
    """
    same = [group for group in report.groups if group.name == name]
    ranks = next((group.ranks for group in same if group.ranks), None)
    found_by: FoundBy = "dump" if ranks else "nothing"
    if ranks is None:
        known = devices or (report.devices if report.ranks else None)
        ranks, found_by = _decoded(name, known)
    members = tuple(
        rank
        for rank, one in cluster.ranks.items()
        if any(party.group == name for party in one.parties)
    )
    used: dict[Axis, None] = {axis: None for group in same for axis in group.axes}
    return NamedGroup(
        name,
        ranks,
        found_by,
        tuple(used),
        report.machine.level_of(ranks).name if ranks else None,
        tuple(_used_by(cluster, name, report.machine)),
        members,
        tuple(item for item in report.disagreements if item.group == name),
    )


def _used_by(cluster: Cluster, name: str, machine: Machine) -> Iterable[Row]:
    """Rows of the first rank of each class that uses the group: classes may be spread over it."""
    for alike in cluster.classes:
        users = [
            rank
            for rank in alike
            if any(party.group == name for party in cluster.ranks[rank].parties)
        ]
        if users:
            rows = _rows(cluster.ranks[users[0]], len(users), machine)
            yield from (row for row in rows if row.party.group == name)


def _decoded(name: str, devices: int | None) -> tuple[tuple[int, ...] | None, FoundBy]:
    """Members of a group that no dump lists, and how they were found."""
    if name.startswith(WORLD_GROUPS):
        return tuple(range(devices)) if devices else None, "world"
    plain = plain_name(name)
    if plain is not None and plain[-1] < (devices or plain[-1] + 1):
        return plain, "plain"
    members = (decode(name, devices) if devices else None) or search(name, devices or 1)
    return members, "name" if members else "nothing"
