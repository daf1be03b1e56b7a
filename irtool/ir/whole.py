"""The whole graph: one view of a dump with its calls and closures inlined.

A dump keeps one graph a function; what a step computes is spread over ``call @G``, closures and
free variables.  :func:`inline` follows them, so that each statement appears once for every time
it runs, with its inputs resolved across graphs.  What has no single callee stays a call and says
why: control flow, recursion, gradient requests ``J(@G)``, unknown functions.  The graphs behind
such calls appear once each, with their parameters free.  :func:`join` puts the dumps of several
ranks together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, Union

from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, Graph, GraphParameter, Source, Unresolved
from irtool.ir.node import ClosureTarget, GraphTarget, Node, nested_references
from irtool.ir.values import ForeignNode, GraphReference, Value, python_value

MAX_NODES = 4_000_000
"""Most nodes that inlining may make; beyond, calls are kept (reason ``limit``)."""

_MAX_NESTING = 10_000

Reason: TypeAlias = Literal[
    "control flow", "recursion", "gradient", "unknown function", "arguments", "limit"
]


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """One call in a path of calls; ``outer`` is the call that the caller itself stems from."""

    node: Node
    outer: CallSite | None


@dataclass(frozen=True, slots=True, eq=False)
class WholeNode:
    """One statement as it runs: the original ``node``, reached through the calls of ``path``.

    ``inputs`` has an entry an operand: another WholeNode, a parameter, a graph, a constant, or a
    tuple where the operand is a literal with references inside.  ``function`` is what a kept call
    calls.  ``source`` names the dump in a joined view.
    """

    index: int
    node: Node
    site: CallSite | None
    inputs: tuple[WholeSource, ...]
    function: WholeSource | None = None
    source: int | str | None = None
    links: list[WholeNode] = field(default_factory=list["WholeNode"], repr=False)
    users: list[WholeNode] = field(default_factory=list["WholeNode"], repr=False)

    @property
    def op(self) -> str:
        """The operator, as in :attr:`irtool.ir.node.Node.op`."""
        return self.node.op

    @property
    def path(self) -> tuple[Node, ...]:
        """The calls through which this is reached, outermost first."""
        found: list[Node] = []
        site = self.site
        while site is not None:
            found.append(site.node)
            site = site.outer
        return tuple(reversed(found))

    @property
    def producers(self) -> tuple[WholeNode, ...]:
        """Nodes whose results this one takes; a Receive's Send among them in a joined view."""
        found = [item for source in self.inputs for item in _nodes_in(source)]
        if self.function is not None:
            found += _nodes_in(self.function)
        return tuple(dict.fromkeys((*found, *self.links)))

    def __str__(self) -> str:
        return "".join(f"{call.id}/" for call in self.path) + str(self.node)


