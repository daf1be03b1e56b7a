"""What-ifs on what stays: shard it over replicas, gather it again, or keep it on the host."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

from irtool.cluster.memory import Memory
from irtool.cluster.memory.static import StaticTensor, constant_name
from irtool.cluster.pricing import DEFAULT_FUSION
from irtool.cluster.what_if import Change, Option, Traffic
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import ACCUMULATED, OPTIMIZERS
from irtool.operators.table import operator_of

STATE_SWITCHES = frozenset(
    ("optimizer parallel", "parallel_optimizer_threshold", "primitive_target",
     "primitive_target of lookups", "pipeline_stages")
)  # fmt: skip
"""Options on the same bytes: what two of them would save together is not known."""

THRESHOLD = 64 << 10
"""``parallel_optimizer_threshold`` by default: 64 KB, of the whole parameter, equal included."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight with what is kept for it, and how its gradient is added up.

    Attributes:
        tensor: the weight itself.
        state: bytes of optimizer state.
        accumulated: bytes of its accumulated gradient, 0 without gradient accumulation; with
            the constant that clears it where the graph holds one as large.
        replicas: ranks that hold the same slice, as the gradient's collective lists them.
        gradient: that collective; None where there is none (no replicas).
        gather: the AllGather that puts the weight together where the optimizer is sharded.
        full_bytes: of the weight before it was sliced, None where nothing tells it.
        gradient_bytes: of its accumulated gradient alone.
        threshold: bytes of a whole weight below which optimizer parallel leaves it whole.
    """

    tensor: StaticTensor
    state: int
    accumulated: int
    replicas: tuple[int, ...]
    gradient: Collective | None
    gather: Collective | None
    full_bytes: int | None
    gradient_bytes: int
    threshold: int = THRESHOLD

    @property
    def name(self) -> str:
        """The name of the weight's parameter."""
        return self.tensor.name

    @property
    def is_sharded(self) -> bool:
        """Whether the optimizer is sharded over the replicas."""
        return self.gather is not None

    def unshardable(self, threshold: int | None = None) -> str:
        """Why the optimizer cannot be sharded for this weight; empty if it can."""
        threshold = self.threshold if threshold is None else threshold
        if len(self.replicas) < 2:
            return "no other rank has this slice"
        shape = self.tensor.shape or ()
        if not shape or shape[0] % len(self.replicas):
            first = shape[0] if shape else 1
            return f"the first dimension, {first}, is no multiple of {len(self.replicas)} replicas"
        size = self.full_bytes if self.full_bytes is not None else self.tensor.bytes
        if size is not None and size < threshold:
            return f"smaller than parallel_optimizer_threshold ({threshold >> 10} KB)"
        return ""


def weights(memory: Memory, threshold: int = THRESHOLD) -> tuple[Weight, ...]:
    """The weights on this device, each with what is kept for it and how its gradient is summed.

    Args:
        memory: of a dump that holds the whole step.
        threshold: bytes of a whole weight below which optimizer parallel leaves it whole.
    """
    state: dict[str, int] = {}
    accumulated: dict[str, int] = {}
    cleared = _cleared(memory)
    for item in memory.static:
        if item.cause == "optimizer state":
            state[item.parameter] = state.get(item.parameter, 0) + (item.bytes or 0)
        elif item.cause == "accumulated gradients":
            size = (item.bytes or 0) + cleared.get(item.name, 0)
            accumulated[item.parameter] = accumulated.get(item.parameter, 0) + size
    gradients, gathers = _collectives(memory)
    full = _full_bytes(memory)
    held: list[Weight] = []
    for item in memory.static:
        if item.cause != "parameters":
            continue
        gradient = gradients.get(item.name)
        replicas = gradient.ranks if gradient is not None and gradient.ranks else ()
        held.append(
            Weight(
                item,
                state.get(item.name, 0),
                accumulated.get(item.name, 0),
                replicas,
                gradient,
                gathers.get(item.name),
                full.get(item.name),
                accumulated.get(item.name, 0) - cleared.get(ACCUMULATED + item.name, 0),
                threshold,
            )
        )
    return tuple(held)


def _cleared(memory: Memory) -> dict[str, int]:
    """Bytes of the constant that is assigned to an accumulated gradient, by its name."""
    constants = {item.name: item.bytes or 0 for item in memory.static if item.cause == "constants"}
    cleared: dict[str, int] = {}
    for item in memory.launched:
        first = item.node.input_types[0] if item.node.input_types else None
        if item.op == "Assign" and first is not None and first.ref_key:
            cleared[first.ref_key] = constants.get(constant_name(item.node, 1), 0)
    return cleared


