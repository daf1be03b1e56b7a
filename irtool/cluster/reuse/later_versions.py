"""What is left of the reuse of communication subgraphs in MindSpore 2.3 and later.

The feature went with the task-sink backend.  The tags are still made, one communication stream a
group replaces the packing (runtime option ``multi_stream``), and the variable is read in one place
only, which raises where it is set while cells are reused (``lazy_inline``).  What makes compilation
slow now is the number of statements; reuse of cells is what shares them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from irtool.cluster.ranks import RankProgram
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, Node

_INDEX = re.compile(r"/(\d+)-(?=[^/])")
_COPIES = ("MoveTo", "MoveAssign")


@dataclass(frozen=True, slots=True)
class Repeated:
    """Statements of one kind of cell: how many there are, in how many copies."""

    scope: str
    copies: int
    statements: int


@dataclass(frozen=True, slots=True)
class Later:
    """What 2.3 and later make of a graph.

    Attributes:
        tagged: collectives that still get the tag.
        groups: HCCL groups of the graph, each with a stream.
        streams: by setting of ``multi_stream``.
        statements: of the dump.
        by_scope: statements by the outermost cells that the user wrote.
        by_micro: statements by micro-batch; those of none are left out.
        layers: cells of lists (``0-Block``, ``1-Block``, …), copies together.
        unrolled: statements that belong to a copy of a layer or a micro-batch.
        shared: how many of them reuse of cells would leave out.
        reuses_cells: whether the dump already calls shared cells.
    """

    tagged: int
    groups: int
    streams: dict[str, int]
    statements: int
    by_scope: tuple[tuple[str, int], ...]
    by_micro: tuple[tuple[int, int], ...]
    layers: tuple[Repeated, ...]
    unrolled: int
    shared: int
    reuses_cells: bool


def later(one: RankProgram) -> Later:
    """What is left of reuse for one rank's graph, and what reuse of cells would share instead.

    Args:
        one: the rank, with a dump of 2.3 or later.
    """
    steps = one.program.steps
    nodes = [node for node in one.program.dump.nodes() if not node.is_return]
    groups = {step.collective.group for step in steps if step.collective.group}
    copies = 2 if any(node.op in _COPIES for node in nodes) else 0
    micros = Counter(node.micro for node in nodes if node.micro is not None)
    unrolled, kept = _unrolled(nodes)
    return Later(
        sum(step.collective.node.attribute("comm_reuse") is True for step in steps),
        len(groups),
        {"group": 1 + len(groups) + copies, "true": 1 + bool(groups) + copies, "false": 1},
        len(nodes),
        tuple(Counter(_outer(node) for node in nodes).most_common()),
        tuple(sorted(micros.items())),
        _layers(nodes),
        unrolled,
        unrolled - kept,
        any("cell_reuse" in graph.attributes or "CR" in graph.name for graph in _called(one)),
    )


def _called(one: RankProgram) -> Iterable[Graph]:
    dump = one.program.dump
    return [graph for graph in dump.graphs if graph is not dump.entry]


def _scope(node: Node) -> str:
    """The scope of the forward pass that a node belongs to."""
    parts = [part for part in (node.scope or "").split("/") if not part.startswith("Grad_")]
    if parts and parts[0] == "Gradients":
        parts = parts[1:]
    return "/".join(parts)


def _outer(node: Node) -> str:
    """The first four cells of a scope, down to but without a list of layers."""
    scope = _scope(node)
    match = _INDEX.search(f"/{scope}")
    text = scope[: max(match.start() - 1, 0)] if match else scope
    return "/".join(text.split("/")[:4]) or "(no scope)"


def _layers(nodes: Iterable[Node]) -> tuple[Repeated, ...]:
    copies: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for node in nodes:
        scope = _scope(node)
        match = _INDEX.search(f"/{scope}")
        if match is None:
            continue
        text = f"/{scope}"
        name = text[1 : match.start()] + "/*-" + text[match.end() :].split("/")[0]
        copies.setdefault(name, set()).add(match[1])
        counts[name] += 1
    return tuple(
        Repeated(name, len(copies[name]), count)
        for name, count in counts.most_common()
        if len(copies[name]) > 1
    )


def _unrolled(nodes: Iterable[Node]) -> tuple[int, int]:
    """Statements in copies of layers or micro-batches, and those of one copy of each."""
    members: dict[tuple[str, str, bool], Counter[tuple[str, int | None]]] = {}
    for node in nodes:
        scope = f"/{_scope(node)}"
        index = _INDEX.search(scope)
        if index is None and node.micro is None:
            continue
        name = _INDEX.sub("/*-", scope, count=1)
        key = (name, node.op, node.is_backward)
        copy = (index[1] if index else "", node.micro)
        members.setdefault(key, Counter())[copy] += 1
    total = sum(sum(copies.values()) for copies in members.values())
    return total, sum(max(copies.values()) for copies in members.values())
