"""How a run's context is shown: in JSON all of it, to people what was assumed or contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irtool.cluster.context.model import RunContext
from irtool.ir.units import plural
from irtool.report.answer import as_json
from irtool.report.json import json_text
from irtool.report.model import Block, Note, Report
from irtool.report.run_answer import assumption_text, context_fields


def context_object(context: RunContext, more: Iterable[str] = ()) -> dict[str, object]:
    """``context``, ``assumptions`` and ``contradictions``; ``more`` are other assumptions."""
    return {
        key: {name: as_json(entry) for name, entry in value.items()} if key == "context" else value
        for key, value in context_fields(context, more).items()
    }


def context_pieces(
    pieces: Iterable[str],
    context: RunContext,
    more: Iterable[str] = (),
    compilations: Iterable[tuple[Sequence[str], RunContext]] = (),
) -> Iterator[str]:
    """An object that comes in pieces, the last of which closes it, with the context at its end.

    Args:
        pieces: of the object.
        context: of the first compilation, or of the only one.
        more: other assumptions.
        compilations: of several compilations, the dumps and the context of each.
    """
    last: str | None = None
    for piece in pieces:
        if last is not None:
            yield last
        last = piece
    for name, value in context_object(context, more).items():
        yield f',\n "{name}": {json_text(value)}'
    contexts = [{"files": list(files), **context_object(one)} for files, one in compilations]
    if contexts:
        yield f',\n "contexts": {json_text(contexts)}'
    yield last or "}\n"


def context_lines(context: RunContext) -> Sequence[str]:
    """A line of what was assumed and decides the answer; what contradicts goes to stderr."""
    deciding = [assumption for assumption in context.assumptions if assumption.decides]
    if not deciding:
        return ()
    listed = ", ".join(map(assumption_text, deciding))
    return (f"assumed: {listed}; options or --context FILE say otherwise",)


def context_blocks(context: RunContext) -> Sequence[Block]:
    """What was assumed and decides the answer, and what two sources say differently."""
    contradictions = [
        f"contradiction: {contradiction.message}" for contradiction in context.contradictions
    ]
    return [Note(line) for line in (*contradictions, *context_lines(context))]


def with_context(
    report: Report, context: RunContext, assumptions: Sequence[str] = (), list_all: bool = False
) -> Report:
    """A report that ends in what contradicts, and in what was assumed.

    Args:
        report: the report.
        context: what of it was assumed and decides the answer is told in one line.
        assumptions: others, of which only the number is told.
        list_all: list all of them instead, those of the context that decide nothing too.
    """
    notes = list(context_blocks(context))
    if list_all:
        quiet = [
            assumption_text(assumption)
            for assumption in context.assumptions
            if not assumption.decides
        ]
        notes += [Note(f"assumed: {text}") for text in (*assumptions, *quiet)]
    elif assumptions:
        notes.append(
            Note(f"{plural(len(assumptions), 'more assumption')}: --assumptions lists them")
        )
    return replace(report, elements=[*report.elements, *notes])
