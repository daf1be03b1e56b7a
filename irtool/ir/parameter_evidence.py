"""What the operators of a graph do with its parameters: compute, update, add gradients.

The graphs run as :mod:`irtool.ir.whole.running` runs them, but only those statements that a
parameter or a gradient may reach; most of a network is neither.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter, Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.ir.phases import Phase, is_optimizer, phases
from irtool.ir.statement import PrimitiveTarget, nested_references
from irtool.ir.values import NodeReference
from irtool.ir.whole import Ran, Reason
from irtool.ir.whole.running import MAX_NODES, Bound, Frame, Runner, Step, step_of

_ASSIGNING = frozenset(("Assign", "AssignAdd", "AssignSub", "InplaceCopy"))
_ADDS = ("AssignAdd",)
_SCALING = frozenset(("Cast", "Mul", "RealDiv", "Div", "Muls", *COMMUNICATION))
_COMPUTING: frozenset[Phase] = frozenset(("forward", "backward", "recompute"))
_MANY = 64
"""Parameters behind one value, beyond which it is one of all weights (a norm, a flag)."""

Names: TypeAlias = frozenset[str]
_NONE: Names = frozenset()

_Key: TypeAlias = tuple[str, int | None, str | None]
"""A parameter of a graph: the graph's name, number and label."""


@dataclass(slots=True)
class Evidence:
    """What the operators of a graph do with its parameters.

    Attributes:
        computed_with: names that forward or backward operators read.
        updated_from: by the name that is assigned, names that the new values are computed from.
        sums: names that a gradient is added to as it is.
        updates: names that an optimizer's operator updates.
        optimizers: for each of these operators the parameters that it takes as such, in their
            order, and the names behind all of its operands.
        mentioned: names that any operator takes, or any call hands on.
        trains: whether there is a backward pass, or an optimizer.
    """

    computed_with: set[str] = field(default_factory=set[str])
    updated_from: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    sums: set[str] = field(default_factory=set[str])
    updates: set[str] = field(default_factory=set[str])
    optimizers: list[tuple[tuple[str, ...], Names]] = field(
        default_factory=list["tuple[tuple[str, ...], Names]"]
    )
    mentioned: set[str] = field(default_factory=set[str])
    trains: bool = False


def evidence(dump: Dump) -> Evidence:
    """What the operators of a dump do with its parameters.

    Args:
        dump: of any pass; without the optimizer, less is told.
    """
    phase_of = phases(dump)
    reader = _Reader(dump, phase_of, {})
    reader.run()
    aliases = _aliases(reader.kept)
    if not reader.unknown.isdisjoint(aliases):
        reader = _Reader(dump, phase_of, aliases)
        reader.run()
    record = reader.evidence
    for taken, names in record.optimizers:
        # Most take the weight first; of some it stands behind their hyperparameters.
        weight = next((name for name in taken if name in record.computed_with), None)
        weight = weight or next(iter(taken), None)
        if weight is not None:
            record.updates.add(weight)
            record.updated_from.setdefault(weight, set()).update(names)
            for name in taken:
                record.updated_from.setdefault(name, set())
    record.trains |= bool(record.optimizers)
    return record


@dataclass(frozen=True, slots=True, eq=False)
class _Value(Ran):
    """A statement as it ran, the parameters behind its value, and whether it is a gradient."""

    inputs: tuple[Bound, ...]
    names: Names = _NONE
    is_gradient: bool = False


