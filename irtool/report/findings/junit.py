"""JUnit XML: a suite a dump, a failed test a finding, one passed test where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape as escape_html

from irtool.ir.finding import Finding, Findings
from irtool.report.findings.places import primary, relative, rule_names, seen
from irtool.report.text import escape


def junit_pieces(
    findings: Findings, files: tuple[str, ...] = (), command: str = "lint"
) -> Iterator[str]:
    """One document: a suite a dump, a failed test a finding.

    Args:
        findings: of one run of a command.
        files: all dumps that were looked at: one without findings gets a test that passed.
        command: what looked at them, for the name of the document.

    Yields:
        pieces that make one XML text.
    """
    names = rule_names(findings)
    suites: dict[str, list[Finding]] = {file: [] for file in files}
    for finding in findings.items:
        suites.setdefault(finding.file, []).append(finding)
    tests = sum(max(len(cases), 1) for cases in suites.values())
    failures = len(findings.items)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="irtool {command}" tests="{tests}" failures="{failures}" errors="0">\n'
    for file, cases in suites.items():
        name = _quoted(escape(relative(file)))
        count = f'tests="{max(len(cases), 1)}" failures="{len(cases)}" errors="0" skipped="0"'
        yield f" <testsuite name={name} {count}>\n"
        if not cases:
            yield f'  <testcase name="no findings" classname={name}/>\n'
        for finding in cases:
            yield from _case(finding, name, names)
        yield " </testsuite>\n"
    yield "</testsuites>\n"


def _case(finding: Finding, classname: str, names: dict[str, str]) -> Iterator[str]:
    spot = primary(finding)
    title = f"{finding.code} {names.get(finding.code, '')} {finding.node or ''}".strip()
    name = _quoted(escape(f"{title} line {finding.line}" if finding.line else title))
    place = f'file={_quoted(escape(relative(spot.path)))} line="{spot.line}"'
    yield f"  <testcase name={name} classname={classname} {place}>\n"
    message = _quoted(escape(finding.message))
    body = [f"{finding.place}: {finding.severity}[{finding.code}]: {finding.message}"]
    body += [finding.statement.strip()] if finding.statement else []
    body += [f"source: {finding.source.path}:{finding.source.line}"] if finding.source else []
    body += [f"see: {place}" for place in seen(finding)]
    body += [f"instead: {finding.instead}"] if finding.instead else []
    body += [f"hint: {finding.hint}"] if finding.hint else []
    text = escape_html("\n".join(escape(line) for line in body), quote=False)
    yield f'   <failure type="{finding.severity}" message={message}>{text}</failure>\n'
    yield "  </testcase>\n"


def _quoted(text: str) -> str:
    """An attribute's value: in single quotation marks where it holds double ones alone."""
    # Not of xml.sax, which imports half of what Python has for the network.
    escaped = escape_html(text, quote=False)
    if '"' in escaped and "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', "&quot;") + '"'
