"""One self-contained page: what was found, each finding in full, and a table that filters."""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Findings
from irtool.ir.units import plural, ranks_text
from irtool.report import model as form
from irtool.report.findings.places import Alike, alike, by_severity, relative, rule_names
from irtool.report.findings.text import gain_text, summary_text
from irtool.report.page.graph.data import graph_data
from irtool.report.picture.overlay import Mark, Overlay

MOST_SHOWN = 200
"""Groups of equal findings that are told in full; the table has all findings."""


def findings_page(
    findings: Findings, dump: Dump | None = None, command: str = "lint"
) -> form.Report:
    """The summary, findings in full, all of them in a table, and a dump's graph beside them.

    Args:
        findings: the report.
        dump: the dump whose graph is shown, usually that with the most findings.
        command: that found them.
    """
    first, *rest = summary_text(findings).splitlines()
    grave = any(finding.severity == "error" for finding in findings.items)
    tone = "bad" if grave else "plain" if findings.items else "good"
    names = rule_names(findings)
    groups = alike(by_severity(findings.items))
    shown = [_shown(group, names) for group in groups[:MOST_SHOWN]]
    sections: list[form.Element] = []
    if groups:
        left_out = len(groups) - len(shown)
        sections = [form.FindingCards("Findings", shown, left_out), _table(findings, names)]
    if dump is not None:
        sections.append(_graph(findings, dump, command))
    return form.Report(f"irtool {command}", form.Answer(first, tone, rest), sections)


def _graph(findings: Findings, dump: Dump, command: str) -> form.Explorer:
    """The graph of one dump, with what was found in it marked."""
    worst: dict[int, Finding] = {}
    for finding in by_severity(findings.items):
        if finding.file == dump.path and finding.node is not None:
            worst.setdefault(finding.line, finding)
    marks = {
        node: Mark(None, gravest.severity, f"{gravest.code}: {gravest.message}")
        for node in dump.nodes()
        if (gravest := worst.get(node.line)) is not None
    }
    overlay = Overlay("findings", f"findings of {command}", marks=marks)
    return form.Explorer(relative(dump.path), graph_data(dump, None, [overlay]))


def _shown(group: Alike, names: dict[str, str]) -> form.FindingCard:
    finding = group.first
    facts: list[tuple[str, str | form.Link]] = [("where", _place(finding))]
    if finding.statement:
        facts.append(("statement", finding.statement.strip()))
    if finding.source is not None:
        source = finding.source
        facts.append(("source", f"{source.path}:{source.line}: {source.text}".rstrip(": ")))
    if finding.scope:
        facts.append(("scope", finding.scope))
    if len(finding.ranks) > 1:
        facts.append(("ranks", ranks_text(finding.ranks)))
    facts += [
        ("see", f"{_at(place.file, place.line)}: {place.message}") for place in finding.related
    ]
    if group.others:
        facts.append(("also", plural(len(group.others), "other place")))
    facts += [
        (label, text)
        for label, text in (
            ("fix", finding.instead),
            ("gain", gain_text(finding.gain) if finding.gain is not None else ""),
            ("hint", finding.hint),
        )
        if text
    ]
    code = f"{finding.code} {names.get(finding.code, '')}".strip()
    return form.FindingCard(finding.severity, finding.message, code, facts)


def _table(findings: Findings, names: dict[str, str]) -> form.Table:
    titles = ("severity", "code", "rule", "dump", "node", "operator", "source", "scope", "message")
    rows = [
        (
            finding.severity,
            finding.code,
            names.get(finding.code, ""),
            _place(finding),
            finding.node,
            finding.op,
            "" if finding.source is None else _at(finding.source.path, finding.source.line),
            finding.scope,
            finding.message,
        )
        for finding in findings.items
    ]
    return form.Table("All findings", [form.Column(title) for title in titles], rows)


def _place(finding: Finding) -> str:
    return _at(finding.file, finding.line)


def _at(path: str, line: int) -> str:
    return f"{relative(path)}:{line}" if line else relative(path)
