"""The smallest part of a dump around a node that still reads, and still shows what is asked for.

Statements are left out; what a statement that stays takes from one that is gone becomes a parameter
of the same type.  Numbers and names stay as they are.  Which statements stay is found by trying:
the surroundings of the node grow until the part shows what is asked for, and then as much of them
goes again as can (Zeller's delta debugging).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import Opaque, Parameter, ParameterList, Property, Text
from irtool.ir.statement import ClosureTarget
from irtool.ir.types import Abstract, Signature
from irtool.ir.values import (
    Dictionary,
    ForeignNode,
    GraphReference,
    NodeReference,
    ParameterReference,
    Scalar,
    SliceLiteral,
    Value,
)
from irtool.ir.values import Sequence as SequenceValue
from irtool.syntax.printer import dumps
from irtool.syntax.reader import loads

Shows = Callable[[Dump], bool]
"""Whether a part, read again, shows what is asked for."""

_PATIENCE = 60.0


class NotShown(ValueError):
    """The whole dump doesn't show what is asked for, once it was read again from its parts."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A part of a dump.

    Attributes:
        dump: the part, read from its own text.
        text: of the part.
        statements: that stayed, and of how many.
        is_least: whether no single statement more can go; else time ran out.
    """

    dump: Dump
    text: str
    statements: tuple[int, int]
    is_least: bool


def reduced(
    dump: Dump, node: Node, shows: Shows = lambda _: True, seconds: float = _PATIENCE
) -> Reduced:
    """The smallest part of a dump with a node that reads without problems and shows something.

    Args:
        dump: the whole.
        node: that stays.
        shows: whether a part still shows what is asked for.
        seconds: after which the best part so far is taken.

    Raises:
        NotShown: not even all statements together show it.
    """
    deadline = time.monotonic() + seconds
    problems = len(dump.problems)

    def holds(kept: Iterable[Node]) -> bool:
        part = loads(cut(dump, {node, *kept}), dump.path)
        return len(part.problems) <= (problems if len(part.problems) else 0) and shows(part)

    kept = _grown(dump, node, holds)
    is_least = True
    size = max(1, len(kept) // 2)
    while kept and size:
        kept, went = _without_chunks(kept, size, holds, deadline)
        if time.monotonic() > deadline:
            is_least = False
            break
        if not went or size > 1:
            size //= 2
    text = cut(dump, {node, *kept})
    total = sum(len(graph.nodes) for graph in dump.graphs)
    part = loads(text, dump.path)
    return Reduced(part, text, (sum(len(graph.nodes) for graph in part.graphs), total), is_least)


def _grown(dump: Dump, node: Node, holds: Callable[[Iterable[Node]], bool]) -> list[Node]:
    """Neighbours of a node, nearest first, as many as show it."""
    order = list(_by_distance(dump, node))
    size = 0
    while True:
        if holds(order[:size]):
            return order[:size]
        if size >= len(order):
            raise NotShown("not even all statements together show it once they are cut out")
        size = min(len(order), max(4, 4 * size))


def _without_chunks(
    kept: list[Node], size: int, holds: Callable[[Iterable[Node]], bool], deadline: float
) -> tuple[list[Node], bool]:
    """Without the chunks of a size that can go, the farthest first; whether any went."""
    went = False
    for start in range((len(kept) - 1) // size * size, -1, -size):
        if time.monotonic() > deadline:
            return kept, went
        trial = kept[:start] + kept[start + size :]
        if holds(trial):
            kept, went = trial, True
    return kept, went


def _by_distance(dump: Dump, node: Node) -> Iterator[Node]:
    """All other statements, those fewest steps away first; calls lead into graphs and out."""
    callers: dict[str, list[Node]] = {}
    for statement in dump.nodes():
        for name in _graphs_of(statement):
            callers.setdefault(name, []).append(statement)
    seen = {node}
    level = [node]
    while level:
        following: list[Node] = []
        for statement in level:
            near = [source for source in statement.inputs if isinstance(source, Node)]
            near += statement.users
            near += callers.get(statement.graph.name if statement.graph is not None else "", ())
            for name in _graphs_of(statement):
                called = dump.graph(name)
                near += called.nodes if called is not None else ()
            for other in near:
                if other not in seen:
                    seen.add(other)
                    if not other.is_return:
                        yield other
                    following.append(other)
        level = following
    yield from (
        statement for statement in dump.nodes() if statement not in seen and not statement.is_return
    )


def _graphs_of(node: Node) -> tuple[str, ...]:
    named = [
        reference.name for reference in node.references() if isinstance(reference, GraphReference)
    ]
    return tuple(dict.fromkeys((*node.callees, *named)))


# -- cutting -----------------------------------------------------------------------------------


def cut(dump: Dump, kept: set[Node]) -> str:
    """The text of a part of a dump.

    Args:
        dump: the whole.
        kept: statements that stay; each graph's Return stays with any of its statements, and a
            graph that is called or used stays, if only as its Return.
    """
    return dumps(_Cut(dump, kept).made())


def _with_callees(kept: set[Node]) -> set[Node]:
    """With the statements that make what others call: no parameter can stand for these."""
    needed, waiting = set(kept), list(kept)
    while waiting:
        node = waiting.pop()
        target = node.target
        if isinstance(target, ClosureTarget) and not isinstance(target.callee, str):
            made = node.graph.source(target.callee) if node.graph is not None else None
            made = getattr(made, "likely", made)
            if isinstance(made, Node) and made not in needed:
                needed.add(made)
                waiting.append(made)
    return needed


class _Cut:
    """Leaves out statements, and hands on as parameters what they made."""

    def __init__(self, dump: Dump, kept: set[Node]) -> None:
        self.dump = dump
        self.kept = _with_callees(kept)
        self.new: dict[Node, Parameter] = {}
        self.used: set[int | None] = set()
        numbers = [item.number or 0 for item in dump.parameters]
        numbers += [item.number or 0 for graph in dump.graphs for item in graph.parameters]
        self._next = max(numbers, default=0) + 1

    def made(self) -> Dump:
        graphs = self._graphs()
        items: list[Item | Graph] = []
        for item in self.dump.items:
            if isinstance(item, Graph):
                if item in graphs:
                    items.append(graphs[item])
            elif not isinstance(item, Opaque | ParameterList) and not self._is_order(item):
                items.append(item)
        return replace(self.dump, items=tuple(self._counted(items)), problems=())

    @staticmethod
    def _is_order(item: Item) -> bool:
        return isinstance(item, Text) and item.kind not in ("blank", "banner")

    def _graphs(self) -> dict[Graph, Graph]:
        """The graphs that stay, cut; those that they use stay with them."""
        entry = self.dump.entry
        waiting = [
            graph
            for graph in self.dump.graphs
            if graph is entry or any(node in self.kept for node in graph.nodes)
        ]
        made: dict[Graph, Graph] = {}
        while waiting:
            graph = waiting.pop()
            if graph in made:
                continue
            made[graph] = self._cut_graph(graph)
            for node in graph.nodes:
                if node in self.kept:
                    used = (self.dump.graph(name) for name in _graphs_of(node))
                    waiting += [callee for callee in used if callee is not None]
            parent = self.dump.graph(graph.parent) if graph.parent else None
            waiting += [parent] if parent is not None else []
        return made

    def _cut_graph(self, graph: Graph) -> Graph:
        items: list[Item] = []
        last: Node | None = None
        for item in graph.items:
            if not isinstance(item, Node):
                if not isinstance(item, Opaque):
                    items.append(item)
                continue
            if item.is_return:
                items.append(self._return(item, last))
            elif item in self.kept:
                items.append(self._replaced(item))
                last = item
        return Graph(graph.head, tuple(items), graph.prelude, graph.close)

    def _return(self, node: Node, last: Node | None) -> Node:
        """A graph gives what it gave, if that is still there, else its last statement's result."""
        source = next(iter(node.inputs), None)
        if not isinstance(source, Node) or source in self.kept:
            return self._replaced(node)
        if last is None or last.number is None:
            return replace(node, operands=(Scalar("I64", "0"),), signature=None, graph=None)
        signature = node.signature
        if signature is not None:
            kinds: tuple[Abstract | None, ...] = (last.output_type,)
            outputs = None if signature.outputs is None else kinds
            signature = Signature(kinds, outputs, signature.lead, signature.arrow, signature.null)
        return replace(
            node, operands=(NodeReference(last.number),), signature=signature, graph=None
        )

    def _replaced(self, node: Node) -> Node:
        """A statement that takes what is gone from parameters."""
        sources = dict(zip(node.operands, node.inputs, strict=False))
        operands = tuple(self._value(value, node, sources.get(value)) for value in node.operands)
        return replace(node, operands=operands, graph=None)

    def _value(self, value: Value, node: Node, source: object = None) -> Value:
        match value:
            case NodeReference() | ForeignNode():
                graph = node.graph
                made = source or (graph.source(value) if graph is not None else None)
                made = getattr(made, "likely", made)
                if isinstance(made, Node) and made not in self.kept:
                    item = self._parameter(made)
                    return ParameterReference(item.number, item.name)
                return value
            case ParameterReference():
                self.used.add(value.number)
                return value
            case SequenceValue():
                return replace(value, items=tuple(self._value(i, node) for i in value.items))
            case Dictionary():
                entries = tuple((key, self._value(item, node)) for key, item in value.entries)
                return replace(value, entries=entries)
            case SliceLiteral():
                parts = (self._value(i, node) for i in (value.start, value.stop, value.step))
                return SliceLiteral(*parts)
            case _:
                return value

    def _parameter(self, node: Node) -> Parameter:
        """The parameter that stands for what a statement made."""
        if node not in self.new:
            self.new[node] = Parameter(self._next, f"cut{self._next}", node.output_type)
            self._next += 1
        return self.new[node]

    def _counted(self, items: Sequence[Item | Graph]) -> Iterator[Item | Graph]:
        """Without parameters that nothing takes, with the new ones, and with counts that agree."""
        printed = [item for item in items if isinstance(item, Graph)]
        statements = sum(len(graph.nodes) for graph in printed)
        total = sum(isinstance(i, Parameter) and i.number in self.used for i in items)
        counts = {
            "Total subgraphs": len(printed),
            "Total subgraph": len(printed),
            "Total params": total + len(self.new),
            "Total number of cnodes": statements,
        }
        written = False
        for place, item in enumerate(items):
            if isinstance(item, Parameter):
                if item.number in self.used:
                    yield item
                last = not any(isinstance(later, Parameter) for later in items[place + 1 :])
                if last and not written:
                    written = True
                    yield from self.new.values()
                continue
            if isinstance(item, Property):
                key = item.key.lstrip("# ").rstrip()
                if key == "Total number of nodes":
                    continue
                if key in counts:
                    item = replace(item, value=str(counts[key]))
            yield item
            if (
                not written
                and isinstance(item, Text | Property)
                and getattr(item, "text", getattr(item, "key", "")).startswith("# Params")
                and not any(isinstance(later, Parameter) for later in items)
            ):
                written = True
                yield from self.new.values()
