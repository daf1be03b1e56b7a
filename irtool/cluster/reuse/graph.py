"""A graph as MindSpore 1.8 to 2.2 see it when they reuse communication subgraphs.

Kinds of collectives that could share a subgraph, their keys, and the streams and labels that the
graph takes when some kinds are reused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irtool.cluster.fuse import fusion
from irtool.cluster.launch_order import launches_nothing
from irtool.cluster.ranks import RankProgram, Step
from irtool.cluster.reuse.streams import (
    GROUP_BUFFER_BYTES,
    STREAM_LIMIT,
    STREAMS_PER_COMMUNICATION,
    TASKS_PER_STREAM,
    Communicated,
    ParallelMode,
    communication_streams,
    compute_streams,
    queue_name,
    reserved_streams,
    tasks,
    total_streams,
)
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.types import Abstract

_TAGGED = (
    "AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AlltoAllV", "AllSwap",
    "NeighborExchange", "NeighborExchangeV2", "NeighborExchangeV2Grad",
)  # fmt: skip
_TAGGED_FROM_22 = ("Reduce", "Barrier")
_TO_ALL_TO_ALL_V = frozenset(
    ("AlltoAll", "AlltoAllV", "NeighborExchange", "NeighborExchangeV2", "NeighborExchangeV2Grad")
)
_ROOT_GRAPH = "_<graph id>"


@dataclass(frozen=True, slots=True)
class Target:
    """What the graph is compiled for: MindSpore's version and the device's limits."""

    version: tuple[int, int] = (2, 2)
    stream_limit: int = STREAM_LIMIT
    task_optimisation: bool = False
    parallel_mode: ParallelMode = "all_group_parallel"

    @property
    def version_text(self) -> str:
        """The version of MindSpore as people write it: ``2.2``."""
        return ".".join(map(str, self.version))

    @property
    def usable_streams(self) -> int:
        """Streams that a graph may take."""
        return self.stream_limit - reserved_streams(self.version)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kind of collective: operators that could share one subgraph, or could not.

    Attributes:
        key: MindSpore's key, by which kinds are ordered; the graph's id is left open.
        tasks: of a stream, for one operator.
        capacity: how many operators fit on a stream.
        barred: why these can never be reused; empty if they can.
        count: how many there are in the dump.
        operators: how many of them are left when the backend has fused those with equal ids.
        in_micros: how many of them belong to a micro-batch.
    """

    key: str
    op: str
    dtype: str | None
    shape: tuple[int, ...] | None
    group: str | None
    ranks: tuple[int, ...] | None
    reduction: str | None
    count: int
    operators: int
    in_micros: int
    tasks: int
    capacity: int
    barred: str
    first: Node

    @property
    def eligible(self) -> bool:
        """Whether the operators would be reused if the cap allowed."""
        least = 1 if self.op in _TO_ALL_TO_ALL_V else self.capacity
        return not self.barred and self.count > least

    @property
    def streams(self) -> int:
        """Communication streams that the operators need by themselves."""
        return -(-self.operators // self.capacity)


@dataclass(frozen=True, slots=True)
class Choice:
    """What one value of the cap does: keys taken, and what the graph then needs."""

    cap: int
    taken: tuple[str, ...]
    reused: int
    streams: int
    communication_streams: int
    labels: int

    @property
    def device_streams(self) -> int:
        """Streams of the device that communicate: secondary ones included."""
        return STREAMS_PER_COMMUNICATION * self.communication_streams

    @property
    def compute_streams(self) -> int:
        """Streams of the device that compute."""
        return self.streams - self.device_streams

    @property
    def subgraphs(self) -> int:
        """Subgraphs made, each with an HCCL group of its own."""
        return len(self.taken)

    @property
    def buffer_bytes(self) -> int:
        """Device memory of the HCCL groups that come with the subgraphs."""
        return self.subgraphs * GROUP_BUFFER_BYTES


class Graph:
    """A rank's graph as streams and labels see it."""

    def __init__(self, one: RankProgram, devices: int, target: Target) -> None:
        self.target = target
        steps = one.program.steps
        self.tagged_at_all = any(_has_tag(step.collective.node) for step in steps)
        self.keys = [_key(step, target) for step in steps]
        self.queues = [
            Communicated(
                queue_name(step.collective.group, step.collective.ranks, target.parallel_mode),
                _tasks(step, devices, target),
            )
            for step in steps
        ]
        # Fused collectives are one operator by then: the last of each bucket stands for all.
        self.fused_away = _fused_away(one)
        self.candidates = _candidates(steps, self.keys, self.queues, self.fused_away, target)
        self.communications = len(steps) - len(self.fused_away)
        self.control_labels = control_labels(one)
        micros = {node.micro for node in one.program.dump.nodes() if node.micro is not None}
        self.micros = len(micros)
        self.compute = one.program.operators - len(steps)
        self.compute_in_micros = _compute_in_micros(one) if micros else 0

    def choose(self, cap: int) -> Choice:
        """MindSpore's own choice under a cap: in the order of keys, whole kinds only."""
        taken: list[str] = []
        reused = 0
        for item in self.candidates:
            if item.eligible and reused + item.count <= cap:
                taken.append(item.key)
                reused += item.count
        return self.outcome(cap, tuple(taken), reused)

    def outcome(self, cap: int, taken: tuple[str, ...], reused: int) -> Choice:
        """Streams and labels where certain kinds are reused."""
        gone = frozenset(taken)
        left = [
            queue
            for place, (key, queue) in enumerate(zip(self.keys, self.queues, strict=True))
            if key not in gone and place not in self.fused_away
        ]
        communication = communication_streams(left) + len(taken)
        streams = total_streams(compute_streams(self.compute), communication)
        labels = 1 + len(taken) + reused + self.control_labels
        return Choice(cap, taken, reused, streams, communication, labels)


# -- kinds -----------------------------------------------------------------------------------------


def _has_tag(node: Node) -> bool:
    return node.attribute("comm_reuse") is True


def _barred(step: Step, target: Target) -> str:
    item = step.collective
    tagged = _TAGGED + (_TAGGED_FROM_22 if target.version >= (2, 2) else ())
    if item.fusion:
        return f"not tagged: fusion {item.fusion}"
    if item.op not in tagged:
        return f"{item.op} is never reused"
    return "" if _has_tag(item.node) else "not tagged"


def _key(step: Step, target: Target) -> str:
    """MindSpore's key of a communication; barred ones get a mark, so that they stay apart."""
    item = step.collective
    node = item.node
    op = "AllToAllv" if item.op in _TO_ALL_TO_ALL_V else item.op
    parts = [op, _shape_and_type(node.output_type), item.group or ""]
    if item.reduction:
        parts.append(item.reduction)
    for name in ("send_rank_ids", "recv_rank_ids"):
        ranks = node.attribute(name)
        if isinstance(ranks, tuple | list):
            parts.append(f"[{','.join(map(str, ranks))}]")  # type: ignore[arg-type]  # of ranks
    key = "_".join(parts)
    if target.version >= (2, 0):
        key += _ROOT_GRAPH
    barred = _barred(step, target)
    if item.fusion:
        # Tensors of any shape become one operator.
        return f"{op}_{item.group}_{item.reduction} ({barred})"
    return f"{key} ({barred})" if barred else key


def _shape_and_type(abstract: Abstract | None) -> str:
    """Shape and type as MindSpore's texts have them: ``(4, 64)_Tensor[Float32]``."""
    if abstract is None:
        return "_"
    tensors = abstract.tensors
    if not tensors:
        return f"()_{abstract.dtype}"
    shapes = [_shape(shape) for _, shape in tensors]
    types = [f"Tensor[{dtype}]" for dtype, _ in tensors]
    if len(tensors) == 1:
        return f"{shapes[0]}_{types[0]}"
    return f"TupleShape({', '.join(shapes)})_Tuple[{','.join(types)}]"


def _shape(shape: Sequence[int] | None) -> str:
    return f"({', '.join(map(str, shape or ()))})"


def _tasks(step: Step, devices: int, target: Target) -> int:
    item = step.collective
    return tasks(item.op, item.group, item.ranks, devices, target.version, target.task_optimisation)


def _candidates(
    steps: Sequence[Step],
    keys: Sequence[str],
    queues: Sequence[Communicated],
    fused_away: Collection[int],
    target: Target,
) -> list[Candidate]:
    members: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        members.setdefault(key, []).append(number)
    candidates: list[Candidate] = []
    for key in sorted(members):
        numbers = members[key]
        step = steps[numbers[0]]
        item = step.collective
        output = item.node.output_type
        tensors = output.tensors if output is not None else ()
        dtype, shape = tensors[0] if len(tensors) == 1 else (item.dtype, item.shape)
        used = queues[numbers[0]].tasks
        candidates.append(
            Candidate(
                key,
                item.op,
                dtype,
                shape,
                item.group,
                item.ranks,
                item.reduction,
                len(numbers),
                sum(number not in fused_away for number in numbers),
                sum(steps[number].collective.node.micro is not None for number in numbers),
                used,
                TASKS_PER_STREAM // used,
                _barred(step, target),
                item.node,
            )
        )
    return candidates


def _fused_away(one: RankProgram) -> frozenset[int]:
    """Places of steps that the backend makes part of another, the last of their bucket."""
    return frozenset(
        tensor.place
        for bucket in fusion(one).buckets
        for tensor in bucket.tensors
        if tensor.place != bucket.ready
    )


# -- labels and micro-batches ----------------------------------------------------------------------


def control_labels(one: RankProgram) -> int:
    """Labels of control flow: one for every call that stays, and one for every graph called.

    Args:
        one: the rank, whose calls that can't be inlined count.
    """
    kept = one.program.dump.whole().kept_calls
    graphs = {graph.name for call in kept for graph in call.graphs}
    return len(kept) + len(graphs)


def _compute_in_micros(one: RankProgram) -> int:
    nodes = one.program.dump.nodes()
    return sum(
        node.micro is not None and not launches_nothing(node.op) and node.op not in COMMUNICATION
        for node in nodes
    )
