"""Where a step goes, by what ``check`` predicts: operators, edges, weights, and their causes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import prod

from irtool.cluster.account import Account, fused_bytes
from irtool.cluster.machine import Machine
from irtool.cluster.pricing import Overlap
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.graph import likeliest
from irtool.operators.layout import Shape
from irtool.planning.cost.costs import (
    BACKWARD_WORK,
    CAUSES,
    Cause,
    Communication,
    compute_seconds,
    copied_bytes,
    copy_seconds,
    item_bytes,
    operations_of,
    seconds_of,
)
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import Parameter, Structure
from irtool.planning.cost.weights import priced_weight
from irtool.planning.plans.step.communication import (
    Communicated,
    edge_bytes,
    of_edge,
    of_operator,
    of_weight,
    others,
    transfers,
    unsized,
)
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.kept import kept_in
from irtool.planning.plans.step.shared import cause_of, overlaps, with_common_starts
from irtool.sharding.network.communications import HIDES
from irtool.sharding.network.graphs import Use
from irtool.sharding.network.recomputation import Recomputed
from irtool.sharding.network.report import (
    CheckResult,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.network.sharded_nodes import primitive


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """Bytes of one device, as :class:`irtool.cluster.account.Account` counts them.

    Attributes:
        weights: as they are stored.
        gradients: of all trained weights, as they are stored.
        states: of optimizers.
        activations: results that are kept for the backward pass.
        accumulated: sums of gradients that stay from micro-batch to micro-batch.
        gathered: weights that optimizer parallel gathered, kept for the backward pass.
        inputs: one batch.
        other: what is kept from step to step for no single weight.
        fused: the largest buffer of a fused collective.
        recomputed: what the largest layer holds while a plan's recomputation makes it again.
    """

    weights: int
    gradients: int
    states: int
    activations: int
    accumulated: int = 0
    gathered: int = 0
    inputs: int = 0
    other: int = 0
    fused: int = 0
    recomputed: int = 0

    @property
    def buffers(self) -> int:
        """Bytes of ``fused`` for which what was kept leaves no room."""
        return max(0, self.fused - self.activations - self.recomputed - self.gathered)

    @property
    def total(self) -> int:
        """Bytes that a device must have for all of it."""
        account = Account(
            self.weights,
            self.states,
            self.accumulated,
            self.inputs,
            self.other,
            self.activations + self.recomputed,
            self.gathered,
            self.gradients,
            self.fused,
        )
        return account.total


@dataclass(frozen=True, slots=True)
class KindCost:
    """Communications of one kind: how many, their seconds, bytes that one device receives."""

    count: int
    seconds: float
    received: int


@dataclass(frozen=True, eq=False)
class StepCost(Shown):
    """A step of one device of the stage.

    ``unknown``: parts that could not be priced, as texts; then the sums are too small.
    ``transfers``: what it sends to other stages and receives from them, no part of ``seconds``:
    what of it is waited for, the pipeline's schedule says. ``memory``: what a device holds, which a
    plan's limit is held against. ``hides``: seconds of communication that count as hidden, by the
    machine's ``overlap``.
    """

    machine: Machine
    items: tuple[CostItem, ...]
    memory: MemoryCost
    unknown: tuple[str, ...]
    differentiates: bool
    transfers: tuple[Communication, ...] = ()
    hides: float = 0.0

    @property
    def seconds(self) -> float:
        """A step, in seconds, less what counts as hidden (without an ``overlap`` nothing does)."""
        return self.spent - self.hides

    @cached_property
    def spent(self) -> float:
        """Seconds of everything, one after the other."""
        return sum(item.total for item in self.items)

    @cached_property
    def shares(self) -> dict[Cause, float]:
        """Seconds by cause, all causes listed; what hides behind computing is not taken off."""
        shares = dict.fromkeys(CAUSES, 0.0)
        for item in self.items:
            for cause, seconds in item.seconds.items():
                shares[cause] += seconds
        return shares

    @property
    def operations(self) -> int:
        """Operations of a step on one device, the backward pass included."""
        return sum(item.operations for item in self.items)

    @property
    def recompute_seconds(self) -> float:
        """What recomputing adds to the step, where the network asks for it; not in ``seconds``."""
        return sum(item.again for item in self.items)

    @cached_property
    def overlaps(self) -> tuple[Overlap, Overlap]:
        """What computing hides of the sums of gradients, and of the gathers of weights."""
        return overlaps(self.items, self.machine)

    @property
    def hidden_at_best(self) -> float:
        """Seconds of communication that computing could hide, fused as it is."""
        return sum(overlap.hidden for overlap in self.overlaps)

    @property
    def communications(self) -> Iterator[Communication]:
        """All collectives of the step."""
        return (communication for item in self.items for communication in item.communications)

    @property
    def by_link(self) -> dict[str, float]:
        """Seconds of communication by the links that it uses."""
        seconds = {level.name: 0.0 for level in self.machine.levels}
        for (_, _, level), cost in self.by_kind.items():
            seconds[level] += cost.seconds
        return seconds

    @property
    def by_kind(self) -> dict[tuple[str, str, str], KindCost]:
        """Communication by collective, phase and links, the dearest first."""
        kinds: dict[tuple[str, str, str], KindCost] = {}
        for communication in self.communications:
            key = (
                communication.op,
                communication.phase,
                self.machine.level_of(communication.ranks).name,
            )
            old = kinds.get(key, KindCost(0, 0.0, 0))
            kinds[key] = KindCost(
                old.count + 1,
                old.seconds + communication.seconds,
                old.received + communication.received,
            )
        return dict(sorted(kinds.items(), key=lambda pair: -pair[1].seconds))

    @property
    def received(self) -> dict[tuple[str, str], int]:
        """Bytes that a device receives, by collective and phase."""
        received: dict[tuple[str, str], int] = {}
        for communication in self.communications:
            key = (communication.op, communication.phase)
            received[key] = received.get(key, 0) + communication.received
        return received

    def dearest(self, count: int) -> tuple[CostItem, ...]:
        """The items that take longest, the longest first."""
        return tuple(sorted(self.items, key=lambda item: -item.total)[:count])


def step_cost(structure: Structure, report: CheckResult, machine: Machine) -> StepCost:
    """Price what ``check`` says of a network.

    Args:
        structure: of the dump that was checked (the same object).
        report: what ``check`` says.
        machine: what things cost.
    """
    unknown: list[str] = []
    hidden = tuple(HIDES.values())
    unknown += [
        text for text in report.communications_unknown if any(what in text for what in hidden)
    ]
    items = [
        *_operators(structure, report, machine, unknown),
        *_edges(structure, report, machine, unknown),
    ]
    parameters = {item.name: item for item in structure.parameters}
    weights = gradients = states = accumulated = gathered = other = 0
    for item in report.parameters:
        own = prod(item.slice) * _element_of(item) if item.slice is not None else 0
        if item.role == "accumulated gradient":
            accumulated += own
            continue
        if item.role == "other":
            other += own
        known = parameters.get(item.name)
        if known is None:
            sizes = _of_unused(item, own, parameters)
            weights, gradients, states = (
                weights + sizes[0], gradients + sizes[1], states + sizes[2],
            )  # fmt: skip
            continue
        if item.base is None or item.slice is None:
            unknown.append(f"weight {item.name}: {item.why}")
            continue
        cost_item, sizes = _weight(structure, item, known, report, machine, unknown)
        items.append(cost_item)
        weights, gradients, states = (
            weights + sizes[0], gradients + sizes[1], states + sizes[2],
        )  # fmt: skip
        if item.gather_ranks is not None and structure.reads(known):
            gathered += prod(item.base) * known.element
    priced = {item.name for item in items if item.kind == "weight"}
    items += others(report, machine, priced, unknown)
    memory = MemoryCost(
        weights,
        gradients,
        states,
        kept_in(structure, report),
        accumulated,
        gathered,
        inputs=_inputs(structure, report),
        other=other,
        fused=fused_bytes(
            communication.launch for item in items for communication in item.communications
        ),
    )
    made = StepCost(
        machine,
        with_common_starts(items, machine),
        memory,
        tuple(unknown),
        structure.differentiates,
        transfers(report, machine),
    )
    hides = machine.overlap * made.hidden_at_best if machine.overlap else 0.0
    return replace(made, hides=hides)


def _of_unused(item: ParameterReport, own: int, known: Collection[str]) -> tuple[int, int, int]:
    """Bytes of weight, gradient and states of a weight that no operator takes, only its update."""
    if item.role == "weight":
        return own, own, 0
    return 0, 0, own if item.role == "state" and item.weight not in known else 0


def _inputs(structure: Structure, report: CheckResult) -> int:
    """Bytes of one batch, as it arrives at a device.

    A pipeline stage that reads no batch has the inputs all the same.  MindSpore cuts them over the
    stage's devices where they have rows enough, unless each device gets the whole batch
    (``HandleNoUsedParameter``).
    """
    total = 0
    for item in report.dataset:
        type = item.parameter.type if item.parameter is not None else None
        if type is not None and min(item.slice, default=0) >= 0:
            total += prod(item.slice) * item_bytes(type.dtype)
    if report.dataset or report.context.stages == 1:
        return total
    parts = 1 if report.context.full_batch else report.context.stage_size
    for one in structure.dump.parameters:
        shape = one.type.dimensions if one.type is not None else None
        if one.is_weight or one.type is None or shape is None or min(shape, default=0) < 0:
            continue
        size = prod(shape) * item_bytes(one.type.dtype)
        total += size // shape[0] * (shape[0] // parts) if shape and shape[0] >= parts else size
    return total


def _element_of(item: ParameterReport) -> int:
    type = item.parameter.type
    return item_bytes(type.dtype if type is not None else None)


def without_strategy(report: CheckResult) -> int:
    """How many operators have neither a strategy nor a layout in the dump.

    Args:
        report: what ``check`` says of it; Reshape and what MindSpore itself decides on don't count.
    """
    return sum(
        not item.node.has_strategy and item.node.attribute("in_layout") is None
        for item in report.operators
        if primitive(item.node) not in (*FIXED, "Reshape")
    )


def has_sizes(shapes: Iterable[Shape]) -> bool:
    """Whether every dimension has a size."""
    return all(size >= 0 for shape in shapes for size in shape)


def _operators(
    structure: Structure, report: CheckResult, machine: Machine, unknown: list[str]
) -> Iterator[CostItem]:
    for item in report.operators:
        if primitive(item.node) == "Reshape":
            continue
        if item.verdict != "legal":
            unknown.append(f"{item.node.id} {item.op}: its strategy is {item.verdict}")
            continue
        if not has_sizes((*item.judgement.raw_inputs, *item.judgement.raw_outputs)):
            unknown.append(f"{item.node.id} {item.op}: its sizes are not known")
            continue
        own = of_operator(structure, item, report, machine)
        unknown += (unsized(f"{item.node.id} {item.op}: {text}") for text in own.unsized)
        yield _operator(structure, item, machine, report.again, own)


def _operator(
    structure: Structure,
    item: OperatorReport,
    machine: Machine,
    again: Recomputed,
    own: Communicated,
) -> CostItem:
    gradient, runs = item.node in structure.with_gradient, structure.runs(item.node)
    call = item.call.call
    compute = runs * compute_seconds(call, item.judgement, machine, gradient=gradient)
    seconds: dict[Cause, float] = {"compute": compute}
    if own.once:
        seconds["operator collectives"] = seconds_of(own.once)
    work = 1 + BACKWARD_WORK if gradient else 1
    computed = compute / work if item.node in again.nodes else 0.0
    return CostItem(
        "operator",
        item.node,
        item.op,
        seconds,
        own.once,
        strategy=item.strategy,
        operations=runs * work * operations_of(call, item.judgement),
        again=computed + seconds_of(own.again),
        repeated=own.again,
        backward=compute * (work - 1) / work,
    )


def _edges(
    structure: Structure, report: CheckResult, machine: Machine, unknown: list[str]
) -> Iterator[CostItem]:
    made: set[object] = set()
    again = {_result(item) for item in report.redistributions if _runs_again(item, report.again)}
    for item in report.redistributions:
        if item.operators is None:
            unknown.append(f"{item.producer.id} to {item.consumer.id}: {item.why}")
            continue
        if not item.operators:
            continue
        if not has_sizes(
            shape for step in item.operators for shape in (step.input_shape, step.output_shape)
        ):
            unknown.append(f"{item.producer.id} to {item.consumer.id}: its sizes are not known")
            continue
        own = of_edge(structure, item, report, machine)
        # What several users want of one result alike, MindSpore's later passes make once.
        same = _result(item)
        is_first = item.replaces or same not in made
        made.add(same)
        runs_again = _runs_again(item, report.again) if item.replaces else same in again
        copied = structure.runs(item.consumer) * _copied(item, machine) if is_first else 0.0
        if not own.once and not own.again and not is_first:
            continue
        times = 2 if item.producer in structure.with_gradient else 1
        name = item.consumer.op if item.replaces else f"{item.producer.op} to {item.consumer.op}"
        yield CostItem(
            "edge",
            item.consumer,
            name,
            {"redistribution": seconds_of(own.once) + times * copied},
            own.once,
            item.producer,
            again=seconds_of(own.again) + (copied if runs_again else 0.0),
            repeated=own.again,
        )


def _copied(item: RedistributionReport, machine: Machine) -> float:
    """Seconds of what a redistribution copies on each device, in one direction."""
    sizes = copied_bytes(item.operators or (), edge_bytes(item))
    return sum(copy_seconds(size, machine) for size in sizes)


def _runs_again(item: RedistributionReport, runs: Recomputed) -> bool:
    """Whether what is inserted there runs again for the backward pass."""
    return Use(item.consumer, item.input, item.item) in runs.chains


def _result(item: RedistributionReport) -> Hashable:
    """Equal for redistributions that are made once."""
    holder, position = (item.tie, item.item) if item.tie else (item.consumer, item.input)
    return id(likeliest(holder.inputs[position])), item.operators, edge_bytes(item), item.replaces


def _weight(
    structure: Structure,
    item: ParameterReport,
    known: Parameter,
    report: CheckResult,
    machine: Machine,
    unknown: list[str],
) -> tuple[CostItem, tuple[int, int, int]]:
    cost = priced_weight(
        prod(item.base or ()) * known.element,
        prod(item.slice or ()) * known.element,
        int(prod(item.slice or ()) * known.states),
        item.mirror_ranks,
        item.gather_ranks,
        machine,
        structure.fusion_of(known),
        trained=known.trained,
    )
    own = of_weight(structure, item, known, report, machine)
    unknown += (unsized(f"weight {item.name}: {text}") for text in own.unsized)
    seconds: dict[Cause, float] = {"optimizer": cost.update}
    for communication in own.once:
        cause = cause_of(communication)
        seconds[cause] = seconds.get(cause, 0.0) + communication.seconds
    users = tuple(dict.fromkeys(ref.node for ref in known.users if ref.node is not None))
    cost_item = CostItem("weight", item.user, item.name, seconds, own.once, users=users)
    return cost_item, (cost.weights, cost.gradients, cost.states)
