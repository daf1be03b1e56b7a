"""Optimizer parallel by weight and recomputation by operator, as decisions of the search.

Both belong to one operator alone, so that they cost the search nothing in width: an operator has
further ways to run, each with its own seconds and bytes.

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
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from irtool.cluster.account import fused_bytes
from irtool.cluster.memory_layers import NETWORK, layer_of_scope
from irtool.ir.graph import Node
from irtool.planning.cost.costs import compute_seconds
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import Parameter, Structure
from irtool.planning.cost.weights import WeightCost, weight_cost
from irtool.planning.limits.ways import Choice, Ways
from irtool.planning.plans.cost_items import CostItem
from irtool.planning.plans.cost_report import StepCost
from irtool.planning.plans.cost_shared import with_common_starts
from irtool.planning.search.exact import Floats
from irtool.planning.search.tables import Model, kept_bytes
from irtool.sharding.network.care import primitive


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided beside strategies; nodes are those of the dump without strategies.

    Attributes:
        sharded: weights that optimizer parallel cuts; ``whole``: others that it could cut. None:
            the context decides.
        recomputed: operators that run again; None: nobody asked.
        seconds: that recomputation adds to a step.
        saved: bytes of results that are not kept; ``held``: bytes of the largest layer, while it
            is recomputed.
    """

    sharded: tuple[str, ...] | None
    whole: tuple[str, ...]
    recomputed: tuple[Node, ...] | None
    seconds: float = 0.0
    saved: int = 0
    held: int = 0


