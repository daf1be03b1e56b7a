"""AllGathers that MindSpore merges before the gradients are made, and with them their gradients.

Of the AllGathers that gather one result, with nothing or Reshapes before them, one takes the place
of all where all of them gather among the same ranks, and all or none come right behind a Reshape to
the same shape. Nothing else about them is compared. Where one differs each keeps its own, and so
does what gathers the parameter of a graph, or what a called graph gives. Networks without gradients
are left as they are, and so is every other collective: equal ones are merged after the gradients.

Source: ``MergeAllGather`` of ``frontend/parallel/pass/merge_comm.cc``, and validate dumps of
MindSpore 2.7.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from irtool.ir.graph import Node, Source, likeliest
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.edges import Edge, Redistribution
from irtool.sharding.network.graphs import Use, is_operator
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.redistribution import RedistributionStep

Steps = Sequence[RedistributionStep]


def merged_gathers(
    analysis: Analysis, redistributions: Iterable[Redistribution]
) -> Mapping[Use, Hashable]:
    """The uses before which an AllGather is one of several that are merged, each with its value.

    Args:
        analysis: the network.
        redistributions: what is inserted before uses of its own stage.
    """
    if not analysis.differentiates:
        return {}
    items = list(redistributions)
    instead = {item.edge.consumer: item.operators or () for item in items if item.replaces}
    gathers: dict[Hashable, dict[Use, Hashable]] = {}
    for item in items:
        steps = as_far_as_the_first(item.operators or ())
        before = steps[:-1]
        if not steps or steps[-1].op != "AllGather" or not _only_reshapes(before):
            continue
        shape = before[-1].output_shape if before else None
        source = _before(analysis, instead, item.edge, shape)
        if source is not None:
            value, reshaped = source
            edge = item.edge
            use = Use(edge.consumer, edge.position, edge.item)
            gathers.setdefault(value, {})[use] = steps[-1].ranks, reshaped
    return {
        use: value
        for value, uses in gathers.items()
        if len(uses) > 1 and len(set(uses.values())) == 1
        for use in uses
    }


def _before(
    analysis: Analysis, instead: Mapping[Node, Steps], edge: Edge, shape: Hashable
) -> tuple[Hashable, Hashable] | None:
    """The result behind all Reshapes before an AllGather, and the Reshape right before it."""
    output = edge.output if edge.consumer.is_return else 0
    value: Source | None = edge.producer if edge.consumer.is_return else operand_of(edge)
    while isinstance(value, Node) and primitive(value) == "Reshape":
        if not _only_reshapes(instead.get(value, ())):
            break  # it was replaced by what communicates itself
        shape = id(value) if shape is None else shape
        value = analysis.network.first(value)
    if not isinstance(value, Node) or not is_operator(value):
        return None
    return (id(value), output), shape


def _only_reshapes(steps: Steps) -> bool:
    return all(step.op == "Reshape" for step in steps)


def as_far_as_the_first(steps: Steps) -> tuple[RedistributionStep, ...]:
    """The steps of a chain up to the first that communicates, that included.

    Args:
        steps: of one redistribution, in order; all of them where none communicates.
    """
    end = next((index for index, step in enumerate(steps) if step.is_collective), len(steps) - 1)
    return tuple(steps[: end + 1])


def operand_of(edge: Edge) -> Source:
    """What stands behind the operand that an edge ends in: the same object for the same value.

    Args:
        edge: through the MakeTuple before its consumer, where there is one.
    """
    holder, position = (edge.consumer, edge.position)
    if edge.tie is not None:
        holder, position = edge.tie, edge.item
    return likeliest(holder.inputs[position])
