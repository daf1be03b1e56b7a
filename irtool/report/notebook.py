"""Results in a notebook: small html without scripts, whose size does not grow with the dump.

A report needs one line in :data:`DOCUMENTS`, the function that makes the document which its command
shows on a terminal, and :class:`irtool.ir.display.Shown` among the bases of its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html import escape as escape_html
from importlib import import_module
from typing import Any

from irtool.ir.display import VIEWS
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph
from irtool.ir.units import count_text, plural, tuple_text
from irtool.report.model import (
    Column,
    Document,
    Facts,
    Heading,
    Note,
    Report,
    Table,
    number_column,
)
from irtool.report.plain import TextBlock, cell_text, cells_of, text_blocks
from irtool.report.text import escape, shortened
from irtool.syntax.printer import print_value

MOST_ROWS = 20
MOST_FACTS = 40
MOST_TABLES = 8
MOST_CHARACTERS = 160
"""Of one cell."""
MOST_DRAWN = 2_000
"""Nodes of a dump that is drawn; a larger one would take seconds, each time a cell runs."""
MOST_PICTURE = 150_000
"""Characters of a picture."""
_BOXES = 40
_GRAPH_ROWS = 30

DOCUMENTS: dict[str, str] = {
    "irtool.cluster.fuse.Fusion": "irtool.report.comm.fuse:fusion_report",
    "irtool.cluster.fuse_plan.FusionPlan": "irtool.report.comm.fuse:fusion_plan_report",
    "irtool.cluster.groups.GroupReport": "irtool.report.notebook_reports:groups",
    "irtool.cluster.hang.HangReport": "irtool.report.notebook_reports:hang",
    "irtool.cluster.memory.Memory": "irtool.report.notebook_reports:memory",
    "irtool.cluster.pipeline.Pipeline": "irtool.report.notebook_reports:pipeline",
    "irtool.cluster.reuse.ReuseReport": "irtool.report.notebook_reports:reuse",
    "irtool.compare.checkpoints.comparison.CheckpointComparison": (
        "irtool.report.notebook_reports:checkpoints"
    ),
    "irtool.compare.graph_diff.GraphDiff": "irtool.report.notebook_reports:diff",
    "irtool.compare.losses.comparison.LossComparison": "irtool.report.diff.losses:losses_report",
    "irtool.compare.runs.comparison.RunComparison": "irtool.report.notebook_reports:runs",
    "irtool.diagnosis.examine.Examination": "irtool.report.notebook_reports:doctor",
    "irtool.ir.finding.Findings": "irtool.report.notebook_reports:findings",
    "irtool.planning.checkpoints.conversion.Conversion": "irtool.report.notebook_reports:ckpt",
    "irtool.planning.plans.step.report.StepCost": "irtool.report.notebook_reports:cost",
    "irtool.planning.plans.edits.NetworkEdits": "irtool.report.notebook_reports:edits",
    "irtool.planning.recovery.elastic.ElasticPlan": "irtool.report.notebook_reports:elastic",
    "irtool.planning.plans.plan.Plan": "irtool.report.notebook_reports:plan",
    "irtool.planning.recovery.recover.Recovery": "irtool.report.notebook_reports:recovery",
    "irtool.planning.scaling.candidates.Candidates": "irtool.report.notebook_reports:candidates",
    "irtool.planning.scaling.scaled.Scaled": "irtool.report.notebook_reports:scaled",
    "irtool.planning.stages.results.StagedPlan": "irtool.report.notebook_reports:staged",
    "irtool.sharding.network.report.CheckResult": "irtool.report.notebook_reports:check",
}
"""By type, the function that makes its document: imported when the first such result is shown."""

_STYLE = (
    ".irtool{font-size:13px;line-height:1.45}.irtool h4{margin:8px 0 4px;font-size:14px}"
    ".irtool table{border-collapse:collapse;margin:4px 0;font-size:12px}"
    ".irtool th,.irtool td{text-align:left;padding:2px 8px;border:0;vertical-align:top}"
    ".irtool th{border-bottom:1px solid #8888}.irtool .n{text-align:right}"
    ".irtool .q{opacity:.7}.irtool figure{margin:6px 0;overflow:auto;max-height:480px;"
    "background:#fff;border:1px solid #8884}"
)


def document_html(document: Document | Report, more: str = "") -> str:
    """A report as html for a notebook; long tables say how much they leave out.

    Args:
        document: blocks of text; pictures and the graph are left out.
        more: html that follows, harmless already.
    """
    blocks = list(text_blocks(document.blocks))
    shown = list(blocks[: 3 * MOST_TABLES])
    parts = [part for block in shown for part in _block(block)]
    if len(blocks) > len(shown):
        parts.append(f'<p class="q">… {plural(len(blocks) - len(shown), "more part")}</p>')
    return f'<div class="irtool"><style>{_STYLE}</style>{"".join(parts)}{more}</div>'


def _block(block: TextBlock) -> Iterator[str]:
    match block:
        case Heading():
            yield f"<h4>{_text(block.text)}</h4>"
        case Note():
            yield f'<p class="q">{_text(block.text)}</p>'
        case Facts():
            rows = (
                f'<tr><td class="q">{_text(label)}</td><td>{_text(cell_text(value))}</td></tr>'
                for label, value in block.pairs[:MOST_FACTS]
            )
            yield f"<table>{''.join(rows)}</table>"
            yield from _rest(len(block.pairs) - MOST_FACTS, "fact")
        case Table():
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"<p><b>{_text(table.title)}</b></p>"
    kinds = [' class="n"' if column.is_numeric else "" for column in table.columns]
    heads = (
        f"<th{kind}>{_text(column.title)}</th>"
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    rows = (
        "<tr>" + "".join(
            f"<td{kind}>{escape_html(shortened(text, MOST_CHARACTERS))}</td>"
            for text, kind in zip(row, kinds, strict=True)
        ) + "</tr>"
        for row in cells_of(replace(table, rows=table.rows[:MOST_ROWS], most=None))
    )  # fmt: skip
    yield f"<table><tr>{''.join(heads)}</tr>{''.join(rows)}</table>"
    yield from _rest(table.left_out + max(0, len(table.rows) - MOST_ROWS), table.noun)


def _rest(number: int, noun: str) -> Iterable[str]:
    return [f'<p class="q">… {plural(number, f"more {noun}")}</p>'] if number > 0 else []


def _text(text: str) -> str:
    return escape_html(shortened(escape(text), 4 * MOST_CHARACTERS))


# -- dumps and graphs --------------------------------------------------------------------------


def dump_html(dump: Dump) -> str:
    """What is in a dump, and a picture of it where the dump is small."""
    from irtool.cluster.summary import summarize
    from irtool.report.summary import summary_report

    small = sum(len(graph.nodes) for graph in dump.graphs) <= MOST_DRAWN
    report = summary_report([summarize(dump, with_ties=small)], MOST_ROWS)
    problems = [Note(f"line {problem.line}: {problem.message}") for problem in dump.problems[:5]]
    report = replace(report, elements=[*report.elements, *problems])
    return document_html(report, _picture(dump) if small else "")


def _picture(dump: Dump) -> str:
    """A picture of at most a few dozen boxes; nothing where it cannot be had."""
    from irtool.report.page.svg import NoPicture, clean_svg
    from irtool.report.picture.build import Wishes, picture
    from irtool.report.picture.material import material
    from irtool.report.picture.render import svg_of

    if not any(True for _ in dump.nodes()):
        return ""
    try:
        drawn = picture(material(dump.whole()), Wishes(most=_BOXES))
        svg = clean_svg(svg_of(drawn)[0].decode("utf-8"))
    except NoPicture:
        return ""
    return f"<figure>{svg}</figure>" if len(svg) <= MOST_PICTURE else ""


def graph_html(graph: Graph) -> str:
    """The statements of a graph, the first of them in a table."""
    heading = f"@{graph.name}: {plural(len(graph.nodes), 'statement')}"
    facts = [
        ("parameters", ", ".join(item.name for item in graph.parameters[:12])
         + (f", … {count_text(len(graph.parameters) - 12)} more" * (len(graph.parameters) > 12))),
        ("line", count_text(graph.line)),
        *([("of graph", f"@{graph.parent}")] if graph.parent else []),
    ]  # fmt: skip
    columns = (
        number_column("line"), Column("node"), Column("operator"), Column("operands"),
        Column("result"), Column("strategy"), Column("scope"),
    )  # fmt: skip
    rows = [
        (
            node.line,
            node.id,
            node.op,
            ", ".join(print_value(operand) for operand in node.operands[:6]),
            node.output_type.short() if node.output_type else "",
            tuple_text(node.written_strategy()),
            node.scope or "",
        )
        for node in graph.nodes[:_GRAPH_ROWS]
    ]
    table = Table("", columns, rows, len(graph.nodes) - len(rows), "statement")
    return document_html(Document([Heading(heading), Facts(facts), table]))


# -- reports -----------------------------------------------------------------------------------


def _by_document(place: str) -> Callable[[Any], str]:
    module, _, name = place.partition(":")
    return lambda result: document_html(getattr(import_module(module), name)(result))


VIEWS["irtool.ir.dump.Dump"] = dump_html
VIEWS["irtool.ir.graph.Graph"] = graph_html
VIEWS.update({kind: _by_document(place) for kind, place in DOCUMENTS.items()})
