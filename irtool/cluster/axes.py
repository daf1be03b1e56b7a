"""Which axis of parallelism a collective serves, from why it is there and which ranks it joins.

The cause decides where it can: gradients of replicated parameters serve data parallelism, sharded
weights the optimizer, partial sums of a matrix product tensor parallelism, transfers between stages
the pipeline.  A redistribution or a reduction of another operator is judged by its ranks: those of
a group that shares gradients are data parallel, those that meet such groups in one rank at most are
tensor parallel, and what is neither is unknown.  Tokens on their way to and from experts are known
by the products behind them: of a batch of matrices with a parameter of three dimensions.  A
backward collective serves what its forward one serves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from irtool.cluster.sources import user_location
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.operators.table import operator_of

Axis: TypeAlias = Literal[
    "data", "tensor", "pipeline", "optimizer", "expert", "sequence", "data and tensor", "unknown"
]
"""``sequence``: keys and values passed round in ring attention; ``data and tensor``: a group that
holds ranks of both."""

_CERTAIN: dict[str, Axis] = {
    "mirror": "data",
    "adasum": "data",
    "optimizer parallel": "optimizer",
    "pipeline": "pipeline",
    "result broadcast": "pipeline",
    "ring attention": "sequence",
}
_REDUCING = ("forward reduction", "operator")
"""Origins of partial sums: the sum behind a lookup in a split table is the operator's own."""
_EXPERT = re.compile(r"moe|expert", re.IGNORECASE)
_ALL_TO_ALL = ("AlltoAll", "AlltoAllV", "AlltoAllVC")
_MOVING = ("Depend", "Load", "MakeTuple", "TupleGetItem", "AllGather", "AlltoAll", "AlltoAllV")
"""What only passes tensors on or round, beside operators that move elements."""
_READING = ("Load", "Depend", "AllGather", "StopGradient")
"""What only hands tensors on, beside operators that convert them."""
_PASSED_ROUND = "FLASH_INDEX"
"""Attribute of an exchange of keys and values: between which pieces, and in which step."""
_FARTHEST = 60
"""Nodes that are looked at on the way from a transfer of tokens to the experts."""
_PASSING = ("Depend", "Reshape", "Load", "TupleGetItem", "Mul", "StopGradient")


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Groups that show axes: ``data`` are the smallest that share gradients."""

    data: tuple[frozenset[int], ...]
    tensor: frozenset[frozenset[int]]


def _hands_on(op: str, names: tuple[str, ...]) -> bool:
    return op in names or operator_of(op).is_("converts")


def axes(collectives: Sequence[Collective]) -> dict[Node, Axis]:
    """The axis of parallelism that each collective of one dump serves.

    Args:
        collectives: all of the dump, since groups that share gradients tell of others.

    Returns:
        By node; ``unknown`` where neither cause nor ranks decide.
    """
    evidence = _evidence(collectives)
    axis_of: dict[Node, Axis] = {}
    forward: dict[str, Axis] = {}
    for item in sorted(collectives, key=lambda one: one.is_gradient):
        forward_id = item.node.forward_unique_id
        known = forward.get(forward_id) if forward_id is not None else None
        certain = _CERTAIN.get(item.origin)
        if certain is None and known not in (None, "unknown"):
            axis_of[item.node] = known or "unknown"
        else:
            axis_of[item.node] = certain or _by_place(item, evidence)
        if item.node.unique_id is not None:
            forward[item.node.unique_id] = axis_of[item.node]
    return axis_of


def axis_of_ranks(
    ranks: Iterable[int], sharing: Iterable[frozenset[int]], products: Iterable[frozenset[int]]
) -> Axis:
    """The axis that a group of ranks stands for.

    Args:
        ranks: the group.
        sharing: groups that sum gradients or share weights.
        products: groups that sum what products of matrices leave.
    """
    shared = set(sharing)
    smallest = tuple(group for group in shared if not any(other < group for other in shared))
    return _by_ranks(frozenset(ranks), _Evidence(smallest, frozenset(products)))


def sums_product(op: str) -> bool:
    """Whether an operator multiplies matrices, so that what it sums is tensor parallel.

    Args:
        op: name of the primitive; a look-up in a table counts, too.
    """
    entry = operator_of(op)
    looks_up = entry.computes == "lookup" and entry.is_("picks")
    return looks_up or entry.computes in ("matmul", "convolution")


def passes_round(op: str, communication: str) -> bool:
    """Whether an attention hands keys and values of a split sequence to its neighbours.

    Args:
        op: name of the primitive.
        communication: name of the collective that it brings with it.
    """
    return operator_of(op).computes == "attention" and communication.startswith("NeighborExchange")


def _evidence(collectives: Iterable[Collective]) -> _Evidence:
    shared: set[frozenset[int]] = set()
    tensor: set[frozenset[int]] = set()
    for item in collectives:
        if item.ranks is None or len(item.ranks) < 2:
            continue
        ranks = frozenset(item.ranks)
        if item.origin in ("mirror", "optimizer parallel", "adasum"):
            shared.add(ranks)
        elif item.origin in _REDUCING and _reduces_product(item.node):
            tensor.add(ranks)
    smallest = tuple(ranks for ranks in shared if not any(other < ranks for other in shared))
    return _Evidence(smallest, frozenset(tensor))


def _by_place(item: Collective, evidence: _Evidence) -> Axis:
    if item.node.attribute(_PASSED_ROUND) is not None:
        return "sequence"
    if item.op in _ALL_TO_ALL and (_is_expert(item.node) or _meets_experts(item.node)):
        return "expert"
    if item.origin in _REDUCING and _reduces_product(item.node):
        return "tensor"
    if item.origin == "user code" or item.ranks is None:
        return "unknown"
    return _by_ranks(frozenset(item.ranks), evidence)


def _by_ranks(ranks: frozenset[int], evidence: _Evidence) -> Axis:
    is_tensor = ranks in evidence.tensor
    if is_tensor and any(group not in evidence.tensor for group in evidence.data):
        return (
            "tensor"  # that some weights (of experts) are replicated along it makes no difference
        )
    is_data = any(ranks <= group for group in evidence.data)
    if is_tensor != is_data:
        return "tensor" if is_tensor else "data"
    if is_tensor or not (evidence.data or evidence.tensor):
        return "unknown"
    meets_data = any(len(ranks & group) > 1 for group in evidence.data)
    meets_tensor = any(len(ranks & group) > 1 for group in evidence.tensor)
    if meets_data:
        return "data and tensor" if meets_tensor or _covers(ranks, evidence) else "unknown"
    return "tensor"


def _covers(ranks: frozenset[int], evidence: _Evidence) -> bool:
    """Whether whole data groups are inside, and other ranks too."""
    return any(group < ranks for group in evidence.data)


def _is_expert(node: Node) -> bool:
    location = user_location(node)
    places = (
        node.scope or "",
        location.path if location else "",
        (location.source or "") if location else "",
    )
    return any(_EXPERT.search(place) for place in places)


def _meets_experts(node: Node) -> bool:
    """Whether what is exchanged comes out of a product with experts' weights, or goes into one."""
    return _reaches(node, lambda one: one.users) or _reaches(
        node, lambda one: [source for source in one.inputs if isinstance(source, Node)]
    )


