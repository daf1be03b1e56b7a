"""What a weight costs under a layout: its gradient's collectives, its update, and its memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.operators.judgement import Judgement
from irtool.operators.layout import TensorLayout, replicas
from irtool.planning.cost.costs import (
    ALONE,
    Communication,
    Fusion,
    gradient_communications,
    seconds_of,
    update_seconds,
)
from irtool.planning.cost.structure import Parameter, Structure
from irtool.sharding.network.states import ParameterReport
from irtool.sharding.network.weights import shared_state


@dataclass(frozen=True, slots=True)
class WeightCost:
    """A weight's part of a step.

    ``weights``, ``gradients`` and ``states`` are bytes that one device holds of it.
    ``accumulated``: of a sum of its gradients that stays from micro-batch to micro-batch.
    ``micro_batches``: over how many the gradient is summed; ``seconds`` are for one of them.
    """

    mirrors: tuple[Communication, ...]
    shared: tuple[Communication, ...]
    update: float
    weights: int
    gradients: int
    states: int
    micro_batches: int = 1
    accumulated: int = 0

    @property
    def seconds(self) -> float:
        """All of it, one after the other."""
        total = self.update + seconds_of(self.mirrors) + seconds_of(self.shared)
        return total / self.micro_batches

    @property
    def stored_bytes(self) -> int:
        """Weight, gradient, sum of gradients and optimizer states."""
        return self.weights + self.gradients + self.states + self.accumulated


def held_weight(
    structure: Structure, parameter: Parameter, judgement: Judgement | None
) -> ParameterReport:
    """How a weight lies under a judgement of its owner: layout, slices, ranks that share it.

    Args:
        structure: of the network.
        parameter: the weight.
        judgement: of the operator that decides how the weight lies; None: no operator does.
    """
    owner = parameter.owner
    weight = parameter.weight
    layout = owner.of(judgement) if owner is not None else None
    base = weight.shape
    if layout is not None:
        base = layout.slice_shape
        if owner is not None and judgement is not None and owner.side == "input":
            base = judgement.input_slices[owner.index]
    held = replace(weight, layout=layout, slice=base, base=base, mirror_ranks=None)
    return shared_state(held, structure.context, structure.operators)


def weight_cost(
    structure: Structure, parameter: Parameter, judgement: Judgement | None, machine: Machine
) -> WeightCost:
    """The cost of a weight under a judgement of the operator that decides how it lies.

    Args:
        structure: of the network.
        parameter: the weight.
        judgement: of the operator that decides how the weight lies; None: no operator does.
        machine: that its collectives and its update run on.

    Returns:
        seconds for one micro-batch, and bytes of one device.
    """
    owner = parameter.owner
    held = held_weight(structure, parameter, judgement)
    layout, base = held.layout, held.base or ()
    gather = held.gather_ranks
    mirror = held.mirror_ranks if gather is not None else None
    if gather is None and layout is not None:
        ref = parameter.mirror
        same = (
            ref is not None
            and judgement is not None
            and owner is not None
            and ref.node is not None
            and ref.node is owner.node
            and ref.index < len(judgement.mirrors)
        )
        if same and ref is not None and judgement is not None:
            mirror = judgement.mirrors[ref.index]
        else:
            operators = structure.operators
            mirror = replicas(layout, operators.devices, operators.own_rank)
    cost = priced_weight(
        prod(base) * parameter.element,
        prod(held.slice or ()) * parameter.element,
        int(prod(held.slice or ()) * parameter.states),
        mirror if parameter.trained else None,
        gather,
        machine,
        structure.fusion_of(parameter),
        trained=parameter.trained,
        whole=structure.context.sums_before_scatter,
    )
    summed = (held.slice if structure.context.accumulation_shard else base) or ()
    return replace(
        cost,
        micro_batches=structure.micro_batches,
        accumulated=int(prod(summed) * parameter.accumulated),
    )


def priced_weight(
    base: int,
    stored: int,
    states: int,
    mirror: tuple[int, ...] | None,
    gather: tuple[int, ...] | None,
    machine: Machine,
    fusion: Fusion = ALONE,
    *,
    trained: bool,
    whole: bool = False,
) -> WeightCost:
    """The cost of a weight of which everything is known; sizes in bytes of one device.

    Args:
        base: of the slice that operators see.
        stored: of the slice that the device stores: with optimizer parallel a part of that.
        states: of its optimizer states.
        mirror: ranks that sum its gradient; None: nobody does.
        gather: ranks that share its optimizer state; None: it is not shared.
        machine: that its collectives and its update run on.
        fusion: with how many others its collectives may be fused.
        trained: whether it has a gradient and an update.
        whole: whether the gradient is summed before it is scattered.
    """
    mirrors, shared = gradient_communications(base, mirror, gather, machine, fusion, whole=whole)
    if not trained:
        shared = [item for item in shared if item.phase == "forward"]
    return WeightCost(
        tuple(mirrors),
        tuple(shared),
        update_seconds(stored, states, machine) if trained else 0.0,
        stored,
        stored if trained else 0,
        states,
    )


def judgement_of_weight(index: int, layout: TensorLayout, mirror: tuple[int, ...]) -> Judgement:
    """A judgement of which only what is said of one input is known.

    Args:
        index: of the weight among the operator's inputs.
        layout: of the weight.
        mirror: ranks that sum its gradient.
    """
    return Judgement(
        "legal",
        (),
        input_layouts=(layout,) * (index + 1),
        input_slices=(layout.slice_shape,) * (index + 1),
        mirrors=(mirror,) * (index + 1),
    )
