"""Optimizer states: they lie like the weight that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.parameter_roles import Role, is_accumulated
from irtool.operators.layout import Shape, TensorLayout
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.sharded_nodes import primitive

FACTORED = ("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_insta_row", "exp_avg_insta_col")
"""States that hold sums over the last dimension, or over the last but one."""


@dataclass(frozen=True, slots=True)
class ParameterReport:
    """A parameter of the network as this rank holds it.

    Attributes:
        name: of the parameter.
        parameter: of the dump.
        shape: of the whole.
        slice: what is stored: with optimizer parallel a part of ``base``; None: not known.
        base: the slice that operators see.
        layout: of the base.
        mirror_ranks: who sums this parameter's gradient; None: nobody.
        gather_ranks: with optimizer parallel, who gathers the weight before it is used.
        scatter_ranks: over whom the gradient is reduced and scattered.
        user: the operator that decided the layout.
        why: why something is not known.
        role: what it is.
        weight: the weight that it belongs to, its own name for a weight.
        is_read: whether operators of this stage use it; else its optimizer only updates it, and
            nothing gathers it.
    """

    name: str
    parameter: GraphParameter
    shape: Shape
    slice: Shape | None
    base: Shape | None
    layout: TensorLayout | None
    mirror_ranks: tuple[int, ...] | None = None
    gather_ranks: tuple[int, ...] | None = None
    scatter_ranks: tuple[int, ...] | None = None
    user: Node | None = None
    why: str = ""
    role: Role = "weight"
    weight: str = ""
    is_read: bool = True


def original_of(
    weight: ParameterReport, weights: Mapping[str, ParameterReport]
) -> ParameterReport | None:
    """The weight that a state is kept for; None for what is kept for none.

    Args:
        weight: the parameter in question.
        weights: of the entry, by name.
    """
    return weights.get(weight.weight) if weight.weight != weight.name else None


def like_original(
    analysis: Analysis, weight: ParameterReport, weights: Mapping[str, ParameterReport]
) -> ParameterReport:
    """An optimizer's state, or a sum of gradients, as its weight makes it lie.

    Args:
        analysis: that knows which weight an optimizer updates together with a state.
        weight: any parameter; what operators of the network use, and what belongs to no weight, is
            given back as it is.
        weights: of the entry, by name.
    """
    if weight.user is not None and not is_accumulated(weight.name):
        return weight
    original = original_of(weight, weights)
    if original is None:
        original = _beside(analysis, weight, weights)
    if original is None or original is weight:
        return weight
    if original.slice is None:
        if original.shape != weight.shape and not weight.name.startswith(FACTORED):
            return weight
        return replace(weight, slice=None, base=None, layout=None, why=original.why)
    if original.shape == weight.shape:
        local = original.slice
        if is_accumulated(weight.name) and not analysis.context.accumulation_shard:
            local = original.base
        return replace(weight, slice=local, base=original.base, layout=original.layout)
    local = _factored(weight, original)
    return weight if local is None else replace(weight, slice=local, base=local)


def _factored(weight: ParameterReport, original: ParameterReport) -> Shape | None:
    """The slice of a state without one of its weight's last two dimensions, or None."""
    if not weight.name.startswith(FACTORED) or len(original.shape) < 2 or original.slice is None:
        return None
    if weight.shape == original.shape[:-1] and "_row" in weight.name:
        return original.slice[:-1]
    if weight.shape == (*original.shape[:-2], original.shape[-1]) and "_col" in weight.name:
        return (*original.slice[:-2], original.slice[-1])
    return None


def _beside(
    analysis: Analysis, weight: ParameterReport, weights: Mapping[str, ParameterReport]
) -> ParameterReport | None:
    """The weight that an optimizer's operator updates together with this state."""
    by_parameter = {id(item.parameter): item for item in weights.values()}
    network = analysis.network
    for use in network.users_of(weight.parameter):
        if primitive(use.node) in ("Load", "UpdateState", "Depend"):
            continue
        beside = [
            other
            for source in network.inputs[use.node]
            if (other := by_parameter.get(id(source))) is not None
            and other is not weight
            and other.layout is not None
            and other.shape == weight.shape
        ]
        if len(beside) == 1:
            return beside[0]
    return None
