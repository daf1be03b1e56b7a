"""Memory of one device over one step: what stays, what comes and goes, and the peak.

The peak is that of the tensors in MindSpore's launch order; what no dump tells (work space of
kernels, buffers of communicators and of fused collectives) is added as an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from irtool.cluster.launch_order import OrderMethod
from irtool.cluster.liveness import Buffer, Liveness, Rounding, curve, liveness
from irtool.cluster.memory.layers import layer_of_scope
from irtool.cluster.memory.static import (
    StaticCause,
    StaticTensor,
    by_cause,
    static_tensors,
)
from irtool.ir.collectives import Collective, collective
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import OPTIMIZERS, VIRTUAL
from irtool.ir.phases import Phase, phases
from irtool.ir.whole import Whole, WholeNode
from irtool.operators.table import operator_of

AliveCause: TypeAlias = Literal[
    "activations", "gathered weights", "gradients", "recomputed", "communication", "temporaries"
]
ALIVE_CAUSES: tuple[AliveCause, ...] = (
    "activations", "gathered weights", "gradients", "recomputed", "communication", "temporaries",
)  # fmt: skip
"""Activations are kept from the forward pass for the backward pass; temporaries are the rest."""

VALIDATE_ERROR = 0.06
"""By what part of a step's tensors a peak may be off that was worked out from validate: the most
that was seen on 69 ranks that were really run.  Of ``graph_build`` it was exact on all of them."""

HCCL_BUFFER = 200 << 20
"""Bytes of one communicator, MindSpore's default of ``HCCL_BUFFSIZE``."""


@dataclass(frozen=True, slots=True)
class Interval:
    """At least ``low`` and at most ``high`` bytes."""

    low: int
    high: int

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)


@dataclass(frozen=True, slots=True)
class AliveTensor:
    """A tensor that is alive at the peak.

    ``born`` and ``dies`` are places in the launch order; ``last_user`` is the node that keeps it.
    """

    node: Node
    index: int
    bytes: int | None
    cause: AliveCause
    phase: Phase
    layer: str
    born: int
    dies: int
    last_user: Node | None


@dataclass(frozen=True, slots=True)
class CommunicatorMemory:
    """Groups that this device takes part in, by name, and the bytes of their buffers."""

    groups: tuple[str, ...]
    bytes: Interval


@dataclass(frozen=True, eq=False)
class Memory(Shown):
    """Memory of one device.

    Attributes:
        static: everything that outlives a step.
        curve: bytes of one step's tensors during each launch; ``launched`` says which node it is.
        peak_launch: the launch with the highest curve (None where nothing is launched).
        alive: what is alive there, the largest first.
        workspace: of the kernel at the peak, unknown: 0 to the largest input of a heavy one.
        fusion: contiguous buffers of fused collectives: none to the largest bucket.
        communicators: of HCCL or NCCL, outside of MindSpore's own pool.
        unknown: tensors without a known size, by name (``%4``, ``inputs0``).
        notes: what the figures leave out.
        is_damaged: whether a part of the dump could not be read.
        order_error: by how much the peak may be off because the order of launches is worked out
            from validate, of which a backend launches some otherwise; one way or the other.
    """

    path: str
    static: tuple[StaticTensor, ...]
    live: Liveness
    curve: tuple[int, ...]
    peak_launch: int | None
    alive: tuple[AliveTensor, ...]
    workspace: Interval
    fusion: Interval
    communicators: CommunicatorMemory
    unknown: tuple[str, ...]
    notes: tuple[str, ...]
    phases: Mapping[Node, Phase]
    collectives: Mapping[Node, Collective]
    rounding: Rounding
    is_damaged: bool = False
    order_error: int = 0

    @property
    def launched(self) -> tuple[WholeNode, ...]:
        """The nodes in launch order."""
        return self.live.launched

    @property
    def static_by_cause(self) -> Mapping[StaticCause, int]:
        """Bytes on the device by cause."""
        return by_cause(self.static)

    @property
    def host_bytes(self) -> int:
        """Bytes of parameters that live in host memory."""
        return sum(by_cause(self.static, on_host=True).values())

    @property
    def static_bytes(self) -> int:
        """Bytes that stay on the device."""
        return sum(self.static_by_cause.values())

    @property
    def dynamic_bytes(self) -> int:
        """The most bytes that the tensors of a step take."""
        return max(self.curve, default=0)

    @property
    def peak_bytes(self) -> int:
        """Static and dynamic bytes together, without what is unknown to a dump."""
        return self.static_bytes + self.dynamic_bytes

    @property
    def peak_interval(self) -> Interval:
        """The peak, with what the order of launches leaves open."""
        return Interval(self.peak_bytes - self.order_error, self.peak_bytes + self.order_error)

    @property
    def device_curve(self) -> tuple[int, ...]:
        """Static and dynamic bytes during each launch."""
        static = self.static_bytes
        return tuple(static + size for size in self.curve)

    def static_by_layer(self, causes: Sequence[StaticCause]) -> dict[str, dict[StaticCause, int]]:
        """Bytes on the device by layer, of some causes."""
        layers: dict[str, dict[StaticCause, int]] = {}
        for item in self.static:
            if item.cause in causes and not item.on_host:
                sizes = layers.setdefault(item.layer, {})
                sizes[item.cause] = sizes.get(item.cause, 0) + (item.bytes or 0)
        return layers

    @property
    def device_bytes(self) -> Interval:
        """The peak with work space, buffers of fused collectives and communicators."""
        peak = self.peak_interval
        return peak + self.workspace + self.fusion + self.communicators.bytes

    @property
    def is_complete(self) -> bool:
        """Whether all was read, every size was known, and every result followed."""
        return not self.unknown and not self.live.incomplete and not self.is_damaged

    def fits(self, limit: int) -> bool | None:
        """Whether a device of ``limit`` bytes is enough; None where the interval leaves it open."""
        needed = self.device_bytes
        if needed.low > limit:
            return False
        return True if needed.high <= limit and self.is_complete else None

    def alive_by_cause(self) -> dict[AliveCause, int]:
        """Bytes alive at the peak by cause."""
        sums = dict.fromkeys(ALIVE_CAUSES, 0)
        for item in self.alive:
            sums[item.cause] += item.bytes or 0
        return sums