WholeSource: TypeAlias = Union[
    WholeNode, GraphParameter, Graph, Unresolved, Value, "tuple[WholeSource, ...]"
]


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call that could not be inlined, the graphs it may call, and why it was kept."""

    node: WholeNode
    graphs: tuple[Graph, ...]
    reason: Reason


@dataclass(frozen=True, eq=False)
class Whole:
    """All nodes in topological order.

    ``uncertain`` are nodes with an input chosen among several of the same debug name;
    ``unmatched`` the Sends and Receives of a joined view without a counterpart, and ``cyclic``
    its nodes that wait for each other, which no order can satisfy.
    """

    nodes: tuple[WholeNode, ...]
    dumps: tuple[Dump, ...]
    kept_calls: tuple[KeptCall, ...] = ()
    uncertain: tuple[WholeNode, ...] = ()
    transfers: tuple[tuple[WholeNode, WholeNode], ...] = ()
    unmatched: tuple[WholeNode, ...] = ()
    cyclic: tuple[WholeNode, ...] = ()

    @cached_property
    def _instances(self) -> dict[Node, list[WholeNode]]:
        found: dict[Node, list[WholeNode]] = {}
        for item in self.nodes:
            found.setdefault(item.node, []).append(item)
        return found

    def instances(self, node: Node) -> tuple[WholeNode, ...]:
        """Every place where a node of a dump runs; none for an inlined call."""
        return tuple(self._instances.get(node, ()))

    @cached_property
    def _parameter_users(self) -> dict[tuple[int, str, int | None, str | None], list[WholeNode]]:
        found: dict[tuple[int, str, int | None, str | None], list[WholeNode]] = {}
        for item in self.nodes:
            for source in item.inputs:
                for parameter in _parameters_in(source):
                    found.setdefault(_key(item.node, parameter), []).append(item)
        return found

    def parameter_users(self, parameter: GraphParameter, dump: Dump) -> tuple[WholeNode, ...]:
        """Nodes that take a parameter of ``dump`` directly."""
        key = (id(dump), parameter.graph, parameter.number, parameter.label)
        return tuple(dict.fromkeys(self._parameter_users.get(key, ())))

    def __iter__(self) -> Iterator[WholeNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def inline(dump: Dump, limit: int = MAX_NODES) -> Whole:
    """One view of the whole dump; see the module's text.

    Args:
        dump: what to inline.
        limit: how many nodes may be made before further calls are kept as they are.
    """
    inliner = _Inliner(dump, limit)
    inliner.run()
    return Whole(
        tuple(inliner.nodes), (dump,), tuple(inliner.kept), tuple(dict.fromkeys(inliner.uncertain))
    )


# ---- how it is done --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Closure:
    """A graph as a value, with the frame of its enclosing graph and the arguments bound so far."""

    graph: Graph
    enclosing: _Frame | None
    bound: tuple[_Bound, ...] = ()


_Bound: TypeAlias = Union[WholeSource, _Closure, "tuple[_Bound, ...]"]


@dataclass(frozen=True, slots=True)
class _Step:
    """A node with its operands resolved inside its own graph."""

    node: Node
    sources: tuple[Source | tuple[Source, ...], ...]
    function: Source | None


@dataclass(slots=True, eq=False)
class _Frame:
    """One run of a graph: values of its nodes and parameters so far."""

    graph: Graph
    steps: tuple[_Step, ...]
    enclosing: _Frame | None
    site: CallSite | None
    arguments: dict[int, _Bound]
    is_body: bool
    position: int = 0
    values: dict[Node, _Bound] = field(default_factory=dict[Node, _Bound])
    result: _Bound | None = None


class _Inliner:
    def __init__(self, dump: Dump, limit: int) -> None:
        self.dump = dump
        self.limit = limit
        self.nodes: list[WholeNode] = []
        self.kept: list[KeptCall] = []
        self.uncertain: list[WholeNode] = []
        self._steps: dict[Graph, tuple[_Step, ...]] = {}
        self._closures: dict[WholeNode, _Closure] = {}
        self._gradients: set[WholeNode] = set()
        self._latest: dict[str, _Frame] = {}
        self._active: Counter[Graph] = Counter()
        self._done: set[Graph] = set()
        self._bodies: set[Graph] = set()
        self._stack: list[_Frame] = []
        self._budget = limit
        self._guessed = False

    def run(self) -> None:
        """Run the entry, then every graph that nothing called."""
        graphs = self.dump.graphs
        first = [self.dump.entry] if self.dump.entry is not None else []
        # Callees come before callers in a dump: the last graphs are the outermost ones.
        for graph in (*first, *reversed(graphs)):
            if graph not in self._done:
                self._push(graph, None, None, {}, is_body=True)
                self._drain()

    def _drain(self) -> None:
        while self._stack:
            frame = self._stack[-1]
            if frame.position == len(frame.steps):
                self._pop()
            else:
                self._advance(frame, frame.steps[frame.position])

    # -- frames

    def _push(
        self,
        graph: Graph,
        enclosing: _Frame | None,
        site: CallSite | None,
        arguments: dict[int, _Bound],
        is_body: bool,
    ) -> None:
        if graph not in self._steps:
            self._steps[graph] = tuple(_step(graph, node) for node in graph.nodes)
        frame = _Frame(graph, self._steps[graph], enclosing, site, arguments, is_body)
        self._budget -= len(frame.steps)
        self._latest[graph.name] = frame
        self._active[graph] += 1
        self._done.add(graph)
        self._stack.append(frame)

    def _pop(self) -> None:
        frame = self._stack.pop()
        self._active[frame.graph] -= 1
        if not frame.is_body:
            caller = self._stack[-1]
            result = frame.result if frame.result is not None else Unresolved(_nothing(frame))
            caller.values[caller.steps[caller.position].node] = result
            caller.position += 1

    # -- one statement

    def _advance(self, frame: _Frame, step: _Step) -> None:
        self._guessed = False
        node = step.node
        inputs = tuple(self._bind(frame, source) for source in step.sources)
        if node.is_return and not frame.is_body:
            frame.result = inputs[0] if inputs else None
            frame.position += 1
            return
        function = None if step.function is None else self._bind(frame, step.function)
        if isinstance(node.target, GraphTarget | ClosureTarget):
            self._call(frame, step, function, inputs)
            return
        made = self._made(frame, node, inputs, function)
        self._remember_closure(made, inputs)
        frame.values[node] = made
        frame.position += 1

    def _made(
        self, frame: _Frame, node: Node, inputs: tuple[_Bound, ...], function: _Bound | None
    ) -> WholeNode:
        made = WholeNode(
            len(self.nodes),
            node,
            frame.site,
            tuple(_shown(item) for item in inputs),
            None if function is None else _shown(function),
        )
        for producer in made.producers:
            producer.users.append(made)
        self.nodes.append(made)
        if self._guessed:
            self.uncertain.append(made)
        return made

    def _remember_closure(self, made: WholeNode, inputs: tuple[_Bound, ...]) -> None:
        """Operators whose result is a function that we know."""
        op = made.op
        if op == "Partial" and inputs:
            closure = self._closure(inputs[0])
            if closure is not None:
                bound = (*closure.bound, *inputs[1:])
                self._closures[made] = _Closure(closure.graph, closure.enclosing, bound)
        elif op == "Depend" and inputs:
            closure = self._closure(inputs[0])
            if closure is not None:
                self._closures[made] = closure
        elif op == "J":
            self._gradients.add(made)
        elif op == "TupleGetItem" and inputs and isinstance(inputs[0], WholeNode):
            if inputs[0] in self._gradients:
                self._gradients.add(made)
            elif inputs[0].op == "MakeTuple":
                self._take_item(made, inputs[0])

    def _take_item(self, made: WholeNode, made_tuple: WholeNode) -> None:
        index = python_value(made.node.operands[1]) if len(made.node.operands) > 1 else None
        if isinstance(index, int) and -len(made_tuple.inputs) <= index < len(made_tuple.inputs):
            item = made_tuple.inputs[index]
            if isinstance(item, WholeNode) and item in self._closures:
                self._closures[made] = self._closures[item]

    # -- calls

    def _call(
        self, frame: _Frame, step: _Step, function: _Bound | None, inputs: tuple[_Bound, ...]
    ) -> None:
        """Push the callee's frame, or keep the call."""
        closure = self._callee(frame, step.node, function)
        if closure is None:
            self._keep_unknown(frame, step, function, inputs)
            return
        graph = closure.graph
        arguments = (*closure.bound, *inputs)
        parameters = graph.parameters
        reason: Reason | None = None
        if self._active[graph]:
            reason = "recursion"
        elif len(arguments) != len(parameters):
            reason = "arguments"
        elif self._budget < len(graph.nodes) or len(self.nodes) >= self.limit:
            reason = "limit"
        if reason is not None:
            self._keep(frame, step, function, inputs, (graph,), reason, closure.enclosing)
            return
        bound = {id(item): value for item, value in zip(parameters, arguments, strict=True)}
        site = CallSite(step.node, frame.site)
        self._push(graph, closure.enclosing, site, bound, is_body=False)

    def _callee(self, frame: _Frame, node: Node, function: _Bound | None) -> _Closure | None:
        closure = None if function is None else self._closure(function)
        if closure is not None or isinstance(node.target, GraphTarget):
            return closure
        if isinstance(node.target, ClosureTarget) and node.target.closure is not None:
            annotation = node.target.closure
            graph = self.dump.graph(annotation.graphs[0]) if len(annotation.graphs) == 1 else None
            # Bound arguments of a Partial that we do not see are unknown.
            if graph is not None and "Partial" not in annotation.kind:
                return _Closure(graph, self._enclosing(frame, graph))
        return None

    def _keep_unknown(
        self, frame: _Frame, step: _Step, function: _Bound | None, inputs: tuple[_Bound, ...]
    ) -> None:
        graphs = frame.graph.called(step.node)
        reason: Reason = "control flow" if graphs else "unknown function"
        if isinstance(function, WholeNode):
            if function in self._gradients:
                reason = "gradient"
                graphs = _requested(function)
            elif function.op in ("Switch", "SwitchLayer"):
                reason = "control flow"
        arguments = inputs if reason == "gradient" and self._runs_once(function) else None
        self._keep(frame, step, function, inputs, graphs, reason, None, arguments)

    def _keep(
        self,
        frame: _Frame,
        step: _Step,
        function: _Bound | None,
        inputs: tuple[_Bound, ...],
        graphs: tuple[Graph, ...],
        reason: Reason,
        enclosing: _Frame | None,
        arguments: tuple[_Bound, ...] | None = None,
    ) -> None:
        """Run the bodies that were not run yet, one at a time; then make the call itself."""
        for graph in graphs:
            if graph not in self._bodies and not self._active[graph]:
                self._bodies.add(graph)
                bound: dict[int, _Bound] = {}
                if arguments is not None and len(arguments) == len(graph.parameters):
                    pairs = zip(graph.parameters, arguments, strict=True)
                    bound = {id(item): value for item, value in pairs}
                outer = enclosing or self._enclosing(frame, graph)
                site = CallSite(step.node, frame.site)
                self._push(graph, outer, site, bound, is_body=True)
                return
        made = self._made(frame, step.node, inputs, function)
        self.kept.append(KeptCall(made, graphs, reason))
        if reason == "gradient":
            self._gradients.add(made)
        frame.values[step.node] = made
        frame.position += 1

    @staticmethod
    def _runs_once(function: _Bound | None) -> bool:
        """Whether this gradient request is the only use of its ``J(@G)``."""
        if not isinstance(function, WholeNode) or function.op != "J":
            return False
        return len(function.node.users) == 1

    # -- values

    def _closure(self, value: _Bound) -> _Closure | None:
        if isinstance(value, _Closure):
            return value
        return self._closures.get(value) if isinstance(value, WholeNode) else None

    def _enclosing(self, frame: _Frame, graph: Graph) -> _Frame | None:
        return self._frame_of(frame, graph.parent) if graph.parent is not None else None

    def _frame_of(self, frame: _Frame, name: str) -> _Frame | None:
        """The run of the graph ``name`` that encloses ``frame``, else its latest run."""
        place: _Frame | None = frame
        for _ in range(_MAX_NESTING):
            if place is None or place.graph.name == name:
                break
            place = place.enclosing
        return place if place is not None else self._latest.get(name)

    def _bind(self, frame: _Frame, source: Source | tuple[Source, ...]) -> _Bound:
        if isinstance(source, tuple):
            return tuple(self._bind(frame, item) for item in source)
        if isinstance(source, AmbiguousReference):
            self._guessed = True
            source = source.likely
        if isinstance(source, Node):
            owner = source.graph
            if owner is frame.graph:
                found = frame.values.get(source)
            else:
                place = self._frame_of(frame, owner.name) if owner is not None else None
                found = place.values.get(source) if place is not None else None
            return found if found is not None else Unresolved(_reference(source))
        if isinstance(source, GraphParameter):
            owner_frame = self._frame_of(frame, source.graph)
            if owner_frame is None:
                return source
            return owner_frame.arguments.get(id(source), source)
        if isinstance(source, Graph):
            return _Closure(source, self._enclosing(frame, source))
        return source


