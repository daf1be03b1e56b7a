"""The answers of ``irtool check`` for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.ir.finding import Finding, Severity
from irtool.ir.graph import node_of
from irtool.operators.layout import UserLayout
from irtool.report.answer import AnswerObject, doc
from irtool.report.checking.against import AgainstLater, against_answer
from irtool.report.checking.proposed import output_text, shard_text
from irtool.report.checking.report import CheckView
from irtool.report.checking.saved import SavedFile
from irtool.report.checking.why import NodeCause
from irtool.report.run_answer import RunAnswer, context_fields
from irtool.sharding.against import Comparison
from irtool.sharding.network.communications import StepCommunication
from irtool.sharding.network.report import (
    DatasetReport,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.network.totals import (
    collective_rows,
    is_group,
    parameter_bytes,
    step_bytes,
)
from irtool.sharding.redistribution import RedistributionStep
from irtool.sharding.suggest import Proposals

Shape: TypeAlias = Sequence[int]
TensorMap: TypeAlias = Sequence[int | Sequence[int]]


class ProposedLayout(AnswerObject, frozen=True, kw_only=True):
    """A layout of one tensor input."""

    device_matrix: Shape
    tensor_map: TensorMap
    alias_name: Sequence[str]


class CheckReason(AnswerObject, frozen=True, kw_only=True):
    """Why MindSpore refuses the network, or what is not known of it."""

    code: Annotated[
        str, doc("`context`: the options themselves are refused, before any operator is looked at")
    ]
    severity: Severity
    message: str
    file: str
    line: Annotated[int | None, doc("null where it belongs to no statement")]
    node: str | None
    op: str
    graph: str | None
    scope: str | None
    source: Annotated[str | None, doc("the line of Python")]
    check: Annotated[str, doc("MindSpore's own check")]
    instead: Annotated[
        Sequence[Sequence[Shape]],
        doc(
            "strategies that are legal for this operator, the nearest first; with the first ones "
            "of all findings together the whole network passes where `together.passes` says so"
        ),
    ]
    instead_layouts: Annotated[
        list[list[ProposedLayout]],
        doc("layouts that are legal for this operator, one a tensor input"),
    ]
    instead_output: Annotated[
        str | None,
        doc("what becomes of the operator's out_strategy or out_layout then; null: nothing"),
    ]
    no_instead: Annotated[str | None, doc("why nothing is legal instead, where that is known")]
    set_with: Annotated[
        str | None,
        doc(
            "where the strategy is set: the line with `.shard(` where the dump tells it, else the "
            "attribute that holds the primitive; null where nothing is proposed"
        ),
    ]


class ProposedBeside(AnswerObject, frozen=True, kw_only=True):
    """What an operator that no finding is about changes to."""

    node: str
    op: str
    line: int
    in_strategy: Sequence[Shape] | None
    out_strategy: Sequence[Shape] | None
    in_layout: list[ProposedLayout]
    out_layout: list[ProposedLayout]
    set_with: Annotated[str, doc("as of a finding")]


class ProposedTogether(AnswerObject, frozen=True, kw_only=True):
    """What comes of the first proposal of every finding."""

    passes: Annotated[bool, doc("whether the whole network passes the check with them")]
    beside: list[ProposedBeside]
    left: Annotated[list[str], doc("what is refused still")]


class OperatorCollective(AnswerObject, frozen=True, kw_only=True):
    """A communication that follows from an operator's strategy."""

    op: str
    ranks: Shape
    group: str
    bytes: int | None
    why: str
    reduce: Annotated[str | None, doc("`sum`, `max`, …")]
    count: int


class CheckedOperator(AnswerObject, frozen=True, kw_only=True):
    """An operator; what follows from its strategy is null where that is not legal."""

    node: str
    graph: str
    line: int
    op: str
    strategy: Sequence[Shape] | None
    out_strategy: Sequence[Shape] | None
    verdict: Literal["legal", "illegal", "unknown"]
    why: str
    generated: Annotated[bool, doc("whether MindSpore makes the strategy")]
    device_matrix: Shape | None
    input_maps: Annotated[
        Sequence[TensorMap] | None, doc("one a tensor input, elements of tuples in line")
    ]
    output_maps: Annotated[Sequence[TensorMap] | None, doc("one a tensor output")]
    input_slices: Sequence[Shape] | None
    output_slices: Sequence[Shape] | None
    repeated: Annotated[int, doc("over how many devices it is computed alike")]
    loss_divisor: Annotated[int, doc("by which gradients are divided")]
    collectives: list[OperatorCollective]


class RedistributionOperator(AnswerObject, frozen=True, kw_only=True):
    """An operator of a redistribution."""

    op: str
    ranks: Shape
    axis: int | None
    concat_axis: int | None
    input_shape: Shape
    output_shape: Shape
    bytes: int | None


