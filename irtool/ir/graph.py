"""Nodes, graphs and the dump that holds them: each knows the others, so they are one module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast

from irtool.ir.comments import NO_COMMENTS, Comments, Location
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.finding import Finding
from irtool.ir.framework import is_framework
from irtool.ir.items import (
    CommentBlock,
    Head,
    Marker,
    Opaque,
    Parameter,
    ParameterList,
    Property,
    Text,
)
from irtool.ir.statement import (
    STANDARD_STYLE,
    ClosureTarget,
    GraphTarget,
    PrimitiveTarget,
    StatementStyle,
    Target,
    ValueTarget,
    nested_references,
    operator_name,
)
from irtool.ir.types import Abstract, Signature, TextSignature
from irtool.ir.units import plural
from irtool.ir.values import (
    Attributes,
    ForeignNode,
    ForeignParameter,
    GraphReference,
    NodeReference,
    ParameterReference,
    Reference,
    String,
    Value,
    python_value,
)

Strategy: TypeAlias = tuple[tuple[int, ...], ...]
StrategyKey: TypeAlias = Literal["in_strategy", "user_strategy", "out_strategy"]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One statement of a graph: what it applies, to which operands, and what is noted of it.

    ``number`` and ``name`` are None for Return.  ``strategy`` is the block at the end of the
    statement: the strategy in effect once MindSpore has made the operator's sharding object; what
    the user asked for stands in ``primitive_attributes``.  ``graph`` is set by the graph that the
    node is put into.
    """

    number: int | None
    name: str | None
    target: Target
    operands: tuple[Value, ...]
    instance_name: str | None = None
    primitive_attributes: Attributes | None = None
    node_attributes: Attributes | None = None
    primal_attributes: Attributes | None = None
    strategy: Attributes | None = None
    signature: Signature | None = None
    text_signatures: tuple[TextSignature, ...] = ()
    comments: Comments = NO_COMMENTS
    prototype: str | None = None
    line: int = 0
    style: StatementStyle = STANDARD_STYLE
    graph: Graph | None = field(default=None, repr=False, compare=False)

    # -- what it is ------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """How operands refer to the node: ``%4``; an unnumbered return is ``Return``."""
        return "Return" if self.number is None else f"%{self.number}"

    @property
    def column(self) -> int:
        """Column of the statement, from 1."""
        return len(self.style.indent) + 1

    @property
    def op(self) -> str:
        """The operator: the primitive's name without ``PrimFunc_``; ``call`` for any call."""
        target = self.target
        if isinstance(target, PrimitiveTarget):
            return operator_name(target.name)
        if isinstance(target, ValueTarget):
            value = target.value
            return str(getattr(value, "tag", None) or getattr(value, "text", "call"))
        return "call"

    @property
    def is_return(self) -> bool:
        """Whether this is the graph's Return."""
        return self.number is None

    @property
    def callees(self) -> tuple[str, ...]:
        """Names of the graphs that this node may call; empty for operators."""
        if isinstance(self.target, GraphTarget):
            return (self.target.graph,)
        if isinstance(self.target, ClosureTarget) and self.target.closure:
            return self.target.closure.graphs
        return ()

    # -- types -----------------------------------------------------------------------------

    @property
    def input_types(self) -> tuple[Abstract | None, ...]:
        """One entry an operand, None where unknown; empty where the dump has no type line."""
        return self.signature.inputs if self.signature else ()

    @property
    def output_type(self) -> Abstract | None:
        """Type of the result; of a Return, the type of what is returned."""
        if self.signature is None:
            return None
        outputs = self.signature.outputs
        if outputs is None:
            outputs = self.signature.inputs
        return outputs[0] if outputs else None

    @property
    def output_bytes(self) -> int | None:
        """Bytes of the result's tensors; None where unknown."""
        output = self.output_type
        return output.size if output else None

    # -- attributes ------------------------------------------------------------------------

    def attribute(self, key: str) -> object:
        """Value of an attribute of the node, its primal or its primitive, in this order.

        Args:
            key: the attribute's name.

        Returns:
            Its plain value; None if no block has it.
        """
        for block in (self.node_attributes, self.primal_attributes, self.primitive_attributes):
            if block is not None and key in block:
                return block[key]
        return None

    @property
    def in_strategy(self) -> Strategy | None:
        """The strategy in effect: into how many parts each tensor input is cut, axis by axis.

        Returns:
            One row a tensor, in the order of the inputs; the tensors of an input that is a list
            stand one after another.  None without a strategy, and where the dump holds something
            else (:meth:`written_strategy` gives it).
        """
        return _strategy(self.written_strategy("in_strategy"))

    @property
    def user_strategy(self) -> Strategy | None:
        """What the user (or an earlier search) set on the primitive, as :attr:`in_strategy`."""
        return _strategy(self.written_strategy("user_strategy"))

    @property
    def out_strategy(self) -> Strategy | None:
        """The output strategy in effect, one row a result, or None."""
        return _strategy(self.written_strategy("out_strategy"))

    def written_strategy(self, key: StrategyKey = "in_strategy") -> object:
        """A strategy as the dump holds it, whatever that is; None if there is none.

        Args:
            key: ``in_strategy`` or ``out_strategy``, the ones in effect; ``user_strategy``, the
                ``in_strategy`` that was set on the primitive.
        """
        if key == "out_strategy":
            effective = _value(self.strategy, key)
            return effective if effective is not None else _value(self.primitive_attributes, key)
        if key == "in_strategy" and self.strategy is not None:
            for name in (key, "strategy"):
                if name in self.strategy:
                    return self.strategy[name]
        return _value(self.primitive_attributes, "in_strategy")

    @property
    def has_strategy(self) -> bool:
        """Whether the dump holds an ``in_strategy`` for it, be it one that can be read or not."""
        return self.written_strategy() is not None

    @property
    def in_layout(self) -> object:
        """Input layouts (device matrix and tensor map each), or None."""
        layout = _value(self.strategy, "in_layout")
        return layout if layout is not None else _value(self.primitive_attributes, "in_layout")

    @property
    def out_layout(self) -> object:
        """Output layouts (device matrix and tensor map each), or None."""
        layout = _value(self.strategy, "out_layout")
        return layout if layout is not None else _value(self.primitive_attributes, "out_layout")

    # -- where it comes from -----------------------------------------------------------------

    @property
    def full_name(self) -> str | None:
        """``Default/net/MatMul-op0``, in dumps that print full names."""
        line = self.comments.scope
        return line.name if line and line.is_full_name else None

    @property
    def scope(self) -> str | None:
        """``Default/net``: the scope without the node's own name."""
        line = self.comments.scope
        if line is None:
            return None
        return line.name.rpartition("/")[0] if line.is_full_name else line.name

    @property
    def location(self) -> Location | None:
        """The innermost line of source code outside MindSpore's own package, if there is one."""
        locations = self.comments.locations or self.comments.forward_locations
        for location in reversed(locations):
            if not is_framework(location.path):
                return location
        return locations[-1] if locations else None

    @property
    def unique_id(self) -> str | None:
        """Identity that differentiation gave this forward node."""
        return _identity(_value(self.primal_attributes, "unique_id"))

    @property
    def forward_unique_id(self) -> str | None:
        """Of a gradient node: the ``unique_id`` of the forward node that it belongs to."""
        return _identity(_value(self.primal_attributes, "forward_unique_id"))

    @property
    def is_recomputed(self) -> bool:
        """Whether this is the second copy of a forward node, made for recomputation."""
        return bool(_value(self.node_attributes, "duplicated"))

    @property
    def is_backward(self) -> bool:
        """Whether this node computes a gradient, by what the node itself says."""
        if self.primal_attributes is not None:
            if self.forward_unique_id is not None:
                return True
            if self.unique_id is not None:
                return False  # a forward collective may be called grad… as well
        if self.instance_name and self.instance_name.startswith("grad"):
            return True
        scope = self.comments.scope
        if scope is not None and scope.name.startswith("Gradients/"):
            return True
        return self.comments.is_backward

    @property
    def micro(self) -> int | None:
        """The micro-batch of a pipeline that the node computes for, from 0; None: of none."""
        micro = _value(self.primal_attributes, "micro")
        return micro if isinstance(micro, int) else None

    @property
    def stage(self) -> int | None:
        """Pipeline stage, where the node says so."""
        stage = self.attribute("stage")
        return stage if isinstance(stage, int) else None

    # -- neighbours --------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Source, ...]:
        """What each operand stands for: a node, parameter, graph or constant."""
        return self._graph().inputs(self)

    @property
    def users(self) -> tuple[Node, ...]:
        """Nodes of any graph that use this node's result."""
        return self._graph().users(self)

    def references(self) -> Iterator[Reference]:
        """Every reference in the operands and target, nested ones included."""
        for operand in self.operands:
            if isinstance(operand, NodeReference):  # most are: no generator of its own for these
                yield operand
            else:
                yield from nested_references(operand)
        if isinstance(self.target, ClosureTarget) and not isinstance(self.target.callee, str):
            yield self.target.callee
        if isinstance(self.target, GraphTarget):
            yield GraphReference(self.target.graph)

    def _graph(self) -> Graph:
        if self.graph is None:
            raise LookupError(f"{self.id} is in no graph, so its neighbours are unknown")
        return self.graph

    def __repr__(self) -> str:
        place = f" in @{self.graph.name}" if self.graph is not None else ""
        return f"<Node {self}{place}, line {self.line}>"

    def __str__(self) -> str:
        return f"{self.id}({self.name}) = {self.op}" if self.name is not None else self.op