class DecidedWays:
    """The ways of all operators of a model.

    Args:
        model: its context has optimizer parallel off, if that is to be decided.
        optimizer: whether to decide optimizer parallel.
        recompute: whether to decide recomputation.
        inside: of a pipeline stage, its operators: all others have one way.
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
        self._known: dict[object, Ways] = {}
        self._shares = self._shares_of_layers()
        self.ways = [self._of(at) for at in range(len(model.nodes))]

    def is_sharded(self, way: int) -> bool:
        """Whether a way cuts the operator's weights."""
        return self.optimizer and way % 2 == 1

    def is_recomputed(self, way: int) -> bool:
        """Whether a way runs the operator again."""
        return self.recompute and (way // 2 if self.optimizer else way) == 1

    def above(self, choices: Sequence[int], ways: Sequence[int]) -> float:
        """Bytes that the largest layer holds while it is recomputed, above the shares of all.

        A mean of layers is at most the largest, and it adds up operator by operator.
        """
        layers = self._recomputed(choices, ways)
        shares = sum(self._shares.get(layer, 0.0) * held for layer, held in layers.items())
        return max(layers.values(), default=0.0) - shares

    def made(self, at: int, choice: int, way: int) -> float:
        """Bytes that an operator makes anew."""
        return self._kept(at, choice) if self.is_recomputed(way) else 0.0

    def layer(self, at: int) -> str:
        """The layer of an operator."""
        return layer_of_scope(self.model.nodes[at].scope)

    def share(self, at: int) -> float:
        """The share of what an operator makes anew that it holds."""
        return self._shares.get(self.layer(at), 0.0)

    def _shares_of_layers(self) -> dict[str, float]:
        """Equal shares for the layers that may be the largest: those of about the largest size."""
        sizes: dict[str, float] = {}
        for at, node in enumerate(self.model.nodes) if self.recompute else ():
            if self._may_run_again(node):
                layer = self.layer(at)
                sizes[layer] = sizes.get(layer, 0.0) + self._kept(at, 0)
        largest = max(sizes.values(), default=0.0)
        large = [layer for layer, size in sizes.items() if size >= 0.9 * largest]
        return {layer: 1 / len(large) for layer in large}

    def _recomputed(self, choices: Sequence[int], ways: Sequence[int]) -> dict[str, float]:
        """Bytes that recomputation makes anew, by layer."""
        layers: dict[str, float] = {}
        for at, (choice, way) in enumerate(zip(choices, ways, strict=True)):
            if self.is_recomputed(way):
                node = self.model.nodes[at]
                layer = layer_of_scope(node.scope)
                layers[layer] = layers.get(layer, 0.0) + self._kept(at, choice)
        return layers

    def _kept(self, at: int, choice: int) -> float:
        judgement = self.model.candidates[at].items[choice].judgement
        return kept_bytes(self.model.structure, self.model.nodes[at], judgement)

    def _of(self, at: int) -> Ways:
        model, node = self.model, self.model.nodes[at]
        if self._inside is not None and node not in self._inside:
            return self._plain(at)
        owned = [item for item in self._owned.get(node, ()) if item.trained]
        again = self.recompute and self._may_run_again(node)
        shown = tuple(
            (p.owner.side, p.owner.index, p.dtype, p.states, p.weight.shape)
            for p in owned
            if p.owner is not None
        )
        key = (id(model.unary[at]), id(model.memory[at]), shown, again, self.share(at))
        found = self._known.get(key)
        if found is not None:
            return found
        seconds, held = [model.unary[at]], [model.memory[at]]
        if self.optimizer:
            more = self._sharded(at, owned)
            seconds.append(seconds[0] + more[0])
            held.append(held[0] + more[1])
        if self.recompute:
            more = self._again(at) if again else (np.full(len(model.unary[at]), inf), np.zeros(1))
            seconds += [each + more[0] for each in list(seconds)]
            saved = more[1] * (self._in_flight - self.share(at))
            held += [each - saved for each in list(held)]
        found = self._known[key] = Ways(tuple(seconds), tuple(held))
        return found

    def _plain(self, at: int) -> Ways:
        """The one way of an operator of which nothing is decided."""
        seconds, held = self.model.unary[at], self.model.memory[at]
        key = (id(seconds), id(held))
        if key not in self._known:
            self._known[key] = Ways((seconds,), (held,))
        return self._known[key]

    def _sharded(self, at: int, owned: Sequence[Parameter]) -> tuple[Floats, Floats]:
        """Seconds and bytes that optimizer parallel adds."""
        items = self.model.candidates[at].items
        seconds, held = np.zeros(len(items)), np.zeros(len(items))
        for place in range(len(items)) if owned else ():
            for parameter in owned:
                whole, cut = self.costs(parameter, at, place)
                seconds[place] += cut.seconds - whole.seconds
                held[place] += cut.stored_bytes - whole.stored_bytes
        if not held.any():
            seconds[:] = inf  # there is nothing to cut
        return seconds, held

    def costs(self, parameter: Parameter, at: int, choice: int) -> tuple[WeightCost, WeightCost]:
        """A weight whole and cut."""
        judgement = self.model.candidates[at].items[choice].judgement
        machine = self.model.machine
        return (
            weight_cost(self.model.structure, parameter, judgement, machine),
            weight_cost(self._sharding, parameter, judgement, machine),
        )

    def _gathered(self, parameter: Parameter, whole: WeightCost, cut: WeightCost) -> int:
        """Bytes of a weight that stays gathered for the backward pass where it is cut."""
        is_cut = cut.weights != whole.weights
        return whole.weights if is_cut and self.model.structure.reads(parameter) else 0

    def owned(self, at: int) -> Sequence[Parameter]:
        """Trained weights that an operator decides."""
        return [item for item in self._owned.get(self.model.nodes[at], ()) if item.trained]

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

    def _again(self, at: int) -> tuple[Floats, Floats]:
        """Seconds that running an operator again adds, and bytes of results that it saves."""
        structure, node = self.model.structure, self.model.nodes[at]
        judged = structure.calls[node]
        items = self.model.candidates[at].items
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
        whole: list[str] = []
        again: list[Node] = []
        seconds, saved = 0.0, 0.0
        for at, (candidate, way) in enumerate(zip(choice.choices, choice.ways, strict=True)):
            for parameter in self.owned(at) if self.optimizer else ():
                before, after = self.costs(parameter, at, candidate)
                if before.stored_bytes != after.stored_bytes:
                    (sharded if self.is_sharded(way) else whole).append(parameter.name)
            if self.is_recomputed(way):
                again.append(self.model.nodes[at])
                more = self._again(at)
                seconds += float(more[0][candidate])
                saved += float(more[1][candidate])
        return Decisions(
            tuple(sharded) if self.optimizer else None,
            tuple(whole),
            tuple(again) if self.recompute else None,
            seconds,
            int(saved),
            int(max(self._recomputed(choice.choices, choice.ways).values(), default=0.0)),
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
        weights = {item.name: at for at, item in enumerate(items) if item.kind == "weight"}
        for at, (candidate, way) in enumerate(zip(choice.choices, choice.ways, strict=True)):
            for parameter in self.owned(at) if self.is_sharded(way) else ():
                before, after = self.costs(parameter, at, candidate)
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
            if self.is_recomputed(way):
                node = twins[self.model.nodes[at]]
                seconds = float(self._again(at)[0][candidate])
                name = f"{primitive(node)} again"
                items.append(CostItem("recompute", node, name, {"compute": seconds}, ()))
        priced = with_common_starts(items, cost.machine)
        launches = (each.launch for item in priced for each in item.communications)
        memory = replace(memory, fused=fused_bytes(launches))
        return replace(cost, items=priced, memory=memory)


def _weight_item(item: CostItem, cost: WeightCost) -> CostItem:
    seconds = {
        "optimizer": cost.update,
        "gradients": sum(each.seconds for each in cost.mirrors),
        "optimizer parallel": sum(each.seconds for each in cost.shared),
    }
    return replace(item, seconds=seconds, communications=(*cost.mirrors, *cost.shared))
