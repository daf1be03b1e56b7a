"""``irtool diff --passes`` and ``--ranks``: their answers for scripts, and reports for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from irtool.cluster.context.model import RunContext
from irtool.ir.units import plural, ranks_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.diff.graphs import EditPattern, edit_pattern, passing_text
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Report,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.run_answer import (
    CompilationsAnswer,
    Known,
    RunAnswer,
    context_fields,
    contexts_fields,
)
from irtool.report.text import shortened

if TYPE_CHECKING:
    from irtool.compare.series import RankClass, Step

_USUAL_PATTERNS = 12
_DETAIL = 90
_SCOPE = 60


# -- passes --------------------------------------------------------------------------------------


class PassStep(AnswerObject, frozen=True, kw_only=True):
    """From one dump to the next."""

    before: Annotated[str, doc("file of the dump")]
    after: str
    identical: bool
    edits: Annotated[dict[str, int], doc("by kind")]
    patterns: Annotated[list[EditPattern], doc("without types that only follow an operand's")]


class PassesAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff.passes/1"
):
    """What each pass of one compilation changed."""

    identical: Annotated[bool, doc("no pass changed anything")]
    steps: list[PassStep]


def passes_answer(steps: Sequence[Step], context: RunContext) -> PassesAnswer:
    """The timeline of a compilation's passes, for scripts.

    Args:
        steps: from each dump to the next.
        context: that the compilation was made for.
    """
    return PassesAnswer(
        **context_fields(context),
        identical=all(step.is_identical for step in steps),
        steps=[
            PassStep(
                before=step.before,
                after=step.after,
                identical=step.is_identical,
                edits=step.counts,
                patterns=[
                    edit_pattern(pattern)
                    for pattern in (step.diff.patterns if step.diff else ())
                    if not pattern.first.follows
                ],
            )
            for step in steps
        ],
    )


def passes_report(path: str, steps: Sequence[Step], limit: int | None = None) -> Report:
    """What each pass changed; passes that changed nothing, one after the other, are one line.

    Args:
        path: of the run.
        steps: from each dump to the next.
        limit: rows that text shows; None and 0 are all.
    """
    changed = sum(not step.is_identical for step in steps)
    answer = f"{changed:,} of {plural(len(steps), 'pass')} changed something"
    columns = (
        text_column("after"), number_column("nodes"), number_column("more"),
        text_column("edits", 1),
    )  # fmt: skip
    table = Table("", columns, list(_pass_rows(steps)), noun="row", most=limit or None)
    return Report(f"diff: {path}, pass by pass", Answer(answer), [table])


def _pass_rows(steps: Sequence[Step]) -> Iterator[list[Cell]]:
    for is_idle, group in groupby(steps, lambda step: step.is_identical):
        if is_idle:
            yield [f"({len(list(group))} without a change)", None, None, ""]
            continue
        for step in group:
            counts = ", ".join(f"{kind} {count:,}" for kind, count in step.counts.items())
            before, after = step.nodes
            yield [step.after, after, after - before, counts or _besides_edits(step)]


def _besides_edits(step: Step) -> str:
    """What changed where no operator did."""
    if step.diff is None or not step.diff.passing:
        return "order of execution, or parameters"
    return f"nodes that only hand values on: {passing_text(step.diff)}"


# -- ranks ---------------------------------------------------------------------------------------


class RankClassAnswer(AnswerObject, frozen=True, kw_only=True):
    """Ranks whose graphs are equal, and how they differ from the first such ranks."""

    ranks: Sequence[int]
    readable: bool
    edits: Annotated[
        list[EditPattern], doc("against the first class, without the ranks' own groups")
    ]


class RanksAnswer(
    CompilationsAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff.ranks/1"
):
    """How the graphs of a run's ranks differ."""

    identical: Annotated[bool, doc("there is one class")]
    classes: list[RankClassAnswer]


def ranks_answer(classes: Sequence[RankClass], known: Known) -> RanksAnswer:
    """Classes of ranks, each against the first one, for scripts.

    Args:
        classes: of ranks with equal graphs.
        known: the dump that stands for each class, with its context.
    """
    return RanksAnswer(
        **contexts_fields(known),
        identical=len(classes) == 1,
        classes=[
            RankClassAnswer(
                ranks=item.ranks,
                readable=item.is_readable,
                edits=[edit_pattern(pattern) for pattern in item.patterns],
            )
            for item in classes
        ],
    )


def ranks_report(
    path: str, classes: Sequence[RankClass], limit: int | None = None, is_page: bool = False
) -> Report:
    """One line a class, then what differs from the first one.

    Args:
        path: of the run.
        classes: ranks with equal graphs.
        limit: rows of each table that text shows; None is the usual number, 0 is all.
        is_page: with texts in full.
    """
    ranks = sum(len(item.ranks) for item in classes)
    answer = f"{plural(ranks, 'rank')} in {plural(len(classes), 'class')} of equal graphs"
    columns = (
        text_column("ranks"), number_column("number"), text_column("against the first class", 1)
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [ranks_text(item.ranks), len(item.ranks), _against(item, item is classes[0])]
        for item in classes
    ]
    elements: list[Element] = [Table("", columns, rows, noun="class")]
    elements += [_edits_table(item, limit, is_page) for item in classes if item.patterns]
    return Report(f"diff: {path}, rank by rank", Answer(answer), elements)


def _against(item: RankClass, is_first: bool) -> str:
    if not item.is_readable:
        return "could not be read"
    if is_first or item.diff is None:
        return "-"
    counts = Counter(pattern.first.kind for pattern in item.patterns)
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items()) or "only its groups"


def _edits_table(item: RankClass, limit: int | None, is_page: bool) -> Table:
    columns = (
        text_column("change"), number_column("times", rank=1), text_column("operator"),
        text_column("detail", 2), text_column("scope", 3),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            pattern.first.kind,
            len(pattern.edits),
            pattern.first.node.op,
            pattern.detail if is_page else shortened(pattern.detail, _DETAIL),
            pattern.scope if is_page else shortened(pattern.scope, _SCOPE),
        ]
        for pattern in item.patterns
    ]
    most = rows_shown(limit, _USUAL_PATTERNS)
    return Table(f"Ranks {ranks_text(item.ranks)}", columns, rows, noun="kind", most=most)
