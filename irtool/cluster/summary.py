"""What is in a dump: the facts that a person debugging wants first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.ir.problem import Problem
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
    """One kind of collective in one group: ``bytes`` is the larger of input and output."""

    op: str
    group: str | None
    ranks: tuple[int, ...] | None
    count: int
    bytes: int
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters of one kind: ``input``, ``weight``, or ``state`` (kept beside a weight)."""

    kind: str
    count: int
    bytes: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One dump in numbers; nodes are those that were asked for.

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
    operators: tuple[OperatorCount, ...]
    collectives: tuple[CollectiveCount, ...]
    parameters: tuple[ParameterCount, ...]
    with_strategy: int
    phases: dict[str, int]
    problems: tuple[Problem, ...]
    equal_ranks: tuple[int, ...] = ()

    @property
    def devices(self) -> tuple[int, ...]:
        """All ranks seen in groups."""
        seen = {rank for row in self.collectives for rank in row.ranks or ()}
        return tuple(sorted(seen))

    @property
    def weight_bytes(self) -> int:
        """Bytes of everything that lives longer than a step."""
        return sum(row.bytes for row in self.parameters if row.kind != "input")


def summarize(
    dump: Dump,
    pass_name: str | None = None,
    rank: int | None = None,
    where: Callable[[Node], bool] | None = None,
) -> Summary:
    """Count what a dump holds.

    Args:
        dump: the dump.
        pass_name: after which pass it was taken, where known.
        rank: whose dump it is, where known.
        where: which nodes to count; all if None.
    """
    nodes = list(dump.nodes(where=where))
    return Summary(
        path=dump.path,
        pass_name=pass_name,
        dialect=dump.dialect,
        rank=rank,
        entry=dump.entry.name if dump.entry else None,
        characters=dump.size,
        graphs=tuple((graph.name, len(graph.nodes)) for graph in dump.graphs),
        nodes=len(nodes),
        operators=_operators(nodes),
        collectives=_collectives(nodes),
        parameters=_parameters(dump),
        with_strategy=sum(node.in_strategy is not None for node in nodes),
        phases=dict(Counter(fields.phase(node) for node in nodes)),
        problems=dump.problems,
    )


def _operators(nodes: Iterable[Node]) -> tuple[OperatorCount, ...]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for node in nodes:
        if node.is_return:
            continue
        size = node.output_bytes
        counts[node.op] += 1
        sizes[node.op] += size or 0
        unknown[node.op] += size is None and node.output_type is not None
    rows = (OperatorCount(op, count, sizes[op], unknown[op]) for op, count in counts.items())
    return tuple(sorted(rows, key=lambda row: (-row.bytes, -row.count, row.op)))


def _collectives(nodes: Iterable[Node]) -> tuple[CollectiveCount, ...]:
    found: dict[tuple[str, str | None, tuple[int, ...] | None], list[Node]] = {}
    for node in nodes:
        if fields.is_collective(node):
            key = (node.op, fields.group(node), fields.ranks(node))
            found.setdefault(key, []).append(node)
    rows = (
        CollectiveCount(
            op,
            group,
            ranks,
            len(members),
            sum(map(message_bytes, members)),
            tuple(sorted({fields.phase(node) for node in members})),
        )
        for (op, group, ranks), members in found.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.bytes, -row.count, row.op, row.group or "")))


def message_bytes(node: Node) -> int:
    """Bytes that a collective works on: the larger of what goes in and what comes out."""
    given = [each.size or 0 for each in node.input_types if each is not None]
    return max([node.output_bytes or 0, sum(given)])


_KINDS = ("input", "weight", "state")


def _parameters(dump: Dump) -> tuple[ParameterCount, ...]:
    weights = {item.name for item in dump.parameters if item.is_weight}
    counts = dict.fromkeys(_KINDS, 0)
    sizes = dict.fromkeys(_KINDS, 0)
    unknown = dict.fromkeys(_KINDS, 0)
    for item in dump.parameters:
        kind = _kind(item.name, weights)
        counts[kind] += 1
        sizes[kind] += item.size or 0
        unknown[kind] += item.size is None and item.type is not None
    return tuple(
        ParameterCount(kind, counts[kind], sizes[kind], unknown[kind])
        for kind in _KINDS
        if counts[kind]
    )


def _kind(name: str, weights: set[str]) -> str:
    """Optimizers name what they keep after the weight: ``moments.up.weight``."""
    if name not in weights:
        return "input"
    place = name.find(".")
    while place >= 0:
        if name[place + 1 :] in weights:
            return "state"
        place = name.find(".", place + 1)
    return "weight"


@dataclass(frozen=True, slots=True)
class GroupCount:
    """Nodes that agree in the fields asked for."""

    key: tuple[object, ...]
    count: int
    bytes: int


def group_nodes(
    nodes: Iterable[Node], getters: Sequence[Callable[[Node], object]]
) -> tuple[GroupCount, ...]:
    """Count nodes and bytes of their results by the values of some fields."""
    counts: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for node in nodes:
        key = tuple(_hashable(getter(node)) for getter in getters)
        counts[key] += 1
        sizes[key] += node.output_bytes or 0
    return merge_groups(GroupCount(key, count, sizes[key]) for key, count in counts.items())


def merge_groups(rows: Iterable[GroupCount]) -> tuple[GroupCount, ...]:
    """Add up rows with equal keys (of several dumps), the most frequent first."""
    counts: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        counts[row.key] += row.count
        sizes[row.key] += row.bytes
    made = (GroupCount(key, count, sizes[key]) for key, count in counts.items())
    return tuple(sorted(made, key=lambda row: (-row.count, -row.bytes, str(row.key))))


def _hashable(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)  # type: ignore[misc]
    return str(value) if isinstance(value, dict) else value  # type: ignore[arg-type]
