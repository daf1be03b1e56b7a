"""Memory as pictures: the curve of a step, and an html page with everything."""

from __future__ import annotations

from irtool.cluster.memory import Memory
from irtool.ir.units import bytes_text
from irtool.report.memory import (
    MemoryView,
    alive_table,
    answer_text,
    combination_blocks,
    interval_text,
    layers_table,
    ranks_table,
    servers_table,
    unshardable_table,
)
from irtool.report.model import (
    Answer,
    Column,
    Element,
    Facts,
    Link,
    Picture,
    Report,
    Table,
    Tone,
)
from irtool.report.page.charts import Mark, Series, line_chart
from irtool.report.page.keys import node_key


def memory_picture(view: MemoryView) -> str:
    """The curve of the worst rank as svg: bytes over the launches of a step."""
    memory = view.worst.memory
    static = memory.static_bytes
    count = len(memory.curve)
    total = [(float(place), float(static + size)) for place, size in enumerate(memory.curve)]
    stays = [(0.0, float(static)), (float(max(count - 1, 1)), float(static))]
    series = [Series("with what comes and goes", total, True), Series("stays", stays)]
    marks = [] if memory.peak_launch is None else [Mark(memory.peak_launch, _peak_label(memory))]
    return line_chart(
        series if total else [],
        "launches of one step",
        "bytes on the device",
        "bytes",
        marks,
        None if view.limit is None else float(view.limit),
    )


def _peak_label(memory: Memory) -> str:
    node = memory.launched[memory.peak_launch or 0].node
    return f"peak {bytes_text(memory.peak_bytes)} at {node.id} {node.op}"


_SAVING_COLUMNS = (
    Column("what"),
    Column("where"),
    Column("saves", "bytes"),
    Column("operations", "number"),
    Column("moves", "bytes"),
    Column("a step longer", "seconds"),
    Column("note"),
)


def memory_page(view: MemoryView) -> Report:
    """An html page of a view."""
    worst = view.worst
    memory = worst.memory
    sections: list[Element] = [
        Facts(_facts(memory), "What the device holds"),
        Picture(
            "Over one step",
            memory_picture(view),
            "Bytes on the device over the launches of one step, with what stays and the peak.",
        ),
    ]
    if len(view.ranks) > 1:
        sections.append(ranks_table(view))
    sections.append(_alive_section(memory))
    sections.append(layers_table(memory))
    plan = worst.plan
    if plan is not None:
        sections.append(
            Table(
                "What would save memory",
                _SAVING_COLUMNS,
                [
                    [
                        saving.option.switch,
                        saving.option.target,
                        saving.saved,
                        saving.option.flops,
                        saving.option.traffic_bytes,
                        saving.seconds,
                        saving.option.note,
                    ]
                    for saving in plan.savings
                ],
            )
        )
        sections += combination_blocks(view, plan)
        if plan.unshardable:
            sections.append(unshardable_table(plan))
        if plan.served:
            sections.append(servers_table(plan))
    tone: Tone = "plain"
    if view.limit is not None:
        fits = memory.fits(view.limit)
        tone = "unknown" if fits is None else "good" if fits else "bad"
    answer = Answer(answer_text(view), tone, list(memory.notes))
    return Report(f"memory: {memory.path}", answer, sections)


def _facts(memory: Memory) -> list[tuple[str, str | Link]]:
    found: list[tuple[str, str | Link]] = [
        (cause, bytes_text(size)) for cause, size in memory.static_by_cause.items() if size
    ]
    found += [
        (f"{cause} at the peak", bytes_text(size))
        for cause, size in memory.alive_by_cause().items()
        if size
    ]
    found.append(("communicators", interval_text(memory.communicators.bytes)))
    found.append(("work space", interval_text(memory.workspace)))
    found.append(("device", interval_text(memory.device_bytes)))
    return found


def _alive_section(memory: Memory) -> Table:
    columns = [Column("node"), Column("operator"), Column("bytes", "bytes"), Column("why")]
    columns += [Column("layer"), Column("from", "number"), Column("to", "number")]
    return Table(
        alive_table(memory).title,
        columns,
        [
            [
                Link(item.node.id, node_key(item.node)),
                item.node.op,
                item.bytes,
                item.cause,
                item.layer,
                item.born + 1,
                item.dies + 1,
            ]
            for item in memory.alive
        ],
    )