def _step(graph: Graph, node: Node) -> _Step:
    sources: list[Source | tuple[Source, ...]] = []
    for operand, source in zip(node.operands, node.inputs, strict=True):
        nested = tuple(nested_references(operand)) if source is operand else ()
        sources.append(tuple(graph.source(item) for item in nested) if nested else source)
    function: Source | None = None
    if isinstance(node.target, GraphTarget):
        function = graph.source(GraphReference(node.target.graph))
    elif isinstance(node.target, ClosureTarget):
        callee = node.target.callee
        if isinstance(callee, str):
            function = graph.labelled(callee)
        else:
            function = graph.source(callee)
    return _Step(node, tuple(sources), function)


def _requested(function: WholeNode) -> tuple[Graph, ...]:
    """The graphs whose gradient ``J`` asks for."""
    if function.op != "J":
        return ()
    return tuple(source for source in function.inputs if isinstance(source, Graph))


def _shown(value: _Bound) -> WholeSource:
    if isinstance(value, _Closure):
        return value.graph
    if isinstance(value, tuple):
        return tuple(_shown(item) for item in value)
    return value


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
        return [found for item in source for found in _parameters_in(item)]
    return []


def _key(node: Node, parameter: GraphParameter) -> tuple[int, str, int | None, str | None]:
    dump = node.graph.dump if node.graph else None
    return (id(dump), parameter.graph, parameter.number, parameter.label)


