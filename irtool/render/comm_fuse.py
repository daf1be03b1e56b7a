"""What ``irtool comm fuse`` shows: buckets as configured, better ones, and what they would gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irtool.cluster.fuse import Bucket, Fusion
from irtool.cluster.fuse_plan import Channel, FusionPlan
from irtool.cluster.machine import Machine
from irtool.render.comm_pieces import machine_text, pieces, seconds_text, shown
from irtool.render.page.charts import bars
from irtool.render.page.document import document_sections
from irtool.render.page.page import Answer, Page, PictureSection, Section
from irtool.render.tables import Block, Column, Document, Facts, Heading, Table, number_column
from irtool.render.tables import text_column as wide
from irtool.render.text import bytes_text, count_text, plural, ranks_text, shortened

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
    machine: Machine
    simulated: Sequence[Bucket] = ()
    setting: str = ""
    notes: Sequence[str] = ()
    limit: int | None = None


def fuse_document(view: FuseView) -> Document:
    """Buckets as configured, as recommended, and the gain."""
    document = Document([Heading(f"{view.path}: {_answer(view)}"), Facts(_facts(view))])
    document.add(*_blocks(view))
    return document


def _answer(view: FuseView) -> str:
    buckets = view.fusion.buckets
    if not buckets:
        return "nothing may be fused: no collective has a fusion id"
    count = sum(len(bucket.tensors) for bucket in buckets)
    text = f"{plural(count, 'collective')} in {plural(len(buckets), 'bucket')}"
    gain = view.plan.gain
    better = [channel for channel in view.plan.channels if channel.gain > 0]
    if not better:
        return f"{text}, none better under this model"
    return f"{text}; better ones save up to {seconds_text(gain)} a step"


def _facts(view: FuseView) -> list[tuple[str, str]]:
    separate = ", ".join(f"{count_text(n)} {op}" for op, n in view.fusion.separate.items())
    facts = [
        ("never fused", separate or "nothing"),
        ("machine", machine_text(view.machine)),
        ("computing", f"{seconds_text(view.plan.compute_seconds)} a step, modelled"),
    ]
    if view.plan.unknown_operators:
        what = plural(view.plan.unknown_operators, "operator")
        facts.append(("limits", f"{what} without a count of operations: priced by bytes alone"))
    facts += [("note", note) for note in view.notes]
    return facts


def _blocks(view: FuseView) -> Iterator[Block]:
    if view.fusion.buckets:
        yield _buckets_table("Buckets as configured", view.fusion.buckets, view.limit)
    if view.simulated:
        yield _buckets_table(f"Buckets with {view.setting}", view.simulated, view.limit)
    if view.plan.channels:
        yield _channels_table(view.plan.channels, view.limit)
    for channel in view.plan.channels:
        if channel.gain > 0:
            title = f"Recommended: {channel.op} of {ranks_text(channel.ranks)}"
            yield _buckets_table(title, channel.recommended, view.limit)


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
        "machine": view.machine.name,
        "never_fused": dict(view.fusion.separate),
        "compute_seconds": plan.compute_seconds,
        "gain_seconds": plan.gain,
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


def fuse_page(view: FuseView) -> Page:
    """The page: gain, bars, buckets."""
    details = [f"{name}: {value}" for name, value in _facts(view)]
    picture = PictureSection(
        "Communication that computing does not hide", fuse_svg(view), "Seconds by channel."
    )
    sections: list[Section] = [picture, *document_sections(Document(list(_blocks(view))))]
    return Page(f"comm fuse: {view.path}", Answer(_answer(view), "plain", details), sections)
