"""A graph: one subgraph of a dump, and what its references mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, Union

from irtool.ir.comments import Location
from irtool.ir.display import Shown
from irtool.ir.items import (
    CommentBlock,
    Head,
    Item,
    Parameter,
    ParameterList,
    Property,
    Text,
)
from irtool.ir.node import ClosureTarget, Node, nested_references
from irtool.ir.types import Abstract
from irtool.ir.values import (
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    String,
    Value,
)

if TYPE_CHECKING:
    from irtool.ir.dump import Dump


@dataclass(frozen=True, slots=True)
class AmbiguousReference:
    """A reference by debug name that several nodes of the graph bear.

    ``likely`` is the last definition before the referring graph is used, which Python rebinding
    (``x = f(x)``) usually means.
    """

    reference: ForeignNode
    candidates: tuple[Node, ...]
    likely: Node


@dataclass(frozen=True, slots=True)
class GraphParameter:
    """A parameter of a graph by number; ``declaration`` is there for parameters of the entry."""

    number: int | None
    label: str | None
    graph: str
    type: Abstract | None = None
    declaration: Parameter | None = None

    @property
    def name(self) -> str:
        """The declared name where there is one, else the label."""
        return self.declaration.name if self.declaration else self.label or ""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference to something that this dump does not define (excerpts, damaged dumps)."""

    reference: Value


Source: TypeAlias = Union[Node, GraphParameter, "Graph", AmbiguousReference, Unresolved, Value]


