"""``irtool diff --format html``: two graphs side by side."""

from __future__ import annotations

from irtool.compare.edits import Edit
from irtool.compare.graph_diff import GraphDiff
from irtool.ir.graph import Node
from irtool.report.diff import DiffView, answer_text, diff_document, node_place, place_text
from irtool.report.model import (
    Answer,
    Column,
    Document,
    Element,
    Explorer,
    Heading,
    Note,
    Report,
    Table,
)
from irtool.report.page.graph_data import graph_data
from irtool.report.picture.overlay import Mark, Overlay
from irtool.syntax.printer import print_statement

_MOST_LINES = 4_000
"""Edits whose statements are shown; more would make the page slow to open."""


def diff_page(view: DiffView) -> Report:
    """The answer, what happened, and every edit with the statements of both sides."""
    diff = view.diff
    tone = "good" if diff.is_identical else "plain"
    first = diff.first_divergence
    details: list[str] = []
    if first is not None:
        details = [first.why, f"{node_place(first.left)}  |  {node_place(first.right)}"]
        details += [text for text in (place_text(first.left or first.right),) if text]
    document = diff_document(DiffView(diff, view.patterns, view.limit or 0))
    edits = [edit for pattern in view.patterns for edit in pattern.edits]
    sections: list[Element] = list(document.blocks)
    if edits:
        sections.append(_side_by_side(edits[:_MOST_LINES]))
    if len(edits) > _MOST_LINES:
        sections.append(Note(f"{len(edits) - _MOST_LINES:,} more edits: --format json has all"))
    sections.append(_graphs(diff))
    title = f"{diff.left.path} ↔ {diff.right.path}"
    return Report(title, Answer(answer_text(diff), tone, details), sections)


def _graphs(diff: GraphDiff) -> Explorer:
    """Both graphs side by side, with what is on one side only and what changed marked."""
    marks = {node: Mark(None, "removed", "removed") for node in diff.only_left}
    marks |= {node: Mark(None, "added", "added") for node in diff.only_right}
    for pair in diff.changed:
        mark = Mark(None, "changed", ", ".join(map(str, pair.what)))
        marks |= {pair.left: mark, pair.right: mark}
    begins = diff.first_divergence
    for node in (begins.left, begins.right) if begins is not None else ():
        if node is not None:
            marks[node] = Mark(None, "first", f"first: {begins.why}" if begins is not None else "")
    overlay = Overlay("diff", "differences", marks=marks)
    sides = [("left", diff.left), ("right", diff.right)]
    begins = diff.first_divergence
    first = (begins.right or begins.left) if begins is not None else None
    return Explorer("Both graphs", graph_data(sides, None, [overlay], first=first))


def _side_by_side(edits: list[Edit]) -> Table:
    return Table(
        "Side by side",
        [
            Column("what"),
            Column("phase"),
            Column("left"),
            Column("right"),
            Column("detail"),
            Column("scope"),
        ],
        [
            [
                edit.kind,
                edit.phase,
                _statements(edit.left),
                _statements(edit.right),
                edit.detail,
                edit.node.scope or "",
            ]
            for edit in edits
        ],
    )


def _statements(nodes: tuple[Node, ...]) -> str:
    lines = [f"{node.line}: {print_statement(node).strip()}" for node in nodes[:6]]
    if len(nodes) > 6:
        lines.append(f"… {len(nodes) - 6} more")
    return "\n".join(lines)


def series_page(document: Document) -> Report:
    """A timeline of passes, or the classes of ranks."""
    first = document.blocks[0]
    text = first.text if isinstance(first, Heading) else ""
    sections = list(document.blocks[1:])
    return Report(f"diff: {text}", Answer(text), sections)
