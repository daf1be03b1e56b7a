"""Annotations of GitHub Actions: ``::error file=…,line=…::message`` on standard output.

GitHub shows ten of each severity a step, so the gravest come first and equal ones once.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Findings
from irtool.ir.units import count_text
from irtool.report.findings.places import alike, by_severity, primary, relative, rule_names, seen
from irtool.report.text import escape

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def github_pieces(findings: Findings) -> Iterator[str]:
    """A line a finding.

    Form: GitHub's workflow commands ``error``, ``warning`` and ``notice``.

    Args:
        findings: of one run of ``lint`` or ``gate``.

    Yields:
        the gravest first; equal findings of repeated layers as one.
    """
    names = rule_names(findings)
    for group in alike(by_severity(findings.items)):
        finding = group.first
        spot = primary(finding)
        title = f"{finding.code} {names.get(finding.code, '')}".strip()
        values = {"file": relative(spot.path), "line": spot.line}
        if spot.end_line:
            values["endLine"] = spot.end_line
        if spot.column and not spot.end_line:
            values["col"] = spot.column
            if spot.end_column:
                values["endColumn"] = spot.end_column
        place = f"{relative(finding.file)}:{finding.line}" if finding.line else finding.file
        lines = [finding.message, f"dump: {place}"]
        if group.others:
            lines.append(f"and {count_text(len(group.others))} more like this")
        lines += [f"see: {place}" for place in seen(finding)]
        lines += [f"instead: {finding.instead}"] if finding.instead else []
        lines += [f"hint: {finding.hint}"] if finding.hint else []
        head = ",".join(f"{key}={_property(str(value))}" for key, value in values.items())
        text = _data("\n".join(escape(line) for line in lines))
        yield f"::{_COMMANDS[finding.severity]} {head},title={_property(title)}::{text}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escape(text)).replace(":", "%3A").replace(",", "%2C")
