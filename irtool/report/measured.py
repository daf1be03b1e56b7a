"""What ``irtool cost`` tells of a step that was measured, beside what the model says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from irtool.artefacts.cpu_profile import MemorySample
from irtool.cluster.context.model import RunContext
from irtool.cluster.measured import MeasuredOperator, MeasuredStep, SlowOperator
from irtool.cluster.memory import Memory
from irtool.cluster.modelled import ModelledStep
from irtool.ir.dataclass import dataclass
from irtool.ir.units import plural, ratio, seconds_text, share_text, tuple_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.measured_pictures import (
    PredictedRun,
    measured_graph,
    memory_picture,
    predicted_by_kernels,
    step_picture,
)
from irtool.report.model import (
    Answer,
    Block,
    Cell,
    Element,
    Facts,
    Note,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.links import with_node_links
from irtool.report.places import place_text
from irtool.report.run_answer import RunAnswer, context_fields

USUAL_ROWS = 10
_SLOWER_ROWS = 5


# -- for scripts ---------------------------------------------------------------------------------


class MeasuredNode(AnswerObject, frozen=True, kw_only=True):
    """An operator of a step."""

    node: str
    op: str
    line: Annotated[int, doc("of the dump")]
    seconds: Annotated[float | None, doc("as measured, of a step; null: not in the profile")]
    modelled: Annotated[
        float | None, doc("by the machine; only ratios mean something. null: communication")
    ]
    source: Annotated[str, doc("the line of Python, or that of the dump")]


class SlowerOperator(AnswerObject, frozen=True, kw_only=True):
    """An operator that took longer in the slowest step than it usually does."""

    name: str
    node: Annotated[str | None, doc("null: it has none in the dump")]
    seconds: Annotated[float, doc("in that step")]
    usual: Annotated[float, doc("the median of the steps")]
    source: str


class StepMeasured(AnswerObject, frozen=True, kw_only=True):
    """Where one step went, in seconds."""

    step: Annotated[str, doc("as the profiler calls it; of a CPU's profile its number")]
    wall: Annotated[float, doc("from its first kernel to the end of its last")]
    computing: Annotated[float, doc("while at least one kernel computes")]
    exposed: Annotated[float, doc("communication while nothing computes")]
    hidden: Annotated[float, doc("communication behind computing")]
    idle: float


class MeasuredCost(AnswerObject, frozen=True, kw_only=True):
    """A profile, joined with the nodes of a dump."""

    path: Annotated[str, doc("the profile")]
    dump: Annotated[str, doc("whose nodes were measured")]
    steps: list[StepMeasured]
    joined: Annotated[float, doc("share of the measured names that have a node")]
    missing: Annotated[dict[str, int], doc("names without a node, by reason")]
    shapes: Annotated[int, doc("launched operators whose shapes were recorded; 0: none was")]
    other_shapes: Annotated[
        list[str], doc("those of them with shapes that no node of their name has")
    ]
    total: Annotated[float, doc("seconds of a step's operators, one after the other")]
    scale: Annotated[
        float | None, doc("measured seconds for one modelled second, over all operators")
    ]
    operators: Annotated[list[MeasuredNode], doc("the dearest first")]
    by_cause: Annotated[
        dict[str, float], doc("seconds: `compute`, `optimizer`, or why a communication is there")
    ]
    by_axis: Annotated[dict[str, float], doc("seconds of communication by axis of parallelism")]
    slowest: Annotated[str | None, doc("the step that took longest; null: fewer than two count")]
    slower: Annotated[
        list[SlowerOperator],
        doc("what took longer in that step than it usually does, first the most"),
    ]


class GraphCostAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.cost/1"
):
    """Where a step goes on a run without a parallel pass: its kernel graph alone."""

    path: Annotated[str, doc("the dump: graph_build, else validate")]
    devices: int
    machine: str
    modelled: Annotated[float, doc("seconds of a step by the machine, communication not counted")]
    unknown: Annotated[list[str], doc("what is not priced")]
    operators: Annotated[list[MeasuredNode], doc("the dearest first")]
    measured: Annotated[MeasuredCost | None, doc("where a profile is there")]


def measured_answer(step: MeasuredStep) -> MeasuredCost:
    """A measured step for scripts; the profile's microseconds become seconds.

    Args:
        step: a profile joined with the nodes of a dump.
    """
    place = step.slowest
    return MeasuredCost(
        path=step.profile.path,
        dump=step.joined.path,
        steps=[
            StepMeasured(
                step=totals.name,
                wall=totals.wall / 1e6,
                computing=totals.computing / 1e6,
                exposed=totals.exposed / 1e6,
                hidden=totals.hidden / 1e6,
                idle=totals.idle / 1e6,
            )
            for totals in step.profile.steps
        ],
        joined=step.joined.share,
        missing=step.joined.reasons(),
        shapes=step.shapes.count,
        other_shapes=[name for name, _ in step.shapes.others],
        total=step.total,
        scale=step.scale,
        operators=[_node(operator) for operator in step.operators],
        by_cause={cause: seconds for cause, (seconds, _) in step.by("cause").items()},
        by_axis={axis: seconds for axis, (seconds, _) in step.by("axis").items()},
        slowest=None if place is None else step.profile.steps[place].name,
        slower=[] if place is None else [_slower(operator) for operator in step.slower_in(place)],
    )


def _slower(operator: SlowOperator) -> SlowerOperator:
    return SlowerOperator(
        name=operator.name,
        node=None if operator.node is None else operator.node.id,
        seconds=operator.seconds,
        usual=operator.usual,
        source=place_text(operator.node),
    )


def _node(operator: MeasuredOperator) -> MeasuredNode:
    return MeasuredNode(
        node=operator.node.id,
        op=operator.node.op,
        line=operator.node.line,
        seconds=operator.seconds,
        modelled=operator.modelled,
        source=place_text(operator.node),
    )


def graph_cost_answer(
    modelled: ModelledStep, step: MeasuredStep | None, context: RunContext
) -> GraphCostAnswer:
    """The answer of ``irtool cost`` for scripts, of a run without a parallel pass.

    Args:
        modelled: what each node of the whole graph takes by the machine.
        step: the same step as measured; None where there is no profile.
        context: of the run, with origins.
    """
    return GraphCostAnswer(
        path=modelled.path,
        devices=1,
        machine=modelled.machine.name,
        modelled=modelled.total,
        unknown=list(modelled.unknown),
        operators=[
            MeasuredNode(
                node=node.id,
                op=node.op,
                line=node.line,
                seconds=None,
                modelled=seconds,
                source=place_text(node),
            )
            for node, seconds in modelled.operators
        ],
        measured=None if step is None else measured_answer(step),
        **context_fields(context),
    )


# -- for people ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Memory of what ran: as predicted, and the pool as it was recorded, where it was."""

    memory: Memory
    recorded: Sequence[MemorySample] = ()


