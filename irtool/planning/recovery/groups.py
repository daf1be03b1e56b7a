"""Communication groups of all ranks, and those that a failure breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from irtool.cluster.ranks import Cluster
from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import WORLD_GROUPS, group_name
from irtool.planning.cost.holdings import Holdings
from irtool.sharding.network.report import CheckResult

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupUse:
    """One group: its ranks, its name, and which operators use it how often on one rank.

    ``extrapolated`` marks a group that no given dump shows: it is a group of a given rank, moved
    along the ranks of its stage.
    """

    ranks: Ranks
    name: str
    operators: Mapping[str, int]
    extrapolated: bool = False


@dataclass(frozen=True, slots=True)
class GroupTable:
    """All groups; ``unknown`` communications name a group whose ranks nobody knows."""

    groups: tuple[GroupUse, ...]
    unknown: int = 0

    def broken_by(self, lost: Iterable[int]) -> tuple[GroupUse, ...]:
        """Groups that hold a lost rank: they must be built anew."""
        gone = set(lost)
        return tuple(group for group in self.groups if gone & set(group.ranks))

    def untouched_ranks(self, lost: Iterable[int], ranks: Iterable[int]) -> Ranks:
        """Ranks none of whose groups, but the one of all devices, holds a lost rank."""
        touched = set(lost)
        world = max((len(group.ranks) for group in self.groups), default=0)
        for group in self.broken_by(lost):
            if len(group.ranks) < world or not group.name.startswith(WORLD_GROUPS):
                touched.update(group.ranks)
        return tuple(rank for rank in ranks if rank not in touched)


def group_table(cluster: Cluster, devices: int, stages: int = 1) -> GroupTable:
    """The groups that the dumps of some ranks show, and by shifting those of the others.

    Args:
        cluster: the ranks whose dumps are there.
        devices: of the whole run.
        stages: pipeline stages; groups are shifted inside a stage only.
    """
    uses: dict[Ranks, dict[str, int]] = {}
    names: dict[Ranks, str] = {}
    unknown = 0
    for one in cluster.ranks.values():
        counts: dict[Ranks, dict[str, int]] = {}
        for step, party in zip(one.program.steps, one.parties, strict=True):
            if party.ranks is None:
                unknown += 1
                continue
            if len(party.ranks) < 2:
                continue
            operators = counts.setdefault(party.ranks, {})
            operators[step.collective.op] = operators.get(step.collective.op, 0) + 1
            names.setdefault(party.ranks, party.group or group_name(party.ranks))
        for ranks, operators in counts.items():
            kept = uses.setdefault(ranks, {})
            for op, count in operators.items():
                kept[op] = max(kept.get(op, 0), count)
    groups = [GroupUse(ranks, names[ranks], operators) for ranks, operators in uses.items()]
    missing = set(range(devices)) - set(cluster.ranks)
    if missing:
        groups += _shifted(groups, devices, stages)
    return GroupTable(
        tuple(sorted(groups, key=lambda group: (len(group.ranks), group.ranks))), unknown
    )


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """Groups of a new plan against those of the old one, by their ranks."""

    kept: tuple[GroupUse, ...]
    added: tuple[GroupUse, ...]
    removed: tuple[GroupUse, ...]


def group_changes(old: GroupTable, new: GroupTable) -> GroupChanges:
    """Which groups a new plan has, and which it no longer has.

    Args:
        old: groups before.
        new: groups under the new plan; groups of the same ranks are the same.
    """
    before = {group.ranks for group in old.groups}
    after = {group.ranks for group in new.groups}
    return GroupChanges(
        tuple(group for group in new.groups if group.ranks in before),
        tuple(group for group in new.groups if group.ranks not in before),
        tuple(group for group in old.groups if group.ranks not in after),
    )


def predicted_groups(network: Holdings) -> GroupTable:
    """The groups that ``check`` predicts for a network that has no later dumps.

    Those of the first rank of each stage, moved along the ranks of the stage, and the one of all
    devices, which MindSpore always builds. Operators are those of the forward pass, and what
    parameters need.

    Args:
        network: with what ``check`` says of each stage.

    Returns:
        small groups first.
    """
    uses: dict[Ranks, dict[str, int]] = {}
    if network.devices > 1:
        uses[tuple(range(network.devices))] = {}
    for report in network.reports.values():
        for op, ranks, count in _predicted(report):
            kept = uses.setdefault(ranks, {})
            kept[op] = kept.get(op, 0) + count
    groups = [GroupUse(ranks, group_name(ranks), operators) for ranks, operators in uses.items()]
    groups += _shifted(groups, network.devices, network.stages)
    return GroupTable(tuple(sorted(groups, key=lambda group: (len(group.ranks), group.ranks))))


def _predicted(report: CheckResult) -> Iterator[tuple[str, Ranks, int]]:
    for item in report.operators:
        for collective in item.collectives:
            if len(collective.ranks) > 1:
                yield collective.op, tuple(sorted(collective.ranks)), collective.count
    for edge in report.redistributions:
        for step in edge.operators or ():
            if len(step.ranks) > 1:
                yield step.op, tuple(sorted(step.ranks)), 1
    for item in report.parameters:
        for op, ranks in (
            ("AllReduce", item.mirror_ranks),
            ("AllGather", item.gather_ranks),
            ("ReduceScatter", item.scatter_ranks),
        ):
            if ranks is not None and len(ranks) > 1:
                yield op, tuple(sorted(ranks)), 1


def _shifted(groups: Iterable[GroupUse], devices: int, stages: int) -> list[GroupUse]:
    """Groups of the same form that other ranks must have, as far as shifting tells them."""
    size = devices // max(1, stages)
    known = {group.ranks for group in groups}
    shifted: list[GroupUse] = []
    for group in groups:
        if not size or len({rank // size for rank in group.ranks}) > 1:
            continue
        steps = tuple(rank - group.ranks[0] for rank in group.ranks)
        for stage in range(stages):
            for ranks in tiles(steps, range(stage * size, (stage + 1) * size)):
                if ranks not in known:
                    known.add(ranks)
                    name = group_name(ranks)
                    shifted.append(GroupUse(ranks, name, group.operators, extrapolated=True))
    return shifted


def tiles(steps: Ranks, ranks: range) -> list[Ranks]:
    """The ranks cut into groups of one form; nothing if they cannot be.

    Args:
        steps: the form: distances of the members from the first one, which is 0.
        ranks: of a stage.
    """
    free = dict.fromkeys(ranks)
    groups: list[Ranks] = []
    while free:
        first = next(iter(free))
        members = tuple(first + step for step in steps)
        if any(member not in free for member in members):
            return []
        for member in members:
            del free[member]
        groups.append(members)
    return groups
