"""``irtool cost``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.cluster.measured import MeasuredStep
from irtool.cluster.schedule import ideal_bubble, share_of_wall
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text, operations_text, plural, ratio, seconds_text, share_text
from irtool.operators.call import Strategy
from irtool.planning.cost.costs import CAUSES, Cause, assumptions_of, seconds_of
from irtool.planning.plans.step.axes import axis_costs
from irtool.planning.plans.step.items import CostItem
from irtool.planning.plans.step.report import MemoryCost, StepCost, without_strategy
from irtool.report.answer import AnswerObject, doc
from irtool.report.hideable import HideableSeconds, hideable_seconds
from irtool.report.measured import (
    GraphCostAnswer,
    MeasuredCost,
    MeasuredMemory,
    measured_answer,
    measured_blocks,
    measured_pictures,
)
from irtool.report.measured_pictures import predicted_by_cost
from irtool.report.model import (
    Answer,
    Element,
    Explorer,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    Tone,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.page.graph.data import graph_data
from irtool.report.page.links import with_node_links
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.places import place_text
from irtool.report.run_answer import RunAnswer, context_fields
from irtool.sharding.network.report import CheckResult

USUAL_ROWS = 10
_UNKNOWN = 5

LEVERS = {
    "compute": "plan: split it where devices repeat it",
    "operator collectives": "plan: split another dimension, or scatter the sum",
    "redistribution": "plan: one layout on both sides",
    "gradients": "plan: split the weight; comm fuse: fewer, larger sums",
    "optimizer parallel": "comm fuse, or share states among fewer devices",
    "optimizer": "optimizer parallel: each device updates a part",
}


@dataclass(frozen=True, eq=False)
class CostView:
    """A step's cost, and what ``check`` says of the network that it was made from.

    ``stages``: the cost of each stage of a pipeline, the slowest first; ``cost`` is that one's.
    ``memory``: of what was measured, for the pictures of a page.
    """

    cost: StepCost
    report: CheckResult
    path: str
    limit: int | None = None
    stages: tuple[tuple[int, StepCost], ...] = ()
    measured: MeasuredStep | None = None
    memory: MeasuredMemory | None = None

    @property
    def stage(self) -> int | None:
        """Whose cost it is, where it is that of one of several stages."""
        return self.stages[0][0] if self.stages else None

    @property
    def title(self) -> str:
        """What was priced: the path, and the stage where there are several."""
        return self.path if self.stage is None else f"{self.path}, stage {self.stage}"


# -- for scripts ---------------------------------------------------------------------------------


class HiddenSeconds(AnswerObject, frozen=True, kw_only=True):
    """Seconds of communication that computing could hide."""

    before: Annotated[float | None, doc("as the network is; null: nothing could be priced")]
    after: Annotated[float | None, doc("as planned; null where nothing is planned")] = None


class StepSeconds(AnswerObject, frozen=True, kw_only=True):
    """How long a step takes."""

    before: Annotated[
        float | None,
        doc("as the network is, without what `unknown` lists; null: nothing could be priced"),
    ]
    after: Annotated[float | None, doc("as planned; null where nothing is planned")] = None
    lower_bound: Annotated[float | None, doc("that no plan undercuts; null where none is made")] = (
        None
    )
    unit: Literal["seconds a step"] = "seconds a step"
    hidden: Annotated[HiddenSeconds, doc("of communication that computing could hide")]


class StageSeconds(AnswerObject, frozen=True, kw_only=True):
    """A stage of a pipeline."""

    stage: int
    seconds: Annotated[float, doc("of a step of this stage")]
    shares: Annotated[dict[str, float], doc("seconds by cause")]


class ReceivedBytes(AnswerObject, frozen=True, kw_only=True):
    """Bytes that one device receives by one collective."""

    op: str
    phase: Annotated[str, doc("`forward` or `backward`")]
    received_bytes: int


class DeviceBytes(AnswerObject, frozen=True, kw_only=True):
    """What one device holds, in bytes."""

    weights: int
    gradients: int
    states: Annotated[int, doc("of the optimizer")]
    activations: Annotated[int, doc("results kept for the backward pass")]
    accumulated: Annotated[int, doc("sums of gradients that stay between micro-batches")]
    gathered: Annotated[int, doc("weights that optimizer parallel gathers and gradients read")]
    inputs: Annotated[int, doc("one batch")]
    other: Annotated[int, doc("what stays from step to step for no single weight")]
    buffers: Annotated[
        int, doc("the largest one of a fused collective, as far as kept results leave it no room")
    ]
    recomputed: Annotated[int, doc("of the largest layer while a plan computes it again")]
    total: int


class CostPart(AnswerObject, frozen=True, kw_only=True):
    """An operator, an edge or a weight with what it costs."""

    node: Annotated[str | None, doc("of an edge: the consumer")]
    op: Annotated[str, doc("its name; of a weight: the weight's own")]
    line: Annotated[int | None, doc("of the dump")]
    producer: Annotated[str | None, doc("of an edge: the producer")] = field(name="from")
    strategy: Annotated[Strategy | None, doc("in_strategy of an operator")]
    seconds: Annotated[dict[str, float], doc("by cause")]
    received_bytes: Annotated[int, doc("of one device")]
    where: Annotated[str, doc("the line of Python, or that of the dump")]
    lever: Annotated[str, doc("what would make it cheaper")]


class CostAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.cost/1"):
    """Where a step goes: seconds and bytes by cause, axis, link and part of the network."""

    path: Annotated[str, doc("what was read")]
    stage: Annotated[
        int | None,
        doc("of a run folder with a pipeline: the slowest stage, whose cost all of this is"),
    ]
    algorithm: Annotated[None, doc("nothing is planned")] = None
    devices: int
    accepted: Annotated[bool | None, doc("as in [check](json-check.md)")]
    machine: Annotated[str, doc("name of the machine model")]
    cost: StepSeconds
    shares: Annotated[
        dict[str, float], doc(f"seconds by cause: {', '.join(f'`{cause}`' for cause in CAUSES)}")
    ]
    links: Annotated[dict[str, float], doc("seconds of communication by the links used")]
    axes: Annotated[
        dict[str, float],
        doc(
            "seconds of communication by axis: `data`, `tensor`, `optimizer`, `data and tensor`, "
            "`unknown`; `pipeline`: sent and received, in no share, like what recomputation "
            "communicates again"
        ),
    ]
    hidden_at_best: Annotated[
        float, doc("seconds of communication that computing could hide, fused as it is")
    ]
    hideable: Annotated[
        dict[str, HideableSeconds], doc("by kind: `gradients`, and `gathers` of weights")
    ]
    flop: Annotated[int, doc("operations of one device and step")]
    recompute_seconds: Annotated[
        float, doc("what recomputation adds, where the network asks for it; in no share")
    ]
    stages: Annotated[
        list[StageSeconds], doc("of a run folder with a pipeline, the slowest first; else empty")
    ]
    communication: list[ReceivedBytes]
    memory_bytes: DeviceBytes
    operators: list[CostPart]
    edges: list[CostPart]
    weights: list[CostPart]
    others: Annotated[
        list[CostPart],
        doc("communication that none of these brings: a norm of all gradients, user code"),
    ]
    unknown: Annotated[list[str], doc("parts that could not be priced")]
    measured: Annotated[MeasuredCost | None, doc("where a profile is there")]


CostAnswers: TypeAlias = CostAnswer | GraphCostAnswer
"""Of a network with strategies, and of one without a parallel pass."""


def cost_answer(view: CostView, context: RunContext) -> CostAnswer:
    """The answer of ``irtool cost`` for scripts.

    Args:
        view: the cost of a step, or of the slowest stage's.
        context: of the run, with origins.
    """
    cost = view.cost
    parts: dict[str, list[CostPart]] = defaultdict(list)
    for item in cost.items:
        parts[item.kind].append(cost_part(item))
    return CostAnswer(
        path=view.path,
        stage=view.stage,
        devices=view.report.devices,
        accepted=view.report.accepted,
        machine=cost.machine.name,
        cost=StepSeconds(
            before=cost.seconds or None,
            hidden=HiddenSeconds(before=cost.hidden_at_best if cost.seconds else None),
        ),
        shares=seconds_by_cause(cost.shares),
        links=cost.by_link,
        axes={axis.axis: axis.seconds for axis in axis_costs(cost)},
        hidden_at_best=cost.hidden_at_best,
        hideable=hideable_seconds(*cost.overlaps),
        flop=cost.operations,
        recompute_seconds=cost.recompute_seconds,
        stages=[
            StageSeconds(stage=stage, seconds=step.seconds, shares=seconds_by_cause(step.shares))
            for stage, step in view.stages
        ],
        communication=received_bytes(cost),
        memory_bytes=device_bytes(cost.memory),
        operators=parts["operator"],
        edges=parts["edge"],
        weights=parts["weight"],
        others=parts["other"],
        unknown=list(cost.unknown),
        measured=None if view.measured is None else measured_answer(view.measured),
        **context_fields(context, assumed(view)),
    )


def received_bytes(cost: StepCost) -> list[ReceivedBytes]:
    """Bytes that a device receives, by collective and phase.

    Args:
        cost: of a step.

    Returns:
        in the order of the collectives' names.
    """
    return [
        ReceivedBytes(op=op, phase=phase, received_bytes=received)
        for (op, phase), received in sorted(cost.received.items())
    ]


def device_bytes(memory: MemoryCost) -> DeviceBytes:
    """What a device holds, by cause.

    Args:
        memory: predicted bytes of one device.
    """
    return DeviceBytes(
        weights=memory.weights,
        gradients=memory.gradients,
        states=memory.states,
        activations=memory.activations,
        accumulated=memory.accumulated,
        gathered=memory.gathered,
        inputs=memory.inputs,
        other=memory.other,
        buffers=memory.buffers,
        recomputed=memory.recomputed,
        total=memory.total,
    )


def cost_part(item: CostItem) -> CostPart:
    """One operator, edge or weight."""
    node = item.node
    return CostPart(
        node=node.id if node else None,
        op=item.name,
        line=node.line if node else None,
        producer=item.producer.id if item.producer else None,
        strategy=item.strategy,
        seconds=seconds_by_cause(item.seconds),
        received_bytes=item.received,
        where=place_text(node),
        lever=lever_of(item),
    )


def seconds_by_cause(seconds: Mapping[Cause, float]) -> dict[str, float]:
    """Seconds by the name of their cause.

    Args:
        seconds: of a step, in the order of causes, which is kept.
    """
    return {str(cause): value for cause, value in seconds.items()}


# -- for people ----------------------------------------------------------------------------------


def cost_report(view: CostView, dump: Dump | None = None) -> Report:
    """The answer, shares, and the dearest parts.

    Args:
        view: the cost, and what ``check`` says of the network.
        dump: of that network, for a page: then its graph shows where the time goes.
    """
    cost = view.cost
    elements: list[Element] = [Facts(_facts(view))]
    tables = (shares_table(cost), axes_table(cost), links_table(cost), dearest_table(view))
    if view.stages:
        elements.append(stages_table(view))
    elements += [table for table in tables if table.rows]
    if view.measured is not None:
        blocks = list(measured_blocks(view.measured, view.limit))
        ran = [] if dump is None else [operator.node for operator in view.measured.operators]
        elements += with_node_links(blocks, ran)
    elements += _not_priced(cost)
    elements += [Note(f"assumed: {text}") for text in _of_network(view.report)]
    if dump is not None:
        marks = _marks(cost)
        if view.measured is None:
            elements = with_node_links(elements, list(marks))
            elements += [_shares_picture(cost), _graph(view, dump, marks)]
        else:
            elements.append(_shares_picture(cost))
            predicted = predicted_by_cost(cost)
            elements += measured_pictures(view.measured, predicted, view.memory)
    tone: Tone = "bad" if view.report.accepted is False else "plain"
    return Report(f"cost: {view.title}", Answer(answer_text(view), tone), elements, view.title)


def lever_of(item: CostItem) -> str:
    """What would make an item cheaper."""
    cause = max(item.seconds, key=lambda cause: item.seconds[cause])
    return LEVERS[cause]


def assumed(view: CostView) -> list[str]:
    """What the figures take for granted.

    Args:
        view: the cost of a step, and the network that it was made from.

    Returns:
        sentences: of the network first, then of the model and the machine.
    """
    return [*_of_network(view.report), *usual_assumptions(view.cost)]


def _of_network(report: CheckResult) -> list[str]:
    count = without_strategy(report)
    if not count:
        return []
    what = f"{plural(count, 'operator')} without a strategy"
    return [f"{what}: as MindSpore makes them where nothing is searched"]


def usual_assumptions(cost: StepCost) -> list[str]:
    """What all figures of the model take for granted, and the machine's.

    Args:
        cost: of a step, on its machine.
    """
    return [
        *assumptions_of(cost.machine),
        *(f"{cost.machine.name}: {text}" for text in cost.machine.sources),
    ]


def answer_text(view: CostView) -> str:
    """``a step of 12.3 ms: 60 % compute, …``.

    Args:
        view: the cost of a step; "at least" stands before it where a part could not be priced.
    """
    cost = view.cost
    what = "a step" if cost.differentiates else "a forward pass (the dump takes no gradient)"
    shares = sorted(cost.shares.items(), key=lambda pair: -pair[1])
    named = ", ".join(
        f"{share_text(ratio(seconds, cost.spent))} {cause}"
        for cause, seconds in shares[:3]
        if seconds
    )
    least = "at least " if cost.unknown else ""
    text = f"{what} of {least}{seconds_text(cost.seconds)}: {named}"
    if not cost.seconds:
        text = "nothing here can be priced"
    if view.report.accepted is False:
        return f"MindSpore would refuse these strategies; {text}"
    return text


def _facts(view: CostView) -> list[tuple[str, str]]:
    cost, memory = view.cost, view.cost.memory
    facts = [
        ("devices", f"{view.report.devices}, seen from rank {view.report.context.rank}"),
        ("machine", f"{cost.machine.name}; only ratios of times mean something"),
        (
            "memory",
            f"{bytes_text(memory.total)} a device: {bytes_text(memory.weights)} weights, "
            f"{bytes_text(memory.gradients)} gradients, {bytes_text(memory.states)} states, "
            f"{bytes_text(memory.activations)} results kept",
        ),
    ]
    if cost.operations:
        facts.append(("arithmetic", f"{operations_text(cost.operations)} a device and step"))
    communicated = seconds_of(cost.communications)
    if communicated:
        facts.append(("communication", _hidden_text(cost, communicated)))
    if cost.hides:
        what = f"{share_text(cost.machine.overlap)} of what computing can hide"
        facts.append(
            ("hidden", f"{seconds_text(cost.hides)}, {what}; shares are of all that is spent")
        )
    if cost.recompute_seconds:
        more = seconds_text(cost.recompute_seconds)
        facts.append(("recomputation", f"{more} more, of what the network marks for it"))
    stages = view.report.context.stages
    if stages > 1:
        facts.append(("pipeline", pipeline_text(stages)))
    return facts


def _hidden_text(cost: StepCost, communicated: float) -> str:
    """How long devices communicate, and how much of that computing can hide."""
    text = f"{seconds_text(communicated)} if nothing is hidden"
    sums, gathers = cost.overlaps
    if not sums.hideable + gathers.hideable:
        return text
    hidden = cost.hidden_at_best
    text += f"; {seconds_text(communicated - hidden)} if "
    what = "gradient sums hide behind the backward pass"
    if gathers.hideable:
        what += " and gathers of weights behind what comes before them"
    return f"{text}{what}, fused as they are (comm fuse: better)"


def pipeline_text(stages: int) -> str:
    """The bubble of the usual schedules, by micro-batches."""
    shares = ", ".join(
        f"{share_text(share_of_wall(ideal_bubble(stages, count)))} with {count}"
        for count in (stages, 4 * stages)
    )
    return f"1 of {stages} stages; idle at least {shares} micro-batches (irtool pipeline says more)"


def shares_table(cost: StepCost) -> Table:
    """Seconds by cause.

    Args:
        cost: of a step; shares are those of all seconds spent, hidden ones included.
    """
    columns = [
        text_column("cause"), number_column("time", "seconds"), number_column("share", "share"),
        text_column("lever", 1),
    ]  # fmt: skip
    rows = [
        [cause, seconds, ratio(seconds, cost.spent), LEVERS[cause]]
        for cause, seconds in cost.shares.items()
        if seconds
    ]
    return Table("Where a step goes", columns, rows)


def stages_table(view: CostView) -> Table:
    """The stages of a pipeline, the slowest first.

    Args:
        view: the cost of each stage.
    """
    columns = [
        number_column("stage"), number_column("time", "seconds"),
        number_column("compute", "share"), number_column("memory", "bytes"),
    ]  # fmt: skip
    rows = [
        [stage, cost.seconds, ratio(cost.shares["compute"], cost.spent), cost.memory.total]
        for stage, cost in view.stages
    ]
    return Table("Stages, the slowest first", columns, rows)


def axes_table(cost: StepCost) -> Table:
    """Communication by axis of parallelism."""
    columns = [
        text_column("axis"), number_column("count"), number_column("time", "seconds"),
        number_column("share", "share"), number_column("a device receives", "bytes"),
    ]  # fmt: skip
    rows = [
        [axis.axis, axis.count, axis.seconds, ratio(axis.seconds, cost.spent), axis.received]
        for axis in axis_costs(cost)
    ]
    return Table("Communication by axis", columns, rows)


def links_table(cost: StepCost) -> Table:
    """Communication by collective and phase.

    Args:
        cost: of a step; bytes are those that one device receives in it.
    """
    columns = [
        text_column("collective"), text_column("phase"), text_column("links"),
        number_column("count"), number_column("time", "seconds"),
        number_column("a device receives", "bytes"),
    ]  # fmt: skip
    rows = [[*key, kind.count, kind.seconds, kind.received] for key, kind in cost.by_kind.items()]
    return Table("Communication", columns, rows)


def dearest_table(view: CostView) -> Table:
    """The operators, edges and weights, those that take longest first."""
    cost = view.cost
    columns = [
        text_column("node"), text_column("what"), number_column("time", "seconds"),
        number_column("share", "share"), number_column("received", "bytes", 1),
        text_column("where", 3), text_column("lever", 2),
    ]  # fmt: skip
    rows = [
        [
            item.node.id if item.node else "",
            f"{item.kind} {item.name}",
            item.total,
            ratio(item.total, cost.seconds),
            item.received,
            place_text(item.node),
            lever_of(item),
        ]
        for item in cost.dearest(len(cost.items))
    ]
    most = rows_shown(view.limit, USUAL_ROWS)
    return Table("Parts by time", columns, rows, noun="part", most=most)


def _not_priced(cost: StepCost) -> Iterator[Note]:
    yield from (Note(f"not priced: {text}") for text in cost.unknown[:_UNKNOWN])
    if len(cost.unknown) > _UNKNOWN:
        yield Note(f"not priced: {len(cost.unknown) - _UNKNOWN:,} more (--format json)")


def _shares_picture(cost: StepCost) -> Picture:
    causes = [(str(cause), [cost.shares[cause]]) for cause in CAUSES if cost.shares.get(cause)]
    return Picture("A step", bars(causes, "seconds"), "Time of a step by cause")


def _graph(view: CostView, dump: Dump, marks: Mapping[Node, Mark]) -> Explorer:
    overlay = Overlay("cost", "cost of a step", "seconds", marks)
    return Explorer("Cost in the graph", graph_data(dump, view.report, [overlay]))


def _marks(cost: StepCost) -> dict[Node, Mark]:
    """Seconds by operator, with those of the edge that leads to it."""
    seconds: dict[Node, float] = defaultdict(float)
    for item in cost.items:
        if item.node is not None:
            seconds[item.node] += item.total
    return {node: Mark(value) for node, value in seconds.items()}
