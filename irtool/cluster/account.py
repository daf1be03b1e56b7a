"""The account of what one device holds: the same causes and bytes whoever asks.

``irtool memory`` reads it off a compiled step (:func:`compiled_account`); ``irtool cost`` and
``irtool plan`` predict it before the backward pass exists; ``irtool recover`` moves what of it has
to be there before a step. Bytes are those of the tensors; what a backend adds (rounding to blocks,
work space) is told beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace

from irtool.cluster.flops import flops
from irtool.cluster.fuse import launch_of
from irtool.cluster.liveness import Buffer, curve
from irtool.cluster.memory import Memory
from irtool.cluster.memory.static import StaticCause, StaticTensor
from irtool.cluster.pricing import Launch, buckets
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.phases import Phase
from irtool.ir.types import BITS

_COPIES = ("TensorMove",)
"""Copies of weights that MindSpore makes where one is written while others read it: temporaries."""
_LATE: frozenset[Phase] = frozenset(("backward", "recompute", "optimizer"))
_FUSED_BLOCK = 1024
"""Bytes to which each tensor in the buffer of a fused collective is filled up, one block more."""


@dataclass(frozen=True, slots=True)
class Account:
    """Bytes that one device holds, by cause.

    Attributes:
        weights: what the network computes with and keeps.
        states: what optimizers keep for single weights.
        accumulated: gradients that are summed over several micro-batches or steps.
        inputs: one batch.
        other: what is kept from step to step for no single weight.
        kept: results of the forward pass that the backward pass reads: the most at one time.
        gathered: weights that optimizer parallel gathered, kept from the forward to the backward
            pass.
        gradients: of all trained weights, as the update takes them.
        fused: the largest buffer of a fused collective.
        groups: communication groups, each with buffers of its own.
    """

    weights: int = 0
    states: int = 0
    accumulated: int = 0
    inputs: int = 0
    other: int = 0
    kept: int = 0
    gathered: int = 0
    gradients: int = 0
    fused: int = 0
    groups: int = 0

    @property
    def total(self) -> int:
        """Bytes that a device must have for all of it.

        The buffer of fused sums of gradients is filled when the backward pass ends: it lies where
        kept results were, and counts as far as it is larger than these.
        """
        freed = self.kept + self.gathered
        stays = self.weights + self.states + self.accumulated + self.inputs + self.other
        return stays + self.gradients + max(freed, self.fused)

    def items(self) -> dict[str, int]:
        """The bytes of each cause, by the name of the field that holds them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def compiled_account(memory: Memory) -> Account:
    """The account of a compiled step.

    Args:
        memory: of a dump that holds the whole step (``validate``).
    """
    static: dict[StaticCause, int] = {}
    for item in memory.static:
        if not item.on_host:
            static[item.cause] = static.get(item.cause, 0) + (static_bytes(item) or 0)
    kept: list[Buffer] = []
    gathered: list[Buffer] = []
    copies = _Copies(memory)
    for buffer in memory.live.buffers:
        if _is_kept(buffer, memory):
            is_gathered = _is_gather(memory.collectives.get(buffer.node.node))
            stays = replace(buffer, dies=copies.die_with(buffer))
            (gathered if is_gathered else kept).append(stays)
    count = len(memory.launched)
    return Account(
        static.get("parameters", 0),
        static.get("optimizer state", 0),
        static.get("accumulated gradients", 0),
        static.get("inputs", 0),
        static.get("other", 0),
        _most(kept, count),
        _most(gathered, count),
        _gradients(memory.static),
        fused_bytes(launch_of(item, item.ranks) for item in memory.collectives.values()),
        len(memory.communicators.groups),
    )


def _most(buffers: Iterable[Buffer], count: int) -> int:
    """The most bytes of some buffers that are alive at once: of a pipeline's micro-batches few."""
    sized = (replace(buffer, size=buffer_bytes(buffer)) for buffer in buffers)
    return max(curve(tuple(sized), count), default=0)


def fused_bytes(launches: Iterable[Launch]) -> int:
    """Bytes of the largest buffer that a fused collective needs for its tensors side by side.

    Each tensor takes whole blocks of 1,024 bytes, and one more where it fills its blocks.

    Args:
        launches: of a step, before any is fused.

    Returns:
        0 where nothing is fused.
    """
    known = list(launches)
    sizes = (
        sum((known[place].size // _FUSED_BLOCK + 1) * _FUSED_BLOCK for place in places)
        for places in buckets(known)
        if len(places) > 1
    )
    return max(sizes, default=0)


def buffer_bytes(buffer: Buffer) -> int | None:
    """Bytes of a buffer's tensor, as no backend rounds them.

    Args:
        buffer: one result of a launch.

    Returns:
        None where the dump does not tell its type, or a dimension is not known.
    """
    output = buffer.node.node.output_type
    tensors = output.tensors if output is not None else ()
    if buffer.index >= len(tensors):
        return None
    return _bytes(*tensors[buffer.index])


def static_bytes(item: StaticTensor) -> int | None:
    """Bytes of a tensor that stays, as no backend rounds them.

    Args:
        item: a parameter or a constant.

    Returns:
        None where a dimension is not known.
    """
    return None if item.shape is None else _bytes(item.dtype, item.shape)


def _bytes(dtype: str | None, shape: tuple[int, ...]) -> int | None:
    bits = BITS.get(dtype or "")
    if bits is None or min(shape, default=0) < 0:
        return None
    return (math.prod(shape) * bits + 7) // 8


def _is_kept(buffer: Buffer, memory: Memory) -> bool:
    node = buffer.node.node
    if memory.phases.get(node, "other") != "forward" or node.op in _COPIES:
        return False
    users = (memory.live.launched[place].node for place in buffer.users)
    return any(memory.phases.get(user) in _LATE for user in users)


class _Copies:
    """What launches of the backward pass rearrange of kept results, before a gradient is there.

    A step may be launched so that a result is transposed for the gradient of a product as soon as
    it is there, and only the copy stays. Of both, one is kept: until the later one dies.
    """

    def __init__(self, memory: Memory) -> None:
        self.made: dict[int, list[Buffer]] = {}
        sources: Counter[int] = Counter()
        for buffer in memory.live.buffers:
            sources.update(set(buffer.users))
            launch = buffer.node.node
            if memory.phases.get(launch) in _LATE and not flops(launch):
                self.made.setdefault(buffer.born, []).append(buffer)
        self.made = {place: made for place, made in self.made.items() if sources[place] == 1}

    def die_with(self, buffer: Buffer) -> int:
        """The launch behind which neither a result nor a copy of it is there."""
        copies = [
            copy
            for place in buffer.users
            for copy in self.made.get(place, ())
            if buffer_bytes(copy) == buffer_bytes(buffer)
        ]
        return max([buffer.dies, *map(self.die_with, copies)])


def _is_gather(collective: Collective | None) -> bool:
    return (
        collective is not None
        and collective.op == "AllGather"
        and collective.origin == "optimizer parallel"
    )


def _gradients(static: Iterable[StaticTensor]) -> int:
    """A gradient is as large as what of its weight is updated here."""
    return sum(static_bytes(item) or 0 for item in static if item.updated)
