"""Optimizer parallel by weight and recomputation by operator, as decisions of the search.

Both belong to one operator alone, so that they cost the search nothing in width: an operator has
further modes to run, each with its own seconds and bytes.

* Optimizer parallel: the weights that an operator decides are cut over their replicas, or not.
  MindSpore takes that as ``enable_parallel_optimizer`` with ``parallel_optimizer=False`` on
  parameters that stay whole.
* Recomputation: an operator's results are not kept, its forward pass is run again.  Operators whose
  results are communicated keep them (``mp_comm_recompute=False``), and so do those whose results
  leave their layer: then layers are recomputed one at a time, and what the largest of them makes is
  held while it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from math import inf

import numpy as np

from irtool.cluster.account import fused_bytes
from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.cost.costs import compute_seconds
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import Parameter, Structure
from irtool.planning.cost.weights import WeightCost, weight_cost
from irtool.planning.limits.modes import Choice, Modes
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import StepCost
from irtool.planning.plans.step.shared import with_common_starts
from irtool.planning.search.exact import Floats
from irtool.planning.search.own_costs import kept_bytes
from irtool.planning.search.tables import Model
from irtool.sharding.network.sharded_nodes import primitive


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided beside strategies; nodes are those of the dump without strategies.

    Attributes:
        sharded: weights that optimizer parallel cuts; None: the context decides.
        unsharded: others that it could cut.
        recomputed: operators that run again; None: nobody asked.
        seconds: that recomputation adds to a step.
        saved: bytes of results that are not kept; ``held``: bytes of the largest layer, while it
            is recomputed.
    """

    sharded: tuple[str, ...] | None
    unsharded: tuple[str, ...]
    recomputed: tuple[Node, ...] | None
    seconds: float = 0.0
    saved: int = 0
    held: int = 0


