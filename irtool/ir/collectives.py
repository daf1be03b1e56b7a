"""Collectives: what a dump communicates, among which ranks, how much, and why it is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, cast

from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, GraphParameter, Source
from irtool.ir.group_names import WORLD_GROUPS, search
from irtool.ir.node import Node
from irtool.ir.types import Abstract
from irtool.ir.values import Attributes

RanksFrom: TypeAlias = Literal[
    "rank_list", "group_rank_ids", "group_ranks", "same group", "world", "name"
]
Origin: TypeAlias = Literal[
    "forward reduction",  # partial sums of a contracted dimension that is split
    "operator",  # inside one operator's own sharded form
    "redistribution",  # from one operator's layout to the next one's
    "mirror",  # gradients of a replicated parameter
    "optimizer parallel",  # weights sharded over replicas
    "pipeline",  # between stages
    "ring attention",
    "adasum",
    "global norm",
    "result broadcast",  # of the last stage's result
    "user code",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Operator:
    """What a communication operator does.

    ``base`` is the collective that runs.  ``virtual`` operators compute nothing themselves: their
    gradient, or a later pass, makes the collective.
    """

    base: str
    virtual: bool = False


OPERATORS: dict[str, Operator] = {
    **{
        name: Operator(name)
        for name in (
            "AllReduce", "AllGather", "AllGatherV", "ReduceScatter", "ReduceScatterV", "Reduce",
            "Broadcast", "AlltoAll", "AlltoAllV", "AlltoAllVC", "AllSwap", "NeighborExchange",
            "NeighborExchangeV2", "NeighborExchangeV2Grad", "CollectiveScatter",
            "CollectiveGather", "Barrier", "Send", "Receive", "BatchISendIRecv",
        )
    },
    "AllToAll": Operator("AlltoAll"),
    "AllToAllv": Operator("AlltoAllV"),
    "AllToAllV": Operator("AlltoAllV"),
    "MatMulAllReduce": Operator("AllReduce"),
    "AllGatherMatmul": Operator("AllGather"),
    "MatmulReduceScatter": Operator("ReduceScatter"),
    "InnerCommAllReduce": Operator("AllReduce"),
    "InnerCommAllGather": Operator("AllGather"),
    "InnerCommReduceScatter": Operator("ReduceScatter"),
    "InnerCommAllToAllV": Operator("AlltoAllV"),
    "InnerCommIsend": Operator("Send"),
    "InnerCommIrecv": Operator("Receive"),
    "DistCommAllReduce": Operator("AllReduce"),
    "DistCommAllGather": Operator("AllGather"),
    "DistCommReduceScatter": Operator("ReduceScatter"),
    "DistCommBroadcast": Operator("Broadcast"),
    "DistCommIsend": Operator("Send"),
    "DistCommIrecv": Operator("Receive"),
    "_MirrorOperator": Operator("AllReduce", virtual=True),
    "_MirrorMiniStepOperator": Operator("AllReduce", virtual=True),
    "_MirrorMicroStepOperator": Operator("AllReduce", virtual=True),
    "_MiniStepAllGather": Operator("AllGather"),
    "_MicroStepAllGather": Operator("AllGather"),
}  # fmt: skip
"""Every communication operator by name."""

_POINT_TO_POINT = ("Send", "Receive")


@dataclass(frozen=True, slots=True)
class Collective:
    """One communication of one node.

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


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that a dump's groups show.

    ``ranks`` are those seen, ``world`` the smallest number of devices that holds them, and
    ``is_exact`` whether the group of all devices itself was listed.
    """

    ranks: tuple[int, ...]
    world: int
    is_exact: bool


def is_collective(node: Node) -> bool:
    """Whether a node communicates, or will once its gradient is made."""
    return node.op in OPERATORS


def collective(node: Node, device_num: int | None = None) -> Collective | None:
    """What a node communicates; None if it communicates nothing.

    Args:
        node: any node.
        device_num: number of devices, if known; otherwise what the dump's groups show.
    """
    operator = OPERATORS.get(node.op)
    if operator is None:
        return None
    attributes = node.primitive_attributes or Attributes(())
    group = _text(attributes, "group")
    ranks, ranks_from = _ranks(node, attributes, group, device_num)
    dtype, shape, size = _payload(node)
    is_p2p = operator.base in _POINT_TO_POINT
    origin = _origin(node, attributes, operator)
    return Collective(
        node,
        operator.base,
        group,
        ranks,
        ranks_from,
        _text(attributes, "op"),
        _integer(attributes, "fusion"),
        dtype,
        shape,
        size,
        origin,
        node.is_backward or origin == "mirror",
        operator.virtual,
        _peer(operator.base, attributes, group, ranks) if is_p2p else None,
        _integer(attributes, "sr_tag") if is_p2p else None,
        _parameter_name(node, attributes),
    )


def collectives(dump: Dump, device_num: int | None = None) -> tuple[Collective, ...]:
    """Every collective of a dump, in printed order."""
    found = (collective(node, device_num) for node in dump.nodes(where=is_collective))
    return tuple(item for item in found if item is not None)


# ---- ranks -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupTable:
    """What a dump says of its groups: ranks by name, and the devices seen."""

    listed: Mapping[str, tuple[int, ...]]
    devices: Devices


def group_table(dump: Dump) -> GroupTable:
    """Collects the groups whose ranks some node lists."""
    listed: dict[str, tuple[int, ...]] = {}
    seen: set[int] = set()
    world: int | None = None
    for node in dump.nodes(where=is_collective):
        attributes = node.primitive_attributes or Attributes(())
        group = _text(attributes, "group")
        ranks, _ = _listed_ranks(node, attributes)
        if ranks is not None:
            seen.update(ranks)
            if group:
                listed.setdefault(group, ranks)
                if group.startswith(WORLD_GROUPS):
                    world = max(world or 0, len(ranks))
        for key in ("dst_global_rank", "src_global_rank"):
            rank = _integer(attributes, key)
            if rank is not None and rank >= 0:
                seen.add(rank)
        if node.op in _POINT_TO_POINT and (group or "").startswith(WORLD_GROUPS):
            rank = _integer(attributes, "dest_rank" if node.op == "Send" else "src_rank")
            seen.update([rank] if rank is not None and rank >= 0 else ())
    smallest = max(seen, default=0) + 1
    exact = world is not None and world >= smallest
    devices = Devices(tuple(sorted(seen)), max(world or 1, smallest), exact)
    return GroupTable(listed, devices)


def devices(dump: Dump) -> Devices:
    """The ranks seen in a dump's groups, and the smallest world that holds them."""
    return dump.groups.devices


