"""What each parameter of a dump is: a weight, what an optimizer keeps for one, an input, or other.

The graph says so first.  What forward or backward operators read is a weight.  What only an update
reads or writes is kept for the weight that it updates: an optimizer's operator takes both, and a
train step of the user's own assigns the weight a value that is computed from its states.  What the
updates of several weights read (learning rates, steps, loss scales) belongs to none of them.  A sum
of gradients is assigned itself plus a gradient, as it is.  Only where no operator tells anything
(dumps without the update), names do, as MindSpore's optimizers build them: ``moments.up.weight`` is
kept for ``up.weight``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter
from irtool.ir.items import Parameter
from irtool.ir.node import Node
from irtool.ir.operators import ACCUMULATED, COMMUNICATION, OPTIMIZERS, PLUMBING
from irtool.ir.phases import Phase, phases
from irtool.ir.whole_model import Whole, WholeNode, WholeSource

Role: TypeAlias = Literal["input", "weight", "state", "accumulated gradient", "other"]
ROLES: tuple[Role, ...] = ("input", "weight", "state", "accumulated gradient", "other")
"""``other``: what is kept from step to step for no single weight: steps, rates, scales, caches."""

_ASSIGNING = ("Assign", "AssignAdd", "AssignSub", "InplaceCopy")
_ADDS = ("AssignAdd",)
_SCALING = ("Cast", "Mul", "RealDiv", "Div", "Muls", *COMMUNICATION)
_COMPUTING: tuple[Phase, ...] = ("forward", "backward", "recompute")
_MANY = 64
"""Parameters behind one value, beyond which it is one of all weights (a norm, a flag)."""

Names: TypeAlias = frozenset[str]
_NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class ParameterRole:
    """What a parameter is, and the weight that it belongs to (its own name, if to none else)."""

    role: Role
    weight: str


def parameter_roles(dump: Dump) -> Mapping[str, ParameterRole]:
    """The role of every declared parameter of a dump, by name."""
    found = _KNOWN.get(id(dump))
    if found is None or found[0] is not dump:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        found = _KNOWN[id(dump)] = dump, _Roles(dump, _evidence(dump)).all()
    return found[1]


_MOST_KNOWN = 8
_KNOWN: dict[int, tuple[Dump, Mapping[str, ParameterRole]]] = {}
"""Roles of the last dumps: several answers of one command ask for them."""


def is_accumulated(name: str) -> bool:
    """Whether MindSpore itself sums the gradients of a step's micro-batches in a parameter."""
    return f".{name}".find(f".{ACCUMULATED}") >= 0


def weight_of(dump: Dump) -> dict[str, str]:
    """The weight that each parameter with a value of its own belongs to, its own name for one."""
    roles = parameter_roles(dump)
    return {item.name: roles[item.name].weight for item in dump.parameters if item.is_weight}


# -- what operators say ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Evidence:
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


def _evidence(dump: Dump) -> _Evidence:
    whole = dump.whole()
    reader = _Reader(phases(dump), _aliases(whole))
    for item in whole.nodes:
        reader.read(item)
    found = reader.found
    for taken, names in found.optimizers:
        # Most take the weight first; of some it stands behind their hyperparameters.
        weight = next((name for name in taken if name in found.computed_with), None)
        weight = weight or next(iter(taken), None)
        if weight is not None:
            found.updates.add(weight)
            found.updated_from.setdefault(weight, set()).update(names)
            for name in taken:
                found.updated_from.setdefault(name, set())
    found.trains |= bool(found.optimizers)
    return found


def _is_parameter(source: WholeSource) -> bool:
    """Whether an operand is a parameter itself, not what was loaded from one."""
    return isinstance(source, GraphParameter)