def _reference(node: Node) -> Value:
    return ForeignNode(node.graph.name if node.graph else "", node.name or "")


def _nothing(frame: _Frame) -> Value:
    return GraphReference(frame.graph.name)


# ---- several dumps ---------------------------------------------------------------------------


def join(dumps: Mapping[int, Dump] | Mapping[str, Dump], limit: int = MAX_NODES) -> Whole:
    """One view of several ranks' dumps, joined where one sends what another receives.

    Args:
        dumps: dumps by rank, or by any other name (``rank_0`` counts as rank 0).  Without ranks,
            a Send goes to the one Receive of another dump with the same tag and group.
        limit: as for :func:`inline`, for all dumps together.
    """
    parts: list[Whole] = []
    nodes: list[WholeNode] = []
    for name, dump in dumps.items():
        part = inline(dump, max(0, limit - len(nodes)))
        parts.append(part)
        for item in part.nodes:
            object.__setattr__(item, "source", name)
        nodes += part.nodes
    transfers, unmatched = _transfers(nodes, {name: _rank(name) for name in dumps})
    for sender, receiver in transfers:
        receiver.links.append(sender)
        sender.users.append(receiver)
    ordered, cyclic = _topological(nodes)
    for index, item in enumerate((*ordered, *cyclic)):
        object.__setattr__(item, "index", index)
    return Whole(
        (*ordered, *cyclic),
        tuple(dumps.values()),
        tuple(call for part in parts for call in part.kept_calls),
        tuple(item for part in parts for item in part.uncertain),
        tuple(transfers),
        tuple(unmatched),
        tuple(cyclic),
    )


