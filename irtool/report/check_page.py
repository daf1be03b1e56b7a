"""``irtool check --format html``: the verdict, findings, tables, and the graph beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.ir.units import plural, ranks_text, tuple_text
from irtool.report.check import (
    CheckView,
    FindingGroup,
    facts_of_finding,
    grouped_findings,
    summary_facts,
    verdict_text,
)
from irtool.report.check_counts import collective_rows, moves, parameter_bytes, step_bytes
from irtool.report.check_tables import (
    chain_text,
    consequences_text,
    gradient_text,
    layouts_text,
    slices_text,
    strategy_text,
)
from irtool.report.model import (
    Amount,
    Answer,
    Cell,
    Column,
    Document,
    Element,
    Explorer,
    Facts,
    FindingCard,
    FindingCards,
    Link,
    Report,
    Table,
    Tone,
)
from irtool.report.page.graph_data import graph_data
from irtool.report.page.keys import node_key
from irtool.report.picture.overlay import Mark, Overlay, Severity, worst
from irtool.sharding.network.report import RedistributionReport
from irtool.sharding.network.report import Report as CheckResult
from irtool.sharding.why import Cause


def check_page(view: CheckView, dump: Dump, against: Document | None = None) -> Report:
    """The page of a report; ``against`` is what the comparison with a later dump says."""
    report = view.report
    sections: list[Element] = []
    groups = grouped_findings(report)
    if groups:
        findings = [_finding(view, group) for group in groups]
        sections.append(FindingCards(plural(len(report.findings), "finding"), findings))
    if against is not None:
        sections += against.blocks
    sections.append(Facts(summary_facts(view), "Summary"))
    sections += [table for table in _tables(view) if table.rows]
    data = graph_data(dump, report, [findings_overlay(report)] if report.findings else [])
    sections.append(Explorer("Graph", data))
    return Report(f"check: {view.path}", Answer(verdict_text(report), tone_of(report)), sections)


def tone_of(report: CheckResult) -> Tone:
    """Accepted is good, refused bad."""
    return "unknown" if report.accepted is None else "good" if report.accepted else "bad"


def findings_overlay(report: CheckResult) -> Overlay:
    """The findings as marks on nodes."""
    found: dict[Node, Mark] = {}
    unplaced: list[str] = []
    for item in report.findings:
        if item.node is None:
            unplaced.append(item.message)
            continue
        before = found.get(item.node)
        severities: list[Severity | None] = [item.severity, before.severity if before else None]
        text = f"{before.text}; {item.message}" if before else item.message
        found[item.node] = Mark(None, worst(severities), text)
    return Overlay("findings", "findings of check", "", found, "max", tuple(unplaced))


def why_page(title: str, causes: Sequence[Cause], document: Document, dump: Dump) -> Report:
    """The page that says why nodes of a later dump are there."""
    unknown = sum(cause.kind == "unknown" for cause in causes)
    kinds = Counter(cause.kind for cause in causes)
    text = ", ".join(f"{count} × {kind}" if count > 1 else kind for kind, count in kinds.items())
    marks = {cause.node: Mark(None, "info", cause.message) for cause in causes}
    overlay = Overlay("findings", "why it is there", "", marks, "max")
    graph = Explorer("Graph", graph_data(dump, None, [overlay]))
    tone: Tone = "unknown" if unknown else "plain"
    return Report(title, Answer(text, tone), [*document.blocks, graph])


# -- findings ----------------------------------------------------------------------------------


def _finding(view: CheckView, group: FindingGroup) -> FindingCard:
    first, node = group.first, group.first.node
    message = f"{node.id} {node.op}: {first.message}" if node is not None else first.message
    facts = _placed(facts_of_finding(view, group), node)
    return FindingCard(first.severity, message, first.code, list(facts))


def _placed(
    facts: Iterable[tuple[str, str]], node: Node | None
) -> Iterator[tuple[str, str | Link]]:
    """The facts of a finding, without what its title says; its place leads to the node."""
    for label, value in facts:
        if label in ("error", "warning", "info", "code"):
            continue
        if label == "at" and node is not None:
            yield label, Link(value, node_key(node))
        else:
            yield label, value


# -- tables ------------------------------------------------------------------------------------


def _tables(view: CheckView) -> Iterator[Table]:
    if view.report.accepted is not False:
        yield _collectives(view.report)
    yield _operators(view)
    yield _redistributions(view)
    yield _parameters(view.report)
    yield Table(
        "Dataset: what this rank reads",
        [Column("input"), Column("whole"), Column("slice"), Column("from")],
        [
            [item.input, *(tuple_text(part) for part in (item.shape, item.slice, item.offset))]
            for item in view.report.dataset
        ],
    )


def _collectives(report: CheckResult) -> Table:
    columns = [
        Column("collective"), Column("count", "number"), Column("bytes", "bytes"),
        Column("ranks"), Column("group"), Column("why"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            row.op,
            row.count,
            Amount(row.bytes, "bytes", f"{row.unknown} unknown") if row.unknown else row.bytes,
            ranks_text(row.ranks),
            row.group,
            row.why,
        ]
        for row in collective_rows(report)
    ]
    note = "Bytes that one device puts in, in one step."
    return Table("Collectives of a step, by group", columns, rows, note=note)


def _operators(view: CheckView) -> Table:
    columns = [
        Column("line", "number"), Column("node"), Column("operator"), Column("verdict"),
        Column("strategy"), Column("devices"), Column("slices"), Column("what follows"),
        Column("scope"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            item.node.line,
            Link(item.node.id, node_key(item.node)),
            item.op,
            item.verdict,
            strategy_text(item),
            tuple_text(item.device_matrix) if item.verdict == "legal" else "",
            slices_text(item),
            consequences_text(item),
            item.node.scope,
        ]
        for item in view.operators
    ]
    return Table("Operators", columns, rows)


def _redistributions(view: CheckView) -> Table:
    columns = [
        Column("line", "number"), Column("from"), Column("to"), Column("input", "number"),
        Column("layouts"), Column("operators"), Column("bytes", "bytes"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            edge.consumer.line,
            _node(edge.producer),
            "in its place" if edge.replaces else _node(edge.consumer),
            edge.input,
            layouts_text(edge),
            f"not known: {edge.why}" if edge.operators is None else chain_text(edge.operators),
            _bytes(edge),
        ]
        for edge in view.redistributions
        if moves(edge)
    ]
    return Table("Redistributions", columns, rows)


def _node(node: Node) -> Link:
    return Link(f"{node.id} {node.op}", node_key(node))


def _bytes(edge: RedistributionReport) -> Cell:
    sizes = [step_bytes(edge, step) for step in edge.operators or () if step.is_collective]
    if not sizes:
        return None
    return "?" if None in sizes else sum(size or 0 for size in sizes)


def _parameters(report: CheckResult) -> Table:
    columns = [
        Column("parameter"), Column("whole"), Column("slice"), Column("bytes", "bytes"),
        Column("gradient"), Column("first used by"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            item.name,
            tuple_text(item.shape),
            f"not known: {item.why}" if item.slice is None else tuple_text(item.slice),
            parameter_bytes(item)[1],
            gradient_text(item),
            _node(item.user) if item.user is not None else None,
        ]
        for item in report.parameters
    ]
    return Table("Parameters, as this rank holds them", columns, rows)
