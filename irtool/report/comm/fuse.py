"""``irtool comm fuse``: its answer for scripts, and its report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from irtool.cluster.context.model import RunContext
from irtool.cluster.fuse import Bucket, Fusion
from irtool.cluster.fuse_plan import Channel, FusionPlan
from irtool.ir.dataclass import dataclass
from irtool.ir.units import count_text, plural, ranks_text, seconds_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.comm.places import machine_text
from irtool.report.hideable import HideableSeconds, hideable_seconds
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Element,
    Facts,
    Picture,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.run_answer import RunAnswer, context_fields
from irtool.report.text import shortened

_MOST_BARS = 20
"""Channels that a picture shows."""


@dataclass(frozen=True, slots=True)
class FuseView:
    """What is configured, what would be better, and what a simulated setting makes of it.

    ``simulated`` are the buckets of ``--size`` or ``--index``, ``setting`` that option.
    """

    path: str
    rank: int
    fusion: Fusion
    plan: FusionPlan
    simulated: Sequence[Bucket] = ()
    setting: str = ""
    notes: Sequence[str] = ()
    limit: int | None = None


# -- for scripts ---------------------------------------------------------------------------------


class FusionBucket(AnswerObject, frozen=True, kw_only=True):
    """Collectives that the backend makes one of."""

    op: str
    fusion: Annotated[int, doc("its fusion id")]
    group: Annotated[str | None, doc("name of the group")]
    ranks: Annotated[Sequence[int] | None, doc("of the group; null: not known")]
    dtype: str | None
    reduction: str | None
    count: Annotated[int, doc("collectives")]
    elements: Annotated[
        int | None,
        doc("what thresholds count; of a gathered or scattered tensor one rank's slice"),
    ]
    bytes: int
    fused_bytes: Annotated[int, doc("of the contiguous tensor")]
    parameters: Annotated[list[str | None], doc("whose value or gradient each tensor is")]
    nodes: list[str]
    lines: Annotated[list[int], doc("of the dump")]


class FusionChannel(AnswerObject, frozen=True, kw_only=True):
    """Collectives that could share a bucket."""

    op: str
    group: Annotated[str | None, doc("name of the group")]
    ranks: Annotated[Sequence[int] | None, doc("of the group; null: not known")]
    dtype: str | None
    buckets_configured: int
    buckets_recommended: int
    exposed_seconds_configured: Annotated[float, doc("of communication that nothing hides")]
    exposed_seconds_recommended: float
    gain_seconds: float
    size: Annotated[int | None, doc("of mode `size`, nearest to what is recommended; null: none")]
    size_exposed_seconds: Annotated[float | None, doc("with that size")]
    size_reproduces: Annotated[bool, doc("that size makes exactly the recommended buckets")]


class FuseAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.fuse/1"
):
    """Buckets of fused collectives as configured, better ones, and what they would gain."""

    path: Annotated[str, doc("what was read")]
    rank: Annotated[int, doc("whose dump")]
    machine: Annotated[str, doc("name of the machine model")]
    never_fused: Annotated[dict[str, int], doc("collectives without a fusion id, by operator")]
    compute_seconds: Annotated[float, doc("of a step, modelled")]
    gain_seconds: Annotated[float, doc("of a step, with the recommended buckets")]
    hideable: Annotated[
        dict[str, HideableSeconds], doc("by kind: `gradients`, and `gathers` of weights")
    ]
    unknown_operators: Annotated[int, doc("without a count of operations: priced by bytes alone")]
    setting: Annotated[str | None, doc("of `--size` or `--index`")]
    buckets: Annotated[list[FusionBucket], doc("that the fusion ids of the dump make")]
    simulated: Annotated[list[FusionBucket], doc("those of `setting`")]
    recommended: Annotated[list[FusionBucket], doc("the best ones under the model")]
    channels: list[FusionChannel]


def fuse_answer(view: FuseView, context: RunContext) -> FuseAnswer:
    """The answer of ``irtool comm fuse`` for scripts.

    Args:
        view: buckets as configured, as recommended, and as a simulated setting makes them.
        context: of the run, with origins.
    """
    plan = view.plan
    return FuseAnswer(
        path=view.path,
        rank=view.rank,
        machine=plan.machine.name,
        never_fused=dict(view.fusion.separate),
        compute_seconds=plan.compute_seconds,
        gain_seconds=plan.gain,
        hideable=hideable_seconds(plan.sums, plan.gathers),
        unknown_operators=plan.unknown_operators,
        setting=view.setting or None,
        buckets=[_bucket(one) for one in view.fusion.buckets],
        simulated=[_bucket(one) for one in view.simulated],
        recommended=[_bucket(one) for channel in plan.channels for one in channel.recommended],
        channels=[_channel(one) for one in plan.channels],
        **context_fields(context),
    )


def _bucket(bucket: Bucket) -> FusionBucket:
    return FusionBucket(
        op=bucket.op,
        fusion=bucket.fusion,
        group=bucket.group,
        ranks=bucket.ranks,
        dtype=bucket.dtype,
        reduction=bucket.reduction,
        count=len(bucket.tensors),
        elements=bucket.elements,
        bytes=bucket.bytes,
        fused_bytes=bucket.fused_bytes,
        parameters=[tensor.parameter for tensor in bucket.tensors],
        nodes=[tensor.collective.node.id for tensor in bucket.tensors],
        lines=[tensor.collective.node.line for tensor in bucket.tensors],
    )


def _channel(one: Channel) -> FusionChannel:
    return FusionChannel(
        op=one.op,
        group=one.group,
        ranks=one.ranks,
        dtype=one.dtype,
        buckets_configured=len(one.configured),
        buckets_recommended=len(one.recommended),
        exposed_seconds_configured=one.exposed[0],
        exposed_seconds_recommended=one.exposed[1],
        gain_seconds=one.gain,
        size=one.size,
        size_exposed_seconds=one.size_exposed,
        size_reproduces=one.reproduces,
    )


# -- for people ----------------------------------------------------------------------------------


def fuse_report(view: FuseView, is_page: bool = False) -> Report:
    """Buckets as configured, as recommended, and the gain; a page draws what is not hidden.

    Args:
        view: buckets as configured, as recommended, and as a simulated setting makes them.
        is_page: whether pictures are seen.
    """
    buckets = view.fusion.buckets
    facts = [_never_fused(view.fusion), *_plan_facts(view.plan)]
    elements: list[Element] = [Facts([*facts, *(("note", note) for note in view.notes)])]
    if is_page:
        elements.append(_exposed_picture(view.plan))
    if buckets:
        elements.append(_buckets_table("Buckets as configured", buckets, view.limit))
    if view.simulated:
        title = f"Buckets with {view.setting}"
        elements.append(_buckets_table(title, view.simulated, view.limit))
    elements += _plan_tables(view.plan, view.limit)
    answer = Answer(_answer_text(buckets, view.plan))
    return Report(f"comm fuse: {view.path}", answer, elements, view.path)


def fusion_report(fusion: Fusion) -> Report:
    """Buckets as configured, where no machine was asked for better ones.

    Args:
        fusion: of one rank's collectives.
    """
    elements: list[Element] = [Facts([_never_fused(fusion)])]
    if fusion.buckets:
        elements.append(_buckets_table("Buckets as configured", fusion.buckets, 0))
    return Report("fusion", Answer(_buckets_text(fusion.buckets)), elements)


def fusion_plan_report(plan: FusionPlan) -> Report:
    """Better buckets, and what they would gain on a machine.

    Args:
        plan: configured and recommended buckets of each channel.
    """
    configured = [bucket for channel in plan.channels for bucket in channel.configured]
    elements = [Facts(_plan_facts(plan)), *_plan_tables(plan, 0)]
    return Report("fusion", Answer(_answer_text(configured, plan)), elements)


def _answer_text(buckets: Sequence[Bucket], plan: FusionPlan) -> str:
    text = _buckets_text(buckets)
    if not buckets:
        return text
    if not any(channel.gain > 0 for channel in plan.channels):
        return f"{text}, none better under this model"
    return f"{text}; better ones save up to {seconds_text(plan.gain)} a step"


def _buckets_text(buckets: Sequence[Bucket]) -> str:
    if not buckets:
        return "nothing can be fused: no collective has a fusion id"
    count = sum(len(bucket.tensors) for bucket in buckets)
    return f"{plural(count, 'collective')} in {plural(len(buckets), 'bucket')}"


def _never_fused(fusion: Fusion) -> tuple[str, str]:
    counts = ", ".join(f"{count_text(count)} {op}" for op, count in fusion.separate.items())
    return "never fused", counts or "nothing"


def _plan_facts(plan: FusionPlan) -> list[tuple[str, str]]:
    facts = [
        ("machine", machine_text(plan.machine)),
        ("compute", f"{seconds_text(plan.compute_seconds)} a step, modelled"),
    ]
    for name, overlap in (("gradient sums", plan.sums), ("gathers of weights", plan.gathers)):
        if overlap.hideable:
            exposed = f"{seconds_text(overlap.exposed)} not hidden"
            facts.append((name, f"{seconds_text(overlap.hideable)}, of which {exposed}"))
    if plan.unknown_operators:
        what = plural(plan.unknown_operators, "operator")
        facts.append(("limits", f"{what} without a count of operations: priced by bytes alone"))
    return facts


def _plan_tables(plan: FusionPlan, limit: int | None) -> Iterator[Table]:
    if plan.channels:
        yield _channels_table(plan.channels, limit)
    for channel in plan.channels:
        if channel.gain > 0:
            title = f"Recommended buckets: {channel.op} of ranks {ranks_text(channel.ranks)}"
            yield _buckets_table(title, channel.recommended, limit)


def _buckets_table(title: str, buckets: Sequence[Bucket], limit: int | None) -> Table:
    columns = [
        text_column("operator"), number_column("fusion"), text_column("ranks", 1),
        text_column("type", 3), number_column("tensors"), number_column("elements", rank=2),
        number_column("bytes", "bytes"), number_column("extra memory", "bytes", 1),
        text_column("parameters", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.op,
            one.fusion,
            ranks_text(one.ranks),
            one.dtype,
            len(one.tensors),
            Amount(one.elements),
            one.bytes,
            one.fused_bytes,
            _parameters_text(one),
        ]
        for one in buckets
    ]
    return Table(title, columns, rows, noun="bucket", most=rows_shown(limit))


def _parameters_text(bucket: Bucket) -> str:
    names = [tensor.parameter or "?" for tensor in bucket.tensors]
    if len(names) < 4:
        return ", ".join(names)
    return f"{shortened(names[0], 40)} … {shortened(names[-1], 40)}"


def _channels_table(channels: Sequence[Channel], limit: int | None) -> Table:
    columns = [
        text_column("operator"), text_column("ranks"), number_column("buckets"),
        number_column("recommended"), number_column("not hidden", "seconds"),
        number_column("if recommended", "seconds"), number_column("gain", "seconds"),
        text_column("nearest setting", 1),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            one.op,
            ranks_text(one.ranks),
            len(one.configured),
            len(one.recommended),
            *one.exposed,
            one.gain,
            _size_text(one),
        ]
        for one in channels
    ]
    title = "Communication that compute does not hide"
    return Table(title, columns, rows, noun="channel", most=rows_shown(limit))


def _size_text(channel: Channel) -> str:
    if channel.size is None:
        return "no size is better than what is set"
    setting = f"comm_fusion {channel.op.lower()} size {channel.size}"
    if channel.reproduces:
        return f"{setting}: exactly these buckets"
    return f"{setting}: {seconds_text(channel.size_exposed)} not hidden"


def _exposed_picture(plan: FusionPlan) -> Picture:
    """Communication that is not hidden, as configured and as recommended."""
    rows: list[tuple[str, Sequence[float]]] = []
    for one in plan.channels[:_MOST_BARS]:
        name = f"{one.op} {ranks_text(one.ranks)}"
        rows.append((f"{name}, as set", (one.exposed[0],)))
        rows.append((f"{name}, recommended", (one.exposed[1],)))
    return Picture(
        "Communication that compute does not hide",
        bars(rows, "seconds", ("not hidden",)),
        "Seconds by channel.",
    )
