"""Pipelines: what each stage holds and does, in which order, and how long it waits.

One dump a stage is enough: ranks of a stage have equal graphs.  Seconds are those of a machine
model; only their ratios should be relied on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.cluster.flops import flops
from irtool.cluster.flops_seconds import busy_seconds, operator_seconds
from irtool.cluster.fuse import launch_of
from irtool.cluster.machine import Machine
from irtool.cluster.memory import Memory
from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.cluster.pipeline.advice import Advice, advise, layer_count
from irtool.cluster.pipeline.cut import Cut, Layer, best_cut
from irtool.cluster.pipeline.stage_transfers import Ends, Transfers, transfers
from irtool.cluster.pricing import Launch, step_seconds
from irtool.cluster.schedule import (
    Played,
    Schedule,
    ScheduleName,
    StageTimes,
    Task,
    TimedTask,
    gpipe,
    ideal_bubble,
    in_turn,
    interleaved,
    name_of,
    one_forward_one_backward,
    play,
    recovered,
)
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.graph import Node
from irtool.ir.operators import POINT_TO_POINT
from irtool.ir.phases import Phase
from irtool.ir.units import numbered_text
from irtool.ir.whole import WholeNode

ONE_STAGE = "there is one stage: no pipeline"
"""The limit of an answer about a run without a pipeline."""


@dataclass(frozen=True, eq=False)
class StageInput:
    """One dump of a stage: ``rank`` it was compiled for, and the ``ranks`` it speaks for."""

    rank: int
    ranks: tuple[int, ...]
    memory: Memory


@dataclass(frozen=True, slots=True)
class Work:
    """Operations and seconds of one step, by pass; ``unknown`` operators could not be counted."""

    forward: int
    backward: int
    recompute: int
    seconds: StageTimes
    unknown: Mapping[str, int]

    @property
    def all_backward(self) -> int:
        """Operations of the backward pass, recomputed ones included."""
        return self.backward + self.recompute


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage.

    Attributes:
        index: from 0.
        rank: whose dump was read; ``ranks`` those with an equal graph.
        operators: launched nodes by phase.
        work: of all micro-batches of a step, its ``seconds`` of one.
        schedule: as the dump has it; None where no operator names its micro-batch.
        schedule_name: what it is called.
        parameters: bytes of weights on this device.
        static: all bytes that stay.
        activations: bytes at the peak of the step's tensors.
        layers: of this stage, in order.
    """

    index: int
    rank: int
    ranks: tuple[int, ...]
    path: str
    operators: Mapping[Phase, int]
    work: Work
    schedule: Schedule | None
    schedule_name: ScheduleName
    parameters: int
    static: int
    activations: int
    layers: tuple[Layer, ...]

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a step, 1 without a pipeline."""
        return self.schedule.micro_batches if self.schedule else 1

    @property
    def launches(self) -> int:
        """Nodes that are launched in a step."""
        return sum(self.operators.values())

    @property
    def layer_seconds(self) -> float:
        """Seconds of one micro-batch, over all layers."""
        return sum(layer.cost for layer in self.layers)


@dataclass(frozen=True, slots=True)
class Bubble:
    """Idle time of one schedule over working time, with the stages as they are.

    ``ideal`` is that with equal stages by formula; ``ratio`` what a simulation of these stages
    gives (None where it cannot be played), ``share`` the part of all stages' wall time.
    """

    schedule: str
    ideal: float
    ratio: float | None
    share: float | None
    seconds: float | None


@dataclass(frozen=True, eq=False)
class Pipeline(Shown):
    """A pipeline.

    Attributes:
        stages: those whose dumps were read.
        stage_count: how many there are; ``missing`` those without a dump.
        micro_batches: of a step.
        bubbles: of the schedule in the dumps and of others.
        played: the step of the dumps' own schedule (else 1F1B), for a picture.
        transfers: between stages.
        imbalance: how much slower the slowest stage is than the mean.
        cut: the best cut of the same layers; None where stages are missing.
        advice: what to change.
        limits: what could not be said, and why.
    """

    stages: tuple[Stage, ...]
    stage_count: int
    missing: tuple[int, ...]
    micro_batches: int
    bubbles: tuple[Bubble, ...]
    played: Played | None
    transfers: Transfers
    imbalance: float | None
    cut: Cut | None
    advice: tuple[Advice, ...]
    limits: tuple[str, ...]

    @property
    def timeline(self) -> dict[int, tuple[TimedTask, ...]]:
        """When each stage runs which task of a step, in seconds.

        Where it could not be played, tasks of the stages that are there stand one after another,
        in no unit.
        """
        if self.played is not None:
            return dict(enumerate(self.played.stages))
        return {one.index: in_turn(one.schedule) for one in self.stages if one.schedule}


def pipeline(
    inputs: Sequence[StageInput], stage_count: int, device_num: int, machine: Machine
) -> Pipeline:
    """What a pipeline does.

    Args:
        inputs: one dump or more of each stage, as far as there are.
        stage_count: number of stages.
        device_num: number of devices; rank ``r`` is of stage ``r * stages // devices``.
        machine: turns operations and bytes into seconds.
    """
    by_stage: dict[int, StageInput] = {}
    for one in sorted(inputs, key=lambda item: item.rank):
        for rank in one.ranks:  # equal graphs may be of several stages
            by_stage.setdefault(stage_of(rank, stage_count, device_num), one)
    stages = tuple(
        _stage(index, stage_count, device_num, one, machine)
        for index, one in sorted(by_stage.items())
    )
    missing = tuple(index for index in range(stage_count) if index not in by_stage)
    micro = max((one.micro_batches for one in stages), default=1)
    ends = [_ends(one, stage_count, device_num) for one in inputs]
    moved = transfers(ends)
    complete = not missing and stage_count > 1
    bubbles, played = _bubbles(stages, stage_count, micro, complete)
    work = [one.work.seconds.forward + one.work.seconds.backward for one in stages]
    mean = sum(work) / len(work) if work else 0.0
    imbalance = max(work) / mean - 1 if complete and mean else None
    layers = [layer for one in stages for layer in one.layers]
    chunks = _chunks([one.schedule for one in stages if one.schedule is not None])
    cut = best_cut(layers, stage_count) if complete and chunks == 1 else None
    return Pipeline(
        stages,
        stage_count,
        missing,
        micro,
        bubbles,
        played,
        moved,
        imbalance,
        cut,
        advise([one.layers for one in stages], stage_count, micro, cut, chunks)
        if stage_count > 1
        else (),
        (
            *_limits(stages, stage_count, missing, chunks),
            *dict.fromkeys(note for one in inputs for note in one.memory.notes),
        ),
    )


def stage_of(rank: int, stages: int, devices: int) -> int:
    """The stage of a rank: stages are runs of consecutive ranks of equal length.

    Args:
        rank: from 0.
        stages: how many there are.
        devices: of all stages.
    """
    return min(stages - 1, rank * stages // max(1, devices))


def _ends(one: StageInput, stages: int, devices: int) -> Ends:
    items = [
        collective
        for item in one.memory.launched
        if (collective := one.memory.collectives.get(item.node)) is not None
        and collective.op in ("Send", "Receive")
        and collective.origin in ("pipeline", "unknown")
    ]
    return Ends(one.rank, stage_of(one.rank, stages, devices), one.ranks, items)


# -- one stage ---------------------------------------------------------------------------------


def _stage(index: int, stages: int, devices: int, one: StageInput, machine: Machine) -> Stage:
    memory = one.memory
    schedule = recovered(memory.launched, memory.phases)
    micro = schedule.micro_batches if schedule else 1
    operators: dict[Phase, int] = {}
    for item in memory.launched:
        stage = memory.phases.get(item.node, "other")
        operators[stage] = operators.get(stage, 0) + 1
    static = memory.static_by_cause
    price = _prices(memory, one.rank, machine)
    return Stage(
        index,
        one.rank,
        tuple(rank for rank in one.ranks if stage_of(rank, stages, devices) == index),
        memory.path,
        operators,
        _work(memory, price, micro),
        schedule,
        name_of(schedule, index, stages) if schedule else "other",
        static["parameters"],
        memory.static_bytes,
        memory.dynamic_bytes,
        _layers(memory, price, micro, index == stages - 1),
    )


_PASSES: tuple[Phase, ...] = ("forward", "backward", "recompute")


def _work(memory: Memory, price: Mapping[Node, float], micro: int) -> Work:
    operations = dict.fromkeys(_PASSES, 0)
    seconds = dict.fromkeys(_PASSES, 0.0)
    unknown: dict[str, int] = {}
    send = 0.0
    for item in memory.launched:
        node = item.node
        stage = memory.phases.get(node, "other")
        if stage not in operations:
            continue
        collective = memory.collectives.get(node)
        if collective is not None and collective.origin == "pipeline":
            if collective.op == "Send":
                send = max(send, price[node])
            continue
        if _is_once_or_sent(collective):
            continue
        count = flops(node)
        if count is None:
            unknown[node.op] = unknown.get(node.op, 0) + 1
        operations[stage] += count or 0
        seconds[stage] += price[node]
    times = StageTimes(
        seconds["forward"] / micro, (seconds["backward"] + seconds["recompute"]) / micro, send
    )
    return Work(
        operations["forward"], operations["backward"], operations["recompute"], times, unknown
    )


def _prices(memory: Memory, rank: int, machine: Machine) -> dict[Node, float]:
    """Seconds of what is launched: of communications those that all commands count."""
    prices: dict[Node, float] = {}
    launches: dict[Node, Launch] = {}
    for item in memory.launched:
        communicated = memory.collectives.get(item.node)
        if communicated is None:
            if item.node not in prices:
                prices[item.node] = operator_seconds(item.node, machine)
            continue
        ranks = communicated.ranks
        if communicated.op in POINT_TO_POINT:
            peer = communicated.peer
            ranks = None if peer is None else (min(rank, peer), max(rank, peer))
        launches[item.node] = launch_of(communicated, ranks)
    prices.update(zip(launches, step_seconds(list(launches.values()), machine), strict=True))
    return prices


def layer_times(
    inputs: Sequence[StageInput], staged: Pipeline, machine: Machine
) -> tuple[tuple[Layer, ...], ...]:
    """Layers of each stage with the seconds of their arithmetic and memory traffic alone.

    Starting an operator takes longer than a small tensor needs, and hides how uneven stages are;
    this part of their seconds is what grows with the tensors.

    Args:
        inputs: one for each stage, with what it holds.
        staged: the pipeline that was made of them.
        machine: what arithmetic and memory traffic take.

    Returns:
        By stage its layers in the order of the forward pass, in seconds a micro-batch; collectives
        count nothing.
    """
    by_path = {one.memory.path: one for one in inputs}
    layers: list[tuple[Layer, ...]] = []
    for stage in staged.stages:
        memory = by_path[stage.path].memory
        price = {
            item.node: 0.0 if item.node in memory.collectives else busy_seconds(item.node, machine)
            for item in memory.launched
        }
        is_last = stage.index == staged.stage_count - 1
        layers.append(_layers(memory, price, stage.micro_batches, is_last))
    return tuple(layers)


def _layers(
    memory: Memory, price: Mapping[Node, float], micro: int, is_last: bool
) -> tuple[Layer, ...]:
    """Layers in the order of the forward pass, with seconds a micro-batch and bytes that stay.

    Backward operators belong to the layer of their forward operator, as ids tie them.  What is of
    no layer (embedding, loss) stands in front, on the last stage at the end.
    """
    layer: dict[str, str] = {}
    cost: dict[str, float] = {}
    for item in memory.launched:
        if memory.phases.get(item.node) == "forward" and item.node.unique_id:
            layer[item.node.unique_id] = layer_of_scope(item.node.scope)
    for item in memory.launched:
        collective = memory.collectives.get(item.node)
        if memory.phases.get(item.node) not in _PASSES or _is_once_or_sent(collective):
            continue
        seconds = price[item.node] / micro
        if seconds:
            name = _layer_of(item, layer)
            cost[name] = cost.get(name, 0.0) + seconds
    static: dict[str, int] = {}
    for tensor in memory.static:
        if tensor.cause in ("parameters", "optimizer state", "accumulated gradients"):
            static[tensor.layer] = static.get(tensor.layer, 0) + (tensor.bytes or 0)
    _fold_network(cost)
    layers = [Layer(name, one, static.get(name, 0)) for name, one in cost.items()]
    layers.sort(key=lambda one: (one.name == NETWORK) == is_last)
    return tuple(layers)


_SMALL = 0.05
"""Share of a stage below which what is of no layer is not worth a place of its own."""


def _fold_network(cost: dict[str, float]) -> None:
    """Count a little work outside of layers with the first one."""
    rest = cost.get(NETWORK, 0.0)
    first = next((name for name in cost if name != NETWORK), None)
    if first is not None and rest < _SMALL * sum(cost.values()):
        cost.pop(NETWORK, None)
        cost[first] += rest


def _layer_of(item: WholeNode, layer: Mapping[str, str]) -> str:
    tied = item.node.forward_unique_id
    if tied is not None and tied in layer:
        return layer[tied]
    return layer_of_scope(item.node.scope)


def _is_once_or_sent(collective: Collective | None) -> bool:
    """Whether a collective runs once a step or between stages, not in a layer."""
    if collective is None:
        return False
    return collective.op in ("Send", "Receive") or collective.origin in (
        "mirror",
        "optimizer parallel",
    )


# -- waiting -----------------------------------------------------------------------------------


def _bubbles(
    stages: Sequence[Stage], count: int, micro: int, complete: bool
) -> tuple[tuple[Bubble, ...], Played | None]:
    if count < 2:
        return (), None
    times = [one.work.seconds for one in stages]
    bubbles: list[Bubble] = []
    played: Played | None = None
    own = [one.schedule for one in stages if one.schedule is not None]
    if complete and len(own) == count:
        played = play(own, times)
        bubbles.append(_bubble("of the dumps", own, times, micro, _chunks(own)))
    others = {
        "gpipe": [gpipe(stage, count, micro) for stage in range(count)],
        "1f1b": [one_forward_one_backward(stage, count, micro) for stage in range(count)],
    }
    layers = min((layer_count(one.layers) for one in stages), default=0)
    for chunks in (2, 4):
        if micro >= count and layers >= chunks:
            made = [interleaved(stage, count, micro, chunks) for stage in range(count)]
            others[f"interleaved, {chunks} chunks"] = made
    for name, schedules in others.items():
        chunks = _chunks(schedules)
        if complete:
            bubbles.append(_bubble(name, schedules, times, micro, chunks))
        else:
            bubbles.append(Bubble(name, ideal_bubble(count, micro, chunks), None, None, None))
    if played is None and complete:
        played = play(others["1f1b"], times)
    return tuple(bubbles), played


def _chunks(schedules: Sequence[Schedule]) -> int:
    tasks: list[Task] = [task for one in schedules for task in one.tasks]
    return 1 + max((task.chunk for task in tasks), default=0)


def _bubble(
    name: str, schedules: Sequence[Schedule], times: Sequence[StageTimes], micro: int, chunks: int
) -> Bubble:
    ideal = ideal_bubble(len(schedules), micro, chunks)
    played = play(schedules, times)
    if played.waits or not played.seconds:
        return Bubble(name, ideal, None, None, None)
    mean = sum(one.forward + one.backward for one in times) / len(times) * micro
    ratio = played.seconds / mean - 1 if mean else None
    return Bubble(name, ideal, ratio, played.idle_share, played.seconds)


def _limits(stages: Sequence[Stage], count: int, missing: Sequence[int], chunks: int) -> list[str]:
    limits: list[str] = []
    if missing:
        which = numbered_text("stage", missing)
        limits.append(
            f"no dump of {which}: balance, the simulated bubble and the best cut need all"
        )
    if count < 2:
        limits.append(ONE_STAGE)
    unknown = sorted({op for one in stages for op in one.work.unknown})
    if unknown:
        limits.append(f"operations of {', '.join(unknown)} are not known: timed by their bytes")
    if chunks > 1:
        limits.append(f"each stage holds {chunks} runs of layers: no best cut is looked for")
    if count > 1 and any(one.schedule is None for one in stages):
        limits.append("no operator names its micro-batch: the schedule is not in these dumps")
    return limits
