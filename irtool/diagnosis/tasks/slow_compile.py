"""What makes the graph, and so its compilation, large?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from irtool.cluster.memory.layers import layer_of_scope
from irtool.cluster.repeated_code import (
    FRONT_END_SECONDS,
    SECONDS_A_STATEMENT,
    UnrolledLoop,
    micro_batch_copies,
    unrolled_loops,
)
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject, source_of
from irtool.ir.finding import Edit, Gain
from irtool.ir.phases import phases
from irtool.ir.run import PassFile
from irtool.ir.units import count_text, plural, seconds_text
from irtool.syntax.source import DumpError, read_content

TASK: Task = "slow-compile"
READS: Reads = "validate"
_LARGE_LOOP = 0.2
"""Part of the forward statements that a loop has to make."""
_SHORT_LOOP = 50
"""Statements of a loop below which nobody waits for it."""
_LONG_LOOP = 200
"""Statements of a loop from which on unrolling it is a fault: some ten seconds of compilation."""
_MANY_COPIES = 2_000
"""Statements for micro-batches from which on copying them is a fault, not an opportunity."""
_FEW_COPIES = 500
_GROWTH = 3.0
_LARGE = 20_000
"""Statements that a pass has to add to be told of."""


_SCOPE = re.compile(rb"\n\s+# (?:Scope|Fullname with scope): \(([^)\n]*)\)")
_DIGITS = re.compile(r"\d+")


class PassSize(NamedTuple):
    """Statements of the dump after a pass."""

    file: PassFile
    statements: int


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """Unrolled loops, cells copied for micro-batches, passes that make the graph grow.

    Args:
        subject: the run; the first class of ranks with equal graphs is looked at.

    Yields:
        warnings of what is large, infos of what is smaller; gains are seconds of compiling, not of
        a step.

    Raises:
        CannotJudge: no validate dump is whole.
    """
    ranks, dump = subject.classes[0]
    stages = phases(dump)
    forward = sum(stages.get(node) == "forward" for node in dump.nodes())
    command = subject.command("parse", dump.path, "--group-by", "scope")
    for alike in _by_line(unrolled_loops(dump, stages))[:1]:
        loop, statements = alike[0], sum(unrolled.statements for unrolled in alike)
        if statements < max(_SHORT_LOOP, _LARGE_LOOP * forward):
            continue
        source = source_of(loop.node)
        others = f" and {plural(len(alike) - 1, 'other layer')}" if len(alike) > 1 else ""
        fewer = statements - statements // loop.times
        yield diagnosis(
            TASK,
            "warning" if statements >= _LONG_LOOP else "info",
            f"a loop of Python in {loop.scope}{others} is unrolled {loop.times} times: "
            f"{count_text(statements)} of {count_text(forward)} forward statements"
            f"{_saved_text(fewer)}",
            command,
            rank=ranks[0],
            ranks=ranks,
            node=loop.node.id,
            file=dump.path,
            line=loop.node.line,
            source=source,
            edit=Edit(setting="loop", value="ops.Scan or ops.ForiLoop instead of range()"),
            gain=Gain(seconds=fewer * FRONT_END_SECONDS),
            weight=float(fewer),
            share=fewer / len(stages),
        )
    copies = micro_batch_copies(dump)
    if copies is not None and copies.statements >= _FEW_COPIES:
        fewer = copies.statements - copies.once
        yield diagnosis(
            TASK,
            "warning" if copies.statements >= _MANY_COPIES else "info",
            f"{copies.layers} layers stand in the graph {copies.micro_batches} times, once a "
            f"micro-batch ({count_text(copies.statements)} statements): lazy_inline compiles a "
            f"layer once (about {count_text(copies.once)}){_saved_text(fewer)}",
            command,
            rank=ranks[0],
            ranks=ranks,
            file=dump.path,
            edit=Edit(setting="lazy_inline", value="@lazy_inline on __init__ of the layer"),
            gain=Gain(seconds=fewer * FRONT_END_SECONDS),
            weight=float(fewer),
            share=fewer / len(stages),
        )
    yield from _growth(subject, ranks[0])


def _saved_text(statements: int) -> str:
    """What so many statements take, as far as anybody measured."""
    least, most = statements * FRONT_END_SECONDS, statements * SECONDS_A_STATEMENT
    return (
        f"; they take {seconds_text(least)} of the front end (MindSpore 2.7 and 2.10, one core), "
        f"up to {seconds_text(most)} with a backend (1.8)"
    )


def _by_line(loops: Sequence[UnrolledLoop]) -> list[list[UnrolledLoop]]:
    """Loops of equal layers are one line of Python; the line with most statements first."""
    lines: dict[object, list[UnrolledLoop]] = {}
    for loop in loops:
        source = source_of(loop.node)
        place = (source.path, source.line) if source is not None else loop.scope
        lines.setdefault((place, loop.times), []).append(loop)
    return sorted(lines.values(), key=lambda alike: -sum(loop.statements for loop in alike))


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
        f"{count_text(before.statements)}{_most_grown(before.file, after.file)}"
        f"{_saved_text(added)}",
        subject.command("parse", after.file.path, "--group-by", "scope"),
        rank=rank,
        file=after.file.path,
        since=after.file.name,
        gain=Gain(seconds=added * FRONT_END_SECONDS),
    )


def _most_grown(before: PassFile, after: PassFile) -> str:
    """The kind of layer that most of the new statements are in."""
    sizes = layer_sizes(after)
    for kind, (_, statements) in layer_sizes(before).items():
        if kind in sizes:
            sizes[kind] = sizes[kind][0], sizes[kind][1] - statements
    if not sizes:
        return ""
    kind, (layers, added) = max(sizes.items(), key=lambda item: item[1][1])
    times = f" ({layers} alike)" if layers > 1 else ""
    return f", {count_text(added)} of them in {kind}{times}" if added > 0 else ""


def layer_sizes(file: PassFile) -> dict[str, tuple[int, int]]:
    """Kinds of layers of a dump, numbers folded: how many layers, and their statements.

    By the lines that name scopes, without reading the dump.
    """
    try:
        content = read_content(file.path).data
    except DumpError:
        return {}
    scopes = Counter(_SCOPE.findall(content))
    layers: dict[str, set[str]] = {}
    statements: dict[str, int] = {}
    for scope, times in scopes.items():
        layer = layer_of_scope(scope.decode("utf-8", "replace"))
        kind = _DIGITS.sub("#", layer)
        layers.setdefault(kind, set()).add(layer)
        statements[kind] = statements.get(kind, 0) + times
    return {kind: (len(layers[kind]), statements[kind]) for kind in layers}


def pass_sizes(subject: Subject, rank: int) -> list[PassSize]:
    """Statements after each stage of one rank's compilation, by counting lines."""
    sizes: list[PassSize] = []
    for file in subject.compilations[rank].passes:
        if file.kind not in ("stage", "parallel"):
            continue
        try:
            content = read_content(file.path).data
        except DumpError:
            continue
        sizes.append(PassSize(file, content.count(b"\n  %")))
    return sizes