def _collectives(memory: Memory) -> tuple[dict[str, Collective], dict[str, Collective]]:
    gradients: dict[str, Collective] = {}
    gathers: dict[str, Collective] = {}
    for collective in memory.collectives.values():
        if not collective.parameter:
            continue
        if collective.op == "AllGather" and collective.origin == "optimizer parallel":
            gathers.setdefault(collective.parameter, collective)
        elif collective.origin in ("mirror", "optimizer parallel"):
            gradients.setdefault(collective.parameter, collective)
    return gradients, gathers


def _full_bytes(memory: Memory) -> dict[str, int]:
    """Bytes of weights before slicing, where an operator notes its original input shapes."""
    full: dict[str, int] = {}
    for item in memory.launched:
        name = item.node.attribute("mirror_user_id")
        size = _full(item.node) if isinstance(name, str) else None
        if isinstance(name, str) and size is not None:
            full[name] = max(size, full.get(name, 0))
    return full


def _full(node: Node) -> int | None:
    """Bytes of the last input before slicing: the weight's, in products of matrices."""
    shapes = node.attribute("origin_input_shapes")
    weight = node.input_types[1] if len(node.input_types) > 1 else None
    if not isinstance(shapes, tuple | list) or not shapes or weight is None:
        return None
    last = cast("tuple[object, ...]", shapes)[-1]
    if not isinstance(last, tuple | list) or not weight.dimensions or not weight.size:
        return None
    sizes = [size for size in cast("tuple[object, ...]", last) if isinstance(size, int)]
    if not sizes or min(sizes) < 0:
        return None
    return math.prod(sizes) * (weight.size // math.prod(weight.dimensions))


# -- optimizer parallel ------------------------------------------------------------------------


def state_options(
    memory: Memory, micro_batches: int = 1, threshold: int = THRESHOLD
) -> Iterator[Option]:
    """Options on weights, optimizer state and accumulated gradients.

    Args:
        memory: of a dump that holds the whole step.
        micro_batches: of a step.
        threshold: bytes of a whole weight below which optimizer parallel leaves it whole.
    """
    held = weights(memory, threshold)
    sharded = [weight for weight in held if weight.is_sharded]
    if not sharded:
        yield from _optimizer_parallel(memory, held)
    else:
        yield from _threshold(memory, held)
        yield from _gather_again(memory)
    yield from _accumulation_shard(held, sharded, micro_batches)
    yield from _optimizer_on_host(memory, held)
    yield from _tables_on_host(memory, held)


def _optimizer_parallel(memory: Memory, held: tuple[Weight, ...]) -> Iterator[Option]:
    shard = [weight for weight in held if not weight.unshardable()]
    if shard:
        yield _sharded(
            memory,
            shard,
            "optimizer parallel",
            "set_auto_parallel_context(enable_parallel_optimizer=True)",
            f"{len(shard)} of {len(held)} weights; gathered ones live until the backward pass "
            "has used them",
        )


def _threshold(memory: Memory, held: tuple[Weight, ...]) -> Iterator[Option]:
    small = [
        weight
        for weight in held
        if not weight.is_sharded and weight.unshardable() and not weight.unshardable(0)
    ]
    if small:
        yield _sharded(
            memory,
            small,
            "parallel_optimizer_threshold",
            'parallel_optimizer_config={"parallel_optimizer_threshold": 0}',
            f"{len(small)} weights below {small[0].threshold >> 10} KB",
        )


def _sharded(memory: Memory, shard: list[Weight], switch: str, how: str, note: str) -> Option:
    changes: list[Change] = []
    traffic: list[Traffic] = []
    static = 0
    for weight in shard:
        count = len(weight.replicas)
        size = weight.tensor.bytes or 0
        static -= (size + weight.state) * (count - 1) // count
        reads = [
            place
            for place in memory.live.parameter_uses.get(weight.name, [])
            if not OPTIMIZERS.match(memory.launched[place].op)
        ]
        if reads:
            changes.append(Change(max(0, reads[0] - 1), reads[-1], size))
        if weight.gradient is not None:
            changes += _shrunk(memory, weight.gradient.node, count)
        # AllReduce becomes ReduceScatter (half of it) and the AllGather of the weight.
        summed = weight.gradient.fusion if weight.gradient is not None else None
        ranks = weight.replicas
        traffic.append(Traffic("group", size, "AllGather", ranks, DEFAULT_FUSION))
        traffic.append(Traffic("group", -size, "AllReduce", ranks, summed or 0))
        traffic.append(Traffic("group", size, "ReduceScatter", ranks, DEFAULT_FUSION))
    return Option(
        switch,
        "",
        how,
        tuple(changes),
        static,
        traffic=tuple(traffic),
        excludes=STATE_SWITCHES,
        note=note,
    )


def _shrunk(memory: Memory, node: Node, count: int) -> Iterator[Change]:
    """The result of a gradient's AllReduce, of which one slice is left."""
    for buffer in memory.live.buffers:
        if buffer.node.node is node:
            yield Change(buffer.born, buffer.dies, -((buffer.size or 0) * (count - 1) // count))


def _gather_again(memory: Memory) -> Iterator[Option]:
    """``parallel_optimizer_comm_recompute``: gathered weights die, and are gathered again."""
    changes: list[Change] = []
    traffic: list[Traffic] = []
    for buffer in memory.live.buffers:
        collective = memory.collectives.get(buffer.node.node)
        if (
            collective is None
            or collective.op != "AllGather"
            or collective.origin != "optimizer parallel"
        ):
            continue
        stages = [(memory.phases.get(memory.launched[user].node), user) for user in buffer.users]
        forward = [user for stage, user in stages if stage == "forward"]
        later = [user for stage, user in stages if stage != "forward"]
        if not forward or not later or later[0] <= forward[-1]:
            continue
        changes.append(Change(forward[-1] + 1, later[0] - 2, -(buffer.size or 0)))
        again = Traffic(
            "group",
            collective.bytes or 0,
            "AllGather",
            collective.ranks or (),
            collective.fusion or 0,
        )
        traffic.append(again)
    if changes:
        yield Option(
            "parallel_optimizer_comm_recompute",
            "",
            "recompute(parallel_optimizer_comm_recompute=True) on the cells, or "
            'parallel_optimizer_config={"optimizer_level": "level3"}',
            tuple(change for change in changes if change.first <= change.last),
            traffic=tuple(traffic),
            note=f"{len(changes)} weights are gathered twice; where nothing else orders them, they "
            "may be gathered early",
        )


def _accumulation_shard(
    held: tuple[Weight, ...], sharded: list[Weight], micro_batches: int
) -> Iterator[Option]:
    able = [
        weight
        for weight in held
        if weight.accumulated and len(_shards(weight)) > 1 and not _accumulates_slice(weight)
    ]
    if not able:
        return
    static = 0
    traffic: list[Traffic] = []
    for weight in able:
        ranks = _shards(weight)
        static -= weight.accumulated * (len(ranks) - 1) // len(ranks)
        extra = (max(1, micro_batches) - 1) * weight.gradient_bytes
        traffic.append(Traffic("group", extra, "ReduceScatter", ranks))
    needs = "" if sharded else "needs optimizer parallel"
    yield Option(
        "gradient_accumulation_shard",
        "",
        'parallel_optimizer_config={"gradient_accumulation_shard": True}, or (2.7) '
        '{"optimizer_level": "level2"}',
        (),
        static,
        traffic=tuple(traffic),
        note="; ".join(
            filter(None, (f"a ReduceScatter in each of {micro_batches} micro-batches", needs))
        ),
    )


def _shards(weight: Weight) -> tuple[int, ...]:
    if weight.gather is not None and weight.gather.ranks:
        return weight.gather.ranks
    return () if weight.unshardable() else weight.replicas


def _accumulates_slice(weight: Weight) -> bool:
    """Whether the accumulated gradient is a slice already: no larger than the sharded weight."""
    return weight.is_sharded and weight.gradient_bytes <= (weight.tensor.bytes or 0)


# -- the host ----------------------------------------------------------------------------------


def _optimizer_on_host(memory: Memory, held: tuple[Weight, ...]) -> Iterator[Option]:
    state = sum(weight.state for weight in held if not weight.tensor.on_host)
    moved = sum(2 * (weight.tensor.bytes or 0) for weight in held if weight.state)
    updates = {item.op for item in memory.launched if OPTIMIZERS.match(item.op)}
    if not state or not updates:
        return
    how = 'optimizer.target = "CPU"'
    if not all(operator_of(op).is_("host_target") for op in updates):
        how = f'set_device("CPU") on {", ".join(sorted(updates))}'
    yield Option(
        "primitive_target",
        "",
        how,
        (),
        -state,
        traffic=(Traffic("host", moved, "copies"),),
        excludes=STATE_SWITCHES,
        note="state in host memory; gradients go there and weights come back each step, and "
        "the update runs on the CPU",
    )


def _tables_on_host(memory: Memory, held: tuple[Weight, ...]) -> Iterator[Option]:
    """Tables that are only looked up in: the operator can run on the CPU."""
    for weight in held:
        places = memory.live.parameter_uses.get(weight.name, [])
        readers = [memory.launched[place] for place in places]
        forward = [
            item for item in readers if not OPTIMIZERS.match(item.op) and not item.node.is_backward
        ]
        if not forward or not all(operator_of(item.op).is_("looks_up") for item in forward):
            continue
        if weight.tensor.on_host:
            continue
        moved = sum(2 * (item.node.output_bytes or 0) for item in forward)
        yield Option(
            "primitive_target of lookups",
            weight.name,
            f'{forward[0].op}().set_device("CPU")',
            (),
            -(weight.tensor.bytes or 0) - weight.state,
            traffic=(Traffic("host", moved, "copies"),),
            excludes=STATE_SWITCHES - {"primitive_target of lookups"},
            note="table and its state in host memory; rows come, their gradients go",
        )
