"""Runs the graphs of a dump one statement at a time, following calls, closures and free variables.

What a run makes of a statement is up to :class:`Runner`'s subclasses: the whole view makes a node
of each (:mod:`irtool.ir.whole.inlining`), other questions follow only what they ask for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import field
from typing import NamedTuple, TypeAlias, Union

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import (
    AmbiguousReference,
    DumpModel,
    Graph,
    GraphParameter,
    Node,
    Source,
    Unresolved,
)
from irtool.ir.statement import ClosureTarget, GraphTarget, nested_references
from irtool.ir.values import ForeignNode, GraphReference, Value, python_value
from irtool.ir.whole import CallSite, Ran, Reason

MAX_NODES = 4_000_000
"""Most nodes that running may make; beyond, calls are kept (reason ``limit``)."""

_MAX_NESTING = 10_000

_OF_FUNCTIONS = frozenset(("Partial", "Depend", "J", "TupleGetItem"))
"""Operators whose result may be a function that we know."""


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A graph as a value, with the frame of its enclosing graph and the arguments bound so far."""

    graph: Graph
    enclosing: Frame | None
    bound: tuple[Bound, ...] = ()


Bound: TypeAlias = Union[Ran, Source, Closure, "tuple[Bound, ...]"]
"""What an operand is as a graph runs: something made, a parameter nobody bound, a constant, …"""


class Step(NamedTuple):
    """A node with its operands resolved inside its own graph."""

    node: Node
    sources: tuple[Source | tuple[Source, ...], ...]
    function: Source | None


@dataclass(slots=True, eq=False)
class Frame:
    """One run of a graph: values of its nodes and parameters so far."""

    graph: Graph
    steps: tuple[Step, ...]
    enclosing: Frame | None
    site: CallSite | None
    arguments: dict[int, Bound]
    is_body: bool
    position: int = 0
    values: dict[Node, Bound] = field(default_factory=dict[Node, "Bound"])
    result: Bound | None = None


