"""What MindSpore's own search chose, beside what a reproduction of it chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.strategies import wanted

FOLLOWS = frozenset({"_VirtualDataset", "_VirtualOutput", "Send", "Receive"})
"""Operators that the search does not choose for: the context does, or what a stage hands on."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One operator: what MindSpore chose, and what was chosen here (with ``out_strategy``)."""

    node: Node
    theirs: Strategy
    ours: Strategy | None
    out_theirs: Strategy | None = None
    out_ours: Strategy | None = None

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return (self.theirs, self.out_theirs) == (self.ours, self.out_ours)

    @property
    def is_batch_split(self) -> bool:
        """Whether MindSpore split nothing but first dimensions: what anybody would have guessed."""
        return all(split == 1 for row in self.theirs for split in row[1:])


@dataclass(frozen=True, slots=True)
class Agreement:
    """All operators that MindSpore chose a strategy for."""

    operators: tuple[Compared, ...]

    @property
    def telling(self) -> tuple[Compared, ...]:
        """Those that are not split along the batch alone; all, where there are none."""
        return self.others or self.operators

    @property
    def others(self) -> tuple[Compared, ...]:
        """Those that are not split along the batch alone."""
        return tuple(operator for operator in self.operators if not operator.is_batch_split)

    @property
    def differing(self) -> tuple[Compared, ...]:
        """Those that were chosen otherwise here."""
        return tuple(operator for operator in self.operators if not operator.agrees)

    @property
    def share(self) -> float:
        """The part of the telling operators that agree; 1 where there are none."""
        counted = self.telling
        return sum(operator.agrees for operator in counted) / len(counted) if counted else 1.0


def agreement(
    before: Dump,
    after: Dump,
    strategies: Mapping[Node, Strategy],
    outs: Mapping[Node, Strategy],
) -> Agreement:
    """Compare a choice for the dump before a search with the dump after it.

    Args:
        before: the dump that was chosen for; it may be ``after`` without its strategies.
        after: MindSpore's dump after its search.
        strategies: by node of ``before``.
        outs: likewise ``out_strategy``.
    """
    compared: list[Compared] = []
    for node, twin in _pairs(before, after):
        chosen = wanted(twin, overridden=True)
        if twin.strategy is None or chosen.strategy is None or primitive(twin) in FOLLOWS:
            continue
        mine = strategies.get(node) if node is not None else None
        out = outs.get(node) if node is not None else None
        compared.append(Compared(twin, chosen.strategy, mine, chosen.out_strategy, out))
    return Agreement(tuple(compared))


def _pairs(before: Dump, after: Dump) -> Iterator[tuple[Node | None, Node]]:
    """Nodes of two dumps of one network: the same name, operands' types and place in the program.

    Names repeat from layer to layer; then the order decides in which MindSpore comes to them (that
    of the statements may differ from dump to dump). Where a graph was copied (for each micro-batch
    of a pipeline), names are new: what stands around a node decides then, and what it is a copy of.
    """
    nodes = _ordered(before)
    exact = _Known(nodes, _key)
    alike = _Known(nodes, _surroundings(before))
    scoped = _Known(nodes, _scoped)
    around = _surroundings(after)
    for twin in _ordered(after):
        original = (
            exact.next(_key(twin)) or alike.again(around(twin)) or scoped.again(_scoped(twin))
        )
        yield original, twin


class _Known:
    """Nodes by what they are alike in, each handed out in its turn."""

    def __init__(self, nodes: Iterable[Node], key: Callable[[Node], object]) -> None:
        self.nodes: dict[object, list[Node]] = {}
        self.taken: dict[object, int] = {}
        for node in nodes:
            self.nodes.setdefault(key(node), []).append(node)

    def next(self, key: object) -> Node | None:
        """The next one; None: there is none left."""
        position = self.taken.get(key, 0)
        self.taken[key] = position + 1
        nodes = self.nodes.get(key, ())
        return nodes[position] if position < len(nodes) else None

    def again(self, key: object) -> Node | None:
        """The next one, from the first again behind the last: copies stand one after another."""
        nodes = self.nodes.get(key)
        if not nodes:
            return None
        position = self.taken.get(key, 0)
        self.taken[key] = position + 1
        return nodes[position % len(nodes)]


def _surroundings(dump: Dump) -> Callable[[Node], object]:
    """What tells a node that was copied: scope, types, and the operators before and behind it."""
    network = network_of(dump)

    def key(node: Node) -> object:
        before = tuple(
            primitive(source) if isinstance(source, Node) else ""
            for source in network.inputs.get(node, ())
        )
        behind = tuple(sorted(primitive(use.node) for use in network.users_of(node)))
        return node.op, node.scope, _types(node), before, behind

    return key


def _ordered(dump: Dump) -> list[Node]:
    reached = [port for port in network_of(dump).preorder if isinstance(port, Node)]
    known = {id(node) for node in reached}
    return [*reached, *(node for node in dump.nodes() if id(node) not in known)]


def _key(node: Node) -> object:
    graph = node.graph.name if node.graph is not None else ""
    return graph, node.name, node.op, _types(node), node.scope


def _scoped(node: Node) -> object:
    return node.op, node.scope, _types(node)


def _types(node: Node) -> object:
    return tuple(
        tuple(abstract.tensors) if abstract is not None else () for abstract in node.input_types
    )