@dataclass(frozen=True, eq=False)
class Graph(Shown):
    """One subgraph: the lines before it, its head and its body.

    ``head`` is None for statements that stand in no graph (excerpts).  ``items`` holds the nodes
    and whatever else stands in the body; ``close`` is the closing line, None where it is missing.
    """

    head: Head | None
    items: tuple[Item, ...]
    prelude: tuple[Item, ...] = ()
    close: Text | None = None
    dump: Dump | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if any(isinstance(item, Node) and item.graph is not None for item in self.items):
            items = tuple(
                replace(item, graph=None) if isinstance(item, Node) else item for item in self.items
            )
            object.__setattr__(self, "items", items)
        for item in self.items:
            if isinstance(item, Node):
                object.__setattr__(item, "graph", self)

    # -- what it is --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The graph's name, without ``@``; empty for statements in no graph."""
        return self.head.name if self.head else ""

    @property
    def parent(self) -> str | None:
        """Name of the graph that encloses this closure."""
        return self.head.parent if self.head else None

    @property
    def line(self) -> int:
        """Line of the head, or of the first statement where there is no head."""
        if self.head:
            return self.head.line
        return self.items[0].line if self.items else 0

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every statement in printed order, the Return included."""
        return tuple(item for item in self.items if isinstance(item, Node))

    @property
    def result(self) -> Node | None:
        """The Return."""
        return next((node for node in reversed(self.nodes) if node.is_return), None)

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Graph attributes as printed (``{"training": "1"}``); some print nothing as value."""
        return {
            item.key: item.value
            for item in self.prelude
            if isinstance(item, Property) and not item.key.startswith("subgraph ")
        }

    @property
    def locations(self) -> tuple[Location, ...]:
        """Where the user's code defines this graph."""
        blocks = [item.comments for item in self.prelude if isinstance(item, CommentBlock)]
        return tuple(location for block in blocks for location in block.locations)

    @cached_property
    def parameters(self) -> tuple[GraphParameter, ...]:
        """The graph's parameters; the entry's come from the ``# Params:`` section."""
        if self.dump is not None and self.dump.entry is self and self.dump.parameters:
            return tuple(
                GraphParameter(item.number, item.name, self.name, item.type, item)
                for item in self.dump.parameters
            )
        references = self.head.parameters if self.head else ()
        types: tuple[Abstract | None, ...] = next(
            (item.types for item in self.prelude if isinstance(item, ParameterList)), ()
        )
        found: list[GraphParameter] = []
        for index, item in enumerate(references):
            if isinstance(item, Parameter):
                found.append(GraphParameter(item.number, item.name, self.name, item.type, item))
            else:
                type = types[index] if index < len(types) else None
                found.append(GraphParameter(item.number, item.label, self.name, type))
        return tuple(found)

    # -- what references mean ------------------------------------------------------------------

    @cached_property
    def _by_number(self) -> dict[int, Node]:
        return {node.number: node for node in self.nodes if node.number is not None}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.name is not None:
                found.setdefault(node.name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def _parameter_table(self) -> dict[tuple[int | None, str | None], GraphParameter]:
        """Parameters by number and label, and by number alone where there is a number."""
        found: dict[tuple[int | None, str | None], GraphParameter] = {}
        for item in self.parameters:
            found.setdefault((item.number, item.label), item)
            if item.number:
                found.setdefault((item.number, None), item)
        return found

    @cached_property
    def _first_use(self) -> dict[str, int]:
        """For each graph that this one uses, the position of the first node that does."""
        found: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            for reference in node.references():
                if isinstance(reference, GraphReference):
                    found.setdefault(reference.name, position)
        return found

    @property
    def used_graphs(self) -> tuple[str, ...]:
        """Names of the graphs that its nodes call or use as values."""
        return tuple(self._first_use)

    def node(self, number: int) -> Node | None:
        """The node ``%number``."""
        return self._by_number.get(number)

    def named(self, name: str) -> tuple[Node, ...]:
        """All nodes with this debug name: names are not unique."""
        return self._by_name.get(name, ())

    def source(self, operand: Value, type: Abstract | None = None) -> Source:
        """What an operand of this graph stands for.

        Args:
            operand: an operand, or a reference inside one.
            type: its type, if known: tells apart nodes of an enclosing graph with equal names.
        """
        match operand:
            case NodeReference():
                return self._by_number.get(operand.number) or Unresolved(operand)
            case ParameterReference():
                return self._parameter(operand)
            case GraphReference():
                found = self.dump.graph(operand.name) if self.dump else None
                return found or Unresolved(operand)
            case ForeignNode():
                return self._foreign(operand, type)
            case ForeignParameter():
                owner = self.dump.graph(operand.graph) if self.dump else None
                if owner is None:
                    return Unresolved(operand)
                return owner.source(ParameterReference(operand.number, operand.label))
            case _:
                return operand

    def labelled(self, label: str) -> Source:
        """The parameter that a call names by its bare label, of this graph or an enclosing one."""
        graph: Graph | None = self
        seen: set[str] = set()
        while graph is not None and graph.name not in seen:
            seen.add(graph.name)
            for item in graph.parameters:
                if item.label == label:
                    return item
            graph = self.dump.graph(graph.parent) if self.dump and graph.parent else None
        return Unresolved(String(label))

    def called(self, node: Node) -> tuple[Graph, ...]:
        """Graphs of this dump that ``node`` may call."""
        if self.dump is None:
            return ()
        found = [self.dump.graph(name) for name in node.callees]
        return tuple(graph for graph in found if graph is not None)

    def _parameter(self, reference: ParameterReference) -> Source:
        # The label may differ between definition and use, so that the number decides; but dumps
        # in calling order (MS_DEV_DUMP_IR_SORT_MODE) number the parameters of two graphs alike,
        # and those of failed compilations number all of them 0: there the label does.
        number, label = reference.number, reference.label
        found = self._parameter_table.get((number, label))
        if found is None and self.dump is not None:
            found = self.dump.parameter_by_label(number, label)
        if found is None and number:
            found = self._parameter_table.get((number, None))
        if found is None and self.dump is not None:
            found = self.dump.parameter_by_number(number, label)
        return found or Unresolved(reference)

    def _foreign(self, reference: ForeignNode, type: Abstract | None) -> Source:
        owner = self.dump.graph(reference.graph) if self.dump else None
        candidates = owner.named(reference.name) if owner else ()
        if not candidates or owner is None:
            return Unresolved(reference)
        if len(candidates) > 1 and type is not None:
            alike = tuple(node for node in candidates if node.output_type == type)
            candidates = alike or candidates
        if len(candidates) == 1:
            return candidates[0]
        return AmbiguousReference(reference, candidates, self._latest(candidates, owner))

    def _latest(self, candidates: tuple[Node, ...], owner: Graph) -> Node:
        """The last candidate that ``owner`` computes before it uses this graph."""
        first = self._first_uses_by.get(owner)
        if first is None:
            uses = owner._first_use
            places = [uses[name] for name in self._reached_from if name in uses]
            first = self._first_uses_by[owner] = min(places, default=len(owner.nodes))
        before = [node for node in candidates if owner._positions[node] < first]
        return (before or candidates)[-1]

    @cached_property
    def _first_uses_by(self) -> dict[Graph, int]:
        return {}

    @cached_property
    def _positions(self) -> dict[Node, int]:
        return {node: position for position, node in enumerate(self.nodes)}

    @cached_property
    def _reached_from(self) -> set[str]:
        """Names of this graph and of all that use it, directly or through others."""
        found = {self.name}
        pending = [self.name]
        while pending and self.dump is not None:
            for user in self.dump.graph_users(pending.pop()):
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return found

    # -- users ---------------------------------------------------------------------------------

    @cached_property
    def _users(self) -> dict[Node, list[Node]]:
        found: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for producer in dict.fromkeys(self._local_producers(node)):
                found.setdefault(producer, []).append(node)
        return found

    def _local_producers(self, node: Node) -> Iterator[Node]:
        for operand in (*node.operands, *_callee(node)):
            for reference in nested_references(operand):
                if isinstance(reference, NodeReference):
                    producer = self._by_number.get(reference.number)
                    if producer is not None:
                        yield producer

    def users(self, node: Node) -> tuple[Node, ...]:
        """Nodes that use ``node``, in this graph and (as free variable) in others."""
        foreign = self.dump.foreign_users(node) if self.dump else ()
        return (*self._users.get(node, ()), *foreign)

    def __repr__(self) -> str:
        return f"<Graph {self}>"

    def __str__(self) -> str:
        return f"@{self.name} ({len(self.nodes)} nodes)"


def _callee(node: Node) -> tuple[Value, ...]:
    if isinstance(node.target, ClosureTarget) and not isinstance(node.target.callee, str):
        return (node.target.callee,)
    return ()