@dataclass(slots=True)
class _Reader:
    """Goes through a graph in order, and keeps which parameters are behind each value."""

    phase_of: Mapping[Node, Phase]
    aliases: Mapping[tuple[str, int | None, str | None], Names]
    found: _Evidence = field(default_factory=_Evidence)
    behind: dict[WholeNode, Names] = field(default_factory=dict[WholeNode, Names])
    gradients: set[WholeNode] = field(default_factory=set[WholeNode])

    def read(self, item: WholeNode) -> None:
        """Take one node in."""
        node = item.node
        if node.op in ("UpdateState", "J"):
            return
        phase = self.phase_of.get(node, "other")
        self.found.trains |= phase == "backward"
        if node.op in PLUMBING:
            self._pass_on(item, phase)
            return
        if _updates(node, phase):
            self._update(item)
            return
        names = self._names(item.inputs)
        if phase in _COMPUTING:
            self.found.computed_with |= names
            if phase == "backward":
                self.gradients.add(item)
            return
        if len(names) <= _MANY:
            self.behind[item] = names
        if self._is_scaled_gradient(item):
            self.gradients.add(item)

    def _pass_on(self, item: WholeNode, phase: Phase) -> None:
        if item.function is not None or item.op in ("EnvironGet", "EnvironAdd"):
            self._names(item.inputs)
            if phase == "backward" or item.op == "EnvironGet":
                self.gradients.add(item)
            return
        inputs = item.inputs[:1] if item.op in ("Depend", "Load") else item.inputs
        names = self._names(inputs)
        if names and len(names) <= _MANY:
            self.behind[item] = names
        if any(source in self.gradients for source in inputs if isinstance(source, WholeNode)):
            self.gradients.add(item)

    def _update(self, item: WholeNode) -> None:
        target, *rest = item.inputs
        if OPTIMIZERS.match(item.op):
            direct = [self._names((source,)) for source in item.inputs if _is_parameter(source)]
            taken = tuple(name for names in direct if len(names) == 1 for name in names)
            self.found.optimizers.append((taken, self._names(item.inputs)))
            self.behind[item] = frozenset(taken[:1])
            return
        names = self._names((target,))
        if len(names) != 1:
            return
        (name,) = names
        self.behind[item] = names
        values = self.found.updated_from.setdefault(name, set())
        values |= self._names(rest)
        if rest and self._adds(item, name, rest[0]):
            self.found.sums.add(name)

    def _adds(self, item: WholeNode, name: str, value: WholeSource) -> bool:
        """Whether a gradient, as it is, is added to a parameter."""
        if item.op in _ADDS:
            return value in self.gradients
        if not isinstance(value, WholeNode) or value.op not in ("Add", "AddExt"):
            return False
        first, second = (value.inputs[:2], value.inputs[1::-1])
        return any(
            other in self.gradients and self._reads(own) == frozenset((name,))
            for own, other in (first, second)
        )

    def _reads(self, source: WholeSource) -> Names:
        """The parameter that a value is, as it was loaded."""
        is_load = isinstance(source, WholeNode) and source.op in PLUMBING
        return self._names((source,)) if is_load or isinstance(source, GraphParameter) else _NONE

    def _is_scaled_gradient(self, item: WholeNode) -> bool:
        if item.op not in _SCALING or not item.inputs:
            return False
        first, *rest = item.inputs
        return first in self.gradients and all(_is_small(source) for source in rest)

    def _names(self, sources: Iterable[WholeSource]) -> Names:
        found: set[str] = set()
        for source in sources:
            if isinstance(source, WholeNode):
                found |= self.behind.get(source, _NONE)
            elif isinstance(source, GraphParameter):
                names = _named(source, self.aliases)
                self.found.mentioned |= names
                found |= names
            elif isinstance(source, tuple):
                found |= self._names(source)
        return frozenset(found)


def _updates(node: Node, phase: Phase) -> bool:
    """Whether an operator writes its first operand, a parameter, after the backward pass."""
    if not node.operands:
        return False
    if node.op in _ASSIGNING or OPTIMIZERS.match(node.op):
        return True
    return phase not in _COMPUTING and node.attribute("side_effect_mem") is True


