"""What ``irtool comm fuse`` shows: buckets as configured, better ones, and what they would gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.fuse import Bucket, Fusion
from irtool.cluster.fuse_plan import Channel, FusionPlan
from irtool.ir.units import bytes_text, count_text, plural, ranks_text, seconds_text
from irtool.report.answer import as_json
from irtool.report.comm_pieces import machine_text, pieces, shown
from irtool.report.cost import hideable_seconds
from irtool.report.model import (
    Answer,
    Block,
    Column,
    Document,
    Element,
    Facts,
    Heading,
    Picture,
    Report,
    Table,
    number_column,
)
from irtool.report.model import text_column as wide
from irtool.report.page.charts import bars
from irtool.report.text import shortened

SCHEMA = "irtool.comm.fuse/1"


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


def fuse_document(view: FuseView) -> Document:
    """Buckets as configured, as recommended, and the gain."""
    document = Document(
        [Heading(f"{view.path}: {_answer(view.fusion.buckets, view.plan)}"), Facts(_facts(view))]
    )
    document.add(*_blocks(view))
    return document


def fusion_document(fusion: Fusion) -> Document:
    """Buckets as configured, where no machine was asked for better ones."""
    document = Document([Heading(_buckets_text(fusion.buckets))])
    document.add(Facts([("never fused", _separate_text(fusion))]))
    if fusion.buckets:
        document.add(_buckets_table("Buckets as configured", fusion.buckets, 0))
    return document


def fusion_plan_document(plan: FusionPlan) -> Document:
    """Better buckets, and what they would gain on a machine."""
    configured = [bucket for channel in plan.channels for bucket in channel.configured]
    document = Document([Heading(_answer(configured, plan)), Facts(_plan_facts(plan))])
    document.add(*_plan_blocks(plan, 0))
    return document


def _answer(buckets: Sequence[Bucket], plan: FusionPlan) -> str:
    text = _buckets_text(buckets)
    if not buckets:
        return text
    if not any(channel.gain > 0 for channel in plan.channels):
        return f"{text}, none better under this model"
    return f"{text}; better ones save up to {seconds_text(plan.gain)} a step"


def _buckets_text(buckets: Sequence[Bucket]) -> str:
    if not buckets:
        return "nothing may be fused: no collective has a fusion id"
    count = sum(len(bucket.tensors) for bucket in buckets)
    return f"{plural(count, 'collective')} in {plural(len(buckets), 'bucket')}"


def _separate_text(fusion: Fusion) -> str:
    return ", ".join(f"{count_text(n)} {op}" for op, n in fusion.separate.items()) or "nothing"


def _facts(view: FuseView) -> list[tuple[str, str]]:
    facts = [("never fused", _separate_text(view.fusion)), *_plan_facts(view.plan)]
    return facts + [("note", note) for note in view.notes]


def _plan_facts(plan: FusionPlan) -> list[tuple[str, str]]:
    facts = [
        ("machine", machine_text(plan.machine)),
        ("computing", f"{seconds_text(plan.compute_seconds)} a step, modelled"),
    ]
    for name, each in (("gradient sums", plan.sums), ("gathers of weights", plan.gathers)):
        if each.hideable:
            text = (
                f"{seconds_text(each.hideable)}, of which {seconds_text(each.exposed)} not hidden"
            )
            facts.append((name, text))
    if plan.unknown_operators:
        what = plural(plan.unknown_operators, "operator")
        facts.append(("limits", f"{what} without a count of operations: priced by bytes alone"))
    return facts


def _blocks(view: FuseView) -> Iterator[Block]:
    if view.fusion.buckets:
        yield _buckets_table("Buckets as configured", view.fusion.buckets, view.limit)
    if view.simulated:
        yield _buckets_table(f"Buckets with {view.setting}", view.simulated, view.limit)
    yield from _plan_blocks(view.plan, view.limit)


def _plan_blocks(plan: FusionPlan, limit: int | None) -> Iterator[Block]:
    if plan.channels:
        yield _channels_table(plan.channels, limit)
    for channel in plan.channels:
        if channel.gain > 0:
            title = f"Recommended: {channel.op} of {ranks_text(channel.ranks)}"
            yield _buckets_table(title, channel.recommended, limit)


def _buckets_table(title: str, buckets: Sequence[Bucket], limit: int | None) -> Table:
    count = shown(len(buckets), limit)
    columns = (
        Column("operator"),
        number_column("fusion"),
        wide("ranks"),
        Column("type"),
        number_column("tensors"),
        number_column("elements"),
        number_column("bytes"),
        number_column("extra memory"),
        wide("parameters"),
    )
    rows = [
        (
            one.op,
            one.fusion,
            ranks_text(one.ranks),
            one.dtype,
            len(one.tensors),
            one.elements,
            bytes_text(one.bytes),
            bytes_text(one.fused_bytes),
            _parameters_text(one),
        )
        for one in buckets[:count]
    ]
    return Table(title, columns, rows, len(buckets) - count, "bucket")


def _parameters_text(bucket: Bucket) -> str:
    names = [tensor.parameter or "?" for tensor in bucket.tensors]
    if len(names) < 4:
        return ", ".join(names)
    return f"{shortened(names[0], 40)} … {shortened(names[-1], 40)}"


def _channels_table(channels: Sequence[Channel], limit: int | None) -> Table:
    count = shown(len(channels), limit)
    columns = (
        Column("operator"),
        wide("ranks"),
        number_column("buckets"),
        number_column("better"),
        number_column("not hidden"),
        number_column("then"),
        number_column("gain"),
        wide("nearest setting"),
    )
    rows = [
        (
            one.op,
            ranks_text(one.ranks),
            len(one.configured),
            len(one.recommended),
            seconds_text(one.exposed[0]),
            seconds_text(one.exposed[1]),
            seconds_text(one.gain),
            _size_text(one),
        )
        for one in channels[:count]
    ]
    return Table("Communication that computing does not hide", columns, rows, len(channels) - count)


def _size_text(channel: Channel) -> str:
    if channel.size is None:
        return "no size does better than what is set"
    setting = f"comm_fusion {channel.op.lower()} size {channel.size}"
    if channel.reproduces:
        return f"{setting}: these buckets exactly"
    return f"{setting}: not hidden {seconds_text(channel.size_exposed)}"


# -- JSON and page -------------------------------------------------------------------------------


def fuse_pieces(view: FuseView) -> Iterator[str]:
    """``irtool.comm.fuse/1``."""
    plan = view.plan
    head = {
        "schema": SCHEMA,
        "path": view.path,
        "rank": view.rank,
        "machine": plan.machine.name,
        "never_fused": dict(view.fusion.separate),
        "compute_seconds": plan.compute_seconds,
        "gain_seconds": plan.gain,
        "hideable": {
            kind: as_json(each) for kind, each in hideable_seconds(plan.sums, plan.gathers).items()
        },
        "unknown_operators": plan.unknown_operators,
        "setting": view.setting or None,
    }
    lists: dict[str, Sequence[object]] = {
        "buckets": [_bucket_object(one) for one in view.fusion.buckets],
        "simulated": [_bucket_object(one) for one in view.simulated],
        "recommended": [
            _bucket_object(one) for channel in plan.channels for one in channel.recommended
        ],
        "channels": [_channel_object(one) for one in plan.channels],
    }
    return pieces(head, lists)


def _bucket_object(bucket: Bucket) -> dict[str, object]:
    return {
        "op": bucket.op,
        "fusion": bucket.fusion,
        "group": bucket.group,
        "ranks": None if bucket.ranks is None else list(bucket.ranks),
        "dtype": bucket.dtype,
        "reduction": bucket.reduction,
        "count": len(bucket.tensors),
        "elements": bucket.elements,
        "bytes": bucket.bytes,
        "fused_bytes": bucket.fused_bytes,
        "parameters": [tensor.parameter for tensor in bucket.tensors],
        "nodes": [tensor.collective.node.id for tensor in bucket.tensors],
        "lines": [tensor.collective.node.line for tensor in bucket.tensors],
    }


def _channel_object(one: Channel) -> dict[str, object]:
    return {
        "op": one.op,
        "group": one.group,
        "ranks": None if one.ranks is None else list(one.ranks),
        "dtype": one.dtype,
        "buckets_configured": len(one.configured),
        "buckets_recommended": len(one.recommended),
        "exposed_seconds_configured": one.exposed[0],
        "exposed_seconds_recommended": one.exposed[1],
        "gain_seconds": one.gain,
        "size": one.size,
        "size_exposed_seconds": one.size_exposed,
        "size_reproduces": one.reproduces,
    }


def fuse_svg(view: FuseView) -> str:
    """Communication that is not hidden, as configured and as recommended."""
    rows: list[tuple[str, Sequence[float]]] = []
    for one in view.plan.channels[:20]:
        name = f"{one.op} {ranks_text(one.ranks)}"
        rows.append((f"{name}, as set", (one.exposed[0],)))
        rows.append((f"{name}, better", (one.exposed[1],)))
    return bars(rows, "seconds", ("not hidden",))


def fuse_page(view: FuseView) -> Report:
    """The page: gain, bars, buckets."""
    details = [f"{name}: {value}" for name, value in _facts(view)]
    picture = Picture(
        "Communication that computing does not hide", fuse_svg(view), "Seconds by channel."
    )
    sections: list[Element] = [picture, *_blocks(view)]
    return Report(
        f"comm fuse: {view.path}",
        Answer(_answer(view.fusion.buckets, view.plan), "plain", details),
        sections,
    )