def _rank(name: int | str) -> int | None:
    if isinstance(name, int):
        return name
    match = re.search(r"(?:^|rank[_.]?)(\d+)$", name)
    return int(match[1]) if match else None


def _transfers(
    nodes: list[WholeNode], ranks: dict[int | str, int | None]
) -> tuple[list[tuple[WholeNode, WholeNode]], list[WholeNode]]:
    """Pairs of Send and Receive, the k-th of equal ones with the k-th, and those left over."""
    from irtool.ir.collectives import collective

    ends: dict[tuple[object, ...], tuple[list[WholeNode], list[WholeNode]]] = {}
    for item in nodes:
        found = collective(item.node)
        if found is None or found.op not in ("Send", "Receive") or item.source is None:
            continue
        sends = found.op == "Send"
        rank = ranks[item.source]
        if rank is None or found.peer is None:
            route: tuple[object, ...] = (found.group, found.is_gradient, None)
        else:
            route = (rank, found.peer) if sends else (found.peer, rank)
        pair = ends.setdefault((*route, found.tag), ([], []))
        pair[0 if sends else 1].append(item)
    matched: list[tuple[WholeNode, WholeNode]] = []
    unmatched: list[WholeNode] = []
    for key, (senders, receivers) in ends.items():
        # With ranks the key names both ends; without, one dump must send and one receive.
        froms, tos = ({item.source for item in side} for side in (senders, receivers))
        sure = len(key) == 3 or (
            len(senders) == len(receivers) and len(froms) == len(tos) == 1 and froms != tos
        )
        pairs = zip(senders, receivers, strict=False) if sure else ()
        taken = [(a, b) for a, b in pairs if a.source != b.source]
        matched += taken
        paired = {node for pair in taken for node in pair}
        unmatched += [node for node in (*senders, *receivers) if node not in paired]
    return matched, sorted(unmatched, key=lambda node: node.node.line)


def _topological(nodes: list[WholeNode]) -> tuple[list[WholeNode], list[WholeNode]]:
    """Nodes in an order that respects every producer, and those that wait for each other."""
    missing = {item: len(item.producers) for item in nodes}
    ready = [item for item in nodes if not missing[item]]
    ready.reverse()
    ordered: list[WholeNode] = []
    while ready:
        item = ready.pop()
        ordered.append(item)
        for user in reversed(item.users):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return ordered, [item for item in nodes if missing[item]]