class CheckedEdge(AnswerObject, frozen=True, kw_only=True):
    """An edge on which something is inserted."""

    producer: str = field(name="from")
    consumer: str = field(name="to")
    input: int
    item: Annotated[int, doc("of a tuple")]
    from_op: str
    to_op: str
    from_graph: str | None
    to_graph: str | None
    from_split: Shape | None
    to_split: Shape | None
    replaces: Annotated[
        bool, doc("whether the chain stands in the place of a Reshape, then `from` and `to`")
    ]
    why: str
    operators: Annotated[
        list[RedistributionOperator] | None,
        doc("null where the chain is not known: `why` says why"),
    ]


class CheckedParameter(AnswerObject, frozen=True, kw_only=True):
    """A parameter as the rank holds it.

    Lists of ranks are empty where nobody communicates, null where it is not known.
    """

    name: str
    shape: Shape
    slice: Annotated[Shape | None, doc("that a device stores")]
    base_slice: Annotated[Shape | None, doc("that operators see")]
    bytes: int | None
    mirror_ranks: Annotated[Shape | None, doc("among which gradients are summed")]
    gather_ranks: Annotated[Shape | None, doc("among which optimizer parallel cuts it")]
    scatter_ranks: Annotated[Shape | None, doc("among which gradients are scattered")]
    user: Annotated[str | None, doc("the first node that takes it")]
    why: str


class DatasetSlice(AnswerObject, frozen=True, kw_only=True):
    """What the rank reads of one dataset input."""

    input: str
    shape: Shape
    slice: Shape
    offset: Shape


class CollectiveTotal(AnswerObject, frozen=True, kw_only=True):
    """Communications of a step, summed up by operator, group and reason."""

    op: str
    ranks: Shape
    group: str
    count: int
    bytes: Annotated[int | None, doc("bytes that one device puts into all of them")]
    why: str


class CheckAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.check/1"):
    """Whether MindSpore accepts the strategies, why not, and what follows from them.

    Device matrices and tensor maps are in MindSpore's origin form, the axis of repeated calculation
    included: a map has an entry a dimension, -1 (whole) or the axis of the device matrix counted
    from the right; several axes on one dimension are a list. Everything is seen from `rank`.
    `bytes` is what one device puts into a collective each time, null where a size is not known;
    sizes that are not known before the run are -1. `--where` and `--limit` thin out `operators` and
    `redistributions`; everything else stays.
    """

    path: Annotated[str, doc("what was read")]
    accepted: Annotated[
        bool | None,
        doc(
            "what MindSpore would say of the whole network; null where a part is unknown, which "
            "findings of severity warning name"
        ),
    ]
    devices: int
    stages: int
    rank: int
    mode: str
    target: str
    soc: str
    findings: list[CheckReason]
    together: Annotated[ProposedTogether | None, doc("null where nothing is proposed")]
    operators: list[CheckedOperator]
    redistributions: list[CheckedEdge]
    parameters: list[CheckedParameter]
    dataset: list[DatasetSlice]
    collectives: list[CollectiveTotal]
    communications: Annotated[
        Sequence[StepCommunication], doc("all of the rank's stage, forward and backward")
    ]
    communications_unknown: Annotated[
        list[str],
        doc("which others there may be, a sentence each; empty where `communications` are all"),
    ]
    against: Annotated[AgainstLater | None, doc("with `--against`")]
    strategy_file: Annotated[SavedFile | None, doc("with `--strategy`")]


class WhyAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.check/1"):
    """With `--why`: the causes of nodes of a later dump."""

    path: Annotated[str, doc("the dump that holds the nodes")]
    why: list[NodeCause]


def check_answer(
    view: CheckView,
    context: RunContext,
    against: tuple[Comparison, str] | None = None,
    saved: SavedFile | None = None,
) -> CheckAnswer:
    """The answer of ``irtool check`` for scripts.

    Args:
        view: what ``check`` says, and what was asked of it.
        context: of the run.
        against: what came of comparing with a later dump, and that dump's path.
        saved: what a strategy file says of the network.
    """
    result = view.result
    most = view.limit or None
    return CheckAnswer(
        path=view.path,
        accepted=result.accepted,
        devices=result.devices,
        stages=result.context.stages,
        rank=result.context.rank,
        mode=result.context.mode,
        target=result.context.target,
        soc=result.context.soc,
        findings=[_reason(view, item) for item in result.findings],
        together=_together(view.instead),
        operators=[_operator(item) for item in view.operators[:most]],
        redistributions=[_edge(item) for item in view.redistributions[:most]],
        parameters=[_parameter(item) for item in result.parameters],
        dataset=[_dataset(item) for item in result.dataset],
        collectives=_totals(view),
        communications=result.communications,
        communications_unknown=list(result.communications_unknown),
        against=None if against is None else against_answer(*against),
        strategy_file=saved,
        **context_fields(context),
    )