@dataclass(frozen=True, slots=True)
class GraphCostView:
    """The cost of a run without a parallel pass, and what of it was measured.

    ``memory``: for the pictures of a page.
    """

    modelled: ModelledStep
    measured: MeasuredStep | None
    limit: int | None = None
    memory: MeasuredMemory | None = None


def graph_cost_report(view: GraphCostView, has_pictures: bool = False) -> Report:
    """What a step costs by the model, and beside it as it was measured.

    Args:
        view: the modelled step, and the measured one where a profile is there.
        has_pictures: whether pictures are seen; only what was measured has any.
    """
    modelled, step = view.modelled, view.measured
    elements: list[Element] = [
        Facts([("machine", f"{modelled.machine.name}; only ratios of times mean something")])
    ]
    elements += [Note(f"not priced: {text}") for text in modelled.unknown]
    if step is None:
        text = f"a step of {seconds_text(modelled.total)} by the model; nothing was measured"
        elements.append(_modelled_table(modelled, view.limit))
    else:
        text = measured_text(step)
        elements += measured_blocks(step, view.limit)
        if has_pictures:
            predicted = predicted_by_kernels(modelled, step)
            elements = with_node_links(elements, [operator.node for operator in step.operators])
            elements += measured_pictures(step, predicted, view.memory)
    return Report(f"cost: {modelled.path}", Answer(text), elements, modelled.path)