def _is_small(source: WholeSource) -> bool:
    """Whether an operand is a scalar, so that it scales what is beside it."""
    if isinstance(source, WholeNode):
        type = source.node.output_type
    elif isinstance(source, GraphParameter):
        type = source.type
    else:
        return True
    return type is None or type.dimensions in ((), (1,), None)


def _named(
    source: GraphParameter, aliases: Mapping[tuple[str, int | None, str | None], Names]
) -> Names:
    if source.declaration is not None:
        return frozenset((source.name,)) if source.declaration.is_weight else _NONE
    if source.type is not None and source.type.ref_key:
        return frozenset((source.type.ref_key,))
    return aliases.get((source.graph, source.number, source.label), _NONE)


def _aliases(whole: Whole) -> dict[tuple[str, int | None, str | None], Names]:
    """Parameters of graphs behind calls that were kept, by what the calls hand to them."""
    found: dict[tuple[str, int | None, str | None], Names] = {}
    for _ in range(3):  # calls in called graphs hand on what they were handed
        before = len(found)
        for call in whole.kept_calls:
            for graph in call.graphs:
                for parameter, argument in _handed(graph, call.node):
                    names = _loaded(argument, found)
                    if names:
                        key = (parameter.graph, parameter.number, parameter.label)
                        found[key] = found.get(key, _NONE) | names
        if len(found) == before:
            break
    return found


def _handed(graph: Graph, call: WholeNode) -> Iterator[tuple[GraphParameter, WholeSource]]:
    yield from zip(graph.parameters, call.inputs, strict=False)


def _loaded(
    source: WholeSource, aliases: Mapping[tuple[str, int | None, str | None], Names]
) -> Names:
    for _ in range(8):
        if isinstance(source, GraphParameter):
            return _named(source, aliases)
        if not isinstance(source, WholeNode) or source.op not in ("Load", "Depend"):
            return _NONE
        if not source.inputs:
            return _NONE
        source = source.inputs[0]
    return _NONE


# -- roles -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Roles:
    """Decides what each parameter is."""

    dump: Dump
    seen: _Evidence
    by_name: dict[str, Parameter] = field(init=False)
    named: dict[str, str] = field(init=False)
    with_states: set[str] = field(init=False)
    updated: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.by_name = {item.name: item for item in self.dump.parameters}
        self.named = named_owners(item.name for item in self.dump.parameters if item.is_weight)
        self.with_states = {owner for name, owner in self.named.items() if owner != name}

    def all(self) -> dict[str, ParameterRole]:
        """Every parameter, in the dump's order."""
        valued = [item.name for item in self.dump.parameters if item.is_weight]
        weights = {name for name in valued if self._is_weight(name)}
        self.updated = weights & self.seen.updated_from.keys()
        kept_for = self._kept_for(valued, weights)
        found: dict[str, ParameterRole] = {}
        for name, item in self.by_name.items():
            if not item.is_weight:
                found[name] = ParameterRole("input", name)
            elif is_accumulated(name):
                found[name] = ParameterRole("accumulated gradient", self.named[name])
            elif name in weights:
                found[name] = ParameterRole("weight", name)
            else:
                found[name] = self._kept(name, kept_for.get(name, set()))
        return found

    def _is_weight(self, name: str) -> bool:
        if is_accumulated(name):
            return False
        if name not in self.seen.computed_with:
            return name in self.seen.updates
        if not _is_single(self.by_name[name]) or not self.seen.trains:
            return self.seen.trains or name not in self.seen.updated_from
        # A loss scale is computed with and updated, too: a weight has an optimizer of its own.
        return name in self.seen.updates or name in self.with_states

    def _kept_for(self, valued: Iterable[str], weights: set[str]) -> dict[str, set[str]]:
        """The weights that each parameter is kept for, by what updates read of one another."""
        found: dict[str, set[str]] = {name: set() for name in valued}
        links: dict[str, set[str]] = {name: set() for name in found}
        for target, values in self.seen.updated_from.items():
            for name in values:
                if target != name and name in links and target in links:
                    links[name].add(target)
                    if name in weights:
                        links[target].add(name)
        todo = list(weights & links.keys())
        for weight in todo:
            found[weight].add(weight)
        # From a weight to what its update reads, and from there on to what that is computed from.
        changed = True
        while changed:
            changed = False
            for name, others in links.items():
                if name in weights:
                    continue
                new = {weight for other in others for weight in found[other]} - found[name]
                if new:
                    found[name] |= new
                    changed = True
        return found

    def _kept(self, name: str, weights: set[str]) -> ParameterRole:
        """The role of what no operator computes with."""
        owner = self.named[name]
        item = self.by_name[name]
        written = name in self.seen.updated_from
        if len(weights) == 1:
            (weight,) = weights
            # A step or a rate of all weights, where no other of them is updated here.
            alone = _is_single(item) and owner != weight and len(self.updated) < 2
            if name in self.seen.sums:
                return ParameterRole("accumulated gradient", weight)
            if (written or owner == weight) and not alone:
                return ParameterRole("state", weight)
            return ParameterRole("other", name)
        if name in self.seen.sums:
            return ParameterRole("accumulated gradient", owner)
        if weights and owner not in weights:
            return ParameterRole("other", name)
        if owner != name:
            return ParameterRole("state", owner)
        alone = self.seen.trains and (_is_single(item) or name not in self.seen.mentioned)
        return ParameterRole("other" if written or alone else "weight", name)


