"""The model of a whole graph: statements as they run, the calls they run in, and calls kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Literal, TypeAlias, Union

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import DumpModel, Graph, GraphParameter, Node, Unresolved
from irtool.ir.values import Value

Reason: TypeAlias = Literal[
    "control flow", "recursion", "gradient", "unknown function", "arguments", "limit"
]


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """One call in a path of calls; ``outer`` is the call that the caller itself stems from.

    ``arguments`` are the call's own, without those that a closure had bound before.
    """

    node: Node
    outer: CallSite | None
    arguments: tuple[WholeSource, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """A statement as it runs: the original ``node``, and what its operands stand for."""

    node: Node
    inputs: tuple[object, ...]

    @property
    def op(self) -> str:
        """The operator, as in :attr:`irtool.ir.graph.Node.op`."""
        return self.node.op


@dataclass(frozen=True, slots=True, eq=False)
class WholeNode(Ran):
    """One statement as it runs: the original ``node``, reached through the calls of ``path``.

    ``inputs`` has an entry an operand: another WholeNode, a parameter, a graph, a constant, or a
    tuple where the operand is a literal with references inside.  ``function`` is what a kept call
    calls.  ``source`` names the dump in a joined view.
    """

    inputs: tuple[WholeSource, ...]
    index: int
    site: CallSite | None
    function: WholeSource | None = None
    source: int | str | None = None
    links: list[WholeNode] = field(default_factory=list["WholeNode"], repr=False)
    users: list[WholeNode] = field(default_factory=list["WholeNode"], repr=False)

    @property
    def path(self) -> tuple[Node, ...]:
        """The calls through which this is reached, outermost first."""
        calls: list[Node] = []
        site = self.site
        while site is not None:
            calls.append(site.node)
            site = site.outer
        return tuple(reversed(calls))

    @property
    def producers(self) -> tuple[WholeNode, ...]:
        """Nodes whose results this one takes; a Receive's Send among them in a joined view."""
        producers = [item for source in self.inputs for item in _nodes_in(source)]
        if self.function is not None:
            producers += _nodes_in(self.function)
        return tuple(dict.fromkeys((*producers, *self.links)))

    def __str__(self) -> str:
        return "".join(f"{call.id}/" for call in self.path) + str(self.node)

    def __repr__(self) -> str:
        # The generated one would print everything that leads to this node.
        return f"<WholeNode {self}>"


WholeSource: TypeAlias = Union[
    WholeNode, GraphParameter, Graph, Unresolved, Value, "tuple[WholeSource, ...]"
]


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call that could not be inlined, the graphs it may call, and why it was kept."""

    node: WholeNode
    graphs: tuple[Graph, ...]
    reason: Reason

    def __repr__(self) -> str:
        names = ", ".join(f"@{graph.name}" for graph in self.graphs)
        return f"<KeptCall {self.node} of {names or 'unknown'}: {self.reason}>"


@dataclass(frozen=True, eq=False)
class Whole:
    """A graph with calls and closures inlined, or several dumps joined: nodes in topological order.

    ``uncertain`` are nodes with an input chosen among several of the same debug name;
    ``unmatched`` the Sends and Receives of a joined view without a counterpart, and ``cyclic``
    its nodes that wait for each other, which no order can satisfy.
    """

    nodes: tuple[WholeNode, ...]
    dumps: tuple[DumpModel, ...]
    kept_calls: tuple[KeptCall, ...] = ()
    uncertain: tuple[WholeNode, ...] = ()
    transfers: tuple[tuple[WholeNode, WholeNode], ...] = ()
    unmatched: tuple[WholeNode, ...] = ()
    cyclic: tuple[WholeNode, ...] = ()

    @cached_property
    def _instances(self) -> dict[Node, list[WholeNode]]:
        instances: dict[Node, list[WholeNode]] = {}
        for item in self.nodes:
            instances.setdefault(item.node, []).append(item)
        return instances

    def instances(self, node: Node) -> tuple[WholeNode, ...]:
        """Every place where a node of a dump runs; none for an inlined call."""
        return tuple(self._instances.get(node, ()))

    @cached_property
    def _parameter_users(self) -> dict[tuple[int, str, int | None, str | None], list[WholeNode]]:
        users: dict[tuple[int, str, int | None, str | None], list[WholeNode]] = {}
        for item in self.nodes:
            for source in item.inputs:
                for parameter in _parameters_in(source):
                    users.setdefault(_key(item.node, parameter), []).append(item)
        return users

    def parameter_users(self, parameter: GraphParameter, dump: DumpModel) -> tuple[WholeNode, ...]:
        """Nodes that take a parameter of ``dump`` directly."""
        key = (id(dump), parameter.graph, parameter.number, parameter.label)
        return tuple(dict.fromkeys(self._parameter_users.get(key, ())))

    def __iter__(self) -> Iterator[WholeNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def _nodes_in(source: WholeSource) -> list[WholeNode]:
    if isinstance(source, WholeNode):
        return [source]
    if isinstance(source, tuple):
        return [node for item in source for node in _nodes_in(item)]
    return []


def _parameters_in(source: WholeSource) -> list[GraphParameter]:
    if isinstance(source, GraphParameter):
        return [source]
    if isinstance(source, tuple):
        return [parameter for item in source for parameter in _parameters_in(item)]
    return []


def _key(node: Node, parameter: GraphParameter) -> tuple[int, str, int | None, str | None]:
    dump = node.graph.dump if node.graph else None
    return (id(dump), parameter.graph, parameter.number, parameter.label)
