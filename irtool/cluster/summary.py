"""What is in a dump: the facts that a person debugging wants first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from irtool.ir.collectives import Collective, collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.groups import Devices, devices
from irtool.ir.operators import PLUMBING
from irtool.ir.parameter_roles import ROLES, Role, parameter_roles
from irtool.ir.ties import ties
from irtool.syntax import query_fields as fields


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """One operator: how often, and bytes of its results; ``unknown`` nodes have no known size."""

    op: str
    count: int
    bytes: int
    unknown: int


@dataclass(frozen=True, slots=True)
class CollectiveCount:
    """One kind of collective in one group, for one reason; ``bytes`` of one rank.

    ``unknown`` collectives have no known size.
    """

    op: str
    group: str | None
    ranks: tuple[int, ...] | None
    count: int
    bytes: int
    unknown: int
    origin: str
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of one kind: what they are, as :mod:`irtool.ir.parameter_roles` says."""

    kind: Role
    count: int
    bytes: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One dump in numbers; nodes are those that were asked for.

    ``operators`` leaves out the ``passing`` nodes that only hand values on (Load, MakeTuple, …).
    ``backward_tied`` says how many backward nodes are tied to a forward node, of how many;
    ``equal_ranks`` are the ranks whose dumps are the same up to what depends on the rank.
    """

    path: str
    pass_name: str | None
    dialect: str
    rank: int | None
    entry: str | None
    characters: int
    graphs: tuple[tuple[str, int], ...]
    nodes: int
    passing: int
    operators: tuple[OperatorCount, ...]
    collectives: tuple[CollectiveCount, ...]
    parameters: tuple[ParameterCount, ...]
    with_strategy: int
    phases: dict[str, int]
    backward_tied: tuple[int, int] | None
    problems: tuple[Finding, ...]
    devices: Devices
    equal_ranks: tuple[int, ...] = ()

    @property
    def weight_bytes(self) -> int:
        """Bytes of everything that lives longer than a step."""
        return sum(row.bytes for row in self.parameters if row.kind != "input")


def summarize(
    dump: Dump,
    pass_name: str | None = None,
    rank: int | None = None,
    where: Callable[[Node], bool] | None = None,
    with_ties: bool = True,
) -> Summary:
    """Count what a dump holds.

    Args:
        dump: the dump.
        pass_name: after which pass it was taken, where known.
        rank: whose dump it is, where known.
        where: which nodes to count; all if None.
        with_ties: look for the forward node of each backward one, which takes a while.
    """
    nodes = list(dump.nodes(where=where))
    tied = ties(dump) if with_ties else None
    return Summary(
        path=dump.path,
        pass_name=pass_name,
        dialect=dump.dialect,
        rank=rank,
        entry=dump.entry.name if dump.entry else None,
        characters=dump.size,
        graphs=tuple((graph.name, len(graph.nodes)) for graph in dump.graphs),
        nodes=len(nodes),
        passing=sum(node.op in PLUMBING for node in nodes),
        operators=_operators(nodes),
        collectives=_collectives(nodes),
        parameters=_parameters(dump),
        with_strategy=sum(node.has_strategy for node in nodes),
        phases=dict(Counter(fields.phase(node) for node in nodes)),
        backward_tied=(tied.tied("gradient"), tied.tieable["gradient"]) if tied else None,
        problems=dump.problems,
        devices=devices(dump),
    )


def _operators(nodes: Iterable[Node]) -> tuple[OperatorCount, ...]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for node in nodes:
        if node.op in PLUMBING:
            continue
        size = node.output_bytes
        counts[node.op] += 1
        sizes[node.op] += size or 0
        unknown[node.op] += size is None and node.output_type is not None
    rows = (OperatorCount(op, count, sizes[op], unknown[op]) for op, count in counts.items())
    return tuple(sorted(rows, key=lambda row: (-row.bytes, -row.count, row.op)))


def _collectives(nodes: Iterable[Node]) -> tuple[CollectiveCount, ...]:
    members: dict[tuple[str, str | None, tuple[int, ...] | None, str], list[Collective]] = {}
    for node in nodes:
        item = collective(node)
        if item is not None:
            key = (node.op, item.group, item.ranks, item.origin)
            members.setdefault(key, []).append(item)
    rows = (
        CollectiveCount(
            *(op, group, ranks, len(items)),
            sum(item.bytes or 0 for item in items),
            sum(item.bytes is None for item in items),
            origin,
            tuple(sorted({fields.phase(item.node) for item in items})),
        )
        for (op, group, ranks, origin), items in members.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.bytes, -row.count, row.op, row.group or "")))


def _parameters(dump: Dump) -> tuple[ParameterCount, ...]:
    counts = dict.fromkeys(ROLES, 0)
    sizes = dict.fromkeys(ROLES, 0)
    unknown = dict.fromkeys(ROLES, 0)
    roles = parameter_roles(dump)
    for item in dump.parameters:
        kind = roles[item.name].role
        counts[kind] += 1
        sizes[kind] += item.size or 0
        unknown[kind] += item.size is None and item.type is not None
    return tuple(
        ParameterCount(kind, counts[kind], sizes[kind], unknown[kind])
        for kind in ROLES
        if counts[kind]
    )


@dataclass(frozen=True, slots=True)
class GroupCount:
    """Nodes that agree in the fields asked for."""

    key: tuple[object, ...]
    count: int
    bytes: int


def group_nodes(
    nodes: Iterable[Node], getters: Sequence[Callable[[Node], object]]
) -> tuple[GroupCount, ...]:
    """Count nodes and bytes of their results by the values of some fields.

    Args:
        nodes: of one dump.
        getters: one for each field; the values are a row's key.

    Returns:
        The most frequent first; bytes that are not known count nothing.
    """
    counts: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for node in nodes:
        key = tuple(_hashable(getter(node)) for getter in getters)
        counts[key] += 1
        sizes[key] += node.output_bytes or 0
    return merge_groups(GroupCount(key, count, sizes[key]) for key, count in counts.items())


def merge_groups(rows: Iterable[GroupCount]) -> tuple[GroupCount, ...]:
    """Add up rows with equal keys (of several dumps), the most frequent first.

    Args:
        rows: of the same fields.
    """
    counts: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        counts[row.key] += row.count
        sizes[row.key] += row.bytes
    made = (GroupCount(key, count, sizes[key]) for key, count in counts.items())
    return tuple(sorted(made, key=lambda row: (-row.count, -row.bytes, str(row.key))))


def _hashable(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)  # type: ignore[misc]  # of plain values
    return str(value) if isinstance(value, dict) else value  # type: ignore[arg-type]  # as above
