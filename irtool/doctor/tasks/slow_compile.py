"""What makes the graph, and so its compilation, large?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from irtool.cluster.repeated_code import (
    SECONDS_A_STATEMENT,
    micro_batch_copies,
    unrolled_loops,
)
from irtool.doctor.diagnosis import Diagnosis, Task, diagnosis
from irtool.doctor.subject import Reads, Subject, source_of
from irtool.ir.finding import Edit, Gain
from irtool.ir.phases import phases
from irtool.ir.run import PassFile
from irtool.ir.units import count_text
from irtool.syntax.source import DumpError, read_content

TASK: Task = "slow-compile"
READS: Reads = "validate"
_LARGE_LOOP = 0.2
"""Part of the forward statements that a loop has to make."""
_MANY_COPIES = 2_000
"""Statements for micro-batches from which on copying them is a fault, not an opportunity."""
_FEW_COPIES = 500
_GROWTH = 3.0
_LARGE = 20_000
"""Statements that a pass has to add to be told of."""


class PassSize(NamedTuple):
    """Statements of the dump after a pass."""

    file: PassFile
    statements: int


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Unrolled loops, cells copied for micro-batches, passes that make the graph grow."""
    ranks, dump = subject.classes[0]
    stages = phases(dump)
    forward = sum(stages.get(node) == "forward" for node in dump.nodes())
    command = subject.command("parse", dump.path, "--group-by", "scope")
    for loop in unrolled_loops(dump, stages)[:1]:
        if loop.statements < _LARGE_LOOP * forward:
            continue
        source = source_of(loop.node)
        fewer = loop.statements - loop.statements // loop.times
        yield diagnosis(
            TASK,
            "warning",
            f"a loop of Python in {loop.scope} is unrolled {loop.times} times: "
            f"{count_text(loop.statements)} of {count_text(forward)} forward statements",
            command,
            rank=ranks[0],
            ranks=ranks,
            node=loop.node.id,
            file=dump.path,
            line=loop.node.line,
            source=source,
            edit=Edit(setting="loop", value="ops.Scan or ops.ForiLoop instead of range()"),
            gain=Gain(seconds=fewer * SECONDS_A_STATEMENT),
            weight=float(fewer),
        )
    copies = micro_batch_copies(dump)
    if copies is not None and copies.statements >= _FEW_COPIES:
        fewer = copies.statements - copies.once
        yield diagnosis(
            TASK,
            "warning" if copies.statements >= _MANY_COPIES else "info",
            f"{copies.layers} layers stand in the graph {copies.micro_batches} times, once a "
            f"micro-batch ({count_text(copies.statements)} statements): lazy_inline compiles a "
            f"layer once (about {count_text(copies.once)})",
            command,
            rank=ranks[0],
            ranks=ranks,
            file=dump.path,
            edit=Edit(setting="lazy_inline", value="@lazy_inline on __init__ of the layer"),
            gain=Gain(seconds=fewer * SECONDS_A_STATEMENT),
            weight=float(fewer),
        )
    yield from _growth(subject, ranks[0])


def _growth(subject: Subject, rank: int) -> Iterator[Diagnosis]:
    """The pass that makes most of a large graph."""
    sizes = pass_sizes(subject, rank)
    grown = [
        (after.statements - before.statements, before, after)
        for before, after in pairwise(sizes)
        if after.statements > _GROWTH * max(1, before.statements)
    ]
    if not grown or max(grown)[0] < _LARGE:
        return
    added, before, after = max(grown, key=lambda item: item[0])
    yield diagnosis(
        TASK,
        "info",
        f"{after.file.name} makes {count_text(after.statements)} statements of "
        f"{count_text(before.statements)}",
        subject.command("parse", after.file.path, "--group-by", "scope"),
        rank=rank,
        file=after.file.path,
        since=after.file.name,
        gain=Gain(seconds=added * SECONDS_A_STATEMENT),
    )


def pass_sizes(subject: Subject, rank: int) -> list[PassSize]:
    """Statements after each stage of one rank's compilation, by counting lines."""
    found: list[PassSize] = []
    for file in subject.compilations[rank].passes:
        if file.kind not in ("stage", "parallel"):
            continue
        try:
            content = read_content(file.path).data
        except DumpError:
            continue
        found.append(PassSize(file, content.count(b"\n  %")))
    return found