def _reason(view: CheckView, item: Finding) -> CheckReason:
    node = node_of(item)
    location = node.location if node is not None else None
    return CheckReason(
        code=item.code,
        severity=item.severity,
        message=item.message,
        file=item.file,
        line=item.line or None,
        node=item.node,
        op=item.op or "",
        graph=item.graph,
        scope=node.scope if node is not None else None,
        source=f"{location.path}:{location.line}" if location is not None else None,
        check=item.check,
        instead=view.instead.strategies.get(item, ()),
        instead_layouts=[_layouts(given) for given in view.instead.layouts.get(item, ())],
        instead_output=output_text(view.instead, item).removeprefix(", ") or None,
        no_instead=view.instead.why_none.get(item),
        set_with=shard_text(node) if node is not None and item in view.instead.first else None,
    )


def _layouts(given: Sequence[UserLayout] | None) -> list[ProposedLayout]:
    return [
        ProposedLayout(
            device_matrix=layout.device_matrix,
            tensor_map=layout.tensor_map,
            alias_name=layout.alias_name,
        )
        for layout in given or ()
    ]


def _together(found: Proposals) -> ProposedTogether | None:
    if found.together is None:
        return None
    return ProposedTogether(
        passes=found.together,
        beside=[
            ProposedBeside(
                node=node.id,
                op=node.op,
                line=node.line,
                in_strategy=asked.strategy,
                out_strategy=asked.out_strategy,
                in_layout=_layouts(asked.in_layout),
                out_layout=_layouts(asked.out_layout),
                set_with=shard_text(node),
            )
            for node, asked in found.beside.items()
        ],
        left=list(
            dict.fromkeys(f"{one.op or ''} {one.message}".strip() for one in found.remaining)
        ),
    )


def _operator(item: OperatorReport) -> CheckedOperator:
    judgement = item.judgement
    legal = item.verdict == "legal"
    return CheckedOperator(
        node=item.node.id,
        graph=item.graph,
        line=item.node.line,
        op=item.op,
        strategy=item.strategy,
        out_strategy=item.out_strategy,
        verdict=item.verdict,
        why="; ".join(reason.message for reason in judgement.reasons),
        generated=judgement.generated,
        device_matrix=item.device_matrix if legal else None,
        input_maps=item.input_maps if legal else None,
        output_maps=item.output_maps if legal else None,
        input_slices=item.input_slices if legal else None,
        output_slices=item.output_slices if legal else None,
        repeated=judgement.repeats,
        loss_divisor=item.loss_divisor,
        collectives=[
            OperatorCollective(
                op=collective.op,
                ranks=collective.ranks,
                group=collective.group,
                bytes=collective.bytes,
                why=collective.why,
                reduce=collective.reduce or None,
                count=collective.count,
            )
            for collective in item.collectives
        ],
    )


def _edge(item: RedistributionReport) -> CheckedEdge:
    producer, consumer = item.producer, item.consumer
    return CheckedEdge(
        producer=producer.id,
        consumer=consumer.id,
        input=item.input,
        item=item.item,
        from_op=producer.op,
        to_op=consumer.op,
        from_graph=producer.graph.name if producer.graph is not None else None,
        to_graph=consumer.graph.name if consumer.graph is not None else None,
        from_split=item.source.splits if item.source is not None else None,
        to_split=item.target.splits if item.target is not None else None,
        replaces=item.replaces,
        why=item.why,
        operators=None
        if item.operators is None
        else [_step(item, step) for step in item.operators],
    )


def _step(edge: RedistributionReport, step: RedistributionStep) -> RedistributionOperator:
    return RedistributionOperator(
        op=step.op,
        ranks=step.ranks,
        axis=step.axis,
        concat_axis=step.concat_axis,
        input_shape=step.input_shape,
        output_shape=step.output_shape,
        bytes=step_bytes(edge, step) if step.is_collective else 0,
    )


def _parameter(item: ParameterReport) -> CheckedParameter:
    known = item.slice is not None

    def ranks(group: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return group if is_group(group) else () if known else None

    return CheckedParameter(
        name=item.name,
        shape=item.shape,
        slice=item.slice,
        base_slice=item.base,
        bytes=parameter_bytes(item)[1],
        mirror_ranks=ranks(item.mirror_ranks),
        gather_ranks=ranks(item.gather_ranks),
        scatter_ranks=ranks(item.scatter_ranks),
        user=item.user.id if item.user is not None else None,
        why=item.why,
    )


def _dataset(item: DatasetReport) -> DatasetSlice:
    return DatasetSlice(input=item.input, shape=item.shape, slice=item.slice, offset=item.offset)


def _totals(view: CheckView) -> list[CollectiveTotal]:
    if view.result.accepted is False:
        return []
    return [
        CollectiveTotal(
            op=row.op,
            ranks=row.ranks,
            group=row.group,
            count=row.count,
            bytes=None if row.unknown else row.bytes,
            why=row.why,
        )
        for row in collective_rows(view.result)
    ]