@dataclass(frozen=True, slots=True)
class MemoryCounting:
    """How memory is counted.

    ``order`` is MindSpore's launch order, ``dfs``, or ``dump`` (the printed order, to compare);
    ``views`` whether Transpose, Split and slices are views; ``hccl_buffer`` bytes a communicator;
    ``input_copies`` batches that the device holds (2 with a dataset that sinks).
    """

    order: OrderMethod | Literal["dump"] = "bfs"
    rounding: Rounding = "pool"
    views: bool = False
    hccl_buffer: int = HCCL_BUFFER
    input_copies: int = 1


DEFAULTS = MemoryCounting()


def memory(
    dump: Dump,
    options: MemoryCounting = DEFAULTS,
    whole: Whole | None = None,
    launched: Sequence[WholeNode] | None = None,
) -> Memory:
    """Static memory, the curve over a step, its peak and what is alive there.

    Args:
        dump: a dump with backward pass and optimizer (``validate``) of one rank.
        options: how to count.
        whole: the dump's whole view, where it was made already.
        launched: the nodes of that view in the order in which they were really launched, where
            that was recorded; ``options`` say it otherwise.
    """
    whole = whole or dump.whole()
    order = options.order if launched is None else launched
    live = liveness(whole, order, options.rounding, options.views)
    static = static_tensors(dump, live, options.rounding)
    static += tuple(
        item for item in static if item.cause == "inputs" for _ in range(options.input_copies - 1)
    )
    stages = phases(dump)
    communicated = {
        item.node: communication
        for item in live.launched
        if (communication := collective(item.node)) is not None
    }
    alive_bytes = curve(live.buffers, len(live.launched))
    peak = max(range(len(alive_bytes)), key=alive_bytes.__getitem__) if alive_bytes else None
    causes = _Causes(live, stages, communicated)
    alive = _alive(live, peak, causes, stages)
    return Memory(
        dump.path,
        static,
        live,
        tuple(alive_bytes),
        peak,
        alive,
        Interval(0, _workspace(live)),
        Interval(0, _fusion_bucket(communicated)),
        _communicators(communicated, options.hccl_buffer),
        _unknown(live, static),
        tuple(_notes(dump, live, stages)),
        stages,
        communicated,
        options.rounding,
        _is_damaged(dump),
    )


def _alive(
    live: Liveness, peak: int | None, causes: _Causes, stages: Mapping[Node, Phase]
) -> tuple[AliveTensor, ...]:
    if peak is None:
        return ()
    alive: list[AliveTensor] = []
    for buffer in live.buffers:
        if not buffer.born <= peak <= buffer.dies:
            continue
        node = buffer.node.node
        last = live.launched[buffer.users[-1]].node if buffer.users else None
        alive.append(
            AliveTensor(
                node,
                buffer.index,
                buffer.size,
                causes.of(buffer, peak),
                stages.get(node, "other"),
                layer_of_scope(node.scope),
                buffer.born,
                buffer.dies,
                last,
            )
        )
    return tuple(sorted(alive, key=lambda item: (-(item.bytes or 0), item.born, item.index)))


