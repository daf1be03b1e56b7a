"""A pipeline of a network that has none: balanced stages, and a plan inside of each.

The network is planned on the devices of one stage; since costs add up operator by operator, and an
edge belongs to the operator that reads it, this plan is the best one inside of every stage, however
the network is cut.  Then its layers, in the order of the dump, are cut into runs so that the
slowest stage is as fast as can be (exact, by dynamic programming).  Under the 1F1B schedule stage
``i`` of ``S`` holds results of ``min(S - i, M)`` of ``M`` micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.cluster.memory_layers import NETWORK, layer_of_scope
from irtool.cluster.pipeline_cut import Layer, best_cut
from irtool.cluster.schedule import ideal_bubble
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.cost_tables import CannotPlan, kept_bytes
from irtool.planning.costs import item_bytes
from irtool.planning.plan import Plan, plan
from irtool.planning.plan_structure import structure_of
from irtool.sharding.network.context import ParallelContext

_TRIES = 4
"""How often the memory of a stage that has to fit is halved in on."""


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage.

    Attributes:
        layers: in order; parts of the network outside of layers have names of their own.
        seconds: of all micro-batches, nothing idle.
        static_bytes: weights, gradients and states on a device.
        activation_bytes: results of the micro-batches that it holds at once.
        sent_bytes: that a device hands to the next stage in a step, forward.
        scopes: of the operators, each once.
    """

    layers: tuple[str, ...]
    seconds: float
    static_bytes: int
    activation_bytes: int
    sent_bytes: int
    scopes: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of a device."""
        return self.static_bytes + self.activation_bytes


@dataclass(frozen=True, eq=False)
class StagedPlan(Shown):
    """A pipeline.

    Attributes:
        inner: the plan of the network on the devices of one stage.
        devices: of all stages.
        stages: first to last.
        micro_batches: in a step.
        bubble: part of a step that a stage is idle for, if all take as long.
        seconds: of a step: the slowest stage, its bubble, and what the stages hand on.
        replanned: numbers of stages that were planned anew to fit into the memory.
    """

    inner: Plan
    devices: int
    stages: tuple[PlannedStage, ...]
    micro_batches: int
    bubble: float
    seconds: float
    replanned: tuple[int, ...] = ()

    @property
    def imbalance(self) -> float:
        """How much slower the slowest stage is than the mean."""
        times = [stage.seconds for stage in self.stages]
        return max(times) * len(times) / sum(times) - 1 if sum(times) else 0.0


@dataclass(eq=False, slots=True)
class _Run:
    """Operators in a row that belong to one layer."""

    name: str
    nodes: list[Node]
    seconds: float = 0.0
    static: int = 0
    kept: int = 0
    out: int = 0


def staged_plan(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    stages: int,
    *,
    devices: int | None = None,
    micro_batches: int | None = None,
    memory_limit: int | None = None,
) -> StagedPlan:
    """Cut a network into stages, and plan inside of each.

    Args:
        dump: a begin dump of the whole network, one stage.
        context: what it was compiled under.
        machine: what things cost.
        stages: how many.
        devices: of all stages; None: those of the context.
        micro_batches: in a step; None: four for each stage.
        memory_limit: bytes of one device; a stage that needs more is planned anew under it.

    Raises:
        CannotPlan: it can't be cut like this; the message says what would have to change.
    """
    total = devices or context.devices
    if context.stages > 1:
        raise CannotPlan("this dump is of a pipeline already: give the dump of the whole network")
    if total % stages:
        raise CannotPlan(f"{total} devices cannot be divided among {stages} stages")
    micro = micro_batches or 4 * stages
    inner = plan(dump, context, machine, devices=total // stages)
    runs = list(_runs(inner))
    cut = best_cut([Layer(str(at), run.seconds) for at, run in enumerate(runs)], stages)
    if cut is None:
        names = ", ".join(run.name for run in runs)
        raise CannotPlan(f"{stages} stages need as many layers, and there are {len(runs)}: {names}")
    parts = [[int(at) for at in places] for places in cut.stages]
    found = _stages(runs, parts, micro)
    replanned: list[int] = []
    for number in range(stages) if memory_limit is not None else ():
        if found[number].bytes > (memory_limit or 0):
            anew = _fitted(inner, machine, parts, number, micro, memory_limit or 0)
            inner = _as_of(inner, anew)
            found = _stages(list(_runs(inner)), parts, micro)
            replanned.append(number)
    size = total // stages
    sent = sum(
        2 * machine.seconds("Send", stage.sent_bytes, (size * at, size * (at + 1)))
        for at, stage in enumerate(found[:-1])
    )
    bubble = ideal_bubble(stages, micro)
    slowest = max(stage.seconds for stage in found)
    # A step is as long as the slowest stage takes, and as often again as the pipeline fills.
    seconds = slowest * (micro + stages - 1) / micro + sent / micro
    return StagedPlan(inner, total, found, micro, bubble, seconds, tuple(replanned))


def _stages(
    runs: Sequence[_Run], parts: Sequence[Sequence[int]], micro: int
) -> tuple[PlannedStage, ...]:
    """What each part of the runs takes as a stage."""
    found: list[PlannedStage] = []
    for number, places in enumerate(parts):
        part = [runs[at] for at in places]
        held = min(len(parts) - number, micro)
        found.append(
            PlannedStage(
                tuple(run.name for run in part),
                sum(run.seconds for run in part),
                sum(run.static for run in part),
                sum(run.kept for run in part) * held // micro,
                part[-1].out if number < len(parts) - 1 else 0,
                tuple(dict.fromkeys(node.scope or "" for run in part for node in run.nodes)),
            )
        )
    return tuple(found)


def _fitted(
    inner: Plan,
    machine: Machine,
    parts: Sequence[Sequence[int]],
    number: int,
    micro: int,
    limit: int,
) -> Plan:
    """A plan whose stage of some number fits, all other stages as they are.

    The search counts results of a whole step, and a stage holds those of some micro-batches: how
    much the search may use is halved in on.

    Raises:
        CannotPlan: the stage does not fit.
    """
    runs = list(_runs(inner))
    part = [runs[at] for at in parts[number]]
    nodes = frozenset(node for run in part for node in run.nodes)
    now = sum(run.static + run.kept for run in part)
    others = inner.after.memory.total - now
    low, high = min(limit, now), now
    best: Plan | None = None
    for room in (low, *[0] * _TRIES):
        room = room or (low + high) // 2
        try:
            tried = plan(
                inner.dump, inner.context, machine, region=nodes, memory_limit=int(others + room)
            )
        except CannotPlan:
            low = room
            continue
        if _stages(list(_runs(tried)), parts, micro)[number].bytes > limit:
            high = room
            continue
        low = room
        if best is None or tried.after.seconds < best.after.seconds:
            best = tried
    if best is None:
        needed = _stages(runs, parts, micro)[number].bytes
        raise CannotPlan(
            f"stage {number} needs {needed:,} bytes a device, {limit:,} are allowed, and no other "
            "strategies of it that fit were found: more stages, more micro-batches, or more "
            "devices would be needed"
        )
    return best


def _as_of(first: Plan, anew: Plan) -> Plan:
    """A plan made from another one, told from where that one began.

    Its bound is that without a limit: a stage planned anew beside others that stay as they are
    need not be the best one.
    """
    operators = tuple(
        replace(new, before=old.before, out_before=old.out_before, pinned=old.pinned)
        for old, new in zip(first.operators, anew.operators, strict=True)
    )
    return replace(
        anew,
        operators=operators,
        before=first.before,
        lower_bound=first.lower_bound,
        memory_limit=None,
        seconds=first.seconds + anew.seconds,
        rounds=first.rounds + anew.rounds,
        notes=first.notes,
        border=None,
    )


def _runs(inner: Plan) -> Iterator[_Run]:
    """Operators by layer, in the order of the dump; what is between layers goes with the next."""
    structure = structure_of(inner.dump, inner.context)
    seconds: dict[Node, float] = {}
    static: dict[Node, int] = {}
    for item in inner.after.items:
        if item.node is not None:
            seconds[item.node] = seconds.get(item.node, 0.0) + item.total
    known = {parameter.name: parameter for parameter in structure.parameters}
    for item in inner.report.parameters:
        parameter = known.get(item.name)
        if parameter is None or item.user is None or item.slice is None:
            continue
        each = parameter.element * (2 if parameter.trained else 1) + parameter.states
        static[item.user] = static.get(item.user, 0) + prod(item.slice) * each
    runs: list[_Run] = []
    for node in inner.dump.nodes():
        report = inner.report.by_node.get(node)
        if report is None:
            continue
        name = layer_of_scope(node.scope)
        if not runs or runs[-1].name != name:
            runs.append(_Run(name, []))
        run = runs[-1]
        run.nodes.append(node)
        run.seconds += seconds.get(node, 0.0)
        run.static += static.get(node, 0)
        if node in structure.with_gradient and node in structure.calls:
            run.kept += int(kept_bytes(structure.calls[node], report.judgement))
        if report.judgement.output_slices:
            results = report.call.call.results
            dtype = results[0].dtype if results else None
            run.out = prod(report.judgement.output_slices[0]) * item_bytes(dtype)
    yield from _joined(runs)


def _joined(runs: list[_Run]) -> list[_Run]:
    """Layers that the dump interleaves are one; numbered parts outside of layers get names."""
    found: list[_Run] = []
    for run in runs:
        again = next((at for at, each in enumerate(found) if each.name == run.name), None)
        if again is None or run.name == NETWORK:
            found.append(run)
            continue
        # What stands between two parts of a layer belongs to it.
        first = found[again]
        for each in (*found[again + 1 :], run):
            first.nodes += each.nodes
            first.seconds += each.seconds
            first.static += each.static
            first.kept += each.kept
            first.out = each.out
        del found[again + 1 :]
    for at, run in enumerate(found):
        if run.name == NETWORK:
            run.name = "before the layers" if at == 0 else "behind the layers"
            run.name = run.name if at in (0, len(found) - 1) else "between layers"
    return found
