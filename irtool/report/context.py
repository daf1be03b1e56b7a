"""What people are shown of a run's context: what was assumed, and what contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irtool.cluster.context.model import RunContext
from irtool.ir.units import plural
from irtool.report.model import Block, Note, Report
from irtool.report.run_answer import assumption_text


def context_lines(context: RunContext) -> Sequence[str]:
    """A line of what was assumed and decides the answer; what contradicts goes to stderr.

    Args:
        context: of the run, its assumptions weighed: those that decide are marked.

    Returns:
        one line, or none where no assumption decides.
    """
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