class _Causes:
    """Why a buffer is alive."""

    def __init__(
        self,
        live: Liveness,
        stages: Mapping[Node, Phase],
        communicated: Mapping[Node, Collective],
    ) -> None:
        self.live = live
        self.stages = stages
        self.communicated = communicated
        backward = (
            place for place, item in enumerate(live.launched) if stages.get(item.node) == "backward"
        )
        self.turn = next(backward, len(live.launched))
        self.updates = {
            place
            for place, item in enumerate(live.launched)
            if OPTIMIZERS.match(item.op)
            or item.op.startswith("Assign")
            or _is_mirror(communicated.get(item.node))
        }

    def of(self, buffer: Buffer, peak: int) -> AliveCause:
        node = buffer.node.node
        stage = self.stages.get(node, "other")
        communication = self.communicated.get(node)
        if (
            communication is not None
            and communication.origin == "optimizer parallel"
            and communication.op == "AllGather"
        ):
            return "gathered weights"
        if stage == "recompute":
            return "recomputed"
        if buffer.born >= self.turn and any(user in self.updates for user in buffer.users):
            return "gradients"
        if stage == "forward" and self._is_kept(buffer, peak):
            return "activations"
        return "communication" if communication is not None else "temporaries"

    def _is_kept(self, buffer: Buffer, peak: int) -> bool:
        late = ("backward", "recompute", "optimizer")
        users = (self.live.launched[user].node for user in buffer.users if user >= peak)
        return any(self.stages.get(user) in late for user in users)


def _is_mirror(communication: Collective | None) -> bool:
    if communication is None:
        return False
    reduces = communication.op == "ReduceScatter" and communication.origin == "optimizer parallel"
    return reduces or communication.origin == "mirror"


def _workspace(live: Liveness) -> int:
    """Bytes of the largest input of a product or attention: a guess at a kernel's work space."""
    largest = 0
    for item in live.launched:
        if operator_of(item.op).is_heavy:
            sizes = [one.size for one in item.node.input_types if one is not None]
            largest = max([largest, *(size for size in sizes if size is not None)])
    return largest


def _fusion_bucket(communicated: Mapping[Node, Collective]) -> int:
    """Bytes of the largest set of collectives that may be fused: one copy of all their tensors."""
    buckets: dict[tuple[object, ...], list[int]] = {}
    for item in communicated.values():
        if item.fusion:
            key = (item.op, item.group, item.reduction, item.fusion, item.dtype)
            buckets.setdefault(key, []).append(((item.bytes or 0) // 1024 + 1) * 1024)
    return max((sum(sizes) for sizes in buckets.values() if len(sizes) > 1), default=0)


def _communicators(communicated: Mapping[Node, Collective], size: int) -> CommunicatorMemory:
    """Buffers of the groups in use; at most that of the world besides, which always exists."""
    groups = tuple(sorted({item.group for item in communicated.values() if item.group}))
    if not groups:
        return CommunicatorMemory((), Interval(0, 0))
    world = any(group.endswith("world_group") for group in groups)
    return CommunicatorMemory(
        groups, Interval(len(groups) * size, (len(groups) + (not world)) * size)
    )


def _unknown(live: Liveness, static: Sequence[StaticTensor]) -> tuple[str, ...]:
    tensors = [item.name for item in static if item.bytes is None and item.shape is not None]
    nodes = [str(buffer.node) for buffer in live.buffers if buffer.size is None]
    return (*tensors, *dict.fromkeys(nodes))


def _is_damaged(dump: Dump) -> bool:
    return any(problem.severity == "error" for problem in dump.problems)


def _notes(dump: Dump, live: Liveness, stages: Mapping[Node, Phase]) -> list[str]:
    notes: list[str] = []
    if _is_damaged(dump):
        notes.append("a part of the dump could not be read: what it holds is not counted")
    if live.incomplete:
        notes.append(live.incomplete)
    if not live.launched:
        notes.append("nothing is launched: this dump has no operators")
    elif all(stages.get(item.node) != "backward" for item in live.launched):
        notes.append(
            "no backward pass: what a training step keeps for it is not in this dump; "
            "read the validate dump"
        )
    if any(item.op in VIRTUAL for item in live.launched):
        notes.append("not sliced yet: sizes are those of the whole network, not of a device")
    if any(item.is_weight and item.type is None for item in dump.parameters):
        notes.append("some parameters have no type")
    return notes


__all__ = [
    "ALIVE_CAUSES",
    "AliveCause",
    "AliveTensor",
    "CommunicatorMemory",
    "Interval",
    "Memory",
    "MemoryCounting",
    "memory",
]