def _ranks(
    node: Node, attributes: Attributes, group: str | None, device_num: int | None
) -> tuple[tuple[int, ...] | None, RanksFrom | None]:
    ranks, found_in = _listed_ranks(node, attributes)
    if ranks is not None:
        return ranks, found_in
    table = node.graph.dump.groups if node.graph and node.graph.dump else None
    is_world = (group or "").startswith(WORLD_GROUPS) or (
        _text(attributes, "group_ranks") == "WORLD_GROUP"
    )
    if is_world:
        if device_num is None and table is not None and table.devices.is_exact:
            device_num = table.devices.world
        return (tuple(range(device_num)), "world") if device_num else (None, None)
    if not group:
        return None, None
    if table is not None and group in table.listed:
        return table.listed[group], "same group"
    plain = _plain_name(group)
    if plain is not None:
        return plain, "name"
    least = device_num or (table.devices.world if table is not None else 1)
    decoded = search(group, least)
    return (decoded, "name") if decoded is not None else (None, None)


def _listed_ranks(
    node: Node, attributes: Attributes
) -> tuple[tuple[int, ...] | None, RanksFrom | None]:
    """Ranks that the node itself lists."""
    group = _text(attributes, "group") or ""
    for key in ("rank_list", "group_rank_ids"):
        if key == "group_rank_ids" and node.op in _POINT_TO_POINT and group in WORLD_GROUPS:
            continue  # the two ends, not the group
        found = attributes.get(key)
        if isinstance(found, tuple | list):
            ranks = cast("tuple[object, ...] | list[object]", found)
            whole = [rank for rank in ranks if isinstance(rank, int)]
            if whole and len(whole) == len(ranks):
                return tuple(sorted(whole)), "rank_list" if key == "rank_list" else "group_rank_ids"
    text = attributes.get("group_ranks")
    if isinstance(text, int) and not isinstance(text, bool):
        return (text,), "group_ranks"
    if isinstance(text, str) and re.fullmatch(r"\d+(-\d+)*", text):
        return tuple(sorted(map(int, text.split("-")))), "group_ranks"
    return None, None


