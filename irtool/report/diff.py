"""What ``irtool diff`` tells people about two graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.ir.units import part_text, plural
from irtool.report.model import Document, Facts, Heading, Note, Table, number_column, text_column
from irtool.report.text import shortened

if TYPE_CHECKING:
    from irtool.compare.edits import Pattern
    from irtool.compare.graph_diff import GraphDiff
    from irtool.compare.timeline import Step

_USUAL = 40
"""Patterns shown where nobody asked for more."""
_DETAIL = 90


@dataclass(frozen=True, slots=True)
class DiffView:
    """A difference with what of it is to be shown."""

    diff: GraphDiff
    patterns: tuple[Pattern, ...]
    limit: int | None = None


def diff_document(view: DiffView) -> Document:
    """The answer first, then what happened, equal edits of repeated layers in one line."""
    diff = view.diff
    document = Document([Heading(answer_text(diff)), Facts(_facts(diff))])
    roots = [pattern for pattern in view.patterns if not pattern.first.follows]
    following = [pattern for pattern in view.patterns if pattern.first.follows]
    if roots:
        document.add(_patterns_table(roots, view.limit))
    if following:
        count = sum(len(pattern.edits) for pattern in following)
        document.add(
            Note(
                f"{plural(count, 'result')} only follow: their type changed because an operand's "
                "did (--format json lists them)"
            )
        )
    if diff.parameters:
        document.add(_parameters_table(diff, view.limit))
    if diff.passing and not diff.is_identical:
        texts = (f"{op} {before:,} → {after:,}" for op, before, after in diff.passing)
        document.add(Note(f"nodes that only pass values on: {', '.join(texts)}"))
    return document


def answer_text(diff: GraphDiff) -> str:
    """The answer in one line."""
    if diff.is_identical:
        return "identical, up to numbers, addresses, hashes and source lines"
    roots = [pattern for pattern in diff.patterns if not pattern.first.follows]
    if not diff.edits:
        return "different, though every operator is the same"
    edits = sum(len(pattern.edits) for pattern in roots)
    return f"different: {plural(edits, 'edit')} of {plural(len(roots), 'kind')}"


def place_text(node: Node | None) -> str:
    """``train.py:44``: the innermost line outside the framework; empty where there is none."""
    location = node.location if node is not None else None
    if location is None:
        return ""
    return f"{location.path}:{location.line}"


def node_place(node: Node | None) -> str:
    """``a.ir:957 %13 MatMul``, or a dash."""
    if node is None:
        return "-"
    dump = node.graph.dump if node.graph else None
    return f"{dump.path if dump else ''}:{node.line} {node.id} {node.op}"


def _facts(diff: GraphDiff) -> list[tuple[str, str]]:
    left = len({pair.left for pair in diff.pairs})
    right = len({pair.right for pair in diff.pairs})
    rounds = Counter(pair.round for pair in diff.pairs)
    found = [
        ("left", f"{diff.left.path}: {_matched(left, len(diff.only_left))}"),
        ("right", f"{diff.right.path}: {_matched(right, len(diff.only_right))}"),
        ("matched by", ", ".join(f"{name} {count:,}" for name, count in rounds.most_common())),
    ]
    first = diff.first_divergence
    if first is not None:
        found.append(("first", shortened(first.why, 160)))
        if first.left is not None or first.right is not None:
            found.append(("", f"{node_place(first.left)}  |  {node_place(first.right)}"))
        source = place_text(first.left or first.right)
        if source:
            found.append(("", source))
    return [pair for pair in found if pair[1]]


def _matched(matched: int, alone: int) -> str:
    return f"{part_text(matched, matched + alone)} of the operators matched"


def _patterns_table(patterns: Sequence[Pattern], limit: int | None) -> Table:
    shown = len(patterns) if limit == 0 else limit or _USUAL
    columns = (
        text_column("what"),
        number_column("times"),
        number_column("layers"),
        text_column("phase"),
        text_column("left"),
        text_column("right"),
        text_column("detail"),
        text_column("scope"),
    )
    rows = [_pattern_row(pattern) for pattern in patterns[:shown]]
    left_out = max(0, len(patterns) - shown)
    return Table("Edits, in the order of the flow", columns, rows, left_out, "kind")


def _pattern_row(pattern: Pattern) -> list[str | int | None]:
    first = pattern.first
    return [
        first.kind,
        len(pattern.edits),
        pattern.layers if pattern.layers > 1 else None,
        first.phase,
        _short_place(first.left),
        _short_place(first.right),
        shortened(pattern.detail, _DETAIL),
        shortened(pattern.scope, 60),
    ]


def _short_place(nodes: tuple[Node, ...]) -> str:
    if not nodes:
        return "-"
    named = next((node for node in nodes if node.op not in PLUMBING), nodes[0])
    more = f" +{len(nodes) - 1}" if len(nodes) > 1 else ""
    return f"{named.id} {named.op}{more}"


def _parameters_table(diff: GraphDiff, limit: int | None) -> Table:
    shown = len(diff.parameters) if limit == 0 else limit or 20
    rows: list[list[str | int | None]] = [
        [item.name, item.before or "-", item.after or "-"] for item in diff.parameters[:shown]
    ]
    columns = (text_column("parameter"), text_column("left"), text_column("right"))
    left_out = max(0, len(diff.parameters) - shown)
    return Table("Parameters", columns, rows, left_out, "parameter")


# -- series --------------------------------------------------------------------------------------


def timeline_document(steps: Sequence[Step], limit: int | None) -> Document:
    """What each pass changed; runs of passes that changed nothing are one line."""
    changed = [step for step in steps if not step.is_identical]
    title = f"{len(changed):,} of {plural(len(steps), 'pass')}".replace("passs", "passes")
    document = Document([Heading(f"{title} changed something")])
    rows: list[list[str | int | None]] = []
    idle = 0
    for step in steps:
        if step.is_identical:
            idle += 1
            continue
        if idle:
            rows.append([f"({idle} without a change)", None, None, ""])
            idle = 0
        diff = step.diff
        counts = ", ".join(f"{kind} {count:,}" for kind, count in step.counts.items())
        before = sum(len(graph.nodes) for graph in diff.left.graphs) if diff else 0
        after = sum(len(graph.nodes) for graph in diff.right.graphs) if diff else 0
        rows.append([step.after, after, after - before, counts or _only_passing(step)])
    if idle:
        rows.append([f"({idle} without a change)", None, None, ""])
    shown = len(rows) if limit is None or limit == 0 else limit
    columns = (
        text_column("after"),
        number_column("nodes"),
        number_column("more"),
        text_column("edits"),
    )
    document.add(Table("", columns, rows[:shown], max(0, len(rows) - shown), "row"))
    return document


def _only_passing(step: Step) -> str:
    if step.diff is None or not step.diff.passing:
        return "order of execution, or parameters"
    texts = (f"{op} {before:,} → {after:,}" for op, before, after in step.diff.passing)
    return f"nodes that only pass values on: {', '.join(texts)}"