def _is_single(item: Parameter) -> bool:
    dimensions = item.type.dimensions if item.type else None
    return dimensions is not None and dimensions in ((), (1,))


# -- names -----------------------------------------------------------------------------------------

_STATE_WORDS = frozenset(
    ("accu_grads", "accum", "accum_update", "adam_m", "adam_v", "exp_avg", "exp_avg_sq", "exp_inf",
     "lamb_m", "lamb_v", "linear", "max_exp_avg_sq", "mean_grad", "mean_square", "moment",
     "moment1", "moment2", "moments", "momentum_buf", "prev", "stat", "step_size", "vhat")
)  # fmt: skip
"""What MindSpore's optimizers put before a weight's name (``mindspore.nn``, ``mint``, 2.7)."""


_FACTORED = ("exp_avg_sq_row_", "exp_avg_sq_col_", "exp_avg_insta_row_", "exp_avg_insta_col_",
             "exp_avg_sq_", "exp_avg_")  # fmt: skip
"""What AdaFactor puts before a weight's name (``mindspore.nn.AdaFactor``, 2.7)."""


def named_owners(names: Iterable[str]) -> dict[str, str]:
    """The weight that each parameter is kept for by its name, its own name for a weight.

    ``moments.up.weight`` is kept for ``up.weight``, and where the optimizer is part of a cell,
    ``cell.moments.up.weight`` for ``cell.up.weight``.  What something is kept for is a weight
    itself, however its name begins: ``dense.bias`` beside ``moments.dense.bias``, where ``bias`` is
    another weight.
    """
    known = dict.fromkeys(names)
    weights = {other for name in known for other in _owners_of(name) if other in known}
    return {
        name: name
        if name in weights
        else next((other for other in _owners_of(name) if other in known), name)
        for name in known
    }


def _owners_of(name: str) -> Iterator[str]:
    """What a parameter may be kept for: what stands behind each dot, the longest first.

    And the name without a word of an optimizer inside.
    """
    words = name.split(".")
    for place in range(1, len(words)):
        yield ".".join(words[place:])
    for place in range(1, len(words) - 1):
        if words[place] in _STATE_WORDS:
            yield ".".join((*words[:place], *words[place + 1 :]))
    for word in _FACTORED:
        if name.startswith(word):
            yield name.removeprefix(word)