def _plain_name(group: str) -> tuple[int, ...] | None:
    """The ranks of a group that is called by them (``0-8-16``) rather than by their hash."""
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})+", group):
        return None
    ranks = tuple(map(int, group.split("-")))
    return ranks if all(a < b for a, b in pairwise(ranks)) else None


def _peer(
    op: str, attributes: Attributes, group: str | None, ranks: tuple[int, ...] | None
) -> int | None:
    """The other end's global rank: ``dest_rank`` counts inside the group."""
    known = _integer(attributes, "dst_global_rank" if op == "Send" else "src_global_rank")
    if known is not None:
        return known
    index = _integer(attributes, "dest_rank" if op == "Send" else "src_rank")
    if index is None or (group or "").startswith(WORLD_GROUPS):
        return index
    return ranks[index] if ranks is not None and 0 <= index < len(ranks) else None


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
    sizes = [item.size for item in types]
    known = [size for size in sizes if size is not None]
    largest = types[sizes.index(max(known))] if known else types[0]
    tensors = largest.tensors
    dtype, shape = tensors[0] if tensors else (largest.dtype, largest.dimensions)
    return dtype, shape, max(known) if len(known) == len(sizes) else None


def _parameter_name(node: Node, attributes: Attributes) -> str | None:
    for key in ("parameter", "mirror_user_id", "target_param"):
        name = _text(attributes, key)
        if name:
            return name
    name = node.attribute("mirror_user_id")
    if isinstance(name, str) and name:
        return name
    return _read_parameter(node) if node.operands and node.op != "Receive" else None


_TRANSPARENT = ("Load", "Depend", "Cast", "StopGradient", *OPERATORS)


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
            (r"(grad_?)?redistribution_", "redistribution"),
            (r"(grad_?)?forward_op_?\d+(_|$)", "forward reduction"),
            (r"(grad_?)?(forward_op_?)?\d+[A-Z]\w*\d*$", "operator"),
            (r"PARALLEL_GLOBALNORM", "global norm"),
            (r"PARALLEL_RESULT_BROADCAST", "result broadcast"),
        ),
    )
)


def _origin(node: Node, attributes: Attributes, operator: Operator) -> Origin:
    if "target_param" in attributes and "origin_fusion" in attributes:
        return "adasum"
    if operator.base in _POINT_TO_POINT:
        ring = ("RING_ATTENTION_INDEX", "RING_ATTENTION_POS", "FLASH_SP_COMM_TYPE", "flash_tag")
        if any(node.attribute(key) is not None for key in ring):
            return "ring attention"
        return "pipeline" if "sr_tag" in attributes else "unknown"
    name = node.instance_name or ""
    for pattern, origin in _ORIGINS:
        if pattern.match(name):
            return origin
    if node.op.startswith("_M") and "AllGather" in node.op:
        return "optimizer parallel"
    if operator.virtual:
        return "mirror"
    if operator.base.startswith("NeighborExchange"):
        return "operator"
    if node.attribute("forward_comm_node_unique_id") is not None and not name:
        return "unknown"
    location = node.location
    if name or (location is not None and "site-packages/mindspore/" not in location.path):
        return "user code"
    return "unknown"


# ---- attributes ------------------------------------------------------------------------------


def _text(attributes: Attributes, key: str) -> str | None:
    found = attributes.get(key)
    return found if isinstance(found, str) else None


def _integer(attributes: Attributes, key: str) -> int | None:
    found = attributes.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