def measured_pictures(
    step: MeasuredStep, predicted: Sequence[PredictedRun], memory: MeasuredMemory | None
) -> Iterator[Element]:
    """For a page: the step measured above predicted, memory over it, both in the graph that ran.

    Args:
        step: a profile joined with the nodes of a dump.
        predicted: the step as the model lays it out.
        memory: predicted and recorded memory of the step; None where nobody recorded it.
    """
    yield from step_picture(step, predicted)
    if memory is not None:
        yield from memory_picture(step, memory.memory, memory.recorded)
    yield measured_graph(step, None if memory is None else memory.memory)


def measured_text(step: MeasuredStep) -> str:
    """``a step took 12.3 ms: 60 % MatMul, …``."""
    kinds = list(step.by("operator").items())[:3]
    named = ", ".join(
        f"{share_text(ratio(seconds, step.total))} {op}" for op, (seconds, _) in kinds if seconds
    )
    steps = step.profile.steps
    wall = steps[-1].wall / 1e6 if steps else step.total
    return f"a step took {seconds_text(wall)} as measured: {named}"


def measured_blocks(step: MeasuredStep, limit: int | None) -> Iterator[Block]:
    """What was measured, by operator and layer, and what is furthest from the model.

    Args:
        step: a profile joined with the nodes of a dump.
        limit: rows that text shows: None the usual number, 0 all.
    """
    yield Facts(list(_facts(step)))
    profile = step.profile
    if len(profile.steps) > 1:
        yield _steps_table(step, limit)
    if (place := step.slowest) is not None and step.slower_in(place):
        yield _slower_table(step, place, limit)
    yield _shares_table(step, "operator", limit)
    if len(step.by("layer")) > 1:
        yield _shares_table(step, "layer", limit)
    yield _shares_table(step, "phase", limit)
    if step.by("axis"):
        yield _shares_table(step, "cause", limit)
        yield _shares_table(step, "axis", limit)
    if step.furthest:
        yield _furthest_table(step, limit)
    for text in _notes(step):
        yield Note(f"note: {text}")


def _facts(step: MeasuredStep) -> Iterator[tuple[str, str]]:
    profile = step.profile
    yield "profile", f"{profile.path}: {plural(len(profile.steps), 'step')}"
    count = len(step.joined.nodes) + len(step.joined.missing)
    joined = f"{len(step.joined.nodes):,} of {count:,} names are nodes of {step.joined.path}"
    reasons = "; ".join(f"{number} {why}" for why, number in step.joined.reasons().items())
    yield "joined", f"{joined} ({reasons})" if reasons else joined
    if step.shapes.count:
        same = step.shapes.count - len(step.shapes.others)
        yield "shapes", f"{same:,} of {step.shapes.count:,} launched are those of their nodes"
    last = profile.steps[-1] if profile.steps else None
    if last is not None and last.communicating:
        exposed, hidden = last.exposed / 1e6, last.hidden / 1e6
        yield "communication", f"{seconds_text(exposed)} exposed, {seconds_text(hidden)} hidden"
    if step.scale is not None:
        yield "model", f"times are {step.scale:.3g} times those modelled for {step.machine.name}"


def _notes(step: MeasuredStep) -> Iterator[str]:
    if step.shapes.others:
        name, shapes = step.shapes.others[0]
        sizes = ", ".join(map(tuple_text, shapes))
        count = plural(len(step.shapes.others), "operator")
        yield (
            f"{count} ran with other shapes than the dump has (first: {name} of {sizes}): this "
            "profile is of other sizes, another batch perhaps"
        )
    count, duration = step.profile.unnamed
    if count:
        what = plural(count, "kernel")
        yield f"{what} of {seconds_text(duration / 1e6)} in all bear no node's name"
    if step.profile.uneven:
        yield f"{len(step.profile.uneven)} operators run another number of times than others"


