"""Collectives: what a dump communicates, among which ranks, how much, and why it is there."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.framework import is_framework
from irtool.ir.graph import AmbiguousReference, DumpModel, GraphParameter, Node, Source
from irtool.ir.groups import (
    RanksFrom,
    group_ranks,
    integer_attribute,
    peer_rank,
    text_attribute,
)
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT, Communication
from irtool.ir.types import BITS, Abstract
from irtool.ir.values import Attributes

Origin: TypeAlias = Literal[
    "forward reduction",  # partial sums of a contracted dimension that is split
    "operator",  # inside one operator's own sharded form
    "redistribution",  # from one operator's layout to the next one's
    "mirror",  # gradients of a replicated parameter
    "optimizer parallel",  # weights sharded over replicas
    "pipeline",  # between stages
    "ring attention",  # keys and values passed on from rank to rank
    "adasum",
    "global norm",  # of all gradients, for clipping
    "result broadcast",  # of the last stage's result
    "user code",
    "unknown",
]
"""Why a collective is there.

All but ``global norm`` were seen in dumps; its instance names (``PARALLEL_GLOBALNORM…``) are known
from MindSpore's source and tests only.
"""


@dataclass(frozen=True, slots=True)
class Collective:
    """One communication of one node: which collective, over which ranks, of how much, and why.

    Attributes:
        node: the node.
        op: the collective that runs (``AllReduce``, …); the node's own ``op`` may be a wrapper.
        group: name of the group, None where the node names none.
        ranks: global ranks of the group, sorted; None where they cannot be known.
        ranks_from: how ``ranks`` was found: an attribute's name, ``same group`` (another node of
            the dump lists them), ``world``, or ``name`` (decoded from the hash).
        reduction: ``sum``, ``max``, ``min`` or ``prod`` where it reduces.
        fusion: fusion id, 0 for never fused; None where the node says nothing.
        dtype: element type of what is communicated, shape: its dimensions; None where unknown.
        bytes: of the larger of input and output on one rank (an AllGather's output, a
            ReduceScatter's input); None where a dimension or type is unknown.
        origin: why it is there.
        is_gradient: whether it belongs to the backward pass.
        is_virtual: whether the node itself communicates nothing yet (mirrors before ``validate``).
        peer: of a Send or Receive, the other end's global rank.
        tag: of a Send or Receive, its ``sr_tag``.
        parameter: name of the parameter whose value or gradient is communicated.
    """

    node: Node
    op: str
    group: str | None
    ranks: tuple[int, ...] | None
    ranks_from: RanksFrom | None
    reduction: str | None
    fusion: int | None
    dtype: str | None
    shape: tuple[int, ...] | None
    bytes: int | None
    origin: Origin
    is_gradient: bool
    is_virtual: bool = False
    peer: int | None = None
    tag: int | None = None
    parameter: str | None = None


def is_collective(node: Node) -> bool:
    """Whether a node communicates, or will once its gradient is made.

    Args:
        node: of any pass.
    """
    return node.op in COMMUNICATION


def collective(node: Node, device_num: int | None = None) -> Collective | None:
    """What a node communicates; None if it communicates nothing.

    Args:
        node: any node.
        device_num: number of devices, if known; otherwise what the dump's groups show.
    """
    operator = COMMUNICATION.get(node.op)
    if operator is None:
        return None
    attributes = node.primitive_attributes or Attributes(())
    group = text_attribute(attributes, "group")
    ranks, ranks_from = group_ranks(node, attributes, group, device_num)
    dtype, shape, size = _payload(node)
    is_p2p = operator.base in POINT_TO_POINT
    origin = _origin(node, attributes, operator)
    return Collective(
        node,
        operator.base,
        group,
        ranks,
        ranks_from,
        text_attribute(attributes, "op"),
        integer_attribute(attributes, "fusion"),
        dtype,
        shape,
        size,
        origin,
        node.is_backward or origin == "mirror",
        operator.virtual,
        peer_rank(operator.base, attributes, group, ranks) if is_p2p else None,
        integer_attribute(attributes, "sr_tag") if is_p2p else None,
        _parameter_name(node, attributes),
    )


def exchange_ranks(node: Node, rank: int) -> tuple[int, ...] | None:
    """Who takes part in an exchange between neighbours, seen from one rank.

    Its group is all devices, whoever exchanges with whom: the attributes name the neighbours.

    Args:
        node: a node of the dump of ``rank``.
        rank: a global rank.

    Returns:
        The rank and those that it sends to or receives from, sorted; None of a node that is no
        exchange between neighbours.
    """
    operator = COMMUNICATION.get(node.op)
    if operator is None or not operator.base.startswith("NeighborExchange"):
        return None
    participants = {rank}
    for name in ("send_rank_ids", "recv_rank_ids"):
        ids = node.attribute(name)
        if isinstance(ids, int):  # a list of one is printed without brackets
            ids = (ids,)
        if isinstance(ids, tuple | list):
            participants.update(peer for peer in cast("Sequence[int]", ids) if peer >= 0)
    return tuple(sorted(participants))


def collectives(dump: DumpModel, device_num: int | None = None) -> tuple[Collective, ...]:
    """Every collective of a dump, in printed order.

    Args:
        dump: whose.
        device_num: devices of the run, for groups of all devices; None: as the dump's own groups
            tell it.
    """
    candidates = (collective(node, device_num) for node in dump.nodes(where=is_collective))
    return tuple(item for item in candidates if item is not None)


# ---- how much --------------------------------------------------------------------------------


def _payload(node: Node) -> tuple[str | None, tuple[int, ...] | None, int | None]:
    """Element type, shape and bytes of the larger of the first input and the output."""
    types: list[Abstract] = []
    if node.op != "Receive" and node.input_types and node.input_types[0] is not None:
        types.append(node.input_types[0])
    if node.op != "Send" and node.output_type is not None:
        types.append(node.output_type)
    if not types:
        return None, None, None
    if COMMUNICATION[node.op].base.startswith("NeighborExchangeV2"):
        return types[0].dtype, *_halo(node, types)
    sizes = [item.size for item in types]
    sent = _sent_shape(node) if COMMUNICATION[node.op].base in POINT_TO_POINT else None
    dtype = types[0].dtype
    if sent is not None and dtype in BITS:
        return dtype, sent, math.prod(sent) * max(BITS[dtype], 8) // 8
    known = [size for size in sizes if size is not None]
    largest = types[sizes.index(max(known))] if known else types[0]
    tensors = largest.tensors
    dtype, shape = tensors[0] if tensors else (largest.dtype, largest.dimensions)
    return dtype, shape, max(known) if len(known) == len(sizes) else None


def _halo(node: Node, types: Sequence[Abstract]) -> tuple[tuple[int, ...] | None, int | None]:
    """Shape of a device's slice of an image, and bytes of what it exchanges of its edges.

    Rows above and below, columns left and right, and with both the corners: those that are sent or
    those that are received, whichever are more.
    """
    own = min(types, key=lambda item: math.prod(item.dimensions or ()))
    shape, size = own.dimensions, own.size
    if not shape or len(shape) < 2 or not size:
        return shape, None
    amounts: list[int] = []
    for name in ("send_lens", "recv_lens"):
        lengths = node.attribute(name)
        if not _are_lengths(lengths):
            return shape, None
        above, below, left, right = lengths
        wider = (shape[-2] + above + below) * (shape[-1] + left + right)
        amounts.append(size // (shape[-2] * shape[-1]) * (wider - shape[-2] * shape[-1]))
    return shape, max(amounts)


def _are_lengths(value: object) -> TypeGuard[Sequence[int]]:
    """Whether an attribute says how many rows and columns go to the four sides."""
    items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return len(items) == 4 and all(isinstance(item, int) for item in items)


def _sent_shape(node: Node) -> tuple[int, ...] | None:
    """What a Send or Receive says it carries: before slicing its types are the whole tensor's."""
    shape = node.attribute("shape")
    if not isinstance(shape, list | tuple):
        return None
    sizes = cast("Sequence[object]", shape)
    dimensions = tuple(size for size in sizes if isinstance(size, int) and size >= 0)
    return dimensions if len(dimensions) == len(sizes) else None


def _parameter_name(node: Node, attributes: Attributes) -> str | None:
    for key in ("parameter", "mirror_user_id", "target_param"):
        name = text_attribute(attributes, key)
        if name:
            return name
    name = node.attribute("mirror_user_id")
    if isinstance(name, str) and name:
        return name
    return _read_parameter(node) if node.operands and node.op != "Receive" else None


_TRANSPARENT = ("Load", "Depend", "Cast", "StopGradient", *COMMUNICATION)


def _read_parameter(node: Node) -> str | None:
    """The parameter whose value the first operand is, through loads, casts and gathers."""
    for _ in range(16):
        if not node.operands:
            return None
        source: Source = node.inputs[0]
        if isinstance(source, AmbiguousReference):
            return None
        if isinstance(source, GraphParameter):
            weight = source.declaration is not None and source.declaration.is_weight
            reference = source.type is not None and source.type.ref_key is not None
            return source.name if weight or reference else None
        if not isinstance(source, Node) or source.op not in _TRANSPARENT:
            return None
        node = source
    return None


# ---- why -------------------------------------------------------------------------------------

_ORIGINS: tuple[tuple[re.Pattern[str], Origin], ...] = tuple(
    (re.compile(pattern), origin)
    for pattern, origin in cast(
        "tuple[tuple[str, Origin], ...]",
        (
            (r"(grad_?)?mirror|.*MirrorOperator|.*Mirror\w*StepOperator", "mirror"),
            (r"(grad_?)?parallel_optimizer|.*M(icro|ini)StepAllGather", "optimizer parallel"),
            (r"_?grad_accumulation_shard", "optimizer parallel"),
            (r"(grad_?)?redistribution_", "redistribution"),
            (r"(grad_?)?forward_op_?\d+(_|$)", "forward reduction"),
            (r"(grad_?)?(forward_op_?)?(\d+[A-Z]\w*|\d{12,})$", "operator"),
            (r"PARALLEL_GLOBALNORM", "global norm"),
            (r"PARALLEL_RESULT_BROADCAST", "result broadcast"),
        ),
    )
)


def has_borrowed_name(node: Node) -> bool:
    """Whether a node bears the name of an equal one in a gradient: equal primitives are merged.

    Redistributions scatter nothing on the way forward; only their gradients do.

    Args:
        node: that communicates.
    """
    return node.op == "ReduceScatter" and not node.is_backward


def named_origin(node: Node) -> Origin | None:
    """Why MindSpore inserted a node, as its instance name tells.

    Args:
        node: a collective, or what stands around it: the slices of a redistribution.

    Returns:
        None where the name tells nothing.
    """
    name = node.instance_name or ""
    for pattern, origin in _ORIGINS:
        if pattern.match(name):
            is_borrowed = origin == "redistribution" and has_borrowed_name(node)
            return "forward reduction" if is_borrowed else origin
    return None


def _origin(node: Node, attributes: Attributes, operator: Communication) -> Origin:
    if "target_param" in attributes and "origin_fusion" in attributes:
        return "adasum"
    if operator.base in POINT_TO_POINT:
        ring = ("RING_ATTENTION_INDEX", "RING_ATTENTION_POS", "FLASH_SP_COMM_TYPE", "flash_tag")
        if any(node.attribute(key) is not None for key in ring):
            return "ring attention"
        return "pipeline" if "sr_tag" in attributes else "unknown"
    named = named_origin(node)
    if named is not None:
        return named
    name = node.instance_name or ""
    if node.op.startswith("_M") and "AllGather" in node.op:
        return "optimizer parallel"
    if operator.virtual:
        return "mirror"
    if operator.base.startswith("NeighborExchange"):
        return "operator"
    if node.attribute("forward_comm_node_unique_id") is not None and not name:
        return "unknown"
    location = node.location
    if name or (location is not None and not is_framework(location.path)):
        return "user code"
    return "unknown"