class DecidedModes:
    """The modes of all operators of a model.

    Args:
        model: its context has optimizer parallel off, if that is to be decided.
        optimizer: whether to decide optimizer parallel.
        recompute: whether to decide recomputation.
        inside: of a pipeline stage, its operators: all others have one mode.
        in_flight: micro-batches whose results are held at once.
    """

    def __init__(
        self,
        model: Model,
        *,
        optimizer: bool,
        recompute: bool,
        inside: Set[Node] | None = None,
        in_flight: int = 1,
    ) -> None:
        self.model = model
        self._inside = inside
        self._in_flight = in_flight
        self.optimizer = optimizer
        self.recompute = recompute
        structure = model.structure
        context = replace(structure.context, parallel_optimizer=True)
        self._sharding: Structure = replace(structure, context=context)
        self._owned: dict[Node, list[Parameter]] = {}
        for parameter in structure.parameters:
            if parameter.owner is not None and parameter.owner.node is not None:
                self._owned.setdefault(parameter.owner.node, []).append(parameter)
        self._known: dict[object, Modes] = {}
        self._shares = self._shares_of_layers()
        self.modes = [self._of(variable) for variable in range(len(model.nodes))]

    def is_sharded(self, mode: int) -> bool:
        """Whether a mode cuts the operator's weights."""
        return self.optimizer and mode % 2 == 1

    def is_recomputed(self, mode: int) -> bool:
        """Whether a mode runs the operator again."""
        return self.recompute and (mode // 2 if self.optimizer else mode) == 1

    def above(self, choices: Sequence[int], modes: Sequence[int]) -> float:
        """Bytes that the largest layer holds while it is recomputed, above the shares of all.

        A mean of layers is at most the largest, and it adds up operator by operator.
        """
        layers = self._recomputed(choices, modes)
        shares = sum(self._shares.get(layer, 0.0) * held for layer, held in layers.items())
        return max(layers.values(), default=0.0) - shares

    def made(self, variable: int, choice: int, mode: int) -> float:
        """Bytes that an operator makes anew."""
        return self._kept(variable, choice) if self.is_recomputed(mode) else 0.0

    def layer(self, variable: int) -> str:
        """The layer of an operator."""
        return layer_of_scope(self.model.nodes[variable].scope)

    def share(self, variable: int) -> float:
        """The share of what an operator makes anew that it holds."""
        return self._shares.get(self.layer(variable), 0.0)

    def _shares_of_layers(self) -> dict[str, float]:
        """Equal shares for the layers that may be the largest: those of about the largest size."""
        sizes: dict[str, float] = {}
        for variable, node in enumerate(self.model.nodes) if self.recompute else ():
            if self._may_run_again(node):
                layer = self.layer(variable)
                sizes[layer] = sizes.get(layer, 0.0) + self._kept(variable, 0)
        largest = max(sizes.values(), default=0.0)
        large = [layer for layer, size in sizes.items() if size >= 0.9 * largest]
        return {layer: 1 / len(large) for layer in large}

    def _recomputed(self, choices: Sequence[int], modes: Sequence[int]) -> dict[str, float]:
        """Bytes that recomputation makes anew, by layer."""
        layers: dict[str, float] = {}
        for variable, (choice, mode) in enumerate(zip(choices, modes, strict=True)):
            if self.is_recomputed(mode):
                node = self.model.nodes[variable]
                layer = layer_of_scope(node.scope)
                layers[layer] = layers.get(layer, 0.0) + self._kept(variable, choice)
        return layers

    def _kept(self, variable: int, choice: int) -> float:
        judgement = self.model.candidates[variable].items[choice].judgement
        return kept_bytes(self.model.structure, self.model.nodes[variable], judgement)

    def _of(self, variable: int) -> Modes:
        model, node = self.model, self.model.nodes[variable]
        if self._inside is not None and node not in self._inside:
            return self._plain(variable)
        owned = [item for item in self._owned.get(node, ()) if item.trained]
        again = self.recompute and self._may_run_again(node)
        shown = tuple(
            (p.owner.side, p.owner.index, p.dtype, p.states, p.weight.shape)
            for p in owned
            if p.owner is not None
        )
        key = (
            id(model.unary[variable]),
            id(model.memory[variable]),
            shown,
            again,
            self.share(variable),
        )
        modes = self._known.get(key)
        if modes is not None:
            return modes
        seconds, held = [model.unary[variable]], [model.memory[variable]]
        if self.optimizer:
            more = self._sharded(variable, owned)
            seconds.append(seconds[0] + more[0])
            held.append(held[0] + more[1])
        if self.recompute:
            more = (
                self._again(variable)
                if again
                else (np.full(len(model.unary[variable]), inf), np.zeros(1))
            )
            seconds += [spent + more[0] for spent in list(seconds)]
            saved = more[1] * (self._in_flight - self.share(variable))
            held += [size - saved for size in list(held)]
        modes = self._known[key] = Modes(tuple(seconds), tuple(held))
        return modes

    def _plain(self, variable: int) -> Modes:
        """The one mode of an operator of which nothing is decided."""
        seconds, held = self.model.unary[variable], self.model.memory[variable]
        key = (id(seconds), id(held))
        if key not in self._known:
            self._known[key] = Modes((seconds,), (held,))
        return self._known[key]

    def _sharded(self, variable: int, owned: Sequence[Parameter]) -> tuple[Floats, Floats]:
        """Seconds and bytes that optimizer parallel adds."""
        items = self.model.candidates[variable].items
        seconds, held = np.zeros(len(items)), np.zeros(len(items))
        for place in range(len(items)) if owned else ():
            for parameter in owned:
                uncut, cut = self.costs(parameter, variable, place)
                seconds[place] += cut.seconds - uncut.seconds
                held[place] += cut.stored_bytes - uncut.stored_bytes
        if not held.any():
            seconds[:] = inf  # there is nothing to cut
        return seconds, held

    def costs(
        self, parameter: Parameter, variable: int, choice: int
    ) -> tuple[WeightCost, WeightCost]:
        """A weight whole and cut."""
        judgement = self.model.candidates[variable].items[choice].judgement
        machine = self.model.machine
        return (
            weight_cost(self.model.structure, parameter, judgement, machine),
            weight_cost(self._sharding, parameter, judgement, machine),
        )

    def _gathered(self, parameter: Parameter, uncut: WeightCost, cut: WeightCost) -> int:
        """Bytes of a weight that stays gathered for the backward pass where it is cut."""
        is_cut = cut.weights != uncut.weights
        return uncut.weights if is_cut and self.model.structure.reads(parameter) else 0

    def owned(self, variable: int) -> Sequence[Parameter]:
        """Trained weights that an operator decides."""
        return [item for item in self._owned.get(self.model.nodes[variable], ()) if item.trained]

    def _may_run_again(self, node: Node) -> bool:
        structure = self.model.structure
        if node not in structure.with_gradient or primitive(node) in FIXED:
            return False
        if self._inside is not None and node not in self._inside:
            return False
        layer = layer_of_scope(node.scope)
        if layer == NETWORK:
            return False
        return all(layer_of_scope(user.scope) == layer for user in node.users)

    def _again(self, variable: int) -> tuple[Floats, Floats]:
        """Seconds that running an operator again adds, and bytes of results that it saves."""
        structure, node = self.model.structure, self.model.nodes[variable]
        judged = structure.calls[node]
        items = self.model.candidates[variable].items
        seconds, saved = np.zeros(len(items)), np.zeros(len(items))
        for place, item in enumerate(items):
            kept = kept_bytes(structure, node, item.judgement)
            if item.judgement.collectives or not kept:
                seconds[place] = inf
                continue
            seconds[place] = structure.runs(node) * compute_seconds(
                judged.call.call, item.judgement, self.model.machine, gradient=False
            )
            saved[place] = kept
        return seconds, saved

    # -- the answer ----------------------------------------------------------------------------

    def decided(self, choice: Choice) -> Decisions:
        """What a choice says of weights and operators."""
        sharded: list[str] = []
        unsharded: list[str] = []
        again: list[Node] = []
        seconds, saved = 0.0, 0.0
        chosen = zip(choice.choices, choice.modes, strict=True)
        for variable, (candidate, mode) in enumerate(chosen):
            for parameter in self.owned(variable) if self.optimizer else ():
                before, after = self.costs(parameter, variable, candidate)
                if before.stored_bytes != after.stored_bytes:
                    (sharded if self.is_sharded(mode) else unsharded).append(parameter.name)
            if self.is_recomputed(mode):
                again.append(self.model.nodes[variable])
                more = self._again(variable)
                seconds += float(more[0][candidate])
                saved += float(more[1][candidate])
        return Decisions(
            tuple(sharded) if self.optimizer else None,
            tuple(unsharded),
            tuple(again) if self.recompute else None,
            seconds,
            int(saved),
            int(max(self._recomputed(choice.choices, choice.modes).values(), default=0.0)),
        )

    def priced(self, cost: StepCost, choice: Choice, twins: Mapping[Node, Node]) -> StepCost:
        """A plan's cost with what was decided.

        Args:
            cost: of the plan without it; of what it keeps, recomputation is left out already.
            choice: what was chosen.
            twins: nodes of the plan's dump by node of the model.
        """
        items = list(cost.items)
        memory = replace(cost.memory, recomputed=self.decided(choice).held)
        weights = {
            item.name: position for position, item in enumerate(items) if item.kind == "weight"
        }
        chosen = zip(choice.choices, choice.modes, strict=True)
        for variable, (candidate, mode) in enumerate(chosen):
            for parameter in self.owned(variable) if self.is_sharded(mode) else ():
                before, after = self.costs(parameter, variable, candidate)
                place = weights.get(parameter.name)
                if place is not None:
                    items[place] = _weight_item(items[place], after)
                memory = replace(
                    memory,
                    weights=memory.weights + after.weights - before.weights,
                    gradients=memory.gradients + after.gradients - before.gradients,
                    states=memory.states + after.states - before.states,
                    gathered=memory.gathered + self._gathered(parameter, before, after),
                )
            if self.is_recomputed(mode):
                node = twins[self.model.nodes[variable]]
                seconds = float(self._again(variable)[0][candidate])
                name = f"{primitive(node)} again"
                items.append(CostItem("recompute", node, name, {"compute": seconds}, ()))
        priced = with_common_starts(items, cost.machine)
        launches = (
            communication.launch for item in priced for communication in item.communications
        )
        memory = replace(memory, fused=fused_bytes(launches))
        return replace(cost, items=priced, memory=memory)


def _weight_item(item: CostItem, cost: WeightCost) -> CostItem:
    seconds = {
        "optimizer": cost.update,
        "gradients": sum(communication.seconds for communication in cost.mirrors),
        "optimizer parallel": sum(communication.seconds for communication in cost.shared),
    }
    return replace(item, seconds=seconds, communications=(*cost.mirrors, *cost.shared))