class _Reader(Runner):
    """Runs a dump and keeps what is done with parameters.

    A node of the backward pass is a gradient wherever it runs, so that it stands for itself.
    """

    def __init__(
        self, dump: Dump, phase_of: Mapping[Node, Phase], aliases: Mapping[_Key, Names]
    ) -> None:
        super().__init__(dump, MAX_NODES)
        self.phase_of = phase_of
        self.aliases = aliases
        self.evidence = Evidence()
        self.kept: list[tuple[Ran, tuple[Graph, ...]]] = []
        self.unknown: set[_Key] = set()
        """Parameters of graphs that nobody handed anything to."""

    # -- what runs

    def steps_of(self, graph: Graph) -> tuple[Step, ...]:
        """What a parameter, a gradient or a function may reach."""
        steps: list[Step] = []
        clear: set[int | None] = set()  # numbers of nodes that nothing of interest comes from
        for node in graph.nodes:
            op = node.op
            phase = self.phase_of.get(node, "other")
            if op == "UpdateState":
                clear.add(node.number)
                continue
            if phase == "backward" and op != "J":
                self.evidence.trains = True
            if _is_reached(node, op, clear):
                steps.append(step_of(graph, node))
                if op in PLUMBING or phase not in _COMPUTING or _updates(node, op, phase):
                    continue
            if phase != "backward" or op in PLUMBING or _updates(node, op, phase):
                clear.add(node.number)
        return tuple(steps)

    def not_run(self, node: Node) -> Bound:
        """A node that nothing of interest reaches stands for itself."""
        return node

    # -- what it does

    def make(
        self, frame: Frame, node: Node, inputs: tuple[Bound, ...], function: Bound | None
    ) -> Ran:
        """Take one statement in."""
        op = node.op
        if op == "J":
            return _Value(node, inputs)
        phase = self.phase_of.get(node, "other")
        if op in PLUMBING:
            return self._pass_on(node, op, inputs, phase, calls=function is not None)
        if _updates(node, op, phase):
            return _Value(node, inputs, self._update(node, op, inputs))
        names = self._names(inputs)
        if phase in _COMPUTING:
            self.evidence.computed_with |= names
            return _Value(node, inputs, is_gradient=phase == "backward")
        behind = names if len(names) <= _MANY else _NONE
        return _Value(node, inputs, behind, self._is_scaled_gradient(op, inputs))

    def keep(self, call: Ran, graphs: tuple[Graph, ...], reason: Reason) -> None:
        """Remember what is handed to graphs that run with parameters of their own."""
        self.kept.append((call, graphs))

    def _pass_on(
        self, node: Node, op: str, inputs: tuple[Bound, ...], phase: Phase, *, calls: bool
    ) -> _Value:
        if calls or op in ("EnvironGet", "EnvironAdd"):
            self._names(inputs)
            return _Value(node, inputs, _NONE, phase == "backward" or op == "EnvironGet")
        taken = inputs[:1] if op in ("Depend", "Load") else inputs
        names = self._names(taken)
        gradient = any(self._is_gradient(source) for source in taken)
        return _Value(node, inputs, names if len(names) <= _MANY else _NONE, gradient)

    def _update(self, node: Node, op: str, inputs: tuple[Bound, ...]) -> Names:
        target, *rest = inputs
        if is_optimizer(op):
            direct = [self._names((item,)) for item in inputs if isinstance(item, GraphParameter)]
            taken = tuple(name for names in direct if len(names) == 1 for name in names)
            self.evidence.optimizers.append((taken, self._names(inputs)))
            return frozenset(taken[:1])
        names = self._names((target,))
        if len(names) != 1:
            return _NONE
        (name,) = names
        values = self.evidence.updated_from.setdefault(name, set())
        values |= self._names(rest)
        if rest and self._adds(op, name, rest[0]):
            self.evidence.sums.add(name)
        return names

    def _adds(self, op: str, name: str, value: Bound) -> bool:
        """Whether a gradient, as it is, is added to a parameter."""
        if op in _ADDS:
            return self._is_gradient(value)
        if not isinstance(value, _Value) or value.op not in ("Add", "AddExt"):
            return False
        first, second = (value.inputs[:2], value.inputs[1::-1])
        return any(
            self._is_gradient(other) and self._reads(own) == frozenset((name,))
            for own, other in (first, second)
        )

    def _reads(self, source: Bound) -> Names:
        """The parameter that a value is, as it was loaded."""
        is_load = isinstance(source, _Value) and source.op in PLUMBING
        return self._names((source,)) if is_load or isinstance(source, GraphParameter) else _NONE

    def _is_gradient(self, source: Bound) -> bool:
        if isinstance(source, _Value):
            return source.is_gradient
        if not isinstance(source, Node) or self.phase_of.get(source) != "backward":
            return False
        op = source.op
        return op not in PLUMBING and not _updates(source, op, "backward")

    def _is_scaled_gradient(self, op: str, inputs: tuple[Bound, ...]) -> bool:
        if op not in _SCALING or not inputs:
            return False
        first, *rest = inputs
        return self._is_gradient(first) and all(_is_small(source) for source in rest)

    def _names(self, sources: Iterable[Bound]) -> Names:
        union = _NONE
        for source in sources:
            if isinstance(source, _Value):
                names = source.names
            elif isinstance(source, GraphParameter):
                names = self._named(source)
                self.evidence.mentioned |= names
            elif isinstance(source, tuple):
                names = self._names(source)
            else:
                continue
            union = union | names if union and names else union or names
        return union

    def _named(self, source: GraphParameter) -> Names:
        names, key = named(source, self.aliases)
        if key is not None:
            self.unknown.add(key)
        return names