def _steps_table(step: MeasuredStep, limit: int | None) -> Table:
    columns = [text_column("step"), *(
        number_column(name, "seconds")
        for name in ("wall", "computing", "exposed", "hidden", "idle")
    )]  # fmt: skip
    rows: list[list[Cell]] = [
        [totals.name, *(value / 1e6 for value in (
            totals.wall, totals.computing, totals.exposed, totals.hidden, totals.idle))]
        for totals in step.profile.steps
    ]  # fmt: skip
    return Table("Steps", columns, rows, noun="step", most=rows_shown(limit, USUAL_ROWS))


def _slower_table(step: MeasuredStep, place: int, limit: int | None) -> Table:
    columns = [
        text_column("node"), text_column("operator"), number_column("took", "seconds"),
        number_column("usually", "seconds"), number_column("longer", "seconds"),
        text_column("source", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            None if operator.node is None else operator.node.id,
            operator.name.rpartition("/")[2] if operator.node is None else operator.node.op,
            operator.seconds, operator.usual, operator.seconds - operator.usual,
            place_text(operator.node),
        ]
        for operator in step.slower_in(place)
    ]  # fmt: skip
    steps = step.profile.steps
    after = " after the first" if steps[0].wall > steps[place].wall else ""  # which warms up
    title = f"What made step {steps[place].name}, the slowest{after}, longer than usual"
    return Table(title, columns, rows, noun="operator", most=rows_shown(limit, _SLOWER_ROWS))


def _shares_table(step: MeasuredStep, kind: str, limit: int | None) -> Table:
    columns = [
        text_column(kind), number_column("measured", "seconds"), number_column("share", "share"),
        number_column("of the model", "share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            name,
            seconds,
            ratio(seconds, step.total),
            None if modelled is None else ratio(modelled, step.modelled),
        ]
        for name, (seconds, modelled) in step.by(kind).items()
    ]
    most = rows_shown(limit, USUAL_ROWS)
    return Table(f"Measured by {kind}", columns, rows, noun=kind, most=most)


def _furthest_table(step: MeasuredStep, limit: int | None) -> Table:
    columns = [
        text_column("node"), text_column("operator"), number_column("measured", "seconds"),
        number_column("scaled model", "seconds"), number_column("measured / model"),
        text_column("source", 1),
    ]  # fmt: skip
    scale = step.scale or 0.0
    rows: list[list[Cell]] = []
    for operator in step.furthest:
        factor = step.ratio(operator)
        modelled = (operator.modelled or 0.0) * scale
        shown = None if factor is None else round(factor, 2)
        rows.append(
            [
                operator.node.id,
                operator.node.op,
                operator.seconds,
                modelled,
                shown,
                place_text(operator.node),
            ]
        )
    title = "Furthest from the model, scaled to the same step"
    return Table(title, columns, rows, noun="operator", most=rows_shown(limit, USUAL_ROWS))


def _modelled_table(modelled: ModelledStep, limit: int | None) -> Table:
    columns = [
        text_column("operator"), number_column("modelled", "seconds"),
        number_column("share", "share"),
    ]  # fmt: skip
    by_op: dict[str, float] = {}
    for node, seconds in modelled.operators:
        by_op[node.op] = by_op.get(node.op, 0.0) + seconds
    ranked: Sequence[tuple[str, float]] = sorted(by_op.items(), key=lambda pair: -pair[1])
    rows: list[list[Cell]] = [[op, total, ratio(total, modelled.total)] for op, total in ranked]
    most = rows_shown(limit, USUAL_ROWS)
    return Table("Modelled by operator", columns, rows, noun="operator", most=most)