def _takes_foreign(node: Node) -> bool:
    """Whether a node names a node of another graph, as operand or as what it calls."""
    if isinstance(node.target, ClosureTarget) and isinstance(node.target.callee, ForeignNode):
        return True
    return any(
        isinstance(item, ForeignNode)
        for operand in node.operands
        if not isinstance(operand, NodeReference)  # most are: asked first
        for item in nested_references(operand)
    )


def _identity(value: object) -> str | None:
    """An identity that an attribute holds: a text, or a number as one."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _strategy(value: object) -> Strategy | None:
    """Rows of whole numbers, those of a list of tensors one after another; else None."""
    if not isinstance(value, tuple):
        return None
    rows: list[tuple[int, ...]] = []
    for row in cast("tuple[object, ...]", value):
        if not isinstance(row, tuple):
            return None
        cuts = cast("tuple[object, ...]", row)
        if cuts and all(isinstance(inner, tuple) for inner in cuts):
            nested = _strategy(cuts)
            if nested is None:
                return None
            rows += nested
        elif all(type(count) is int for count in cuts):
            rows.append(cast("tuple[int, ...]", cuts))
        else:
            return None
    return tuple(rows)


def _value(block: Attributes | None, key: str) -> object:
    if block is None:
        return None
    for name, value in block.entries:
        if name == key:
            return python_value(value)
    return None


Item: TypeAlias = (
    Property | Text | Opaque | Marker | CommentBlock | ParameterList | Parameter | Head | Node
)


@dataclass(frozen=True, slots=True)
class AmbiguousReference:
    """A reference by debug name that several nodes of the graph bear.

    ``likely`` is the last definition before the referring graph is used, which Python rebinding
    (``x = f(x)``) usually means.
    """

    reference: ForeignNode
    candidates: tuple[Node, ...]
    likely: Node


_Meant = TypeVar("_Meant")


def likeliest(source: _Meant | AmbiguousReference) -> _Meant | Node:
    """What stands behind an operand: the same object each time one asks.

    Args:
        source: of the operand; where it may mean several nodes, the likeliest is taken.
    """
    return source.likely if isinstance(source, AmbiguousReference) else source


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


def node_of(finding: Finding) -> Node | None:
    """The node that a finding is about.

    Args:
        finding: of any command.

    Returns:
        None where it is about none, or the model is not at hand.
    """
    return finding.subject if isinstance(finding.subject, Node) else None


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
    dump: DumpModel | None = field(default=None, repr=False)

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

    @cached_property
    def result(self) -> Node | None:
        """The return statement, whose operand the graph hands back; None where there is none."""
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
        parameters: list[GraphParameter] = []
        for index, item in enumerate(references):
            if isinstance(item, Parameter):
                parameters.append(
                    GraphParameter(item.number, item.name, self.name, item.type, item)
                )
            else:
                type = types[index] if index < len(types) else None
                parameters.append(GraphParameter(item.number, item.label, self.name, type))
        return tuple(parameters)

    # -- what references mean ------------------------------------------------------------------

    @cached_property
    def _by_number(self) -> dict[int, Node]:
        return {node.number: node for node in self.nodes if node.number is not None}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Node, ...]]:
        by_name: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.name is not None:
                by_name.setdefault(node.name, []).append(node)
        return {name: tuple(nodes) for name, nodes in by_name.items()}

    @cached_property
    def _parameter_table(self) -> dict[tuple[int | None, str | None], GraphParameter]:
        """Parameters by number and label, and by number alone where there is a number."""
        table: dict[tuple[int | None, str | None], GraphParameter] = {}
        for item in self.parameters:
            table.setdefault((item.number, item.label), item)
            if item.number:
                table.setdefault((item.number, None), item)
        return table

    @cached_property
    def _first_use(self) -> dict[str, int]:
        """For each graph that this one uses, the position of the first node that does."""
        first_use: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            for reference in node.references():
                if isinstance(reference, GraphReference):
                    first_use.setdefault(reference.name, position)
        return first_use

    @property
    def used_graphs(self) -> tuple[str, ...]:
        """Names of the graphs that its nodes call or use as values."""
        return tuple(self._first_use)

    def node(self, number: int) -> Node | None:
        """The node ``%number``.

        Args:
            number: as printed before the node.

        Returns:
            None if this graph has no such node.
        """
        return self._by_number.get(number)

    def named(self, name: str) -> tuple[Node, ...]:
        """All nodes with this debug name: names are not unique.

        Args:
            name: as printed in brackets behind the node's number, ``CNode_12``.
        """
        return self._by_name.get(name, ())

    def source(self, operand: Value, type: Abstract | None = None) -> Source:
        """What an operand of this graph stands for.

        Args:
            operand: an operand, or a reference inside one.
            type: its type, if known: tells apart nodes of an enclosing graph with equal names.
        """
        if isinstance(operand, NodeReference):
            return self._by_number.get(operand.number) or Unresolved(operand)
        match operand:
            case ParameterReference():
                return self._parameter(operand)
            case GraphReference():
                graph = self.dump.graph(operand.name) if self.dump else None
                return graph or Unresolved(operand)
            case ForeignNode():
                return self._foreign(operand, type)
            case ForeignParameter():
                owner = self.dump.graph(operand.graph) if self.dump else None
                if owner is None:
                    return Unresolved(operand)
                return owner.source(ParameterReference(operand.number, operand.label))
            case _:
                return operand

    def inputs(self, node: Node) -> tuple[Source, ...]:
        """What each operand of one of its nodes stands for; worked out once.

        Args:
            node: of this graph.

        Returns:
            A node, parameter, graph or literal for each operand; ``Unresolved`` where a reference
            leads nowhere.
        """
        sources = self._inputs.get(node)
        if sources is None:
            types = node.input_types
            if len(types) != len(node.operands):
                types = (None,) * len(node.operands)
            sources = tuple(map(self.source, node.operands, types))
            self._inputs[node] = sources
        return sources

    @cached_property
    def _inputs(self) -> dict[Node, tuple[Source, ...]]:
        return {}

    def labelled(self, label: str) -> Source:
        """The parameter that a call names by its bare label, of this graph or an enclosing one.

        Args:
            label: without number.

        Returns:
            ``Unresolved`` where no such graph has one.
        """
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
        """Graphs of this dump that a node may call.

        Args:
            node: of this graph; of an operator there are none.
        """
        if self.dump is None:
            return ()
        graphs = [self.dump.graph(name) for name in node.callees]
        return tuple(graph for graph in graphs if graph is not None)

    def _parameter(self, reference: ParameterReference) -> Source:
        # The label may differ between definition and use, so that the number decides; but dumps
        # in calling order (MS_DEV_DUMP_IR_SORT_MODE) number the parameters of two graphs alike,
        # and those of failed compilations number all of them 0: there the label does.
        number, label = reference.number, reference.label
        parameter = self._parameter_table.get((number, label))
        if parameter is None and self.dump is not None:
            parameter = self.dump.parameter_by_label(number, label)
        if parameter is None and number:
            parameter = self._parameter_table.get((number, None))
        if parameter is None and self.dump is not None:
            parameter = self.dump.parameter_by_number(number, label)
        return parameter or Unresolved(reference)

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
        reached = {self.name}
        pending = [self.name]
        while pending and self.dump is not None:
            for user in self.dump.graph_users(pending.pop()):
                if user not in reached:
                    reached.add(user)
                    pending.append(user)
        return reached

    # -- users ---------------------------------------------------------------------------------

    @cached_property
    def _users(self) -> dict[Node, list[Node]]:
        by_producer: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for producer in dict.fromkeys(self._local_producers(node)):
                by_producer.setdefault(producer, []).append(node)
        return by_producer

    def _local_producers(self, node: Node) -> Iterator[Node]:
        by_number = self._by_number
        for reference in node.references():
            if isinstance(reference, NodeReference) and reference.number in by_number:
                yield by_number[reference.number]

    def users(self, node: Node) -> tuple[Node, ...]:
        """Nodes that use a node's result, in this graph and (as free variable) in others.

        Args:
            node: of this graph.
        """
        foreign = self.dump.foreign_users(node) if self.dump else ()
        return (*self._users.get(node, ()), *foreign)

    def __repr__(self) -> str:
        return f"<Graph {self}>"

    def __str__(self) -> str:
        return f"@{self.name} ({len(self.nodes)} nodes)"


@dataclass(frozen=True, slots=True)
class LineEnds:
    """Line ends of the file: the usual one, and the lines (from 1) that end with the other."""

    usual: str = "\n"
    exceptions: frozenset[int] = frozenset()
    last: bool = True


@dataclass(frozen=True, eq=False)
class DumpModel:
    """What a dump holds; ``irtool.ir.dump.Dump`` adds views of it.

    ``items`` holds graphs and the lines around them in file order; ``problems`` is empty if and
    only if everything was read.  ``dialect`` is the range of versions whose spelling was seen.
    """

    items: tuple[Item | Graph, ...]
    path: str = "<text>"
    problems: tuple[Finding, ...] = ()
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

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What analyses worked out of the dump, by their name; it lives as long as the dump."""
        return {}

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
        properties: dict[str, str] = {}
        for item in self.items:
            if isinstance(item, Property):
                properties.setdefault(item.key.lstrip("# ").rstrip(), item.value)
        return properties

    @cached_property
    def entry(self) -> Graph | None:
        """The graph that the header names as entry; without a header, the last one."""
        name = self.properties.get("IR entry")
        if name is not None:
            graph = self.graph(name.lstrip("@"))
            if graph is not None:
                return graph
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
        """Nodes of all graphs, in printed order.

        Args:
            op: only this operator, ``MatMul``.
            scope: only nodes whose scope holds this; ``layers.1`` is not in ``layers.10``.
            where: only nodes for which it is true; ``irtool.query('op == "MatMul"')`` makes such a
                predicate from the query language.
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
        by_name: dict[str, Graph] = {}
        for graph in self.graphs:
            by_name.setdefault(graph.name, graph)
        return by_name

    def graph(self, name: str) -> Graph | None:
        """The graph called ``name``.

        Args:
            name: without ``@``.

        Returns:
            None if the dump has no such graph; the first of several.
        """
        return self._graph_by_name.get(name)

    @cached_property
    def _graph_users(self) -> dict[str, dict[str, None]]:
        users: dict[str, dict[str, None]] = {}
        for graph in self.graphs:
            for name in graph.used_graphs:
                users.setdefault(name, {})[graph.name] = None
        return users

    def graph_users(self, name: str) -> tuple[str, ...]:
        """Names of the graphs whose nodes call a graph or use it as a value.

        Args:
            name: the graph's, without ``@``.
        """
        return tuple(self._graph_users.get(name, ()))

    @cached_property
    def _parameter_table(self) -> dict[tuple[int | None, str | None], GraphParameter]:
        table: dict[tuple[int | None, str | None], GraphParameter] = {}
        entry = self.entry
        for graph in self.graphs:
            for item in graph.parameters:
                table.setdefault((item.number, item.label), item)
                if item.number:
                    table.setdefault((item.number, None), item)
        if entry is None or not entry.parameters:
            for item in self.parameters:
                made = GraphParameter(item.number, item.name, "", item.type, item)
                table.setdefault((item.number, None), made)
        return table

    def parameter_by_label(self, number: int | None, label: str | None) -> GraphParameter | None:
        """The parameter with exactly this number and label, of any graph.

        Args:
            number: of ``%para3``; None where the dump prints none.
            label: behind the number; without one there is no such parameter.
        """
        return self._parameter_table.get((number, label)) if label is not None else None

    def parameter_by_number(self, number: int | None, label: str | None) -> GraphParameter | None:
        """The parameter ``%para<number>`` of any graph: numbers are unique in a file.

        Dumps of failed compilations number all parameters 0; there the label decides.

        Args:
            number: of ``%para3``.
            label: behind the number, as far as it is printed.
        """
        table = self._parameter_table
        return table.get((number, label)) or (table.get((number, None)) if number else None)

    @cached_property
    def _foreign_users(self) -> dict[Node, list[Node]]:
        by_producer: dict[Node, list[Node]] = {}
        for graph in self.graphs:
            for node in graph.nodes:
                if not _takes_foreign(node):
                    continue
                nested = (graph.source(reference) for reference in node.references())
                direct = dict(zip(node.operands, node.inputs, strict=True))
                for reference, producer in zip(node.references(), nested, strict=True):
                    # Only an operand's own type says which of several nodes is meant.
                    producer = direct.get(reference, producer)
                    if isinstance(producer, AmbiguousReference):
                        producer = producer.likely
                    if isinstance(producer, Node) and producer.graph is not graph:
                        users = by_producer.setdefault(producer, [])
                        if not users or users[-1] is not node:
                            users.append(node)
        return by_producer

    def foreign_users(self, node: Node) -> tuple[Node, ...]:
        """Nodes of other graphs that use a node as a free variable.

        Args:
            node: of any graph of this dump.
        """
        return tuple(self._foreign_users.get(node, ()))

    def __repr__(self) -> str:
        return f"<Dump {self}>"

    def __str__(self) -> str:
        count = sum(len(graph.nodes) for graph in self.graphs)
        graphs = plural(len(self.graphs), "graph")
        return f"{self.path}: {graphs}, {plural(count, 'node')}"


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