def _reaches(node: Node, following: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether a product with experts is found, going on through what only moves data."""
    waiting, seen = [node], {node}
    while waiting and len(seen) < _FARTHEST:
        for other in following(waiting.pop()):
            if other in seen:
                continue
            seen.add(other)
            if operator_of(other.op).computes == "matmul":
                if any(_is_stack_of_weights(source) for source in other.inputs):
                    return True
            elif other.op in _MOVING or operator_of(other.op).moves:
                waiting.append(other)
    return False


def _is_stack_of_weights(source: object) -> bool:
    """Whether an operand is a parameter of three dimensions: a matrix for each expert."""
    for _ in range(6):
        if isinstance(source, GraphParameter):
            declared = source.declaration
            size = declared.type.dimensions if declared is not None and declared.type else None
            is_weight = declared is not None and declared.is_weight
            return is_weight and size is not None and len(size) == 3
        if (
            not isinstance(source, Node)
            or not source.operands
            or not _hands_on(source.op, _READING)
        ):
            return False
        source = source.inputs[0]
    return False


def _reduces_product(node: Node) -> bool:
    """Whether what is summed up comes out of an operator that contracts a split dimension."""
    for _ in range(8):
        source = node.inputs[0] if node.operands else None
        if not isinstance(source, Node):
            return False
        if sums_product(source.op):
            return True
        if not _hands_on(source.op, _PASSING):
            return False
        node = source
    return False
