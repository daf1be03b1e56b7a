"""A dump: one .ir file as a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from irtool.ir.display import Shown
from irtool.ir.graph import AmbiguousReference, Graph, GraphParameter
from irtool.ir.items import Item, Parameter, Property
from irtool.ir.node import Node
from irtool.ir.problem import Problem
from irtool.ir.values import ForeignNode

if TYPE_CHECKING:
    from irtool.ir.groups import GroupTable
    from irtool.ir.whole import Whole


@dataclass(frozen=True, slots=True)
class LineEnds:
    """Line ends of the file: the usual one, and the lines (from 1) that end with the other."""

    usual: str = "\n"
    exceptions: frozenset[int] = frozenset()
    last: bool = True


@dataclass(frozen=True, eq=False)
class Dump(Shown):
    """One dump.

    ``items`` holds graphs and the lines around them in file order; ``problems`` is empty if and
    only if everything was read.  ``dialect`` is the range of versions whose spelling was seen.
    """

    items: tuple[Item | Graph, ...]
    path: str = "<text>"
    problems: tuple[Problem, ...] = ()
    dialect: str = "unknown"
    line_ends: LineEnds = LineEnds()
    bom: bool = False
    size: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if any(isinstance(item, Graph) and item.dump is not None for item in self.items):
            items = tuple(
                replace(item, dump=None) if isinstance(item, Graph) else item for item in self.items
            )
            object.__setattr__(self, "items", items)
        for graph in self.graphs:
            object.__setattr__(graph, "dump", self)

    # -- contents ------------------------------------------------------------------------------

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """All graphs in file order: callees come before callers."""
        return tuple(item for item in self.items if isinstance(item, Graph))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the entry graph."""
        return tuple(item for item in self.items if isinstance(item, Parameter))

    @cached_property
    def properties(self) -> dict[str, str]:
        """Header facts as printed, by key: ``{"IR entry": "…", "Total subgraphs": "1", …}``."""
        found: dict[str, str] = {}
        for item in self.items:
            if isinstance(item, Property):
                found.setdefault(item.key.lstrip("# ").rstrip(), item.value)
        return found

    @cached_property
    def entry(self) -> Graph | None:
        """The graph that the header names as entry; without a header, the last one."""
        name = self.properties.get("IR entry")
        if name is not None:
            found = self.graph(name.lstrip("@"))
            if found is not None:
                return found
        return self.graphs[-1] if self.graphs else None

    @property
    def declared_nodes(self) -> int | None:
        """``Total number of cnodes`` of the header, None where it is not stated."""
        text = self.properties.get("Total number of cnodes", "")
        return int(text) if text.isdecimal() and len(text) < 20 else None

    def nodes(
        self,
        op: str | None = None,
        scope: str | None = None,
        where: Callable[[Node], bool] | None = None,
    ) -> Iterator[Node]:
        """Nodes of all graphs, chosen by operator, by part of the scope, and by a predicate.

        ``irtool.query('op == "MatMul"')`` makes a predicate from the query language.
        """
        for graph in self.graphs:
            for node in graph.nodes:
                if op is not None and node.op != op:
                    continue
                if scope is not None and not _scope_contains(node.scope, scope):
                    continue
                if where is None or where(node):
                    yield node

    # -- lookup --------------------------------------------------------------------------------

    @cached_property
    def _graph_by_name(self) -> dict[str, Graph]:
        found: dict[str, Graph] = {}
        for graph in self.graphs:
            found.setdefault(graph.name, graph)
        return found

    def graph(self, name: str) -> Graph | None:
        """The graph called ``name`` (without ``@``)."""
        return self._graph_by_name.get(name)

    @cached_property
    def _graph_users(self) -> dict[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        for graph in self.graphs:
            for name in graph.used_graphs:
                found.setdefault(name, {})[graph.name] = None
        return found

    def graph_users(self, name: str) -> tuple[str, ...]:
        """Names of the graphs whose nodes call the graph ``name`` or use it as a value."""
        return tuple(self._graph_users.get(name, ()))

    @cached_property
    def _parameter_table(self) -> dict[tuple[int | None, str | None], GraphParameter]:
        found: dict[tuple[int | None, str | None], GraphParameter] = {}
        entry = self.entry
        for graph in self.graphs:
            for item in graph.parameters:
                found.setdefault((item.number, item.label), item)
                if item.number:
                    found.setdefault((item.number, None), item)
        if entry is None or not entry.parameters:
            for item in self.parameters:
                made = GraphParameter(item.number, item.name, "", item.type, item)
                found.setdefault((item.number, None), made)
        return found

    def parameter_by_label(self, number: int | None, label: str | None) -> GraphParameter | None:
        """The parameter with exactly this number and label, of any graph."""
        return self._parameter_table.get((number, label)) if label is not None else None

    def parameter_by_number(self, number: int | None, label: str | None) -> GraphParameter | None:
        """The parameter ``%para<number>`` of any graph: numbers are unique in a file.

        Dumps of failed compilations number all parameters 0; there the label decides.
        """
        table = self._parameter_table
        return table.get((number, label)) or (table.get((number, None)) if number else None)

    @cached_property
    def _foreign_users(self) -> dict[Node, list[Node]]:
        found: dict[Node, list[Node]] = {}
        for graph in self.graphs:
            for node in graph.nodes:
                if not any(isinstance(item, ForeignNode) for item in node.references()):
                    continue
                nested = (graph.source(reference) for reference in node.references())
                direct = dict(zip(node.operands, node.inputs, strict=True))
                for reference, producer in zip(node.references(), nested, strict=True):
                    # Only an operand's own type says which of several nodes is meant.
                    producer = direct.get(reference, producer)
                    if isinstance(producer, AmbiguousReference):
                        producer = producer.likely
                    if isinstance(producer, Node) and producer.graph is not graph:
                        users = found.setdefault(producer, [])
                        if not users or users[-1] is not node:
                            users.append(node)
        return found

    def foreign_users(self, node: Node) -> tuple[Node, ...]:
        """Nodes of other graphs that use ``node`` as a free variable."""
        return tuple(self._foreign_users.get(node, ()))

    @cached_property
    def groups(self) -> GroupTable:
        """Communication groups whose ranks some node lists, and the devices seen in them."""
        from irtool.ir.groups import group_table

        return group_table(self)

    # -- views ---------------------------------------------------------------------------------

    def whole(self) -> Whole:
        """The whole graph: calls and closures inlined, control flow left as calls."""
        from irtool.ir.whole import inline

        return inline(self)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with one row a node; needs the extra ``irtool[arrow]``."""
        from irtool.ir.table import to_arrow

        return to_arrow(self)

    def __repr__(self) -> str:
        return f"<Dump {self}>"

    def __str__(self) -> str:
        count = sum(len(graph.nodes) for graph in self.graphs)
        return f"{self.path}: {len(self.graphs)} graphs, {count} nodes"


def _scope_contains(scope: str | None, part: str) -> bool:
    """Whether ``part`` occurs in ``scope`` at a boundary: layers.1 is not in layers.10."""
    if scope is None:
        return False
    start = scope.find(part)
    while start >= 0:
        end = start + len(part)
        if not (scope[end : end + 1].isdigit() and part[-1:].isdigit()):
            return True
        start = scope.find(part, start + 1)
    return False
