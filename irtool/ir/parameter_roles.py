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
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.items import Parameter
from irtool.ir.operators import ACCUMULATED
from irtool.ir.parameter_evidence import Evidence, evidence
from irtool.ir.worked_out import once

Role: TypeAlias = Literal["input", "weight", "state", "accumulated gradient", "other"]
ROLES: tuple[Role, ...] = ("input", "weight", "state", "accumulated gradient", "other")
"""``other``: what is kept from step to step for no single weight: steps, rates, scales, caches."""


@dataclass(frozen=True, slots=True)
class ParameterRole:
    """What a parameter is, and the weight that it belongs to (its own name, if to none else).

    ``updated``: of a weight, whether the dump updates it.
    """

    role: Role
    weight: str
    updated: bool = False


def parameter_roles(dump: Dump) -> Mapping[str, ParameterRole]:
    """The role of every declared parameter of a dump, by name.

    Args:
        dump: of any pass; the roles are kept with it.
    """
    return once(dump, PARAMETER_ROLES, lambda: _Roles(dump, evidence(dump)).all())


PARAMETER_ROLES = "parameter roles"
"""What :func:`parameter_roles` is called among the results of a dump."""


def is_accumulated(name: str) -> bool:
    """Whether MindSpore itself sums the gradients of a step's micro-batches in a parameter.

    Args:
        name: of a parameter, ``accu_grads.net.weight``.
    """
    return f".{name}".find(f".{ACCUMULATED}") >= 0


def weight_of(dump: Dump) -> dict[str, str]:
    """The weight that each parameter with a value of its own belongs to, its own name for one.

    Args:
        dump: of any pass.

    Returns:
        Names of weights by names of parameters; inputs of the network are left out.
    """
    roles = parameter_roles(dump)
    return {item.name: roles[item.name].weight for item in dump.parameters if item.is_weight}


# -- roles -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Roles:
    """Decides what each parameter is."""

    dump: Dump
    seen: Evidence
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
        roles: dict[str, ParameterRole] = {}
        for name, item in self.by_name.items():
            if not item.is_weight:
                roles[name] = ParameterRole("input", name)
            elif is_accumulated(name):
                roles[name] = ParameterRole("accumulated gradient", self.named[name])
            elif name in weights:
                roles[name] = ParameterRole("weight", name, name in self.updated)
            else:
                roles[name] = self._kept(name, kept_for.get(name, set()))
        return roles

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
        kept_for: dict[str, set[str]] = {name: set() for name in valued}
        links: dict[str, set[str]] = {name: set() for name in kept_for}
        for target, values in self.seen.updated_from.items():
            for name in values:
                if target != name and name in links and target in links:
                    links[name].add(target)
                    if name in weights:
                        links[target].add(name)
        todo = list(weights & links.keys())
        for weight in todo:
            kept_for[weight].add(weight)
        # From a weight to what its update reads, and from there on to what that is computed from.
        changed = True
        while changed:
            changed = False
            for name, others in links.items():
                if name in weights:
                    continue
                new = {weight for other in others for weight in kept_for[other]} - kept_for[name]
                if new:
                    kept_for[name] |= new
                    changed = True
        return kept_for

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