def _is_reached(node: Node, op: str, clear: Container[int | None]) -> bool:
    """Whether a node takes a parameter, a function, or what is not known to be neither."""
    if not isinstance(node.target, PrimitiveTarget) or op in ("J", "Return"):
        return True
    operands = node.operands[:1] if op in ("Load", "Depend") else node.operands
    for operand in operands:
        if isinstance(operand, NodeReference):
            if operand.number not in clear:
                return True
            continue
        for reference in nested_references(operand):
            if not isinstance(reference, NodeReference) or reference.number not in clear:
                return True
    return False


def _updates(node: Node, op: str, phase: Phase) -> bool:
    """Whether an operator writes its first operand, a parameter, after the backward pass."""
    if not node.operands:
        return False
    if op in _ASSIGNING or is_optimizer(op):
        return True
    return phase not in _COMPUTING and node.attribute("side_effect_mem") is True


def _is_small(source: Bound) -> bool:
    """Whether an operand is a scalar, so that it scales what is beside it."""
    if isinstance(source, Ran):
        type = source.node.output_type
    elif isinstance(source, Node):
        type = source.output_type
    elif isinstance(source, GraphParameter):
        type = source.type
    else:
        return True
    return type is None or type.dimensions in ((), (1,), None)


# -- parameters of graphs that calls hand something to -------------------------------------------


def named(source: GraphParameter, aliases: Mapping[_Key, Names]) -> tuple[Names, _Key | None]:
    """The declared parameters that a graph's parameter is, and its key where only a call tells.

    Args:
        source: a parameter of any graph, an inner one's too.
        aliases: what calls hand to parameters of inner graphs, by graph, number and label.

    Returns:
        Names of weights (none for an input, or where nothing tells), and the key into ``aliases``.
    """
    if source.declaration is not None:
        return (frozenset((source.name,)) if source.declaration.is_weight else _NONE), None
    if source.type is not None and source.type.ref_key:
        return frozenset((source.type.ref_key,)), None
    key = source.graph, source.number, source.label
    return aliases.get(key, _NONE), key


def _aliases(kept: Iterable[tuple[Ran, tuple[Graph, ...]]]) -> dict[_Key, Names]:
    """Parameters of graphs behind calls that were kept, by what the calls hand to them."""
    aliases: dict[_Key, Names] = {}
    handed = [
        pair
        for call, graphs in kept
        for graph in graphs
        for pair in zip(graph.parameters, call.inputs, strict=False)
    ]
    for _ in range(3):  # calls in called graphs hand on what they were handed
        before = len(aliases)
        for parameter, argument in handed:
            names = _loaded(argument, aliases)
            if names:
                key = (parameter.graph, parameter.number, parameter.label)
                aliases[key] = aliases.get(key, _NONE) | names
        if len(aliases) == before:
            break
    return aliases


def _loaded(source: object, aliases: Mapping[_Key, Names]) -> Names:
    for _ in range(8):
        if isinstance(source, GraphParameter):
            return named(source, aliases)[0]
        if not isinstance(source, Ran) or source.op not in ("Load", "Depend"):
            return _NONE
        if not source.inputs:
            return _NONE
        source = source.inputs[0]
    return _NONE
