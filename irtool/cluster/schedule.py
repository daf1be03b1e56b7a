"""Pipeline schedules: read from a dump, made by MindSpore's rules, and played against a clock.

A schedule of one stage is a list of tasks: the forward or backward pass of one micro-batch
(through one chunk of layers, where stages hold several).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from irtool.cluster.flops import flops
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.phases import Phase
from irtool.ir.statement import ClosureTarget
from irtool.ir.whole import CallSite, WholeNode

Kind: TypeAlias = Literal["F", "B"]
ScheduleName: TypeAlias = Literal["gpipe", "1f1b", "interleaved", "interleaved gpipe", "other"]


@dataclass(frozen=True, slots=True)
class Task:
    """``F3``: the forward pass of micro-batch 3; ``B3.1``: backward through chunk 1."""

    kind: Kind
    micro: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.micro}" + (f".{self.chunk}" if self.chunk else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Tasks of one stage in order.

    ``warm_up`` is the number of forward passes before the first backward one, ``in_flight`` the
    most micro-batches whose forward pass is done or running and whose backward pass is not.
    """

    tasks: tuple[Task, ...]

    @property
    def micro_batches(self) -> int:
        """How many micro-batches the stage works through in a step."""
        return len({task.micro for task in self.tasks})

    @property
    def warm_up(self) -> int:
        """Forward passes before the first backward pass; all of them where there is none."""
        for place, task in enumerate(self.tasks):
            if task.kind == "B":
                return place
        return len(self.tasks)

    @property
    def in_flight(self) -> int:
        """The most forward passes at once that wait for their backward pass."""
        open_tasks = most = 0
        for task in self.tasks:
            open_tasks += 1 if task.kind == "F" else -1
            most = max(most, open_tasks)
        return most

    def __str__(self) -> str:
        return " ".join(map(str, self.tasks))


def recovered(launched: Sequence[WholeNode], phases: Mapping[Node, Phase]) -> Schedule | None:
    """The schedule that a dump holds: its operators by micro-batch, in launch order.

    Only operators that compute a product tell; where there are none, every operator with a
    micro-batch does.  Neighbours may overlap by a few launches (a gradient that needs nothing of
    the forward pass runs before it), so a task stands where the middle of its operators does.

    Where cells are reused, the calls say it, and the operators inside belong to their calls.

    Args:
        launched: the operators of a step in launch order.
        phases: the pass of the step that each node belongs to.

    Returns:
        None where no operator says its micro-batch: there is no pipeline.
    """
    calls: dict[CallSite, _Batch | None] = {}
    marked = [(item, batch) for item in launched if (batch := _batch(item, calls)) is not None]
    heavy = [pair for pair in marked if _is_product(pair[0].op)] or [
        pair for pair in marked if flops(pair[0].node)
    ]
    places: dict[Task, list[int]] = {}
    for place, (item, (micro, chunk)) in enumerate(heavy):
        kind: Kind = "F" if phases.get(item.node) == "forward" else "B"
        places.setdefault(Task(kind, micro, chunk), []).append(place)
    ordered = sorted(places, key=lambda task: sum(places[task]) / len(places[task]))
    return Schedule(tuple(ordered)) if ordered else None


_Batch: TypeAlias = tuple[int, int]
"""A micro-batch, and the chunk of layers that it goes through."""


def _batch(item: WholeNode, calls: dict[CallSite, _Batch | None]) -> _Batch | None:
    """What a node says of its micro-batch, or the innermost call that says it."""
    if item.node.micro is not None:
        return item.node.micro, _chunk(item.node)
    path: list[CallSite] = []
    site, batch = item.site, None
    while site is not None and site not in calls:
        path.append(site)
        call = _forward_call(site.node)
        micro = _number(call, "micro")
        if micro is not None:
            batch = micro, _chunk(call)
            break
        site = site.outer
    else:
        batch = calls[site] if site is not None else None
    calls.update(dict.fromkeys(path, batch))
    return batch


def _forward_call(call: Node) -> Node:
    """The call itself; of a backward pass the call of the forward pass that it was made by.

    A reused cell returns its result and the function of its backward pass.
    """
    target = call.target
    if not isinstance(target, ClosureTarget) or isinstance(target.callee, str):
        return call
    item = call.graph.source(target.callee) if call.graph is not None else None
    made = item.inputs[0] if isinstance(item, Node) and item.op == "TupleGetItem" else None
    return made if isinstance(made, Node) else call