class Runner(ABC):
    """Runs the entry of a dump, and every graph that nothing called.

    Args:
        dump: what to run.
        limit: how many nodes may be made before further calls are kept as they are.
    """

    def __init__(self, dump: DumpModel, limit: int) -> None:
        self.dump = dump
        self.limit = limit
        self.guessed = False
        """Whether the statement at hand takes one of several nodes of the same debug name."""
        self._made_so_far = 0
        self._steps: dict[Graph, tuple[Step, ...]] = {}
        self._closures: dict[Ran, Closure] = {}
        self._gradients: set[Ran] = set()
        self._latest: dict[str, Frame] = {}
        self._active: Counter[Graph] = Counter()
        self._done: set[Graph] = set()
        self._bodies: set[Graph] = set()
        self._stack: list[Frame] = []
        self._budget = limit

    # -- what a run makes

    @abstractmethod
    def make(
        self, frame: Frame, node: Node, inputs: tuple[Bound, ...], function: Bound | None
    ) -> Ran:
        """What comes of a statement that is no call, or of a call that is kept."""

    @abstractmethod
    def keep(self, call: Ran, graphs: tuple[Graph, ...], reason: Reason) -> None:
        """Take notice of a call that is kept, of the graphs that it may call."""

    def steps_of(self, graph: Graph) -> tuple[Step, ...]:
        """The statements of a graph that are worth running."""
        return tuple(step_of(graph, node) for node in graph.nodes)

    def site(self, frame: Frame, node: Node, inputs: tuple[Bound, ...]) -> CallSite | None:
        """What tells the runs of a graph apart, if anybody asks."""
        return None

    def not_run(self, node: Node) -> Bound:
        """What stands for a node that did not run."""
        return Unresolved(_reference(node))

    # -- frames

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

    def _push(
        self,
        graph: Graph,
        enclosing: Frame | None,
        site: CallSite | None,
        arguments: dict[int, Bound],
        is_body: bool,
    ) -> None:
        if graph not in self._steps:
            self._steps[graph] = self.steps_of(graph)
        frame = Frame(graph, self._steps[graph], enclosing, site, arguments, is_body)
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

    def _advance(self, frame: Frame, step: Step) -> None:
        self.guessed = False
        node = step.node
        inputs = tuple([self._bind(frame, source) for source in step.sources])
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
        self, frame: Frame, node: Node, inputs: tuple[Bound, ...], function: Bound | None
    ) -> Ran:
        self._made_so_far += 1
        return self.make(frame, node, inputs, function)

    def _remember_closure(self, made: Ran, inputs: tuple[Bound, ...]) -> None:
        """Operators whose result is a function that we know."""
        op = made.op
        if op not in _OF_FUNCTIONS:
            return
        if op == "Partial" and inputs:
            closure = self._closure(inputs[0])
            if closure is not None:
                bound = (*closure.bound, *inputs[1:])
                self._closures[made] = Closure(closure.graph, closure.enclosing, bound)
        elif op == "Depend" and inputs:
            closure = self._closure(inputs[0])
            if closure is not None:
                self._closures[made] = closure
        elif op == "J":
            self._gradients.add(made)
        elif op == "TupleGetItem" and inputs and isinstance(inputs[0], Ran):
            if inputs[0] in self._gradients:
                self._gradients.add(made)
            elif inputs[0].op == "MakeTuple":
                self._take_item(made, inputs[0])

    def _take_item(self, made: Ran, made_tuple: Ran) -> None:
        index = python_value(made.node.operands[1]) if len(made.node.operands) > 1 else None
        if isinstance(index, int) and -len(made_tuple.inputs) <= index < len(made_tuple.inputs):
            item = made_tuple.inputs[index]
            if isinstance(item, Ran) and item in self._closures:
                self._closures[made] = self._closures[item]

    # -- calls

    def _call(
        self, frame: Frame, step: Step, function: Bound | None, inputs: tuple[Bound, ...]
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
        elif self._budget < len(graph.nodes) or self._made_so_far >= self.limit:
            reason = "limit"
        if reason is not None:
            self._keep(frame, step, function, inputs, (graph,), reason, closure.enclosing)
            return
        bound = {id(item): value for item, value in zip(parameters, arguments, strict=True)}
        site = self.site(frame, step.node, inputs)
        self._push(graph, closure.enclosing, site, bound, is_body=False)

    def _callee(self, frame: Frame, node: Node, function: Bound | None) -> Closure | None:
        closure = None if function is None else self._closure(function)
        if closure is not None or isinstance(node.target, GraphTarget):
            return closure
        if isinstance(node.target, ClosureTarget) and node.target.closure is not None:
            annotation = node.target.closure
            graph = self.dump.graph(annotation.graphs[0]) if len(annotation.graphs) == 1 else None
            # Bound arguments of a Partial that we do not see are unknown.
            if graph is not None and "Partial" not in annotation.kind:
                return Closure(graph, self._enclosing(frame, graph))
        return None

    def _keep_unknown(
        self, frame: Frame, step: Step, function: Bound | None, inputs: tuple[Bound, ...]
    ) -> None:
        graphs = frame.graph.called(step.node)
        reason: Reason = "control flow" if graphs else "unknown function"
        if isinstance(function, Ran):
            if function in self._gradients:
                reason = "gradient"
                graphs = _requested(function)
            elif function.op in ("Switch", "SwitchLayer"):
                reason = "control flow"
        arguments = inputs if reason == "gradient" and self._runs_once(function) else None
        self._keep(frame, step, function, inputs, graphs, reason, None, arguments)

    def _keep(
        self,
        frame: Frame,
        step: Step,
        function: Bound | None,
        inputs: tuple[Bound, ...],
        graphs: tuple[Graph, ...],
        reason: Reason,
        enclosing: Frame | None,
        arguments: tuple[Bound, ...] | None = None,
    ) -> None:
        """Run the bodies that were not run yet, one at a time; then make the call itself."""
        for graph in graphs:
            if graph not in self._bodies and not self._active[graph]:
                self._bodies.add(graph)
                bound: dict[int, Bound] = {}
                if arguments is not None and len(arguments) == len(graph.parameters):
                    pairs = zip(graph.parameters, arguments, strict=True)
                    bound = {id(item): value for item, value in pairs}
                outer = enclosing or self._enclosing(frame, graph)
                site = self.site(frame, step.node, ())
                self._push(graph, outer, site, bound, is_body=True)
                return
        made = self._made(frame, step.node, inputs, function)
        self.keep(made, graphs, reason)
        if reason == "gradient":
            self._gradients.add(made)
        frame.values[step.node] = made
        frame.position += 1

    @staticmethod
    def _runs_once(function: Bound | None) -> bool:
        """Whether this gradient request is the only use of its ``J(@G)``."""
        if not isinstance(function, Ran) or function.op != "J":
            return False
        return len(function.node.users) == 1

    # -- values

    def _closure(self, value: Bound) -> Closure | None:
        if isinstance(value, Closure):
            return value
        return self._closures.get(value) if isinstance(value, Ran) else None

    def _enclosing(self, frame: Frame, graph: Graph) -> Frame | None:
        return self._frame_of(frame, graph.parent) if graph.parent is not None else None

    def _frame_of(self, frame: Frame, name: str) -> Frame | None:
        """The run of the graph ``name`` that encloses ``frame``, else its latest run."""
        place: Frame | None = frame
        for _ in range(_MAX_NESTING):
            if place is None or place.graph.name == name:
                break
            place = place.enclosing
        return place if place is not None else self._latest.get(name)

    def _bind(self, frame: Frame, source: Source | tuple[Source, ...]) -> Bound:
        if isinstance(source, AmbiguousReference):
            self.guessed = True
            source = source.likely
        if isinstance(source, Node):  # most are
            owner = source.graph
            if owner is frame.graph:
                value = frame.values.get(source)
            else:
                place = self._frame_of(frame, owner.name) if owner is not None else None
                value = place.values.get(source) if place is not None else None
            return value if value is not None else self.not_run(source)
        if isinstance(source, GraphParameter):
            owner_frame = self._frame_of(frame, source.graph)
            if owner_frame is None:
                return source
            return owner_frame.arguments.get(id(source), source)
        if isinstance(source, Graph):
            return Closure(source, self._enclosing(frame, source))
        if isinstance(source, tuple):
            return tuple(self._bind(frame, item) for item in source)
        return source


def step_of(graph: Graph, node: Node) -> Step:
    """A statement with what its operands stand for; a literal's references as a tuple.

    Args:
        graph: whose statement it is: numbers and labels are looked up there.
        node: the statement.

    Returns:
        The step, whose ``function`` is what a call or closure runs; None of a primitive.
    """
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
    return Step(node, tuple(sources), function)


def _requested(function: Ran) -> tuple[Graph, ...]:
    """The graphs whose gradient ``J`` asks for."""
    if function.op != "J":
        return ()
    graphs = (item.graph if isinstance(item, Closure) else item for item in function.inputs)
    return tuple(graph for graph in graphs if isinstance(graph, Graph))


def _reference(node: Node) -> Value:
    return ForeignNode(node.graph.name if node.graph else "", node.name or "")


def _nothing(frame: Frame) -> Value:
    return GraphReference(frame.graph.name)
