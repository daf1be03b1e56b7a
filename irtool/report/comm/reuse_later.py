"""``irtool comm reuse`` of MindSpore 2.3 and later: its answer for scripts, and its report."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.cluster.reuse.later_versions import Later
from irtool.cluster.reuse.limit import VARIABLE
from irtool.ir.dataclass import dataclass
from irtool.ir.units import count_text, part_text, plural
from irtool.report.answer import AnswerObject, doc
from irtool.report.comm.reuse import ReuseAnswer, ReuseKind
from irtool.report.model import (
    Answer,
    Element,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    first_rows,
    number_column,
    text_column,
)
from irtool.report.page.charts import bars
from irtool.report.run_answer import RunAnswer, context_fields

_MOST_BARS = 30


@dataclass(frozen=True, slots=True)
class LaterView:
    """What a version without the feature makes of the graph; ``value`` is the variable's."""

    path: str
    version: str
    report: Later
    value: str | None = None
    limit: int | None = None


# -- for scripts ---------------------------------------------------------------------------------


class ScopeStatements(AnswerObject, frozen=True, kw_only=True):
    """Statements of one scope."""

    scope: Annotated[str, doc("the outermost cells that the user wrote")]
    statements: int


class LayerStatements(AnswerObject, frozen=True, kw_only=True):
    """Statements of the copies of one layer."""

    layer: Annotated[str, doc("scope of a cell of a list, without its number")]
    copies: int
    statements: int


class MicroStatements(AnswerObject, frozen=True, kw_only=True):
    """Statements of one micro-batch."""

    micro: int
    statements: int


class LaterAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.comm.reuse/1"
):
    """With `--target-version` 2.3 or later, where the feature is gone: what is left."""

    path: Annotated[str, doc("what was read")]
    target_version: Annotated[str, doc("of MindSpore")]
    available: Annotated[Literal[False], doc("MindSpore lacks the feature")] = False
    enabled: Literal[False] = False
    limit: None = None
    groups: Annotated[list[ReuseKind], doc("always empty")] = field(default_factory=list[ReuseKind])
    streams_before: Annotated[int, doc("streams with `multi_stream: group`")]
    streams_after: Annotated[int, doc("streams with `multi_stream: group`: reuse changes nothing")]
    labels: None = None
    recommended_limit: None = None
    tagged: Annotated[int, doc("collectives that still get the tag, to no effect")]
    streams: Annotated[dict[str, int], doc("by setting of `multi_stream`")]
    statements: Annotated[int, doc("of the dump")]
    unrolled_statements: Annotated[int, doc("in copies of layers or micro-batches")]
    shared_by_cell_reuse: Annotated[int, doc("statements that reuse of cells would leave out")]
    reuses_cells: Annotated[bool, doc("the dump calls shared cells already")]
    by_scope: list[ScopeStatements]
    by_layer: list[LayerStatements]
    by_micro: Annotated[list[MicroStatements], doc("without those of no micro-batch")]


ReuseAnswers: TypeAlias = ReuseAnswer | LaterAnswer


def later_answer(view: LaterView, context: RunContext) -> LaterAnswer:
    """The answer for scripts of ``irtool comm reuse`` where the version lacks the feature.

    Args:
        view: streams and repeated statements of a rank's graph.
        context: of the run, with origins.
    """
    later = view.report
    return LaterAnswer(
        path=view.path,
        target_version=view.version,
        streams_before=later.streams["group"],
        streams_after=later.streams["group"],
        tagged=later.tagged,
        streams=later.streams,
        statements=later.statements,
        unrolled_statements=later.unrolled,
        shared_by_cell_reuse=later.shared,
        reuses_cells=later.reuses_cells,
        by_scope=[ScopeStatements(scope=name, statements=count) for name, count in later.by_scope],
        by_layer=[
            LayerStatements(layer=one.scope, copies=one.copies, statements=one.statements)
            for one in later.layers
        ],
        by_micro=[
            MicroStatements(micro=micro, statements=count) for micro, count in later.by_micro
        ],
        **context_fields(context),
    )


# -- for people ----------------------------------------------------------------------------------


def later_report(view: LaterView, is_page: bool = False) -> Report:
    """What is left where the feature is gone; a page draws statements by scope.

    Args:
        view: streams and repeated statements of a rank's graph.
        is_page: whether pictures are seen.
    """
    later = view.report
    elements: list[Element] = [Facts(_facts(view))]
    if is_page:
        rows = [(scope, (float(count),)) for scope, count in later.by_scope[:_MOST_BARS]]
        svg = bars(rows, "number", ("statements",))
        elements.append(Picture("Statements by scope", svg, "Statements by scope."))
    statements = number_column("statements")
    tables = [Table("By scope", [text_column("scope"), statements], later.by_scope, noun="scope")]
    if later.layers:
        columns = [text_column("layer"), number_column("copies"), statements]
        layers = [[one.scope, one.copies, one.statements] for one in later.layers]
        tables.append(Table("By unrolled layer", columns, layers, noun="layer"))
    if later.by_micro:
        columns = [number_column("micro-batch"), statements]
        tables.append(Table("By micro-batch", columns, later.by_micro, noun="line"))
    elements += [first_rows(table, view.limit) for table in tables]
    if not later.unrolled:
        elements.append(Note("Nothing repeats: reuse of cells would share nothing."))
    answer = Answer(f"MindSpore {view.version} does not reuse communication subgraphs")
    return Report(f"comm reuse: {view.path}", answer, elements, view.path)


def _facts(view: LaterView) -> list[tuple[str, str]]:
    later = view.report
    variable = f"{VARIABLE} has no effect, and raises an exception where cells are reused"
    by_setting = (
        f"{later.streams['group']} (multi_stream: group, the default), {later.streams['true']} "
        f"(true), {later.streams['false']} (false), however many operators there are"
    )
    statements = (
        f"{part_text(later.unrolled, later.statements)} are in copies of layers or micro-batches: "
        "these make compilation slow"
    )
    shared = f"@lazy_inline would share {count_text(later.shared)} of them"
    return [
        ("since", "2.3, with the task-sink backend; 1.8 to 2.2 have it"),
        ("variable", variable + (f": {view.value!r} should be unset" if view.value else "")),
        ("tags", f"{plural(later.tagged, 'collective')} still tagged comm_reuse, to no effect"),
        ("streams", by_setting),
        ("statements", statements),
        ("reuse of cells", shared + (" (some are shared already)" if later.reuses_cells else "")),
    ]