def _is_product(op: str) -> bool:
    return "MatMul" in op or "Conv" in op or "Attention" in op


def _chunk(node: Node) -> int:
    for key in ("chunk", "segment"):
        number = _number(node, key)
        if number is not None:
            return number
    return 0


def _number(node: Node, key: str) -> int | None:
    value = node.attribute(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def name_of(schedule: Schedule, stage: int, stages: int) -> ScheduleName:
    """What a schedule is called: all forward first, one forward one backward, or chunks.

    Args:
        schedule: of one stage.
        stage: its index, from 0.
        stages: how many there are.
    """
    micro = schedule.micro_batches
    if len({task.chunk for task in schedule.tasks}) > 1:
        all_forward = schedule.warm_up * 2 == len(schedule.tasks)
        return "interleaved gpipe" if all_forward and micro > 1 else "interleaved"
    for name, made in (("1f1b", one_forward_one_backward), ("gpipe", gpipe)):
        if schedule.tasks == made(stage, stages, micro).tasks:
            return name  # type: ignore[return-value]  # one of the two
    return "other"


def gpipe(stage: int, stages: int, micro: int) -> Schedule:
    """All forward passes, then all backward passes, the first micro-batch first in both.

    Source: Huang et al., GPipe (2019); here backward passes go in the order of the forward ones.

    Args:
        stage: index of the stage, from 0; all have one schedule.
        stages: how many there are.
        micro: micro-batches of a step.
    """
    forward = [Task("F", number) for number in range(micro)]
    return Schedule((*forward, *(Task("B", number) for number in range(micro))))


def one_forward_one_backward(stage: int, stages: int, micro: int) -> Schedule:
    """Stage ``s`` of ``S`` runs ``S - s`` forward passes, then one backward, one forward, ….

    Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM (2021), section 2.2.

    Args:
        stage: index of the stage, from 0.
        stages: how many there are.
        micro: micro-batches of a step.
    """
    warm_up = min(micro, stages - stage)
    tasks = [Task("F", number) for number in range(warm_up)]
    for number in range(micro):
        tasks.append(Task("B", number))
        if warm_up + number < micro:
            tasks.append(Task("F", warm_up + number))
    return Schedule(tuple(tasks))


def interleaved(stage: int, stages: int, micro: int, chunks: int) -> Schedule:
    """Each stage holds several pieces of the network and runs micro-batches in rounds.

    Warm-up as MindSpore 2.7 has it by default: ``(S + m mod S)(v - 1) + 2(S - s - 1)`` forward
    passes and one more before the first backward pass. Fewer micro-batches than stages are refused
    by MindSpore.

    Args:
        stage: index of the stage, from 0.
        stages: how many there are.
        micro: micro-batches of a step.
        chunks: pieces that a stage holds; one: no interleaving.
    """
    if chunks == 1:
        return one_forward_one_backward(stage, stages, micro)
    forward = _rounds(stages, micro, range(chunks), "F")
    backward = _rounds(stages, micro, range(chunks - 1, -1, -1), "B")
    warm_up = (stages + micro % stages) * (chunks - 1) + 2 * (stages - stage - 1) + 1
    warm_up = min(len(forward), warm_up)
    tasks = forward[:warm_up]
    for number, task in enumerate(backward):
        tasks.append(task)
        if warm_up + number < len(forward):
            tasks.append(forward[warm_up + number])
    return Schedule(tuple(tasks))


def _rounds(stages: int, micro: int, chunks: Sequence[int], kind: Kind) -> list[Task]:
    """Micro-batches in rounds of one a stage (the first with the rest), chunk after chunk."""
    rest = micro % stages
    tasks: list[Task] = []
    start = 0
    while start < micro:
        count = min(stages + (rest if start == 0 and micro >= stages else 0), micro - start)
        tasks += [Task(kind, start + one, chunk) for chunk in chunks for one in range(count)]
        start += count
    return tasks


# -- against a clock ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds of one micro-batch on a stage, modelled.

    Attributes:
        send: to hand its result or gradient to another stage.
    """

    forward: float
    backward: float
    send: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A task with the time it runs, from the first stage's start."""

    task: Task
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Played:
    """A pipeline step against a clock: tasks of each stage, and when the last one ends.

    ``waits`` is True where the schedules block each other, so that not all tasks could run.
    """

    stages: tuple[tuple[TimedTask, ...], ...]
    seconds: float
    waits: bool = False

    @property
    def busy(self) -> float:
        """Seconds of work of the busiest stage."""
        return max(
            (sum(one.end - one.start for one in stage) for stage in self.stages), default=0.0
        )

    @property
    def idle_share(self) -> float:
        """Share of all stages' time in which nothing runs."""
        total = self.seconds * len(self.stages)
        work = sum(one.end - one.start for stage in self.stages for one in stage)
        return 1 - work / total if total else 0.0


def play(schedules: Sequence[Schedule], times: Sequence[StageTimes]) -> Played:
    """Run schedules: a task waits for its stage, and for its input from a neighbour.

    Args:
        schedules: one for each stage.
        times: of each stage as a whole, in seconds a micro-batch; a chunk takes its share.

    Returns:
        When each task begins and ends; where schedules block each other, as far as they come.
    """
    count = len(schedules)
    chunks = 1 + max((task.chunk for one in schedules for task in one.tasks), default=0)
    ready: dict[tuple[Kind, int, int, int], float] = {}
    clock = [0.0] * count
    place = [0] * count
    done: list[list[TimedTask]] = [[] for _ in range(count)]
    moved = True
    while moved:
        moved = False
        for stage, schedule in enumerate(schedules):
            while place[stage] < len(schedule.tasks):
                task = schedule.tasks[place[stage]]
                needed = _needs(task, stage, count, chunks)
                if needed is not None and needed not in ready:
                    break
                arrival = 0.0 if needed is None else ready[needed]
                if needed is not None and needed[3] != stage:
                    arrival += times[needed[3]].send
                seconds = times[stage].forward if task.kind == "F" else times[stage].backward
                start = max(clock[stage], arrival)
                end = clock[stage] = start + seconds / chunks
                ready[task.kind, task.micro, task.chunk, stage] = end
                done[stage].append(TimedTask(task, start, end))
                place[stage] += 1
                moved = True
    stuck = any(place[stage] < len(schedules[stage].tasks) for stage in range(count))
    return Played(tuple(map(tuple, done)), max(clock, default=0.0), stuck)


def _needs(task: Task, stage: int, count: int, chunks: int) -> tuple[Kind, int, int, int] | None:
    """The task that has to be done before, on this stage or a neighbour; None for the first."""
    if task.kind == "F":
        if stage:
            return "F", task.micro, task.chunk, stage - 1
        return ("F", task.micro, task.chunk - 1, count - 1) if task.chunk else None
    if stage + 1 < count:
        return "B", task.micro, task.chunk, stage + 1
    if task.chunk + 1 < chunks:
        return "B", task.micro, task.chunk + 1, 0
    return "F", task.micro, task.chunk, stage


# -- formulas ----------------------------------------------------------------------------------


def in_turn(schedule: Schedule) -> tuple[TimedTask, ...]:
    """The tasks of one stage one after another, where nobody knows how long they take.

    A backward pass takes twice as long as a forward pass.

    Args:
        schedule: of the stage.

    Returns:
        On a clock on which a forward pass takes one.
    """
    return play([schedule], [StageTimes(1.0, 2.0)]).stages[0]


def ideal_bubble(stages: int, micro: int, chunks: int = 1) -> float:
    """Idle time over working time with equal stages: ``(p - 1) / (v m)``.

    Of GPipe and of one forward one backward alike; interleaving divides it by the chunks.

    Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM (2021), section 2.2.

    Args:
        stages: how many there are, ``p``.
        micro: micro-batches of a step, ``m``.
        chunks: pieces of the network that a stage holds, ``v``.

    Returns:
        0 without micro-batches.
    """
    return (stages - 1) / (chunks * micro) if micro else 0.0


def share_of_wall(ratio: float) -> float:
    """A ratio of idle to working time as the share of wall time that is idle.

    Args:
        ratio: not below 0.

    Returns:
        A part of one.
    """
    return ratio / (1 + ratio)


def least_seconds(times: Sequence[StageTimes], micro: int) -> float:
    """Seconds of a step that no schedule without chunks can beat, for unequal stages.

    Every stage has ``m`` micro-batches of its own work, cannot begin before one forward pass has
    come through the stages before it, nor end a step before one backward pass has gone back.

    Args:
        times: of each stage, in seconds a micro-batch; what sending takes does not count.
        micro: micro-batches of a step, ``m``.
    """
    before = 0.0
    least = 0.0
    for one in times:
        work = one.forward + one.backward
        least = max(least, micro * work + before)
        before += work
    return max(least, before)
